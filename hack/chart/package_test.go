// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/cli"
	helmregistry "helm.sh/helm/v3/pkg/registry"
)

// aVersion is a version between two releases, as `git describe` formats it.
const aVersion = "v1.2.3-4-g567890a"

func packagedChart(t *testing.T) (archive string, is *chart.Chart) {
	t.Helper()
	archive, err := packaged("../..", aVersion, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	is, err = loader.Load(archive)
	if err != nil {
		t.Fatal(err)
	}
	return archive, is
}

// imagesIn returns the images of all containers in the chart.
func imagesIn(t *testing.T, folder string, values map[string]any) (out []string) {
	t.Helper()
	text, err := renderChart(folder, outreach, values)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if image, ok := strings.CutPrefix(strings.TrimLeft(line, " -"), "image: "); ok {
			out = append(out, strings.Trim(strings.TrimSpace(image), `"`))
		}
	}
	return out
}

func TestPackageRunsTheImagesOfItsVersion(t *testing.T) {
	archive, is := packagedChart(t)
	if is.Metadata.Version != "1.2.3-4-g567890a" || is.Metadata.AppVersion != aVersion || filepath.Base(archive) != "herald-1.2.3-4-g567890a.tgz" {
		t.Errorf("%s is version %s of %s", archive, is.Metadata.Version, is.Metadata.AppVersion)
	}
	used := imagesIn(t, archive, valuesOf(t, "evaluation"))
	used = append(used, imagesIn(t, archive, with(t, "minimal", "thumbnails: {enabled: true}"))...)
	slices.Sort(used)
	var listed []string
	for _, i := range annotation[image](t, is, "images") {
		listed = append(listed, i.Image)
	}
	slices.Sort(listed)
	if used = slices.Compact(used); !slices.Equal(used, listed) || len(used) != 4 || !strings.HasSuffix(used[0], ":"+aVersion) {
		t.Errorf("the chart runs %v and lists %v", used, listed)
	}
}

func TestInstallerRunsTheImagesOfItsVersion(t *testing.T) {
	text, err := installer("../..", aVersion)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objectsIn(t, text) {
		if version, ok := object.GetLabels()["app.kubernetes.io/version"]; ok && version != aVersion {
			t.Errorf("%s %s has version %s", object.GetKind(), object.GetName(), version)
		}
	}
	if tagged := strings.Count(text, "image: ghcr.io/herald-social/herald:"+aVersion+"\n"); tagged != 2 || strings.Count(text, " image: ") != tagged {
		t.Errorf("%d containers run this version, want exactly 2", tagged)
	}
}

func TestPackageRejectsInvalidVersions(t *testing.T) {
	for _, version := range []string{"1.2.3", "v1.2", "main", ""} {
		if archive, err := packaged("../..", version, t.TempDir()); err == nil {
			t.Errorf("%q was packaged as %s", version, archive)
		}
	}
}

// annotation decodes a list in the format that Artifact Hub documents. Unknown fields are errors.
func annotation[T any](t *testing.T, c *chart.Chart, name string) (out []T) {
	t.Helper()
	decoder := yaml.NewDecoder(strings.NewReader(c.Metadata.Annotations["artifacthub.io/"+name]))
	decoder.KnownFields(true)
	if err := decoder.Decode(&out); err != nil || len(out) == 0 {
		t.Errorf("%s: %d entries, %v", name, len(out), err)
	}
	for i := range out {
		if is := reflect.ValueOf(out[i]); is.Kind() == reflect.Struct {
			for k := range is.NumField() {
				if is.Field(k).IsZero() {
					t.Errorf("%s: entry %d has no %s", name, i, is.Type().Field(k).Name)
				}
			}
		}
	}
	return out
}

type crd struct {
	Kind, Version, Name, Description string
	DisplayName                      string `yaml:"displayName"`
}

func TestAnnotations(t *testing.T) {
	_, is := packagedChart(t)
	for name, may := range map[string][]string{
		"category": {
			"ai-machine-learning", "database", "integration-delivery", "monitoring-logging", "networking", "security", "storage", "streaming-messaging",
		},
		"containsSecurityUpdates": {"true", "false"},
		"license":                 {"Apache-2.0"},
		"operator":                {"true"},
		"operatorCapabilities":    {"Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot"},
		"prerelease":              {"true"},
	} {
		if got := is.Metadata.Annotations["artifacthub.io/"+name]; !slices.Contains(may, got) {
			t.Errorf("%s is %q, want one of %q", name, got, may)
		}
	}
	for _, c := range annotation[change](t, is, "changes") {
		if !slices.Contains(kinds(), c.Kind) {
			t.Errorf("changes: unknown kind: %+v", c)
		}
	}
	for _, l := range annotation[struct{ Name, URL string }](t, is, "links") {
		if !strings.HasPrefix(l.URL, "https://") {
			t.Errorf("links: %+v", l)
		}
	}
	var listed, defined []string
	for _, c := range annotation[crd](t, is, "crds") {
		listed = append(listed, c.Name+" "+c.Version+" "+c.Kind)
	}
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		defined = append(defined, definedIn(t, file))
	}
	slices.Sort(listed)
	slices.Sort(defined)
	if !slices.Equal(listed, defined) {
		t.Errorf("crds: %q are listed, %q are defined", listed, defined)
	}
	shown := map[string]bool{}
	for _, object := range annotation[map[string]any](t, is, "crdsExamples") {
		kind, _ := object["kind"].(string)
		shown[kind] = true
	}
	for _, c := range annotation[crd](t, is, "crds") {
		// Only Herald writes Usage and OAuthGrant.
		if shown[c.Kind] == (c.Kind == "Usage" || c.Kind == "OAuthGrant") {
			t.Errorf("crdsExamples: has an example of %s: %t", c.Kind, shown[c.Kind])
		}
	}
}

func definedIn(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var definition struct {
		Metadata struct{ Name string }
		Spec     struct {
			Names    struct{ Kind string }
			Versions []struct{ Name string }
		}
	}
	if err := yaml.Unmarshal(text, &definition); err != nil {
		t.Fatal(err)
	}
	return definition.Metadata.Name + " " + definition.Spec.Versions[0].Name + " " + definition.Spec.Names.Kind
}

// TestIcon checks that the icon's URL matches its path, since the repository serves it.
func TestIcon(t *testing.T) {
	_, is := packagedChart(t)
	name, ok := strings.CutPrefix(is.Metadata.Icon, "https://raw.githubusercontent.com/herald-social/herald/main/")
	if !ok {
		t.Fatalf("the icon's URL is %s", is.Metadata.Icon)
	}
	text, err := os.ReadFile("../../" + name)
	if err != nil {
		t.Fatal(err)
	}
	for decoder := xml.NewDecoder(bytes.NewReader(text)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}

// TestChartThroughARegistry does what `helm push` and `helm pull` do, against a registry that is not Helm's own.
func TestChartThroughARegistry(t *testing.T) {
	server := httptest.NewServer(registry.New())
	defer server.Close()
	client, err := helmregistry.NewClient(helmregistry.ClientOptPlainHTTP(), helmregistry.ClientOptWriter(t.Output()),
		helmregistry.ClientOptCredentialsFile(filepath.Join(t.TempDir(), "none.json")))
	if err != nil {
		t.Fatal(err)
	}
	archive, is := packagedChart(t)
	repository := "oci://" + strings.TrimPrefix(server.URL, "http://") + "/charts"

	push := action.NewPushWithOpts(action.WithPushConfig(&action.Configuration{RegistryClient: client}), action.WithPlainHTTP(true), action.WithPushOptWriter(t.Output()))
	push.Settings = cli.New()
	if _, err := push.Run(archive, repository); err != nil {
		t.Fatal(err)
	}

	pull := action.NewPullWithOpts(action.WithConfig(&action.Configuration{RegistryClient: client}))
	pull.Settings, pull.PlainHTTP, pull.Version, pull.DestDir = cli.New(), true, is.Metadata.Version, t.TempDir()
	if _, err := pull.Run(repository + "/herald"); err != nil {
		t.Fatal(err)
	}
	pulled := filepath.Join(pull.DestDir, filepath.Base(archive))
	want, wantErr := os.ReadFile(archive)
	got, gotErr := os.ReadFile(pulled)
	if !slices.Equal(got, want) || wantErr != nil || gotErr != nil {
		t.Errorf("pulled %d bytes, pushed %d: %v", len(got), len(want), errors.Join(wantErr, gotErr))
	}
	for _, image := range imagesIn(t, pulled, valuesOf(t, "minimal")) {
		if image != "ghcr.io/herald-social/herald:"+aVersion {
			t.Errorf("the pulled chart runs %s", image)
		}
	}
}
