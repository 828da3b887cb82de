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
		{"the tag is the chart's version of the program", "minimal", "", "Deployment", "outreach-manager", container + ".image}", "ghcr.io/herald-social/herald:v0.1.0"},
		{"another registry and tag", "minimal", "image: {repository: r.example.com/h, tag: v2}", "Deployment", "outreach-apiserver", container + ".image}", "r.example.com/h:v2"},
		{"a digest goes before the tag", "minimal", "image: {digest: 'sha256:" + strings.Repeat("a", 64) + "'}", "Deployment", "outreach-apiserver", container + ".image}", "herald@sha256:aaaa"},
		{"thumbnails need ffmpeg", "minimal", "thumbnails: {enabled: true}", "Deployment", "outreach-manager", container + ".image}", "/herald-ffmpeg:v0.1.0"},
		{"and the configuration says so", "minimal", "thumbnails: {enabled: true}", "ConfigMap", "outreach-manager", config, "ffmpeg: \"ffmpeg\""},
		{"pods are pulled with a Secret", "full", "", "Deployment", "outreach-manager", pod + ".imagePullSecrets}", `[{"name":"registry"}]`},

		{"an uninstall takes finalizers off first", "minimal", "", "Job", "outreach-release", hooks, "pre-delete"},
		{"nobody has its rights while Herald is installed", "minimal", "", "ClusterRole", "outreach-release", hooks, "pre-delete"},
		{"nor later", "minimal", "", "ClusterRoleBinding", "outreach-release", "{.metadata.annotations.helm\\.sh/hook-delete-policy}", "hook-succeeded"},
		{"the policy that holds it is there before", "minimal", "", "ValidatingAdmissionPolicy", "outreach-release", hooks, ""},
		{"both processes end first", "minimal", "", "Job", "outreach-release", container + ".args}", "--scale-down=outreach-apiserver,outreach-manager"},
		{"as long as calls may take", "minimal", "manager: {terminationGracePeriodSeconds: 200}", "Job", "outreach-release", container + ".args}", "--wait=260s"},
		{"posts whose record is not kept wait", "full", "", "Job", "outreach-release", container + ".args}", "!--without-records"},
		{"without a bucket there are no records", "minimal", "media: {endpoint: \"\"}", "Job", "outreach-release", container + ".args}", "--without-records"},
		{"a manager that works again is not stopped once more", "minimal", "", "Job", "outreach-release", "{.spec.podFailurePolicy.rules[*].onExitCodes.values}", "[3]"},
		{"all teams are released", "minimal", "", "Job", "outreach-release", container + ".args}", "!--namespace"},
		{"those of another installation are not", "full", "", "Job", "outreach-release", container + ".args}", "--namespace=team-acme,team-beta"},
		{"it runs where the manager may", "full", "", "Job", "outreach-release", pod + ".tolerations}", "dedicated"},
		{"it is the plain image", "minimal", "thumbnails: {enabled: true}", "Job", "outreach-release", container + ".image}", "!ffmpeg"},
		{"it reaches the Kubernetes API", "minimal", "networkPolicy: {egressPorts: [16443]}", "NetworkPolicy", "outreach-release", "{.spec.egress[1].ports[*].port}", "16443"},
		{"nobody reaches it", "minimal", "", "NetworkPolicy", "outreach-release", "{.spec.policyTypes}{.spec.ingress}", `["Ingress","Egress"]`},
		{"by no rule", "minimal", "", "NetworkPolicy", "outreach-release", "{.spec.ingress}", ""},
		{"who does it by hand has none of it", "minimal", "release: {enabled: false}", "Job", "outreach-release", "", "-"},
		{"and no account for it", "minimal", "release: {enabled: false}", "ClusterRoleBinding", "outreach-release", "", "-"},

		{"two managers, so that one can take over", "minimal", "", "Deployment", "outreach-manager", "{.spec.replicas}", "2"},
		{"as many as are wanted", "minimal", "apiserver: {replicas: 5}", "Deployment", "outreach-apiserver", "{.spec.replicas}", "5"},
		{"none is said where the autoscaler decides", "full", "", "Deployment", "outreach-apiserver", "{.spec.replicas}", ""},
		{"by load", "full", "", "HorizontalPodAutoscaler", "outreach-apiserver", "{.spec.metrics[0].resource.target.averageUtilization}", "70"},
		{"none unless it is wanted", "minimal", "", "HorizontalPodAutoscaler", "outreach-apiserver", "", "-"},
		{"the manager has none: one replica works", "full", "", "HorizontalPodAutoscaler", "outreach-manager", "", "-"},
		{"calls under way are finished", "minimal", "", "Deployment", "outreach-manager", pod + ".terminationGracePeriodSeconds}", "150"},
		{"a list of 100,000 posts takes 10 s", "minimal", "", "Deployment", "outreach-apiserver", container + ".startupProbe.failureThreshold}", "60"},
		{"half of the memory is not enough for the collector", "minimal", "", "Deployment", "outreach-manager", env + ".value}", "GOMEMLIMIT 724775731"},
		{"a limit in other units", "minimal", "manager: {resources: {limits: {memory: 1G}}}", "Deployment", "outreach-manager", env + ".value}", "GOMEMLIMIT 900000000"},
		{"no limit", "minimal", "manager: {resources: {limits: {memory: null}}}", "Deployment", "outreach-manager", env + ".value}", "GOMEMLIMIT "},
		{"no limit, so that it is free", "minimal", "manager: {resources: {limits: {memory: null}}, env: [{name: GOMEMLIMIT, value: 1GiB}]}", "Deployment", "outreach-manager", env + ".value}", "GOMEMLIMIT 1GiB"},
		{"keys for the store that another tool brings", "minimal", "manager: {env: [{name: AWS_ACCESS_KEY_ID, value: a}]}", "Deployment", "outreach-manager", env + ".value}", "AWS_ACCESS_KEY_ID a"},
		{"a change of the configuration starts new pods", "minimal", "", "Deployment", "outreach-manager", "{.spec.template.metadata.annotations}", "checksum/config"},
		{"another level of the log starts none", "minimal", "", "Deployment", "outreach-manager", container + ".args}", "!log-level"},
		{"running pods take it over", "minimal", "log: {level: debug}", "ConfigMap", "outreach-manager", config, "log:\n  level: debug\n"},
		{"both of them", "minimal", "log: {level: debug}", "ConfigMap", "outreach-apiserver", config, "log:\n  level: debug\n"},
		{"a new version of the chart alone does not", "minimal", "", "Deployment", "outreach-manager", "{.spec.template.metadata.labels}", "!helm.sh/chart"},
		{"pods are spread", "minimal", "", "Deployment", "outreach-manager", pod + ".topologySpreadConstraints[0].labelSelector.matchLabels}", `"app.kubernetes.io/component":"manager"`},
		{"over what is wanted", "minimal", "apiserver: {topologySpreadConstraints: [{topologyKey: rack, maxSkew: 2, whenUnsatisfiable: DoNotSchedule}]}", "Deployment", "outreach-apiserver", pod + ".topologySpreadConstraints[*].topologyKey}", "rack"},

		{"one may be away", "minimal", "", "PodDisruptionBudget", "outreach-apiserver", "{.spec.maxUnavailable}", "1"},
		{"zero is a number too", "minimal", "apiserver: {pdb: {minAvailable: 0}}", "PodDisruptionBudget", "outreach-apiserver", "{.spec.minAvailable}", "0"},
		{"a share", "minimal", "apiserver: {pdb: {minAvailable: 50%}}", "PodDisruptionBudget", "outreach-apiserver", "{.spec.minAvailable}", "50%"},
		{"none", "minimal", "apiserver: {pdb: {enabled: false}}", "PodDisruptionBudget", "outreach-apiserver", "", "-"},

		{"a renewed token outlives the container", "minimal", "", "ConfigMap", "outreach-manager", config, "unsaved:\n    directory: /var/lib/herald/unsaved\n    keyFile: /etc/herald/unsaved-key/key\n"},
		{"in a folder of the pod", "minimal", "", "Deployment", "outreach-manager", pod + ".volumes[?(@.name==\"unsaved\")].emptyDir.sizeLimit}", "64Mi"},
		{"that is written", "minimal", "", "Deployment", "outreach-manager", container + ".volumeMounts[?(@.name==\"unsaved\")]}", `{"mountPath":"/var/lib/herald/unsaved","name":"unsaved"}`},
		{"sealed with a key that the chart makes", "minimal", "", "Secret", "outreach-unsaved-tokens", "{.data}", `"key":"`},
		{"for this process alone", "minimal", "", "Deployment", "outreach-apiserver", pod + ".volumes[*].name}", "!unsaved"},
		{"or with one that is there", "full", "", "Deployment", "outreach-manager", pod + ".volumes[?(@.name==\"unsaved-key\")].secret}", `{"items":[{"key":"text","path":"key"}],"secretName":"token-key"}`},
		{"the chart makes none then", "full", "", "Secret", "outreach-unsaved-tokens", "", "-"},
		{"in memory alone", "minimal", "manager: {unsavedTokens: {enabled: false}}", "ConfigMap", "outreach-manager", config, "!credentials"},
		{"without a Secret", "minimal", "manager: {unsavedTokens: {enabled: false}}", "Secret", "outreach-unsaved-tokens", "", "-"},

		{"the app's secret is a file", "full", "", "ConfigMap", "outreach-manager", config, "clientSecretFile: /etc/herald/platforms/x/client-secret"},
		{"of a Secret that is there", "full", "", "Deployment", "outreach-manager", pod + ".volumes[?(@.name==\"platforms\")]..secret}", `{"items":[{"key":"secret","path":"x/client-secret"}],"name":"x-app"}`},
		{"the apiserver connects accounts, and has it too", "full", "", "Deployment", "outreach-apiserver", pod + ".volumes[?(@.name==\"platforms\")]..secret}", `{"items":[{"key":"secret","path":"x/client-secret"}],"name":"x-app"}`},
		{"not without the web application", "full", "web: {enabled: false}", "Deployment", "outreach-apiserver", pod + ".volumes[*].name}", "!platforms"},
		{"nor does its file name one", "full", "web: {enabled: false}", "ConfigMap", "outreach-apiserver", config, "!clientSecretFile"},
		{"the web application has a Secret of the release", "minimal", "", "ConfigMap", "outreach-apiserver", config, "signInSecret: outreach-web"},
		{"people sign in by a provider", "full", "", "ConfigMap", "outreach-apiserver", config, "issuerURL: \"https://id.example.com:5554/realms/acme\""},
		{"whose client has a secret", "full", "", "Deployment", "outreach-apiserver", pod + ".volumes[?(@.name==\"oidc\")].secret.secretName}", "herald-oidc"},
		{"that the apiserver alone has", "full", "", "Deployment", "outreach-manager", pod + ".volumes[*].name}", "!oidc"},
		{"and whose port is open", "full", "", "NetworkPolicy", "outreach-apiserver", "{.spec.egress}", "5554"},
		{"or by a link", "minimal", "", "ConfigMap", "outreach-apiserver", config, "!oidc"},
		{"not at all", "minimal", "web: {enabled: false}", "ConfigMap", "outreach-apiserver", config, "web:\n  enabled: false"},
		{"agents have a server", "minimal", "", "ConfigMap", "outreach-apiserver", config, "mcp:\n  enabled: true"},
		{"or none", "minimal", "mcp: {enabled: false}", "ConfigMap", "outreach-apiserver", config, "mcp:\n  enabled: false"},
		{"an address with a path is for programs", "minimal", "siteURL: https://example.com/herald\nweb: {enabled: false}", "ConfigMap", "outreach-apiserver", config, "siteURL: https://example.com/herald"},
		{"a role for people", "minimal", "", "ClusterRole", "outreach-editor", "{.rules[0].resources}", `["posts","postschedules","media"]`},
		{"which pages call by its name", "minimal", "", "ConfigMap", "outreach-apiserver", config, "rolePrefix: outreach\n"},
		{"however the release is called", "minimal", "fullnameOverride: social", "ConfigMap", "social-apiserver", config, "rolePrefix: social\n"},
		{"a public client of X has none", "minimal", "platforms: {x: {enabled: true, clientID: a}}", "Deployment", "outreach-manager", pod + ".volumes[*].name}", "config"},
		{"keys of the store come from a Secret", "full", "", "Deployment", "outreach-apiserver", env + ".valueFrom.secretKeyRef}", `AWS_SECRET_ACCESS_KEY {"key":"secret-key","name":"store-keys"}`},
		{"or from the cloud", "minimal", "media: {endpoint: 'https://s3.example.com'}\nmanager: {serviceAccount: {annotations: {a: b}}}", "ServiceAccount", "outreach-manager", "{.metadata.annotations}", `{"a":"b"}`},
		{"then there are no keys", "minimal", "media: {endpoint: 'https://s3.example.com'}", "Deployment", "outreach-apiserver", env + ".name}", "AWS_ACCESS_KEY_ID "},
		{"the store is in both files", "full", "", "ConfigMap", "outreach-apiserver", config, "endpoint: \"https://s3.example.com:9443\""},
		{"without a store there is no section", "minimal", "", "ConfigMap", "outreach-apiserver", config, "!media:"},
		{"the teams to serve", "full", "", "ConfigMap", "outreach-apiserver", config, "- team-beta"},
		{"the names that the manager derives", "minimal", "fullnameOverride: social", "ConfigMap", "social-manager", config, "releaseName: social"},

		{"a proxy for the platforms", "full", "", "Deployment", "outreach-manager", env + ".value}", "HTTPS_PROXY http://proxy.example.com:3128"},
		{"and none for the Kubernetes API", "full", "", "Deployment", "outreach-manager", env + ".value}", "NO_PROXY $(KUBERNETES_SERVICE_HOST),localhost,127.0.0.1,::1,.svc,.cluster.local,s3.example.com"},
		{"no proxy, no exceptions", "minimal", "", "Deployment", "outreach-manager", env + ".name}", "NO_PROXY "},
		{"its authority, for the platforms", "full", "", "ConfigMap", "outreach-manager", config, "caBundle: /etc/herald/ca/ca.crt"},
		{"and for the store", "full", "", "Deployment", "outreach-apiserver", env + ".value}", "SSL_CERT_DIR /etc/herald/ca"},

		{"the API speaks HTTP behind an Ingress", "minimal", "", "Service", "outreach-apiserver", "{.spec.ports[0].port}", "80"},
		{"or HTTPS itself", "minimal", "apiserver: {tls: {secretName: api-tls}}", "Service", "outreach-apiserver", "{.spec.ports[0].port}", "443"},
		{"with the certificate of a Secret", "minimal", "apiserver: {tls: {secretName: api-tls}}", "Deployment", "outreach-apiserver", pod + ".volumes[?(@.name==\"tls\")].secret.secretName}", "api-tls"},
		{"whose files are in the configuration", "minimal", "apiserver: {tls: {secretName: api-tls}}", "ConfigMap", "outreach-apiserver", config, "certFile: /etc/herald/tls/tls.crt"},
		{"or of cert-manager", "full", "", "Certificate", "outreach-apiserver", "{.spec.dnsNames}", `["herald.example.com","outreach-apiserver.social.svc"`},
		{"the site's host", "full", "", "Ingress", "outreach-apiserver", "{.spec.rules[0].host}", "herald.example.com"},
		{"without its port", "minimal", "siteURL: 'https://h.example.com:8443/x/'\nweb: {enabled: false}\napiserver: {ingress: {enabled: true}}", "Ingress", "outreach-apiserver", "{.spec.rules[0].host}", "h.example.com"},
		{"a route of a Gateway", "full", "", "HTTPRoute", "outreach-apiserver", "{.spec.rules[0].backendRefs[0]}", `{"name":"outreach-apiserver","port":443}`},
		{"neither unless it is wanted", "minimal", "", "Ingress", "outreach-apiserver", "", "-"},

		{"the webhook of the release", "minimal", "", "ValidatingWebhookConfiguration", "outreach", "{.webhooks[0].clientConfig.service}", `{"name":"outreach-webhook","namespace":"social","port":443}`},
		{"whose path the manager chooses", "minimal", "", "ClusterRole", "outreach-webhook-trust", "{.rules[0]}", `{"apiGroups":["admissionregistration.k8s.io"],"resourceNames":["outreach"],"resources":["validatingwebhookconfigurations"],"verbs":["patch"]}`},
		{"unless cert-manager keeps the certificate", "full", "", "ValidatingWebhookConfiguration", "outreach", "{.webhooks[0].clientConfig.service.path}", "/validate-post"},
		{"whose callers a NetworkPolicy can name", "full", "", "NetworkPolicy", "outreach-manager", "{.spec.ingress[1]}", `{"from":[{"ipBlock":{"cidr":"10.0.0.0/28"}}],"ports":[{"port":"webhook","protocol":"TCP"}]}`},
		{"then the manager has no right to the configuration", "full", "", "ClusterRole", "outreach-webhook-trust", "", "-"},
		{"posts of the apiserver are judged already", "minimal", "", "ValidatingWebhookConfiguration", "outreach", "{.webhooks[0].matchConditions[0].expression}", "system:serviceaccount:social:outreach-apiserver"},
		{"the manager may keep its certificate", "minimal", "", "Role", "outreach-webhook-certificate", "{.rules[1].resourceNames}", `["outreach-webhook-certificate"]`},
		{"cert-manager keeps it", "full", "", "Certificate", "outreach-webhook", "{.spec.secretName}", "outreach-webhook-certificate"},
		{"by an issuer of the chart", "full", "", "Issuer", "outreach-webhook", "{.spec.selfSigned}", "{}"},
		{"or another", "minimal", "webhook: {certManager: {enabled: true, issuer: {name: a, kind: ClusterIssuer}}}", "Certificate", "outreach-webhook", "{.spec.issuerRef}", `{"group":"cert-manager.io","kind":"ClusterIssuer","name":"a"}`},
		{"and sets the authority", "full", "", "ValidatingWebhookConfiguration", "outreach", "{.metadata.annotations}", `"cert-manager.io/inject-ca-from":"social/outreach-webhook"`},
		{"then the manager needs no right to the Secret", "full", "", "Role", "outreach-webhook-certificate", "", "-"},
		{"no webhook", "minimal", "webhook: {enabled: false}", "ValidatingWebhookConfiguration", "outreach", "", "-"},
		{"is said to the manager", "minimal", "webhook: {enabled: false}", "ConfigMap", "outreach-manager", config, `bindAddress: "0"`},

		{"definitions come with the chart", "minimal", "", "CustomResourceDefinition", "posts.social.herald.dev", "{.metadata.annotations}", `"helm.sh/resource-policy":"keep"`},
		{"and may go with it", "minimal", "crds: {keep: false}", "CustomResourceDefinition", "posts.social.herald.dev", "{.metadata.annotations}", "!resource-policy"},
		{"or come otherwise", "minimal", "crds: {enabled: false}", "CustomResourceDefinition", "posts.social.herald.dev", "", "-"},

		{"metrics are read by those with the right", "full", "", "ClusterRoleBinding", "outreach-metrics-readers", "{.subjects[0]}", `{"kind":"ServiceAccount","name":"prometheus","namespace":"monitoring"}`},
		{"a ServiceMonitor finds the Services", "full", "", "Service", "outreach-manager-metrics", "{.metadata.labels}", `"herald.dev/serves":"metrics"`},
		{"and checks the certificate", "full", "", "ServiceMonitor", "outreach", "{.spec.endpoints[0].tlsConfig.serverName}", "outreach-metrics"},
		{"a PodMonitor shows a token", "minimal", "metrics: {podMonitor: {enabled: true, tokenSecret: {name: a}}}", "PodMonitor", "outreach", "{.spec.podMetricsEndpoints[0].authorization.credentials}", `{"key":"token","name":"a"}`},
		{"unless metrics are plain", "minimal", "metrics: {plain: true, podMonitor: {enabled: true}}", "PodMonitor", "outreach", "{.spec.podMetricsEndpoints[0].scheme}", "http"},
		{"which the process is told", "minimal", "metrics: {plain: true}", "ConfigMap", "outreach-apiserver", config, "plain: true"},
		{"alerts, whose own templates stay", "full", "", "PrometheusRule", "outreach-manager", "{.spec.groups[0].rules[0].annotations.summary}", "{{ $labels.namespace }}/{{ $labels.pod }}"},
		{"alerts with Prometheus' label", "full", "", "PrometheusRule", "outreach-connections", "{.metadata.labels}", `"release":"prometheus"`},
		{"each with its page", "full", "", "PrometheusRule", "outreach-posts", "{.spec.groups[0].rules[0].annotations.runbook_url}", "https://github.com/herald-social/herald/blob/main/docs/runbooks/HeraldOutcomeUnknown.md"},
		{"no alerts unless they are wanted", "minimal", "", "PrometheusRule", "outreach-posts", "", "-"},
		{"Grafana's sidecar finds the dashboard", "full", "", "ConfigMap", "outreach-dashboard", "{.metadata.labels}", `"grafana_dashboard":"1"`},
		{"and puts it into a folder", "full", "", "ConfigMap", "outreach-dashboard", "{.metadata.annotations}", `{"grafana_folder":"Herald"}`},
		{"whose own templates stay", "full", "", "ConfigMap", "outreach-dashboard", "{.data.outreach\\.json}", `"legendFormat": "{{namespace}}"`},
		{"by another label", "minimal", "metrics: {dashboard: {enabled: true, labels: {grafana_dashboard: null, dashboards: team}}}", "ConfigMap", "outreach-dashboard", "{.metadata.labels}", `"dashboards":"team"`},
		{"more posts than the default sizes are for", "full", "", "PrometheusRule", "outreach-manager", "{.spec.groups[0].rules[?(@.alert==\"HeraldTooManyPosts\")].expr}", "(herald_post_index_posts) > 100000"},
		{"than one's own sizes are for, in full digits", "full", "metrics: {prometheusRule: {tooManyPosts: 1000000}}", "PrometheusRule", "outreach-manager", "{.spec.groups[0].rules[?(@.alert==\"HeraldTooManyPosts\")].expr}", "(herald_post_index_posts) > 1000000"},
		{"no dashboard unless it is wanted", "minimal", "", "ConfigMap", "outreach-dashboard", "", "-"},

		{"pods reach what they need", "minimal", "", "NetworkPolicy", "outreach-manager", "{.spec.egress[*].ports[*].port}", "53 53 5353 5353 443 6443 8443"},
		{"and the ports of mail server, store, proxy and provider", "full", "", "NetworkPolicy", "outreach-apiserver", "{.spec.egress[1].ports[*].port}", "443 6443 8443 587 3128 4318 5554 9443"},
		{"metrics are for monitoring", "full", "", "NetworkPolicy", "outreach-manager", "{.spec.ingress[2].from[0].namespaceSelector.matchLabels}", "monitoring"},
		{"OpenShift's DNS listens on 5353, which policies see", "minimal", "", "NetworkPolicy", "outreach-manager", "{.spec.egress[0].ports}", `[{"port":53,"protocol":"UDP"},{"port":53,"protocol":"TCP"},{"port":5353,"protocol":"UDP"},{"port":5353,"protocol":"TCP"}]`},
		{"a trial's pods find names there, too", "evaluation", "", "NetworkPolicy", "outreach-sandbox", "{.spec.egress[0].ports[*].port}", "53 53 5353 5353"},
		{"the cloud's identity is asked for in the node", "minimal", "media: {endpoint: 'https://s3.example.com'}", "NetworkPolicy", "outreach-apiserver", "{.spec.egress[2]}", `{"ports":[{"port":80,"protocol":"TCP"}],"to":[{"ipBlock":{"cidr":"169.254.170.23/32"}},{"ipBlock":{"cidr":"169.254.169.254/32"}}]}`},
		{"by the manager as well", "minimal", "media: {endpoint: 'https://s3.example.com'}", "NetworkPolicy", "outreach-manager", "{.spec.egress[2].to[*].ipBlock.cidr}", "169.254.170.23/32 169.254.169.254/32"},
		{"keys of a Secret need no identity, which stays out of reach", "minimal", "media: {endpoint: 'https://s3.example.com', credentials: {name: s3}}", "NetworkPolicy", "outreach-manager", "{.spec.egress}", "!169.254"},
		{"no store, no identity", "minimal", "", "NetworkPolicy", "outreach-manager", "{.spec.egress}", "!169.254"},
		{"the lease waits for no other operator", "minimal", "", "FlowSchema", "outreach-leases", "{.spec.rules[0].subjects[0].serviceAccount.name} {.spec.rules[0].resourceRules[0].namespaces}", `outreach-manager ["social"]`},
		{"no FlowSchemas", "minimal", "priorityAndFairness: {enabled: false}", "FlowSchema", "outreach-leases", "", "-"},
		{"nor levels", "minimal", "priorityAndFairness: {enabled: false}", "PriorityLevelConfiguration", "outreach-delivery", "", "-"},
		{"a policy engine holds the rules", "minimal", "admissionPolicies: {enabled: false}", "ValidatingAdmissionPolicy", "outreach-metadata", "", "-"},
		{"no policies", "minimal", "networkPolicy: {enabled: false}", "NetworkPolicy", "outreach-manager", "", "-"},

		{"traces go to a collector", "full", "", "ConfigMap", "outreach-apiserver", config, "tracing:\n  endpoint: \"http://collector.observability.svc:4318\"\n  samplingRatio: 0.1\n"},
		{"from both processes", "full", "", "ConfigMap", "outreach-manager", config, "tracing:\n  endpoint: \"http://collector.observability.svc:4318\""},
		{"which show it a token", "full", "", "Deployment", "outreach-manager", env + ".valueFrom.secretKeyRef}", `OTEL_EXPORTER_OTLP_HEADERS {"key":"headers","name":"collector-token"}`},
		{"there are none unless they are wanted", "minimal", "", "ConfigMap", "outreach-manager", config, "!tracing:"},
		{"none of them at all is a share, too", "minimal", "tracing: {endpoint: 'https://otlp.example.com', samplingRatio: 0}", "ConfigMap", "outreach-manager", config, "samplingRatio: 0\n"},
		{"the port of an address without one", "minimal", "tracing: {endpoint: 'http://otlp.example.com'}", "NetworkPolicy", "outreach-manager", "{.spec.egress[1].ports[*].port}", "443 6443 8443 80"},

		{"a trial publishes to the sandbox", "evaluation", "", "ConfigMap", "outreach-manager", config, "url: http://outreach-sandbox.social.svc:9100\n"},
		{"all platforms of it", "evaluation", "", "ConfigMap", "outreach-manager", config, "  youtube:\n    clientID: evaluation\n"},
		{"and has a store", "evaluation", "", "Deployment", "outreach-store", container + ".image}", "/herald-store:v0.1.0"},
		{"with a key that stays where it is told", "evaluation", "evaluation: {storeKey: abcdefghij0123456789}", "Secret", "outreach-store", "{.data.secret-key}", "YWJjZGVmZ2hpajAxMjM0NTY3ODk="},
		{"its pages of consent are where a browser finds them", "evaluation", "", "ConfigMap", "outreach-apiserver", config, "publicURL: http://127.0.0.1:9100\n"},
		{"so are posts", "evaluation", "", "ConfigMap", "outreach-manager", config, "publicURL: http://127.0.0.1:9100\n"},
		{"the real platforms are called otherwise", "full", "", "ConfigMap", "outreach-manager", config, "!sandbox"},
		{"also those whose address the platform tells", "evaluation", "", "Deployment", "outreach-sandbox", container + ".args}", `"--site-url=http://127.0.0.1:9100"`},
		{"the code is exchanged in the cluster", "evaluation", "", "ConfigMap", "outreach-apiserver", config, "url: http://outreach-sandbox.social.svc:9100\n"},
		{"people come back to where they were", "evaluation", "", "ConfigMap", "outreach-apiserver", config, "siteURL: http://127.0.0.1:8080\n"},
		{"they upload to where a browser finds the store", "evaluation", "", "ConfigMap", "outreach-apiserver", config, "publicEndpoint: \"http://127.0.0.1:9000\""},
		{"which platforms do not: what they fetch is in the cluster", "evaluation", "", "ConfigMap", "outreach-manager", config, "!publicEndpoint"},
		{"all of it has other addresses behind an Ingress", "evaluation", "evaluation: {sandboxURL: 'https://sandbox.example.com/', storeURL: 'https://files.example.com/'}", "ConfigMap", "outreach-apiserver", config, "publicEndpoint: \"https://files.example.com\""},
		{"without a second slash", "evaluation", "evaluation: {sandboxURL: 'https://sandbox.example.com/'}", "ConfigMap", "outreach-apiserver", config, "publicURL: https://sandbox.example.com\n"},
		{"and another one of the site", "evaluation", "siteURL: https://herald.example.com", "ConfigMap", "outreach-apiserver", config, "siteURL: https://herald.example.com\n"},
		{"the person of the one-time link may do everything in the team to begin with", "evaluation", "", "ConfigMap", "outreach-demo", "{.data.demo\\.yaml}", "name: outreach-admin\nsubjects:\n- apiGroup: rbac.authorization.k8s.io\n  kind: User\n  name: herald:link"},
		{"there is none without the web application", "evaluation", "web: {enabled: false}", "ConfigMap", "outreach-demo", "{.data.demo\\.yaml}", "!herald:link"},
		{"and a team to begin with", "evaluation", "", "ConfigMap", "outreach-demo", "{.data.demo\\.yaml}", "name: demo-youtube"},
		{"nothing of it otherwise", "minimal", "", "Deployment", "outreach-sandbox", "", "-"},
	} {
		values := with(t, tc.from, tc.values)
		if tc.kind != "CustomResourceDefinition" {
			// They are most of the output and take most of the time.
			values["crds"] = map[string]any{"enabled": false}
		}
		object := find(rendered(t, values), tc.kind, tc.name)
		if (object == nil) != (tc.want == "-") {
			t.Errorf("%s: there is %s %s: %t", tc.reason, tc.kind, tc.name, object != nil)
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
		"no section of traces":      "tracing: null",
		"no dashboard":              "metrics: {dashboard: null}",
		"no threshold of the alert": "metrics: {prometheusRule: {enabled: true, tooManyPosts: null}}",
		"no web application":        "web: null",
		"no agents":                 "mcp: null",
		"no release":                "release: null",
		"no provider":               "web: {oidc: null}",
		"half of a provider":        "web: {oidc: {issuerURL: 'https://id.example.com', clientID: a, clientSecret: null, scopes: null}}",
		"none of what is new":       "web: null\ntracing: null\nmetrics: {dashboard: null, prometheusRule: {tooManyPosts: null}}",
		"the new section in part":   "tracing: {samplingRatio: null, headers: null, endpoint: 'http://c:4318'}",
	} {
		for _, name := range []string{"minimal", "evaluation"} {
			text, err := renderChart(chartFolder, outreach, with(t, name, missing))
			if err != nil {
				t.Errorf("%s, %s: %v", name, reason, err)
			}
			if strings.Contains(text, "<no value>") || strings.Contains(text, "<nil>") {
				t.Errorf("%s, %s: something is not said", name, reason)
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
			var made corev1.PodTemplateSpec
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(template, &made, true); err != nil {
				t.Fatalf("%s: %s: %v", name, object.GetName(), err)
			}
			for _, result := range evaluator.EvaluatePod(restricted, &made.ObjectMeta, &made.Spec) {
				if !result.Allowed {
					t.Errorf("%s: %s: %s: %s", name, object.GetName(), result.ForbiddenReason, result.ForbiddenDetail)
				}
			}
			for _, c := range made.Spec.Containers {
				if c.SecurityContext.ReadOnlyRootFilesystem == nil || !*c.SecurityContext.ReadOnlyRootFilesystem {
					t.Errorf("%s: %s: the root of its file system can be written", name, object.GetName())
				}
			}
		}
		want := []string{"outreach-apiserver", "outreach-manager", "outreach-release"}
		if name == "evaluation" {
			want = append(want, "outreach-sandbox", "outreach-store")
		}
		slices.Sort(found)
		if !slices.Equal(found, want) {
			t.Errorf("%s: looked at %v, want %v", name, found, want)
		}
	}
}

// TestLogLevelStartsNoPods renders the Deployments with two log levels. A new level must only change the ConfigMap,
// which running pods reload, and not the pods.
func TestLogLevelStartsNoPods(t *testing.T) {
	quiet, loud := rendered(t, with(t, "minimal", "log: {level: info}")), rendered(t, with(t, "minimal", "log: {level: debug}"))
	other := rendered(t, with(t, "minimal", "apiserver: {config: {requestsPerMinute: 7}}\nmanager: {config: {shutdownTimeout: 131s}}"))
	for _, process := range []string{"outreach-manager", "outreach-apiserver"} {
		const annotations, template = "{.spec.template.metadata.annotations}", "{.spec.template}"
		if got, want := at(t, find(loud, "Deployment", process), template), at(t, find(quiet, "Deployment", process), template); got != want {
			t.Errorf("%s: another level starts new pods:\n%s\n%s", process, want, got)
		}
		if got := at(t, find(loud, "ConfigMap", process), config); !strings.Contains(got, "level: debug") {
			t.Errorf("%s: nothing tells the level: %s", process, got)
		}
		if at(t, find(other, "Deployment", process), annotations) == at(t, find(quiet, "Deployment", process), annotations) {
			t.Errorf("%s: another configuration does not start new pods", process)
		}
	}
}
