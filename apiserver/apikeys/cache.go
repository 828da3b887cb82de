// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apikeys finds the API key that a token belongs to, from a cache, and
// records when keys are used.
package apikeys

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
)

// digestIndex is the name of the index by the SHA-256 of a key's token.
const digestIndex = "token-sha256"

// Why a token is not good. The messages are meant for the holder of the token.
var (
	ErrUnknown = errors.New("unknown API key")
	ErrRevoked = errors.New("this API key is revoked; create a new one")
	ErrExpired = errors.New("this API key has expired; create a new one")
)

// Indexers are what the informer that feeds a Cache needs.
func Indexers() cache.Indexers {
	return cache.Indexers{digestIndex: func(obj any) ([]string, error) {
		key, ok := obj.(*v1alpha1.APIKey)
		if !ok {
			return nil, fmt.Errorf("%T is not an APIKey", obj)
		}
		return digests(key), nil
	}}
}

// digests are the hashes of the tokens that a key answers to: the one that was
// set when it was created works at once, the one that the manager made, as soon
// as it stands in the status.
func digests(key *v1alpha1.APIKey) []string {
	var out []string
	if key.Spec.TokenSHA256 != "" {
		out = append(out, key.Spec.TokenSHA256)
	}
	if key.Status.TokenSHA256 != "" && key.Status.TokenSHA256 != key.Spec.TokenSHA256 {
		out = append(out, key.Status.TokenSHA256)
	}
	return out
}

// Cache answers from an informer's memory. Its methods may be called from many
// goroutines at once.
type Cache struct {
	indexer cache.Indexer
	clock   clock.PassiveClock
}

// NewCache returns a cache over an indexer that has Indexers.
func NewCache(indexer cache.Indexer, clock clock.PassiveClock) *Cache {
	return &Cache{indexer: indexer, clock: clock}
}

// Authenticate returns the key that a token belongs to. The key is shared: the
// caller does not change it. The error is ErrUnknown, ErrRevoked or ErrExpired.
//
// Only the token's hash is looked up and compared, so that the time it takes
// tells nothing about any token. If two keys carry the same hash, the older one
// counts, even when it is revoked: one cannot take over another team's token by
// copying its hash.
func (c *Cache) Authenticate(token string) (*v1alpha1.APIKey, error) {
	sum := sha256.Sum256([]byte(token))
	digest := hex.EncodeToString(sum[:])
	found, err := c.indexer.ByIndex(digestIndex, digest)
	if err != nil {
		return nil, fmt.Errorf("look up an API key: %w", err)
	}
	var key *v1alpha1.APIKey
	for _, obj := range found {
		candidate, ok := obj.(*v1alpha1.APIKey)
		if ok && carries(candidate, digest) && (key == nil || older(candidate, key)) {
			key = candidate
		}
	}
	switch {
	case key == nil:
		return nil, ErrUnknown
	case key.Spec.Revoked || key.DeletionTimestamp != nil:
		return nil, ErrRevoked
	case key.Spec.ExpiresAt != nil && !c.clock.Now().Before(key.Spec.ExpiresAt.Time):
		return nil, ErrExpired
	default:
		return key, nil
	}
}

func carries(key *v1alpha1.APIKey, digest string) bool {
	for _, d := range digests(key) {
		if subtle.ConstantTimeCompare([]byte(d), []byte(digest)) == 1 {
			return true
		}
	}
	return false
}

func older(a, b *v1alpha1.APIKey) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.UID < b.UID
}
