// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Limits on the length of a signing secret in bytes, from Standard Webhooks, and on the number of secrets that sign a
// request.
const (
	minSecret  = 24
	maxSecret  = 64
	maxSecrets = 4
)

// Secrets sign the requests of one receiver.
type Secrets [][]byte

// ParseSecrets reads secrets of the form whsec_ and base64, separated by white space.
func ParseSecrets(text string) (Secrets, error) {
	parts := strings.Fields(text)
	switch {
	case len(parts) == 0:
		return nil, errors.New("it is empty")
	case len(parts) > maxSecrets:
		return nil, fmt.Errorf("it holds %d secrets, more than %d", len(parts), maxSecrets)
	}
	var all Secrets
	for _, part := range parts {
		encoded, ok := strings.CutPrefix(part, "whsec_")
		secret, err := base64.StdEncoding.DecodeString(encoded)
		if !ok || err != nil {
			return nil, errors.New("a secret is whsec_ followed by base64")
		}
		if len(secret) < minSecret || len(secret) > maxSecret {
			return nil, fmt.Errorf("a secret has %d to %d bytes, not %d", minSecret, maxSecret, len(secret))
		}
		all = append(all, secret)
	}
	return all, nil
}

// Sign returns the headers of a request according to Standard Webhooks, with one signature per secret
// (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md).
func (s Secrets) Sign(id string, now time.Time, body []byte) map[string]string {
	at := strconv.FormatInt(now.Unix(), 10)
	var signatures []string
	for _, secret := range s {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(id + "." + at + "."))
		mac.Write(body)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return map[string]string{"webhook-id": id, "webhook-timestamp": at, "webhook-signature": strings.Join(signatures, " ")}
}
