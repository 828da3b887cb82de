// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apikey

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	// tokenPrefix lets people and secret scanners recognise a token.
	tokenPrefix = "hrld_"
	// prefixLength is how much of a token status.prefix shows: the part that
	// all tokens share, and four characters to tell them apart by.
	prefixLength = 9
	// shortestToken is the length of the tokens that newToken makes.
	shortestToken = len(tokenPrefix) + 2*26
)

// newToken returns a token that cannot be guessed: 260 random bits in base32.
func newToken() string {
	return tokenPrefix + strings.ToLower(rand.Text()+rand.Text())
}

// wellFormed reports whether a token may be one of newToken.
func wellFormed(token string) bool {
	rest, ok := strings.CutPrefix(token, tokenPrefix)
	return ok && len(token) >= shortestToken && !strings.ContainsFunc(rest, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
}

// hash is what is published of a token. The token is long and random, so that
// a plain hash cannot be reversed.
func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// prefix is the beginning of a token, to recognise it by.
func prefix(token string) string { return token[:prefixLength] }
