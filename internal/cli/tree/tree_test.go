package tree

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-io/heliostat/internal/cli/clitest"
)

func TestScreens(t *testing.T) {
	for _, tc := range []struct {
		golden string
		args   []string
	}{
		{"degraded.txt", []string{"train"}},
		{"degraded.yaml", []string{"train", "-o", "yaml"}},
	} {
		t.Run(tc.golden, func(t *testing.T) {
			k := clitest.New(clitest.Load(t, "degraded")...)
			if code := k.Run(t, New, tc.args...); code != 0 {
				t.Fatalf("exit code %d: %s", code, k.ErrOut)
			}
			clitest.Golden(t, tc.golden, k.Out.String())
		})
	}
}

func TestFold(t *testing.T) {
	pod := func(name, group, state string) *node {
		return &node{Kind: "Pod", Name: name, Group: group, State: state}
	}
	root := &node{Kind: "RayCluster", Children: []*node{
		pod("a", "g", "Ready"), pod("b", "g", "Ready"), pod("c", "g", "Ready"), pod("d", "g", "OOMKilled"), pod("e", "h", "Ready"),
		{Kind: "Service", Name: "s"}, {Kind: "Service", Name: "t"},
	}}
	root.fold()
	var got []string
	for _, child := range root.Children {
		got = append(got, child.title()+" "+child.State)
	}
	want := []string{"3 Pods of group g Ready", "Pod d (group g) OOMKilled", "Pod e (group h) Ready", "Service s ", "Service t "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
