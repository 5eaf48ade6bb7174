package sim

import (
	"os"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"
)

func TestSurvey(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("SURVEY"))
	if n == 0 {
		t.SkipNow()
	}
	l := newLab(t)
	re := regexp.MustCompile(`-[a-z0-9]{5}\b`)
	by := map[string][]uint64{}
	for _, seed := range l.search(1, uint64(n), intact, 1<<30) {
		s, _ := l.draw(seed)
		k := re.ReplaceAllString(strings.SplitN(l.judge(seed)[0], "\n", 2)[0], "-XXXXX")
		by[s.name+": "+k] = append(by[s.name+": "+k], seed)
	}
	var ks []string
	for k := range by {
		ks = append(ks, k)
	}
	sort.Slice(ks, func(i, j int) bool { return len(by[ks[i]]) > len(by[ks[j]]) })
	for _, k := range ks {
		sort.Slice(by[k], func(i, j int) bool { return by[k][i] < by[k][j] })
		t.Logf("%4d %s  e.g. %v", len(by[k]), k, by[k][:min(4, len(by[k]))])
	}
}
