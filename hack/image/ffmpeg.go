// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/herald-social/herald/hack/image/debian"
	"github.com/herald-social/herald/hack/image/tree"
)

// The Debian release that ffmpeg comes from.
const (
	debianSuite   = "trixie"
	debianRelease = "13"
)

// ffmpegPath is the program's path in Debian.
const ffmpegPath = "/usr/bin/ffmpeg"

// locks pin the packages, one file for each architecture.
//
//go:embed ffmpeg/*.lock
var locks embed.FS

func lockName(architecture string) string { return "ffmpeg/" + architecture + ".lock" }

// ffmpeg returns the program with its libraries, and the packages that contain them. Downloaded packages are kept in
// the cache.
func ffmpeg(architecture, cache string) (tree.Tree, []*debian.Package, error) {
	lock, err := pinned(architecture)
	if err != nil {
		return nil, nil, err
	}
	return unpackFFmpeg(lock, architecture, cache)
}

// pinned parses the lock file of an architecture.
func pinned(architecture string) (debian.Lock, error) {
	data, err := locks.ReadFile(lockName(architecture))
	if err != nil {
		return debian.Lock{}, fmt.Errorf("ffmpeg is not pinned for %s: %w", architecture, err)
	}
	lock, err := debian.ParseLock(data)
	if err != nil {
		return debian.Lock{}, fmt.Errorf("%s: %w", lockName(architecture), err)
	}
	return lock, nil
}

func unpackFFmpeg(lock debian.Lock, architecture, cache string) (tree.Tree, []*debian.Package, error) {
	files, err := debian.Fetch(lock, filepath.Join(cache, architecture))
	if err != nil {
		return nil, nil, err
	}
	var packages []*debian.Package
	for i, file := range files {
		p, err := debian.Unpack(file)
		if err != nil {
			return nil, nil, err
		}
		p.Pin = lock.Packages[i]
		packages = append(packages, p)
	}
	return debian.Closure(packages, architecture, ffmpegPath)
}

// pinFFmpeg rewrites the lock files for the current packages. It downloads all of ffmpeg's dependencies to determine
// which are linked, and locks only those.
func pinFFmpeg(dir, cache string, architectures []string, today time.Time) error {
	for _, architecture := range architectures {
		pins, err := debian.Resolve(debianSuite, architecture, filepath.Join(cache, "apt", architecture), "ffmpeg", debian.Base)
		if err != nil {
			return err
		}
		lock := debian.Lock{Taken: today.UTC().Format("20060102"), Packages: pins}
		_, used, err := unpackFFmpeg(lock, architecture, cache)
		if err != nil {
			return err
		}
		lock.Packages = nil
		for _, p := range used {
			lock.Packages = append(lock.Packages, p.Pin)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(lockName(architecture))), lock.Format(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
