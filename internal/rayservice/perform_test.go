package rayservice

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/action"
)

// settle does what plans ask for until they ask for no more writes, and returns all that was asked for. What they send to
// Ray is not answered.
func settle(s *Snapshot) []string {
	var all []string
	for range 20 {
		decision := Plan(*s, settings(), now)
		writes := perform(s, decision)
		all = append(all, verbs(decision.Actions)...)
		if !writes {
			return all
		}
	}
	panic("plans find no end:\n" + strings.Join(all, "\n"))
}

// perform does in the snapshot what a plan asks for, and tells whether there was anything to do.
func perform(s *Snapshot, decision Decision) (writes bool) {
	if decision.Status != nil {
		s.Service = decision.Status.Object.DeepCopyObject().(*rayv1.RayService)
		writes = true
	}
	for _, a := range decision.Actions {
		switch a := a.(type) {
		case action.Create:
			s.write(a.Object)
		case action.Apply:
			s.write(a.Object)
		case action.Update:
			s.write(a.Object)
		case action.Delete:
			s.remove(a.Object)
		case action.Finalizers:
			s.Service.Finalizers = a.Want
		default:
			continue
		}
		writes = true
	}
	return writes
}

func (s *Snapshot) write(object action.Object) {
	switch object := object.(type) {
	case *rayv1.RayCluster:
		if c := s.cluster(object.Name); c != nil {
			c.Object = object.DeepCopy()
			return
		}
		stored := object.DeepCopy()
		stored.UID, stored.CreationTimestamp = types.UID(object.Name+"-uid"), metav1.NewTime(now)
		s.Clusters = append(s.Clusters, Cluster{Object: stored})
	case *corev1.Service:
		stored := object.DeepCopy()
		delete(stored.Annotations, rayv1.AnnotationApplied)
		stored.ResourceVersion = ""
		s.store(stored)
		if cluster := stored.Spec.Selector[rayv1.LabelCluster]; s.cluster(cluster) != nil && stored.Spec.Selector[rayv1.LabelServe] != "" {
			leadsTo(stored.Name, cluster)(s)
		}
	case *corev1.Pod:
		for i := range s.Clusters {
			for j := range s.Clusters[i].Pods {
				if s.Clusters[i].Pods[j].UID == object.UID {
					s.Clusters[i].Pods[j].Pod = object.DeepCopy()
				}
			}
		}
	}
}

func (s *Snapshot) remove(object action.Object) {
	without(object.GetName())(s)
	for i := range s.Services {
		if s.Services[i].Name == object.GetName() {
			s.Services = append(s.Services[:i:i], s.Services[i+1:]...)
			return
		}
	}
}
