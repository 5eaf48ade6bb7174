{{/*
What the operator may do, for the ClusterRole and for the Roles of single namespaces alike. The table in the chart's
README says what each right is for, and a test lists them all: whoever adds a right changes the three together.
*/}}
{{- define "heliostat.rules" -}}
- apiGroups: [""]
  resources: [pods]
  verbs: [create, delete, get, list, watch]
- apiGroups: [""]
  resources: [services]
  verbs: [create, delete, get, list, patch, watch]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [create, delete, get, list, watch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
- apiGroups: [ray.io]
  resources: [rayclusters]
  verbs: [create, delete, get, list, patch, watch]
- apiGroups: [ray.io]
  resources: [rayjobs]
  verbs: [get, list, patch, watch]
- apiGroups: [ray.io]
  resources: [rayclusters/status, rayjobs/status]
  verbs: [get, patch, update]
- apiGroups: [ray.io]
  resources: [rayclusters/finalizers, rayjobs/finalizers]
  verbs: [update]
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
