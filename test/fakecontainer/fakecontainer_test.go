package fakecontainer_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-io/heliostat/test/fakecontainer"
)

func TestExpand(t *testing.T) {
	variables := map[string]string{"HOME": "/home/ray", "NESTED": "$(HOME)"}
	for name, test := range map[string]struct{ given, want string }{
		"given plain text, it stays":                           {"a $HOME ${HOME} $ b$", "a $HOME ${HOME} $ b$"},
		"given a reference, it is replaced":                    {"cd $(HOME)/x", "cd /home/ray/x"},
		"given a reference to nothing, it stays":               {"$(NONE) $(HOME", "$(NONE) $(HOME"},
		"given a doubled dollar, one is left":                  {"$$$$ $$HOME", "$$ $HOME"},
		"given a doubled dollar, what follows is no reference": {"$$(HOME) $$$(HOME)", "$(HOME) $/home/ray"},
		"given a reference in a value, it stays":               {"$(NESTED)", "$(HOME)"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fakecontainer.Expand(test.given, variables); got != test.want {
				t.Errorf("%q becomes %q, want %q", test.given, got, test.want)
			}
		})
	}
}

func TestRun(t *testing.T) {
	c := fakecontainer.New(t, map[string]string{"NAME": "a  b"})
	c.Install(t, "note", fakecontainer.Recorder)
	c.Install(t, "fail", fakecontainer.Recorder+"echo sorry >&2; exit 3\n")
	const line = `note $(NAME) "$NAME" ''; note; echo *; cat; fail`
	got, err := c.Run("bash", "-c", line)
	want := fakecontainer.Ended{Calls: [][]string{{"note", "a", "b", "a  b", ""}, {"note"}, {"fail"}}, Code: 3, Stdout: "*\n"}
	if err != nil {
		t.Fatal(err)
	}
	if got.Stderr == "" || got.Stderr == "sorry\n" {
		t.Errorf("stderr is %q, want the words of two programs: cat, which is not there, and fail", got.Stderr)
	}
	got.Stderr = ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the command ended otherwise (-want +got):\n%s", diff)
	}
	got, err = c.Exec("bash", "-c", "note '$(NAME)'")
	if diff := cmp.Diff([][]string{{"note", "$(NAME)"}}, got.Calls); err != nil || diff != "" {
		t.Errorf("%v; calls of the second command, which is not expanded (-want +got):\n%s", err, diff)
	}
	if _, err := c.Run("/no/such/program"); err == nil {
		t.Error("a command that is not there ends in an error")
	}
}
