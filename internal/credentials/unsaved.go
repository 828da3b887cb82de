// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
)

// spoolPurpose separates the key from other uses of its secret, and identifies the file format.
const spoolPurpose = "social.herald.dev/unsaved-token/v1"

// SpoolAccount identifies a token's owner. It is readable in the file, but sealed together with the token.
type SpoolAccount struct {
	Namespace  string            `json:"namespace"`
	Connection string            `json:"connection"`
	UID        types.UID         `json:"uid"`
	Platform   v1alpha1.Platform `json:"platform"`
	AccountID  string            `json:"accountID"`
}

// SpoolAccountOf returns the account of a Connection.
func SpoolAccountOf(conn *v1alpha1.Connection) SpoolAccount {
	return SpoolAccount{conn.Namespace, conn.Name, conn.UID, conn.Spec.Platform, conn.Spec.AccountID}
}

func (a SpoolAccount) bytes() []byte {
	var out bytes.Buffer
	for _, part := range []string{spoolPurpose, a.Namespace, a.Connection, string(a.UID), string(a.Platform), a.AccountID} {
		fmt.Fprintf(&out, "%d:%s", len(part), part) // the length separates the parts
	}
	return out.Bytes()
}

// UnsavedToken is a renewed token that is not stored yet.
type UnsavedToken struct {
	Account SpoolAccount
	// Token is the new token, and From is the fingerprint of the token that it was obtained with.
	Token Token
	From  string
}

type spoolContent struct {
	Account SpoolAccount `json:"account"`
	// Sealed contains the other fields of the entry, encrypted with AES-256-GCM.
	Sealed []byte `json:"sealed"`
}

type spoolSecrets struct {
	Token spoolToken `json:"token"`
	From  string     `json:"from"`
}

// spoolToken has the same fields as Token, so the types convert to each other.
type spoolToken struct {
	Access           string    `json:"access"`
	Refresh          string    `json:"refresh"`
	ExpiresAt        time.Time `json:"expiresAt,omitzero"`
	RefreshExpiresAt time.Time `json:"refreshExpiresAt,omitzero"`
	Scopes           string    `json:"scopes,omitempty"`
	App              string    `json:"app,omitempty"`
	Server           string    `json:"server,omitempty"`
	ClientID         string    `json:"clientID,omitempty"`
	ClientSecret     string    `json:"clientSecret,omitempty"`
}

var errNotSealed = errors.New("it was changed, or sealed with another key")

// cipherOf returns the cipher for a secret. The cipher generates each message's nonce.
func cipherOf(secret string) (cipher.AEAD, error) {
	key, err := DeriveKey(secret, spoolPurpose)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

func sealToken(secret string, e UnsavedToken) ([]byte, error) {
	gcm, err := cipherOf(secret)
	if err != nil {
		return nil, err
	}
	plain, err := json.Marshal(spoolSecrets{spoolToken(e.Token), e.From})
	if err != nil {
		return nil, err
	}
	return json.Marshal(spoolContent{e.Account, gcm.Seal(nil, nil, plain, e.Account.bytes())}) //nolint:gosec // G407: the cipher makes the nonce
}

func openToken(secret string, file []byte) (UnsavedToken, error) {
	var c spoolContent
	if json.Unmarshal(file, &c) != nil {
		return UnsavedToken{}, errors.New("it is not a sealed token")
	}
	gcm, err := cipherOf(secret)
	if err != nil {
		return UnsavedToken{}, err
	}
	plain, err := gcm.Open(nil, nil, c.Sealed, c.Account.bytes())
	if err != nil {
		return UnsavedToken{}, errNotSealed
	}
	var s spoolSecrets
	if json.Unmarshal(plain, &s) != nil || s.Token.Access == "" || s.From == "" {
		return UnsavedToken{}, errors.New("it is of another version of Herald")
	}
	return UnsavedToken{Account: c.Account, Token: Token(s.Token), From: s.From}, nil
}
