package operator

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/heliostat-io/heliostat/internal/excerpt"
	"github.com/heliostat-io/heliostat/internal/raycluster"
	"github.com/heliostat-io/heliostat/internal/rights"
	"github.com/heliostat-io/heliostat/internal/rights/selfcheck"
)

const (
	// rightsAgent is added to the user agent of questions about rights.
	rightsAgent = "rights-check"
	// rightsQPS bounds these questions, of which there are more than a hundred for each namespace.
	rightsQPS     = 20
	rightsTimeout = 10 * time.Second
	// maxNote is the API server's limit for the note of an event, in bytes.
	maxNote = 1024
	// mostNamed is how many missing rights an event names before it counts.
	mostNamed = 6
)

// checkOfRights sets up the check of the operator's own rights. It runs beside the manager and not in it, because the manager waits
// for caches, which a missing right leaves empty for ever.
func (w *wiring) checkOfRights(registerer prometheus.Registerer, settings raycluster.Settings) (*selfcheck.Checker, error) {
	own := rest.AddUserAgent(rest.CopyConfig(w.options.REST), rightsAgent)
	own.QPS, own.Burst, own.Timeout = rightsQPS, rightsQPS, rightsTimeout
	reviews, err := authorizationv1client.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("connect for questions about rights: %w", err)
	}
	served := func(group string) bool {
		return group == rights.Gateways && w.gateways || group == rights.Routes && settings.Routes
	}
	use := w.cfg.Use(w.options.Namespace, served)
	check := selfcheck.New(selfcheck.Options{
		Needed: rights.Needed(use), Clock: w.clock, Log: w.options.Log.WithName("rights"), Tell: w.tellOfRights(use),
		May: func(ctx context.Context, right rights.Right) (bool, error) {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: right.Attributes()}}
			answer, err := reviews.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			if err != nil {
				return false, fmt.Errorf("review of access: %w", err)
			}
			return answer.Status.Allowed, nil
		},
	})
	if err := registerer.Register(check); err != nil {
		return nil, fmt.Errorf("register the metric of missing rights: %w", err)
	}
	return check, nil
}

// tellOfRights sends an event about this replica's Pod.
func (w *wiring) tellOfRights(use rights.Use) func([]rights.Right) {
	if use.Home == "" {
		return nil
	}
	recorder := w.mgr.GetEventRecorder("rights")
	name, _, _ := strings.Cut(w.options.Identity, "_") // see Identity
	self := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: use.Home, Name: name}}
	return func(missing []rights.Right) {
		note := "the operator may not " + rights.Names(missing, mostNamed)
		recorder.Eventf(self, nil, corev1.EventTypeWarning, "RightsMissing", "CheckRights", "%s", excerpt.Beginning(note, maxNote))
	}
}
