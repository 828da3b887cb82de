// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func secret(fill string, bytes int) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(fill, bytes)))
}

func TestParseSecrets(t *testing.T) {
	for name, tc := range map[string]struct {
		text, want string
		n          int
	}{
		"the shortest secret":                        {text: secret("a", 24), n: 1},
		"the longest secret":                         {text: secret("a", 64) + "\n", n: 1},
		"two, while one is replaced":                 {text: secret("a", 32) + "\n" + secret("b", 32), n: 2},
		"an empty key":                               {text: " \n", want: "it is empty"},
		"too short to resist guessing":               {text: secret("a", 23), want: "a secret has 24 to 64 bytes, not 23"},
		"longer than libraries accept":               {text: secret("a", 65), want: "a secret has 24 to 64 bytes, not 65"},
		"a secret of another scheme":                 {text: "hunter2", want: "a secret is whsec_ followed by base64"},
		"base64 with a mistake":                      {text: "whsec_%%%", want: "a secret is whsec_ followed by base64"},
		"each secret costs a signature of a request": {text: strings.Repeat(secret("a", 24)+" ", 5), want: "it holds 5 secrets, more than 4"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseSecrets(tc.text)
			message := ""
			if err != nil {
				message = err.Error()
			}
			if message != tc.want {
				t.Errorf("got %q, want %q", message, tc.want)
			}
			if len(got) != tc.n {
				t.Errorf("%d secrets", len(got))
			}
		})
	}
}

// TestSign verifies signatures with the library for receivers written in Go.
func TestSign(t *testing.T) {
	now, body := time.Now(), []byte(`{"type":"post.posted"}`) // the library compares the time with the clock
	secrets, err := ParseSecrets(secret("a", 32) + " " + secret("b", 32))
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{}
	for name, value := range secrets.Sign("msg_1", now, body) {
		header.Set(name, value)
	}
	verify := func(with string, header http.Header, body []byte) error {
		w, err := standardwebhooks.NewWebhook(with)
		if err != nil {
			t.Fatal(err)
		}
		return w.Verify(body, header)
	}
	for _, fill := range []string{"a", "b"} {
		if err := verify(secret(fill, 32), header, body); err != nil {
			t.Errorf("secret %s: %v", fill, err)
		}
	}
	if verify(secret("c", 32), header, body) == nil {
		t.Error("another secret verifies it")
	}
	if verify(secret("a", 32), header, []byte(`{"type":"post.failed"}`)) == nil {
		t.Error("another body has the same signature")
	}
	other := header.Clone()
	other.Set("webhook-id", "msg_2")
	if verify(secret("a", 32), other, body) == nil {
		t.Error("another id has the same signature")
	}
}
