// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/herald-social/herald/test/must"
)

// TestLinked checks the linked packages: no gRPC, which OpenTelemetry's own exporters depend on, and nothing that calls
// methods by name (docs/adr/0008).
func TestLinked(t *testing.T) {
	packages, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	must.Succeed(t, err)
	for _, unwanted := range []string{"google.golang.org/grpc", "github.com/grpc-ecosystem"} {
		if strings.Contains("\n"+string(packages), "\n"+unwanted) {
			t.Errorf("%s is in the program", unwanted)
		}
	}
	// gomponents uses the escape function of html/template, and nothing that executes a template. go-mail's functions that
	// execute one are not called, so the linker omits them: they would be among the lines below.
	allowed := []string{"html/template", "maragu.dev/gomponents", "github.com/wneessen/go-mail"}
	importers, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{.ImportPath}}: {{join .Imports \" \"}}", ".").Output()
	must.Succeed(t, err)
	for line := range strings.Lines(string(importers)) {
		importer, imports, _ := strings.Cut(line, ": ")
		for imported := range strings.FieldsSeq(imports) {
			if (imported == "html/template" || imported == "text/template") && !slices.Contains(allowed, importer) {
				t.Errorf("%s imports %s, but is not known to execute no template", importer, imported)
			}
		}
	}
	if testing.Short() {
		t.Skip("linking takes several seconds")
	}
	dump, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags=-dumpdep", "-o", os.DevNull, ".").CombinedOutput()
	if err != nil || !bytes.Contains(dump, []byte("main.main")) {
		t.Fatalf("%v: %.500s", err, dump)
	}
	for line := range strings.Lines(string(dump)) {
		if strings.Contains(line, "ReflectMethod") {
			t.Errorf("the linker keeps all methods of all types because of %s", line)
		}
	}
}
