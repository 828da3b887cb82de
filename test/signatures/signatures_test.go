// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package signatures verifies the signatures of notifications with standardwebhooks, the JavaScript library that receivers
// use. The tests of internal/receiver use its Go library.
package signatures

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/herald-social/herald/internal/receiver"
	"github.com/herald-social/herald/test/must"
)

// request is the input of verify.mjs.
type request struct {
	Secret  string            `json:"secret"`
	Body    string            `json:"body"`
	Headers map[string]string `json:"headers"`
}

func secret(letter string) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, 32)))
}

func TestSignatures(t *testing.T) {
	if _, err := os.Stat("node_modules/standardwebhooks"); err != nil {
		t.Skip("standardwebhooks is not installed: make test-signatures")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not in PATH: install Node.js 20 or later")
	}
	const body, refused = `{"type":"post.posted","data":{"title":"Grüße & <b>"}}`, "No matching signature found"
	for name, tc := range map[string]struct {
		// with contains the secrets that sign requests, and by is the receiver's secret.
		with, by string
		edit     func(*request)
		want     string
	}{
		"a request as it is sent":                                        {with: secret("a"), by: secret("a"), want: body},
		"the receiver has not replaced its secret":                       {with: secret("b") + "\n" + secret("a"), by: secret("a"), want: body},
		"the receiver has replaced its secret":                           {with: secret("b") + "\n" + secret("a"), by: secret("b"), want: body},
		"another installation cannot send":                               {with: secret("c"), by: secret("a"), want: refused},
		"the body is signed":                                             {with: secret("a"), by: secret("a"), edit: func(r *request) { r.Body = "{}" }, want: refused},
		"the id distinguishes repeated requests":                         {with: secret("a"), by: secret("a"), edit: func(r *request) { r.Headers["webhook-id"] = "msg_2" }, want: refused},
		"the signature covers the time, so a recording cannot be resent": {with: secret("a"), by: secret("a"), edit: later, want: refused},
	} {
		t.Run(name, func(t *testing.T) {
			secrets, err := receiver.ParseSecrets(tc.with)
			must.Succeed(t, err)
			// The library compares the time with the clock.
			r := request{Secret: tc.by, Body: body, Headers: secrets.Sign("msg_1", time.Now(), []byte(body))}
			if tc.edit != nil {
				tc.edit(&r)
			}
			input, err := json.Marshal(r)
			must.Succeed(t, err)
			program := exec.CommandContext(t.Context(), node, "verify.mjs")
			program.Stdin = bytes.NewReader(append(input, '\n'))
			output, err := program.Output()
			must.Succeed(t, err)
			if got := strings.TrimSpace(string(output)); got != tc.want {
				t.Errorf("the library returned %q, want %q", got, tc.want)
			}
		})
	}
}

// later changes the time of a request by a second.
func later(r *request) {
	at, err := strconv.ParseInt(r.Headers["webhook-timestamp"], 10, 64)
	if err != nil {
		panic(err)
	}
	r.Headers["webhook-timestamp"] = strconv.FormatInt(at+1, 10)
}
