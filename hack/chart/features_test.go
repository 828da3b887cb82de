// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

const (
	pod       = "{.spec.template.spec"
	container = "{.spec.template.spec.containers[0]"
	env       = container + ".env[?(@.name==\"%\")]"
	config    = "{.data.config\\.yaml}"
	hooks     = "{.metadata.annotations.helm\\.sh/hook}"
)

// TestValues checks what each value changes: the given part of an object, printed as kubectl's JSONPath does, equals or
// contains the text. "-" means that the object must not exist.
func TestValues(t *testing.T) {
	for _, tc := range []struct {
		reason, from, values string
		kind, name, path     string
		want                 string
	}{
		{"the tag defaults to the chart's appVersion", "minimal", "", "Deployment", "outreach-manager", container + ".image}", "ghcr.io/herald-social/herald:v0.1.0"},
		{"a custom registry and tag", "minimal", "image: {repository: r.example.com/h, tag: v2}", "Deployment", "outreach-apiserver", container + ".image}", "r.example.com/h:v2"},
		{"a digest takes precedence over the tag", "minimal", "image: {digest: 'sha256:" + strings.Repeat("a", 64) + "'}", "Deployment", "outreach-apiserver", container + ".image}", "herald@sha256:aaaa"},
		{"thumbnails need ffmpeg", "minimal", "thumbnails: {enabled: true}", "Deployment", "outreach-manager", container + ".image}", "/herald-ffmpeg:v0.1.0"},
		{"thumbnails enable ffmpeg in the configuration", "minimal", "thumbnails: {enabled: true}", "ConfigMap", "outreach-manager", config, "ffmpeg: \"ffmpeg\""},
		{"image pull secrets", "full", "", "Deployment", "outreach-manager", pod + ".imagePullSecrets}", `[{"name":"registry"}]`},

		{"an uninstall first removes finalizers", "minimal", "", "Job", "outreach-release", hooks, "pre-delete"},
		{"the release role exists only during an uninstall", "minimal", "", "ClusterRole", "outreach-release", hooks, "pre-delete"},
		{"the release role's binding is deleted afterwards", "minimal", "", "ClusterRoleBinding", "outreach-release", "{.metadata.annotations.helm\\.sh/hook-delete-policy}", "hook-succeeded"},
		{"the policy that restricts the release job exists before the job", "minimal", "", "ValidatingAdmissionPolicy", "outreach-release", hooks, ""},
		{"the release job first scales both Deployments down", "minimal", "", "Job", "outreach-release", container + ".args}", "--scale-down=outreach-apiserver,outreach-manager"},
		{"the release job waits for the grace period", "minimal", "manager: {terminationGracePeriodSeconds: 200}", "Job", "outreach-release", container + ".args}", "--wait=260s"},
		{"posts without a stored record keep their finalizer", "full", "", "Job", "outreach-release", container + ".args}", "!--without-records"},
		{"without a store there are no records", "minimal", "media: {endpoint: \"\"}", "Job", "outreach-release", container + ".args}", "--without-records"},
		{"the job fails without retries if the manager is scaled up again", "minimal", "", "Job", "outreach-release", "{.spec.podFailurePolicy.rules[*].onExitCodes.values}", "[3]"},
		{"the release job covers all namespaces by default", "minimal", "", "Job", "outreach-release", container + ".args}", "!--namespace"},
		{"the release job covers only served namespaces", "full", "", "Job", "outreach-release", container + ".args}", "--namespace=team-acme,team-beta"},
		{"the release job has the manager's tolerations", "full", "", "Job", "outreach-release", pod + ".tolerations}", "dedicated"},
		{"the release job does not need ffmpeg", "minimal", "thumbnails: {enabled: true}", "Job", "outreach-release", container + ".image}", "!ffmpeg"},
		{"the release job reaches the Kubernetes API", "minimal", "networkPolicy: {egressPorts: [16443]}", "NetworkPolicy", "outreach-release", "{.spec.egress[1].ports[*].port}", "16443"},
		{"the release job's policy covers both directions", "minimal", "", "NetworkPolicy", "outreach-release", "{.spec.policyTypes}{.spec.ingress}", `["Ingress","Egress"]`},
		{"no ingress is allowed to the release job", "minimal", "", "NetworkPolicy", "outreach-release", "{.spec.ingress}", ""},
		{"a disabled release job", "minimal", "release: {enabled: false}", "Job", "outreach-release", "", "-"},
		{"a disabled release job needs no role", "minimal", "release: {enabled: false}", "ClusterRoleBinding", "outreach-release", "", "-"},

		{"a second manager for leader election", "minimal", "", "Deployment", "outreach-manager", "{.spec.replicas}", "2"},
		{"a custom number of replicas", "minimal", "apiserver: {replicas: 5}", "Deployment", "outreach-apiserver", "{.spec.replicas}", "5"},
		{"an autoscaler controls the number of replicas", "full", "", "Deployment", "outreach-apiserver", "{.spec.replicas}", ""},
		{"the autoscaler targets CPU utilization", "full", "", "HorizontalPodAutoscaler", "outreach-apiserver", "{.spec.metrics[0].resource.target.averageUtilization}", "70"},
		{"no autoscaler by default", "minimal", "", "HorizontalPodAutoscaler", "outreach-apiserver", "", "-"},
		{"only the leader works, so the manager has no autoscaler", "full", "", "HorizontalPodAutoscaler", "outreach-manager", "", "-"},
		{"calls in progress finish before the shutdown", "minimal", "", "Deployment", "outreach-manager", pod + ".terminationGracePeriodSeconds}", "150"},
		{"listing 100,000 posts takes 10 s at startup", "minimal", "", "Deployment", "outreach-apiserver", container + ".startupProbe.failureThreshold}", "60"},
		{"GOMEMLIMIT is 90 % of the memory limit", "minimal", "", "Deployment", "outreach-manager", env + ".value}", "GOMEMLIMIT 724775731"},
		{"a memory limit in decimal units", "minimal", "manager: {resources: {limits: {memory: 1G}}}", "Deployment", "outreach-manager", env + ".value}", "GOMEMLIMIT 900000000"},
		{"no GOMEMLIMIT without a memory limit", "minimal", "manager: {resources: {limits: {memory: null}}}", "Deployment", "outreach-manager", env + ".value}", "GOMEMLIMIT "},
		{"users may set GOMEMLIMIT if there is no memory limit", "minimal", "manager: {resources: {limits: {memory: null}}, env: [{name: GOMEMLIMIT, value: 1GiB}]}", "Deployment", "outreach-manager", env + ".value}", "GOMEMLIMIT 1GiB"},
		{"users may set store keys if the chart does not", "minimal", "manager: {env: [{name: AWS_ACCESS_KEY_ID, value: a}]}", "Deployment", "outreach-manager", env + ".value}", "AWS_ACCESS_KEY_ID a"},
		{"a changed configuration restarts pods", "minimal", "", "Deployment", "outreach-manager", "{.spec.template.metadata.annotations}", "checksum/config"},
		{"a changed log level does not restart pods", "minimal", "", "Deployment", "outreach-manager", container + ".args}", "!log-level"},
		{"the manager reloads the log level from its ConfigMap", "minimal", "log: {level: debug}", "ConfigMap", "outreach-manager", config, "log:\n  level: debug\n"},
		{"the apiserver reloads the log level from its ConfigMap", "minimal", "log: {level: debug}", "ConfigMap", "outreach-apiserver", config, "log:\n  level: debug\n"},
		{"a new chart version alone does not restart pods", "minimal", "", "Deployment", "outreach-manager", "{.spec.template.metadata.labels}", "!helm.sh/chart"},
		{"pods are spread over nodes", "minimal", "", "Deployment", "outreach-manager", pod + ".topologySpreadConstraints[0].labelSelector.matchLabels}", `"app.kubernetes.io/component":"manager"`},
		{"custom spread constraints", "minimal", "apiserver: {topologySpreadConstraints: [{topologyKey: rack, maxSkew: 2, whenUnsatisfiable: DoNotSchedule}]}", "Deployment", "outreach-apiserver", pod + ".topologySpreadConstraints[*].topologyKey}", "rack"},

		{"one apiserver may be unavailable", "minimal", "", "PodDisruptionBudget", "outreach-apiserver", "{.spec.maxUnavailable}", "1"},
		{"minAvailable: 0 is not the default", "minimal", "apiserver: {pdb: {minAvailable: 0}}", "PodDisruptionBudget", "outreach-apiserver", "{.spec.minAvailable}", "0"},
		{"minAvailable as a percentage", "minimal", "apiserver: {pdb: {minAvailable: 50%}}", "PodDisruptionBudget", "outreach-apiserver", "{.spec.minAvailable}", "50%"},
		{"a disabled disruption budget", "minimal", "apiserver: {pdb: {enabled: false}}", "PodDisruptionBudget", "outreach-apiserver", "", "-"},

		{"a renewed token outlives the container", "minimal", "", "ConfigMap", "outreach-manager", config, "unsaved:\n    directory: /var/lib/herald/unsaved\n    keyFile: /etc/herald/unsaved-key/key\n"},
		{"unsaved tokens are in an emptyDir", "minimal", "", "Deployment", "outreach-manager", pod + ".volumes[?(@.name==\"unsaved\")].emptyDir.sizeLimit}", "64Mi"},
		{"the emptyDir is mounted read-write", "minimal", "", "Deployment", "outreach-manager", container + ".volumeMounts[?(@.name==\"unsaved\")]}", `{"mountPath":"/var/lib/herald/unsaved","name":"unsaved"}`},
		{"the chart creates the encryption key", "minimal", "", "Secret", "outreach-unsaved-tokens", "{.data}", `"key":"`},
		{"only the manager mounts unsaved tokens", "minimal", "", "Deployment", "outreach-apiserver", pod + ".volumes[*].name}", "!unsaved"},
		{"an existing encryption key", "full", "", "Deployment", "outreach-manager", pod + ".volumes[?(@.name==\"unsaved-key\")].secret}", `{"items":[{"key":"text","path":"key"}],"secretName":"token-key"}`},
		{"no generated key if one is configured", "full", "", "Secret", "outreach-unsaved-tokens", "", "-"},
		{"disabled storage of unsaved tokens", "minimal", "manager: {unsavedTokens: {enabled: false}}", "ConfigMap", "outreach-manager", config, "!credentials"},
		{"no encryption key if storage is disabled", "minimal", "manager: {unsavedTokens: {enabled: false}}", "Secret", "outreach-unsaved-tokens", "", "-"},

		{"the app's secret is a file", "full", "", "ConfigMap", "outreach-manager", config, "clientSecretFile: /etc/herald/platforms/x/client-secret"},
		{"the file comes from an existing Secret", "full", "", "Deployment", "outreach-manager", pod + ".volumes[?(@.name==\"platforms\")]..secret}", `{"items":[{"key":"secret","path":"x/client-secret"}],"name":"x-app"}`},
		{"the apiserver connects accounts with the app's secret", "full", "", "Deployment", "outreach-apiserver", pod + ".volumes[?(@.name==\"platforms\")]..secret}", `{"items":[{"key":"secret","path":"x/client-secret"}],"name":"x-app"}`},
		{"no app secret for the apiserver without the web application", "full", "web: {enabled: false}", "Deployment", "outreach-apiserver", pod + ".volumes[*].name}", "!platforms"},
		{"without the web application, the configuration does not name the app's secret", "full", "web: {enabled: false}", "ConfigMap", "outreach-apiserver", config, "!clientSecretFile"},
		{"the web application's Secret has the release's name", "minimal", "", "ConfigMap", "outreach-apiserver", config, "signInSecret: outreach-web"},
		{"sign-in by an OIDC provider", "full", "", "ConfigMap", "outreach-apiserver", config, "issuerURL: \"https://id.example.com:5554/realms/acme\""},
		{"the OIDC client's secret is mounted", "full", "", "Deployment", "outreach-apiserver", pod + ".volumes[?(@.name==\"oidc\")].secret.secretName}", "herald-oidc"},
		{"the manager does not mount the OIDC client's secret", "full", "", "Deployment", "outreach-manager", pod + ".volumes[*].name}", "!oidc"},
		{"egress to the provider's port is allowed", "full", "", "NetworkPolicy", "outreach-apiserver", "{.spec.egress}", "5554"},
		{"sign-in by link without a provider", "minimal", "", "ConfigMap", "outreach-apiserver", config, "!oidc"},
		{"a disabled web application", "minimal", "web: {enabled: false}", "ConfigMap", "outreach-apiserver", config, "web:\n  enabled: false"},
		{"the MCP server is enabled by default", "minimal", "", "ConfigMap", "outreach-apiserver", config, "mcp:\n  enabled: true"},
		{"a disabled MCP server", "minimal", "mcp: {enabled: false}", "ConfigMap", "outreach-apiserver", config, "mcp:\n  enabled: false"},
		{"without the web application, the site URL may have a path", "minimal", "siteURL: https://example.com/herald\nweb: {enabled: false}", "ConfigMap", "outreach-apiserver", config, "siteURL: https://example.com/herald"},
		{"the editor role", "minimal", "", "ClusterRole", "outreach-editor", "{.rules[0].resources}", `["posts","postschedules","media"]`},
		{"pages refer to roles by the release's name", "minimal", "", "ConfigMap", "outreach-apiserver", config, "rolePrefix: outreach\n"},
		{"role names follow fullnameOverride", "minimal", "fullnameOverride: social", "ConfigMap", "social-apiserver", config, "rolePrefix: social\n"},
		{"a public client of X has no secret", "minimal", "platforms: {x: {enabled: true, clientID: a}}", "Deployment", "outreach-manager", pod + ".volumes[*].name}", "config"},
		{"store keys come from a Secret", "full", "", "Deployment", "outreach-apiserver", env + ".valueFrom.secretKeyRef}", `AWS_SECRET_ACCESS_KEY {"key":"secret-key","name":"store-keys"}`},
		{"store access by workload identity", "minimal", "media: {endpoint: 'https://s3.example.com'}\nmanager: {serviceAccount: {annotations: {a: b}}}", "ServiceAccount", "outreach-manager", "{.metadata.annotations}", `{"a":"b"}`},
		{"no store keys with workload identity", "minimal", "media: {endpoint: 'https://s3.example.com'}", "Deployment", "outreach-apiserver", env + ".name}", "AWS_ACCESS_KEY_ID "},
		{"the apiserver's configuration contains the store", "full", "", "ConfigMap", "outreach-apiserver", config, "endpoint: \"https://s3.example.com:9443\""},
		{"no media section without a store", "minimal", "", "ConfigMap", "outreach-apiserver", config, "!media:"},
		{"the served namespaces", "full", "", "ConfigMap", "outreach-apiserver", config, "- team-beta"},
		{"the manager derives names from releaseName", "minimal", "fullnameOverride: social", "ConfigMap", "social-manager", config, "releaseName: social"},
		{"the limits of a manager are divided among its shards", "minimal", "manager: {replicas: 3, config: {delivery: {shards: 4}}}", "ConfigMap", "outreach-manager", config, "replicas: 3\n"},
		{"the forecast of shared uploads counts all managers", "minimal", "manager: {replicas: 3, config: {delivery: {shareUploads: true}}}", "ConfigMap", "outreach-manager", config, "replicas: 3\n"},
		{"a changed number of managers restarts none if they do not share uploads", "minimal", "manager: {replicas: 3}", "ConfigMap", "outreach-manager", config, "!replicas:"},

		{"platforms are called through the proxy", "full", "", "Deployment", "outreach-manager", env + ".value}", "HTTPS_PROXY http://proxy.example.com:3128"},
		{"the Kubernetes API is called directly", "full", "", "Deployment", "outreach-manager", env + ".value}", "NO_PROXY $(KUBERNETES_SERVICE_HOST),localhost,127.0.0.1,::1,.svc,.cluster.local,s3.example.com"},
		{"no NO_PROXY without a proxy", "minimal", "", "Deployment", "outreach-manager", env + ".name}", "NO_PROXY "},
		{"the proxy's certificate authority for platforms", "full", "", "ConfigMap", "outreach-manager", config, "caBundle: /etc/herald/ca/ca.crt"},
		{"the proxy's certificate authority for the store", "full", "", "Deployment", "outreach-apiserver", env + ".value}", "SSL_CERT_DIR /etc/herald/ca"},

		{"HTTP behind an Ingress", "minimal", "", "Service", "outreach-apiserver", "{.spec.ports[0].port}", "80"},
		{"HTTPS with a certificate", "minimal", "apiserver: {tls: {secretName: api-tls}}", "Service", "outreach-apiserver", "{.spec.ports[0].port}", "443"},
		{"the certificate's Secret is mounted", "minimal", "apiserver: {tls: {secretName: api-tls}}", "Deployment", "outreach-apiserver", pod + ".volumes[?(@.name==\"tls\")].secret.secretName}", "api-tls"},
		{"the configuration has the certificate's paths", "minimal", "apiserver: {tls: {secretName: api-tls}}", "ConfigMap", "outreach-apiserver", config, "certFile: /etc/herald/tls/tls.crt"},
		{"a certificate from cert-manager", "full", "", "Certificate", "outreach-apiserver", "{.spec.dnsNames}", `["herald.example.com","outreach-apiserver.social.svc"`},
		{"the Ingress has the site URL's host", "full", "", "Ingress", "outreach-apiserver", "{.spec.rules[0].host}", "herald.example.com"},
		{"the Ingress's host has no port", "minimal", "siteURL: 'https://h.example.com:8443/x/'\nweb: {enabled: false}\napiserver: {ingress: {enabled: true}}", "Ingress", "outreach-apiserver", "{.spec.rules[0].host}", "h.example.com"},
		{"an HTTPRoute", "full", "", "HTTPRoute", "outreach-apiserver", "{.spec.rules[0].backendRefs[0]}", `{"name":"outreach-apiserver","port":443}`},
		{"no Ingress by default", "minimal", "", "Ingress", "outreach-apiserver", "", "-"},

		{"the webhook's Service", "minimal", "", "ValidatingWebhookConfiguration", "outreach", "{.webhooks[0].clientConfig.service}", `{"name":"outreach-webhook","namespace":"social","port":443}`},
		{"the manager adds the secret path to the webhook's configuration", "minimal", "", "ClusterRole", "outreach-webhook-trust", "{.rules[0]}", `{"apiGroups":["admissionregistration.k8s.io"],"resourceNames":["outreach"],"resources":["validatingwebhookconfigurations"],"verbs":["patch"]}`},
		{"with cert-manager's certificate, the webhook's path is fixed", "full", "", "ValidatingWebhookConfiguration", "outreach", "{.webhooks[0].clientConfig.service.path}", "/validate-post"},
		{"the webhook's callers are restricted by network", "full", "", "NetworkPolicy", "outreach-manager", "{.spec.ingress[1]}", `{"from":[{"ipBlock":{"cidr":"10.0.0.0/28"}}],"ports":[{"port":"webhook","protocol":"TCP"}]}`},
		{"with cert-manager, the manager does not write the webhook's configuration", "full", "", "ClusterRole", "outreach-webhook-trust", "", "-"},
		{"the webhook skips posts that the apiserver has validated", "minimal", "", "ValidatingWebhookConfiguration", "outreach", "{.webhooks[0].matchConditions[0].expression}", "system:serviceaccount:social:outreach-apiserver"},
		{"the manager maintains its certificate", "minimal", "", "Role", "outreach-webhook-certificate", "{.rules[1].resourceNames}", `["outreach-webhook-certificate"]`},
		{"cert-manager issues the certificate", "full", "", "Certificate", "outreach-webhook", "{.spec.secretName}", "outreach-webhook-certificate"},
		{"a self-signed issuer of the chart", "full", "", "Issuer", "outreach-webhook", "{.spec.selfSigned}", "{}"},
		{"a custom issuer", "minimal", "webhook: {certManager: {enabled: true, issuer: {name: a, kind: ClusterIssuer}}}", "Certificate", "outreach-webhook", "{.spec.issuerRef}", `{"group":"cert-manager.io","kind":"ClusterIssuer","name":"a"}`},
		{"cert-manager injects its authority", "full", "", "ValidatingWebhookConfiguration", "outreach", "{.metadata.annotations}", `"cert-manager.io/inject-ca-from":"social/outreach-webhook"`},
		{"with cert-manager, the manager does not write the certificate's Secret", "full", "", "Role", "outreach-webhook-certificate", "", "-"},
		{"a disabled webhook", "minimal", "webhook: {enabled: false}", "ValidatingWebhookConfiguration", "outreach", "", "-"},
		{"a disabled webhook has no port", "minimal", "webhook: {enabled: false}", "ConfigMap", "outreach-manager", config, `bindAddress: "0"`},

		{"definitions are installed, and kept by an uninstall", "minimal", "", "CustomResourceDefinition", "posts.social.herald.dev", "{.metadata.annotations}", `"helm.sh/resource-policy":"keep"`},
		{"definitions are removed by an uninstall if crds.keep is false", "minimal", "crds: {keep: false}", "CustomResourceDefinition", "posts.social.herald.dev", "{.metadata.annotations}", "!resource-policy"},
		{"definitions are not installed if crds.enabled is false", "minimal", "crds: {enabled: false}", "CustomResourceDefinition", "posts.social.herald.dev", "", "-"},

		{"only bound accounts can read metrics", "full", "", "ClusterRoleBinding", "outreach-metrics-readers", "{.subjects[0]}", `{"kind":"ServiceAccount","name":"prometheus","namespace":"monitoring"}`},
		{"a ServiceMonitor selects the metrics Services", "full", "", "Service", "outreach-manager-metrics", "{.metadata.labels}", `"herald.dev/serves":"metrics"`},
		{"a ServiceMonitor verifies the certificate", "full", "", "ServiceMonitor", "outreach", "{.spec.endpoints[0].tlsConfig.serverName}", "outreach-metrics"},
		{"a PodMonitor sends a token", "minimal", "metrics: {podMonitor: {enabled: true, tokenSecret: {name: a}}}", "PodMonitor", "outreach", "{.spec.podMetricsEndpoints[0].authorization.credentials}", `{"key":"token","name":"a"}`},
		{"a PodMonitor uses HTTP for plain metrics", "minimal", "metrics: {plain: true, podMonitor: {enabled: true}}", "PodMonitor", "outreach", "{.spec.podMetricsEndpoints[0].scheme}", "http"},
		{"plain metrics are in the configuration", "minimal", "metrics: {plain: true}", "ConfigMap", "outreach-apiserver", config, "plain: true"},
		{"templates of alerts are not rendered by Helm", "full", "", "PrometheusRule", "outreach-manager", "{.spec.groups[0].rules[0].annotations.summary}", "{{ $labels.namespace }}/{{ $labels.pod }}"},
		{"alerts have the label that Prometheus selects", "full", "", "PrometheusRule", "outreach-connections", "{.metadata.labels}", `"release":"prometheus"`},
		{"each alert links to its runbook", "full", "", "PrometheusRule", "outreach-posts", "{.spec.groups[0].rules[0].annotations.runbook_url}", "https://github.com/herald-social/herald/blob/main/docs/runbooks/HeraldOutcomeUnknown.md"},
		{"no alerts by default", "minimal", "", "PrometheusRule", "outreach-posts", "", "-"},
		{"the dashboard has the label that Grafana's sidecar selects", "full", "", "ConfigMap", "outreach-dashboard", "{.metadata.labels}", `"grafana_dashboard":"1"`},
		{"the dashboard's folder in Grafana", "full", "", "ConfigMap", "outreach-dashboard", "{.metadata.annotations}", `{"grafana_folder":"Herald"}`},
		{"templates of the dashboard are not rendered by Helm", "full", "", "ConfigMap", "outreach-dashboard", "{.data.outreach\\.json}", `"legendFormat": "{{namespace}}"`},
		{"a custom label of the dashboard", "minimal", "metrics: {dashboard: {enabled: true, labels: {grafana_dashboard: null, dashboards: team}}}", "ConfigMap", "outreach-dashboard", "{.metadata.labels}", `"dashboards":"team"`},
		{"the alert's default threshold", "full", "", "PrometheusRule", "outreach-manager", "{.spec.groups[0].rules[?(@.alert==\"HeraldTooManyPosts\")].expr}", "(herald_post_index_posts) > 100000"},
		{"a custom threshold, without an exponent", "full", "metrics: {prometheusRule: {tooManyPosts: 1000000}}", "PrometheusRule", "outreach-manager", "{.spec.groups[0].rules[?(@.alert==\"HeraldTooManyPosts\")].expr}", "(herald_post_index_posts) > 1000000"},
		{"no dashboard by default", "minimal", "", "ConfigMap", "outreach-dashboard", "", "-"},

		{"egress to DNS, HTTPS and the Kubernetes API", "minimal", "", "NetworkPolicy", "outreach-manager", "{.spec.egress[*].ports[*].port}", "53 53 5353 5353 443 6443 8443"},
		{"egress to the configured mail server, store, proxy, collector and provider", "full", "", "NetworkPolicy", "outreach-apiserver", "{.spec.egress[1].ports[*].port}", "443 6443 8443 587 3128 4318 5554 9443"},
		{"only the monitoring namespace reads metrics", "full", "", "NetworkPolicy", "outreach-manager", "{.spec.ingress[2].from[0].namespaceSelector.matchLabels}", "monitoring"},
		{"OpenShift's DNS pods listen on 5353, and policies apply to pod ports", "minimal", "", "NetworkPolicy", "outreach-manager", "{.spec.egress[0].ports}", `[{"port":53,"protocol":"UDP"},{"port":53,"protocol":"TCP"},{"port":5353,"protocol":"UDP"},{"port":5353,"protocol":"TCP"}]`},
		{"an evaluation's pods reach OpenShift's DNS", "evaluation", "", "NetworkPolicy", "outreach-sandbox", "{.spec.egress[0].ports[*].port}", "53 53 5353 5353"},
		{"workload identity needs the node's metadata addresses", "minimal", "media: {endpoint: 'https://s3.example.com'}", "NetworkPolicy", "outreach-apiserver", "{.spec.egress[2]}", `{"ports":[{"port":80,"protocol":"TCP"}],"to":[{"ipBlock":{"cidr":"169.254.170.23/32"}},{"ipBlock":{"cidr":"169.254.169.254/32"}}]}`},
		{"the manager also reaches the metadata addresses", "minimal", "media: {endpoint: 'https://s3.example.com'}", "NetworkPolicy", "outreach-manager", "{.spec.egress[2].to[*].ipBlock.cidr}", "169.254.170.23/32 169.254.169.254/32"},
		{"with static keys, the metadata addresses are blocked", "minimal", "media: {endpoint: 'https://s3.example.com', credentials: {name: s3}}", "NetworkPolicy", "outreach-manager", "{.spec.egress}", "!169.254"},
		{"without a store, the metadata addresses are blocked", "minimal", "", "NetworkPolicy", "outreach-manager", "{.spec.egress}", "!169.254"},
		{"the lease has its own priority level", "minimal", "", "FlowSchema", "outreach-leases", "{.spec.rules[0].subjects[0].serviceAccount.name} {.spec.rules[0].resourceRules[0].namespaces}", `outreach-manager ["social"]`},
		{"disabled FlowSchemas", "minimal", "priorityAndFairness: {enabled: false}", "FlowSchema", "outreach-leases", "", "-"},
		{"disabled priority levels", "minimal", "priorityAndFairness: {enabled: false}", "PriorityLevelConfiguration", "outreach-delivery", "", "-"},
		{"disabled admission policies, for clusters with a policy engine", "minimal", "admissionPolicies: {enabled: false}", "ValidatingAdmissionPolicy", "outreach-metadata", "", "-"},
		{"a disabled NetworkPolicy", "minimal", "networkPolicy: {enabled: false}", "NetworkPolicy", "outreach-manager", "", "-"},

		{"the apiserver sends traces to a collector", "full", "", "ConfigMap", "outreach-apiserver", config, "tracing:\n  endpoint: \"http://collector.observability.svc:4318\"\n  samplingRatio: 0.1\n"},
		{"the manager sends traces to a collector", "full", "", "ConfigMap", "outreach-manager", config, "tracing:\n  endpoint: \"http://collector.observability.svc:4318\""},
		{"requests to the collector carry its token", "full", "", "Deployment", "outreach-manager", env + ".valueFrom.secretKeyRef}", `OTEL_EXPORTER_OTLP_HEADERS {"key":"headers","name":"collector-token"}`},
		{"no traces by default", "minimal", "", "ConfigMap", "outreach-manager", config, "!tracing:"},
		{"a sampling ratio of 0 is not the default", "minimal", "tracing: {endpoint: 'https://otlp.example.com', samplingRatio: 0}", "ConfigMap", "outreach-manager", config, "samplingRatio: 0\n"},
		{"a collector's default port", "minimal", "tracing: {endpoint: 'http://otlp.example.com'}", "NetworkPolicy", "outreach-manager", "{.spec.egress[1].ports[*].port}", "443 6443 8443 80"},

		{"an evaluation publishes to the sandbox", "evaluation", "", "ConfigMap", "outreach-manager", config, "url: http://outreach-sandbox.social.svc:9100\n"},
		{"an evaluation enables all platforms", "evaluation", "", "ConfigMap", "outreach-manager", config, "  youtube:\n    clientID: evaluation\n"},
		{"also those that accounts choose a server on", "evaluation", "", "ConfigMap", "outreach-manager", config, "  bluesky:\n    clientID: evaluation\n"},
		{"accounts on a server of one's own", "full", "", "ConfigMap", "outreach-manager", config, "    server: https://pds.example.com\n"},
		{"the client of Bluesky's OAuth is the document on the site", "full", "", "ConfigMap", "outreach-manager", config, "  bluesky:\n    clientID: https://herald.example.com/oauth/bluesky/client-metadata.json\n    clientSecretFile: /etc/herald/platforms/bluesky/client-secret\n"},
		{"app passwords need no client", "full", "platforms: {bluesky: {clientSecret: {name: ''}}}", "ConfigMap", "outreach-apiserver", config, "!bluesky/client"},
		{"an evaluation has a store", "evaluation", "", "Deployment", "outreach-store", container + ".image}", "/herald-store:v0.1.0"},
		{"a configured key of the evaluation's store", "evaluation", "evaluation: {storeKey: abcdefghij0123456789}", "Secret", "outreach-store", "{.data.secret-key}", "YWJjZGVmZ2hpajAxMjM0NTY3ODk="},
		{"consent pages have an address for browsers", "evaluation", "", "ConfigMap", "outreach-apiserver", config, "publicURL: http://127.0.0.1:9100\n"},
		{"posts have an address for browsers", "evaluation", "", "ConfigMap", "outreach-manager", config, "publicURL: http://127.0.0.1:9100\n"},
		{"real platforms by default", "full", "", "ConfigMap", "outreach-manager", config, "!sandbox"},
		{"addresses that the sandbox returns are for browsers", "evaluation", "", "Deployment", "outreach-sandbox", container + ".args}", `"--site-url=http://127.0.0.1:9100"`},
		{"codes are exchanged inside the cluster", "evaluation", "", "ConfigMap", "outreach-apiserver", config, "url: http://outreach-sandbox.social.svc:9100\n"},
		{"users return to the forwarded address", "evaluation", "", "ConfigMap", "outreach-apiserver", config, "siteURL: http://127.0.0.1:8080\n"},
		{"browsers upload to the forwarded address", "evaluation", "", "ConfigMap", "outreach-apiserver", config, "publicEndpoint: \"http://127.0.0.1:9000\""},
		{"platforms fetch files inside the cluster", "evaluation", "", "ConfigMap", "outreach-manager", config, "!publicEndpoint"},
		{"custom addresses behind an Ingress", "evaluation", "evaluation: {sandboxURL: 'https://sandbox.example.com/', storeURL: 'https://files.example.com/'}", "ConfigMap", "outreach-apiserver", config, "publicEndpoint: \"https://files.example.com\""},
		{"a trailing slash is removed", "evaluation", "evaluation: {sandboxURL: 'https://sandbox.example.com/'}", "ConfigMap", "outreach-apiserver", config, "publicURL: https://sandbox.example.com\n"},
		{"a custom site URL of an evaluation", "evaluation", "siteURL: https://herald.example.com", "ConfigMap", "outreach-apiserver", config, "siteURL: https://herald.example.com\n"},
		{"users of the one-time link are admins of the demo team", "evaluation", "", "ConfigMap", "outreach-demo", "{.data.demo\\.yaml}", "name: outreach-admin\nsubjects:\n- apiGroup: rbac.authorization.k8s.io\n  kind: User\n  name: herald:link"},
		{"no link user without the web application", "evaluation", "web: {enabled: false}", "ConfigMap", "outreach-demo", "{.data.demo\\.yaml}", "!herald:link"},
		{"the demo team's accounts", "evaluation", "", "ConfigMap", "outreach-demo", "{.data.demo\\.yaml}", "name: demo-youtube"},
		{"no sandbox by default", "minimal", "", "Deployment", "outreach-sandbox", "", "-"},
	} {
		values := with(t, tc.from, tc.values)
		if tc.kind != "CustomResourceDefinition" {
			// The CRDs make up most of the output and take most of the time.
			values["crds"] = map[string]any{"enabled": false}
		}
		object := find(rendered(t, values), tc.kind, tc.name)
		if (object == nil) != (tc.want == "-") {
			t.Errorf("%s: %s %s exists: %t", tc.reason, tc.kind, tc.name, object != nil)
		}
		if object == nil {
			continue
		}
		path, want := tc.path, tc.want
		if strings.HasPrefix(path, env) {
			var name string
			name, want, _ = strings.Cut(want, " ")
			path = strings.Replace(path, "%", name, 1)
		}
		got := at(t, object, path)
		if unwanted, isNot := strings.CutPrefix(want, "!"); isNot {
			if strings.Contains(got, unwanted) {
				t.Errorf("%s: %s has %q: %s", tc.reason, path, unwanted, got)
			}
			continue
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %s is %q, want %q", tc.reason, path, got, want)
		}
	}
}

// TestValuesOfAnOlderChart renders the templates with the values that `helm upgrade --reuse-values` uses: the previous
// chart's defaults, which lack new values. It removes the sections that 0.1.0 did not have.
func TestValuesOfAnOlderChart(t *testing.T) {
	for reason, missing := range map[string]string{
		"no tracing section":        "tracing: null",
		"no dashboard":              "metrics: {dashboard: null}",
		"no threshold of the alert": "metrics: {prometheusRule: {enabled: true, tooManyPosts: null}}",
		"no web application":        "web: null",
		"no MCP section":            "mcp: null",
		"no release section":        "release: null",
		"no OIDC section":           "web: {oidc: null}",
		"a partial OIDC section":    "web: {oidc: {issuerURL: 'https://id.example.com', clientID: a, clientSecret: null, scopes: null}}",
		"no new sections at all":    "web: null\ntracing: null\nmetrics: {dashboard: null, prometheusRule: {tooManyPosts: null}}",
		"a partial tracing section": "tracing: {samplingRatio: null, headers: null, endpoint: 'http://c:4318'}",
	} {
		for _, name := range []string{"minimal", "evaluation"} {
			text, err := renderChart(chartFolder, outreach, with(t, name, missing))
			if err != nil {
				t.Errorf("%s, %s: %v", name, reason, err)
			}
			if strings.Contains(text, "<no value>") || strings.Contains(text, "<nil>") {
				t.Errorf("%s, %s: a value is missing", name, reason)
			}
		}
	}
}

// at returns part of an object as kubectl prints it.
func at(t *testing.T, object *unstructured.Unstructured, path string) string {
	t.Helper()
	p := jsonpath.New("").AllowMissingKeys(true)
	if err := p.Parse(path); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	var out bytes.Buffer
	if err := p.Execute(&out, object.Object); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return out.String()
}

// TestPodsAreRestricted checks all pods against the strictest Pod Security Standard.
func TestPodsAreRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for _, name := range []string{"minimal", "evaluation", "full"} {
		var found []string
		for _, object := range rendered(t, valuesOf(t, name)) {
			if object.GetKind() != "Deployment" && object.GetKind() != "Job" {
				continue
			}
			found = append(found, object.GetName())
			template, _, err := unstructured.NestedMap(object.Object, "spec", "template")
			if err != nil {
				t.Fatal(err)
			}
			var pod corev1.PodTemplateSpec
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(template, &pod, true); err != nil {
				t.Fatalf("%s: %s: %v", name, object.GetName(), err)
			}
			for _, result := range evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec) {
				if !result.Allowed {
					t.Errorf("%s: %s: %s: %s", name, object.GetName(), result.ForbiddenReason, result.ForbiddenDetail)
				}
			}
			for _, c := range pod.Spec.Containers {
				if c.SecurityContext.ReadOnlyRootFilesystem == nil || !*c.SecurityContext.ReadOnlyRootFilesystem {
					t.Errorf("%s: %s: the root file system is writable", name, object.GetName())
				}
			}
		}
		want := []string{"outreach-apiserver", "outreach-manager", "outreach-release"}
		if name == "evaluation" {
			want = append(want, "outreach-sandbox", "outreach-store")
		}
		slices.Sort(found)
		if !slices.Equal(found, want) {
			t.Errorf("%s: checked %v, want %v", name, found, want)
		}
	}
}

// TestLogLevelStartsNoPods renders the Deployments with two log levels. A new level must change only the ConfigMap,
// which running pods reload, and not the pods.
func TestLogLevelStartsNoPods(t *testing.T) {
	quiet, loud := rendered(t, with(t, "minimal", "log: {level: info}")), rendered(t, with(t, "minimal", "log: {level: debug}"))
	other := rendered(t, with(t, "minimal", "apiserver: {config: {requestsPerMinute: 7}}\nmanager: {config: {shutdownTimeout: 131s}}"))
	for _, process := range []string{"outreach-manager", "outreach-apiserver"} {
		const annotations, template = "{.spec.template.metadata.annotations}", "{.spec.template}"
		if got, want := at(t, find(loud, "Deployment", process), template), at(t, find(quiet, "Deployment", process), template); got != want {
			t.Errorf("%s: a new log level restarts pods:\n%s\n%s", process, want, got)
		}
		if got := at(t, find(loud, "ConfigMap", process), config); !strings.Contains(got, "level: debug") {
			t.Errorf("%s: the ConfigMap does not have the log level: %s", process, got)
		}
		if at(t, find(other, "Deployment", process), annotations) == at(t, find(quiet, "Deployment", process), annotations) {
			t.Errorf("%s: a changed configuration does not restart pods", process)
		}
	}
}
