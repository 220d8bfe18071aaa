{{- define "wasmgate.name" -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "wasmgate.selector" -}}
app.kubernetes.io/name: wasmgate
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "wasmgate.labels" -}}
{{ include "wasmgate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* Whether there may be several gateways. */}}
{{- define "wasmgate.several" -}}
{{- if or .Values.autoscaling.enabled (gt (int .Values.replicas) 1) }}yes{{ end }}
{{- end }}

{{/* wasmgate.yaml: what a pod needs, and what the values say. */}}
{{- define "wasmgate.config" -}}
{{- $own := dict
  "version" 1
  "listen" "0.0.0.0:7420"
  "public_url" .Values.publicURL
  "state" "/var/lib/wasmgate/state"
  "audit" (dict "path" "/var/lib/wasmgate/audit.jsonl")
  "pins" (dict "lockfile" "/var/lib/wasmgate/wasmgate.lock")
  "policy" (dict "packs" (list "grants") "data" (dict "grants" "grants.yaml"))
  "console" (dict "listen" "off")
  "telemetry" (dict "metrics" (dict "listen" "0.0.0.0:9464")) }}
{{- if .Values.store.secretName }}
{{- $_ := set $own "store" (dict "postgres" "${STORE_URL}" "secret" "${STORE_SECRET}" "node" "${POD}") }}
{{- $_ := set $own "cluster" (dict "listen" "0.0.0.0:7422" "url" "https://${POD_IP}:7422") }}
{{- $_ := set $own "sessions" (dict "scope" "principal") }}
{{- end }}
{{- if .Values.policies }}{{ $_ := set $own.policy "paths" (list "policies") }}{{ end }}
{{- if .Values.ingress.enabled }}{{ $_ := set $own "tls" (dict "terminated_by" .Values.ingress.from) }}{{ end }}
{{- toYaml (mustMergeOverwrite $own (deepCopy .Values.config)) }}
{{- end }}
