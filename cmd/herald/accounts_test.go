// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/test/must"
)

func TestUnsavedTokens(t *testing.T) {
	folder := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		must.Succeed(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	key := file("key", strings.Repeat("k", 64)+"\n")
	for name, tc := range map[string]struct {
		reason, directory, keyFile string
		kept                       bool
		says, fails                string
	}{
		"the chart's paths": {"the chart mounts both", filepath.Join(folder, "unsaved"), key, true, "", ""},
		"none":              {"a manual installation may have none, and is warned once", "", "", false, "credentials.unsaved", ""},
		"no key":            {"a typing error must show", folder, filepath.Join(folder, "none"), false, "", "credentials.unsaved.keyFile"},
		"short key":         {"a short key could be guessed", folder, file("short", "hunter2"), false, "", "credentials.unsaved: the key has fewer than 32"},
		"not a folder":      {"tokens would be lost one day", key, key, false, "", "credentials.unsaved: cannot write files to folder"},
	} {
		t.Run(name, func(t *testing.T) {
			var logged strings.Builder
			log := funcr.New(func(prefix, args string) { fmt.Fprintln(&logged, prefix, args) }, funcr.Options{})
			got, err := unsavedTokens(configv1alpha1.Unsaved{Directory: tc.directory, KeyFile: tc.keyFile}, log)
			if (got != nil) != tc.kept || (err != nil) != (tc.fails != "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("%s: got %v, %v", tc.reason, got, err)
			}
			if (logged.Len() > 0) != (tc.says != "") || !strings.Contains(logged.String(), tc.says) {
				t.Errorf("%s: the log contains %q", tc.reason, logged.String())
			}
		})
	}
}
