// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/must"
)

const spoolKey = "0123456789abcdef0123456789abcdef"

func keyed(text string) func() string { return func() string { return text } }

// unsaved returns an entry for the account.
func unsaved(accountID string) UnsavedToken {
	return UnsavedToken{
		Account: SpoolAccount{Namespace: "team-acme", Connection: "acme", UID: "1-2-3", Platform: v1alpha1.PlatformX, AccountID: accountID},
		Token: Token{
			Access: "new-access", Refresh: "new-refresh", ExpiresAt: time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC), Scopes: "tweet.write", App: "herald",
		},
		From: Token{Access: "old", Refresh: "old-refresh"}.Fingerprint(),
	}
}

// opened returns an open folder and its log.
func opened(t *testing.T, path, key string) (*Spool, *strings.Builder) {
	t.Helper()
	logged := &strings.Builder{}
	f, err := OpenSpool(path, keyed(key), funcr.New(func(prefix, args string) { fmt.Fprintln(logged, prefix, args) }, funcr.Options{}))
	must.Succeed(t, err)
	return f, logged
}

// entries returns all tokens of a folder whose disk works.
func entries(t *testing.T, f *Spool) []UnsavedToken {
	t.Helper()
	found, all := f.Entries()
	if !all {
		t.Error("a file could not be read")
	}
	return found
}

func TestSpooledTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "unsaved")
	f, _ := opened(t, path, spoolKey)
	older := unsaved("1")
	older.Token.Access = "older"
	for _, e := range []UnsavedToken{older, unsaved("1"), unsaved("2")} {
		must.Succeed(t, f.Save(e))
	}
	next, logged := opened(t, path, spoolKey)
	got := map[string]UnsavedToken{}
	for _, e := range entries(t, next) {
		got[e.Account.AccountID] = e
	}
	if diff := cmp.Diff(map[string]UnsavedToken{"1": unsaved("1"), "2": unsaved("2")}, got); diff != "" {
		t.Errorf("the next process finds the latest of each account (-want +got):\n%s", diff)
	}
	file, err := os.ReadFile(filepath.Join(path, spoolFileName(unsaved("1").Account)))
	must.Succeed(t, err)
	for _, secret := range []string{"new-access", "new-refresh", unsaved("1").From} {
		if bytes.Contains(file, []byte(secret)) {
			t.Errorf("the file shows %q", secret)
		}
	}
	for range 2 {
		if err := next.Remove(unsaved("1").Account); err != nil {
			t.Errorf("removed once or twice: %v", err)
		}
	}
	if left := entries(t, next); len(left) != 1 || logged.Len() > 0 {
		t.Errorf("%d entries remain after a removal; the log contains %q", len(left), logged)
	}
}

// TestInvalidSpoolFiles checks that invalid files are ignored, and that the valid one is still read.
func TestInvalidSpoolFiles(t *testing.T) {
	name := spoolFileName(unsaved("1").Account)
	other := spoolFileName(unsaved("2").Account)
	good, err := sealToken(spoolKey, unsaved("1"))
	must.Succeed(t, err)
	replaced := func(old, text string) []byte { return bytes.Replace(good, []byte(old), []byte(text), 1) }
	strange, err := sealToken(strings.Repeat("k", MinSpoolKey), unsaved("1"))
	must.Succeed(t, err)
	empty, err := sealToken(spoolKey, UnsavedToken{Account: unsaved("1").Account})
	must.Succeed(t, err)
	for title, tc := range map[string]struct {
		reason, name string
		file         []byte
		says         string
	}{
		"of another name":      {"a copy under another account's name is that account's no more", other, good, "another account"},
		"another account":      {"the account is sealed with the token", other, replaced(`"accountID":"1"`, `"accountID":"2"`), "was changed"},
		"another namespace":    {"the namespace is sealed with the token", name, replaced("team-acme", "team-evil"), "was changed"},
		"another connection":   {"the name is sealed with the token", name, replaced(`"connection":"acme"`, `"connection":"acne"`), "was changed"},
		"another UID":          {"the UID is sealed with the token", name, replaced("1-2-3", "1-2-4"), "was changed"},
		"another platform":     {"the platform is sealed with the token", name, replaced(`"platform":"x"`, `"platform":"tiktok"`), "was changed"},
		"another key":          {"the key was replaced", name, strange, "another key"},
		"cut":                  {"the disk was full", name, good[:len(good)/2], "not a sealed token"},
		"empty":                {"the disk was lost", name, nil, "not a sealed token"},
		"an unsealed file":     {"sealed data starts with a nonce", name, []byte(`{"account":{},"sealed":""}`), "was changed"},
		"without a token":      {"a later version may seal other data", name, empty, "another version"},
		"too big":              {"tokens are smaller", name, bytes.Repeat([]byte(" "), MaxSpoolBytes+1), "more than"},
		"of another program":   {"the file does not belong to Herald", "notes.txt", []byte("hello"), "not one of Herald's files"},
		"named like a path":    {"names are short and of one form", "0123.token", good, "not one of Herald's files"},
		"a write that was cut": {"a write interrupted by a kill is not reported", temporary + "123", good[:20], ""},
	} {
		t.Run(title, func(t *testing.T) {
			path := t.TempDir()
			f, logged := opened(t, path, spoolKey)
			must.Succeed(t, f.Save(unsaved("3")))
			must.Succeed(t, os.WriteFile(filepath.Join(path, tc.name), tc.file, 0o600))
			if got := entries(t, f); len(got) != 1 || got[0].Account.AccountID != "3" {
				t.Errorf("%s: got %+v", tc.reason, got)
			}
			if !strings.Contains(logged.String(), tc.says) || tc.says == "" && logged.Len() > 0 {
				t.Errorf("%s: the log contains %q", tc.reason, logged)
			}
			if strings.Contains(logged.String(), "new-") {
				t.Errorf("the log shows a token: %s", logged)
			}
			lying, err := os.ReadDir(filepath.Join(path, quarantineDir))
			if err != nil || (len(lying) == 1) != (tc.says != "") {
				t.Errorf("%s: %d files lie aside, %v", tc.reason, len(lying), err)
			}
			logged.Reset()
			if got := entries(t, f); len(got) != 1 || logged.Len() > 0 {
				t.Errorf("the file must be logged once; the second log contains %q", logged)
			}
		})
	}
}

// ailing is a disk where some files fail.
type ailing struct {
	fs.FS
	// open is a file that cannot be opened, read a file that cannot be read, and gone a file that disappears after it was
	// listed.
	open, read, gone string
}

func (a ailing) Open(name string) (fs.File, error) {
	if name == a.open {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EIO}
	}
	if name == a.gone {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ENOENT}
	}
	file, err := a.FS.Open(name)
	if name == a.read {
		return tornFile{file}, err
	}
	return file, err
}

// tornFile fails in the middle of a read.
type tornFile struct{ fs.File }

func (tornFile) Read([]byte) (int, error) { return 0, syscall.EIO }

// TestUnreadableSpoolFiles checks that a token is not lost because the disk fails at startup.
func TestUnreadableSpoolFiles(t *testing.T) {
	name := spoolFileName(unsaved("1").Account)
	for title, tc := range map[string]struct {
		reason     string
		disk       ailing
		found      int
		unread     bool
		othersToo  bool
		says, file string
	}{
		"not opened": {"a disk error is temporary, or an administrator corrects it", ailing{open: name}, 1, true, false, "cannot read a sealed token", name},
		"broken off": {"an error during reading is temporary", ailing{read: name}, 1, true, false, "cannot read a sealed token", name},
		"no names":   {"unreadable names may belong to any account", ailing{open: "."}, 0, true, true, "cannot look for renewed tokens", ""},
		"deleted":    {"another process has stored it in the meantime", ailing{gone: name}, 1, false, false, "", ""},
	} {
		t.Run(title, func(t *testing.T) {
			path := t.TempDir()
			f, logged := opened(t, path, spoolKey)
			must.Succeed(t, errors.Join(f.Save(unsaved("1")), f.Save(unsaved("2"))))
			disk := f.files
			tc.disk.FS = disk
			f.files = tc.disk
			for range 2 {
				if found, all := f.Entries(); len(found) != tc.found || all == tc.unread {
					t.Errorf("%s: %d found, all: %t", tc.reason, len(found), all)
				}
			}
			if f.HasUnreadable(unsaved("1").Account) != tc.unread || f.HasUnreadable(unsaved("3").Account) != tc.othersToo {
				t.Errorf("%s: unread is %t, of an account without a file %t", tc.reason, f.HasUnreadable(unsaved("1").Account), f.HasUnreadable(unsaved("3").Account))
			}
			if tc.says != "" && strings.Count(logged.String(), tc.says) != 1 || tc.says == "" && logged.Len() > 0 || !strings.Contains(logged.String(), tc.file) {
				t.Errorf("%s: it must be logged once, with its name; the log contains %q", tc.reason, logged)
			}
			if lying, err := os.ReadDir(filepath.Join(path, quarantineDir)); err != nil || len(lying) > 0 {
				t.Errorf("%d files were set aside, %v", len(lying), err)
			}
			f.files = disk
			if found := entries(t, f); len(found) != 2 || f.HasUnreadable(unsaved("1").Account) {
				t.Errorf("later, there are %d entries", len(found))
			}
		})
	}
}

// TestUnreadableSpoolFileIsReplaced checks that an obsolete unreadable token does not block its account.
func TestUnreadableSpoolFileIsReplaced(t *testing.T) {
	for title, tc := range map[string]struct {
		reason string
		how    func(f *Spool) error
	}{
		"put":     {"a newer file replaces it", func(f *Spool) error { return f.Save(unsaved("1")) }},
		"removed": {"the account has another token, or was deleted", func(f *Spool) error { return f.Remove(unsaved("1").Account) }},
	} {
		t.Run(title, func(t *testing.T) {
			f, _ := opened(t, t.TempDir(), spoolKey)
			must.Succeed(t, f.Save(unsaved("1")))
			f.files = ailing{FS: f.files, open: spoolFileName(unsaved("1").Account)}
			if _, all := f.Entries(); all {
				t.Fatal("a listing with a disk error counts as complete")
			}
			if err := tc.how(f); err != nil || f.HasUnreadable(unsaved("1").Account) {
				t.Errorf("%s, and it is waited for: %v", tc.reason, err)
			}
		})
	}
}

// TestBounds checks that neither tokens nor quarantined files fill the disk.
func TestBounds(t *testing.T) {
	path := t.TempDir()
	f, logged := opened(t, path, spoolKey)
	for n := range maxQuarantined + 3 {
		must.Succeed(t, os.WriteFile(filepath.Join(path, fmt.Sprint("stray-", n)), []byte("?"), 0o600))
	}
	entries(t, f)
	if lying, err := os.ReadDir(filepath.Join(path, quarantineDir)); err != nil || len(lying) != maxQuarantined {
		t.Errorf("%d files lie aside, want %d at most; %v", len(lying), maxQuarantined, err)
	}
	if strings.Count(logged.String(), "stray-") < maxQuarantined+3 {
		t.Errorf("a quarantined file was not logged")
	}
	for n := range MaxSpoolEntries {
		must.Succeed(t, os.WriteFile(filepath.Join(path, fmt.Sprintf("%032x.token", n)), nil, 0o600))
	}
	if err := f.Save(unsaved("1")); err == nil || !strings.Contains(err.Error(), "holds 1024 already") {
		t.Errorf("saving above the limit returned %v", err)
	}
	big := unsaved("1")
	big.Token.Access = strings.Repeat("a", MaxSpoolBytes)
	if err := f.Save(big); err == nil || strings.Contains(err.Error(), "aaa") {
		t.Errorf("a token above the size limit returned %v", err)
	}
}

func TestOpen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must.Succeed(t, os.WriteFile(file, nil, 0o600))
	tests := map[string]struct{ reason, path, key, says string }{
		"good":       {"the folder is created", filepath.Join(t.TempDir(), "a", "b"), spoolKey, ""},
		"short key":  {"a short key could be guessed", t.TempDir(), spoolKey[1:], "fewer than 32 characters"},
		"no key":     {"the key is too short", t.TempDir(), "", "fewer than 32 characters"},
		"no folder":  {"the path is a file", file, spoolKey, "cannot write files to folder " + file},
		"not a path": {"a folder in a file", filepath.Join(file, "unsaved"), spoolKey, "cannot write files"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := OpenSpool(tc.path, keyed(tc.key), logr.Discard())
			if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: got %v", tc.reason, err)
			}
		})
	}
}

// TestOpenOfAFullDisk checks that files in a folder that is not writable are still read, and that the process
// continues.
func TestOpenOfAFullDisk(t *testing.T) {
	path := t.TempDir()
	f, err := OpenSpool(path, keyed(spoolKey), logr.Discard())
	must.Succeed(t, err)
	must.Succeed(t, f.Save(unsaved("1")))
	// The probe file cannot replace a folder.
	must.Succeed(t, os.MkdirAll(filepath.Join(path, probe, "in the way"), 0o700))
	if f, err = OpenSpool(path, keyed(spoolKey), logr.Discard()); err != nil || len(entries(t, f)) != 1 {
		t.Errorf("%d tokens, %v", len(entries(t, f)), err)
	}
}

// TestNoSpool checks that a nil Spool works and stores nothing.
func TestNoSpool(t *testing.T) {
	var f *Spool
	if err := errors.Join(f.Save(unsaved("1")), f.Remove(unsaved("1").Account)); err != nil || entries(t, f) != nil || f.HasUnreadable(unsaved("1").Account) {
		t.Errorf("got %v, %v", entries(t, f), err)
	}
}
