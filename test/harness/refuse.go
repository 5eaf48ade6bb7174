package harness

import (
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// LimitPods lets the namespace have no more Pods than that, counted from now on. Admission keeps the count; there is no
// controller that would notice Pods which are gone.
func (c Cluster) LimitPods(t testing.TB, namespace string, most int) *corev1.ResourceQuota {
	t.Helper()
	hard := corev1.ResourceList{corev1.ResourcePods: resource.MustParse(strconv.Itoa(most))}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pods"},
		Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	if err := c.Create(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	// Without a controller nobody else writes this, and admission refuses everything until it is there.
	quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}
	if err := c.Status().Update(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	return quota
}

// TooManyCPUs is a limit that LimitCPUs refuses.
const TooManyCPUs = "8"

// LimitCPUs makes the API server refuse every Pod with a container of more than one CPU.
func (c Cluster) LimitCPUs(t testing.TB, namespace string) {
	t.Helper()
	limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cpus"}, Spec: corev1.LimitRangeSpec{
		Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}}
	if err := c.Create(t.Context(), limits); err != nil {
		t.Fatal(err)
	}
}

// AskFor gives the first container of a template resources, as requests and limits.
func AskFor(template *corev1.PodTemplateSpec, resources map[corev1.ResourceName]string) {
	list := corev1.ResourceList{}
	for name, amount := range resources {
		list[name] = resource.MustParse(amount)
	}
	template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
}

// Lift removes what makes the API server refuse something.
func (c Cluster) Lift(t testing.TB, limit client.Object) {
	t.Helper()
	if err := c.Delete(t.Context(), limit); err != nil {
		t.Fatal(err)
	}
}
