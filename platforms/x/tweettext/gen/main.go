// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Command gen writes the data tables of package tweettext: the top-level domains that end a URL, and the emoji
// sequences that count as one emoji. Both are extracted from packages that X publishes, so the count agrees with X's
// own client. It requires npm on the path. Run it with `go generate` in the parent folder.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// source is a published npm package, pinned by its version and by the registry's integrity digest.
type source struct {
	name, version string
	// sha512 is the archive's base64 digest, as in package-lock.json.
	sha512 string
}

var (
	twitterText = source{
		name: "twitter-text", version: "3.1.0",
		sha512: "nulfUi3FN6z0LUjYipJid+eiwXvOLb8Ass7Jy/6zsXmZK3URte043m8fL3FyDzrK+WLpyqhHuR/TcARTN/iuGQ==",
	}
	twemojiParser = source{
		name: "twemoji-parser", version: "11.0.2",
		sha512: "5kO2XCcpAql6zjdLwRwJjYvAZyDy3+Uj7v1ipBzLthQmDL7Ce19bEqHr3ImSNeoSW2OA8u02XmARbXHaNO8GhA==",
	}
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// run downloads the sources into a temporary folder and writes the tables into the current one.
func run() (err error) {
	dir, err := os.MkdirTemp("", "tweettext")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	generic, err := twitterText.file(dir, "package/dist/regexp/validGTLD.js")
	if err != nil {
		return err
	}
	country, err := twitterText.file(dir, "package/dist/regexp/validCCTLD.js")
	if err != nil {
		return err
	}
	emoji, err := twemojiParser.file(dir, "package/dist/lib/regex.js")
	if err != nil {
		return err
	}

	tlds, err := tldTable(string(generic), string(country))
	if err != nil {
		return fmt.Errorf("top-level domains of %s: %w", twitterText, err)
	}
	sequences, err := emojiTable(string(emoji))
	if err != nil {
		return fmt.Errorf("emoji of %s: %w", twemojiParser, err)
	}
	return errors.Join(write("tlds.txt", tlds), write("emoji.txt", sequences))
}

func (s source) String() string { return s.name + "@" + s.version }

// file returns one file of the package, downloaded by npm into dir and verified against the pinned digest.
func (s source) file(dir, name string) ([]byte, error) {
	archive := filepath.Join(dir, s.name+"-"+s.version+".tgz")
	if _, err := os.Stat(archive); errors.Is(err, os.ErrNotExist) {
		cmd := exec.Command("npm", "pack", "--silent", "--pack-destination", dir, s.String())
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("npm pack %s: %w", s, err)
		}
	}
	packed, err := os.ReadFile(archive)
	if err != nil {
		return nil, err
	}
	digest := sha512.Sum512(packed)
	if got := base64.StdEncoding.EncodeToString(digest[:]); got != s.sha512 {
		return nil, fmt.Errorf("%s: its archive has the SHA-512 %s, expected %s", s, got, s.sha512)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s, err)
	}
	for files := tar.NewReader(unzipped); ; {
		entry, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s holds no %s", s, name)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s, err)
		}
		if entry.Name == name {
			return io.ReadAll(files)
		}
	}
}

// perLine is the number of entries per line of a table.
const perLine = 16

// write stores a table in the current folder, sorted, with spaces between its entries.
func write(name string, table []string) error {
	slices.Sort(table)
	var b strings.Builder
	for line := range slices.Chunk(slices.Compact(table), perLine) {
		b.WriteString(strings.Join(line, " ") + "\n")
	}
	return os.WriteFile(name, []byte(b.String()), 0o644)
}
