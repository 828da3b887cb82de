// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package builder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// toolchain are the settings of go that change what it builds.
var toolchain = []string{"GOVERSION", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "GOEXPERIMENT", "GOFLAGS", "CGO_ENABLED"}

// stampOf returns a line that changes whenever the program must be built again: the toolchain, the flags, the pinned
// modules and the program's own files.
func (b *Builder) stampOf(ctx context.Context, p Program) (string, error) {
	command := exec.CommandContext(ctx, "go", append([]string{"env"}, toolchain...)...)
	command.Dir = p.Dir
	settings, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("ask go for its settings: %w", err)
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\n%s\n%s\n", settings, p.Package, p.LDFlags)
	for _, name := range append([]string{"go.mod", "go.sum"}, p.Inputs...) {
		data, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(hash, "%s %x\n", name, sha256.Sum256(data))
	}
	return hex.EncodeToString(hash.Sum(nil)) + "\n", nil
}

// explain adds what a person can do to what go build printed, and leaves out its progress.
func explain(output string) string {
	var kept []string
	for line := range strings.Lines(output) {
		if !strings.HasPrefix(line, "go: downloading ") {
			kept = append(kept, strings.TrimRight(line, "\n"))
		}
	}
	text := strings.Join(kept, "\n")
	switch {
	case strings.Contains(text, "no space left on device"):
		text += "\nfree some disk space (go clean -cache -modcache frees Go's own caches) and try again; what is built already is kept"
	case strings.Contains(text, "dial tcp") || strings.Contains(text, "i/o timeout") || strings.Contains(text, "no such host"):
		text += "\nthe Go module proxy could not be reached; try again when the network is there (what was fetched is kept), or set GOPROXY to one that you can reach"
	case strings.Contains(text, "signal: killed"):
		text += "\nthe compiler was killed, most likely for want of memory: about 4 GB are needed; try again with GOFLAGS=-p=1"
	}
	return text
}
