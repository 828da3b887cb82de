{{/* The prefix of all object names. The manager derives the same names from releaseName in its configuration. */}}
{{- define "herald.fullname" -}}
{{- $name := default .Release.Name .Values.fullnameOverride -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]{0,41}[a-z0-9])?$" $name) -}}
{{- fail (printf "\n\nherald: the names of objects cannot begin with %q, the name of the release: set fullnameOverride to small letters, digits and dashes, a letter first, 43 characters at most" $name) -}}
{{- end -}}
{{- $name -}}
{{- end }}

{{/* Labels for every object. */}}
{{- define "herald.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 }}
app.kubernetes.io/name: herald
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ include "herald.tag" . | trunc 63 | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Labels that select the pods of a component; they never change. Takes a dict with root and component. */}}
{{- define "herald.selector" -}}
app.kubernetes.io/name: herald
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* Labels of an object that belongs to a component. */}}
{{- define "herald.componentLabels" -}}
{{ include "herald.labels" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* Labels of pods, without the chart's version, which alone must not restart them. */}}
{{- define "herald.podLabels" -}}
{{ include "herald.selector" . }}
app.kubernetes.io/version: {{ include "herald.tag" .root | trunc 63 | quote }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "herald.tag" -}}
{{- default .Chart.AppVersion .Values.image.tag -}}
{{- end }}

{{/* An image of the same version. Takes a dict with root and ending, which is appended to the repository's name. */}}
{{- define "herald.image" -}}
{{- $image := .root.Values.image -}}
{{- $repository := printf "%s%s" $image.repository .ending -}}
{{- if and $image.digest (not .ending) -}}
{{- printf "%s@%s" $repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository (include "herald.tag" .root) -}}
{{- end -}}
{{- end }}

{{/* The site's address, without a trailing slash. */}}
{{- define "herald.siteURL" -}}
{{- if .Values.siteURL -}}
{{- trimSuffix "/" .Values.siteURL -}}
{{- else if .Values.evaluation.enabled -}}
{{- "http://127.0.0.1:8080" -}}
{{- end -}}
{{- end }}

{{/* The addresses of a trial's simulated platforms and store for browsers, without a trailing slash. The defaults are for the values of an
older chart that did not have them. */}}
{{- define "herald.evaluation.sandboxURL" -}}
{{- .Values.evaluation.sandboxURL | default "http://127.0.0.1:9100" | trimSuffix "/" -}}
{{- end }}
{{- define "herald.evaluation.storeURL" -}}
{{- .Values.evaluation.storeURL | default "http://127.0.0.1:9000" | trimSuffix "/" -}}
{{- end }}

{{/* Whether the web application is installed. It is unless the values disable it, even with the values of an older chart that did not have it. */}}
{{- define "herald.web" -}}
{{- if dig "enabled" true (default dict .Values.web) -}}true{{- end -}}
{{- end }}

{{/* The host of the site's address, without its port. */}}
{{- define "herald.host" -}}
{{- $address := get (urlParse (include "herald.siteURL" .)) "host" -}}
{{- regexReplaceAll ":[0-9]+$" $address "" -}}
{{- end }}

{{/* A duration in seconds, as a number. */}}
{{- define "herald.seconds" -}}
{{- $sum := 0.0 -}}
{{- $units := dict "h" 3600.0 "m" 60.0 "s" 1.0 "ms" 0.001 -}}
{{- range regexFindAll "[0-9]+(\\.[0-9]+)?(ms|s|m|h)" (toString .) -1 -}}
{{- $number := regexFind "^[0-9]+(\\.[0-9]+)?" . | float64 -}}
{{- $sum = addf $sum (mulf $number (get $units (regexFind "[a-z]+$" .))) -}}
{{- end -}}
{{- $sum -}}
{{- end }}

{{/* Nine tenths of a quantity of memory, in bytes; nothing for an unknown unit. */}}
{{- define "herald.memoryLimit" -}}
{{- $units := dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 -}}
{{- $unit := regexFind "[A-Za-z]*$" (toString .) -}}
{{- if and . (hasKey $units $unit) -}}
{{- mulf (regexFind "^[0-9.]+" (toString .) | float64) (get $units $unit) 0.9 | int64 -}}
{{- end -}}
{{- end }}

{{/* Whether the API is served over HTTPS, and the Secret with its certificate. */}}
{{- define "herald.tls.secret" -}}
{{- with .Values.apiserver.tls -}}
{{- if .secretName -}}{{ .secretName }}
{{- else if .certManager.enabled -}}{{ include "herald.fullname" $ }}-apiserver-tls
{{- end -}}
{{- end -}}
{{- end }}

{{- define "herald.service.port" -}}
{{- if .Values.apiserver.service.port -}}{{ .Values.apiserver.service.port }}
{{- else if include "herald.tls.secret" . -}}443
{{- else -}}80
{{- end -}}
{{- end }}

{{/* Whether the manager creates the webhook's certificate. */}}
{{- define "herald.webhook.selfMade" -}}
{{- if and .Values.webhook.enabled (not .Values.webhook.certManager.enabled) -}}true{{- end -}}
{{- end }}

{{- define "herald.webhook.annotations" -}}
{{- if .Values.webhook.certManager.enabled -}}
cert-manager.io/inject-ca-from: {{ .Release.Namespace }}/{{ include "herald.fullname" . }}-webhook
{{- end -}}
{{- end }}

{{/* A reference to a cert-manager issuer. */}}
{{- define "herald.issuer" -}}
name: {{ .name }}
kind: {{ default "Issuer" .kind }}
group: {{ default "cert-manager.io" .group }}
{{- end }}

{{/* The port of an address: explicit, or the scheme's default. */}}
{{- define "herald.portOf" -}}
{{- $address := urlParse . -}}
{{- $port := regexFind ":[0-9]+$" (get $address "host") | trimPrefix ":" -}}
{{- default (ternary "443" "80" (eq (get $address "scheme") "https")) $port -}}
{{- end }}

{{/* The ports that both processes connect to, as a list in YAML. */}}
{{- define "herald.egressPorts" -}}
{{- $ports := list -}}
{{- range .Values.networkPolicy.egressPorts -}}
{{- $ports = append $ports (int .) -}}
{{- end -}}
{{- $addresses := list .Values.proxy.https .Values.proxy.http (.Values.tracing).endpoint ((.Values.web).oidc).issuerURL -}}
{{- with include "herald.media" . | fromYaml -}}
{{- $addresses = append $addresses .endpoint -}}
{{- end -}}
{{- if .Values.evaluation.enabled -}}
{{- $ports = append $ports 9100 -}}
{{- end -}}
{{- if .Values.smtp.host -}}
{{- $ports = append $ports (int .Values.smtp.port) -}}
{{- end -}}
{{- range compact $addresses -}}
{{- $ports = append $ports (include "herald.portOf" . | int) -}}
{{- end -}}
{{- uniq $ports | toYaml -}}
{{- end }}

{{/* The number of posts above which an alert fires. Helm treats a number of seven digits as a float, and prints 1e+06. */}}
{{- define "herald.tooManyPosts" -}}
{{- dig "prometheusRule" "tooManyPosts" 100000 .Values.metrics | int64 -}}
{{- end }}

{{/* How Prometheus verifies the metrics' certificate. Without a Secret, the process generates one on every start. */}}
{{- define "herald.metrics.tls" -}}
tlsConfig:
{{- with .Values.metrics.certificateSecret }}
  ca:
    secret: {name: {{ . }}, key: ca.crt}
  serverName: {{ include "herald.fullname" $ }}-metrics
{{- else }}
  insecureSkipVerify: true
{{- end }}
{{- end }}
