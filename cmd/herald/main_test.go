// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/herald-social/herald/cmd/herald/internal/process"
)

// TestMain sets up the log before any test starts a goroutine that reads klog's logger.
func TestMain(m *testing.M) {
	f := &process.Flags{}
	f.Add(process.NewFlagSet("test"), "")
	if _, err := f.SetupLog(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitFailure)
	}
	os.Exit(m.Run())
}

func TestDispatch(t *testing.T) {
	for name, tc := range map[string]struct {
		reason         string
		args           []string
		code           int
		stdout, stderr string
	}{
		"no command":           {"without arguments, herald prints its usage and fails", nil, exitUsage, "", "Usage: herald COMMAND"},
		"help":                 {"requested help is printed to stdout", []string{"help"}, 0, "apiserver", ""},
		"unknown":              {"the error names the unknown command", []string{"serve"}, exitUsage, "", `unknown command "serve"`},
		"unknown flag":         {"a wrong flag is the caller's mistake", []string{"apiserver", "--port=1"}, exitUsage, "", "-port"},
		"stray argument":       {"a flag without dashes must not be ignored", []string{"apiserver", "listen"}, exitUsage, "", `unexpected argument "listen"`},
		"wrong log format":     {"the process does not start with invalid flags", []string{"apiserver", "--log-format=xml"}, exitUsage, "", "want text or json"},
		"check without a file": {"the file must be named", []string{"config", "check"}, exitUsage, "", "herald config check FILE"},
		"check mistakes":       {"editors and pipelines find the line", []string{"config", "check", "internal/config/testdata/twenty.yaml"}, exitFailure, "", "has 20 mistakes"},
		"no configuration":     {"the configuration is required", []string{"manager"}, exitUsage, "", "--config is required"},
		"no namespace":         {"a typo would leave all teams unserved", []string{"manager", "--config=internal/config/testdata/least.yaml", "--namespace=team-acme, team-b"}, exitUsage, "", `" team-b" is not the name of a namespace`},
		"no place to scale":    {"a Deployment in another namespace is not Herald's", []string{"release", "--scale-down=herald-manager"}, exitUsage, "", "--scale-down needs --install-namespace"},
		"no team":              {"a typing error would release no object, but report success", []string{"release", "--namespace=team-acme, team-b"}, exitUsage, "", `" team-b" is not the name`},
		"failure":              {"a temporary failure differs from a wrong command line", []string{"apiserver", "--config=/does/not/exist"}, exitFailure, "", "herald apiserver: "},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if code := dispatch(t.Context(), tc.args, &stdout, &stderr); code != tc.code {
				t.Errorf("exit code %d, want %d: %s", code, tc.code, tc.reason)
			}
			if !strings.Contains(stdout.String(), tc.stdout) || (tc.stdout == "" && stdout.Len() > 0) {
				t.Errorf("stdout is %q, want %q: %s", &stdout, tc.stdout, tc.reason)
			}
			if !strings.Contains(stderr.String(), tc.stderr) || (tc.stderr == "" && stderr.Len() > 0) {
				t.Errorf("stderr is %q, want %q: %s", &stderr, tc.stderr, tc.reason)
			}
		})
	}
}
