{{/* Value of app.kubernetes.io/name. */}}
{{- define "heliostat.name" -}}
{{- default "kuberay-operator" .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Name of the Deployment and of most other objects. */}}
{{- define "heliostat.fullname" -}}
{{- default "kuberay-operator" .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Name of the service account, made by this chart or not. */}}
{{- define "heliostat.serviceAccountName" -}}
{{- default "kuberay-operator" .Values.serviceAccount.name -}}
{{- end -}}

{{/* Labels by which the Deployment and the Service select Pods. They can never change after the first install. */}}
{{- define "heliostat.selectorLabels" -}}
app.kubernetes.io/name: {{ include "heliostat.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Labels of every object. */}}
{{- define "heliostat.labels" -}}
{{ include "heliostat.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{/* Namespaces that the operator watches, as a comma list; empty means all. */}}
{{- define "heliostat.watchNamespace" -}}
{{- if .Values.watchNamespace -}}
{{- join "," .Values.watchNamespace -}}
{{- else if .Values.singleNamespaceInstall -}}
{{- .Release.Namespace -}}
{{- end -}}
{{- end -}}

{{/* Path of the log file, or empty. */}}
{{- define "heliostat.logFile" -}}
{{- if and .Values.logging.baseDir .Values.logging.fileName -}}
{{- printf "%s/%s" (trimSuffix "/" .Values.logging.baseDir) .Values.logging.fileName -}}
{{- end -}}
{{- end -}}

{{/* Value of --feature-gates. */}}
{{- define "heliostat.featureGates" -}}
{{- $gates := list -}}
{{- range .Values.featureGates -}}
{{- $gates = append $gates (printf "%s=%t" .name .enabled) -}}
{{- end -}}
{{- join "," $gates -}}
{{- end -}}

{{/* Value of fencing; YAML takes an unquoted off for false. */}}
{{- define "heliostat.fencing" -}}
{{- if eq (toString .Values.fencing) "false" -}}off{{- else -}}{{- .Values.fencing -}}{{- end -}}
{{- end -}}

{{/*
Whether the fence is installed, empty if not. With fencing auto it is where the API server has what it needs, and where
objects of the whole cluster are made anyway.
*/}}
{{- define "heliostat.fenced" -}}
{{- if .Values.leaderElectionEnabled -}}
{{- if eq (include "heliostat.fencing" .) "required" -}}
true
{{- else if and (eq (include "heliostat.fencing" .) "auto") (not .Values.singleNamespaceInstall) -}}
{{- $served := .Capabilities.APIVersions -}}
{{- if and ($served.Has "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy") ($served.Has "heliostat.io/v1alpha1/Holder") -}}
true
{{- end -}}
{{- end -}}
{{- else if eq (include "heliostat.fencing" .) "required" -}}
{{- fail "fencing: required needs leaderElectionEnabled: true, because only a leader can be fenced" -}}
{{- end -}}
{{- end -}}

{{/* Arguments of the operator. */}}
{{- define "heliostat.args" -}}
{{- if and .Values.batchScheduler.enabled .Values.batchScheduler.name -}}
{{- fail "batchScheduler.enabled and batchScheduler.name must not be set together: enabled is the old way to choose volcano" -}}
{{- end -}}
{{- if .Values.configuration.enabled }}
- --config
- /etc/kuberay/config.yaml
{{- else }}
{{- if .Values.batchScheduler.enabled }}
- --enable-batch-scheduler
{{- end }}
{{- with .Values.batchScheduler.name }}
- --batch-scheduler={{ . }}
{{- end }}
{{- with include "heliostat.watchNamespace" . }}
- --watch-namespace={{ . }}
{{- end }}
{{- with include "heliostat.logFile" . }}
- --log-file-path={{ . }}
{{- end }}
- --log-stdout-encoder={{ .Values.logging.stdoutEncoder }}
- --log-file-encoder={{ .Values.logging.fileEncoder }}
{{- if .Values.useKubernetesProxy }}
- --use-kubernetes-proxy=true
{{- end }}
- --enable-leader-election={{ .Values.leaderElectionEnabled }}
- --fencing={{ include "heliostat.fencing" . }}
- --enable-metrics={{ .Values.metrics.enabled }}
- --reconcile-concurrency={{ int64 .Values.reconcileConcurrency }}
- --qps={{ .Values.kubeClient.qps }}
- --burst={{ int64 .Values.kubeClient.burst }}
{{- end }}
{{- with include "heliostat.featureGates" . }}
- --feature-gates={{ . }}
{{- end }}
{{- end -}}
