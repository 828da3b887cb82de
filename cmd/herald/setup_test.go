// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/internal/pacing"
	"github.com/herald-social/herald/test/must"
)

func TestFindFFmpeg(t *testing.T) {
	empty, full := t.TempDir(), t.TempDir()
	program := filepath.Join(full, "ffmpeg")
	must.Succeed(t, os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700))
	for name, tc := range map[string]struct {
		reason, path, name, want string
		fails                    bool
	}{
		"found":          {"the default suffices where it is installed", full, configv1alpha1.DefaultFFmpeg, program, false},
		"not installed":  {"ffmpeg is not required", empty, configv1alpha1.DefaultFFmpeg, "", false},
		"switched off":   {"ffmpeg is disabled", full, "", "", false},
		"named":          {"ffmpeg is in another folder", empty, program, program, false},
		"named, missing": {"a typing error must show", full, filepath.Join(empty, "ffmpeg"), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH", tc.path)
			got, err := findFFmpeg(tc.name)
			if got != tc.want || (err != nil) != tc.fails {
				t.Errorf("%s: got %q, %v", tc.reason, got, err)
			}
		})
	}
}

// TestEveryPassHasATimeout: a controller without a ReconciliationTimeout gets the default.
func TestEveryPassHasATimeout(t *testing.T) {
	options := managerOptions(configv1alpha1.DefaultManager())
	if got := options.Controller.ReconciliationTimeout; got <= 0 || got > pacing.PostTimeout {
		t.Errorf("the reconciliation timeout is %s, want at most %s: a hanging pass blocks a worker until the next restart", got, pacing.PostTimeout)
	}
}
