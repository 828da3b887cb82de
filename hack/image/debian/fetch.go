// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// aptHelper is apt's downloader. It does not need root or package lists, and verifies its downloads.
const aptHelper = "/usr/lib/apt/apt-helper"

// Fetch downloads the missing packages of a lock into a folder, and returns their paths.
func Fetch(lock Lock, dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var paths []string
	missing := map[string]Pin{}
	for _, pin := range lock.Packages {
		path := filepath.Join(dir, pin.file())
		paths = append(paths, path)
		if err := verify(path, pin.SHA256); err == nil {
			continue
		}
		missing[path] = pin
		// apt considers a file up to date if it is newer than the file on the mirror.
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	if len(missing) == 0 {
		return paths, nil
	}
	newest := download(missing, func(p Pin) string { return p.URL })
	for path, pin := range missing {
		if verify(path, pin.SHA256) == nil {
			delete(missing, path)
		}
	}
	if len(missing) == 0 {
		return paths, nil
	}
	if err := download(missing, func(p Pin) string { return p.archived(lock.Taken) }); err != nil {
		return nil, fmt.Errorf("fetch %d Debian packages: %w\nIf Debian has replaced them and its archive cannot be reached, "+
			"take the newest ones: make image-packages", len(missing), errors.Join(newest, err))
	}
	for path, pin := range missing {
		if err := verify(path, pin.SHA256); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// download downloads packages from the addresses that address returns.
func download(pins map[string]Pin, address func(Pin) string) error {
	arguments := []string{"download-file"}
	for path, pin := range pins {
		arguments = append(arguments, address(pin), path, hashPrefix+pin.SHA256)
	}
	_, err := run(aptHelper, arguments...)
	return err
}

// verify returns an error if a file does not match its SHA-256.
func verify(path, sum string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	hash := sha256.New()
	_, err = io.Copy(hash, file)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if have := hex.EncodeToString(hash.Sum(nil)); have != sum {
		return fmt.Errorf("%s has the SHA-256 %s, the lock wants %s", path, have, sum)
	}
	return nil
}

// run runs a program and returns its output.
func run(name string, arguments ...string) ([]byte, error) {
	command := exec.Command(name, arguments...)
	// Print messages in the same language regardless of the machine's locale.
	command.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", filepath.Base(name), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.Bytes(), nil
}
