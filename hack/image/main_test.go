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
		"no command":                     {"usage lists the commands", nil, exitUsage, "pack|unpack|packages"},
		"an unknown command":             {"usage lists the commands", []string{"build"}, exitUsage, "pack|unpack|packages"},
		"help":                           {"requested help is not an error", []string{"pack", "--help"}, 0, "folder to write to"},
		"no folder":                      {"the current folder is not a default", []string{"pack", "--cache=c"}, exitUsage, "--out and --cache"},
		"no version":                     {"the tag would be empty", []string{"pack", "--out=o", "--cache=c", "--programs=p"}, exitUsage, "--version"},
		"unknown image":                  {"the error lists the valid names", append([]string{"pack", "--images=heralt"}, whole...), exitUsage, "herald-store"},
		"too many files":                 {"an unpacked root has one image", append([]string{"unpack"}, whole...), exitFailure, "name one of"},
		"an argument that is not a flag": {"a flag without dashes must not be ignored", append([]string{"pack", "version"}, whole...), exitUsage, "unexpected"},
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

// TestLocksAreComplete parses the lock files. Otherwise, only packing the image with ffmpeg reads them, and that requires
// network access.
func TestLocksAreComplete(t *testing.T) {
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
				t.Errorf("%s: the lock lacks %s", architecture, want)
			}
		}
	}
}
