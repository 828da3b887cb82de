// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"crypto/subtle"
	"errors"
	"fmt"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/apitoken"
)

// idIndex is the name of the index by the id in a key's tokens.
const idIndex = "token-id"

// Errors for invalid tokens. The messages are for the token's holder.
var (
	ErrKeyMalformed = errors.New("this is not a Herald API key, or part of it is missing or mistyped; copy the whole key again")
	ErrKeyUnknown   = errors.New("unknown API key")
	ErrKeyRevoked   = errors.New("this API key is revoked; create a new one")
	ErrKeyExpired   = errors.New("this API key has expired; create a new one")
)

// KeyIndexers returns the indexers for a KeyCache's informer. They skip keys in other namespaces.
func KeyIndexers(served configv1alpha1.Namespaces) cache.Indexers {
	return cache.Indexers{idIndex: func(obj any) ([]string, error) {
		key, ok := obj.(*v1alpha1.APIKey)
		if !ok {
			return nil, fmt.Errorf("%T is not an APIKey", obj)
		}
		if !served.Include(key.Namespace) {
			return nil, nil
		}
		return []string{apitoken.ID(key.Namespace, key.Name)}, nil
	}}
}

// KeyIndex is the part of cache.Indexer that a KeyCache needs.
type KeyIndex interface {
	ByIndex(index, value string) ([]any, error)
}

// KeyCache reads keys from an informer's cache. It is safe for concurrent use.
type KeyCache struct {
	indexer KeyIndex
	clock   clock.PassiveClock
}

// NewKeyCache returns a cache over an indexer with KeyIndexers.
func NewKeyCache(indexer KeyIndex, clock clock.PassiveClock) *KeyCache {
	return &KeyCache{indexer: indexer, clock: clock}
}

// Authenticate returns the key that a token belongs to. The key is shared and must not be modified. The error is
// ErrKeyMalformed, ErrKeyUnknown, ErrKeyRevoked or ErrKeyExpired.
//
// The lookup uses the id, which is not secret. The hash of the whole token is compared in constant time, so the
// duration reveals nothing about any token.
func (c *KeyCache) Authenticate(token string) (*v1alpha1.APIKey, error) {
	id, ok := apitoken.Parse(token)
	if !ok {
		return nil, ErrKeyMalformed
	}
	found, err := c.indexer.ByIndex(idIndex, id)
	if err != nil {
		return nil, fmt.Errorf("look up an API key: %w", err)
	}
	refusal := ErrKeyUnknown
	for _, obj := range found { // two keys may have equal ids, but not equal hashes
		key, ok := obj.(*v1alpha1.APIKey)
		if !ok {
			continue
		}
		hash := apitoken.Hash(key.Namespace, key.Name, token)
		for _, wanted := range key.WantedTokens() {
			if subtle.ConstantTimeCompare([]byte(hashOf(key, wanted)), []byte(hash)) == 0 {
				continue
			}
			if refusal = c.refuse(key, wanted); refusal == nil {
				return key, nil
			}
		}
	}
	return nil, refusal
}

func (c *KeyCache) refuse(key *v1alpha1.APIKey, token v1alpha1.APIKeyToken) error {
	end := key.EndOf(token)
	switch {
	case key.Spec.Revoked || key.DeletionTimestamp != nil:
		return ErrKeyRevoked
	case end != nil && !c.clock.Now().Before(end.Time):
		return ErrKeyExpired
	default:
		return nil
	}
}

// hashOf returns the spec's hash or the hash of the manager's token; "" before the manager has created it.
func hashOf(key *v1alpha1.APIKey, token v1alpha1.APIKeyToken) string {
	if token.SHA256 != "" {
		return token.SHA256
	}
	if made := key.Status.Token(token.Name); made != nil {
		return made.SHA256
	}
	return ""
}
