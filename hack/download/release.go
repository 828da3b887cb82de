// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

const (
	checksumsFile    = "checksums.txt"
	kubernetesModule = "k8s.io/kubernetes"
	etcdModule       = "go.etcd.io/etcd/server/v3"
)

// A program is published by its project for some platforms.
type program struct {
	// module is the module in go.mod whose version is downloaded.
	module    string
	platforms []string
}

var (
	linux = []string{"linux/amd64", "linux/arm64"}

	// programs are the programs that a first start can download. Kubernetes publishes its servers for Linux only, and
	// etcd's programs for macOS come as zip files.
	programs = map[string]program{
		"etcd":                    {etcdModule, linux},
		"kube-apiserver":          {kubernetesModule, linux},
		"kube-controller-manager": {kubernetesModule, linux},
		"kubectl":                 {kubernetesModule, append(slices.Clone(linux), "darwin/amd64", "darwin/arm64")},
	}
)

// A release is one published file.
type release struct {
	// name is the name of the program.
	name string
	// origin is the publisher's server; path is the file's path both there and in a mirror.
	origin, path string
	// member is the program's path in a tar.gz archive, or "" if the file is the program itself.
	member string
	// sums is the path of the publisher's checksums.
	sums string
}

// newRelease returns the release of a program for a platform such as linux/amd64.
func newRelease(name string, versions map[string]string, platform string) (release, error) {
	p, ok := programs[name]
	if !ok {
		return release{}, fmt.Errorf("no release of %q is known", name)
	}
	version := versions[p.module]
	if version == "" {
		return release{}, fmt.Errorf("go.mod pins no version of %s", p.module)
	}
	if p.module == etcdModule {
		folder := "etcd-io/etcd/releases/download/" + version
		archive := "etcd-" + version + "-" + strings.ReplaceAll(platform, "/", "-")
		return release{
			name: name, origin: "https://github.com", path: folder + "/" + archive + ".tar.gz",
			member: archive + "/etcd", sums: folder + "/SHA256SUMS",
		}, nil
	}
	file := "release/" + version + "/bin/" + platform + "/" + name
	return release{name: name, origin: "https://dl.k8s.io", path: file, sums: file + ".sha256"}, nil
}

// parseVersions returns the versions that a go.mod requires, by module.
func parseVersions(text string) map[string]string {
	versions := map[string]string{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(strings.TrimPrefix(line, "require "))
		if len(fields) >= 2 && strings.HasPrefix(fields[1], "v") {
			versions[fields[0]] = fields[1]
		}
	}
	return versions
}

// parseChecksums reads lines as sha256sum writes them: the sum, two spaces, the path. Lines starting with # are
// comments.
func parseChecksums(text string) (map[string]string, error) {
	sums := map[string]string{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		sum, file, ok := strings.Cut(line, "  ")
		if raw, err := hex.DecodeString(sum); !ok || err != nil || len(raw) != 32 {
			return nil, fmt.Errorf("%q is not a SHA-256, two spaces and a path", line)
		}
		if sums[file] != "" {
			return nil, fmt.Errorf("%s has two checksums", file)
		}
		sums[file] = strings.ToLower(sum)
	}
	return sums, nil
}

// published returns a file's sum from its publisher's checksums, which are a single sum or one line per file.
func published(text, file string) (string, error) {
	fields := strings.Fields(text)
	if len(fields) == 1 {
		return strings.ToLower(fields[0]), nil
	}
	for i := 1; i < len(fields); i += 2 {
		if strings.TrimPrefix(fields[i], "*") == path.Base(file) {
			return strings.ToLower(fields[i-1]), nil
		}
	}
	return "", errors.New("the publisher's checksums do not list " + path.Base(file))
}

// allReleases returns the releases of all programs for all platforms, in the order of checksums.txt.
func allReleases(versions map[string]string) ([]release, error) {
	var found []release
	for name, p := range programs {
		for _, platform := range p.platforms {
			r, err := newRelease(name, versions, platform)
			if err != nil {
				return nil, err
			}
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b release) int { return strings.Compare(a.path, b.path) })
	return found, nil
}
