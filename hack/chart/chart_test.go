// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// The chart, and the release that the tests render.
const chartFolder = "../../charts/herald"

var outreach = release{name: "outreach", namespace: "social"}

// valuesOf reads one of the chart's own values files, given the first part of its name.
func valuesOf(t *testing.T, name string) map[string]any {
	t.Helper()
	values, err := readValues(filepath.Join(chartFolder, "ci", name+"-values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// with adds YAML values to a values file's.
func with(t *testing.T, name, more string) map[string]any {
	t.Helper()
	file := filepath.Join(t.TempDir(), "more.yaml")
	if err := os.WriteFile(file, []byte(more), 0o600); err != nil {
		t.Fatal(err)
	}
	values, err := readValues(filepath.Join(chartFolder, "ci", name+"-values.yaml"), file)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// rendered returns the chart's objects.
func rendered(t *testing.T, values map[string]any) []*unstructured.Unstructured {
	t.Helper()
	text, err := renderChart(chartFolder, outreach, values)
	if err != nil {
		t.Fatal(err)
	}
	return objectsIn(t, text)
}

func objectsIn(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := documents.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// find returns the object with the given kind and name, or nil.
func find(objects []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	for _, object := range objects {
		if object.GetKind() == kind && object.GetName() == name {
			return object
		}
	}
	return nil
}

// clusterWide are the cluster-scoped kinds in the chart.
var clusterWide = []string{
	"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
	"FlowSchema", "PriorityLevelConfiguration",
	"ValidatingWebhookConfiguration",
}

// TestHelmLintPasses runs the checks of `helm lint --strict`, which `make chart-lint` runs as well.
func TestHelmLintPasses(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(chartFolder, "ci", "*-values.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		values, err := readValues(file)
		if err != nil {
			t.Fatal(err)
		}
		kubernetes := chartutil.DefaultCapabilities.KubeVersion
		for _, message := range lint.AllWithKubeVersion(chartFolder, values, outreach.namespace, &kubernetes).Messages {
			if message.Severity >= support.WarningSev {
				t.Errorf("%s: %v", file, message)
			}
		}
	}
}

// TestObjectsBelongToTheRelease covers mistakes that Helm does not detect: two objects with the same name, and an object
// that is outside the release's namespace, that another release would overwrite, or that `kubectl get -l` does not
// find.
func TestObjectsBelongToTheRelease(t *testing.T) {
	for _, name := range []string{"minimal", "evaluation", "full"} {
		seen := map[string]bool{}
		values := valuesOf(t, name)
		// There are also Roles in the served namespaces, and in the namespace for events about Teams.
		elsewhere := []any{"default"}
		if served, ok := values["namespaces"].([]any); ok {
			elsewhere = append(elsewhere, served...)
		}
		for _, object := range rendered(t, values) {
			id := object.GetKind() + " " + object.GetName()
			if strings.HasPrefix(object.GetKind(), "Role") && slices.Contains(elsewhere, any(object.GetNamespace())) {
				id += " in " + object.GetNamespace()
			}
			if seen[id] {
				t.Errorf("%s: two objects are %s", name, id)
			}
			seen[id] = true
			want := outreach.namespace
			if slices.Contains(clusterWide, object.GetKind()) {
				want = ""
			}
			if !strings.Contains(id, " in ") && object.GetNamespace() != want {
				t.Errorf("%s: %s is in namespace %q, want %q", name, id, object.GetNamespace(), want)
			}
			if object.GetKind() != "CustomResourceDefinition" && object.GetName() != "outreach" && !strings.HasPrefix(object.GetName(), "outreach-") {
				t.Errorf("%s: the name of %s does not start with the release's", name, id)
			}
			labels := object.GetLabels()
			for label, want := range map[string]string{
				"app.kubernetes.io/name": "herald", "app.kubernetes.io/instance": "outreach", "app.kubernetes.io/managed-by": "Helm",
			} {
				if labels[label] != want {
					t.Errorf("%s: %s has the label %s=%q, want %q", name, id, label, labels[label], want)
				}
			}
			if labels["app.kubernetes.io/version"] == "" || labels["helm.sh/chart"] == "" {
				t.Errorf("%s: %s has no version: %v", name, id, labels)
			}
		}
	}
}

// TestSelectorsAreUnchanged checks the selectors. They are immutable in a cluster, so changing one breaks every
// upgrade.
func TestSelectorsAreUnchanged(t *testing.T) {
	objects := rendered(t, with(t, "full", "commonLabels: {a: b}\nfullnameOverride: outreach"))
	for _, component := range []string{"manager", "apiserver"} {
		want := map[string]string{
			"app.kubernetes.io/name": "herald", "app.kubernetes.io/instance": "outreach", "app.kubernetes.io/component": component,
		}
		deployment := find(objects, "Deployment", "outreach-"+component)
		got, _, err := unstructured.NestedStringMap(deployment.Object, "spec", "selector", "matchLabels")
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: %v, %v", component, got, err)
		}
	}
}

func TestTwoReleasesShareOnlyDefinitions(t *testing.T) {
	values := valuesOf(t, "full")
	first := map[string]bool{}
	for _, object := range rendered(t, values) {
		first[object.GetKind()+" "+object.GetName()] = true
	}
	text, err := renderChart(chartFolder, release{name: "second", namespace: "social"}, values)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objectsIn(t, text) {
		if id := object.GetKind() + " " + object.GetName(); first[id] && object.GetKind() != "CustomResourceDefinition" {
			t.Errorf("both releases contain %s", id)
		}
	}
	if strings.Contains(text, "outreach") {
		t.Error("the second release contains a name of the first")
	}
}

// TestNotesWaitForTheKey checks that the notes wait for the key, because the manager creates its Secret after the
// install.
func TestNotesWaitForTheKey(t *testing.T) {
	files, err := renderTemplates(chartFolder, outreach, valuesOf(t, "minimal"))
	if err != nil {
		t.Fatal(err)
	}
	notes := files["herald/templates/NOTES.txt"]
	wait := strings.Index(notes, "kubectl wait --for=condition=Ready apikey/first -n team-acme")
	read := strings.Index(notes, "kubectl get secret -n team-acme first-token")
	if wait < 0 || read < wait {
		t.Errorf("the Secret is read at offset %d, before the wait for the key at %d:\n%s", read, wait, notes)
	}
}

func TestNotesDescribeSignIn(t *testing.T) {
	for _, tc := range []struct{ reason, from, values, want string }{
		{"sign-in by link", "minimal", "", "kubectl exec -n social deploy/outreach-apiserver -- /herald signin-link\n"},
		{"the link's user needs a role", "minimal", "", "--clusterrole=outreach-admin --user=herald:link"},
		{"sign-in by an OIDC provider", "full", "", "--clusterrole=outreach-editor --group=oidc:marketing"},
		{"an evaluation forwards the apiserver's port", "evaluation", "", "deploy/outreach-apiserver -- /herald signin-link\n"},
		{"the forwarded port is the site URL's", "evaluation", "siteURL: 'http://127.0.0.1:18080'", "service/outreach-apiserver 18080:80 &\n"},
		{"the sandbox's port is forwarded for consent pages", "evaluation", "", "service/outreach-sandbox 9100:9100 &\n"},
		{"the store's port is forwarded for uploads", "evaluation", "evaluation: {storeURL: 'http://127.0.0.1:19000'}", "service/outreach-store 19000:9000 &\n"},
		{"no sign-in without the web application", "minimal", "web: {enabled: false}", ""},
	} {
		files, err := renderTemplates(chartFolder, outreach, with(t, tc.from, tc.values))
		if err != nil {
			t.Fatal(err)
		}
		notes := files["herald/templates/NOTES.txt"]
		if !strings.Contains(notes, tc.want) || tc.want == "" && strings.Contains(notes, "signin-link") {
			t.Errorf("%s: want %q in:\n%s", tc.reason, tc.want, notes)
		}
	}
}

func TestNotesDescribeOpenPorts(t *testing.T) {
	const (
		proxies  = "apiserver.config.trustedProxies"
		callers  = "networkPolicy.webhookFrom"
		ingress  = "apiserver: {ingress: {enabled: true}}"
		managers = "webhook: {certManager: {enabled: true, issuer: {name: ca}}}"
	)
	for _, tc := range []struct{ reason, values, says, not string }{
		{"an Ingress hides client addresses", ingress, proxies, callers},
		{"a Gateway hides client addresses", "apiserver: {httpRoute: {enabled: true, parentRefs: [{name: gate}]}}", proxies, callers},
		{"trusted proxies are configured", "apiserver: {ingress: {enabled: true}, config: {trustedProxies: [10.0.0.0/8]}}", "", proxies},
		{"a Service keeps client addresses", "", "", proxies},
		{"every pod can call a webhook with a cert-manager certificate", managers, callers, proxies},
		{"callers of the webhook are configured", managers + "\nnetworkPolicy: {webhookFrom: [{ipBlock: {cidr: 10.0.0.0/28}}]}", "", callers},
		{"the webhook's path is secret", "", "", callers},
	} {
		files, err := renderTemplates(chartFolder, outreach, with(t, "minimal", tc.values))
		if err != nil {
			t.Fatalf("%s: %v", tc.reason, err)
		}
		notes := files["herald/templates/NOTES.txt"]
		if !strings.Contains(notes, tc.says) || strings.Contains(notes, tc.not) {
			t.Errorf("%s: want %q and not %q in:\n%s", tc.reason, tc.says, tc.not, notes)
		}
	}
}

func TestNotesListThreeCommands(t *testing.T) {
	for name, last := range map[string]string{"minimal": "https://herald.example.com/api/v1/connections", "evaluation": "--for=condition=Published post/hello"} {
		files, err := renderTemplates(chartFolder, outreach, valuesOf(t, name))
		if err != nil {
			t.Fatal(err)
		}
		notes := files["herald/templates/NOTES.txt"]
		for _, want := range []string{"installed as outreach in social", "\n1. ", "\n2. ", "\n3. ", last} {
			if !strings.Contains(notes, want) {
				t.Errorf("%s: want %q in:\n%s", name, want, notes)
			}
		}
	}
}

// TestMonitoringByKustomize checks that installing with Kustomize gives the same dashboard and alerts as the chart.
func TestMonitoringByKustomize(t *testing.T) {
	want, err := os.ReadFile(filepath.Join(chartFolder, "files", "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := renderFolder("../../config/grafana")
	if err != nil {
		t.Fatal(err)
	}
	dashboard := find(objectsIn(t, text), "ConfigMap", "herald-dashboard")
	if dashboard == nil || dashboard.GetLabels()["grafana_dashboard"] != "1" {
		t.Fatalf("no dashboard with the sidecar's label in:\n%.300s", text)
	}
	if got := at(t, dashboard, "{.data.herald\\.json}"); got != string(want) {
		t.Error("the dashboard differs from the chart's")
	}
	if text, err = renderFolder("../../config/prometheus"); err != nil {
		t.Fatal(err)
	}
	byChart := 0
	for _, object := range rendered(t, valuesOf(t, "full")) {
		if object.GetKind() == "PrometheusRule" {
			byChart++
		}
	}
	if got := len(objectsIn(t, text)); got != byChart || got == 0 {
		t.Errorf("Kustomize creates %d objects with alerts, the chart %d", got, byChart)
	}
}

// TestOneVersionOfHelm checks that the Helm program for users and CI has the same version as the library.
func TestOneVersionOfHelm(t *testing.T) {
	line := regexp.MustCompile(`\thelm\.sh/helm/v3 (\S+)`)
	versions := map[string]bool{}
	for _, file := range []string{"go.mod", "../tools/go.mod"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := line.FindSubmatch(text)
		if found == nil {
			t.Fatalf("%s does not pin Helm", file)
		}
		versions[string(found[1])] = true
	}
	if len(versions) != 1 {
		t.Errorf("the versions of Helm differ: %v", versions)
	}
}
