{{/*
Name of the RayCluster. A RayCluster may have 53 characters, none of them a dot; a release may have 53 and dots.
*/}}
{{- define "ray-cluster.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $fullname := printf "%s-%s" .Release.Name $name -}}
{{- if .Values.fullnameOverride -}}
{{- $fullname = .Values.fullnameOverride -}}
{{- else if contains $name .Release.Name -}}
{{- $fullname = .Release.Name -}}
{{- end -}}
{{- $fullname | replace "." "-" | trunc 53 | trimAll "-" -}}
{{- end -}}

{{/* Labels of the RayCluster. Its Pods do not get them, so that a new version of the chart changes no Pod. */}}
{{- define "ray-cluster.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* Resources of a group of workers whose values name none; Ray's autoscaler fails on a group without a number of CPUs. */}}
{{- define "ray-cluster.workerResources" -}}
limits: {cpu: "1", memory: 1Gi}
requests: {cpu: "1", memory: 1Gi}
{{- end -}}

{{/* Those of the given keys that have a value in the given map, as they stand there. */}}
{{- define "ray-cluster.copy" -}}
{{- range $key := .keys }}
{{- with get $.from $key }}
{{ toYaml (dict $key .) }}
{{- end }}
{{- end }}
{{- end -}}

{{/* A value that must be text. Helm reads a large number as a floating one and would write it as 1e+10. */}}
{{- define "ray-cluster.text" -}}
{{- if kindIs "invalid" . -}}
{{- else if and (kindIs "float64" .) (eq (floor .) .) -}}
{{- printf "%.0f" . -}}
{{- else -}}
{{- toString . -}}
{{- end -}}
{{- end -}}

{{/* A credential of Redis, written as text or as a reference. */}}
{{- define "ray-cluster.credential" -}}
{{- if kindIs "map" . -}}
{{- toYaml . -}}
{{- else -}}
value: {{ include "ray-cluster.text" . | quote }}
{{- end -}}
{{- end -}}
