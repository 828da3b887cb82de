// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apitoken makes, reads and hashes the tokens of API keys.
//
// A token is hrld_<id>_<secret><checksum>, all letters and digits:
//
//   - The id says which APIKey the token belongs to. It is made of the namespace and
//     the name of the APIKey, so nothing has to be stored for it and no other key can
//     claim it. Its first character is the number of characters that name a cell of
//     the installation and follow it: 0, since there is one cell. Should there be
//     several, what stands before them reads the cell out of a token without asking
//     anyone, and older tokens stay good.
//   - The secret is 256 random bits.
//   - The checksum is the CRC-32 of all that stands before it. It lets scanners for
//     leaked secrets, and the apiserver, tell a token from what looks like one.
//
// What is stored of a token is its Hash.
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
	// prefix lets people and secret scanners recognise a token.
	prefix = "hrld_"
	// noCell begins the ids of an installation that is one cell.
	noCell = "0"

	// How many bytes and base62 characters each part has: the characters are
	// the fewest that hold the bytes.
	keyBytes, keyLength           = 8, 11
	secretBytes, secretLength     = 32, 43
	checksumBytes, checksumLength = crc32.Size, 6

	// shown is how many characters of the secret Shown leaves, to tell two
	// tokens of one key apart by; 232 bits stay hidden.
	shown = 4
)

// New returns a token that cannot be guessed, for the APIKey of that name.
func New(namespace, name string) string {
	var secret [secretBytes]byte
	rand.Read(secret[:]) // it never fails: it ends the program
	token := prefix + ID(namespace, name) + "_" + base62(secret[:], secretLength)
	return token + checksum(token)
}

// ID returns the id in all tokens of the APIKey of that name.
func ID(namespace, name string) string {
	sum := sha256.Sum256([]byte(namespace + "/" + name))
	return noCell + base62(sum[:keyBytes], keyLength)
}

// Parse returns the id of a token; false if the text is none, or was mistyped.
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

// Hash returns what is stored of a token, in lower-case hex. It is good for the APIKey
// of that name in that namespace only: copied to another one, it matches no token. The
// token is long and random, so that a plain hash cannot be reversed.
func Hash(namespace, name, token string) string {
	sum := sha256.Sum256([]byte(namespace + "/" + name + "/" + token))
	return hex.EncodeToString(sum[:])
}

// Shown returns the beginning of a token that Parse takes, to recognise it by.
func Shown(token string) string {
	return token[:len(token)-secretLength-checksumLength+shown]
}

func checksum(text string) string {
	var sum [checksumBytes]byte
	binary.BigEndian.PutUint32(sum[:], crc32.ChecksumIEEE([]byte(text)))
	return base62(sum[:], checksumLength)
}

// base62 writes a number in digits and letters, with zeros in front of it up to the length.
func base62(number []byte, length int) string {
	text := new(big.Int).SetBytes(number).Text(62)
	return strings.Repeat("0", length-len(text)) + text
}

func isBase62(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
}
