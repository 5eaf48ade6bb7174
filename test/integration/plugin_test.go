package integration

import (
	"bytes"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/test/harness"
)

// said is what a command of the plugin wrote, and its exit code.
type said struct {
	Out, Err string
	Code     int
}

// plugin returns a function that runs commands of the plugin in a namespace of the API server.
func plugin(t *testing.T, c harness.Cluster, namespace string) func(args ...string) said {
	return pluginIn(t, namespace, func(env *kube.Env) {
		env.Config = func() (*rest.Config, error) { return rest.CopyConfig(c.REST), nil }
	})
}

// pluginIn returns a function that runs commands of the plugin in a namespace and in an environment as the edit makes it.
func pluginIn(t *testing.T, namespace string, edit func(*kube.Env)) func(args ...string) said {
	return func(args ...string) said {
		var out, errOut bytes.Buffer
		env := kube.NewEnv(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut}, "kubectl ray", "test")
		edit(env)
		root := cli.NewIn(env)
		root.SetArgs(append([]string{"--namespace", namespace}, args...))
		err := root.ExecuteContext(t.Context())
		answer := said{Out: out.String(), Err: errOut.String()}
		var exit kube.ExitError
		switch {
		case errors.As(err, &exit):
			answer.Code, answer.Err = exit.Code, answer.Err+exit.Error()
		case err != nil:
			answer.Code, answer.Err = kube.ExitFailed, answer.Err+err.Error()
		}
		return answer
	}
}

// TestThePlugin takes a cluster through its life by the plugin alone, as a user would.
func TestThePlugin(t *testing.T) {
	g := NewWithT(t)
	c, ns := harness.Connect(t)
	c.Run(t, ns, harness.Alone())
	ray := plugin(t, c, ns)
	name := types.NamespacedName{Namespace: ns, Name: "demo"}
	cluster := &rayv1.RayCluster{}
	pods := func() []corev1.Pod { return c.Pods(t, ns, nil) }
	ready := func() {
		for _, pod := range pods() {
			c.SetPod(t, &pod, harness.Ready)
		}
	}

	g.Expect(ray("create", "cluster", "demo", "--dry-run=server")).To(HaveField("Code", 0))
	g.Expect(apierrors.IsNotFound(c.Get(t.Context(), name, cluster))).To(BeTrue(), "a dry run makes nothing")
	g.Expect(ray("create", "cluster", "demo", "--worker-replicas=2")).To(And(HaveField("Code", 0), HaveField("Out", ContainSubstring("Created Ray cluster: demo"))))
	g.Expect(ray("create", "cluster", "demo")).To(And(HaveField("Code", 1), HaveField("Err", ContainSubstring("demo"))))
	g.Eventually(pods).Should(HaveLen(3))

	g.Expect(ray("wait", "demo", "--timeout=1s")).To(HaveField("Code", kube.ExitTimeout))
	ready()
	g.Expect(ray("wait", "demo")).To(And(HaveField("Code", 0), HaveField("Out", HavePrefix("RayCluster "+ns+"/demo is Ready"))))
	g.Expect(ray("status", "demo").Out).To(And(ContainSubstring("Status     Ready"), MatchRegexp(`default-group +2 +2 +0 +0`)))
	g.Expect(ray("get", "cluster").Out).To(MatchRegexp(`demo +` + ns + ` +2 +2 `))
	g.Expect(ray("get", "workergroup", "default-group", "-c", "demo").Out).To(MatchRegexp(`default-group +.*2/2`))
	g.Expect(ray("get", "node").Out).To(ContainSubstring("demo-default-group-worker-"))
	g.Expect(ray("tree", "demo").Out).To(ContainSubstring("2 Pods of group default-group  Ready"))
	// The operator may have a last word about the status to write.
	g.Eventually(func() said { return ray("plan", "demo") }).Should(And(HaveField("Code", 0), HaveField("Out", ContainSubstring("nothing to write"))))

	g.Expect(ray("scale", "cluster", "demo", "-w", "default-group", "-r", "3")).To(HaveField("Code", 0))
	g.Eventually(pods).Should(HaveLen(4))
	ready()
	g.Expect(ray("suspend", "demo")).To(HaveField("Code", 0))
	g.Expect(ray("wait", "demo", "--for=condition=RayClusterSuspended")).To(HaveField("Code", 0))
	g.Expect(pods()).To(BeEmpty())

	quota := c.LimitPods(t, ns, 0)
	g.Expect(ray("resume", "demo")).To(HaveField("Code", 0))
	g.Eventually(func() said { return ray("diagnose", "demo") }).Should(And(HaveField("Code", 1), HaveField("Out", ContainSubstring("quota-exceeded (blocking)"))))
	c.Lift(t, quota)
	g.Eventually(pods).Should(HaveLen(4))
	ready()
	g.Expect(ray("wait", "demo", "--for=condition=Ready")).To(HaveField("Code", 0))

	g.Expect(ray("delete", "demo", "-y")).To(HaveField("Code", 0))
	g.Eventually(func() bool { return apierrors.IsNotFound(c.Get(t.Context(), name, cluster)) }).Should(BeTrue())
	g.Expect(ray("status", "demo")).To(HaveField("Code", kube.ExitCannotLook))
}

// TestThePluginPlansForJobsServicesAndCronJobs: what the plugin foresees before an operator runs is done by it, and for objects
// that have come to rest nothing is foreseen but what they wait for.
func TestThePluginPlansForJobsServicesAndCronJobs(t *testing.T) {
	g := NewWithT(t)
	c, ns := harness.Connect(t)
	ray := plugin(t, c, ns)
	plans := func(argument string) func() said { return func() said { return ray("plan", argument) } }
	atRest := func(asksOrWaits string) gomegatypes.GomegaMatcher {
		return And(HaveField("Code", 0), HaveField("Out", And(ContainSubstring("nothing to write"), ContainSubstring(asksOrWaits))))
	}
	job, service := harness.NewJob(ns, rayv1.K8sJobMode), harness.NewService(ns, "chat")
	job.Name = "train"
	cron := &rayv1.RayCronJob{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "yearly"},
		Spec: rayv1.RayCronJobSpec{Schedule: "0 0 1 1 *", JobTemplate: job.Spec}}
	for _, object := range []client.Object{job, service, cron} {
		g.Expect(c.Create(t.Context(), object)).To(Succeed())
	}
	g.Expect(plans("job/train")().Out).To(ContainSubstring("set finalizers RayJob train: " + rayv1.FinalizerRayJob))
	g.Expect(plans("service/chat")().Out).To(ContainSubstring("set finalizers RayService chat: " + rayv1.FinalizerRayService))
	g.Expect(plans("yearly")().Out).To(And(ContainSubstring("patch status"), ContainSubstring("waits for  the tick of")))
	stored := job.DeepCopy()
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(job), stored)).To(Succeed())
	g.Expect(stored.ResourceVersion).To(Equal(job.ResourceVersion), "a plan writes nothing")

	c.Run(t, ns, harness.Alone(), cronJobs())
	nodes := c.NewServeNodes(ns)
	g.Eventually(plans("job/train")).Should(atRest("waits for  RayCluster train-"))
	g.Eventually(plans("yearly")).Should(atRest("waits for  the tick of"))
	g.Eventually(func() bool {
		nodes.Turn(t)
		c.EndpointSlices(t, ns)
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(service), service)).To(Succeed())
		return meta.IsStatusConditionTrue(service.Status.Conditions, rayv1.ConditionRayServiceReady)
	}).Should(BeTrue())
	g.Eventually(plans("service/chat")).Should(atRest("asks  Serve on RayCluster chat-"))
}
