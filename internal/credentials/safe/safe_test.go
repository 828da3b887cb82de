// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package safe

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/credentials"
)

const key = "0123456789abcdef0123456789abcdef"

func keyed(text string) func() string { return func() string { return text } }

// entry is one of an account.
func entry(accountID string) Entry {
	return Entry{
		Account: Account{Namespace: "team-acme", Connection: "acme", UID: "1-2-3", Platform: v1alpha1.PlatformX, AccountID: accountID},
		Token: credentials.Token{
			Access: "new-access", Refresh: "new-refresh", ExpiresAt: time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC), Scopes: "tweet.write", App: "herald",
		},
		From: credentials.Token{Access: "old", Refresh: "old-refresh"}.Fingerprint(),
	}
}

// opened is a folder, and what it says in the log.
func opened(t *testing.T, path, key string) (*Folder, *strings.Builder) {
	t.Helper()
	said := &strings.Builder{}
	f, err := Open(path, keyed(key), funcr.New(func(prefix, args string) { fmt.Fprintln(said, prefix, args) }, funcr.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	return f, said
}

func TestWhatIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "unsaved")
	f, _ := opened(t, path, key)
	older := entry("1")
	older.Token.Access = "older"
	for _, e := range []Entry{older, entry("1"), entry("2")} {
		if err := f.Put(e); err != nil {
			t.Fatal(err)
		}
	}
	next, said := opened(t, path, key)
	got := map[string]Entry{}
	for _, e := range next.Entries() {
		got[e.Account.AccountID] = e
	}
	if diff := cmp.Diff(map[string]Entry{"1": entry("1"), "2": entry("2")}, got); diff != "" {
		t.Errorf("the next process finds the latest of each account (-want +got):\n%s", diff)
	}
	file, err := os.ReadFile(filepath.Join(path, nameOf(entry("1").Account)))
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"new-access", "new-refresh", entry("1").From} {
		if bytes.Contains(file, []byte(secret)) {
			t.Errorf("the file shows %q", secret)
		}
	}
	for range 2 {
		if err := next.Remove(entry("1").Account); err != nil {
			t.Errorf("removed once or twice: %v", err)
		}
	}
	if left := next.Entries(); len(left) != 1 || said.Len() > 0 {
		t.Errorf("after one was removed there are %d; it said %q", len(left), said)
	}
}

// TestFilesThatAreNoTokens: none of them is taken, or keeps the one good file from being.
func TestFilesThatAreNoTokens(t *testing.T) {
	name := nameOf(entry("1").Account)
	other := nameOf(entry("2").Account)
	good, err := seal(key, entry("1"))
	if err != nil {
		t.Fatal(err)
	}
	replaced := func(old, text string) []byte { return bytes.Replace(good, []byte(old), []byte(text), 1) }
	strange, err := seal(strings.Repeat("k", LeastKey), entry("1"))
	if err != nil {
		t.Fatal(err)
	}
	empty, err := seal(key, Entry{Account: entry("1").Account})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		reason, name string
		file         []byte
		says         string
	}{
		"of another name":      {"a copy under another account's name is that account's no more", other, good, "another account"},
		"another account":      {"the account is sealed with it", other, replaced(`"accountID":"1"`, `"accountID":"2"`), "was changed"},
		"another namespace":    {"so is the namespace", name, replaced("team-acme", "team-evil"), "was changed"},
		"another connection":   {"so is the name", name, replaced(`"connection":"acme"`, `"connection":"acne"`), "was changed"},
		"another UID":          {"so is the UID", name, replaced("1-2-3", "1-2-4"), "was changed"},
		"another platform":     {"so is the platform", name, replaced(`"platform":"x"`, `"platform":"tiktok"`), "was changed"},
		"another key":          {"the key was replaced", name, strange, "another key"},
		"cut":                  {"the disk was full", name, good[:len(good)/2], "no sealed token"},
		"empty":                {"the disk was lost", name, nil, "no sealed token"},
		"nothing sealed":       {"a nonce is needed at least", name, []byte(`{"account":{},"sealed":""}`), "was changed"},
		"without a token":      {"a later version may seal other things", name, empty, "another version"},
		"too big":              {"no token has so many bytes", name, bytes.Repeat([]byte(" "), MostBytes+1), "more than"},
		"of somebody else":     {"it is no file of Herald's", "notes.txt", []byte("hello"), "no file of Herald's"},
		"named like a path":    {"names are short and of one form", "0123.token", good, "no file of Herald's"},
		"a write that was cut": {"the process ended while it wrote, which is nothing to tell", temporary + "123", good[:20], ""},
	}
	for title, tc := range tests {
		t.Run(title, func(t *testing.T) {
			path := t.TempDir()
			f, said := opened(t, path, key)
			if err := f.Put(entry("3")); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(path, tc.name), tc.file, 0o600); err != nil {
				t.Fatal(err)
			}
			if got := f.Entries(); len(got) != 1 || got[0].Account.AccountID != "3" {
				t.Errorf("%s: got %+v", tc.reason, got)
			}
			if !strings.Contains(said.String(), tc.says) || tc.says == "" && said.Len() > 0 {
				t.Errorf("%s: the log says %q", tc.reason, said)
			}
			if strings.Contains(said.String(), "new-") {
				t.Errorf("the log shows a token: %s", said)
			}
			lying, err := os.ReadDir(filepath.Join(path, aside))
			if err != nil || (len(lying) == 1) != (tc.says != "") {
				t.Errorf("%s: %d files lie aside, %v", tc.reason, len(lying), err)
			}
			said.Reset()
			if got := f.Entries(); len(got) != 1 || said.Len() > 0 {
				t.Errorf("it is told once; then it said %q", said)
			}
		})
	}
}

// TestBounds: neither tokens nor what is set aside fills the disk.
func TestBounds(t *testing.T) {
	path := t.TempDir()
	f, said := opened(t, path, key)
	for n := range mostAside + 3 {
		if err := os.WriteFile(filepath.Join(path, fmt.Sprint("stray-", n)), []byte("?"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.Entries()
	if lying, err := os.ReadDir(filepath.Join(path, aside)); err != nil || len(lying) != mostAside {
		t.Errorf("%d files lie aside, want %d at most; %v", len(lying), mostAside, err)
	}
	if strings.Count(said.String(), "stray-") < mostAside+3 {
		t.Errorf("not each of them was told")
	}
	for n := range MostEntries {
		if err := os.WriteFile(filepath.Join(path, fmt.Sprintf("%032x.token", n)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Put(entry("1")); err == nil || !strings.Contains(err.Error(), "holds 1024 already") {
		t.Errorf("one more than fit: %v", err)
	}
	big := entry("1")
	big.Token.Access = strings.Repeat("a", MostBytes)
	if err := f.Put(big); err == nil || strings.Contains(err.Error(), "aaa") {
		t.Errorf("a token that no file takes: %v", err)
	}
}

func TestOpen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ reason, path, key, says string }{
		"good":       {"the folder is made", filepath.Join(t.TempDir(), "a", "b"), key, ""},
		"short key":  {"it could be guessed", t.TempDir(), key[1:], "less than 32 characters"},
		"no key":     {"nothing could be sealed", t.TempDir(), "", "less than 32 characters"},
		"no folder":  {"it is a file", file, key, "no file can be written into folder " + file},
		"not a path": {"a folder in a file", filepath.Join(file, "unsaved"), key, "no file can be written"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Open(tc.path, keyed(tc.key), logr.Discard())
			if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: got %v", tc.reason, err)
			}
		})
	}
}

// TestOpenOfAFullDisk: what lies in a folder that takes no file is read, and the process goes on.
func TestOpenOfAFullDisk(t *testing.T) {
	path := t.TempDir()
	f, err := Open(path, keyed(key), logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Put(entry("1")); err != nil {
		t.Fatal(err)
	}
	// The file that is tried cannot be put in the place of a folder.
	if err := os.MkdirAll(filepath.Join(path, probe, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if f, err = Open(path, keyed(key), logr.Discard()); err != nil || len(f.Entries()) != 1 {
		t.Errorf("%d tokens, %v", len(f.Entries()), err)
	}
}

// TestNone: without a folder nothing is kept, and nothing breaks.
func TestNone(t *testing.T) {
	var f *Folder
	if err := errors.Join(f.Put(entry("1")), f.Remove(entry("1").Account)); err != nil || f.Entries() != nil {
		t.Errorf("got %v, %v", f.Entries(), err)
	}
}
