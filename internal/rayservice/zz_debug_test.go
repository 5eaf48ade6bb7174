package rayservice

import "testing"

func TestZZ(t *testing.T) {
	w, before, after := upgradingWorld(t, "50/50 50/50")
	w.change(image("ray:1"))
	w.until("100/75 50/25")
	w.change(image("ray:2"))
	t.Log(before, after, w.active(), w.pending(), w.shown())
	for range 4 {
		w.pass()
		t.Log(verbs(w.last.Actions), w.last.Status != nil, w.active(), w.pending(), w.shown(), w.rollsBackNow(), w.s.Service.Status.Conditions)
	}
}

func TestZZ2(t *testing.T) {
	w, before, second := upgradingWorld(t, "50/50 50/50")
	w.change(image("ray:3"), config(fruit2))
	for range 60 {
		w.pass()
		w.now = w.now.Add(1e9)
		t.Log(verbs(w.last.Actions), w.last.Status != nil, before, second, w.active(), w.pending(), w.shown(), w.rollsBackNow())
	}
}
