package raycronjob

import (
	"encoding/json"
	"fmt"
	"net/http"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// table asks for the RayCronJobs as kubectl does. It returns the names of the columns, with the value where that does not
// depend on the time.
func (e *env) table() []string {
	e.t.Helper()
	web, err := rest.HTTPClientFor(e.REST)
	e.Expect(err).ToNot(HaveOccurred())
	url, _, err := rest.DefaultServerUrlFor(e.REST)
	e.Expect(err).ToNot(HaveOccurred())
	request, err := http.NewRequestWithContext(e.t.Context(), http.MethodGet, url.JoinPath("apis/ray.io/v1/namespaces", e.ns, "raycronjobs").String(), nil)
	e.Expect(err).ToNot(HaveOccurred())
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	answer, err := web.Do(request)
	e.Expect(err).ToNot(HaveOccurred())
	defer answer.Body.Close()
	var shown metav1.Table
	e.Expect(json.NewDecoder(answer.Body).Decode(&shown)).To(Succeed())
	e.Expect(shown.Rows).To(HaveLen(1))
	var cells []string
	for i, column := range shown.ColumnDefinitions {
		cell := column.Name
		if name := column.Name; name != "age" && name != "last schedule" {
			cell = fmt.Sprint(map[string]string{"Name": "name"}[name], map[bool]string{true: name}[name != "Name"], "=", shown.Rows[0].Cells[i])
		} else {
			e.Expect(fmt.Sprint(shown.Rows[0].Cells[i])).ToNot(BeEmpty())
		}
		cells = append(cells, cell)
	}
	return cells
}

// noJobs makes the API server refuse every RayJob.
func (e *env) noJobs() *corev1.ResourceQuota {
	e.t.Helper()
	none := corev1.ResourceList{"count/rayjobs.ray.io": resource.MustParse("0")}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: "jobs"}, Spec: corev1.ResourceQuotaSpec{Hard: none}}
	e.make(quota)
	// Without a controller nobody else writes this.
	quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none}
	e.Expect(e.Status().Update(e.t.Context(), quota)).To(Succeed())
	return quota
}
