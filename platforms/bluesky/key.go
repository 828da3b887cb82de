// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"encoding/binary"
	"time"

	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/platforms"
)

// keyAlphabet contains the 32 digits of record keys, in the order of their values (AT Protocol, "Timestamp
// Identifiers").
const keyAlphabet = "234567abcdefghijklmnopqrstuvwxyz"

const (
	keyLength = 13
	keyBits   = 5
	// clockBits is the size of a TID's clock identifier, which follows the microseconds.
	clockBits = 10
	// keySpread is the period over which posts' keys are spread.
	keySpread = time.Hour
)

// recordKey returns the TID of a job's record. Its time is within the hour before the one in which the post was
// created, so it is never in the future, and posts of different hours are in order. The rest is derived from the key:
// two posts of one account within an hour have the same TID with a probability of 1 in 3.7·10¹².
func recordKey(k platforms.Key) string {
	spread := binary.BigEndian.Uint64(k.Sum[:8]) % uint64(keySpread.Microseconds()) //nolint:gosec // it is positive
	at := uint64(max(k.CreatedAt.Truncate(keySpread).Add(-keySpread).UnixMicro(), 0)) + spread
	tid := at<<clockBits | binary.BigEndian.Uint64(k.Sum[8:])&(1<<clockBits-1)
	var out [keyLength]byte
	for i := keyLength - 1; i >= 0; i-- {
		out[i] = keyAlphabet[tid&(1<<keyBits-1)]
		tid >>= keyBits
	}
	return string(out[:])
}

// isKey reports whether a string has the form of a TID.
func isKey(key string) bool { return text.Consists(key, keyLength, keyLength, keyAlphabet) }
