// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// keyring contains the keys of Debian's archive. Debian always has it; on Ubuntu it is in the package
// debian-archive-keyring.
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// Resolve returns the newest versions of packages and all their dependencies from a Debian mirror, as if no package
// were installed. apt keeps its data in dir, apart from the machine's own lists.
func Resolve(suite, architecture, dir string, names ...string) ([]Pin, error) {
	if _, err := os.Stat(keyring); err != nil {
		return nil, fmt.Errorf("the keys of Debian are missing; apt-get install debian-archive-keyring: %w", err)
	}
	options, err := privateApt(suite, architecture, dir)
	if err != nil {
		return nil, err
	}
	apt := func(arguments ...string) ([]byte, error) {
		return run("apt-get", append(slices.Clip(options), arguments...)...)
	}
	if _, err := apt("update"); err != nil {
		return nil, err
	}
	install := append([]string{"--print-uris", "--yes", "--no-install-recommends", "install"}, names...)
	printed, err := apt(install...)
	if err != nil {
		return nil, err
	}
	// apt prints MD5 sums for an install, but SHA-256 for a download.
	printed, err = apt(append([]string{"--print-uris", "download"}, packagesOf(printed)...)...)
	if err != nil {
		return nil, err
	}
	var pins []Pin
	for line := range strings.Lines(string(printed)) {
		if !strings.HasPrefix(line, "'") {
			continue
		}
		pin, err := parsePin(line)
		if err != nil {
			return nil, err
		}
		pins = append(pins, pin)
	}
	return pins, nil
}

// packagesOf returns the package names in apt's output, whose lines are 'address' name_version_architecture.deb size
// hash.
func packagesOf(printed []byte) []string {
	var names []string
	for line := range strings.Lines(string(printed)) {
		if fields := strings.Fields(line); strings.HasPrefix(line, "'") && len(fields) > 1 {
			name, _, _ := strings.Cut(fields[1], "_")
			names = append(names, name)
		}
	}
	return names
}

// privateApt returns the options that confine apt to a folder.
func privateApt(suite, architecture, dir string) ([]string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for _, folder := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			return nil, err
		}
	}
	sources := fmt.Sprintf(`deb [signed-by=%[1]s] http://deb.debian.org/debian %[2]s main
deb [signed-by=%[1]s] http://deb.debian.org/debian %[2]s-updates main
deb [signed-by=%[1]s] http://deb.debian.org/debian-security %[2]s-security main
`, keyring, suite)
	for name, content := range map[string]string{"sources.list": sources, "status": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return nil, err
		}
	}
	var options []string
	for _, option := range []string{
		"Dir::State=" + dir,
		"Dir::State::status=" + filepath.Join(dir, "status"),
		"Dir::State::lists=" + filepath.Join(dir, "lists"),
		"Dir::Cache=" + filepath.Join(dir, "cache"),
		"Dir::Etc::sourcelist=" + filepath.Join(dir, "sources.list"),
		"Dir::Etc::sourceparts=-",
		"APT::Architecture=" + architecture,
		"APT::Architectures=" + architecture,
		"Acquire::Languages=none",
	} {
		options = append(options, "-o", option)
	}
	return options, nil
}
