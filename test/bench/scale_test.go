package bench

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/test/harness"
)

// nodes follows the Pods of a namespace in the order of their creation, and makes them ready as many kubelets would.
type nodes struct {
	mu    sync.Mutex
	large int
	// heads tells for each small cluster how many workers the large one had when the small one got its head.
	heads map[string]int
}

func (n *nodes) saw(pod *corev1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	of := pod.Labels[rayv1.LabelCluster]
	switch {
	case pod.Labels[rayv1.LabelNodeType] == rayv1.NodeTypeHead && of != large:
		n.heads[of] = n.large
	case pod.Labels[rayv1.LabelNodeType] == rayv1.NodeTypeWorker && of == large:
		n.large++
	}
}

func (n *nodes) largeWorkers() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.large
}

// atHead returns how many workers the large cluster had when the small one got its head.
func (n *nodes) atHead(small string) (int, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	count, ok := n.heads[small]
	return count, ok
}

// watch starts following.
func (n *nodes) watch(t *testing.T, c harness.Cluster, namespace string) {
	t.Helper()
	all, err := kubernetes.NewForConfig(c.REST)
	if err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(all, 0, informers.WithNamespace(namespace))
	created := make(chan *corev1.Pod, *workers+10**small)
	_, err = factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			pod := object.(*corev1.Pod)
			n.saw(pod)
			created <- pod.DeepCopy()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var kubelets sync.WaitGroup
	for range 16 {
		kubelets.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case pod := <-created:
					c.SetPod(t, pod, harness.Ready)
				}
			}
		})
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	t.Cleanup(func() {
		stop()
		kubelets.Wait()
	})
}

const large = "large"

// TestALargeClusterDoesNotHoldUpSmallOnes given a large cluster that grows, when small clusters are created, then the
// first of them gets its head before the large one has all its workers; and all become ready.
func TestALargeClusterDoesNotHoldUpSmallOnes(t *testing.T) {
	g := NewWithT(t)
	c, ns := harness.Connect(t)
	n := &nodes{heads: map[string]int{}}
	n.watch(t, c, ns)
	c.Run(t, ns, harness.Alone())
	size := func(workers int) func(*rayv1.RayCluster) {
		return func(cluster *rayv1.RayCluster) {
			count := int32(workers)
			cluster.Spec.WorkerGroupSpecs[0].Replicas, cluster.Spec.WorkerGroupSpecs[0].MaxReplicas = &count, &count
		}
	}
	g.Expect(c.Create(t.Context(), harness.NewCluster(ns, large, size(*workers)))).To(Succeed())
	g.Eventually(n.largeWorkers, harness.Patience, time.Millisecond).Should(BeNumerically(">", 0))
	for i := range *small {
		g.Expect(c.Create(t.Context(), harness.NewCluster(ns, fmt.Sprintf("small-%d", i), size(1)))).To(Succeed())
	}
	g.Eventually(func() int {
		list := &rayv1.RayClusterList{}
		g.Expect(c.List(t.Context(), list, client.InNamespace(ns))).To(Succeed())
		ready := 0
		for _, cluster := range list.Items {
			if cluster.Status.State == rayv1.ClusterStateReady {
				ready++
			}
		}
		return ready
	}, 20*time.Minute, time.Second).Should(Equal(*small + 1))

	early := 0
	for i := range *small {
		count, ok := n.atHead(fmt.Sprintf("small-%d", i))
		g.Expect(ok).To(BeTrue(), "small-%d has no head", i)
		if count < *workers {
			early++
		}
	}
	first, _ := n.atHead("small-0")
	t.Logf("the first small cluster got its head when the large one had %d of %d workers; %d of %d were earlier than the last worker",
		first, *workers, early, *small)
	g.Expect(first).To(BeNumerically("<", *workers))
}
