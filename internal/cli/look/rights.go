package look

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/diagnose/gather"
	"github.com/heliostat-io/heliostat/internal/rights"
)

// answerLife is how long an answer about a right counts, for screens that look again every two seconds.
const answerLife = time.Minute

// Thorough is Source, and asks for each right that the operator needs whether it has it, which is more than a hundred questions.
func Thorough(env *kube.Env) (gather.Source, error) {
	source, err := Source(env)
	if err != nil {
		return gather.Source{}, err
	}
	c, err := env.Client()
	if err != nil {
		return gather.Source{}, err
	}
	source.Rights = &reviews{client: c, now: env.Now, known: map[rights.Right]answer{}}
	return source, nil
}

// OpenThorough is Open over a Thorough source.
func OpenThorough(env *kube.Env) (*Looker, error) {
	source, err := Thorough(env)
	if err != nil {
		return nil, kube.ExitError{Code: kube.ExitCannotLook, Err: err}
	}
	return &Looker{env, source}, nil
}

// reviews asks by access reviews what accounts may do.
type reviews struct {
	client client.Client
	now    func() time.Time

	mu    sync.Mutex
	known map[rights.Right]answer
}

type answer struct {
	allowed bool
	at      time.Time
}

// May asks whether the account of a right has it, unless that was asked lately.
func (r *reviews) May(ctx context.Context, right rights.Right) (bool, error) {
	if known, ok := r.fresh(right); ok {
		return known.allowed, nil
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: right.User, Groups: groups(right.User), ResourceAttributes: right.Attributes()}}
	if err := r.client.Create(ctx, review); err != nil {
		return false, fmt.Errorf("review of access: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[right] = answer{review.Status.Allowed, r.now()}
	return review.Status.Allowed, nil
}

func (r *reviews) fresh(right rights.Right) (answer, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok := r.known[right]
	return known, ok && r.now().Sub(known.at) < answerLife
}

// groups are those that the API server finds a service account in.
func groups(user string) []string {
	all := []string{"system:authenticated"}
	if parts := strings.Split(user, ":"); len(parts) == 4 && parts[1] == "serviceaccount" {
		all = append(all, "system:serviceaccounts", "system:serviceaccounts:"+parts[2])
	}
	return all
}

// Serves tells whether the API server knows an API group by the kind in it that the operator makes.
func (r *reviews) Serves(group string) bool {
	kind := map[string]string{rights.Gateways: "HTTPRoute", rights.Routes: "Route"}[group]
	_, err := r.client.RESTMapper().RESTMapping(schema.GroupKind{Group: group, Kind: kind})
	return err == nil
}
