package rayjob

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// Whatever a user writes, Ray is told exactly that, whoever submits.
func TestRayIsToldWhatTheSpecSays(t *testing.T) {
	c := newContainer(t)
	rapid.Check(t, func(t *rapid.T) {
		job, want := anyJob(t)
		for name, spec := range submitters(t, job) {
			result, err := c.run(spec)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if result.Code != 0 {
				t.Fatalf("%s: the script ended with %d: %s", name, result.Code, result.Stderr)
			}
			told, err := submissions(result.Calls)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, got := range told {
				if d := cmp.Diff(want, got); d != "" {
					t.Fatalf("%s: Ray is told something else (-want +got):\n%s", name, d)
				}
			}
			if len(told) == 0 {
				t.Fatalf("%s: nothing was submitted by %q", name, result.Calls)
			}
		}
		request, err := submitRequest(job)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		var sent map[string]any
		if err := json.Unmarshal(text, &sent); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, sent); d != "" {
			t.Fatalf("over HTTP Ray is told something else (-want +got):\n%s", d)
		}
	})
}

// submitters are the containers that submit the job, by mode.
func submitters(t rapid.TB, job *rayv1.RayJob) map[string]corev1.Container {
	cluster := rayCluster(job)
	template, err := submitterTemplate(job, cluster, settings)
	if err != nil {
		t.Fatal(err)
	}
	if err := addSidecar(cluster, job, settings); err != nil {
		t.Fatal(err)
	}
	return map[string]corev1.Container{
		"submitter": template.Spec.Containers[0],
		"sidecar":   cluster.Spec.HeadGroupSpec.Template.Spec.Containers[1],
	}
}

// anyText is text of any kind, for the most part made of what shells, Kubernetes and Python care about.
func anyText() *rapid.Generator[string] {
	pieces := rapid.SampledFrom([]string{
		"python", "main.py", "--lr=1e-3", "-", "--", " ", " ", "  ", "\t", "\n", "\r", "'", `"`, `\`, `\\`, "$", "$$", "$(HOME)", "$HOME", "${HOME}",
		"$(touch x)", "`touch x`", ";", "&&", "|", ">", "#", "!", "*", "~", "{a,b}", "(", ")", "é", "日本", "😀", "\u2028", "\x7f", "\x01", "%s", "%", "=", "[0]", "?",
	})
	join := func(parts []string) string { return strings.Join(parts, "") }
	return rapid.OneOf(
		rapid.Map(rapid.SliceOfN(pieces, 0, 12), join),
		rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{"python", " ", "main.py", "--lr=1e-3", " -- ", "-x", "A=1", "%"}), 0, 8), join),
		rapid.Map(rapid.String(), func(s string) string { return strings.ReplaceAll(s, "\x00", "") }),
	)
}

// anyJob returns a job, and what Ray must be told of it, as JSON has it.
func anyJob(t *rapid.T) (*rayv1.RayJob, map[string]any) {
	entrypoint := anyText().Filter(func(s string) bool { return s != "" }).Draw(t, "entrypoint")
	metadata := rapid.MapOfN(anyText(), anyText(), 0, 3).Draw(t, "metadata")
	variables := rapid.MapOfN(anyText().Filter(writtenInYAML), anyText().Filter(writtenInYAML), 0, 3).Draw(t, "env_vars")
	resources := rapid.MapOfN(anyText(), rapid.Float64Range(0, 1e6), 0, 2).Draw(t, "resources")
	cpus := rapid.IntRange(0, 1000).Draw(t, "hundredths of CPUs")
	id := rapid.SampledFrom([]string{"train-x7k2m", "-x", "--follow", "it's", "$(HOME)", "a;b", "é"}).Draw(t, "id")

	job := example(func(j *rayv1.RayJob) {
		j.Spec.Entrypoint, j.Spec.Metadata, j.Status.JobId = entrypoint, metadata, id
		j.Spec.EntrypointNumCpus = float32(cpus) / 100
		if len(variables) > 0 {
			j.Spec.RuntimeEnvYAML = encode(t, yaml.Marshal, map[string]any{"env_vars": variables})
		}
		if len(resources) > 0 {
			j.Spec.EntrypointResources = encode(t, json.Marshal, resources)
		}
	})
	marked := maps.Clone(metadata)
	marked["heliostat.io/rayjob-uid"], marked["heliostat.io/attempt"] = "job-uid", "1"
	want := map[string]any{"entrypoint": entrypoint, "submission_id": id, "metadata": marked}
	if cpus > 0 {
		want["entrypoint_num_cpus"] = float64(cpus) / 100
	}
	if len(variables) > 0 {
		want["runtime_env"] = map[string]any{"env_vars": variables}
	}
	if len(resources) > 0 {
		want["entrypoint_resources"] = resources
	}
	var plain map[string]any
	if err := json.Unmarshal([]byte(encode(t, json.Marshal, want)), &plain); err != nil {
		t.Fatal(err)
	}
	return job, plain
}

// writtenInYAML tells whether the library that writes the test's YAML can write the text.
func writtenInYAML(text string) bool {
	written, err := yaml.Marshal(text)
	var read string
	return err == nil && yaml.Unmarshal(written, &read) == nil && read == text
}

func encode(t *rapid.T, with func(any) ([]byte, error), value any) string {
	text, err := with(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// submissions reads from the calls of ray and python what Ray would be told. Of a call of Ray's command line there are
// two readings, because releases differ in how they join the words of the entrypoint.
func submissions(calls [][]string) ([]map[string]any, error) {
	var told []map[string]any
	for _, call := range calls {
		switch {
		case len(call) == 5 && call[0] == "python" && call[2] == pythonSubmit:
			var request map[string]any
			if err := json.Unmarshal([]byte(call[4]), &request); err != nil {
				return nil, fmt.Errorf("the client is given %q: %w", call[4], err)
			}
			told = append(told, request)
		case len(call) > 3 && strings.Join(call[:3], " ") == "ray job submit":
			for _, join := range []func([]string) string{listToCommandLine, shlexJoin} {
				request, err := readSubmit(call[3:], join)
				if err != nil {
					return nil, fmt.Errorf("the command line is %q: %w", call, err)
				}
				told = append(told, request)
			}
		}
	}
	return told, nil
}

// readSubmit reads the arguments of "ray job submit".
func readSubmit(args []string, join func([]string) string) (map[string]any, error) {
	request := map[string]any{}
	for len(args) > 0 {
		option := args[0]
		args = args[1:]
		switch option {
		case "--no-wait":
			continue
		case "--":
			request["entrypoint"] = join(args)
			return request, nil
		}
		if len(args) == 0 {
			return nil, fmt.Errorf("option %s has no value", option)
		}
		value := args[0]
		args = args[1:]
		key := strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(option, "--"), "-json"), "-", "_")
		switch option {
		case "--address":
		case "--submission-id":
			request[key] = value
		case "--entrypoint-num-cpus", "--entrypoint-num-gpus":
			number, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return nil, err
			}
			request[key] = number
		case "--runtime-env-json", "--metadata-json", "--entrypoint-resources":
			var decoded any
			if err := json.Unmarshal([]byte(value), &decoded); err != nil {
				return nil, err
			}
			request[key] = decoded
		default:
			return nil, fmt.Errorf("there is no option %s", option)
		}
	}
	return nil, fmt.Errorf("there is no entrypoint")
}

// listToCommandLine joins words as Python's subprocess.list2cmdline does.
func listToCommandLine(words []string) string {
	var out strings.Builder
	for i, word := range words {
		if i > 0 {
			out.WriteByte(' ')
		}
		quoted := word == "" || strings.ContainsAny(word, " \t")
		if quoted {
			out.WriteByte('"')
		}
		backslashes := 0
		for _, c := range []byte(word) {
			switch c {
			case '\\':
				backslashes++
				continue
			case '"':
				out.WriteString(strings.Repeat(`\`, 2*backslashes) + `\"`)
			default:
				out.WriteString(strings.Repeat(`\`, backslashes))
				out.WriteByte(c)
			}
			backslashes = 0
		}
		out.WriteString(strings.Repeat(`\`, backslashes))
		if quoted {
			out.WriteString(strings.Repeat(`\`, backslashes) + `"`)
		}
	}
	return out.String()
}

// shlexJoin joins words as Python's shlex.join does.
func shlexJoin(words []string) string {
	safe := regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = word
		if !safe.MatchString(word) {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'"'"'`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
