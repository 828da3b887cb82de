// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/herald-social/herald/sandbox/state"
)

// The prefixes of the ids (CIDs) of a record and of a file: the version, the encoding of what is hashed, and SHA-256
// with its length (AT Protocol, "Data Model"). In base 32, ids of records start with bafyrei, and those of files with
// bafkrei.
var (
	cidOfRecord = []byte{1, 0x71, 0x12, sha256.Size}
	cidOfFile   = []byte{1, 0x55, 0x12, sha256.Size}
)

var base32Lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

func cid(prefix, hash []byte) string {
	return "b" + base32Lower.EncodeToString(slices.Concat(prefix, hash))
}

// recordCID returns the id of a record.
func recordCID(record []byte) string {
	hash := sha256.Sum256(record)
	return cid(cidOfRecord, hash[:])
}

// fileCID returns the id of the file with a hash in hexadecimal.
func fileCID(hash string) string {
	digest, _ := hex.DecodeString(hash) // the blob store wrote it
	return cid(cidOfFile, digest)
}

// keyAlphabet contains the digits of a record's key, in the order of their values (AT Protocol, "Timestamp
// Identifiers").
const keyAlphabet = "234567abcdefghijklmnopqrstuvwxyz"

const (
	keyLength = 13
	digitBits = 5
	// serialBits is the size of the number that follows the microseconds in a key.
	serialBits = 10
)

// newKey returns the key for a stamp.
func newKey(at state.Stamp) string {
	n := uint64(at.Milli*1000)<<serialBits + uint64(at.Serial) //nolint:gosec // both are positive
	var out [keyLength]byte
	for i := keyLength - 1; i >= 0; i-- {
		out[i] = keyAlphabet[n&(1<<digitBits-1)]
		n >>= digitBits
	}
	return string(out[:])
}

// isKey reports whether a string has the form of a record's key in the collection of posts. The first bit is zero.
func isKey(text string) bool {
	return len(text) == keyLength && strings.Trim(text, keyAlphabet) == "" && text[0] < 'k'
}
