// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apitoken makes, parses and hashes the tokens of API keys.
//
// A token is hrld_<id>_<secret><checksum>, all letters and digits:
//
//   - The id identifies the APIKey. It is derived from the APIKey's namespace and name, so it need not be stored and no
//     other key can claim it. Its first character is the length of the installation's cell name, which follows: 0,
//     since there is one cell. With several cells, a router can read the cell from a token without a lookup, and older
//     tokens remain valid.
//   - The secret is 256 random bits.
//   - The checksum is the CRC-32 of all preceding characters. It lets secret scanners and the apiserver tell tokens
//     from similar strings.
//
// Only the token's Hash is stored.
package apitoken

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"math/big"
	"strings"
)

const (
	// prefix identifies a token to users and secret scanners.
	prefix = "hrld_"
	// noCell is the first character of every id in an installation with one cell.
	noCell = "0"

	// The size of each part in bytes and in base62 characters: the fewest characters that hold the bytes.
	keyBytes, keyLength           = 8, 11
	secretBytes, secretLength     = 32, 43
	checksumBytes, checksumLength = crc32.Size, 6

	// shown is the number of the secret's characters that Shown includes, to distinguish a key's tokens; 232 bits remain
	// secret.
	shown = 4
)

// New returns an unguessable token for the named APIKey.
func New(namespace, name string) string {
	var secret [secretBytes]byte
	rand.Read(secret[:]) // it never fails: it crashes the program instead
	token := prefix + ID(namespace, name) + "_" + base62(secret[:], secretLength)
	return token + checksum(token)
}

// ID returns the id that all tokens of the named APIKey share.
func ID(namespace, name string) string {
	sum := sha256.Sum256([]byte(namespace + "/" + name))
	return noCell + base62(sum[:keyBytes], keyLength)
}

// Parse returns the id in token, or false if token is malformed or mistyped.
func Parse(token string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(token, prefix)
	if !ok {
		return "", false
	}
	id, secret, ok := strings.Cut(rest, "_")
	if !ok || id == "" || len(secret) != secretLength+checksumLength || !isBase62(id) || !isBase62(secret) {
		return "", false
	}
	body := len(token) - checksumLength
	return id, token[body:] == checksum(token[:body])
}

// Hash returns the stored form of a token, in lower-case hex. It is valid only for the APIKey with that namespace and
// name: copied to another one, it matches no token. Tokens are long and random, so a plain hash cannot be reversed.
func Hash(namespace, name, token string) string {
	sum := sha256.Sum256([]byte(namespace + "/" + name + "/" + token))
	return hex.EncodeToString(sum[:])
}

// Shown returns the start of a valid token, which identifies it to users.
func Shown(token string) string {
	return token[:len(token)-secretLength-checksumLength+shown]
}

func checksum(text string) string {
	var sum [checksumBytes]byte
	binary.BigEndian.PutUint32(sum[:], crc32.ChecksumIEEE([]byte(text)))
	return base62(sum[:], checksumLength)
}

// base62 encodes number in digits and letters, left-padded with zeros to length.
func base62(number []byte, length int) string {
	text := new(big.Int).SetBytes(number).Text(62)
	return strings.Repeat("0", length-len(text)) + text
}

func isBase62(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
}
