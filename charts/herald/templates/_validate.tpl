{{/* Reports all errors in the values together. The schema has already validated each value alone.
`helm upgrade --reuse-values` omits the sections that the older chart did not have: web, and tracing and metrics.dashboard of 0.1.0. */}}
{{- define "herald.validate" -}}
{{- $mistakes := list -}}
{{- $v := .Values -}}
{{- if not (include "herald.siteURL" .) -}}
{{- $mistakes = append $mistakes "siteURL is required: set it to the URL where clients reach the REST API, such as https://herald.example.com" -}}
{{- end -}}
{{- $mistakes = concat $mistakes (include "herald.validate.namespaces" . | fromYamlArray) -}}
{{- $mistakes = concat $mistakes (include "herald.validate.platforms" . | fromYamlArray) -}}
{{- $mistakes = concat $mistakes (include "herald.validate.times" . | fromYamlArray) -}}
{{- $mistakes = concat $mistakes (include "herald.validate.api" . | fromYamlArray) -}}
{{- $mistakes = concat $mistakes (include "herald.validate.web" . | fromYamlArray) -}}
{{- if and $v.media.credentials.name (not $v.media.endpoint) -}}
{{- $mistakes = append $mistakes "media.credentials.name is set without a store: set media.endpoint, or remove it" -}}
{{- end -}}
{{- if and $v.metrics.serviceMonitor.enabled $v.metrics.podMonitor.enabled -}}
{{- $mistakes = append $mistakes "metrics.serviceMonitor.enabled and metrics.podMonitor.enabled: both would read the same metrics; enable one of them" -}}
{{- end -}}
{{- if and $v.metrics.podMonitor.enabled (not $v.metrics.plain) (not $v.metrics.podMonitor.tokenSecret.name) -}}
{{- $mistakes = append $mistakes "metrics.podMonitor.tokenSecret.name is required: a PodMonitor shows the token of a Secret; name it, use metrics.serviceMonitor, or set metrics.plain" -}}
{{- end -}}
{{- if and $v.metrics.plain $v.metrics.certificateSecret -}}
{{- $mistakes = append $mistakes "metrics.certificateSecret: plain metrics have no certificate; remove it, or metrics.plain" -}}
{{- end -}}
{{- if and (($v.tracing).headers).name (not ($v.tracing).endpoint) -}}
{{- $mistakes = append $mistakes "tracing.headers.name is set without a collector: set tracing.endpoint, or remove it" -}}
{{- end -}}
{{- range $process := list "manager" "apiserver" -}}
{{- $pdb := (get $v $process).pdb -}}
{{- if and (hasKey $pdb "minAvailable") (hasKey $pdb "maxUnavailable") -}}
{{- $mistakes = append $mistakes (printf "%s.pdb: minAvailable and maxUnavailable are set, and Kubernetes accepts only one of them; remove the other" $process) -}}
{{- end -}}
{{- $mistakes = concat $mistakes (include "herald.validate.twice" (dict "root" $ "process" $process) | fromYamlArray) -}}
{{- end -}}
{{- if $mistakes -}}
{{- fail (printf "\n\nherald: these values cannot be combined:\n  - %s\n" (join "\n  - " $mistakes)) -}}
{{- end -}}
{{- end }}

{{/* A Role can be created only in an existing namespace. `helm template` cannot check this, and does not see any namespace. */}}
{{- define "herald.validate.namespaces" -}}
{{- $mistakes := list -}}
{{- $root := . -}}
{{- $canLook := lookup "v1" "Namespace" "" "kube-system" -}}
{{- range .Values.namespaces -}}
{{- if or (eq . $root.Release.Namespace) (eq . "default") (hasPrefix "kube-" .) -}}
{{- $mistakes = append $mistakes (printf "namespaces: %s cannot belong to a team; remove it" .) -}}
{{- else if and $canLook (not (lookup "v1" "Namespace" "" .)) -}}
{{- $mistakes = append $mistakes (printf "namespaces: the namespace %s does not exist: kubectl create namespace %s && kubectl label namespace %s social.herald.dev/team=TEAM" . . .) -}}
{{- end -}}
{{- end -}}
{{- toYaml $mistakes -}}
{{- end }}

{{/* Values that the chart sets itself would appear in a pod twice. Takes a dict with root and process. */}}
{{- define "herald.validate.twice" -}}
{{- $mistakes := list -}}
{{- $process := .process -}}
{{- $values := get .root.Values $process -}}
{{- $annotations := dict "checksum/config" "starts new pods when the configuration changes" "kubectl.kubernetes.io/default-container" "names the only container" -}}
{{- range $name, $does := $annotations -}}
{{- if hasKey $values.podAnnotations $name -}}
{{- $mistakes = append $mistakes (printf "%s.podAnnotations: the chart sets %s, which %s; remove it" $process $name $does) -}}
{{- end -}}
{{- end -}}
{{- $memory := printf "%s.resources.limits.memory" $process -}}
{{- $keys := ternary "evaluation.enabled" "media.credentials" .root.Values.evaluation.enabled -}}
{{- $proxies := "proxy.https, proxy.http and proxy.bypass" -}}
{{- $from := dict "GOMEMLIMIT" $memory "AWS_ACCESS_KEY_ID" $keys "AWS_SECRET_ACCESS_KEY" $keys "HTTPS_PROXY" $proxies "HTTP_PROXY" $proxies "NO_PROXY" $proxies "SSL_CERT_DIR" "caBundle.configMap" "OTEL_EXPORTER_OTLP_HEADERS" "tracing.headers" -}}
{{- $own := list -}}
{{- range include "herald.container.ownEnv" . | fromYamlArray -}}
{{- $own = append $own .name -}}
{{- end -}}
{{- range $values.env -}}
{{- if has .name $own -}}
{{- $mistakes = append $mistakes (printf "%s.env: the chart sets %s from %s; remove it, or that" $process .name (get $from .name)) -}}
{{- end -}}
{{- end -}}
{{- toYaml $mistakes -}}
{{- end }}

{{- define "herald.validate.web" -}}
{{- $mistakes := list -}}
{{- if and (include "herald.web" .) (get (urlParse (include "herald.siteURL" .)) "path") -}}
{{- $mistakes = append $mistakes (printf "siteURL is %s: the web application is at the root of its host; remove the path, or set web.enabled: false" .Values.siteURL) -}}
{{- end -}}
{{- with (.Values.web).oidc -}}
{{- if and .issuerURL (not .clientID) -}}
{{- $mistakes = append $mistakes "web.oidc.clientID is required: set it to Herald's client id at the provider" -}}
{{- end -}}
{{- if and (or .clientID (.clientSecret).name) (not .issuerURL) -}}
{{- $mistakes = append $mistakes "web.oidc.issuerURL is required: set it to the OpenID Connect provider's URL, or remove web.oidc.clientID and clientSecret" -}}
{{- end -}}
{{- end -}}
{{- toYaml $mistakes -}}
{{- end }}

{{- define "herald.validate.platforms" -}}
{{- $mistakes := list -}}
{{- $enabled := list -}}
{{- range $name, $platform := .Values.platforms -}}
{{- if $platform.enabled -}}
{{- $enabled = append $enabled $name -}}
{{- if and (hasKey $platform "clientID") (not $platform.clientID) -}}
{{- $mistakes = append $mistakes (printf "platforms.%s.clientID is required: tokens cannot be renewed without it" $name) -}}
{{- end -}}
{{- if and (eq $name "bluesky") (dig "clientSecret" "name" "" $platform) (not (hasPrefix "https://" (include "herald.siteURL" $))) -}}
{{- $mistakes = append $mistakes (printf "platforms.bluesky.clientSecret.name: servers read Herald's document over HTTPS only, and siteURL is %s; use a URL with https://" (include "herald.siteURL" $)) -}}
{{- end -}}
{{- if and (has $name (list "tiktok" "youtube")) (not $platform.clientSecret.name) -}}
{{- $mistakes = append $mistakes (printf "platforms.%s.clientSecret.name is required: tokens cannot be renewed without the app's secret" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if .Values.evaluation.enabled -}}
{{- range $enabled -}}
{{- $mistakes = append $mistakes (printf "platforms.%s.enabled: an evaluation publishes only to simulated platforms; remove it, or evaluation.enabled" .) -}}
{{- end -}}
{{- if .Values.media.endpoint -}}
{{- $mistakes = append $mistakes "media.endpoint: an evaluation brings its own store; remove it, or evaluation.enabled" -}}
{{- end -}}
{{- else if not $enabled -}}
{{- $mistakes = append $mistakes "platforms: none is enabled, so nothing can be published; enable one, such as platforms.facebook.enabled" -}}
{{- end -}}
{{- toYaml $mistakes -}}
{{- end }}

{{- define "herald.validate.times" -}}
{{- $mistakes := list -}}
{{- $c := .Values.manager.config -}}
{{- $shutdown := include "herald.seconds" $c.shutdownTimeout | float64 -}}
{{- if le (float64 .Values.manager.terminationGracePeriodSeconds) $shutdown -}}
{{- $mistakes = append $mistakes (printf "manager.terminationGracePeriodSeconds is %v: running calls would be killed before manager.config.shutdownTimeout, which is %s, has passed; increase it" .Values.manager.terminationGracePeriodSeconds $c.shutdownTimeout) -}}
{{- end -}}
{{- if le $shutdown (addf 60 (include "herald.seconds" $c.delivery.sendWindow | float64) (include "herald.seconds" $c.delivery.recordFor | float64)) -}}
{{- $mistakes = append $mistakes (printf "manager.config.shutdownTimeout is %s: a claim (manager.config.delivery.sendWindow, %s), a call (1m) and the record of its result (manager.config.delivery.recordFor, %s) could take longer; increase it" $c.shutdownTimeout $c.delivery.sendWindow $c.delivery.recordFor) -}}
{{- end -}}
{{- $lease := include "herald.seconds" $c.leaderElection.leaseDuration | float64 -}}
{{- $renew := include "herald.seconds" $c.leaderElection.renewDeadline | float64 -}}
{{- if le $lease $renew -}}
{{- $mistakes = append $mistakes (printf "manager.config.leaderElection.leaseDuration is %s: another replica could acquire the lease while this one is still active; set it above renewDeadline (%s)" $c.leaderElection.leaseDuration $c.leaderElection.renewDeadline) -}}
{{- end -}}
{{- if le $renew (mulf 1.2 (include "herald.seconds" $c.leaderElection.retryPeriod | float64)) -}}
{{- $mistakes = append $mistakes (printf "manager.config.leaderElection.renewDeadline is %s: it leaves no time for a second attempt; set it above 1.2 times retryPeriod (%s)" $c.leaderElection.renewDeadline $c.leaderElection.retryPeriod) -}}
{{- end -}}
{{- if gt (int $c.concurrency.fetches) (int $c.concurrency.media) -}}
{{- $mistakes = append $mistakes (printf "manager.config.concurrency.fetches is %v: there are only %v workers for media files; lower it, or raise manager.config.concurrency.media" $c.concurrency.fetches $c.concurrency.media) -}}
{{- end -}}
{{- with .Values.apiserver -}}
{{- $stop := addf (include "herald.seconds" .config.shutdown.delay | float64) (include "herald.seconds" .config.shutdown.timeout | float64) -}}
{{- if le (float64 .terminationGracePeriodSeconds) $stop -}}
{{- $mistakes = append $mistakes (printf "apiserver.terminationGracePeriodSeconds is %v: running requests would be cut off before apiserver.config.shutdown.delay (%s) and timeout (%s) have passed; increase it" .terminationGracePeriodSeconds .config.shutdown.delay .config.shutdown.timeout) -}}
{{- end -}}
{{- end -}}
{{- toYaml $mistakes -}}
{{- end }}

{{- define "herald.validate.api" -}}
{{- $mistakes := list -}}
{{- with .Values.apiserver -}}
{{- if and .autoscaling.enabled (gt (int .autoscaling.minReplicas) (int .autoscaling.maxReplicas)) -}}
{{- $mistakes = append $mistakes (printf "apiserver.autoscaling.minReplicas is %v and maxReplicas is %v: maxReplicas must be at least minReplicas" .autoscaling.minReplicas .autoscaling.maxReplicas) -}}
{{- end -}}
{{- if and .autoscaling.enabled (not (dig "requests" "cpu" "" .resources)) -}}
{{- $mistakes = append $mistakes "apiserver.resources.requests.cpu is required: apiserver.autoscaling targets a share of it" -}}
{{- end -}}
{{- if and .httpRoute.enabled (not .httpRoute.parentRefs) -}}
{{- $mistakes = append $mistakes "apiserver.httpRoute.parentRefs is required: name the Gateway that the route belongs to" -}}
{{- end -}}
{{- if and .tls.certManager.enabled (not .tls.certManager.issuer.name) -}}
{{- $mistakes = append $mistakes "apiserver.tls.certManager.issuer.name is required: clients must trust the certificate; name an Issuer" -}}
{{- end -}}
{{- if and .tls.certManager.enabled .tls.secretName -}}
{{- $mistakes = append $mistakes "apiserver.tls.secretName and apiserver.tls.certManager.enabled: both provide a certificate; keep one of them" -}}
{{- end -}}
{{- if and .ingress.tlsSecret (not .ingress.enabled) -}}
{{- $mistakes = append $mistakes "apiserver.ingress.tlsSecret is set without an Ingress: set apiserver.ingress.enabled, or remove it" -}}
{{- end -}}
{{- end -}}
{{- if and (or .Values.apiserver.ingress.enabled .Values.apiserver.httpRoute.enabled) (regexMatch "^https?://(\\[|[0-9.]+(:[0-9]+)?(/|$))" (include "herald.siteURL" .)) -}}
{{- $mistakes = append $mistakes (printf "siteURL is %s: an Ingress and an HTTPRoute need the name of a host; set one" (include "herald.siteURL" .)) -}}
{{- end -}}
{{- toYaml $mistakes -}}
{{- end }}
