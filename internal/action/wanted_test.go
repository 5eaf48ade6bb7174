package action

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func wantedService() *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: "s", Labels: map[string]string{"a": "1"}},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"x": "y"},
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80}, {Name: "gcs", Port: 6379}},
		},
	}
}

// liveService is what an API server makes of the stamped one.
func liveService() *corev1.Service {
	live := Stamp(wantedService()).(*corev1.Service)
	live.TypeMeta = metav1.TypeMeta{}
	live.UID, live.ResourceVersion = "u", "7"
	live.Spec.Type, live.Spec.ClusterIP = corev1.ServiceTypeClusterIP, "10.0.0.1"
	for i := range live.Spec.Ports {
		live.Spec.Ports[i].Protocol = corev1.ProtocolTCP
		live.Spec.Ports[i].TargetPort = intstr.FromInt32(live.Spec.Ports[i].Port)
	}
	return live
}

func TestUpToDate(t *testing.T) {
	for name, tc := range map[string]struct {
		live   func(*corev1.Service)
		wanted func(*corev1.Service)
		want   bool
	}{
		"what the API server fills in makes no difference": {want: true},
		"labels of others make no difference":              {live: func(s *corev1.Service) { s.Labels["b"] = "2" }, want: true},
		"node ports make no difference":                    {live: func(s *corev1.Service) { s.Spec.Ports[0].NodePort = 30000 }, want: true},
		"the order of ports makes no difference": {
			live: func(s *corev1.Service) { s.Spec.Ports[0], s.Spec.Ports[1] = s.Spec.Ports[1], s.Spec.Ports[0] }, want: true},
		"a changed label does":    {live: func(s *corev1.Service) { s.Labels["a"] = "2" }},
		"a removed selector does": {live: func(s *corev1.Service) { s.Spec.Selector = nil }},
		"a changed port does":     {live: func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 }},
		"a port of others makes no difference": {want: true,
			live: func(s *corev1.Service) { s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "z", Port: 1}) }},
		"a missing port does":           {live: func(s *corev1.Service) { s.Spec.Ports = s.Spec.Ports[:1] }},
		"an object without a mark does": {live: func(s *corev1.Service) { s.Annotations = nil }},
		"a new wish does":               {wanted: func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort }},
		"a wish that is gone does":      {wanted: func(s *corev1.Service) { s.Labels = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			live, wanted := liveService(), wantedService()
			if tc.live != nil {
				tc.live(live)
			}
			if tc.wanted != nil {
				tc.wanted(wanted)
			}
			if got := UpToDate(live, Stamp(wanted)); got != tc.want {
				t.Errorf("up to date: %v, want %v", got, tc.want)
			}
		})
	}
}

func TestUpToDateComparesListsByPlaceWhereNothingHasAName(t *testing.T) {
	role := func(verbs ...string) client.Object {
		return Stamp(&rbacv1.Role{Rules: []rbacv1.PolicyRule{{Resources: []string{"pods"}, Verbs: verbs}}})
	}
	wanted := role("get", "list")
	if !UpToDate(wanted, wanted) {
		t.Error("equal rules differ")
	}
	live := wanted.DeepCopyObject().(*rbacv1.Role)
	live.Rules[0].Verbs = []string{"get", "watch"}
	if UpToDate(live, wanted) {
		t.Error("different rules are equal")
	}
}

func TestStampLeavesTheWantedObjectAlone(t *testing.T) {
	wanted := wantedService()
	wanted.Annotations = map[string]string{"a": "b"}
	if Stamp(wanted); len(wanted.Annotations) != 1 {
		t.Errorf("the wanted object has annotations %v", wanted.Annotations)
	}
}
