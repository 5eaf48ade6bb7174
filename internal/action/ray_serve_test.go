package action

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/leadership"
	"github.com/heliostat-io/heliostat/internal/ray/dashboard"
	"github.com/heliostat-io/heliostat/test/fakedashboard"
)

// config is a Serve config whose hash is its version.
func config(version string) PutServe {
	return PutServe{
		Cluster: &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "shop-x7k2m", UID: "1"}},
		BaseURL: "http://head:8265", Hash: version,
		Config: json.RawMessage(`{"applications":[{"import_path":"shop:app","args":{"version":"` + version + `"}}]}`),
	}
}

// sender returns workers that reach the head, and what they settle.
func sender(gate leadership.Gate) (*Ray, *fakedashboard.Dashboard, *[]string) {
	network, head := fakedashboard.NewNetwork(), fakedashboard.NewInProcess()
	network.Add("head:8265", head)
	settled := &[]string{}
	return NewRay(RayOptions{Gate: gate, HTTP: network.Client(), Clock: clock.RealClock{},
		Settled: func(kind string, name types.NamespacedName) { *settled = append(*settled, kind+" "+name.String()) }}), head, settled
}

func TestAConfigIsSentAsOftenAsItIsWanted(t *testing.T) {
	r, head, settled := sender(leadership.Alone{})
	if last, sending := r.ServeOutcome("1"); last != nil || sending {
		t.Errorf("before anything was sent: %+v, sending %v", last, sending)
	}
	for range 2 {
		if err := r.putServe(config("v1")); err != nil {
			t.Fatal(err)
		}
		if _, sending := r.ServeOutcome("1"); !sending {
			t.Error("the config is not being sent")
		}
		r.Step(t.Context())
	}
	last, sending := r.ServeOutcome("1")
	if last == nil || last.Err != nil || last.ID != "v1" || last.BaseURL != "http://head:8265" || last.At.IsZero() || sending {
		t.Errorf("the outcome is %+v, sending %v", last, sending)
	}
	if got := head.ServePuts(); got != 2 {
		t.Errorf("Serve took the config %d times, want 2", got)
	}
	if want := []string{"RayCluster ns/shop-x7k2m", "RayCluster ns/shop-x7k2m"}; !slices.Equal(*settled, want) {
		t.Errorf("settled are %v, want %v", *settled, want)
	}
	r.Forget("1")
	if last, _ := r.ServeOutcome("1"); last != nil {
		t.Errorf("the outcome is still known: %+v", last)
	}
}

func TestOneConfigAtATimeIsSentToACluster(t *testing.T) {
	r, head, _ := sender(leadership.Alone{})
	other := config("v3")
	other.Cluster = &rayv1.RayCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other", UID: "2"}}
	for _, put := range []PutServe{config("v1"), config("v2"), other} {
		if err := r.putServe(put); err != nil {
			t.Fatal(err)
		}
	}
	for r.Step(t.Context()) {
	}
	if got := head.ServePuts(); got != 2 {
		t.Errorf("%d configs were sent, want those of two clusters", got)
	}
	if last, _ := r.ServeOutcome("1"); last == nil || last.ID != "v1" {
		t.Errorf("the outcome is %+v, want that of the first config", last)
	}
	if last, _ := r.ServeOutcome("2"); last == nil || last.ID != "v3" {
		t.Errorf("the outcome of the other cluster is %+v", last)
	}
}

func TestTheOutcomeOfAConfigIsTold(t *testing.T) {
	noTerm := errors.New("no term")
	cases := map[string]struct {
		gate    leadership.Gate
		session string
		given   func(*fakedashboard.Dashboard)
		puts    int
		want    func(error) bool
	}{
		"given the head it was meant for": {session: "session_2026-01-01_00-00-01_000000_1", puts: 1, want: func(err error) bool { return err == nil }},
		"given another head": {session: "session_0",
			want: func(err error) bool { return err != nil && strings.Contains(err.Error(), "the head was replaced") }},
		"given no word from the head": {session: "session_0", given: (*fakedashboard.Dashboard).Down,
			want: func(err error) bool {
				return err != nil && strings.Contains(err.Error(), "look at the session of the head")
			}},
		"given Serve refuses it": {given: func(d *fakedashboard.Dashboard) { d.RefuseServe("1 validation error for ServeDeploySchema") },
			want: func(err error) bool { return errors.Is(err, dashboard.ErrRefused) }},
		"given an inner error": {given: func(d *fakedashboard.Dashboard) {
			d.Inject(fakedashboard.Fault{Endpoint: fakedashboard.EndpointPutServe, Code: http.StatusInternalServerError})
		}, want: func(err error) bool { return err != nil && !errors.Is(err, dashboard.ErrRefused) }},
		"given no term": {gate: refusing{err: noTerm}, want: func(err error) bool { return errors.Is(err, noTerm) }},
		"given a cluster that asks for a token, which is sent": {puts: 1, given: func(d *fakedashboard.Dashboard) { d.RequireToken("ns/shop-token") },
			want: func(err error) bool { return err == nil }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			gate := tc.gate
			if gate == nil {
				gate = leadership.Alone{}
			}
			r, head, _ := sender(gate)
			r.options.Tokens = func(secret types.NamespacedName) dashboard.TokenSource {
				return func(context.Context) (string, error) { return secret.String(), nil }
			}
			if tc.given != nil {
				tc.given(head)
			}
			put := config("v1")
			put.Session, put.Secret = tc.session, "shop-token"
			if err := r.putServe(put); err != nil {
				t.Fatal(err)
			}
			r.Step(t.Context())
			if last, _ := r.ServeOutcome("1"); last == nil || !tc.want(last.Err) {
				t.Errorf("the outcome is %+v", last)
			}
			if got := head.ServePuts(); got != tc.puts {
				t.Errorf("Serve took %d configs, want %d", got, tc.puts)
			}
		})
	}
}

// refusing is a gate that lets nothing through.
type refusing struct {
	leadership.Alone
	err error
}

func (g refusing) Enter(context.Context) (context.Context, func(), error) { return nil, nil, g.err }

// The first config of a cluster may take a minute. Submissions do not wait for it.
func TestJobsDoNotWaitForConfigs(t *testing.T) {
	network, head, slow := fakedashboard.NewNetwork(), fakedashboard.NewInProcess(), fakedashboard.NewInProcess()
	network.Add("head:8265", head)
	network.Add("slow:8265", slow)
	slow.Inject(fakedashboard.Fault{Never: true})
	ended := make(chan string, 8)
	r := NewRay(RayOptions{Gate: leadership.Alone{}, HTTP: network.Client(), Clock: clock.RealClock{}, Workers: 1,
		Settled: func(kind string, _ types.NamespacedName) { ended <- kind }})
	put := config("v1")
	put.BaseURL = "http://slow:8265"
	job := &rayv1.RayJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train", UID: "2"}}
	submit := Submit{Job: job, BaseURL: "http://head:8265", Request: dashboard.SubmitRequest{Entrypoint: "x", SubmissionID: "train-1"}}
	if err := errors.Join(r.putServe(put), r.submit(submit)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error)
	go func() { stopped <- r.Start(ctx) }()
	if first := <-ended; first != "RayJob" {
		t.Errorf("the first to end is the request for the %s", first)
	}
	stop()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestTheLogNamesTheObject(t *testing.T) {
	r, _, _ := sender(leadership.Alone{})
	var lines []string
	r.options.Log = funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	job := &rayv1.RayJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train", UID: "2"}}
	if err := errors.Join(r.putServe(config("v1")), r.stop(Stop{Job: job, BaseURL: "http://head:8265", SubmissionID: "train-1"})); err != nil {
		t.Fatal(err)
	}
	for r.Step(t.Context()) {
	}
	want := []string{
		`"level"=0 "msg"="Request to Ray done" "action"="stop" "object"="RayJob ns/train" "id"="train-1"`,
		`"level"=0 "msg"="Request to Ray done" "action"="put-serve" "object"="RayCluster ns/shop-x7k2m" "id"="v1"`,
	}
	if !slices.Equal(lines, want) {
		t.Errorf("the log is\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

func TestAConfigIsAnActionOfAPlan(t *testing.T) {
	r, head, _ := sender(leadership.Alone{})
	put := config("v1")
	put.Why = "Serve has no applications"
	if err := (&Executor{Ray: r}).do(t.Context(), put); err != nil {
		t.Fatal(err)
	}
	r.Step(t.Context())
	if got := head.ServeApplications(); !slices.Equal(got, []string{"default"}) {
		t.Errorf("Serve has %v", got)
	}
	if put.Key() != "" || why(put) != put.Why || describe(put) != "putserve ns/shop-x7k2m" || put.event() != nil || put.failure() != nil {
		t.Errorf("the action is described as %q because of %q", describe(put), why(put))
	}
}
