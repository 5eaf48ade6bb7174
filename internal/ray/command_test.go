package ray

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestStartCommand(t *testing.T) {
	tests := map[string]struct {
		role   Role
		params map[string]string
		want   string
	}{
		"given no parameters, only the role shows": {role: Head, want: "ray start --head"},
		"given several parameters, flags are sorted": {
			role: Worker, params: map[string]string{"b": "1", "a": "2", "B": "3"}, want: "ray start --B=3 --a=2 --b=1",
		},
		"given true and false in any case, the flag is a switch": {
			role: Worker, params: map[string]string{"a": "TRUE", "b": "False", "c": "true "}, want: "ray start --a --c=true",
		},
		"given one of the three flags with a value, it keeps it": {
			role:   Worker,
			params: map[string]string{"log-color": "false", "include-dashboard": "True", "include-log-monitor": "false"},
			want:   "ray start --include-dashboard=True --include-log-monitor=false --log-color=false",
		},
		"given an empty value, the flag is there": {role: Worker, params: map[string]string{"a": ""}, want: "ray start --a="},
		"given a variable for a password, it is expanded in the container": {
			role: Head, params: map[string]string{"redis-password": "$REDIS_PASSWORD"}, want: "ray start --head --redis-password=$REDIS_PASSWORD",
		},
		"given a name that is no name of a flag, it stays one word": {
			role: Worker, params: map[string]string{"x; canary $(y)": "1"}, want: "ray start --'x; canary $$(y)'=1",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := StartCommand(test.role, test.params); got != test.want {
				t.Errorf("command is %q, want %q", got, test.want)
			}
		})
	}
}

func TestSetCommand(t *testing.T) {
	const start, limit = "ray start --block", "ulimit -n ${RAY_START_ULIMIT_OPEN_FILES:-65536}; "
	wrapper := []string{"/bin/bash", "-c", "--"}
	tests := map[string]struct {
		container corev1.Container
		shell     Shell
		own       OwnCommand
		want      corev1.Container
	}{
		"given nothing, Ray runs in a shell": {want: corev1.Container{Command: wrapper, Args: []string{limit + start}}},
		"given a login shell, it is one": {
			shell: Shell{Login: true},
			want:  corev1.Container{Command: []string{"/bin/bash", "-cl", "--"}, Args: []string{limit + start}},
		},
		"given words of the user, they run first and lose their quoting": {
			container: corev1.Container{Command: []string{"bash", "-c"}, Args: []string{"prep; go"}},
			want:      corev1.Container{Command: wrapper, Args: []string{"bash -c prep; go && " + limit + start}},
		},
		"given ray start in one word, nothing is touched": {
			container: corev1.Container{Args: []string{"echo ray start"}},
			want:      corev1.Container{Args: []string{"echo ray start"}},
		},
		"given ray start in two words, they run first": {
			container: corev1.Container{Command: []string{"ray", "start"}},
			want:      corev1.Container{Command: wrapper, Args: []string{"ray start && " + limit + start}},
		},
		"given the variable with the start command, it does not count as Ray": {
			container: corev1.Container{Args: []string{"$KUBERAY_GEN_RAY_START_CMD"}},
			want:      corev1.Container{Command: wrapper, Args: []string{"$KUBERAY_GEN_RAY_START_CMD && " + limit + start}},
		},
		"given words that must succeed, Ray starts only then": {
			container: corev1.Container{Args: []string{"prep"}}, own: MustSucceed,
			want: corev1.Container{Command: wrapper, Args: []string{"prep && { " + limit + start + "; }"}},
		},
		"given nothing that must succeed, Ray runs": {
			own: MustSucceed, want: corev1.Container{Command: wrapper, Args: []string{limit + start}},
		},
		"given overwrite, nothing is touched": {
			container: corev1.Container{Command: []string{"own"}}, own: IsAll, want: corev1.Container{Command: []string{"own"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			SetCommand(&test.container, start, test.shell, test.own)
			if diff := cmp.Diff(test.want, test.container); diff != "" {
				t.Errorf("container (-want +got):\n%s", diff)
			}
		})
	}
}

// The whole line of a container runs, not only its parts.
func TestLineOfAContainerRunsRay(t *testing.T) {
	shell := newContainer(t, map[string]string{"RAY_START_ULIMIT_OPEN_FILES": "64", "PASSWORD": "a;b"})
	node := Node{
		Role:    Worker,
		Cluster: Cluster{HeadHost: "head.ml.svc", GCSPort: "6379"},
		Params:  map[string]string{"resources": `"{\"Custom\": 2}"`, "temp-dir": "/my dir", "redis-password": "$PASSWORD"},
		Labels:  map[string]string{"zone": "z1"},
	}
	var c corev1.Container
	SetCommand(&c, StartCommand(Worker, node.StartParams(&c)), Shell{}, RunsFirst)
	got := shell.run(c.Args[0])
	want := [][]string{{
		"start", "--address=head.ml.svc:6379", "--block", "--dashboard-agent-listen-port=52365", "--labels=zone=z1",
		"--metrics-export-port=8080", "--redis-password=a;b", `--resources={"Custom": 2}`, "--temp-dir=/my dir",
	}}
	if got.err != nil || got.stderr != "" || got.commands != 2 {
		t.Errorf("%d commands, stderr %q, error %v; want the limit and Ray", got.commands, got.stderr, got.err)
	}
	if diff := cmp.Diff(want, got.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestWaitForGCS(t *testing.T) {
	tests := map[string]struct {
		address string
		want    string
	}{
		"given no address, it waits for the head":         {want: "head.ml.svc:6380"},
		"given the worker's own address, it waits there":  {address: "$ADDRESS", want: "10.0.0.1:7000"},
		"given an address with shell text, it is literal": {address: "h:1; canary --x", want: "h:1; canary --x"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			shell := newContainer(t, map[string]string{"ADDRESS": "10.0.0.1:7000"})
			shell.failFirst(t, 2)
			node := Node{Role: Worker, Cluster: Cluster{HeadHost: "head.ml.svc", GCSPort: "6380"}}
			if test.address != "" {
				node.Params = map[string]string{"address": test.address}
			}
			// Everything that Ray prints is shown, as it is after two minutes.
			script := strings.Replace(node.WaitForGCS(&corev1.Container{}, Shell{}).Args[0], "-lt 120", "-lt 0", 1)
			got := shell.run(script)
			call := []string{"health-check", "--address", test.want}
			if diff := cmp.Diff([][]string{call, call, call}, got.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if got.err != nil || got.stderr != "" {
				t.Errorf("stderr is %q, error %v", got.stderr, got.err)
			}
			for _, line := range []string{"printed by Ray", "Waiting for Ray's GCS at " + test.want, "The GCS at " + test.want + " answers after"} {
				if !strings.Contains(got.stdout, line) {
					t.Errorf("output %q does not say %q", got.stdout, line)
				}
			}
		})
	}
}

func TestWaitForGCSHidesWhatRayPrintsAtFirst(t *testing.T) {
	shell := newContainer(t, nil)
	shell.failFirst(t, 2)
	node := Node{Role: Worker, Cluster: Cluster{HeadHost: "head.ml.svc", GCSPort: "6379"}}
	got := shell.run(node.WaitForGCS(&corev1.Container{}, Shell{}).Args[0])
	if got.err != nil || strings.Contains(got.stdout, "printed by Ray") || strings.Count(got.stdout, "does not answer yet") != 2 {
		t.Errorf("output is %q, error %v; want two lines on the wait and nothing of Ray", got.stdout, got.err)
	}
}
