// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"strings"

	"github.com/herald-social/herald/platforms/internal/dpop"
)

// bound holds what a token is bound to: its key, account, server and issuer. It is stored with the token.
type bound struct {
	Key              dpop.ProofKey
	DID, PDS, Issuer string
}

// boundPrefix is the prefix of a bound token's text. A token with an app password cannot start with it, because it
// starts with a handle or a DID.
const boundPrefix = "dpop|"

func (b *bound) text(token string) (string, error) {
	key, err := b.Key.Text()
	return boundPrefix + strings.Join([]string{key, b.DID, b.PDS, b.Issuer, token}, "|"), err
}

// isBound reports whether a string is a bound token. It contains a private key, so it must not be sent as an app
// password.
func isBound(text string) bool { return strings.HasPrefix(text, boundPrefix) }

func parseBound(text string) (of bound, token string, ok bool) {
	rest, ok := strings.CutPrefix(text, boundPrefix)
	parts := strings.SplitN(rest, "|", 5)
	if !ok || len(parts) != 5 {
		return bound{}, "", false
	}
	key, err := dpop.ParseProofKey(parts[0])
	return bound{key, parts[1], parts[2], parts[3]}, parts[4], err == nil && didPattern.MatchString(parts[1])
}
