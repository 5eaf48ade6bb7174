package kube

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// gracePeriod is how long a Pod on a node may take to end, as by default.
const gracePeriod = 30 * time.Second

func (s *Server) create(k *kind, r Request, live client.Object) (client.Object, error) {
	object := r.Object
	if s.FreshNames && k.name == "Pod" {
		r.Name.Name = fmt.Sprintf("%s-%d", r.Name.Name, s.rv)
		object.SetName(r.Name.Name)
		live = nil
	}
	if live != nil {
		return nil, apierrors.NewAlreadyExists(k.resource, r.Name.Name)
	}
	if err := s.admitPod(object); err != nil {
		return nil, err
	}
	// A UID follows from kind, name and the count of lives under that name, so that histories can be compared.
	identity := strings.ToLower(k.name) + "-" + r.Name.Name
	s.lives[identity]++
	object.SetUID(types.UID(fmt.Sprintf("%s-%d", identity, s.lives[identity])))
	object.SetCreationTimestamp(metav1.NewTime(s.Clock().Truncate(time.Second)))
	object.SetDeletionTimestamp(nil)
	object.SetGeneration(1)
	object.SetManagedFields(nil)
	if status := field(object, "Status"); status.IsValid() {
		status.SetZero()
	}
	s.fillIn(object)
	object, err := k.track(k.empty(), object, r.Manager)
	if err != nil {
		return nil, err
	}
	s.commit(k, r, nil, object)
	return object, nil
}

// admitPod refuses a Pod whose service account does not exist.
func (s *Server) admitPod(object client.Object) error {
	pod, isPod := object.(*corev1.Pod)
	if !isPod || pod.Spec.ServiceAccountName == "" || s.Schema.byName["ServiceAccount"] == nil {
		return nil
	}
	account := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Spec.ServiceAccountName}
	if s.Get("ServiceAccount", account) != nil {
		return nil
	}
	return apierrors.NewForbidden(corev1.Resource("pods"), pod.Name, fmt.Errorf("service account %s does not exist", account.Name))
}

// fillIn sets defaults that controllers look at.
func (s *Server) fillIn(object client.Object) {
	switch object := object.(type) {
	case *corev1.Pod:
		object.Status.Phase = corev1.PodPending
		if object.Spec.RestartPolicy == "" {
			object.Spec.RestartPolicy = corev1.RestartPolicyAlways
		}
	case *corev1.Service:
		if object.Spec.Type == "" {
			object.Spec.Type = corev1.ServiceTypeClusterIP
		}
		if object.Spec.ClusterIP == "" && object.Spec.Type != corev1.ServiceTypeExternalName {
			s.ips++
			object.Spec.ClusterIP = fmt.Sprintf("10.1.%d.%d", s.ips/250, s.ips%250+1)
		}
	}
}

func (s *Server) conflict(k *kind, name, why string) error {
	if s.IgnorePreconditions {
		return nil
	}
	return apierrors.NewConflict(k.resource, name, errors.New(why))
}

// store puts the changed object in the place of the live one.
func (s *Server) store(k *kind, r Request, live, next client.Object) (client.Object, error) {
	if uid := next.GetUID(); uid != "" && uid != live.GetUID() {
		if err := s.conflict(k, r.Name.Name, fmt.Sprintf("the UID in the request is %s, that of the object %s", uid, live.GetUID())); err != nil {
			return nil, err
		}
	}
	if rv := next.GetResourceVersion(); rv != "" && rv != live.GetResourceVersion() {
		if err := s.conflict(k, r.Name.Name, "the object has been modified"); err != nil {
			return nil, err
		}
	}
	next.SetUID(live.GetUID())
	next.SetResourceVersion(live.GetResourceVersion())
	next.SetCreationTimestamp(live.GetCreationTimestamp())
	next.SetDeletionTimestamp(live.GetDeletionTimestamp())
	next.SetGeneration(live.GetGeneration())
	if s.Forget != nil {
		s.Forget(next)
	}
	if equality.Semantic.DeepEqual(live, next) {
		return live, nil
	}
	if spec := field(next, "Spec"); spec.IsValid() && !equality.Semantic.DeepEqual(spec.Interface(), field(live, "Spec").Interface()) {
		next.SetGeneration(live.GetGeneration() + 1)
	}
	if next.GetDeletionTimestamp() != nil && len(next.GetFinalizers()) == 0 {
		s.commit(k, r, live, nil)
		return next, nil
	}
	s.commit(k, r, live, next)
	return next, nil
}

func (s *Server) remove(k *kind, r Request, live client.Object) (client.Object, error) {
	if p := r.Preconditions; p != nil {
		if p.UID != nil && *p.UID != live.GetUID() {
			if err := s.conflict(k, r.Name.Name, "the UID in the precondition is another one"); err != nil {
				return nil, err
			}
		}
		if p.ResourceVersion != nil && *p.ResourceVersion != live.GetResourceVersion() {
			if err := s.conflict(k, r.Name.Name, "the resourceVersion in the precondition is another one"); err != nil {
				return nil, err
			}
		}
	}
	grace := s.grace(live, r.Now)
	switch {
	case grace == 0 && len(live.GetFinalizers()) == 0:
		s.commit(k, r, live, nil)
		return live, nil
	case live.GetDeletionTimestamp() != nil:
		return live, nil
	}
	next := copyOf(live)
	next.SetDeletionTimestamp(ptr.To(metav1.NewTime(s.Clock().Add(grace).Truncate(time.Second))))
	next.SetDeletionGracePeriodSeconds(ptr.To(int64(grace.Seconds())))
	next.SetGeneration(live.GetGeneration() + 1)
	s.commit(k, r, live, next)
	return next, nil
}

// grace is that of a Pod which a kubelet has to stop first.
func (s *Server) grace(object client.Object, now bool) time.Duration {
	pod, isPod := object.(*corev1.Pod)
	ended := isPod && (pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded)
	if !isPod || now || ended || pod.Spec.NodeName == "" {
		return 0
	}
	return gracePeriod
}
