// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package debian extracts programs from Debian packages: only the program, the libraries it links to, and the files
// that their licences require. It installs nothing and does not need root. apt downloads the packages, and a lock file
// pins them by SHA-256.
package debian

import (
	"bufio"
	"bytes"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Lock pins packages for one architecture.
type Lock struct {
	// Taken is a day, as YYYYMMDD, on which these packages were the latest. The archive's addresses of old packages
	// contain the day.
	Taken    string
	Packages []Pin
}

// Pin is one package. In the lock file it is a line of apt's output: 'address' file size SHA256:hash.
type Pin struct {
	URL    string
	Size   int64
	SHA256 string
}

const (
	takenPrefix = "# taken "
	hashPrefix  = "SHA256:"
)

// ParseLock parses a lock file.
func ParseLock(data []byte) (Lock, error) {
	var lock Lock
	lines := bufio.NewScanner(bytes.NewReader(data))
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if day, found := strings.CutPrefix(line, takenPrefix); found {
			lock.Taken = day
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pin, err := parsePin(line)
		if err != nil {
			return Lock{}, fmt.Errorf("line %d: %w", number, err)
		}
		lock.Packages = append(lock.Packages, pin)
	}
	if err := lines.Err(); err != nil {
		return Lock{}, err
	}
	if lock.Taken == "" {
		return Lock{}, fmt.Errorf("no line begins with %q", takenPrefix)
	}
	return lock, nil
}

// parsePin parses one line from `apt-get --print-uris`.
func parsePin(line string) (Pin, error) {
	fields := strings.Fields(line)
	if len(fields) != 4 || !strings.HasPrefix(fields[3], hashPrefix) {
		return Pin{}, fmt.Errorf("want 'address' file size SHA256:hash, have %s", line)
	}
	size, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return Pin{}, fmt.Errorf("the size of %s: %w", fields[1], err)
	}
	return Pin{URL: strings.Trim(fields[0], "'"), Size: size, SHA256: strings.TrimPrefix(fields[3], hashPrefix)}, nil
}

// Format formats a lock file.
func (l Lock) Format() []byte {
	var out bytes.Buffer
	out.WriteString("# Written by `make image-packages`, which takes today's packages.\n")
	fmt.Fprintf(&out, "%s%s\n", takenPrefix, l.Taken)
	sorted := slices.SortedFunc(slices.Values(l.Packages), func(a, b Pin) int { return strings.Compare(a.file(), b.file()) })
	for _, pin := range sorted {
		fmt.Fprintf(&out, "'%s' %s %d %s%s\n", pin.URL, pin.file(), pin.Size, hashPrefix, pin.SHA256)
	}
	return out.Bytes()
}

// file returns the package's file name, such as libzimg2_3.0.5+ds1-1+b2_amd64.deb.
func (p Pin) file() string {
	name := path.Base(p.URL)
	if plain, err := url.PathUnescape(name); err == nil {
		return plain
	}
	return name
}

// archived returns a package's permanent address, given the day of its pin. A mirror deletes a package as soon as there
// is a newer version.
func (p Pin) archived(taken string) string {
	_, rest, found := strings.Cut(p.URL, "://")
	_, file, foundPath := strings.Cut(rest, "/")
	section, file, foundSection := strings.Cut(file, "/")
	if !found || !foundPath || !foundSection {
		return ""
	}
	return fmt.Sprintf("http://snapshot.debian.org/archive/%s/%sT235959Z/%s", section, taken, file)
}
