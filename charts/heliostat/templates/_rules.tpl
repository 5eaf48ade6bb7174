{{/*
What the operator may do, for the ClusterRole and for the Roles of single namespaces alike. The file is generated from
internal/action/rights.go; the table in the chart's README says what each right is for, and a test compares the two.
*/}}
{{- define "heliostat.rules" -}}
{{ .Files.Get "files/rules.yaml" }}
{{- if .Values.useKubernetesProxy }}
- apiGroups:
  - ""
  resources:
  - services/proxy
  verbs:
  - create
  - get
  - update
- apiGroups:
  - ""
  resources:
  - pods/proxy
  verbs:
  - get
{{- end }}
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
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end -}}

{{/* What a replica may do to name itself as the holder, in the whole cluster: a Holder belongs to no namespace. */}}
{{- define "heliostat.fenceRules" -}}
- apiGroups: [heliostat.io]
  resources: [holders]
  verbs: [create]
- apiGroups: [heliostat.io]
  resources: [holders]
  resourceNames: [{{ .Release.Namespace }}]
  verbs: [get, update]
- apiGroups: [heliostat.io]
  resources: [holders/status]
  resourceNames: [{{ .Release.Namespace }}]
  verbs: [update]
{{- end -}}
