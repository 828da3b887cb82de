// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package archive stores data in the bucket that outlives a team's objects: one record per post, under the post's name.
// The package does not interpret records. All keys have a prefix that no Media uses.
//
// A team is identified by namespace and name, not by UID: a team restored from a backup finds its records. A different
// team in a namespace with the same name does not.
package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/herald-social/herald/internal/media/store"
)

// Errors that callers check for.
var (
	// ErrNotFound means that no record has this name.
	ErrNotFound = errors.New("the archive has no such record")
	// ErrNone means that this installation has no bucket, and so no archive.
	ErrNone = errors.New("this installation has no bucket, and so keeps no records")
)

const (
	prefix    = store.Reserved + "archive/"
	folder    = "/posts/"
	extension = ".json"
	mimeType  = "application/json"
)

// MaxRecord is the largest record that can be read, in bytes. A post takes at most 1.5 MiB in the cluster; a record
// does not escape its text, but may add the outcomes of earlier posts' targets.
const MaxRecord = 4 << 20

const within = 15 * time.Second

// tries limits how often Put calls join when other writers keep changing the record.
const tries = 5

var errContended = errors.New("other processes keep changing it")

// IsRecordError reports whether err concerns a single record, so that others can still be read and written.
func IsRecordError(err error) bool {
	return errors.Is(err, ErrNotFound) || errors.Is(err, errContended) || store.IsFileError(err)
}

// Team identifies the team that owns the records.
type Team struct {
	Namespace string
	Name      string
}

// Prefix is the common prefix of a team's keys.
func (t Team) Prefix() string { return prefix + t.Namespace + "/" + t.Name + "/" }

func (t Team) records() string { return prefix + t.Namespace + "/" + t.Name + folder }

func (t Team) key(post string) string { return t.records() + fileOf(post) }

// flatKey returns the key that earlier versions used for a post with a long name, in stores that accept it.
func (t Team) flatKey(post string) string { return t.records() + post + extension }

// Archive is the archive of one installation. It is safe for concurrent use.
type Archive struct {
	store  *store.Store
	writes writes
}

// New returns the archive in bucket. With store.None, all its operations return ErrNone.
func New(bucket *store.Store) *Archive { return &Archive{store: bucket} }

// Absent reports whether there is no archive.
func (a *Archive) Absent() bool { return a.store.Absent() }

// Get returns a post's record, or ErrNotFound.
func (a *Archive) Get(ctx context.Context, team Team, post string) ([]byte, error) {
	data, _, err := a.get(ctx, team, post)
	return data, err
}

// get returns a record and its etag, which is empty if the record is still under the key that earlier versions used.
func (a *Archive) get(ctx context.Context, team Team, post string) (data []byte, etag string, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	data, etag, err = a.store.ReadDocument(ctx, team.key(post), "", MaxRecord)
	if errors.Is(err, store.ErrNotFound) && isLong(post) {
		data, _, err = a.store.ReadDocument(ctx, team.flatKey(post), "", MaxRecord)
		if store.IsFileError(err) && !errors.Is(err, store.ErrTooLarge) {
			err = store.ErrNotFound // A store that rejects such a key has nothing under it.
		}
	}
	if err != nil {
		return nil, "", explain(fmt.Sprintf("cannot read the record of post %s/%s", team.Namespace, post), err)
	}
	return data, etag, nil
}

// Put stores the record of a post. join makes it from the existing record, or from nil if there is none. Put calls join
// again if another writer changed the record in the meantime. It does not write an unchanged record.
func (a *Archive) Put(ctx context.Context, team Team, post string, join func(before []byte) ([]byte, error)) error {
	var before []byte
	var etag string
	if isLong(post) {
		var err error
		if before, etag, err = a.get(ctx, team, post); err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	for range tries {
		data, err := join(before)
		if err != nil {
			return err
		}
		if before != nil && bytes.Equal(data, before) {
			return nil
		}
		if err = a.write(ctx, team.key(post), data, etag); err == nil {
			return nil
		}
		if !errors.Is(err, store.ErrChanged) {
			return explain(fmt.Sprintf("cannot store the record of post %s/%s", team.Namespace, post), err)
		}
		if before, etag, err = a.get(ctx, team, post); errors.Is(err, ErrNotFound) {
			before, etag = nil, ""
		} else if err != nil {
			return err
		}
	}
	return fmt.Errorf("cannot store the record of post %s/%s: %w", team.Namespace, post, errContended)
}

func (a *Archive) write(ctx context.Context, key string, data []byte, etag string) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	_, err := a.store.PutDocument(ctx, key, mimeType, data, etag)
	return err //nolint:wrapcheck // Put wraps it
}

// Entry describes one record in a listing.
type Entry struct {
	// Post is the post's name.
	Post string
	// At is when the record was written, according to the store's clock.
	At time.Time
}

// Entries iterates over the team's posts that have a record, in key order. It stops at the first error.
func (a *Archive) Entries(ctx context.Context, team Team) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if a.Absent() {
			yield(Entry{}, ErrNone)
			return
		}
		under := team.records()
		for object, err := range a.store.List(ctx, under) {
			if err != nil {
				yield(Entry{}, explain("cannot list the records of team "+team.Name, err))
				return
			}
			name, ok := nameOf(strings.TrimPrefix(object.Key, under))
			if ok && !yield(Entry{Post: name, At: object.ModifiedAt}, nil) {
				return
			}
		}
	}
}

// Delete removes the record of a post. It is not an error if there is none.
func (a *Archive) Delete(ctx context.Context, team Team, post string) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err := a.store.Delete(ctx, team.key(post))
	if err == nil && isLong(post) {
		if err = a.store.Delete(ctx, team.flatKey(post)); store.IsFileError(err) {
			return nil
		}
	}
	if err != nil {
		return explain(fmt.Sprintf("cannot remove the record of post %s/%s", team.Namespace, post), err)
	}
	return nil
}

func explain(doing string, err error) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return ErrNotFound
	case errors.Is(err, store.ErrNone):
		return ErrNone
	default:
		return fmt.Errorf("%s: %w", doing, err)
	}
}
