// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestPins checks that each pinned file is a release of the version in go.mod.
func TestPins(t *testing.T) {
	pinned, err := readPins("../controlplane")
	if err != nil {
		t.Fatal(err)
	}
	releases, err := allReleases(pinned.versions)
	if err != nil {
		t.Fatal(err)
	}
	for file := range pinned.sums {
		if !slices.ContainsFunc(releases, func(r release) bool { return r.path == file }) {
			t.Errorf("hack/controlplane/checksums.txt pins %s, but go.mod has Kubernetes %s and etcd %s: replace its lines with the output of make -s controlplane-checksums",
				file, pinned.versions[kubernetesModule], pinned.versions[etcdModule])
		}
	}
}

func TestParseChecksums(t *testing.T) {
	good := sum(content)
	sums, err := parseChecksums("# a comment\n\n" + strings.ToUpper(good) + "  a/b\n")
	if err != nil || len(sums) != 1 || sums["a/b"] != good {
		t.Errorf("sums %v, %v", sums, err)
	}
	for name, text := range map[string]string{
		"no sum": "a/b\n", "a short sum": good[2:] + "  a/b\n", "no hexadecimal sum": "z" + good[1:] + "  a/b\n",
		"one space": good + " a/b\n", "two sums of one file": good + "  a/b\n" + good + "  a/b\n",
	} {
		if sums, err := parseChecksums(text); err == nil {
			t.Errorf("%s: %v, want an error", name, sums)
		}
	}
}

func TestParseVersions(t *testing.T) {
	got := parseVersions("module m\n\ngo 1.26.0\n\nrequire k8s.io/a v1.0.0\n\nrequire (\n\tk8s.io/b v1.2.3 // indirect\n)\n\nreplace k8s.io/c => k8s.io/c v9.9.9\n")
	if len(got) != 2 || got["k8s.io/a"] != "v1.0.0" || got["k8s.io/b"] != "v1.2.3" {
		t.Errorf("versions %v", got)
	}
}

// TestPrintChecksums checks that parseChecksums can read the printed lines and that they match the publisher's
// checksums.
func TestPrintChecksums(t *testing.T) {
	releases, err := allReleases(versions)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]http.HandlerFunc{}
	var list string
	for _, r := range releases {
		files[r.path] = sends(r.path)
		if r.member != "" {
			list += sum(r.path) + "  " + r.path[strings.LastIndex(r.path, "/")+1:] + "\n"
		} else {
			files[r.sums] = sends(sum(r.path))
		}
	}
	files["etcd-io/etcd/releases/download/v3.7.0/SHA256SUMS"] = sends(list)
	m := serve(t, files)
	d := &downloader{client: newClient(patient), timeouts: patient, mirror: m.URL, platform: "linux/amd64", log: io.Discard}
	var printed bytes.Buffer
	if err := d.printChecksums(t.Context(), versions, &printed); err != nil {
		t.Fatal(err)
	}
	sums, err := parseChecksums(printed.String())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range releases {
		if sums[r.path] != sum(r.path) {
			t.Errorf("%s has the sum %q", r.path, sums[r.path])
		}
	}

	for name, sums := range map[string]string{"another sum": sum(content), "no sum of the file": sum(content) + "  another\n"} {
		files[kubectlPath+".sha256"] = sends(sums)
		if err := d.printChecksums(t.Context(), versions, io.Discard); err == nil {
			t.Errorf("%s: the publisher's file was accepted", name)
		}
	}
}

// TestSharedVersions checks that the other programs built at the first start use Herald's version of each module that
// both require. Otherwise, most libraries would be compiled twice: two programs share a compiled package only if all
// its imports are the same, too.
func TestSharedVersions(t *testing.T) {
	herald := readVersions(t, "../../go.mod")
	for _, folder := range []string{"hack/controlplane", "hack/store"} {
		var differ []string
		for module, version := range readVersions(t, "../../"+folder+"/go.mod") {
			if want := herald[module]; want != "" && want != version {
				differ = append(differ, module+"@"+want)
			}
		}
		if len(differ) > 0 {
			slices.Sort(differ)
			t.Errorf("%s and go.mod require different versions. Run: export GOWORK=off; go -C %[1]s get %s && go -C %[1]s mod tidy", folder, strings.Join(differ, " "))
		}
	}
}

func readVersions(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	versions := parseVersions(string(text))
	if len(versions) == 0 {
		t.Fatalf("%s has no requirements", file)
	}
	return versions
}
