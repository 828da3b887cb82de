// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package processes

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/workspace"
)

// TestBlueskyIsOptional checks that a run uses Bluesky's server only if it is installed, and the sandbox otherwise.
func TestBlueskyIsOptional(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		installed []string
		want      bool
	}{
		"not installed": {"npm's packages are not part of the checkout", nil, false},
		"not built":     {"npm ci has run, but the database's compiler has not", []string{nodeIn("")}, false},
		"installed": {
			"both processes publish to the node", []string{nodeIn(""), "node_modules/better-sqlite3/build/Release/better_sqlite3.node"}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			checkout := t.TempDir()
			for _, file := range tc.installed {
				if err := workspace.WriteFile(filepath.Join(checkout, "test", "bluesky", file), nil, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			s := prepared(t)
			s.Platforms = append(s.Platforms, v1alpha1.PlatformBluesky)
			s.Bluesky = FindBluesky(checkout)
			if err := s.Prepare(); err != nil {
				t.Fatal(err)
			}
			for _, process := range []string{Manager, APIServer} {
				config := read(t, s.configFile(process))
				if has := strings.Contains(config, "bluesky:\n    server: http://127.0.0.1:"); has != tc.want || !strings.Contains(config, "bluesky:") {
					t.Errorf("%s: the configuration of %s is\n%s", tc.reason, process, config)
				}
			}
		})
	}
}

// TestNoBluesky checks the instructions that a run without Bluesky's server prints.
func TestNoBluesky(t *testing.T) {
	const command = "`make bluesky` installs Bluesky's own server for the next run"
	for name, tc := range map[string]struct {
		reason, system, programs, want string
	}{
		"everything is there": {"only time is needed", "linux", "npm g++ python3", command + " (some minutes)."},
		"no compiler":         {"its database is compiled", "linux", "npm python3", command + "; it also needs g++."},
		"nothing":             {"all are named at once", "linux", "", command + "; it also needs npm, g++, python3."},
		"another system":      {"npm has its Node.js for Linux only in the lock file", "darwin", "npm g++ python3", "Bluesky's own server can be installed on Linux only."},
	} {
		has := func(program string) bool { return slices.Contains(strings.Fields(tc.programs), program) }
		if got := NoBluesky(tc.system, has); got != tc.want {
			t.Errorf("%s: %s: got %q, want %q", name, tc.reason, got, tc.want)
		}
	}
}

func TestBlueskyAccount(t *testing.T) {
	s := prepared(t)
	if _, _, err := s.BlueskyAccount(); !os.IsNotExist(err) {
		t.Errorf("before the server has started, the error is %v", err)
	}
	for name, tc := range map[string]struct{ reason, state, id, token string }{
		"an account": {"server.mjs writes this file", `{"accounts":[{"did":"did:plc:a","handle":"a.test","appPassword":"abcd"}]}`, "did:plc:a", "a.test:abcd"},
		"none":       {"the server was killed before it created one", `{"accounts":[]}`, "", ""},
		"cut off":    {"the server was killed while it wrote the file", `{"acc`, "", ""},
	} {
		if err := workspace.WriteFile(filepath.Join(s.path(Bluesky), "state.json"), []byte(tc.state), 0o600); err != nil {
			t.Fatal(err)
		}
		id, token, err := s.BlueskyAccount()
		if id != tc.id || token != tc.token || (err == nil) != (tc.id != "") {
			t.Errorf("%s: %s: %q, %q, %v", name, tc.reason, id, token, err)
		}
	}
}
