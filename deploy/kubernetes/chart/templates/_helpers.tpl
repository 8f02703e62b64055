{{- define "siding.labels" -}}
app.kubernetes.io/name: siding
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- /* Of the controller's pods. A label that changes from version to version may not be in a selector. */ -}}
{{- define "siding.controller" -}}
app.kubernetes.io/name: siding
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: controller
{{- end }}

{{- define "siding.agent" -}}
app.kubernetes.io/name: siding
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: agent
{{- end }}

{{- /* Labels of nodes with agents, and so of those that pods of the class come to. */ -}}
{{- define "siding.agentNodes" -}}
{{- toYaml (merge (dict "kubernetes.io/os" "linux" "kubernetes.io/arch" "amd64") .Values.agent.nodeSelector) }}
{{- end }}

{{- define "siding.agents" -}}
{{ .Values.agent.namespace | default (printf "%s-agents" .Release.Namespace) }}
{{- end }}

{{- /* What agents dial: each controller by a name of its own, so that they know which one they have tried. */ -}}
{{- define "siding.dial" -}}
{{- range $i := until (int .Values.replicas) -}}
{{- if $i }},{{ end -}}
{{ $.Release.Name }}-{{ $i }}.{{ $.Release.Name }}.{{ $.Release.Namespace }}.svc:{{ int $.Values.tls.port }}
{{- end -}}
{{- end }}

{{- define "siding.sidingd" -}}
socket: /run/siding/siding.sock
state_dir: /var/lib/siding/controller
policy: /etc/siding/policy/policy.yaml
metrics_port: {{ int .Values.metrics.port }}
metrics_address: {{ .Values.metrics.address | quote }}
{{- if eq .Values.persistence.accessMode "ReadWriteMany" }}
# A controller on another host may have the same folder.
shared_state: true
{{- end }}
{{- if eq (int .Values.replicas) 2 }}
standby: true
{{- end }}
{{- with .Values.tls }}
{{- if .secret }}
# Of IPv6 and IPv4.
listen: "[::]:{{ int .port }}"
tls: {ca: /etc/siding/tls/ca.pem, certificate: /etc/siding/tls/controller.pem, key: /etc/siding/tls/controller.key}
{{- end }}
{{- end }}
kubernetes:
  mode: {{ .Values.kubernetes.mode }}
  namespace: {{ .Release.Namespace }}
  leave_alone: {{ append .Values.kubernetes.leaveAlone .Release.Namespace | uniq | toJson }}
{{- with .Values.kubernetes.hostPaths }}
{{- if or .readOnly .readWrite }}
  host_paths: {read_only: {{ toJson .readOnly }}, read_write: {{ toJson .readWrite }}}
{{- end }}
{{- end }}
{{- if .Values.webhook.enabled }}
  webhook: {port: {{ int .Values.webhook.port }}, address: {{ .Values.webhook.address | quote }}, certificate: /etc/siding/tls/controller.pem, key: /etc/siding/tls/controller.key}
{{- end }}
{{- with .Values.config }}
{{- range $own := list "socket" "state_dir" "policy" "metrics_port" "metrics_address" "shared_state" "standby" "listen" "tls" "kubernetes" "slurm" }}
{{- if hasKey $.Values.config $own }}{{ fail (printf "config.%s: expected nothing: the chart writes it itself" $own) }}{{ end }}
{{- end }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Values that do not go together; each template that makes something of them asks. */ -}}
{{- define "siding.check" -}}
{{- $replicas := int .Values.replicas -}}
{{- if not (has $replicas (list 1 2)) }}{{ fail "replicas: expected 1, or 2 of which one stands by" }}{{ end -}}
{{- $mode := .Values.persistence.accessMode -}}
{{- if not (has $mode (list "ReadWriteOnce" "ReadWriteOncePod" "ReadWriteMany")) }}
{{- fail "persistence.accessMode: expected ReadWriteOnce, ReadWriteOncePod or ReadWriteMany" }}
{{- end -}}
{{- if and (eq $replicas 2) (ne $mode "ReadWriteMany") }}
{{- fail "replicas: 2 needs persistence.accessMode: ReadWriteMany: both have the same journal, and may be on different nodes" }}
{{- end -}}
{{- if and .Values.webhook.enabled (not .Values.tls.secret) }}
{{- fail "webhook.enabled needs tls.secret: the API server asks with TLS alone" }}
{{- end -}}
{{- if and .Values.webhook.enabled (not .Values.webhook.caBundle) }}
{{- fail "webhook.enabled needs webhook.caBundle: without the authority the API server believes no certificate" }}
{{- end -}}
{{- $saves := eq .Values.kubernetes.mode "checkpointing" -}}
{{- if not (has .Values.kubernetes.mode (list "evicting" "checkpointing")) }}
{{- fail "kubernetes.mode: expected evicting or checkpointing" }}
{{- end -}}
{{- if and $saves (not .Values.agent.enabled) }}
{{- fail "kubernetes.mode: checkpointing needs agent.enabled: pods are saved by the agent of their node" }}
{{- end -}}
{{- if and .Values.agent.enabled (not $saves) }}
{{- fail "agent.enabled needs kubernetes.mode: checkpointing: pods are evicted without agents" }}
{{- end -}}
{{- if and .Values.agent.enabled (not .Values.agent.sharedDir) }}
{{- fail "agent.enabled needs agent.sharedDir: a folder that all nodes see, where images of pods are kept" }}
{{- end -}}
{{- range $field := list "certificates" "stateDir" "sharedDir" "programs" "podsSocket" "runc" "criu" }}
{{- $path := index $.Values.agent $field }}
{{- if and $path (not (hasPrefix "/" $path)) }}{{ fail (printf "agent.%s: expected an absolute path of the nodes" $field) }}{{ end }}
{{- end -}}
{{- if and .Values.agent.enabled (not .Values.tls.secret) }}
{{- fail "agent.enabled needs tls.secret: agents reach the controller by certificates alone" }}
{{- end -}}
{{- if and .Values.agent.enabled (eq (include "siding.agents" .) .Release.Namespace) }}
{{- fail "agent.namespace: expected another than the controller's: agents need what is forbidden there" }}
{{- end -}}
{{- end }}
