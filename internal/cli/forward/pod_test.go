package forward_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-io/heliostat/internal/cli/clitest"
	"github.com/heliostat-io/heliostat/internal/cli/forward"
)

func service(selector map[string]string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "svc"},
		Spec: corev1.ServiceSpec{Selector: selector, Ports: []corev1.ServicePort{
			{Port: 8265, TargetPort: intstr.FromInt32(9265)}, {Port: 8000, TargetPort: intstr.FromString("serve")}, {Port: 10001},
		}},
	}
}

func pod(name string, age time.Duration, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, Labels: map[string]string{"a": "b"},
			CreationTimestamp: metav1.NewTime(clitest.Now().Add(-age))},
		Spec:   corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "serve", ContainerPort: 8001}}}}},
		Status: corev1.PodStatus{Phase: phase},
	}
}

func TestThePodBehindAService(t *testing.T) {
	selects := map[string]string{"a": "b"}
	cases := map[string]struct {
		objects []client.Object
		want    string
		wantErr string
	}{
		"given one runs, then it is taken": {
			objects: []client.Object{service(selects), pod("old", time.Hour, corev1.PodFailed), pod("new", time.Minute, corev1.PodRunning)},
			want:    "new",
		},
		"given two run, then the newest is taken": {
			objects: []client.Object{service(selects), pod("old", time.Hour, corev1.PodRunning), pod("new", time.Minute, corev1.PodRunning)},
			want:    "new",
		},
		"given none runs, then it is said what they do": {
			objects: []client.Object{service(selects), pod("only", time.Minute, corev1.PodPending)}, wantErr: "only is pending",
		},
		"given there is none, then that is said":               {objects: []client.Object{service(selects)}, wantErr: "ml/svc has no Pod"},
		"given the Service selects nothing, then that is said": {objects: []client.Object{service(nil)}, wantErr: "selects no Pods"},
		"given no Service, then that is said":                  {wantErr: `no Service "svc" in namespace "ml"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, got, err := forward.PodOf(t.Context(), clitest.New(tc.objects...), types.NamespacedName{Namespace: "ml", Name: "svc"})
			switch {
			case tc.wantErr != "":
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("got error %v, want %q", err, tc.wantErr)
				}
			case err != nil:
				t.Error(err)
			case got.Name != tc.want:
				t.Errorf("got %s, want %s", got.Name, tc.want)
			}
		})
	}
}

func TestTheTargetPortOfAService(t *testing.T) {
	headless := service(nil)
	headless.Spec.ClusterIP = corev1.ClusterIPNone
	cases := map[string]struct {
		service *corev1.Service
		port    int32
		want    int32
	}{
		"given a number, then it is taken":                         {service(nil), 8265, 9265},
		"given a name, then that of the container is taken":        {service(nil), 8000, 8001},
		"given none, then it is the port itself":                   {service(nil), 10001, 10001},
		"given a port that the Service has not, then it is itself": {service(nil), 6379, 6379},
		"given a headless Service, then it is the port itself":     {headless, 8265, 8265},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := forward.TargetPort(tc.service, pod("p", 0, corev1.PodRunning), tc.port); got != tc.want {
				t.Errorf("TargetPort = %d, want %d", got, tc.want)
			}
		})
	}
}

func TestAPortIsFoundByItsName(t *testing.T) {
	service := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "client", Port: 1}, {Name: "dashboard", Port: 2}}}}
	if named, other := forward.ServicePort(service, "dashboard", 8265), forward.ServicePort(service, "serve", 8000); named != 2 || other != 8000 {
		t.Errorf("ports %d and %d", named, other)
	}
}
