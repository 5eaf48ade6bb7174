package plan

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-io/heliostat/internal/action"
	"github.com/heliostat-io/heliostat/internal/cli/kube"
	"github.com/heliostat-io/heliostat/internal/cli/screen"
)

// report is a plan for people and scripts.
type report struct {
	Object string `json:"object"`
	// Status is the change of the status, as a JSON merge patch. It is written first.
	Status *statusWrite `json:"status,omitempty"`
	Writes []write      `json:"writes,omitempty"`
	Events []event      `json:"events,omitempty"`
	// Asks are the questions to Ray, Waits what must happen first, and Unknown what only the operator knows.
	Asks    []string `json:"asks,omitempty"`
	Waits   []string `json:"waits,omitempty"`
	Unknown []string `json:"unknown,omitempty"`
	// LookAgain is when the operator would look again by itself, for example "30s".
	LookAgain string `json:"lookAgain,omitempty"`
	// Settings says where the settings are from with which was planned.
	Settings string `json:"settings"`
}

type statusWrite struct {
	Why   string          `json:"why"`
	Patch json.RawMessage `json:"patch"`
}

type write struct {
	Verb   string `json:"verb"`
	Object string `json:"object"`
	Why    string `json:"why"`
}

type event struct {
	Type   string `json:"type"`
	Reason string `json:"reason"`
	Note   string `json:"note"`
}

func describe(target kube.Target, p action.Outlook) (report, error) {
	r := report{Object: target.String(), Asks: p.Asks, Waits: p.Waits, Unknown: p.Unknown}
	if p.LookAgain > 0 {
		r.LookAgain = p.LookAgain.String()
	}
	if p.Status != nil {
		patch, err := difference(p.Status)
		if err != nil {
			return r, fmt.Errorf("compare the status of %s: %w", target, err)
		}
		r.Status = &statusWrite{p.Status.Why, patch}
	}
	for _, a := range p.Actions {
		r.Writes = append(r.Writes, writeOf(a))
	}
	for _, e := range p.Events {
		r.Events = append(r.Events, event{e.Type, e.Reason, e.Note})
	}
	return r, nil
}

func difference(w *action.StatusWrite) (json.RawMessage, error) {
	before, err := json.Marshal(w.Base)
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(w.Object)
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.CreateMergePatch(before, after)
	if err != nil {
		return nil, err
	}
	return patch, nil
}

func writeOf(a action.Action) write {
	switch a := a.(type) {
	case action.Create:
		return write{"create", named(a.Object), a.Why}
	case action.Apply:
		if a.Observed == nil {
			return write{"create", named(a.Object), a.Why}
		}
		return write{"apply", named(a.Object), a.Why}
	case action.Delete:
		return write{"delete", named(a.Object), a.Why}
	case action.Update:
		return write{"update", named(a.Object), a.Why}
	case action.Finalizers:
		return write{"set finalizers", named(a.Object) + ": " + strings.Join(a.Want, ", "), a.Why}
	default:
		return write{Verb: fmt.Sprintf("%T", a)}
	}
}

func named(object client.Object) string {
	kind := object.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = reflect.TypeOf(object).Elem().Name()
	}
	return kind + " " + object.GetName()
}

func (r report) text(style screen.Style) string {
	var text strings.Builder
	switch {
	case r.Status != nil || len(r.Writes) > 0:
		text.WriteString(style.Bold(r.Object) + " would be brought on by these writes:\n")
	case len(r.Unknown) > 0:
		text.WriteString(r.Object + ": no write is certain\n")
	default:
		text.WriteString(r.Object + ": nothing to write\n")
	}
	if r.Status != nil {
		text.WriteString(style.Paragraph("  patch status  ", r.Status.Why))
	}
	for _, w := range r.Writes {
		text.WriteString(style.Paragraph(fmt.Sprintf("  %s %s  ", w.Verb, w.Object), w.Why))
	}
	for _, e := range r.Events {
		kind := e.Type
		if isWarning(e.Type) {
			kind = style.Worrying(e.Type)
		}
		fmt.Fprintf(&text, "  event %s %s  %s\n", kind, e.Reason, e.Note)
	}
	for _, said := range []struct {
		label     string
		sentences []string
	}{{"  asks  ", r.Asks}, {"  waits for  ", r.Waits}, {"  not known here  ", r.Unknown}} {
		for _, sentence := range said.sentences {
			text.WriteString(style.Paragraph(said.label, sentence))
		}
	}
	if r.LookAgain != "" {
		text.WriteString("It would look again after " + r.LookAgain + ".\n")
	}
	text.WriteString(style.Paragraph("Planned with ", r.Settings+"."))
	return text.String()
}
