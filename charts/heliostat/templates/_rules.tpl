{{/*
What the operator may do, for the ClusterRole and for the Roles of single namespaces alike. The file is generated from
internal/action/rights.go; the table in the chart's README says what each right is for, and a test compares the two.
*/}}
{{- define "heliostat.rules" -}}
{{ .Files.Get "files/rules.yaml" }}
{{- end -}}

{{/* What a replica may do to win, to keep and to give back the Lease, in the namespace of the release. */}}
{{- define "heliostat.leaderElectionRules" -}}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [ray-operator-leader]
  verbs: [get, update]
{{- end -}}
