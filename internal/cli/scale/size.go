package scale

import (
	"context"
	"fmt"
	"math"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rayv1 "github.com/heliostat-io/heliostat/api/v1"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
)

// size is the number of replicas of a group and its bounds.
type size struct{ replicas, min, max int32 }

// sizeOf reads a group as the API server completes it.
func sizeOf(group *rayv1.WorkerGroupSpec) size {
	return size{
		replicas: ptr.Deref(group.Replicas, 0),
		min:      ptr.Deref(group.MinReplicas, 0),
		max:      ptr.Deref(group.MaxReplicas, math.MaxInt32),
	}
}

// with puts the numbers in that the user gave.
func (s size) with(r request) size {
	for _, number := range []struct {
		to   *int32
		from int32
	}{{&s.replicas, r.replicas}, {&s.min, r.min}, {&s.max, r.max}} {
		if number.from != leave {
			*number.to = number.from
		}
	}
	return s
}

func (s size) String() string {
	return fmt.Sprintf("replicas %d, minReplicas %d, maxReplicas %d", s.replicas, s.min, s.max)
}

// check judges the numbers together, those given and those that stay.
func (s size) check() error {
	switch {
	case s.min > s.max:
		return fmt.Errorf("minReplicas would be %d and must not be greater than maxReplicas, which would be %d: "+
			"give --min-replicas or --max-replicas, too", s.min, s.max)
	case s.replicas < s.min:
		return fmt.Errorf("replicas would be %d and must not be less than minReplicas, which would be %d: "+
			"give --replicas or --min-replicas, too", s.replicas, s.min)
	case s.replicas > s.max:
		return fmt.Errorf("replicas would be %d and must not be greater than maxReplicas, which would be %d: "+
			"give --replicas or --max-replicas, too", s.replicas, s.max)
	}
	return nil
}

// change is one number that becomes another.
type change struct {
	field    string
	was, now int32
}

func (c change) String() string { return fmt.Sprintf("%s %d -> %d", c.field, c.was, c.now) }

func (s size) changes(was size) []change {
	var changed []change
	for _, c := range []change{
		{"replicas", was.replicas, s.replicas},
		{"minReplicas", was.min, s.min},
		{"maxReplicas", was.max, s.max},
	} {
		if c.was != c.now {
			changed = append(changed, c)
		}
	}
	return changed
}

// write changes the numbers and nothing else.
func write(ctx context.Context, c client.Writer, cluster *rayv1.RayCluster, index int, changes []change) error {
	additions := make([]kube.Addition, 0, len(changes))
	for _, change := range changes {
		path := fmt.Sprintf("/spec/workerGroupSpecs/%d/%s", index, change.field)
		additions = append(additions, kube.Addition{Path: path, Value: change.now})
	}
	return kube.PatchUnchanged(ctx, c, cluster.DeepCopy(), additions...)
}
