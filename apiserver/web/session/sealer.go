// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

const (
	// keyBytes makes AES-256 of the cipher.
	keyBytes = 32
	// idBytes is the length of a key's id, which stands before what the key has sealed.
	idBytes = 8
	// endBytes is the length of the end, in milliseconds since 1970, which stands before the
	// sealed value.
	endBytes = 8
	// maxText is how long a sealed text may be: longer ones are refused unread. A person may
	// manage a thousand Pages, whose tokens wait in a form until one is chosen: about
	// 500 bytes each.
	maxText = 1 << 20
	// settle is how long a new key only opens texts, so that every replica knows it before the
	// first one seals with it.
	settle = time.Minute
)

// Errors of Sealer.Open.
var (
	// ErrNotSealed says that a text was not sealed for this purpose, by any key that there is.
	ErrNotSealed = errors.New("not sealed by this installation for this purpose, or by a key that it no longer has")
	// ErrExpired says that a text was sealed for this purpose, and its time is over.
	ErrExpired = errors.New("its time is over")
)

// Key is one of the keys that texts are sealed with.
type Key struct {
	// ID tells it from the others.
	ID string `json:"id"`
	// Secret are the 256 bits.
	Secret []byte `json:"secret"`
	// CreatedAt is when it was made.
	CreatedAt time.Time `json:"createdAt"`
}

// NewKey makes a key.
func NewKey(now time.Time) Key {
	secret := make([]byte, keyBytes)
	_, _ = rand.Read(secret) // it never fails
	return Key{ID: rand.Text()[:idBytes], Secret: secret, CreatedAt: now.UTC()}
}

func (k Key) valid() bool { return len(k.ID) == idBytes && len(k.Secret) == keyBytes }

// Sealer seals values into texts that a browser keeps and can neither read nor change. All
// replicas open what one of them has sealed. It is safe for concurrent use.
type Sealer struct {
	clock clock.PassiveClock
	keys  atomic.Pointer[[]opener]
}

// opener is a key that is ready for use.
type opener struct {
	Key
	cipher cipher.AEAD
}

// NewSealer returns a Sealer with keys of its own, for tests. A Manager has a Sealer that shares
// its keys with other replicas.
func NewSealer(clk clock.PassiveClock, keys ...Key) *Sealer {
	s := &Sealer{clock: clk}
	s.setKeys(keys)
	return s
}

// setKeys replaces the keys.
func (s *Sealer) setKeys(keys []Key) {
	openers := make([]opener, 0, len(keys))
	for _, key := range keys {
		if !key.valid() {
			continue
		}
		block, err := aes.NewCipher(key.Secret)
		if err != nil {
			continue
		}
		if gcm, err := cipher.NewGCMWithRandomNonce(block); err == nil {
			openers = append(openers, opener{key, gcm})
		}
	}
	s.keys.Store(&openers)
}

// ready reports whether there is a key.
func (s *Sealer) ready() bool { return len(*s.keys.Load()) > 0 }

// sealing is the newest key that all replicas know by now, or else the oldest one.
func (s *Sealer) sealing() *opener {
	known := s.clock.Now().Add(-settle)
	var chosen *opener
	openers := *s.keys.Load()
	for i := range openers {
		key := &openers[i]
		switch {
		case chosen == nil:
			chosen = key
		case key.CreatedAt.After(known):
			if key.CreatedAt.Before(chosen.CreatedAt) {
				chosen = key
			}
		case chosen.CreatedAt.After(known) || key.CreatedAt.After(chosen.CreatedAt):
			chosen = key
		}
	}
	return chosen
}

// Seal returns a text that Open takes for the same purpose, for as long as life, and that
// says nothing to others. It has letters, digits, - and _ only. The value must be one that
// encoding/json takes. Without a key, which Manager.Ready tells, the text is "", which
// nothing opens.
func (s *Sealer) Seal(purpose string, v any, life time.Duration) string {
	value, err := json.Marshal(v)
	key := s.sealing()
	if err != nil || key == nil {
		return ""
	}
	plain := binary.BigEndian.AppendUint64(make([]byte, 0, endBytes+len(value)), uint64(s.clock.Now().Add(life).UnixMilli()))
	plain = append(plain, value...)
	sealed := key.cipher.Seal([]byte(key.ID), nil, plain, bound(purpose, key.ID)) //nolint:gosec // G407: the cipher makes the nonce
	return base64.RawURLEncoding.EncodeToString(sealed)
}

// Open copies a sealed value into v. The error is ErrNotSealed or ErrExpired; v is left as
// it was then.
func (s *Sealer) Open(purpose, text string, v any) error {
	// The decoder passes over line breaks; one text has one spelling.
	if len(text) > maxText || strings.ContainsAny(text, "\r\n") {
		return ErrNotSealed
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(sealed) <= idBytes {
		return ErrNotSealed
	}
	id := string(sealed[:idBytes])
	for _, key := range *s.keys.Load() {
		if key.ID != id {
			continue
		}
		plain, err := key.cipher.Open(nil, nil, sealed[idBytes:], bound(purpose, id))
		if err != nil || len(plain) < endBytes {
			continue
		}
		end := time.UnixMilli(int64(binary.BigEndian.Uint64(plain))) //nolint:gosec // Seal wrote it
		if !s.clock.Now().Before(end) {
			return ErrExpired
		}
		if err := json.Unmarshal(plain[endBytes:], v); err != nil {
			return ErrNotSealed
		}
		return nil
	}
	return ErrNotSealed
}

// bound binds a text to its purpose and its key: a text for one purpose opens for no other.
func bound(purpose, id string) []byte { return []byte("herald/1\x00" + id + "\x00" + purpose) }
