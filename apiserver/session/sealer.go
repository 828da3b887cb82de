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
	// keyBytes is the key length of AES-256.
	keyBytes = 32
	// idBytes is the length of a key's id, which precedes the strings that the key has sealed.
	idBytes = 8
	// endBytes is the length of the expiry time, in milliseconds since 1970, which precedes the sealed value.
	endBytes = 8
	// maxText is the maximum length of a sealed text; longer ones are rejected without being decoded. A user may
	// manage a thousand Pages, whose tokens are in a form until one is chosen: about 500 bytes each.
	maxText = 1 << 20
	// settle is how long after its creation a new key is first used for sealing. Until then it only opens strings, so
	// that every replica has it before any replica seals with it.
	settle = time.Minute
)

// Errors of Sealer.Open.
var (
	// ErrNotSealed is returned for a string that no current key has sealed for this purpose.
	ErrNotSealed = errors.New("not sealed by this installation for this purpose, or by a key that it no longer has")
	// ErrExpired is returned for a string that was sealed for this purpose and has expired.
	ErrExpired = errors.New("it has expired")
)

// SealingKey encrypts sealed texts.
type SealingKey struct {
	ID string `json:"id"`
	// Secret is the key's 256 bits.
	Secret    []byte    `json:"secret"`
	CreatedAt time.Time `json:"createdAt"`
}

// NewSealingKey returns a new random key.
func NewSealingKey(now time.Time) SealingKey {
	secret := make([]byte, keyBytes)
	_, _ = rand.Read(secret) // crypto/rand.Read never returns an error
	return SealingKey{ID: rand.Text()[:idBytes], Secret: secret, CreatedAt: now.UTC()}
}

func (k SealingKey) valid() bool { return len(k.ID) == idBytes && len(k.Secret) == keyBytes }

// Sealer seals values into strings that a browser stores but can neither read nor change. All replicas can open a
// sealed text. It is safe for concurrent use.
type Sealer struct {
	clock clock.PassiveClock
	keys  atomic.Pointer[[]opener]
}

type opener struct {
	SealingKey
	cipher cipher.AEAD
}

// NewSealer returns a Sealer with its own keys, for tests. A Manager's Sealer shares its keys with other replicas.
func NewSealer(clk clock.PassiveClock, keys ...SealingKey) *Sealer {
	s := &Sealer{clock: clk}
	s.setKeys(keys)
	return s
}

func (s *Sealer) setKeys(keys []SealingKey) {
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

func (s *Sealer) ready() bool { return len(*s.keys.Load()) > 0 }

// sealing returns the newest key that all replicas have by now or, if there is none, the oldest key.
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

// Seal returns a sealed text that Open accepts for the same purpose during its lifetime, and that others cannot read.
// It contains only letters, digits, - and _. encoding/json must be able to marshal the value. Without a key, which
// Manager.Ready reports, the text is "", which Open rejects.
func (s *Sealer) Seal(purpose string, v any, life time.Duration) string {
	value, err := json.Marshal(v)
	key := s.sealing()
	if err != nil || key == nil {
		return ""
	}
	plain := binary.BigEndian.AppendUint64(make([]byte, 0, endBytes+len(value)), uint64(s.clock.Now().Add(life).UnixMilli()))
	plain = append(plain, value...)
	sealed := key.cipher.Seal([]byte(key.ID), nil, plain, bound(purpose, key.ID)) //nolint:gosec // G407: the cipher generates the nonce
	return base64.RawURLEncoding.EncodeToString(sealed)
}

// Open unmarshals a sealed value into v. The error is ErrNotSealed or ErrExpired, and v is then unchanged.
func (s *Sealer) Open(purpose, text string, v any) error {
	// The decoder ignores line breaks; a string must have exactly one encoding.
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

// bound binds a string to its purpose and its key, so it cannot be opened for another purpose.
func bound(purpose, id string) []byte { return []byte("herald/1\x00" + id + "\x00" + purpose) }
