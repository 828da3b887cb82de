// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	for name, tc := range map[string]struct {
		reason         string
		args           []string
		code           int
		stdout, stderr string
	}{
		"help":             {"requested help is printed to stdout", []string{"--help"}, 0, "-state-dir", ""},
		"unknown flag":     {"a wrong flag is the caller's mistake", []string{"--port=1"}, exitUsage, "", "-port"},
		"stray argument":   {"a flag without dashes must not be ignored", []string{"listen"}, exitUsage, "", `unexpected argument "listen"`},
		"wrong log format": {"the process does not start with invalid flags", []string{"--log-format=xml"}, exitUsage, "", "want text or json"},
		"no such address":  {"a temporary failure differs from a wrong command line", []string{"--listen=203.0.113.1:1"}, exitFailure, "", "--listen=203.0.113.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if code := run(t.Context(), tc.args, &stdout, &stderr); code != tc.code {
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

func TestStrictnessIsConfigurable(t *testing.T) {
	for flags, lenient := range map[string]bool{"": true, "--strict": false} {
		c, err := parse(strings.Fields(flags), io.Discard, io.Discard)
		if err != nil || c.options.Lenient != lenient {
			t.Errorf("%q: lenient is %t, %v", flags, c.options.Lenient, err)
		}
	}
}

// onLog is called for each line of the log.
type onLog func(line string)

func (f onLog) Write(line []byte) (int, error) {
	f(string(line))
	return len(line), nil
}

func TestStopBySignalSucceeds(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var served bool
	log := onLog(func(line string) {
		if strings.Contains(line, "serving the simulated platforms") {
			served = true
			stop()
		}
	})
	if code := run(ctx, []string{"--listen=127.0.0.1:0", "--state-dir=" + t.TempDir()}, io.Discard, log); code != 0 || !served {
		t.Errorf("exit code %d, served %t; want 0 after serving", code, served)
	}
}
