package job

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/clitest"
)

// interactive is a file with a RayJob that can be used.
const interactive = `apiVersion: ray.io/v1
kind: RayJob
metadata: {name: from-file}
spec:
  submissionMode: InteractiveMode
  clusterSelector: {ray.io/cluster: shared}
`

// TestL63AWorkingDirectoryThatDoesNotExist is case L63 of spec/users.md: the real error was hidden.
func TestL63AWorkingDirectoryThatDoesNotExist(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	cases := map[string][]string{
		"given it is named by the flag":                       {"--name", "j", "--working-dir", gone},
		"given it is named by the runtime environment":        {"--name", "j", "--runtime-env", write(t, "env.yaml", "working_dir: "+gone)},
		"given it is named by the runtime environment's JSON": {"--name", "j", "--runtime-env-json", `{"working_dir": "` + gone + `"}`},
		"given it is named by the RayJob":                     {"-f", write(t, "job.yaml", interactive+"  runtimeEnvYAML: 'working_dir: "+gone+"'\n")},
	}
	for name, args := range cases {
		t.Run(name+", then the path is said, the exit code is not 0, and nothing was made", func(t *testing.T) {
			w := newWorld(t, newFakeRay(t, ""))
			code := w.submit(t, append(args, "--", "python", "main.py")...)
			if code == 0 {
				t.Error("the exit code is 0")
			}
			if want := "Error: the working directory " + gone + " does not exist\n"; w.ErrOut.String() != want {
				t.Errorf("printed %q, want %q", w.ErrOut, want)
			}
			if jobs := w.jobs(t); len(jobs) != 0 {
				t.Errorf("%d RayJobs were made", len(jobs))
			}
		})
	}
}

func TestNothingIsMadeWhenTheInputIsWrong(t *testing.T) {
	dir := sources(t)
	good := []string{"--name", "j", "--working-dir", dir}
	file := func(content string) []string {
		return []string{"-f", write(t, "job.yaml", content), "--working-dir", dir}
	}
	with := func(args ...string) []string { return append(args, good...) }
	cases := map[string]struct {
		args []string
		want string
	}{
		"given no name":                                 {[]string{"--working-dir", dir}, "--name"},
		"given no working directory":                    {[]string{"--name", "j"}, "needs a working directory"},
		"given a runtime environment that is not there": {with("--runtime-env", "/gone/env.yaml"), "/gone/env.yaml"},
		"given one that is no mapping":                  {with("--runtime-env", write(t, "env.yaml", "- a")), "not a mapping"},
		"given one with bad JSON":                       {with("--runtime-env-json", "{"), "--runtime-env-json"},
		"given two of them":                             {with("--runtime-env-json", "{}", "--runtime-env", "x"), "exclude each other"},
		"given excludes that are no list":               {with("--runtime-env-json", `{"excludes": "a"}`), "list of texts"},
		"given modules on this machine":                 {with("--runtime-env-json", `{"py_modules": ["./lib"]}`), "./lib"},
		"given requirements that are not there":         {with("--runtime-env-json", `{"pip": "/gone/req.txt"}`), "/gone/req.txt"},
		"given a conda environment that is not there":   {with("--runtime-env-json", `{"conda": "/gone/c.yaml"}`), "/gone/c.yaml"},
		"given metadata that is no JSON":                {with("--metadata-json", "x"), "--metadata-json"},
		"given metadata with numbers":                   {with("--metadata-json", `{"a": 1}`), "--metadata-json"},
		"given headers that are no JSON":                {with("--headers", "x"), "--headers"},
		"given resources that are no numbers":           {with("--entrypoint-resources", `{"a": "b"}`), "JSON object of numbers"},
		"given an address without a scheme":             {with("--address", "localhost:8265"), "--address"},
		"given certificates that are not there":         {with("--verify", "/gone/ca.pem"), "/gone/ca.pem"},
		"given a file without certificates":             {with("--verify", write(t, "ca.pem", "x")), "holds no certificates"},
		"given a quantity that is none":                 {with("--head-memory", "lots"), "--head-memory"},
		"given a negative quantity":                     {with("--worker-cpu", "-1"), "--worker-cpu"},
		"given an unknown style":                        {with("--log-style", "loud"), "--log-style"},
		"given an unknown colour":                       {with("--log-color", "blue"), "--log-color"},
		"given a negative number of workers":            {with("--worker-replicas", "-1"), "--worker-replicas"},
		"given a file that is not there":                {[]string{"-f", "/gone/job.yaml", "--working-dir", dir}, "/gone/job.yaml"},
		"given a file with an unknown field":            {file(interactive + "  entrypiont: x\n"), "entrypiont"},
		"given a file with another kind":                {file(strings.ReplaceAll(interactive, "RayJob", "RayCluster")), "RayCluster"},
		"given a file with another mode":                {file(strings.ReplaceAll(interactive, "InteractiveMode", "HTTPMode")), "InteractiveMode"},
		"given a file with retries":                     {file(interactive + "  backoffLimit: 1\n"), "backoffLimit"},
		"given a file with two objects":                 {file(interactive + "---\n" + interactive), "more than one object"},
		"given an empty file":                           {file("\n"), "is empty"},
		"given a file for another namespace":            {append(file(strings.ReplaceAll(interactive, "{name", "{namespace: ml, name")), "-n", "web"), `"ml"`},
		"given a file and a flag for the cluster":       {append(file(interactive), "--head-cpu", "4"), "--head-cpu"},
		"given a file and a dry run":                    {append(file(interactive), "--dry-run"), "--dry-run"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newFakeRay(t, ""))
			if code := w.Run(t, fastSubmit, append(tc.args, "--", "python", "main.py")...); code == 0 || !strings.Contains(w.ErrOut.String(), tc.want) {
				t.Errorf("exit code %d, printed %q, want %q", code, w.ErrOut, tc.want)
			}
			if jobs := w.jobs(t); len(jobs) != 0 {
				t.Errorf("%d RayJobs were made", len(jobs))
			}
		})
	}
	t.Run("given no command", func(t *testing.T) {
		w := newWorld(t, newFakeRay(t, ""))
		if code := w.submit(t, good...); code == 0 || !strings.Contains(w.ErrOut.String(), "no command to run") {
			t.Errorf("exit code %d, printed %q", code, w.ErrOut)
		}
	})
}

func TestADryRunPrintsTheRayJob(t *testing.T) {
	w := newWorld(t, newFakeRay(t, ""))
	code := w.submit(t, "--dry-run", "--name", "train", "--working-dir", sources(t), "--ray-version", "2.55.0", "--worker-replicas", "2",
		"--worker-gpu", "1", "--head-node-selectors", "pool=head", "--ttl-seconds-after-finished", "60", "--entrypoint-num-cpus", "0.1",
		"--metadata-json", `{"team": "a"}`, "--", "python", "main.py", "--name", "two words")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, w.ErrOut)
	}
	clitest.Golden(t, "dry-run.yaml", w.Out.String())
	if jobs := w.jobs(t); len(jobs) != 0 {
		t.Errorf("%d RayJobs were made", len(jobs))
	}
}

func TestTheWaysOfADryRun(t *testing.T) {
	cases := map[string]struct {
		flag      string
		wantTried []string
		wantCode  int
		want      string
	}{
		"given client, then no cluster is talked to":              {flag: "--dry-run=client", want: "name: train"},
		"given true, as in KubeRay's plugin, then it is the same": {flag: "--dry-run=true", want: "name: train"},
		"given server, then the API server is asked":              {flag: "--dry-run=server", wantTried: []string{metav1.DryRunAll}, want: "uid: uid-1"},
		"given another word, then that is refused":                {flag: "--dry-run=maybe", wantCode: 2, want: "none, client or server"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newFakeRay(t, ""))
			w.operate = func(context.Context, client.Client, *rayv1.RayJob) error { return nil }
			code := w.submit(t, tc.flag, "--name", "train", "--working-dir", sources(t), "--", "python", "main.py")
			if told := w.Out.String() + w.ErrOut.String(); code != tc.wantCode || !strings.Contains(told, tc.want) {
				t.Errorf("exit code %d: %s", code, told)
			}
			if diff := cmp.Diff(tc.wantTried, w.tried); diff != "" || len(w.jobs(t)) != 0 {
				t.Errorf("%d RayJobs; tried (-want +got):\n%s", len(w.jobs(t)), diff)
			}
		})
	}
}

func TestTheRuntimeEnvironmentHasNothingOfThisMachine(t *testing.T) {
	dir := sources(t)
	requirements := write(t, "requirements.txt", "# ours\nrequests==2\n\n  numpy\n")
	conda := write(t, "env.yaml", "dependencies: [pip]\n")
	cases := map[string]struct {
		flags     flags
		inJob     string
		fields    map[string]any
		directory string
		excludes  []string
	}{
		"given a URI, then it is kept, with its excludes": {
			flags:  flags{runtimeEnvJSON: `{"working_dir": "s3://b/x.zip", "excludes": ["a"]}`},
			fields: map[string]any{"working_dir": "s3://b/x.zip", "excludes": []any{"a"}}, excludes: []string{"a"},
		},
		"given a directory, then it is taken out to be uploaded": {
			flags:  flags{runtimeEnvJSON: `{"working_dir": "/elsewhere", "excludes": ["a"], "env_vars": {"A": "1"}}`, workingDir: dir},
			fields: map[string]any{"env_vars": map[string]any{"A": "1"}}, directory: dir, excludes: []string{"a"},
		},
		"given the RayJob has one and no flag does, then it is taken": {
			flags: flags{workingDir: dir}, inJob: "env_vars: {A: '1'}", directory: dir,
			fields: map[string]any{"env_vars": map[string]any{"A": "1"}},
		},
		"given requirements in a file, then their content is sent": {
			flags:  flags{workingDir: dir, runtimeEnv: write(t, "r.yaml", "pip: "+requirements)},
			fields: map[string]any{"pip": []string{"requests==2", "numpy"}}, directory: dir,
		},
		"given a conda environment in a file, then its content is sent": {
			flags:  flags{workingDir: dir, runtimeEnvJSON: `{"conda": "` + conda + `"}`},
			fields: map[string]any{"conda": map[string]any{"dependencies": []any{"pip"}}}, directory: dir,
		},
		"given the name of a conda environment, then it is kept": {
			flags:  flags{workingDir: dir, runtimeEnvJSON: `{"conda": "pytorch"}`},
			fields: map[string]any{"conda": "pytorch"}, directory: dir,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := environmentOf(&tc.flags, tc.inJob)
			if err != nil {
				t.Fatal(err)
			}
			want := environment{fields: tc.fields, directory: tc.directory, excludes: tc.excludes}
			if diff := cmp.Diff(want, *got, cmp.AllowUnexported(environment{})); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheCommandLine(t *testing.T) {
	cases := map[string]struct {
		args []string
		want string
	}{
		"given words, then they are joined":                               {[]string{"python", "main.py", "--lr=0.1"}, "python main.py --lr=0.1"},
		"given a word with blanks, then it is quoted":                     {[]string{"bash", "-c", "echo a && echo $B"}, `bash -c "echo a && echo $B"`},
		"given quotes in it, then they are kept":                          {[]string{"echo", `say "hi"`}, `echo "say \"hi\""`},
		"given a backslash before a quote, then both are kept":            {[]string{"echo", `say \"hi\"`}, `echo "say \\\"hi\\\""`},
		"given one before a quote of a word without blanks, then as well": {[]string{"echo", `\"`}, `echo \\\"`},
		"given one at the end of a quoted word, then the quote stays one": {[]string{"echo", `C:\my dir\`}, `echo "C:\my dir\\"`},
		"given an empty word, then it is kept":                            {[]string{"echo", ""}, `echo ""`},
		"given a single word, then it is the whole line":                  {[]string{"python main.py --a b"}, "python main.py --a b"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := commandLine(tc.args); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestWhatAClusterWaitsFor(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
	}
	cases := map[string]struct {
		status rayv1.RayClusterStatus
		want   string
	}{
		"given Pods in trouble, then the trouble is said": {
			rayv1.RayClusterStatus{Conditions: []metav1.Condition{
				condition(rayv1.ConditionReconciling, metav1.ConditionTrue, "PodsNotReady", "1 of 2 Pods is ready"),
				condition(rayv1.ConditionPodsHealthy, metav1.ConditionFalse, "ImagePullBackOff", "group gpu:\n no such image"),
			}}, "RayCluster c: ImagePullBackOff: group gpu: no such image",
		},
		"given a condition that says what is done, then that is said": {
			rayv1.RayClusterStatus{Conditions: []metav1.Condition{condition(rayv1.ConditionReconciling, metav1.ConditionTrue, "PodsNotReady", "1 of 2 Pods is ready")}},
			"RayCluster c: 1 of 2 Pods is ready",
		},
		"given only a reason, then that is said":   {rayv1.RayClusterStatus{Reason: "quota"}, "RayCluster c: quota"},
		"given nothing, then its Pods are counted": {rayv1.RayClusterStatus{}, "RayCluster c: it has no Pods yet"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, newFakeRay(t, ""))
			r := &run{env: w.Env, client: w.WithWatch}
			c := &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}, Status: tc.status}
			if got := r.awaitedOf(t.Context(), c); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
