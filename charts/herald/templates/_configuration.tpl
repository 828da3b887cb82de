{{/* The platforms' sections of the configuration files. An apiserver without the web application has no secrets. Takes a dict with
root and process. */}}
{{- define "herald.platforms" -}}
{{- $all := dict -}}
{{- $secrets := or (eq .process "manager") (include "herald.web" .root) -}}
{{- $evaluation := .root.Values.evaluation.enabled -}}
{{- if $evaluation -}}
{{- $url := printf "http://%s-sandbox.%s.svc:9100" (include "herald.fullname" .root) .root.Release.Namespace -}}
{{- $_ := set $all "sandbox" (dict "url" $url "publicURL" (include "herald.evaluation.sandboxURL" .root)) -}}
{{- end -}}
{{- range $name, $platform := .root.Values.platforms -}}
{{- if $evaluation -}}
{{- $section := dict "clientID" "evaluation" "listingLag" "5s" -}}
{{- if $secrets -}}
{{- $_ := set $section "clientSecretFile" "/etc/herald/platforms/evaluation/client-secret" -}}
{{- end -}}
{{- $_ := set $all $name $section -}}
{{- else if $platform.enabled -}}
{{- $section := deepCopy $platform.config -}}
{{- if $platform.clientID -}}
{{- $_ := set $section "clientID" $platform.clientID -}}
{{- else if and (eq $name "bluesky") (dig "clientSecret" "name" "" $platform) -}}
{{- $_ := set $section "clientID" (printf "%s/oauth/bluesky/client-metadata.json" (include "herald.siteURL" $.root)) -}}
{{- end -}}
{{- if and $secrets (dig "clientSecret" "name" "" $platform) -}}
{{- $_ := set $section "clientSecretFile" (printf "/etc/herald/platforms/%s/client-secret" $name) -}}
{{- end -}}
{{- $_ := set $all $name $section -}}
{{- end -}}
{{- end -}}
{{- toYaml $all -}}
{{- end }}

{{/* The store's section of the configuration files; nothing without a store. In a trial, browsers use another address: only the apiserver
signs URLs for it, since the simulated platforms fetch the manager's URLs from within the cluster. */}}
{{- define "herald.media" -}}
{{- if .Values.evaluation.enabled -}}
endpoint: http://{{ include "herald.fullname" . }}-store.{{ .Release.Namespace }}.svc:9000
region: us-east-1
bucket: herald-media
pathStyle: true
{{- else if .Values.media.endpoint -}}
{{- with .Values.media -}}
endpoint: {{ .endpoint | quote }}
{{- with .publicEndpoint }}
publicEndpoint: {{ . | quote }}
{{- end }}
region: {{ .region | quote }}
bucket: {{ .bucket | quote }}
pathStyle: {{ .pathStyle }}
{{- with .takeOverFrom }}
takeOverFrom: {{ . | quote }}
{{- end }}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The fields that both processes' files have. Takes a dict with root and process. */}}
{{- define "herald.configuration.common" -}}
{{- with .root.Values.namespaces }}
namespaces:
  {{- toYaml . | nindent 2 }}
{{- end }}
health:
  bindAddress: ":8081"
metrics:
  bindAddress: ":8443"
  {{- if .root.Values.metrics.plain }}
  plain: true
  {{- else if .root.Values.metrics.certificateSecret }}
  certDir: /etc/herald/metrics
  {{- end }}
{{- with .root.Values.tracing }}
{{- if .endpoint }}
tracing:
  endpoint: {{ .endpoint | quote }}
  {{- if hasKey . "samplingRatio" }}
  samplingRatio: {{ .samplingRatio }}
  {{- end }}
{{- end }}
{{- end }}
{{- with include "herald.media" .root }}
media:
  {{- . | nindent 2 }}
  {{- if and $.root.Values.evaluation.enabled (eq $.process "apiserver") }}
  publicEndpoint: {{ include "herald.evaluation.storeURL" $.root | quote }}
  {{- end }}
{{- end }}
platforms:
  {{- include "herald.platforms" . | nindent 2 }}
{{- end }}

{{- define "herald.configuration.manager" -}}
apiVersion: config.herald.dev/v1alpha1
kind: ManagerConfiguration
releaseName: {{ include "herald.fullname" . }}
{{- if or .Values.manager.config.delivery.shareUploads (gt (int .Values.manager.config.delivery.shards) 1) }}
replicas: {{ .Values.manager.replicas }}
{{- end }}
{{- if include "herald.web" . }}
siteURL: {{ include "herald.siteURL" . }}
{{- end }}
{{- include "herald.configuration.common" (dict "root" . "process" "manager") }}
webhook:
{{- if not .Values.webhook.enabled }}
  bindAddress: "0"
{{- else }}
  bindAddress: ":9443"
  {{- if .Values.webhook.certManager.enabled }}
  certDir: /etc/herald/webhook
  {{- end }}
{{- end }}
{{- if include "herald.unsavedTokens" . }}
credentials:
  unsaved:
    directory: /var/lib/herald/unsaved
    keyFile: /etc/herald/unsaved-key/key
{{- end }}
thumbnails:
  ffmpeg: {{ ternary "ffmpeg" "" .Values.thumbnails.enabled | quote }}
{{- with .Values.smtp }}
{{- if .host }}
notifications:
  smtp:
    host: {{ .host | quote }}
    port: {{ .port }}
    from: {{ .from | quote }}
    tls: {{ .tls }}
    {{- if .password.name }}
    username: {{ .username | quote }}
    passwordFile: /etc/herald/smtp/password
    {{- end }}
{{- end }}
{{- end }}
{{- if .Values.caBundle.configMap }}
egress:
  caBundle: /etc/herald/ca/ca.crt
{{- end }}
{{ toYaml .Values.manager.config }}
{{- end }}

{{- define "herald.configuration.apiserver" -}}
apiVersion: config.herald.dev/v1alpha1
kind: APIServerConfiguration
siteURL: {{ include "herald.siteURL" . }}
bindAddress: ":8080"
{{- if include "herald.tls.secret" . }}
tls:
  certFile: /etc/herald/tls/tls.crt
  keyFile: /etc/herald/tls/tls.key
{{- end }}
{{- include "herald.configuration.common" (dict "root" . "process" "apiserver") }}
{{ toYaml .Values.apiserver.config }}
mcp:
  enabled: {{ dig "enabled" true (default dict .Values.mcp) }}
web:
  {{- if include "herald.web" . }}
  enabled: true
  signInSecret: {{ include "herald.fullname" . }}-web
  rolePrefix: {{ include "herald.fullname" . }}
  {{- if (.Values.smtp).host }}
  emailNotifications: true
  {{- end }}
  {{- with include "herald.oidc" . }}
  oidc:
    {{- . | nindent 4 }}
  {{- end }}
  {{- else }}
  enabled: false
  {{- end }}
{{- end }}

{{/* The OpenID Connect provider's section; nothing without one. */}}
{{- define "herald.oidc" -}}
{{- with (.Values.web).oidc -}}
{{- if .issuerURL -}}
issuerURL: {{ .issuerURL | quote }}
clientID: {{ .clientID | quote }}
{{- if (.clientSecret).name }}
clientSecretFile: /etc/herald/oidc/client-secret
{{- end }}
usernameClaim: {{ .usernameClaim | quote }}
usernamePrefix: {{ .usernamePrefix | quote }}
groupsClaim: {{ .groupsClaim | quote }}
groupsPrefix: {{ .groupsPrefix | quote }}
{{- with .scopes }}
scopes: {{ toJson . }}
{{- end }}
{{- end -}}
{{- end -}}
{{- end }}
