// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

// TestInvalidValues checks the error messages for inconsistent values.
func TestInvalidValues(t *testing.T) {
	for _, tc := range []struct {
		reason, from, values string
		want                 []string
	}{
		{"neither site URL nor platform", "minimal", "siteURL: ''\nplatforms: {facebook: {enabled: false}}", []string{"siteURL is required", "platforms: none is enabled"}},
		{"no site URL", "minimal", "siteURL: ''", []string{"siteURL is required", "https://herald.example.com"}},
		{"no platform", "minimal", "platforms: {facebook: {enabled: false}}", []string{"platforms: none is enabled"}},
		{"an unknown value", "minimal", "replicaCount: 3", []string{"replicaCount"}},
		{"an unknown nested value", "minimal", "manager: {replica: 3}", []string{"/manager", "replica"}},
		{"an unknown field of the configuration", "minimal", "manager: {config: {delivery: {startingDeadlines: 1h}}}", []string{"startingDeadlines"}},
		{"a duration without a unit", "minimal", "manager: {config: {shutdownTimeout: '130'}}", []string{"/manager/config/shutdownTimeout"}},
		{"text for a number", "minimal", "manager: {replicas: two}", []string{"/manager/replicas"}},
		{"zero replicas", "minimal", "apiserver: {replicas: 0}", []string{"/apiserver/replicas"}},
		{"a URL without a scheme", "minimal", "siteURL: herald.example.com", []string{"/siteURL"}},
		{"an unknown platform", "minimal", "platforms: {myspace: {enabled: true}}", []string{"myspace"}},
		{"an unknown field of a platform", "minimal", "platforms: {facebook: {config: {clientSecretFile: /x}}}", []string{"clientSecretFile"}},
		{"a platform's API address cannot be changed", "minimal", "platforms: {x: {config: {apiURL: 'http://127.0.0.1:9100/x'}}}", []string{"/platforms/x/config", "apiURL"}},
		{
			"X's tokens expire after two hours and need a client to renew them", "minimal", "platforms: {x: {enabled: true}}",
			[]string{"platforms.x.clientID is required"},
		},
		{
			"YouTube renews tokens only with the app's secret", "minimal", "platforms: {youtube: {enabled: true, clientID: a}}",
			[]string{"platforms.youtube.clientSecret.name is required"},
		},
		{
			"Bluesky's servers would not read the document", "minimal", "siteURL: http://herald.example.com\nplatforms: {bluesky: {enabled: true, clientSecret: {name: a}}}",
			[]string{"platforms.bluesky.clientSecret.name: servers read Herald's document over HTTPS only, and siteURL is http://herald.example.com"},
		},
		{
			"the kubelet would kill pods during a call", "minimal", "manager: {terminationGracePeriodSeconds: 130}",
			[]string{"manager.terminationGracePeriodSeconds is 130", "shutdownTimeout, which is 130s"},
		},
		{
			"a longer timeout needs a longer grace period", "minimal", "manager: {config: {shutdownTimeout: 2m31s}}",
			[]string{"manager.terminationGracePeriodSeconds is 150", "2m31s"},
		},
		{
			"the process would reject a timeout below recordFor", "minimal", "manager: {config: {shutdownTimeout: 2m}}",
			[]string{"manager.config.shutdownTimeout is 2m", "recordFor, 1m"},
		},
		{
			"two managers would hold the lease", "minimal", "manager: {config: {leaderElection: {leaseDuration: 10s}}}",
			[]string{"leaderElection.leaseDuration is 10s"},
		},
		{
			"client-go would reject the value", "minimal", "manager: {config: {leaderElection: {retryPeriod: 9s}}}",
			[]string{"leaderElection.renewDeadline is 10s"},
		},
		{
			"more fetches than media workers", "minimal", "manager: {config: {concurrency: {fetches: 17}}}",
			[]string{"concurrency.fetches is 17", "only 16 workers"},
		},
		{
			"open requests would be aborted", "minimal", "apiserver: {config: {shutdown: {timeout: 27s}}}",
			[]string{"apiserver.terminationGracePeriodSeconds is 30"},
		},
		{
			"Prometheus would scrape each pod twice", "minimal", "metrics: {plain: true, serviceMonitor: {enabled: true}, podMonitor: {enabled: true}}",
			[]string{"metrics.serviceMonitor.enabled and metrics.podMonitor.enabled"},
		},
		{
			"a PodMonitor needs a token", "minimal", "metrics: {podMonitor: {enabled: true}}",
			[]string{"metrics.podMonitor.tokenSecret.name is required"},
		},
		{"a sampling ratio above 1", "minimal", "tracing: {endpoint: 'http://c:4318', samplingRatio: 10}", []string{"/tracing/samplingRatio"}},
		{"a collector's address without a scheme", "minimal", "tracing: {endpoint: 'c:4318'}", []string{"/tracing/endpoint"}},
		{"a token without a collector", "minimal", "tracing: {headers: {name: a}}", []string{"tracing.headers.name is set without a collector"}},
		{"an alert that always fires", "full", "metrics: {prometheusRule: {tooManyPosts: 0}}", []string{"/metrics/prometheusRule/tooManyPosts"}},
		{"plain metrics with a certificate", "minimal", "metrics: {plain: true, certificateSecret: a}", []string{"metrics.certificateSecret"}},
		{
			"Kubernetes accepts only one of the two fields", "minimal", "manager: {pdb: {minAvailable: 0, maxUnavailable: 1}}",
			[]string{"manager.pdb: minAvailable and maxUnavailable"},
		},
		{
			"a duplicate annotation is invalid YAML", "minimal", "manager: {podAnnotations: {checksum/config: a}}",
			[]string{"manager.podAnnotations: the chart sets checksum/config", "remove it"},
		},
		{
			"the chart sets the default container", "minimal", "apiserver: {podAnnotations: {kubectl.kubernetes.io/default-container: a}}",
			[]string{"apiserver.podAnnotations: the chart sets kubectl.kubernetes.io/default-container"},
		},
		{
			"a duplicate variable: server-side apply rejects it, and otherwise its value depends on the order", "minimal", "manager: {env: [{name: GOMEMLIMIT, value: 1GiB}]}",
			[]string{"manager.env: the chart sets GOMEMLIMIT from manager.resources.limits.memory"},
		},
		{
			"duplicate store keys", "full", "apiserver: {env: [{name: AWS_SECRET_ACCESS_KEY, value: a}, {name: AWS_ACCESS_KEY_ID, value: b}]}",
			[]string{"apiserver.env: the chart sets AWS_SECRET_ACCESS_KEY from media.credentials", "AWS_ACCESS_KEY_ID from media.credentials"},
		},
		{
			"duplicate store keys in an evaluation", "evaluation", "manager: {env: [{name: AWS_ACCESS_KEY_ID, value: a}]}",
			[]string{"manager.env: the chart sets AWS_ACCESS_KEY_ID from evaluation.enabled"},
		},
		{
			"duplicate proxy variables", "full", "manager: {env: [{name: HTTPS_PROXY, value: 'http://p:1'}, {name: NO_PROXY, value: a}]}",
			[]string{"manager.env: the chart sets HTTPS_PROXY from proxy.https", "the chart sets NO_PROXY from proxy.https"},
		},
		{
			"duplicate certificate authorities", "full", "manager: {env: [{name: SSL_CERT_DIR, value: /a}]}",
			[]string{"manager.env: the chart sets SSL_CERT_DIR from caBundle.configMap"},
		},
		{
			"a duplicate collector token", "full", "apiserver: {env: [{name: OTEL_EXPORTER_OTLP_HEADERS, value: a}]}",
			[]string{"apiserver.env: the chart sets OTEL_EXPORTER_OTLP_HEADERS from tracing.headers"},
		},
		{
			"a minimum above the maximum", "minimal", "apiserver: {autoscaling: {enabled: true, minReplicas: 7}}",
			[]string{"apiserver.autoscaling.minReplicas is 7 and maxReplicas is 6"},
		},
		{
			"utilization is a share of the requested CPU", "minimal", "apiserver: {autoscaling: {enabled: true}, resources: {requests: {cpu: null}}}",
			[]string{"apiserver.resources.requests.cpu is required"},
		},
		{"an HTTPRoute without a Gateway", "minimal", "apiserver: {httpRoute: {enabled: true}}", []string{"apiserver.httpRoute.parentRefs is required"}},
		{
			"an Ingress needs a host name, not an IP address", "minimal", "siteURL: 'http://192.0.2.1:8080'\napiserver: {ingress: {enabled: true}}",
			[]string{"siteURL is http://192.0.2.1:8080", "name of a host"},
		},
		{
			"a certificate from an unknown issuer", "minimal", "apiserver: {tls: {certManager: {enabled: true}}}",
			[]string{"apiserver.tls.certManager.issuer.name is required"},
		},
		{
			"two sources of the certificate", "minimal", "apiserver: {tls: {secretName: a, certManager: {enabled: true, issuer: {name: b}}}}",
			[]string{"apiserver.tls.secretName and apiserver.tls.certManager.enabled"},
		},
		{
			"an evaluation's loopback address cannot have an Ingress", "evaluation", "apiserver: {ingress: {enabled: true}}",
			[]string{"siteURL is http://127.0.0.1:8080", "name of a host"},
		},
		{"the web application does not support a path", "minimal", "siteURL: https://example.com/herald", []string{"siteURL is https://example.com/herald", "web.enabled: false"}},
		{"an OIDC provider without a client ID", "minimal", "web: {oidc: {issuerURL: 'https://id.example.com'}}", []string{"web.oidc.clientID is required"}},
		{"an OIDC client without a provider", "minimal", "web: {oidc: {clientID: herald}}", []string{"web.oidc.issuerURL is required"}},
		{"an Ingress certificate without an Ingress", "minimal", "apiserver: {ingress: {tlsSecret: a}}", []string{"apiserver.ingress.tlsSecret"}},
		{"store credentials without a store", "minimal", "media: {credentials: {name: a}}", []string{"media.credentials.name", "media.endpoint"}},
		{
			"an evaluation must not call real platforms", "evaluation", "platforms: {threads: {enabled: true}}",
			[]string{"platforms.threads.enabled", "simulated"},
		},
		{"an evaluation has its own store", "evaluation", "media: {endpoint: 'https://s3.example.com'}", []string{"media.endpoint"}},
		{"an invalid object name", "minimal", "fullnameOverride: Herald", []string{"/fullnameOverride"}},
		{"a label that selectors use", "minimal", "commonLabels: {app.kubernetes.io/name: x}", []string{"/commonLabels"}},
	} {
		text, err := renderChart(chartFolder, outreach, with(t, tc.from, tc.values))
		if err == nil {
			t.Errorf("%s: the chart rendered %d bytes without an error", tc.reason, len(text))
			continue
		}
		for _, want := range tc.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: want %q in: %v", tc.reason, want, err)
			}
		}
	}
}

func TestNamesOfReleases(t *testing.T) {
	for _, tc := range []struct {
		reason, name string
		ok           bool
	}{
		{"the default name", "herald", true},
		{"the longest name that fits a Service's", "a" + strings.Repeat("b", 42), true},
		{"one character too long", "a" + strings.Repeat("b", 43), false},
		{"a Service's name cannot start with a digit", "2herald", false},
	} {
		_, err := renderChart(chartFolder, release{name: tc.name, namespace: "social"}, valuesOf(t, "minimal"))
		if (err == nil) != tc.ok {
			t.Errorf("%s: %v", tc.reason, err)
		}
		if err != nil && !strings.Contains(err.Error(), "fullnameOverride") {
			t.Errorf("%s: the error does not name fullnameOverride: %v", tc.reason, err)
		}
	}
}
