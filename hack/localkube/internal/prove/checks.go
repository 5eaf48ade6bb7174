package prove

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

func (p *Prover) checks() []check {
	return []check{
		{"all nodes are Ready", func(ctx context.Context) (string, error) {
			return p.kubectl(ctx, "wait", "node", "--all", "--for=condition=Ready", "--timeout=60s", "--output=name")
		}},
		{"a Deployment becomes available", func(ctx context.Context) (string, error) {
			return p.in(ctx, "rollout", "status", "deployment/web", "--timeout=90s")
		}},
		{"its Pods run on all nodes", p.podsOnAllNodes},
		{"Pods with a volume claim become ready on the first and the last node", func(ctx context.Context) (string, error) {
			return p.in(ctx, "wait", "pod/first", "pod/last", "--for=condition=Ready", "--timeout=90s", "--output=name")
		}},
		{"DNS answers on the first node", p.resolves("first")},
		{"DNS answers on the last node", p.resolves("last")},
		{"DNS refuses names from outside at once", p.refusesOutsideName},
		{"a Service reaches all of its Pods from the first node", p.spreads("first")},
		{"a Service reaches all of its Pods from the last node", p.spreads("last")},
		{"Pods reach each other across nodes", p.acrossNodes},
		{"a Pod reaches the API server by its Service", func(ctx context.Context) (string, error) {
			return p.sh(ctx, "first", "nc -w 5 kubernetes.default.svc 443 </dev/null && cat /var/run/secrets/kubernetes.io/serviceaccount/namespace")
		}},
		{"a Pod reaches nothing outside, and is told at once", p.nothingOutside},
		{"a host port of a Pod is open on its node", p.hostPort},
		{"a failing readiness probe takes a Pod out of the Service, and back", p.readiness},
		{"a failing liveness probe restarts a container", p.liveness},
		{"logs can be read", func(ctx context.Context) (string, error) {
			return p.in(ctx, "logs", "deployment/web", "--tail=1")
		}},
		{"exec works with standard input", p.execWithInput},
		{"port-forward works", p.portForward},
		{"one volume is shared by nodes and writable for a common user", p.sharedVolume},
		{"an emptyDir in memory is at /dev/shm", func(ctx context.Context) (string, error) {
			return p.sh(ctx, "first", "df -m /dev/shm | grep tmpfs")
		}},
		{"a container that exceeds its memory limit is OOMKilled", func(ctx context.Context) (string, error) {
			return p.becomes(ctx, "pod/greedy", "{.status.containerStatuses[0].state.terminated.reason}", "OOMKilled")
		}},
		{"a Job completes", func(ctx context.Context) (string, error) {
			return p.in(ctx, "wait", "job/job", "--for=condition=Complete", "--timeout=60s", "--output=name")
		}},
		{"an image that was not loaded is not pulled", p.noPull},
		{"the kubelet reports what Pods use", func(ctx context.Context) (string, error) {
			out, err := p.kubectl(ctx, "get", "--raw", "/api/v1/nodes/"+p.nodes[0]+"/proxy/stats/summary")
			if err == nil && !strings.Contains(out, "workingSetBytes") {
				return "", errors.New("no memory figures in the kubelet's summary")
			}
			return fmt.Sprintf("%d bytes of figures", len(out)), err
		}},
		{"RBAC denies what nobody has allowed", p.denied},
		{"a new kind of object can be defined", p.newKind},
		{"a Pod is gone soon after it was deleted", func(ctx context.Context) (string, error) {
			return p.in(ctx, "delete", "pod/last", "--timeout=30s")
		}},
	}
}

func (p *Prover) podsOnAllNodes(ctx context.Context) (string, error) {
	out, err := p.in(ctx, "get", "pods", "--selector=app=web", "--output=jsonpath={.items[*].spec.nodeName}")
	if err != nil {
		return "", err
	}
	used := map[string]bool{}
	for _, node := range strings.Fields(out) {
		used[node] = true
	}
	// The Deployment has three Pods.
	if want := min(len(p.nodes), 3); len(used) < want {
		return "", fmt.Errorf("Pods are on %s only", out)
	}
	return out, nil
}

func (p *Prover) resolves(pod string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		return p.sh(ctx, pod, "nslookup web."+namespace+".svc.cluster.local | tail -n +3")
	}
}

// within fails when do takes longer than a person would call "at once".
func within(most time.Duration, do func() error) (string, error) {
	start := time.Now()
	err := do()
	took := time.Since(start)
	if err != nil {
		return "", err
	}
	if took > most {
		return "", fmt.Errorf("it took %s, want at most %s", took, most)
	}
	return fmt.Sprintf("after %.1fs", took.Seconds()), nil
}

func (p *Prover) refusesOutsideName(ctx context.Context) (string, error) {
	return within(10*time.Second, func() error {
		if out, err := p.sh(ctx, "first", "nslookup outside.example. && echo answered"); err == nil {
			return fmt.Errorf("a name from outside was answered: %s", out)
		}
		return nil
	})
}

func (p *Prover) spreads(pod string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		out, err := p.sh(ctx, pod, "for i in $(seq 40); do wget -qO- http://web/; done | sort | uniq -c")
		if err != nil {
			return "", err
		}
		if got := strings.Count(out, "hello from"); got != 3 {
			return "", fmt.Errorf("answers came from %d of 3 Pods: %s", got, out)
		}
		return out, nil
	}
}

func (p *Prover) acrossNodes(ctx context.Context) (string, error) {
	out, err := p.in(ctx, "get", "pods", "--selector=app=web", "--output=jsonpath={.items[*].status.podIP}")
	if err != nil {
		return "", err
	}
	for _, ip := range strings.Fields(out) {
		for _, pod := range []string{"first", "last"} {
			if _, err := p.sh(ctx, pod, "wget -qO- http://"+ip+":8080/"); err != nil {
				return "", err
			}
		}
	}
	return out, nil
}

func (p *Prover) nothingOutside(ctx context.Context) (string, error) {
	return within(10*time.Second, func() error {
		// An address that the documentation of the Internet sets aside.
		if _, err := p.sh(ctx, "first", "nc -w 20 203.0.113.1 80 </dev/null"); err == nil {
			return errors.New("a connection to 203.0.113.1 was made")
		}
		return nil
	})
}

func (p *Prover) hostPort(ctx context.Context) (string, error) {
	ip, err := p.in(ctx, "get", "pod/first", "--output=jsonpath={.status.hostIP}")
	if err != nil {
		return "", err
	}
	if _, err := p.sh(ctx, "first", "mkdir -p /tmp/www && echo by host port >/tmp/www/index.html && httpd -p 8081 -h /tmp/www"); err != nil {
		return "", err
	}
	return p.sh(ctx, "last", "wget -qO- http://"+ip+":18081/")
}

func (p *Prover) webPod(ctx context.Context) (string, error) {
	return p.in(ctx, "get", "pods", "--selector=app=web", "--output=jsonpath={.items[0].metadata.name}")
}

func (p *Prover) readyEndpoints(ctx context.Context, want int) error {
	return p.eventually(ctx, func() error {
		out, err := p.in(ctx, "get", "endpointslices", "--selector=kubernetes.io/service-name=web",
			"--output=jsonpath={.items[*].endpoints[?(@.conditions.ready==true)].addresses[0]}")
		if err != nil {
			return err
		}
		if got := len(strings.Fields(out)); got != want {
			return fmt.Errorf("%d endpoints are ready, want %d", got, want)
		}
		return nil
	})
}

func (p *Prover) readiness(ctx context.Context) (string, error) {
	pod, err := p.webPod(ctx)
	if err != nil {
		return "", err
	}
	if _, err := p.sh(ctx, pod, "rm /www/ready"); err != nil {
		return "", err
	}
	out := p.readyEndpoints(ctx, 2)
	if _, err := p.sh(ctx, pod, "touch /www/ready"); err != nil {
		return "", err
	}
	return "3, 2, and 3 endpoints again", errors.Join(out, p.readyEndpoints(ctx, 3))
}

func (p *Prover) liveness(ctx context.Context) (string, error) {
	pod, err := p.webPod(ctx)
	if err != nil {
		return "", err
	}
	if _, err := p.sh(ctx, pod, "rm /www/live"); err != nil {
		return "", err
	}
	seen, err := p.becomes(ctx, "pod/"+pod, "{.status.containerStatuses[0].restartCount}", "1")
	return seen, errors.Join(err, p.readyEndpoints(ctx, 3))
}

func (p *Prover) execWithInput(ctx context.Context) (string, error) {
	out, err := p.withInput(ctx, "abc", "exec", "--stdin", "first", "--", "tr", "a-z", "A-Z")
	if err == nil && out != "ABC" {
		return "", fmt.Errorf("got %q, want ABC", out)
	}
	return out, err
}

func (p *Prover) sharedVolume(ctx context.Context) (string, error) {
	if _, err := p.sh(ctx, "first", "id -u >/shared/from-first"); err != nil {
		return "", err
	}
	out, err := p.sh(ctx, "last", "cat /shared/from-first")
	return "written on one node by user " + strings.TrimSpace(out) + ", read on another", err
}

func (p *Prover) noPull(ctx context.Context) (string, error) {
	var reason string
	err := p.eventually(ctx, func() error {
		var err error
		reason, err = p.in(ctx, "get", "pod/unknown-image", "--output=jsonpath={.status.containerStatuses[0].state.waiting.reason}")
		if err != nil {
			return err
		}
		if reason != "ErrImagePull" && reason != "ImagePullBackOff" {
			return fmt.Errorf("the Pod waits for %q", reason)
		}
		return nil
	})
	return reason, err
}

func (p *Prover) denied(ctx context.Context) (string, error) {
	out, err := p.in(ctx, "auth", "can-i", "list", "pods", "--as=system:serviceaccount:"+namespace+":nobody")
	if err == nil {
		return "", fmt.Errorf("a service account without any role may list Pods: %s", out)
	}
	if !strings.Contains(err.Error(), "no") {
		return "", err
	}
	return "no", nil
}

func (p *Prover) newKind(ctx context.Context) (string, error) {
	const definition = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
"metadata": {"name": "proofs.localkube.example"},
"spec": {"group": "localkube.example", "scope": "Namespaced", "names": {"plural": "proofs", "kind": "Proof"},
"versions": [{"name": "v1", "served": true, "storage": true,
"schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}`
	if _, err := p.withInput(ctx, definition, "apply", "--filename=-"); err != nil {
		return "", err
	}
	seen, err := p.in(ctx, "wait", "crd/proofs.localkube.example", "--for=condition=Established", "--timeout=30s", "--output=name")
	_, deleteErr := p.in(ctx, "delete", "crd/proofs.localkube.example", "--timeout=30s")
	return seen, errors.Join(err, deleteErr)
}
