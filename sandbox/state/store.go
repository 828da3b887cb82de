// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/utils/clock"
)

// Options are what a Store needs.
type Options struct {
	// Clock tells the time of creations and expiries.
	Clock clock.PassiveClock
	// Dir is the folder of the journal. It is created when it does not exist; empty keeps everything in memory only.
	Dir string
	// Logger receives what happened at the start.
	Logger *slog.Logger
}

// Store is the memory of all simulated platforms. Its methods may be called at the same time.
type Store struct {
	clock   clock.PassiveClock
	journal *journal
	lock    *dirLock
	stamps  stamper
	tokens  *tokenBook

	// change is held for reading by each change and for writing by Reset.
	change sync.RWMutex

	// mu guards the maps, not what their values point to.
	mu        sync.RWMutex
	accounts  map[Key]*account
	usernames map[Key]*account // Key.ID is the username in lower case
	posts     map[Key]*Post    // Key.ID is the post's
	replies   map[Key][]*Post  // Key.ID is that of the chain's first post
	// containers are those that were ever made, Key.ID is the container's own.
	containers map[Key]*Container
}

// Open returns a store with what the journal in opts.Dir holds. A last line that a kill tore is dropped with a warning;
// any other damage is an error. The folder is locked against a second process until Close.
func Open(opts Options) (*Store, error) {
	s := &Store{
		clock: opts.Clock, journal: &journal{}, tokens: newTokenBook(),
		accounts: map[Key]*account{}, usernames: map[Key]*account{}, posts: map[Key]*Post{},
		replies: map[Key][]*Post{}, containers: map[Key]*Container{},
	}
	if opts.Dir == "" {
		return s, nil
	}
	if err := s.openDir(opts.Dir, opts.Logger); err != nil {
		return nil, fmt.Errorf("open the sandbox's state in %s: %w", opts.Dir, errors.Join(err, s.lock.release()))
	}
	return s, nil
}

func (s *Store) openDir(dir string, log *slog.Logger) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var err error
	if s.lock, err = lockDir(dir); err != nil {
		return err
	}
	found, err := s.readBack(filepath.Join(dir, journalName))
	if err != nil {
		return err
	}
	if found.torn > 0 {
		log.Warn("dropped a torn last line of the journal, left by a process that was killed while writing it", "bytes", found.torn)
	}
	if records := s.snapshot(s.clock.Now()); found.size > compactAbove && found.lines > 2*len(records) {
		if found.size, err = writeSnapshot(dir, records); err != nil {
			return fmt.Errorf("compact the journal: %w", err)
		}
		log.Info("compacted the journal", "linesBefore", found.lines, "lines", len(records)+1)
	}
	if s.journal, err = openJournal(dir, found.size); err != nil {
		return err
	}
	log.Info("sandbox state read", "dir", dir, "accounts", len(s.accounts), "posts", len(s.posts))
	return nil
}

func (s *Store) readBack(path string) (replayed, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return replayed{}, nil
	}
	if err != nil {
		return replayed{}, err
	}
	found, err := replay(file, s.apply)
	return found, errors.Join(err, file.Close())
}

// Close ends the store: later changes fail, reads go on working.
func (s *Store) Close() error { return errors.Join(s.journal.close(), s.lock.release()) }

// Reset removes all posts and containers and puts every account's settings back to their defaults. Accounts and tokens stay, so that
// what is connected stays connected.
func (s *Store) Reset() error {
	s.change.Lock()
	defer s.change.Unlock()
	return s.commit(record{Op: opReset})
}

func (s *Store) applyReset() {
	for _, a := range s.allAccounts() {
		a.mu.Lock()
		a.info.Settings = Settings{}
		a.forgetPosts()
		a.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.posts)
	clear(s.replies)
	clear(s.containers)
}

// lookup finds an account, or nil.
func (s *Store) lookup(key Key) *account {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.accounts[key]
}

func usernameKey(platform, username string) Key {
	return Key{Platform: platform, ID: strings.ToLower(username)}
}
