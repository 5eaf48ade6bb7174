package rayjob

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
)

// The parts of scripts that do not differ from case to case.
const (
	exampleAddress = "http://train-bcd4f-head-svc.ml.svc.cluster.local:8265"
	exampleMark    = `\"heliostat.io/attempt\":\"1\",\"heliostat.io/rayjob-uid\":\"job-uid\"`
)

// example is the RayJob whose script is written out in the description of the interface.
func example(edits ...func(*rayv1.RayJob)) *rayv1.RayJob {
	s := given(rayv1.JobDeploymentStatusRunning, cluster(rayv1.ClusterStateReady))
	s.Job.Status.Submission = nil
	s.Job.Spec.Metadata = map[string]string{"team": "a"}
	s.Job.Spec.EntrypointNumCpus = 1
	s.Job.Status.Attempt = 1
	for _, edit := range edits {
		edit(s.Job)
	}
	return s.Job
}

func TestScriptOfTheSubmitter(t *testing.T) {
	wait := "until python -c '" + pythonHealthy + "' " + exampleAddress + " >/dev/null 2>&1 ; do " +
		"if [ $SECONDS -ge 300 ] ; then echo 'The Ray dashboard at " + exampleAddress + " did not become healthy within 300 seconds.' >&2 ; exit 1 ; fi ; " +
		"echo 'Waiting for the Ray dashboard at " + exampleAddress + " ...' ; sleep 2 ; done ; "
	guard := "if ! ray job status --address " + exampleAddress + " train-x7k2m >/dev/null 2>&1 ; then "
	submit := "ray job submit --address " + exampleAddress + " --no-wait "
	metadata := `--metadata-json "{` + exampleMark + `,\"team\":\"a\"}" --submission-id train-x7k2m `
	follow := " ; fi ; " + followed(exampleAddress, "train-x7k2m")
	for name, tc := range map[string]struct {
		edit func(*rayv1.RayJob)
		want string
	}{
		"given the example": {
			edit: func(*rayv1.RayJob) {},
			want: wait + guard + submit + metadata + "--entrypoint-num-cpus 1.000000 -- python main.py" + follow,
		},
		"given everything that can be reserved": {
			edit: func(j *rayv1.RayJob) {
				j.Spec.EntrypointNumGpus, j.Spec.EntrypointResources = 0.5, `{"TPU": 4}`
			},
			want: wait + guard + submit + metadata + `--entrypoint-num-cpus 1.000000 --entrypoint-num-gpus 0.500000 ` +
				`--entrypoint-resources "{\"TPU\": 4}" -- python main.py` + follow,
		},
		"given a runtime environment, nothing in it is expanded": {
			edit: func(j *rayv1.RayJob) { j.Spec.RuntimeEnvYAML = "env_vars:\n  HERE: \"$HOME `id` \\\\ ü\"\n" },
			want: wait + guard + submit + `--runtime-env-json "{\"env_vars\":{\"HERE\":\"\$HOME \` + "`id\\`" + ` \\\\ \\u00fc\"}}" ` +
				metadata + "--entrypoint-num-cpus 1.000000 -- python main.py" + follow,
		},
		"given the life of the head, only that one is given the job": {
			edit: func(j *rayv1.RayJob) { j.Status.Submission = &rayv1.RayJobSubmission{SessionName: "session_1"} },
			want: wait + guard + "python -c '" + pythonSameHead + "' " + exampleAddress + " session_1 ; " +
				submit + metadata + "--entrypoint-num-cpus 1.000000 -- python main.py" + follow,
		},
		"given what Ray's command line would change, Ray's client carries it": {
			edit: func(j *rayv1.RayJob) {
				j.Spec.Entrypoint, j.Spec.RuntimeEnvYAML = "echo 'ü' && python main.py\n", "pip: [a]"
			},
			want: wait + guard + "python -c '" + pythonSubmit + "' " + exampleAddress +
				` '{"entrypoint":"echo '\''\u00fc'\'' && python main.py\n","submission_id":"train-x7k2m","runtime_env":{"pip":["a"]},` +
				`"metadata":{"heliostat.io/attempt":"1","heliostat.io/rayjob-uid":"job-uid","team":"a"},"entrypoint_num_cpus":1}'` + follow,
		},
		"given an id that looks like an option": {
			edit: func(j *rayv1.RayJob) { j.Status.JobId = "-x;y" },
			want: wait + "if ! ray job status --address " + exampleAddress + " -- '-x;y' >/dev/null 2>&1 ; then " + submit +
				strings.ReplaceAll(metadata, "train-x7k2m", "'-x;y'") + "--entrypoint-num-cpus 1.000000 -- python main.py" +
				" ; fi ; " + followed(exampleAddress, "-- '-x;y'"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := submitScript(example(tc.edit))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("script (-want +got):\n%s", d)
			}
		})
	}
}

// followed is how the log of a job is followed, again and again while nobody answers.
func followed(address, id string) string {
	return "tries=1 ; until ray job logs --address " + address + " --follow " + id +
		" ; do if [ $tries -ge 5 ] ; then exit 1 ; fi ; tries=$((tries+1)) ; sleep 2 ; done"
}

func TestScriptOfTheSidecar(t *testing.T) {
	wait := "until python -c '" + pythonHealthy + "' http://localhost:8265 >/dev/null 2>&1 ; do " +
		"if [ $SECONDS -ge 300 ] ; then echo 'The Ray dashboard at http://localhost:8265 did not become healthy within 300 seconds.' >&2 ; exit 1 ; fi ; " +
		"echo 'Waiting for the Ray dashboard at http://localhost:8265 ...' ; sleep 2 ; done ; "
	wait += "until [ -s /var/run/heliostat.io/session ] ; do echo 'Waiting for the operator to record which head takes the job ...' ; sleep 2 ; done ; " +
		"python -c '" + pythonSameHead + `' http://127.0.0.1:8265 "$(cat /var/run/heliostat.io/session)" ; `
	verdict := " ; python -c '" + pythonVerdict + "' http://127.0.0.1:8265 train-x7k2m"
	for name, tc := range map[string]struct{ entrypoint, want string }{
		"given plain words": {
			entrypoint: "python main.py",
			want: wait + `ray job submit --address http://127.0.0.1:8265 --metadata-json "{` + exampleMark + `,\"team\":\"a\"}" ` +
				"--submission-id train-x7k2m --entrypoint-num-cpus 1.000000 -- python main.py" + verdict,
		},
		"given more than plain words": {
			entrypoint: "a && b",
			want: wait + "python -c '" + pythonSubmit + `' http://127.0.0.1:8265 '{"entrypoint":"a && b","submission_id":"train-x7k2m",` +
				`"metadata":{"heliostat.io/attempt":"1","heliostat.io/rayjob-uid":"job-uid","team":"a"},"entrypoint_num_cpus":1}'` +
				" ; " + followed("http://127.0.0.1:8265", "train-x7k2m") + verdict,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := sidecarScript(example(func(j *rayv1.RayJob) { j.Spec.Entrypoint = tc.entrypoint }), 8265)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("script (-want +got):\n%s", d)
			}
		})
	}
}

func TestScriptThatCannotBeMade(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*rayv1.RayJob)
		want string
	}{
		"given resources that are no JSON": {
			edit: func(j *rayv1.RayJob) { j.Spec.EntrypointResources = "TPU=4" },
			want: "spec.entrypointResources must be a JSON object of names to numbers",
		},
		"given resources that are no numbers": {
			edit: func(j *rayv1.RayJob) { j.Spec.EntrypointResources = `{"TPU": "4"}` },
			want: "spec.entrypointResources must be a JSON object of names to numbers",
		},
		"given a runtime environment that is a list": {
			edit: func(j *rayv1.RayJob) { j.Spec.RuntimeEnvYAML = "- a" },
			want: "spec.runtimeEnvYAML must be a YAML mapping",
		},
		"given more than Linux takes": {
			edit: func(j *rayv1.RayJob) { j.Spec.Entrypoint = strings.Repeat("x", 128<<10) },
			want: "use spec.submissionMode HTTPMode",
		},
	} {
		t.Run(name, func(t *testing.T) {
			job := example(tc.edit)
			_, err := submitScript(job)
			_, inSidecar := sidecarScript(job, 8265)
			for _, err := range []error{err, inSidecar} {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("error is %v, want one that says %q", err, tc.want)
				}
			}
		})
	}
}

func TestContainerThatRunsAScript(t *testing.T) {
	for name, tc := range map[string]struct {
		settings Settings
		want     []string
	}{
		"given nothing special": {want: []string{"/bin/bash", "-ce", "--"}},
		"given login shells":    {settings: Settings{LoginShell: true}, want: []string{"/bin/bash", "-cel", "--"}},
	} {
		t.Run(name, func(t *testing.T) {
			container := corev1.Container{}
			runScript(&container, "echo $(HOME) $$ $", tc.settings)
			if d := cmp.Diff(tc.want, container.Command); d != "" {
				t.Errorf("command (-want +got):\n%s", d)
			}
			if d := cmp.Diff([]string{"echo $$(HOME) $$$$ $$"}, container.Args); d != "" {
				t.Errorf("arguments (-want +got):\n%s", d)
			}
		})
	}
}
