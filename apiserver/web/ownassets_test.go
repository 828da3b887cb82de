// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// ownLimit is the maximum size of one of this project's scripts, in bytes, including comments. It keeps the scripts
// small enough to read.
const ownLimit = 10 * 1024

// TestForeign compares a third-party file with its entry in the README.
func TestForeign(t *testing.T) {
	readme := readAsset(t, "README.md")
	rows := regexp.MustCompile(`\| \[([^\]]+)\]\([^)]*\) \| ([0-9.]+) \| [^|]+ \| [^|]+ \| ([0-9a-f]{64}) \|`).FindAllSubmatch(readme, -1)
	if len(rows) != 1 {
		t.Fatalf("README.md lists %d third-party files, want 1", len(rows))
	}
	name, version, want := string(rows[0][1]), rows[0][2], string(rows[0][3])
	content := readAsset(t, name)
	sum := sha256.Sum256(content)
	if got := hex.EncodeToString(sum[:]); got != want {
		t.Errorf("SHA-256 of %s is %s, README.md lists %s", name, got, want)
	}
	if !bytes.Contains(content, append([]byte("version:\""), append(version, '"')...)) {
		t.Errorf("%s does not call itself version %s, as README.md does", name, version)
	}
}

// TestOwnScripts verifies the rules for this project's scripts.
func TestOwnScripts(t *testing.T) {
	forbidden := regexp.MustCompile(`\beval\(|new Function|document\.write|outerHTML|insertAdjacentHTML|window\.(confirm|alert|prompt)|\.style\b`)
	for _, name := range []string{"app.js", "keys.js", "times.js", "lists.js", "upload.js", "transfer.js", "files.js", "crop.js", "preview.js", "compose.js"} {
		t.Run(name, func(t *testing.T) {
			content := readAsset(t, name)
			if len(content) > ownLimit {
				t.Errorf("the script has %d bytes, more than %d", len(content), ownLimit)
			}
			if found := forbidden.Find(content); found != nil {
				t.Errorf("the script uses %q, which violates the content security policy or parses text as markup", found)
			}
			// The one place inserts the server's own events.
			if writes := bytes.Count(content, []byte("innerHTML =")); writes > 1 || name != "app.js" && writes > 0 {
				t.Errorf("the script writes innerHTML at %d places", writes)
			}
		})
	}
}

// TestComments verifies that scripts are served without comments and indentation, and otherwise unchanged. In a
// template literal, both are part of the text.
func TestComments(t *testing.T) {
	served := sharedAssets()
	for _, name := range slices.Sorted(maps.Keys(served.paths)) {
		if filepath.Ext(name) != ".js" {
			continue
		}
		w := httptest.NewRecorder()
		served.byName[path.Base(served.path(name))].body.Write(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		var want []byte
		inLiteral := false
		for line := range bytes.Lines(readAsset(t, name)) {
			code := bytes.TrimLeft(line, " \t")
			isComment := bytes.HasPrefix(code, []byte("//"))
			if inLiteral && (isComment || len(code) < len(line)) {
				t.Errorf("%s: the template literal's line %q would change", name, line)
			}
			if isComment {
				continue
			}
			want = append(want, code...)
			inLiteral = inLiteral != (bytes.Count(line, []byte("`"))%2 == 1)
		}
		if !bytes.Equal(w.Body.Bytes(), want) || bytes.Contains(want, []byte("SPDX")) {
			t.Errorf("%s is served with other changes than its comments and indentation", name)
		}
	}
}

func readAsset(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("assets", name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}
