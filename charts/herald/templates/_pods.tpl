{{/* A pod's metadata and the start of its spec. Takes a dict with root and process. */}}
{{- define "herald.pod.metadata" -}}
{{- $values := get .root.Values .process -}}
annotations:
  kubectl.kubernetes.io/default-container: {{ .process }}
  checksum/config: {{ include (printf "herald.configuration.%s" .process) .root | sha256sum }}
  {{- with $values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
labels:
  {{- include "herald.podLabels" (dict "root" .root "component" .process) | nindent 2 }}
  {{- with $values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "herald.pod.spec" -}}
{{- $values := get .root.Values .process -}}
serviceAccountName: {{ include "herald.fullname" .root }}-{{ .process }}
enableServiceLinks: false
terminationGracePeriodSeconds: {{ $values.terminationGracePeriodSeconds }}
securityContext:
  {{- toYaml .root.Values.podSecurityContext | nindent 2 }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . }}
{{- end }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
{{- toYaml . | nindent 0 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.topologySpreadConstraints }}
topologySpreadConstraints:
{{- $selector := include "herald.selector" (dict "root" $.root "component" $.process) | fromYaml }}
{{- range . }}
- {{ toYaml (merge (dict) . (dict "labelSelector" (dict "matchLabels" $selector))) | indent 2 | trim }}
{{- end }}
{{- end }}
{{- end }}

{{- define "herald.container.security" -}}
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
readOnlyRootFilesystem: true
{{- end }}

{{/* The environment of a process. Takes a dict with root and process. */}}
{{- define "herald.container.env" -}}
{{- include "herald.container.ownEnv" . }}
{{- with (get .root.Values .process).env }}
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}

{{/* The variables that the chart sets, which users' values may not contain. Takes the same dict. */}}
{{- define "herald.container.ownEnv" -}}
{{- $values := get .root.Values .process -}}
{{- $limit := dig "limits" "memory" "" $values.resources }}
{{- with include "herald.memoryLimit" $limit }}
- name: GOMEMLIMIT
  value: {{ . | quote }}
{{- end }}
{{- if .root.Values.evaluation.enabled }}
{{- include "herald.container.storeKeys" (dict "secret" (printf "%s-store" (include "herald.fullname" .root)) "accessKey" "access-key" "secretKey" "secret-key") }}
{{- else if .root.Values.media.credentials.name }}
{{- with .root.Values.media.credentials }}
{{- include "herald.container.storeKeys" (dict "secret" .name "accessKey" .accessKey "secretKey" .secretKey) }}
{{- end }}
{{- end }}
{{- with .root.Values.proxy }}
{{- if or .https .http }}
{{- with .https }}
- name: HTTPS_PROXY
  value: {{ . | quote }}
{{- end }}
{{- with .http }}
- name: HTTP_PROXY
  value: {{ . | quote }}
{{- end }}
- name: NO_PROXY
  value: {{ concat (list "$(KUBERNETES_SERVICE_HOST)" "localhost" "127.0.0.1" "::1" ".svc" ".cluster.local") .bypass | join "," | quote }}
{{- end }}
{{- end }}
{{- if .root.Values.caBundle.configMap }}
- name: SSL_CERT_DIR
  value: /etc/herald/ca
{{- end }}
{{- with (.root.Values.tracing).headers }}
{{- if .name }}
- name: OTEL_EXPORTER_OTLP_HEADERS
  valueFrom:
    secretKeyRef: {name: {{ .name }}, key: {{ .key }}}
{{- end }}
{{- end }}
{{- end }}

{{- define "herald.container.storeKeys" }}
- name: AWS_ACCESS_KEY_ID
  valueFrom:
    secretKeyRef: {name: {{ .secret }}, key: {{ .accessKey }}}
- name: AWS_SECRET_ACCESS_KEY
  valueFrom:
    secretKeyRef: {name: {{ .secret }}, key: {{ .secretKey }}}
{{- end }}

{{/* Volumes of a process, each mounted under /etc/herald. Takes a dict with root and process. */}}
{{- define "herald.pod.volumes" -}}
{{- $name := include "herald.fullname" .root -}}
- name: config
  configMap:
    name: {{ $name }}-{{ .process }}
{{- with .root.Values.caBundle }}
{{- if .configMap }}
- name: ca
  configMap:
    name: {{ .configMap }}
    items:
    - {key: {{ .key }}, path: ca.crt}
{{- end }}
{{- end }}
{{- with .root.Values.metrics.certificateSecret }}
- name: metrics
  secret:
    secretName: {{ . }}
{{- end }}
{{- if eq .process "manager" }}
{{- if include "herald.unsavedTokens" .root }}
- name: unsaved
  emptyDir: {sizeLimit: 64Mi}
- name: unsaved-key
  secret:
    secretName: {{ include "herald.unsavedTokens" .root }}
    items:
    - {key: {{ .root.Values.manager.unsavedTokens.key.key }}, path: key}
{{- end }}
{{- if and .root.Values.smtp.host .root.Values.smtp.password.name }}
- name: smtp
  secret:
    secretName: {{ .root.Values.smtp.password.name }}
    items:
    - {key: {{ .root.Values.smtp.password.key }}, path: password}
{{- end }}
{{- if and .root.Values.webhook.enabled .root.Values.webhook.certManager.enabled }}
- name: webhook
  secret:
    secretName: {{ $name }}-webhook-certificate
{{- end }}
{{- else }}
{{- if include "herald.tls.secret" .root }}
- name: tls
  secret:
    secretName: {{ include "herald.tls.secret" .root }}
{{- end }}
{{- with ((.root.Values.web).oidc).clientSecret }}
{{- if and .name (include "herald.web" $.root) }}
- name: oidc
  secret:
    secretName: {{ .name }}
    items:
    - {key: {{ .key }}, path: client-secret}
{{- end }}
{{- end }}
{{- end }}
{{- if or (eq .process "manager") (include "herald.web" .root) }}
{{- with include "herald.pod.clientSecrets" .root }}
- name: platforms
  projected:
    sources:
    {{- . | nindent 4 }}
{{- end }}
{{- end }}
{{- end }}

{{/* The secrets of the platforms' apps. */}}
{{- define "herald.pod.clientSecrets" -}}
{{- if .Values.evaluation.enabled -}}
- secret:
    name: {{ include "herald.fullname" . }}-store
    items:
    - {key: secret-key, path: evaluation/client-secret}
{{- else -}}
{{- range $name, $platform := .Values.platforms -}}
{{- $secret := dig "clientSecret" "name" "" $platform -}}
{{- if and $platform.enabled $secret }}
- secret:
    name: {{ $secret }}
    items:
    - {key: {{ $platform.clientSecret.key }}, path: {{ $name }}/client-secret}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The Secret with the key for renewed tokens that are not stored yet; nothing if they are not kept. */}}
{{- define "herald.unsavedTokens" -}}
{{- with .Values.manager.unsavedTokens -}}
{{- if .enabled -}}
{{- .key.name | default (printf "%s-unsaved-tokens" (include "herald.fullname" $)) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The mounts of a process's volumes: each under its own name, and read-only unless the process writes to it. */}}
{{- define "herald.container.mounts" -}}
{{- range include "herald.pod.volumes" . | fromYamlArray }}
- name: {{ .name }}
  {{- if hasKey . "emptyDir" }}
  mountPath: /var/lib/herald/{{ .name }}
  {{- else }}
  mountPath: /etc/herald/{{ .name }}
  readOnly: true
  {{- end }}
{{- end }}
{{- end }}
