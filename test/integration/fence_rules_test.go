package integration

import (
	"fmt"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	heliostatv1alpha1 "github.com/heliostat-io/heliostat/api/heliostat/v1alpha1"
	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/leadership"
	"github.com/heliostat-io/heliostat/test/harness"
)

// madeBy returns what the operator made in the namespace: all that has a controller of kind RayCluster or RayJob.
func madeBy(t *testing.T, c client.Client, namespace string) []client.Object {
	t.Helper()
	var made []client.Object
	for _, list := range []client.ObjectList{
		&corev1.PodList{}, &corev1.ServiceList{}, &corev1.SecretList{}, &corev1.ServiceAccountList{}, &batchv1.JobList{},
		&networkingv1.IngressList{}, &policyv1.PodDisruptionBudgetList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &rayv1.RayClusterList{},
	} {
		if err := c.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			object := item.(client.Object)
			owner := metav1.GetControllerOf(object)
			if owner != nil && slices.Contains([]string{rayv1.KindRayCluster, rayv1.KindRayJob}, owner.Kind) {
				made = append(made, object)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return made
}

// allIsFenced makes one of everything, and then tries to change and to delete it in the name of a Pod that is not the
// holder, and of no Pod at all.
func allIsFenced(t *testing.T, s stage) {
	g := NewWithT(t)
	p := s.pair(t, true)
	cluster := harness.NewCluster(p.Namespace, "demo", everything, func(c *rayv1.RayCluster) {
		multi := harness.WorkerGroup("multi", 1)
		multi.NumOfHosts = 2
		c.Spec.WorkerGroupSpecs = append(c.Spec.WorkerGroupSpecs, multi)
	})
	job := harness.NewJob(p.Namespace, rayv1.K8sJobMode)
	g.Expect(p.Create(t.Context(), cluster)).To(Succeed())
	g.Expect(p.Create(t.Context(), job)).To(Succeed())
	p.BecomesReady(t, cluster)
	g.Expect(p.As(t, p.first.Pod).Create(t.Context(), submitterOf(job))).To(Succeed(), "the leader may make a Job")
	kinds := func() map[string]bool {
		p.Kubelet(t, p.Namespace)
		found := map[string]bool{}
		for _, object := range madeBy(t, p, p.Namespace) {
			found[fmt.Sprintf("%T", object)] = true
		}
		return found
	}
	g.Eventually(kinds).Should(HaveLen(10), "one of every kind")

	standby, nobody := p.As(t, p.second.Pod), p.As(t, nil)
	for _, object := range append(madeBy(t, p, p.Namespace), cluster, job) {
		what := fmt.Sprintf("%T %s", object, object.GetName())
		for who, as := range map[string]client.Client{"the standby": standby, "nobody": nobody} {
			err := as.Delete(t.Context(), object.DeepCopyObject().(client.Object), client.DryRunAll)
			g.Expect(leadership.Refused(err)).To(BeTrue(), "%s may delete %s: %v", who, what, err)
			if _, isJob := object.(*batchv1.Job); isJob {
				continue // the operator has no right to change it
			}
			if _, isSecret := object.(*corev1.Secret); isSecret {
				continue
			}
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"a":"b"}}}`))
			err = as.Patch(t.Context(), object.DeepCopyObject().(client.Object), patch, client.DryRunAll)
			g.Expect(leadership.Refused(err)).To(BeTrue(), "%s may patch %s: %v", who, what, err)
			kind, err := p.GroupVersionKindFor(object)
			g.Expect(err).ToNot(HaveOccurred())
			apply := client.RawPatch(types.ApplyPatchType, fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"annotations":{"a":"b"}}}`,
				kind.GroupVersion().String(), kind.Kind, object.GetName()))
			err = as.Patch(t.Context(), object.DeepCopyObject().(client.Object), apply, client.FieldOwner("x"), client.ForceOwnership, client.DryRunAll)
			g.Expect(leadership.Refused(err)).To(BeTrue(), "%s may apply %s: %v", who, what, err)
		}
	}
	for _, object := range []client.Object{cluster, job} {
		status := client.RawPatch(types.MergePatchType, []byte(`{"status":{"message":"x"}}`))
		err := standby.Status().Patch(t.Context(), object.DeepCopyObject().(client.Object), status, client.DryRunAll)
		g.Expect(leadership.Refused(err)).To(BeTrue(), "the status of %s: %v", object.GetName(), err)
	}
	other := harness.NewCluster(p.Namespace, "other")
	g.Expect(leadership.Refused(standby.Create(t.Context(), other))).To(BeTrue(), "the standby may make a RayCluster")
	g.Expect(p.Create(t.Context(), other)).To(Succeed(), "the fence is in the way of other users")
	s.judge(t, p, cluster)
}

// submitterOf is a Job with what the fence knows a submitter by. The operator makes it when a dashboard answers, and there is
// none here; that it has these labels is shown by case RJ-005.
func submitterOf(job *rayv1.RayJob) *batchv1.Job {
	template := harness.PodTemplate("ray-job-submitter")
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name,
			Labels:          map[string]string{rayv1.LabelCreatedBy: rayv1.CreatedByOperator, rayv1.LabelOriginatedFromName: job.Name, rayv1.LabelOriginatedFromKind: "RayJob"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, rayv1.GroupVersion.WithKind(rayv1.KindRayJob))}},
		Spec: batchv1.JobSpec{Template: template},
	}
}

func holderProtectsItself(t *testing.T, s stage) {
	g := NewWithT(t)
	p := s.pair(t, true)
	leader, standby, nobody := p.As(t, p.first.Pod), p.As(t, p.second.Pod), p.As(t, nil)
	holder := p.Holder(t)
	with := func(term int64, pod string) *heliostatv1alpha1.Holder {
		changed := holder.DeepCopy()
		changed.Spec.Term, changed.Spec.PodUID = term, pod
		return changed
	}
	next := holder.Spec.Term + 1
	g.Expect(standby.Update(t.Context(), with(next, p.second.UID()), client.DryRunAll)).To(Succeed(), "a Pod can name itself")
	for what, err := range map[string]error{
		"the standby names the leader": standby.Update(t.Context(), with(next, p.first.UID()), client.DryRunAll),
		"the leader names the standby": leader.Update(t.Context(), with(next, p.second.UID()), client.DryRunAll),
		"nobody names itself":          nobody.Update(t.Context(), with(next, "nobody"), client.DryRunAll),
	} {
		g.Expect(leadership.Refused(err)).To(BeTrue(), "%s: %v", what, err)
	}
	for what, term := range map[string]int64{"the same term": holder.Spec.Term, "an earlier term": holder.Spec.Term - 1} {
		g.Expect(apierrors.IsInvalid(standby.Update(t.Context(), with(term, p.second.UID()), client.DryRunAll))).To(BeTrue(), what)
		g.Expect(apierrors.IsInvalid(p.Update(t.Context(), with(term, p.second.UID()), client.DryRunAll))).To(BeTrue(), "%s, even for an administrator", what)
	}
	foreign := with(1, p.second.UID())
	foreign.ObjectMeta = metav1.ObjectMeta{Name: "other-" + p.Namespace}
	g.Expect(leadership.Refused(standby.Create(t.Context(), foreign, client.DryRunAll))).To(BeTrue(), "the Holder of another installation")

	status := p.Holder(t)
	status.Status.Term = status.Spec.Term
	g.Expect(leader.Status().Update(t.Context(), status.DeepCopy(), client.DryRunAll)).To(Succeed())
	g.Expect(leadership.Refused(standby.Status().Update(t.Context(), status.DeepCopy(), client.DryRunAll))).To(BeTrue())
	status.Status.Term--
	g.Expect(leadership.Refused(leader.Status().Update(t.Context(), status.DeepCopy(), client.DryRunAll))).To(BeTrue(), "the status of an earlier term")
}
