// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// answer is what the API said.
type answer struct {
	status int
	// code is "ok" if it did what it was asked, and empty if it did not say.
	code string
	data jsondoc.Object
}

// ok reports whether the API did what it was asked. It sends some errors with
// the status of a success.
func (a answer) ok() bool { return a.status == http.StatusOK && a.code == "ok" }

// post makes a call of the API, which are all POSTs of JSON. The error is the
// transport's, or badAddress.
func (p *Platform) post(ctx context.Context, action, path string, token platforms.Token, body any, timeout time.Duration) (answer, error) {
	var content bytes.Buffer
	encoder := json.NewEncoder(&content)
	// What is sent should be what was written.
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		return answer{}, &transport.Error{Err: err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.config.APIURL+path, &content)
	if err != nil {
		return answer{}, &transport.Error{Err: badAddress(err)}
	}
	req.Header.Set("Authorization", "Bearer "+token.Access)
	req.Header.Set("Content-Type", "application/json; charset=UTF-8")
	resp, err := p.client.Do(ctx, transport.Call{Platform: "tiktok", Action: action, Timeout: timeout}, req)
	if err != nil {
		return answer{}, err
	}
	doc, _ := jsondoc.Parse(resp.Body)
	return answer{status: resp.Status, code: doc.Object("error").Text("code"), data: doc.Object("data")}, nil
}

// ask makes a call that may be repeated.
func (p *Platform) ask(ctx context.Context, action, path string, token platforms.Token, body any) (jsondoc.Object, *refusal) {
	said, err := p.post(ctx, action, path, token, body, readTimeout)
	switch {
	case err != nil:
		return nil, &refusal{Error: unanswered(err)}
	case !said.ok():
		return nil, p.classify(said)
	default:
		return said.data, nil
	}
}
