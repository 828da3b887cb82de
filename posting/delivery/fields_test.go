// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/herald-social/herald/test/must"
)

const (
	module = "github.com/herald-social/herald"
	api    = module + "/api/v1alpha1"
)

// mayUse lists the files and folders that may use the fields that Describe derives, each with the reason.
var mayUse = map[string]string{
	"apiserver/web/doubt.go":                         "people are shown why a target waits or failed",
	"apiserver/web/post.go":                          "people are shown why a target waits or failed",
	"apiserver/web/timeline.go":                      "people are shown why a target failed",
	"apiserver/bridge/posts.go":                      "clients are shown why a target failed",
	"controllers/post/events.go":                     "events show why a target waits or failed",
	"controllers/post/log.go":                        "lines of the log show why a target waits or failed",
	"controllers/post/internal/records/reapplied.go": "a version before status.cancelledAt recorded a cancel as a phase alone",
	"controllers/post/trace.go":                      "spans show what a post is after a pass",
	"posting/delivery/describe":                      "this is where it is derived",
	"posting/record/adopt.go":                        "what an earlier post was shown as is no fact of the one that adopts it: it is cleared",
	"posting/record/record.go":                       "a post that is read from the archive is shown as it was",
	"posting/notify/event.go":                        "notifications report what a post is shown as",
	"posting/notify/payload.go":                      "receivers are shown why a target failed",
	"posting/post.go":                                "StateOf reads what earlier versions wrote",
	"test/":                                          "benches watch posts as people do",
}

// TestDerivedFieldsAreNotRead checks that a post's phases, reasons and messages are derived in one place and that
// nothing depends on them.
func TestDerivedFieldsAreNotRead(t *testing.T) {
	packages, exports := listed(t)
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	used := map[string]bool{}
	for path, files := range packages {
		if path == api {
			continue
		}
		var sources []*ast.File
		for _, file := range files {
			source, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
			must.Succeed(t, err)
			sources = append(sources, source)
		}
		for _, use := range derivedUses(t, fset, imports, path, sources) {
			why := slices.IndexFunc(allowed(), func(prefix string) bool { return strings.HasPrefix(use, prefix) })
			if why < 0 {
				t.Errorf("%s; decide from state, blocked and attempt instead", use)
				continue
			}
			used[allowed()[why]] = true
		}
	}
	for prefix := range mayUse {
		if !used[prefix] {
			t.Errorf("%s no longer uses these fields: remove it from the list", prefix)
		}
	}

	planted, err := parser.ParseFile(fset, "planted.go", `package planted
import "`+api+`"
func read(p *v1alpha1.Post) bool { return p.Status.Phase == "" || p.Status.Targets[0].Reason == "" }
func wrote(p *v1alpha1.Post) { p.Status.Targets[0].Message = "" ; p.Status.Targets[0] = v1alpha1.TargetStatus{Phase: ""} }
func other(m *v1alpha1.Media, c v1alpha1.Post) bool { return m.Status.Phase == "" || c.Status.Conditions[0].Reason == c.Status.Conditions[0].Message }
`, parser.SkipObjectResolution)
	must.Succeed(t, err)
	if found := derivedUses(t, fset, imports, "planted", []*ast.File{planted}); len(found) != 4 {
		t.Errorf("the check finds %q of four planted uses", found)
	}
}

func allowed() []string {
	var prefixes []string
	for prefix := range mayUse {
		prefixes = append(prefixes, prefix)
	}
	slices.Sort(prefixes)
	return prefixes
}

// derivedUses lists where a package uses derived fields.
func derivedUses(t *testing.T, fset *token.FileSet, imports types.Importer, path string, files []*ast.File) (found []string) {
	t.Helper()
	resources, err := imports.Import(api)
	must.Succeed(t, err)
	derived := map[types.Object]string{}
	for _, name := range []string{"TargetStatus", "PostStatus"} {
		fields := resources.Scope().Lookup(name).Type().Underlying().(*types.Struct)
		for field := range fields.Fields() {
			if slices.Contains([]string{"Phase", "Reason", "Message"}, field.Name()) {
				derived[field] = name + "." + field.Name()
			}
		}
	}
	if len(derived) != 4 {
		t.Fatalf("the derived fields are %v", derived)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	if _, err := (&types.Config{Importer: imports}).Check(path, fset, files, info); err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../..")
	must.Succeed(t, err)
	for ident, object := range info.Uses {
		if field, ok := derived[object]; ok {
			at := fset.Position(ident.Pos())
			found = append(found, fmt.Sprintf("%s:%d: uses %s", strings.TrimPrefix(at.Filename, root+"/"), at.Line, field))
		}
	}
	slices.Sort(found)
	return found
}

// listed returns the files of this module's packages, and the export data of all packages.
func listed(t *testing.T) (packages map[string][]string, exports map[string]string) {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps",
		"-f", `{{.ImportPath}}|{{.Export}}|{{range .GoFiles}} {{$.Dir}}/{{.}}{{end}}`, module+"/...")
	var problems bytes.Buffer
	list.Stderr = &problems
	out, err := list.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, problems.String())
	}
	packages, exports = map[string][]string{}, map[string]string{}
	for line := range strings.Lines(string(out)) {
		of := strings.Split(line, "|")
		if strings.HasPrefix(of[0], module) {
			packages[of[0]] = strings.Fields(of[2])
		}
		exports[of[0]] = of[1]
	}
	return packages, exports
}
