{{/* Lines that name the values which this chart does not know and leaves aside, as a misspelt one. */}}
{{- define "ray-cluster.ignored" -}}
{{- $root := list "image" "nameOverride" "fullnameOverride" "imagePullSecrets" "annotations" "gcsFaultTolerance" "common"
  "head" "worker" "additionalWorkerGroups" "service" "extraSpec" "global" -}}
{{- $group := list "image" "rayStartParams" "initArgs" "labels" "annotations" "serviceAccountName" "restartPolicy"
  "runtimeClassName" "priorityClassName" "priority" "dnsConfig" "nodeSelector" "affinity" "tolerations"
  "topologySpreadConstraints" "resourceClaims" "podSecurityContext" "initContainers" "sidecarContainers" "volumes" "command"
  "args" "containerEnv" "envFrom" "ports" "resources" "lifecycle" "securityContext" "volumeMounts" -}}
{{- $head := concat $group (list "rayVersion" "enableInTreeAutoscaling" "autoscalerOptions" "headService") -}}
{{- $worker := concat $group (list "disabled" "replicas" "minReplicas" "maxReplicas" "numOfHosts" "extraSpec") -}}
{{- include "ray-cluster.otherKeys" (dict "of" .Values "known" $root "prefix" "") }}
{{- range $name, $known := dict "common" (list "containerEnv") "image" (list "repository" "tag" "pullPolicy")
  "gcsFaultTolerance" (list "enabled" "redisAddress" "externalStorageNamespace" "redisUsername" "redisPassword")
  "service" (list "type") }}
{{- include "ray-cluster.otherKeys" (dict "of" (get $.Values $name) "known" $known "prefix" (print $name ".")) }}
{{- end }}
{{- include "ray-cluster.otherKeys" (dict "of" .Values.head "known" $head "prefix" "head.") }}
{{- include "ray-cluster.otherKeys" (dict "of" .Values.worker "known" (append $worker "groupName") "prefix" "worker.") }}
{{- range $name, $values := get .Values "additionalWorkerGroups" }}
{{- include "ray-cluster.otherKeys" (dict "of" $values "known" $worker "prefix" (printf "additionalWorkerGroups.%s." $name)) }}
{{- end }}
{{- end -}}

{{- define "ray-cluster.otherKeys" -}}
{{- range $key := keys (default dict .of) | sortAlpha }}
{{- if not (has $key $.known) }}
  {{ $.prefix }}{{ $key }}
{{- end }}
{{- end }}
{{- end -}}
