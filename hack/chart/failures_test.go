// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

// TestMistakesAreNamed checks the error messages for inconsistent values.
func TestMistakesAreNamed(t *testing.T) {
	for _, tc := range []struct {
		reason, from, values string
		want                 []string
	}{
		{"nothing at all", "minimal", "siteURL: ''\nplatforms: {facebook: {enabled: false}}", []string{"siteURL is required", "platforms: none is enabled"}},
		{"no address", "minimal", "siteURL: ''", []string{"siteURL is required", "https://herald.example.com"}},
		{"no platform", "minimal", "platforms: {facebook: {enabled: false}}", []string{"platforms: none is enabled"}},
		{"what does not exist", "minimal", "replicaCount: 3", []string{"replicaCount"}},
		{"what does not exist, further down", "minimal", "manager: {replica: 3}", []string{"/manager", "replica"}},
		{"a field of the configuration that does not exist", "minimal", "manager: {config: {delivery: {startingDeadlines: 1h}}}", []string{"startingDeadlines"}},
		{"a duration without a unit", "minimal", "manager: {config: {shutdownTimeout: '130'}}", []string{"/manager/config/shutdownTimeout"}},
		{"text for a number", "minimal", "manager: {replicas: two}", []string{"/manager/replicas"}},
		{"no replica", "minimal", "apiserver: {replicas: 0}", []string{"/apiserver/replicas"}},
		{"an address without its scheme", "minimal", "siteURL: herald.example.com", []string{"/siteURL"}},
		{"a platform that does not exist", "minimal", "platforms: {myspace: {enabled: true}}", []string{"myspace"}},
		{"a field that the platform's section has not", "minimal", "platforms: {facebook: {config: {clientSecretFile: /x}}}", []string{"clientSecretFile"}},
		{"another address of a platform", "minimal", "platforms: {x: {config: {apiURL: 'http://127.0.0.1:9100/x'}}}", []string{"/platforms/x/config", "apiURL"}},
		{
			"tokens of X end after two hours", "minimal", "platforms: {x: {enabled: true}}",
			[]string{"platforms.x.clientID is required"},
		},
		{
			"YouTube renews with the app's secret alone", "minimal", "platforms: {youtube: {enabled: true, clientID: a}}",
			[]string{"platforms.youtube.clientSecret.name is required"},
		},
		{
			"pods are killed in the middle of a call", "minimal", "manager: {terminationGracePeriodSeconds: 130}",
			[]string{"manager.terminationGracePeriodSeconds is 130", "shutdownTimeout, which is 130s"},
		},
		{
			"a longer timeout needs a longer grace period", "minimal", "manager: {config: {shutdownTimeout: 2m31s}}",
			[]string{"manager.terminationGracePeriodSeconds is 150", "2m31s"},
		},
		{
			"the process would refuse it", "minimal", "manager: {config: {shutdownTimeout: 2m}}",
			[]string{"manager.config.shutdownTimeout is 2m", "recordFor, 1m"},
		},
		{
			"two would hold the lease", "minimal", "manager: {config: {leaderElection: {leaseDuration: 10s}}}",
			[]string{"leaderElection.leaseDuration is 10s"},
		},
		{
			"client-go would refuse it", "minimal", "manager: {config: {leaderElection: {retryPeriod: 9s}}}",
			[]string{"leaderElection.renewDeadline is 10s"},
		},
		{
			"more fetches than workers", "minimal", "manager: {config: {concurrency: {fetches: 17}}}",
			[]string{"concurrency.fetches is 17", "only 16 workers"},
		},
		{
			"requests would be cut", "minimal", "apiserver: {config: {shutdown: {timeout: 27s}}}",
			[]string{"apiserver.terminationGracePeriodSeconds is 30"},
		},
		{
			"both would read the same metrics", "minimal", "metrics: {plain: true, serviceMonitor: {enabled: true}, podMonitor: {enabled: true}}",
			[]string{"metrics.serviceMonitor.enabled and metrics.podMonitor.enabled"},
		},
		{
			"a PodMonitor has no account", "minimal", "metrics: {podMonitor: {enabled: true}}",
			[]string{"metrics.podMonitor.tokenSecret.name is required"},
		},
		{"more than all traces", "minimal", "tracing: {endpoint: 'http://c:4318', samplingRatio: 10}", []string{"/tracing/samplingRatio"}},
		{"a collector's port alone", "minimal", "tracing: {endpoint: 'c:4318'}", []string{"/tracing/endpoint"}},
		{"a token for nobody", "minimal", "tracing: {headers: {name: a}}", []string{"tracing.headers.name is set without a collector"}},
		{"an alert that always fires", "full", "metrics: {prometheusRule: {tooManyPosts: 0}}", []string{"/metrics/prometheusRule/tooManyPosts"}},
		{"plain with a certificate", "minimal", "metrics: {plain: true, certificateSecret: a}", []string{"metrics.certificateSecret"}},
		{
			"Kubernetes takes one of the two", "minimal", "manager: {pdb: {minAvailable: 0, maxUnavailable: 1}}",
			[]string{"manager.pdb: minAvailable and maxUnavailable"},
		},
		{
			"an annotation twice is no YAML", "minimal", "manager: {podAnnotations: {checksum/config: a}}",
			[]string{"manager.podAnnotations: the chart sets checksum/config", "remove it"},
		},
		{
			"nor is the name of the container", "minimal", "apiserver: {podAnnotations: {kubectl.kubernetes.io/default-container: a}}",
			[]string{"apiserver.podAnnotations: the chart sets kubectl.kubernetes.io/default-container"},
		},
		{
			"a variable twice: server-side apply refuses it, and which one holds is luck otherwise", "minimal", "manager: {env: [{name: GOMEMLIMIT, value: 1GiB}]}",
			[]string{"manager.env: the chart sets GOMEMLIMIT from manager.resources.limits.memory"},
		},
		{
			"the store's keys twice", "full", "apiserver: {env: [{name: AWS_SECRET_ACCESS_KEY, value: a}, {name: AWS_ACCESS_KEY_ID, value: b}]}",
			[]string{"apiserver.env: the chart sets AWS_SECRET_ACCESS_KEY from media.credentials", "AWS_ACCESS_KEY_ID from media.credentials"},
		},
		{
			"the keys of a trial's store", "evaluation", "manager: {env: [{name: AWS_ACCESS_KEY_ID, value: a}]}",
			[]string{"manager.env: the chart sets AWS_ACCESS_KEY_ID from evaluation.enabled"},
		},
		{
			"the proxy twice", "full", "manager: {env: [{name: HTTPS_PROXY, value: 'http://p:1'}, {name: NO_PROXY, value: a}]}",
			[]string{"manager.env: the chart sets HTTPS_PROXY from proxy.https", "the chart sets NO_PROXY from proxy.https"},
		},
		{
			"the authorities twice", "full", "manager: {env: [{name: SSL_CERT_DIR, value: /a}]}",
			[]string{"manager.env: the chart sets SSL_CERT_DIR from caBundle.configMap"},
		},
		{
			"the collector's token twice", "full", "apiserver: {env: [{name: OTEL_EXPORTER_OTLP_HEADERS, value: a}]}",
			[]string{"apiserver.env: the chart sets OTEL_EXPORTER_OTLP_HEADERS from tracing.headers"},
		},
		{
			"more at least than at most", "minimal", "apiserver: {autoscaling: {enabled: true, minReplicas: 7}}",
			[]string{"apiserver.autoscaling.minReplicas is 7 and maxReplicas is 6"},
		},
		{
			"a share of nothing", "minimal", "apiserver: {autoscaling: {enabled: true}, resources: {requests: {cpu: null}}}",
			[]string{"apiserver.resources.requests.cpu is required"},
		},
		{"a route to no Gateway", "minimal", "apiserver: {httpRoute: {enabled: true}}", []string{"apiserver.httpRoute.parentRefs is required"}},
		{
			"an Ingress for an address", "minimal", "siteURL: 'http://192.0.2.1:8080'\napiserver: {ingress: {enabled: true}}",
			[]string{"siteURL is http://192.0.2.1:8080", "name of a host"},
		},
		{
			"a certificate that no client trusts", "minimal", "apiserver: {tls: {certManager: {enabled: true}}}",
			[]string{"apiserver.tls.certManager.issuer.name is required"},
		},
		{
			"two certificates", "minimal", "apiserver: {tls: {secretName: a, certManager: {enabled: true, issuer: {name: b}}}}",
			[]string{"apiserver.tls.secretName and apiserver.tls.certManager.enabled"},
		},
		{
			"an Ingress for the address of a trial, which is this machine", "evaluation", "apiserver: {ingress: {enabled: true}}",
			[]string{"siteURL is http://127.0.0.1:8080", "name of a host"},
		},
		{"the web application below a path", "minimal", "siteURL: https://example.com/herald", []string{"siteURL is https://example.com/herald", "web.enabled: false"}},
		{"a provider that does not know Herald", "minimal", "web: {oidc: {issuerURL: 'https://id.example.com'}}", []string{"web.oidc.clientID is required"}},
		{"a client of no provider", "minimal", "web: {oidc: {clientID: herald}}", []string{"web.oidc.issuerURL is required"}},
		{"TLS without its Ingress", "minimal", "apiserver: {ingress: {tlsSecret: a}}", []string{"apiserver.ingress.tlsSecret"}},
		{"keys without a store", "minimal", "media: {credentials: {name: a}}", []string{"media.credentials.name", "media.endpoint"}},
		{
			"a trial never reaches a real platform", "evaluation", "platforms: {threads: {enabled: true}}",
			[]string{"platforms.threads.enabled", "simulated"},
		},
		{"a trial has its own store", "evaluation", "media: {endpoint: 'https://s3.example.com'}", []string{"media.endpoint"}},
		{"a name that no object can have", "minimal", "fullnameOverride: Herald", []string{"/fullnameOverride"}},
		{"a label that selectors rest on", "minimal", "commonLabels: {app.kubernetes.io/name: x}", []string{"/commonLabels"}},
	} {
		text, err := renderChart(chartFolder, outreach, with(t, tc.from, tc.values))
		if err == nil {
			t.Errorf("%s: %d bytes were rendered", tc.reason, len(text))
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
		{"the usual one", "herald", true},
		{"the longest that a Service's name leaves room for", "a" + strings.Repeat("b", 42), true},
		{"one letter more", "a" + strings.Repeat("b", 43), false},
		{"Helm takes a digit first, a Service does not", "2herald", false},
	} {
		_, err := renderChart(chartFolder, release{name: tc.name, namespace: "social"}, valuesOf(t, "minimal"))
		if (err == nil) != tc.ok {
			t.Errorf("%s: %v", tc.reason, err)
		}
		if err != nil && !strings.Contains(err.Error(), "fullnameOverride") {
			t.Errorf("%s: nothing says what to do: %v", tc.reason, err)
		}
	}
}
