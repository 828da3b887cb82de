// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package spool keeps renewed tokens that are not stored in the Kubernetes API yet, sealed in
// a folder that outlives the process: where a refresh token is replaced at each renewal, the
// new one is all that an account has, and a process may end before the API takes it.
package spool

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/go-logr/logr"
)

const (
	// MostEntries is how many tokens are kept. In an outage no renewal is begun, so there
	// are no more than accounts are examined at once.
	MostEntries = 1024
	// MostBytes is the size of a file. A token is a header of HTTP, and so far below.
	MostBytes = 32 << 10
	// LeastKey is the length of a key's text.
	LeastKey = 32

	// quarantineDir is the folder of files that cannot be read, and maxQuarantined how many are kept.
	quarantineDir  = "aside"
	maxQuarantined = 64
	// temporary begins the names of files that are being written, and probe is one that shows
	// that files can be.
	temporary = ".tmp-"
	probe     = temporary + "probe"
)

var isName = regexp.MustCompile(`^[0-9a-f]{32}\.token$`)

// Spool holds sealed tokens. Its methods may be called at the same time. A nil Folder keeps
// nothing.
type Spool struct {
	path string
	// files are read through this: those of path.
	files fs.FS
	key   func() string
	log   logr.Logger

	mu sync.Mutex
	// unread are the tokens that could not be read when they were looked for last, and unlisted
	// is set if not even their names could.
	unread   map[string]bool
	unlisted bool
}

// Open opens a folder, and makes it if it is not there. The key is asked for at each use:
// a text of LeastKey characters or more that is hard to guess. The error says that there
// can be no such folder, or that the key is too short. One that takes no file now is told in the log.
func Open(path string, key func() string, log logr.Logger) (*Spool, error) {
	if len(key()) < LeastKey {
		return nil, fmt.Errorf("the key has less than %d characters; write a longer one, such as the output of `openssl rand -hex 32`", LeastKey)
	}
	f := &Spool{path: path, files: os.DirFS(path), key: key, log: log}
	if err := os.MkdirAll(filepath.Join(path, quarantineDir), 0o700); err != nil {
		return nil, fmt.Errorf("no file can be written into folder %s: %w", path, err)
	}
	err := f.replace(probe, nil)
	if err == nil {
		err = os.Remove(filepath.Join(path, probe))
	}
	if err != nil {
		// As on a full disk. What lies there can be read all the same, and posts go out without it.
		log.Error(err, "no file can be written into the folder for renewed tokens; one that the Kubernetes API does not take before this process ends is lost", "folder", path)
	}
	return f, nil
}

// nameOf is the file of an account. All Connections of an account in one namespace share
// its tokens, so they share the file.
func nameOf(a Account) string {
	sum := sha256.Sum256([]byte(a.Namespace + "\x00" + string(a.Platform) + "\x00" + a.AccountID))
	return hex.EncodeToString(sum[:16]) + ".token"
}

// Save keeps a token, in the place of an earlier one of the account. It is on the disk when
// Put returns.
func (f *Spool) Save(e UnsavedToken) error {
	if f == nil {
		return nil
	}
	file, err := seal(f.key(), e)
	if err == nil && len(file) > MostBytes {
		err = fmt.Errorf("it has %d bytes, and %d are the most", len(file), MostBytes)
	}
	if err != nil {
		return fmt.Errorf("cannot seal a renewed token: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	all, err := f.names()
	if err != nil {
		return fmt.Errorf("cannot keep a renewed token: %w", err)
	}
	name := nameOf(e.Account)
	if !all[name] && len(all) >= MostEntries {
		return fmt.Errorf("cannot keep a renewed token: folder %s holds %d already, which no process has taken out", f.path, len(all))
	}
	if err := f.replace(name, file); err != nil {
		return fmt.Errorf("cannot keep a renewed token: %w", err)
	}
	delete(f.unread, name)
	return nil
}

// Remove forgets the token of an account; none is no error.
func (f *Spool) Remove(a Account) error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := os.Remove(filepath.Join(f.path, nameOf(a))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("a renewed token was stored, and its file stays: %w", err)
	}
	delete(f.unread, nameOf(a))
	return nil
}

// Entries returns the tokens that an earlier process left, and whether those are all: what the
// disk does not give now stays where it is, is told in the log once, and may be read by a later
// call. A file that is no token is told and set aside; it keeps nobody from starting.
func (f *Spool) Entries() (entries []UnsavedToken, all bool) {
	if f == nil {
		return nil, true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	files, err := fs.ReadDir(f.files, ".")
	if err != nil {
		if !f.unlisted {
			f.log.Error(err, "cannot look for renewed tokens that an earlier process could not store; it is tried again; see what became of the folder", "folder", f.path)
		}
		f.unlisted = true
		return nil, false
	}
	before := f.unread
	f.unlisted, f.unread = false, map[string]bool{}
	for _, file := range files {
		name := file.Name()
		switch {
		case file.IsDir():
		case strings.HasPrefix(name, temporary):
			// A process ended while it wrote: the file before, if there was one, is whole.
			_ = os.Remove(filepath.Join(f.path, name))
		case !isName.MatchString(name) || !file.Type().IsRegular():
			f.quarantine(name, errors.New("it is no file of Herald's"))
		default:
			if e, ok := f.readEntry(name, before[name]); ok && len(entries) < MostEntries {
				entries = append(entries, e)
			}
		}
	}
	return entries, len(f.unread) == 0
}

// readEntry reads a token. One that is damaged is set aside; one that cannot be read is noted, and
// told unless it was.
func (f *Spool) readEntry(name string, told bool) (UnsavedToken, bool) {
	data, err := f.read(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return UnsavedToken{}, false
	case err != nil:
		f.unread[name] = true
		if !told {
			f.log.Error(err, "a sealed token cannot be read now; it is tried again, and its account is not renewed before", "file", filepath.Join(f.path, name))
		}
		return UnsavedToken{}, false
	}
	e, err := f.unseal(name, data)
	if err != nil {
		f.quarantine(name, err)
	}
	return e, err == nil
}

// HasUnreadable reports whether there may be a token of the account that Entries could not read.
func (f *Spool) HasUnreadable(a Account) bool {
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unlisted || f.unread[nameOf(a)]
}

// names are the tokens that are there.
func (f *Spool) names() (map[string]bool, error) {
	files, err := os.ReadDir(f.path)
	names := map[string]bool{}
	for _, file := range files {
		if isName.MatchString(file.Name()) {
			names[file.Name()] = true
		}
	}
	return names, err
}

// read reads one file: as much of it as shows that it is too big. An error is one of the disk.
func (f *Spool) read(name string) ([]byte, error) {
	opened, err := f.files.Open(name)
	if err != nil {
		return nil, err
	}
	defer opened.Close() //nolint:errcheck // it is only read
	return io.ReadAll(io.LimitReader(opened, MostBytes+1))
}

// unseal makes a token of the content of a file. An error says that the file is damaged, or
// another one's.
func (f *Spool) unseal(name string, data []byte) (UnsavedToken, error) {
	if len(data) > MostBytes {
		return UnsavedToken{}, fmt.Errorf("it has more than %d bytes", MostBytes)
	}
	e, err := open(f.key(), data)
	if err == nil && nameOf(e.Account) != name {
		err = errors.New("it is the token of another account")
	}
	return e, err
}

// quarantine moves a file out of the way, or removes it if many lie there.
func (f *Spool) quarantine(name string, why error) {
	folder := filepath.Join(f.path, quarantineDir)
	lying, err := os.ReadDir(folder)
	if err == nil && len(lying) < maxQuarantined {
		err = os.Rename(filepath.Join(f.path, name), filepath.Join(folder, name))
	} else if err == nil {
		err = os.Remove(filepath.Join(f.path, name))
	}
	f.log.Error(errors.Join(why, err), "a file among the sealed tokens cannot be used and was set aside; "+
		"if it held the token of an account, that account has to be connected again", "file", filepath.Join(f.path, name), "aside", folder)
}

// replace writes a file at once: what is read afterwards, by whatever process, is the old
// file or the new one, and never a part.
func (f *Spool) replace(name string, data []byte) error {
	file, err := os.CreateTemp(f.path, temporary+"*")
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), filepath.Join(f.path, name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return syncDir(f.path)
}

// syncDir writes the names in a folder to the disk.
func syncDir(path string) error {
	folder, err := os.Open(path) //nolint:gosec // the path is the operator's own configuration
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
