package head_test

import (
	"cmp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/clitest"
	"github.com/heliostat-io/heliostat/internal/cli/head"
)

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ml", Name: name} }

func rayService(active, pending string) *rayv1.RayService {
	s := &rayv1.RayService{ObjectMeta: named("shop")}
	s.Status.ActiveServiceStatus.RayClusterName, s.Status.PendingServiceStatus.RayClusterName = active, pending
	return s
}

func TestTheClusterBehindAnObject(t *testing.T) {
	cases := map[string]struct {
		object  client.Object
		want    string
		wantErr string
	}{
		"given a RayCluster, then itself":                        {&rayv1.RayCluster{ObjectMeta: named("demo")}, "demo", ""},
		"given a RayJob, then the one in use":                    {&rayv1.RayJob{ObjectMeta: named("j"), Status: rayv1.RayJobStatus{RayClusterName: "j-x"}}, "j-x", ""},
		"given one that selects, then the selected one":          {&rayv1.RayJob{ObjectMeta: named("j"), Spec: rayv1.RayJobSpec{ClusterSelector: map[string]string{"ray.io/cluster": "shared"}}}, "shared", ""},
		"given one without, then that is said":                   {&rayv1.RayJob{ObjectMeta: named("j")}, "", "the RayJob ml/j has no RayCluster"},
		"given a RayService, then the one that serves":           {rayService("old", "new"), "old", ""},
		"given one that does not serve yet, then the coming one": {rayService("", "new"), "new", ""},
		"given one without any, then that is said":               {rayService("", ""), "", "the RayService ml/shop has no RayCluster yet"},
		"given a RayCronJob, then it is said that it has none":   {&rayv1.RayCronJob{ObjectMeta: named("c")}, "", "its RayJobs have"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := head.ClusterName(tc.object)
			if got != tc.want || (err != nil) != (tc.wantErr != "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("ClusterName = %q, %v", got, err)
			}
		})
	}
}

func TestAClusterThatIsNamedAndNotThereIsSaid(t *testing.T) {
	job := &rayv1.RayJob{ObjectMeta: named("j"), Status: rayv1.RayJobStatus{RayClusterName: "j-x"}}
	if _, err := head.Cluster(t.Context(), clitest.New(job), job); err == nil || !strings.Contains(err.Error(), `no RayCluster "j-x" in namespace "ml"`) {
		t.Errorf("Cluster returned %v", err)
	}
}

func TestTheHeadService(t *testing.T) {
	cluster := &rayv1.RayCluster{ObjectMeta: named("demo")}
	if got := head.Service(cluster).String(); got != "ml/demo-head-svc" {
		t.Errorf("before the status says it, it is %s", got)
	}
	cluster.Status.Head.ServiceName = "other"
	if got := head.Service(cluster).String(); got != "ml/other" {
		t.Errorf("when the status says it, it is %s", got)
	}
}

func TestTheToken(t *testing.T) {
	secret := func(name, key string) client.Object {
		return &corev1.Secret{ObjectMeta: named(name), Data: map[string][]byte{key: []byte("of " + name)}}
	}
	// Of its last 50 characters the first is a digit.
	long := "training" + strings.Repeat("8", 50)
	cases := map[string]struct {
		name    string
		options *rayv1.AuthOptions
		secrets []client.Object
		want    string
		wantErr string
	}{
		"given nobody asks, then none":                         {},
		"given it is switched off, then none":                  {options: &rayv1.AuthOptions{Mode: rayv1.AuthModeDisabled}},
		"given it is the operator's, then it is in its Secret": {options: &rayv1.AuthOptions{Mode: rayv1.AuthModeToken}, secrets: []client.Object{secret("demo", "auth_token")}, want: "of demo"},
		"given a Secret of the user, then it is there": {
			options: &rayv1.AuthOptions{Mode: rayv1.AuthModeToken, SecretName: ptr.To("own")},
			secrets: []client.Object{secret("own", "auth_token"), secret("demo", "auth_token")}, want: "of own",
		},
		"given no Secret, then that is said": {options: &rayv1.AuthOptions{Mode: rayv1.AuthModeToken}, wantErr: `no Secret "demo"`},
		"given a Secret without it, then that is said": {
			options: &rayv1.AuthOptions{Mode: rayv1.AuthModeToken}, secrets: []client.Object{secret("demo", "token")}, wantErr: `no value under the key "auth_token"`,
		},
		"given Kubernetes checks tokens, then it is said how to get one": {options: &rayv1.AuthOptions{Mode: rayv1.AuthModeToken, EnableK8sTokenAuth: ptr.To(true)}, wantErr: "kubectl create token"},
		"given a long name and the Secret of another operator, then it is there": {
			name: long, options: &rayv1.AuthOptions{Mode: rayv1.AuthModeToken}, secrets: []client.Object{secret("r"+long[9:], "auth_token")}, want: "of r" + long[9:],
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cluster := &rayv1.RayCluster{ObjectMeta: named(cmp.Or(tc.name, "demo")), Spec: rayv1.RayClusterSpec{AuthOptions: tc.options}}
			got, err := head.Token(t.Context(), clitest.New(tc.secrets...), cluster)
			if got != tc.want || (err != nil) != (tc.wantErr != "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("Token = %q, %v", got, err)
			}
		})
	}
}
