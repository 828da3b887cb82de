// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestCommandLine(t *testing.T) {
	whole := []string{"--out=o", "--cache=c", "--programs=p", "--version=v1"}
	tests := map[string]struct {
		reason string
		args   []string
		code   int
		says   string
	}{
		"nothing":        {"a list of commands helps more than silence", nil, exitUsage, "pack|unpack|packages"},
		"no such thing":  {"the same", []string{"build"}, exitUsage, "pack|unpack|packages"},
		"help":           {"asked for, so it is no mistake", []string{"pack", "--help"}, 0, "folder to write to"},
		"no folder":      {"it must not write wherever it was started", []string{"pack", "--cache=c"}, exitUsage, "--out and --cache"},
		"no version":     {"the tag would be empty", []string{"pack", "--out=o", "--cache=c", "--programs=p"}, exitUsage, "--version"},
		"unknown image":  {"the names that there are come with it", append([]string{"pack", "--images=heralt"}, whole...), exitUsage, "herald-store"},
		"too many files": {"two images cannot share a root", append([]string{"unpack"}, whole...), exitFailure, "name one of"},
		"leftover":       {"a flag without its dashes must not be passed over", append([]string{"pack", "version"}, whole...), exitUsage, "unexpected"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if code := dispatch(tc.args, &out, &out); code != tc.code || !strings.Contains(out.String(), tc.says) {
				t.Errorf("exit code %d, %q; want %d and %q: %s", code, out.String(), tc.code, tc.says, tc.reason)
			}
		})
	}
}

// TestLocksAreWhole parses the lock files, which are otherwise read only when the image with ffmpeg is packed, and that
// needs the network.
func TestLocksAreWhole(t *testing.T) {
	for _, architecture := range architectures {
		lock, err := pinned(architecture)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, pin := range lock.Packages {
			if !strings.HasPrefix(pin.URL, "http://deb.debian.org/") || len(pin.SHA256) != 64 {
				t.Errorf("%s: %v", architecture, pin)
			}
			names = append(names, pin.URL[strings.LastIndex(pin.URL, "/")+1:])
		}
		all := strings.Join(names, "\n")
		for _, want := range []string{"ffmpeg_", "libc6_", "base-files_", "libavcodec61_"} {
			if !strings.Contains("\n"+all, "\n"+want) {
				t.Errorf("%s: the lock has no %s", architecture, want)
			}
		}
	}
}
