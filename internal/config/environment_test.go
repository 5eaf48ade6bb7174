package config

import (
	"strings"
	"testing"
	"time"
)

func TestParseEnvironment(t *testing.T) {
	cases := map[string]struct {
		env  map[string]string
		want func(*Environment)
		// wantWarnings are pieces, one for each expected warning.
		wantWarnings []string
	}{
		"given switches that are on by default, false in any case turns them off": {
			env: map[string]string{
				"ENABLE_INIT_CONTAINER_INJECTION": "FALSE", "ENABLE_PROBES_INJECTION": "false",
				"ENABLE_GCS_FT_REDIS_CLEANUP": "False", "ENABLE_ZERO_DOWNTIME": "fAlse",
			},
			want: func(e *Environment) {
				e.InjectInitContainer, e.InjectProbes, e.GCSFTRedisCleanup, e.ZeroDowntime = false, false, false, false
			},
		},
		"given switches that are off by default, true in any case turns them on": {
			env: map[string]string{
				"ENABLE_RANDOM_POD_DELETE": "TRUE", "ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE": "true",
				"ENABLE_DETERMINISTIC_HEAD_POD_NAME": "True", "ENABLE_LOGIN_SHELL": "true",
				"USE_INGRESS_ON_OPENSHIFT": "true", "DELETE_RAYJOB_CR_AFTER_JOB_FINISHES": "true",
			},
			want: func(e *Environment) {
				e.RandomPodDelete, e.HeadClusterIPService, e.DeterministicHeadPodName = true, true, true
				e.LoginShell, e.IngressOnOpenShift, e.DeleteRayJobAfterFinish = true, true, true
			},
		},
		"given other words, the defaults stay and a warning tells": {
			env: map[string]string{"ENABLE_PROBES_INJECTION": "0", "ENABLE_LOGIN_SHELL": "1"},
			want: func(*Environment) {
			},
			wantWarnings: []string{
				`ENABLE_PROBES_INJECTION: "0" is not true or false; true is used`,
				`ENABLE_LOGIN_SHELL: "1" is not true or false; false is used`,
			},
		},
		"given another domain and other times, they count": {
			env: map[string]string{
				"CLUSTER_DOMAIN":                                           "corp.example",
				"RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV":                   "60",
				"RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS": "0",
				"RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS":                      "1",
			},
			want: func(e *Environment) {
				e.ClusterDomain = "corp.example"
				e.RayClusterResync = time.Minute
				e.RayJobTransitionGrace = 0
				e.RayJobStatusCheckTimeout = time.Second
			},
		},
		"given times that are no integers, the defaults stay and a warning tells": {
			env: map[string]string{
				"RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV":                   "5m",
				"RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS": "1.5",
				"RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS":                      "0",
			},
			want: func(*Environment) {},
			wantWarnings: []string{
				`RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV: "5m"`,
				`RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS: "1.5"`,
				`RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS: "0" is not a positive`,
			},
		},
		"given webhooks, a warning tells that there are none": {
			env:          map[string]string{"ENABLE_WEBHOOKS": "true"},
			want:         func(*Environment) {},
			wantWarnings: []string{"ENABLE_WEBHOOKS has no effect"},
		},
		"given webhooks in other letters, nothing happens": {
			env:  map[string]string{"ENABLE_WEBHOOKS": "True"},
			want: func(*Environment) {},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := defaultConfig().Environment
			tc.want(&want)
			got, err := parse(nil, tc.env, "")
			if err != nil {
				t.Fatalf("Parse: %v", err)
			}
			if got.Environment != want {
				t.Errorf("Environment\nwant %+v\ngot  %+v", want, got.Environment)
			}
			all := strings.Join(got.Warnings, "\n")
			if len(got.Warnings) != len(tc.wantWarnings) {
				t.Errorf("%d warnings, want %d:\n%s", len(got.Warnings), len(tc.wantWarnings), all)
			}
			for _, piece := range tc.wantWarnings {
				if !strings.Contains(all, piece) {
					t.Errorf("no warning contains %q:\n%s", piece, all)
				}
			}
		})
	}
}

func TestFeatureGates(t *testing.T) {
	cases := map[string]struct {
		value   string
		wantOn  []Gate
		wantOff []Gate
	}{
		"given nothing, beta is on and alpha is off": {
			wantOn: betaGates(), wantOff: alphaGates(),
		},
		"given blanks and an empty part, the rest is read": {
			value: " RayCronJob = true ,, RayJobDeletionPolicy=F", wantOn: []Gate{RayCronJob}, wantOff: []Gate{RayJobDeletionPolicy},
		},
		"given AllAlpha, every alpha gate is on": {
			value: "AllAlpha=true", wantOn: allGates(),
		},
		"given AllBeta off, every beta gate is off": {
			value: "AllBeta=false", wantOff: allGates(),
		},
		"given a named gate before AllAlpha, its own value counts": {
			value: "KubernetesWAS=false,AllAlpha=true", wantOn: []Gate{RayCronJob}, wantOff: []Gate{KubernetesWAS},
		},
		"given one gate twice, the last value counts": {
			value: "RayCronJob=true,RayCronJob=false", wantOff: []Gate{RayCronJob},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			gates, err := parseFeatureGates(tc.value)
			if err != nil {
				t.Fatalf("parseFeatureGates: %v", err)
			}
			for _, g := range tc.wantOn {
				if !gates.Enabled(g) {
					t.Errorf("%s is off, want on", g)
				}
			}
			for _, g := range tc.wantOff {
				if gates.Enabled(g) {
					t.Errorf("%s is on, want off", g)
				}
			}
		})
	}
}
