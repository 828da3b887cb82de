// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package state stores the simulated platforms' accounts, tokens, containers and posts.
//
// All state is in memory, guarded by one lock. With a directory, every change is also written to a bbolt database before it is
// acknowledged, so a process killed at any time restarts with exactly the acknowledged state. Writes are not synced to disk: they survive
// process death but not a power failure, a good trade-off for a simulator in benchmarks.
package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
	"k8s.io/utils/clock"
)

const (
	// fileName is the name of the database in the folder.
	fileName = "state.db"
	// lockTimeout is the time to wait for another sandbox to release the folder.
	lockTimeout = 100 * time.Millisecond
)

// The buckets of the database. Values are JSON.
const (
	bucketAccounts   = "accounts"   // by platform and id
	bucketGrants     = "grants"     // in order of creation
	bucketContainers = "containers" // by platform and id
	bucketPosts      = "posts"      // in order of creation
)

// Options configure a Store.
type Options struct {
	// Clock is the time source for creation and expiry times.
	Clock clock.PassiveClock
	// Dir is the folder of the database, created if missing; empty keeps the state in memory only.
	Dir string
	// Logger receives startup messages.
	Logger *slog.Logger
}

// Store holds the state of all simulated platforms. Its methods are safe for concurrent use; the functions passed to
// them must not call the store.
type Store struct {
	clock clock.PassiveClock
	db    *bbolt.DB // nil without a folder

	// mu guards the fields below and the values behind their pointers. A change is saved before it is applied.
	mu         sync.RWMutex
	last       Stamp // the newest stamp issued
	accounts   map[Key]*account
	usernames  map[Key]*account // Key.ID is the username in lower case
	posts      map[Key]*Post    // Key.ID is the post's id
	replies    map[Key][]*Post  // Key.ID is the id of the chain's first post
	containers map[Key]*Container
	tokens     *tokenBook
}

// Open returns a store with the contents of the database in opts.Dir. The database is locked against other processes
// until Close.
func Open(opts Options) (*Store, error) {
	s := &Store{
		clock: opts.Clock, accounts: map[Key]*account{}, usernames: map[Key]*account{}, posts: map[Key]*Post{},
		replies: map[Key][]*Post{}, containers: map[Key]*Container{}, tokens: newTokenBook(),
	}
	if opts.Dir == "" {
		return s, nil
	}
	if err := s.openDir(opts.Dir); err != nil {
		return nil, fmt.Errorf("open the sandbox's state in %s: %w", opts.Dir, errors.Join(err, s.Close()))
	}
	opts.Logger.Info("sandbox state read", "dir", opts.Dir, "accounts", len(s.accounts), "posts", len(s.posts))
	return s, nil
}

func (s *Store) openDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var err error
	s.db, err = bbolt.Open(filepath.Join(dir, fileName), 0o600, &bbolt.Options{Timeout: lockTimeout, NoSync: true, NoFreelistSync: true})
	if errors.Is(err, bbolterrors.ErrTimeout) {
		return errors.New("another sandbox is using this folder; stop it, or give this one another --state-dir")
	}
	if err != nil {
		return err
	}
	err = s.db.Update(func(tx *bbolt.Tx) error {
		for _, name := range []string{bucketAccounts, bucketGrants, bucketContainers, bucketPosts} {
			if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.db.View(s.load)
}

// load reads the database in an order that satisfies references between kinds.
func (s *Store) load(tx *bbolt.Tx) error {
	return errors.Join(
		each(tx, bucketAccounts, s.addAccount),
		each(tx, bucketGrants, s.tokens.add),
		each(tx, bucketContainers, s.addContainer),
		each(tx, bucketPosts, func(post Post) { s.addPost(s.accounts[Key{Platform: post.Platform, ID: post.AccountID}], post) }),
	)
}

func each[T any](tx *bbolt.Tx, bucket string, add func(T)) error {
	return tx.Bucket([]byte(bucket)).ForEach(func(key, content []byte) error {
		var value T
		if err := json.Unmarshal(content, &value); err != nil {
			return fmt.Errorf("%s, entry %q: %w", bucket, key, err)
		}
		add(value)
		return nil
	})
}

// entry is one value of the database. A nil value deletes the key.
type entry struct {
	bucket, key string
	value       any
}

// save writes entries to the database atomically.
func (s *Store) save(entries ...entry) error {
	if s.db == nil {
		return nil
	}
	return s.db.Update(func(tx *bbolt.Tx) error {
		for _, e := range entries {
			bucket := tx.Bucket([]byte(e.bucket))
			if e.value == nil {
				if err := bucket.Delete([]byte(e.key)); err != nil {
					return err
				}
				continue
			}
			content, err := json.Marshal(e.value)
			if err != nil {
				return err
			}
			if err := bucket.Put([]byte(e.key), content); err != nil {
				return err
			}
		}
		return nil
	})
}

// Close closes the database. With a folder, later changes fail; reads still work.
func (s *Store) Close() error {
	if s.db == nil {
		return nil
	}
	return s.db.Close()
}

// Reset removes all posts and containers and restores every account's default settings. Accounts and tokens are kept, so clients remain
// connected.
func (s *Store) Reset() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var entries []entry
	for _, post := range s.posts {
		entries = append(entries, entry{bucketPosts, post.Stamp.key(), nil})
	}
	for key := range s.containers {
		entries = append(entries, entry{bucketContainers, key.String(), nil})
	}
	for key, a := range s.accounts {
		info := a.info
		info.Settings = Settings{}
		entries = append(entries, entry{bucketAccounts, key.String(), info})
	}
	if err := s.save(entries...); err != nil {
		return err
	}
	for _, a := range s.accounts {
		a.info.Settings = Settings{}
		a.posts, a.deleted, a.latest = nil, 0, map[string]*Post{}
	}
	clear(s.posts)
	clear(s.replies)
	clear(s.containers)
	return nil
}

func usernameKey(platform, username string) Key {
	return Key{Platform: platform, ID: strings.ToLower(username)}
}
