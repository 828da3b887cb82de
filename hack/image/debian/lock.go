// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package debian takes programs out of Debian packages: the program, the libraries that it is linked with, and what their
// licences ask to keep beside them, and no more. Nothing is installed and nothing needs root. Packages are fetched by apt and
// pinned in a lock file, by SHA-256.
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
	// Taken is the day on which these were the newest packages, as YYYYMMDD: the archive of old packages is asked for that day.
	Taken    string
	Packages []Pin
}

// Pin is one package. The lock holds it as apt prints it: 'address' file size SHA256:hash.
type Pin struct {
	URL    string
	Size   int64
	SHA256 string
}

const (
	takenPrefix = "# taken "
	hashPrefix  = "SHA256:"
)

// ParseLock reads a lock file.
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

// parsePin reads a line that `apt-get --print-uris` printed.
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

// Format writes a lock file.
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

// file is the name of the package's file, such as libzimg2_3.0.5+ds1-1+b2_amd64.deb.
func (p Pin) file() string {
	name := path.Base(p.URL)
	if plain, err := url.PathUnescape(name); err == nil {
		return plain
	}
	return name
}

// archived is where a package is kept for good, under the day on which it was taken. A mirror drops it when a newer one comes.
func (p Pin) archived(taken string) string {
	_, rest, found := strings.Cut(p.URL, "://")
	_, file, foundPath := strings.Cut(rest, "/")
	section, file, foundSection := strings.Cut(file, "/")
	if !found || !foundPath || !foundSection {
		return ""
	}
	return fmt.Sprintf("http://snapshot.debian.org/archive/%s/%sT235959Z/%s", section, taken, file)
}
