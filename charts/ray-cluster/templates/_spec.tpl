{{/* The RayCluster's spec, without extraSpec. */}}
{{- define "ray-cluster.spec" -}}
{{- include "ray-cluster.copy" (dict "from" .Values.head "keys" (list "enableInTreeAutoscaling" "autoscalerOptions")) }}
{{- with get .Values.head "rayVersion" }}
rayVersion: {{ include "ray-cluster.text" . | quote }}
{{- end }}
{{- with get .Values "gcsFaultTolerance" }}
{{- if get . "enabled" }}
gcsFaultToleranceOptions: {{ include "ray-cluster.faultTolerance" . | fromYaml | toJson }}
{{- end }}
{{- end }}
headGroupSpec:
  {{- with get (default dict (get .Values "service")) "type" }}
  serviceType: {{ . }}
  {{- end }}
  {{- include "ray-cluster.copy" (dict "from" .Values.head "keys" (list "headService")) | indent 2 }}
  {{- include "ray-cluster.group" (dict "root" . "values" .Values.head "container" "ray-head") | nindent 2 }}
{{- with include "ray-cluster.workerGroups" . }}
workerGroupSpecs:
  {{- . }}
{{- end }}
{{- end -}}

{{/* Fields of gcsFaultToleranceOptions. There may be none: that they are there switches fault tolerance on. */}}
{{- define "ray-cluster.faultTolerance" -}}
{{- include "ray-cluster.copy" (dict "from" . "keys" (list "redisAddress" "externalStorageNamespace")) }}
{{- range $key := list "redisUsername" "redisPassword" }}
{{- with get $ $key }}
{{ $key }}:
  {{- include "ray-cluster.credential" . | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The items of workerGroupSpecs: the group of the value "worker", then the additional ones by name. */}}
{{- define "ray-cluster.workerGroups" -}}
{{- if not (get .Values.worker "disabled") }}
{{- include "ray-cluster.workerGroup" (dict "root" . "name" .Values.worker.groupName "values" .Values.worker) }}
{{- end }}
{{- range $name, $values := get .Values "additionalWorkerGroups" }}
{{- if not (or (kindIs "invalid" $values) (get (default dict $values) "disabled")) }}
{{- include "ray-cluster.workerGroup" (dict "root" $ "name" $name "values" $values) }}
{{- end }}
{{- end }}
{{- end -}}

{{/* One item of workerGroupSpecs. */}}
{{- define "ray-cluster.workerGroup" -}}
{{- $values := .values }}
{{- if not (get $values "resources") }}
{{- $values = merge (dict "resources" (include "ray-cluster.workerResources" . | fromYaml)) $values }}
{{- end }}
{{- $group := include "ray-cluster.workerGroupSpec" (dict "root" .root "name" .name "values" $values) | fromYaml }}
{{ list (mustMergeOverwrite $group (default dict (get $values "extraSpec"))) | toYaml }}
{{- end -}}

{{- define "ray-cluster.workerGroupSpec" -}}
groupName: {{ .name | quote }}
{{- range $key, $fallback := dict "replicas" "" "minReplicas" "0" "maxReplicas" "2147483647" "numOfHosts" "" }}
{{- with include "ray-cluster.text" (get $.values $key) | default $fallback }}
{{ $key }}: {{ . }}
{{- end }}
{{- end }}
{{ include "ray-cluster.group" (dict "root" .root "values" .values "container" "ray-worker") }}
{{- end -}}

{{/* What the head's group and a group of workers have in common. */}}
{{- define "ray-cluster.group" -}}
{{- $params := mergeOverwrite (dict) (default dict (get .values "initArgs")) (default dict (get .values "rayStartParams")) }}
{{- with $params }}
rayStartParams:
  {{- range $key, $value := . }}
  {{ $key | quote }}: {{ include "ray-cluster.text" $value | quote }}
  {{- end }}
{{- end }}
template:
  {{- $metadata := include "ray-cluster.copy" (dict "from" .values "keys" (list "labels" "annotations")) }}
  {{- with $metadata }}
  metadata:
    {{- . | indent 4 }}
  {{- end }}
  spec:
    {{- include "ray-cluster.pod" . | indent 4 }}
    containers:
      {{- include "ray-cluster.container" . | nindent 6 }}
      {{- with get .values "sidecarContainers" }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
{{- end -}}

{{/* The Pod's fields, without its containers. */}}
{{- define "ray-cluster.pod" -}}
{{- include "ray-cluster.copy" (dict "from" .root.Values "keys" (list "imagePullSecrets")) }}
{{- include "ray-cluster.copy" (dict "from" .values "keys" (list
  "serviceAccountName" "restartPolicy" "runtimeClassName" "priorityClassName" "priority" "dnsConfig" "nodeSelector"
  "affinity" "tolerations" "topologySpreadConstraints" "resourceClaims" "initContainers" "volumes")) }}
{{- with get .values "podSecurityContext" }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The container that runs Ray, as the first item of a list. */}}
{{- define "ray-cluster.container" -}}
{{- $image := merge (dict) (default dict (get .values "image")) .root.Values.image }}
- name: {{ .container }}
  image: {{ $image.repository }}{{ with include "ray-cluster.text" $image.tag }}:{{ . }}{{ end }}
  imagePullPolicy: {{ $image.pullPolicy }}
  {{- with concat (default list (get (default dict (get .root.Values "common")) "containerEnv")) (default list (get .values "containerEnv")) }}
  env:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- include "ray-cluster.copy" (dict "from" .values "keys" (list
    "command" "args" "envFrom" "ports" "resources" "volumeMounts" "lifecycle" "securityContext")) | indent 2 }}
{{- end -}}
