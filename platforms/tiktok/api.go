// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"context"
	"net/http"
	"time"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// answer is what the API said.
type answer[T any] struct {
	status int
	Data   T `json:"data"`
	Error  struct {
		// Code is "ok" if the API did what it was asked, and empty if it did
		// not say.
		Code jsondoc.Text `json:"code"`
	} `json:"error"`
}

// ok reports whether the API did what it was asked. It sends some errors with
// the status of a success.
func (a *answer[T]) ok() bool { return a.status == http.StatusOK && a.Error.Code == "ok" }

func read[T any](resp *transport.Response) answer[T] {
	a, _ := jsondoc.Decode[answer[T]](resp.Body)
	a.status = resp.Status
	return a
}

// post makes a call of the API, nearly all of which are POSTs of JSON. Errors
// are the transport's.
func post[T any](ctx context.Context, p *Platform, action, path string, token platforms.Token, body any, timeout time.Duration) (answer[T], error) {
	resp, err := p.api.Do(ctx, client.Call{
		Action: action, Path: path, Token: token.Access, Body: client.JSON("application/json; charset=UTF-8", body), Timeout: timeout,
	})
	if err != nil {
		return answer[T]{}, err
	}
	return read[T](resp), nil
}

// ask makes a call that may be repeated.
func ask[T any](ctx context.Context, p *Platform, action, path string, token platforms.Token, body any) (data T, bad *refusal) {
	said, err := post[T](ctx, p, action, path, token, body, readTimeout)
	switch {
	case err != nil:
		return data, &refusal{Error: p.api.Unanswered(err)}
	case !said.ok():
		return data, p.classify(said.status, said.Error.Code.String())
	default:
		return said.Data, nil
	}
}
