// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

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
	// MaxSpoolEntries is the maximum number of tokens. No renewal starts during an outage, so there are at most as many as
	// there are concurrent examinations.
	MaxSpoolEntries = 1024
	// MaxSpoolBytes is the maximum size of a file. A token is sent in an HTTP header, so it is far smaller.
	MaxSpoolBytes = 32 << 10
	// MinSpoolKey is the minimum length of the secret from which the key is derived, in bytes.
	MinSpoolKey = 32

	// quarantineDir is the folder for unreadable files, and maxQuarantined the maximum number of files in it.
	quarantineDir  = "aside"
	maxQuarantined = 64
	// temporary is the prefix of unfinished files. probe is a file that checks whether the folder is writable.
	temporary = ".tmp-"
	probe     = temporary + "probe"
)

var isName = regexp.MustCompile(`^[0-9a-f]{32}\.token$`)

// Spool stores renewed tokens that are not in the Kubernetes API yet, sealed, in a folder that outlives the process. If
// a platform replaces the refresh token at each renewal, the new one is the only valid token for the account, and the
// process may exit before the API stores it. A Spool is safe for concurrent use. A nil Spool does not store tokens.
type Spool struct {
	path string
	// files is the file system at path, for reading.
	files fs.FS
	key   func() string
	log   logr.Logger

	mu sync.Mutex
	// unread are the tokens that the last attempt could not read. unlisted is true if it could not even list their names.
	unread   map[string]bool
	unlisted bool
}

// OpenSpool opens a folder, and creates it if necessary. key is called on every use and must return a string that is
// hard to guess and has at least MinSpoolKey characters. OpenSpool returns an error if it cannot create the folder or
// the key is too short. If the folder is currently not writable, it only logs that.
func OpenSpool(path string, key func() string, log logr.Logger) (*Spool, error) {
	if len(key()) < MinSpoolKey {
		return nil, fmt.Errorf("the key has fewer than %d characters; write a longer one, such as the output of `openssl rand -hex 32`", MinSpoolKey)
	}
	f := &Spool{path: path, files: os.DirFS(path), key: key, log: log}
	if err := os.MkdirAll(filepath.Join(path, quarantineDir), 0o700); err != nil {
		return nil, fmt.Errorf("cannot write files to folder %s: %w", path, err)
	}
	err := f.replace(probe, nil)
	if err == nil {
		err = os.Remove(filepath.Join(path, probe))
	}
	if err != nil {
		// For example, the disk is full. Existing files can still be read, and posts can be published without the spool.
		log.Error(err, "cannot write to the folder for renewed tokens; a token that the Kubernetes API does not accept before this process ends is lost", "folder", path)
	}
	return f, nil
}

// spoolFileName returns an account's file. All of its Connections in one namespace share its tokens, and so the file.
func spoolFileName(a SpoolAccount) string {
	sum := sha256.Sum256([]byte(a.Namespace + "\x00" + string(a.Platform) + "\x00" + a.AccountID))
	return hex.EncodeToString(sum[:16]) + ".token"
}

// Save stores a token, replacing the account's earlier one. When Save returns, the token is on disk.
func (f *Spool) Save(e UnsavedToken) error {
	if f == nil {
		return nil
	}
	file, err := sealToken(f.key(), e)
	if err == nil && len(file) > MaxSpoolBytes {
		err = fmt.Errorf("it is %d bytes long, but at most %d are allowed", len(file), MaxSpoolBytes)
	}
	if err != nil {
		return fmt.Errorf("cannot seal a renewed token: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	all, err := f.names()
	if err != nil {
		return fmt.Errorf("cannot spool a renewed token: %w", err)
	}
	name := spoolFileName(e.Account)
	if !all[name] && len(all) >= MaxSpoolEntries {
		return fmt.Errorf("cannot spool a renewed token: folder %s holds %d already, which no process has taken out", f.path, len(all))
	}
	if err := f.replace(name, file); err != nil {
		return fmt.Errorf("cannot spool a renewed token: %w", err)
	}
	delete(f.unread, name)
	return nil
}

// Remove removes an account's token. It is not an error if there is none.
func (f *Spool) Remove(a SpoolAccount) error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := os.Remove(filepath.Join(f.path, spoolFileName(a))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("a renewed token was stored, and its file stays: %w", err)
	}
	delete(f.unread, spoolFileName(a))
	return nil
}

// Entries returns the tokens that an earlier process left, and whether that is all of them. A file that is currently
// unreadable is logged once and kept, so that a later call can read it. An invalid file is logged and quarantined; it
// does not prevent startup.
func (f *Spool) Entries() (entries []UnsavedToken, all bool) {
	if f == nil {
		return nil, true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	files, err := fs.ReadDir(f.files, ".")
	if err != nil {
		if !f.unlisted {
			f.log.Error(err, "cannot look for renewed tokens that an earlier process could not store; retrying; check the folder", "folder", f.path)
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
			// A process exited during a write. The previous file, if there was one, is intact.
			_ = os.Remove(filepath.Join(f.path, name))
		case !isName.MatchString(name) || !file.Type().IsRegular():
			f.quarantine(name, errors.New("it is not one of Herald's files"))
		default:
			if e, ok := f.readEntry(name, before[name]); ok && len(entries) < MaxSpoolEntries {
				entries = append(entries, e)
			}
		}
	}
	return entries, len(f.unread) == 0
}

// readEntry reads a token. It quarantines a damaged file. It records an unreadable file, and logs it the first time.
func (f *Spool) readEntry(name string, logged bool) (UnsavedToken, bool) {
	data, err := f.read(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return UnsavedToken{}, false
	case err != nil:
		f.unread[name] = true
		if !logged {
			f.log.Error(err, "cannot read a sealed token: its account is not renewed until a retry succeeds", "file", filepath.Join(f.path, name))
		}
		return UnsavedToken{}, false
	}
	e, err := f.unseal(name, data)
	if err != nil {
		f.quarantine(name, err)
	}
	return e, err == nil
}

// HasUnreadable reports whether the account may have a token that Entries could not read.
func (f *Spool) HasUnreadable(a SpoolAccount) bool {
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unlisted || f.unread[spoolFileName(a)]
}

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

// read reads one file, up to one byte more than the limit. Errors come from the disk.
func (f *Spool) read(name string) ([]byte, error) {
	opened, err := f.files.Open(name)
	if err != nil {
		return nil, err
	}
	defer opened.Close() //nolint:errcheck // the file is read only
	return io.ReadAll(io.LimitReader(opened, MaxSpoolBytes+1))
}

func (f *Spool) unseal(name string, data []byte) (UnsavedToken, error) {
	if len(data) > MaxSpoolBytes {
		return UnsavedToken{}, fmt.Errorf("it has more than %d bytes", MaxSpoolBytes)
	}
	e, err := openToken(f.key(), data)
	if err == nil && spoolFileName(e.Account) != name {
		err = errors.New("it is the token of another account")
	}
	return e, err
}

func (f *Spool) quarantine(name string, why error) {
	folder := filepath.Join(f.path, quarantineDir)
	lying, err := os.ReadDir(folder)
	if err == nil && len(lying) < maxQuarantined {
		err = os.Rename(filepath.Join(f.path, name), filepath.Join(folder, name))
	} else if err == nil {
		err = os.Remove(filepath.Join(f.path, name))
	}
	f.log.Error(errors.Join(why, err), "a file among the sealed tokens cannot be used and was set aside; "+
		"if it held the token of an account, that account must be reconnected", "file", filepath.Join(f.path, name), "aside", folder)
}

// replace writes a file atomically: a later reader sees either the old file or the new one, never a part.
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

func syncDir(path string) error {
	folder, err := os.Open(path) //nolint:gosec // the path is the operator's own configuration
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
