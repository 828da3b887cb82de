// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package meta makes calls to Meta's graphs (Facebook, Instagram and Threads) and implements what they have in common:
// errors and rate limits, listings, and the containers that two of them publish. Their differences are implemented in
// the platforms' packages.
package meta

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

const (
	// ReadTimeout bounds calls that only read.
	ReadTimeout = 10 * time.Second
	// PermalinkTimeout bounds reading a new post's permalink. It is short because the post's id is not stored until
	// then.
	PermalinkTimeout = 3 * time.Second
)

// Graph makes calls to a platform's graph.
type Graph struct {
	client.Client
	// Version is the first segment of most paths.
	Version string
	// Clock is the clock for limits, token expiry and polling.
	Clock clock.Clock
	// Errors is the platform's error table.
	Errors Table
	// Kinds overrides the platform's default classifications. The Error of a table row takes precedence.
	Kinds map[Kind]platforms.Error
}

// VersionedPath returns a path under the API version.
func (g *Graph) VersionedPath(rest string) string { return "/" + g.Version + rest }

// AccountPath returns a path under an account.
func (g *Graph) AccountPath(account *platforms.Account, rest string) string {
	return g.VersionedPath("/" + url.PathEscape(account.ID) + "/" + rest)
}

// Call makes a repeatable call and returns the body of a successful response. about is the subject of the call, for
// messages. A call with a body must use a path under an account.
func (g *Graph) Call(ctx context.Context, call client.Call, about string) ([]byte, *Failure) {
	resp, err := g.Do(ctx, call)
	if err != nil {
		return nil, NewFailure(g.Unanswered(err))
	}
	switch {
	case resp.Status == http.StatusOK:
		return resp.Body, nil
	case call.Body.Content != nil:
		return nil, g.ClassifyForAccount(resp, about)
	default:
		return nil, g.Classify(resp, about)
	}
}

// Get reads the object at a path under the API version. A response that is not a JSON object is decoded as an empty
// object.
func Get[T any](ctx context.Context, g *Graph, action, path string, token platforms.Token) (T, *Failure) {
	body, bad := g.Call(ctx, client.Call{Action: action, Path: g.VersionedPath(path), Token: token.Access, Timeout: ReadTimeout}, ThePost)
	v, _ := jsondoc.Decode[T](body)
	return v, bad
}

// Publish makes the publishing call once. It also returns the body of the response.
func (g *Graph) Publish(ctx context.Context, call client.Call) (platforms.Result, []byte) {
	resp, err := g.Do(ctx, call)
	if err != nil {
		return g.PublishUnanswered(err), nil
	}
	return g.resultWithLimits(resp, CreatedID), resp.Body
}

// PublishAs is like Publish, for a call whose response does not contain the post's id. idOf returns the post's id if
// the body confirms the call.
func (g *Graph) PublishAs(ctx context.Context, call client.Call, idOf func(body []byte) string) platforms.Result {
	resp, err := g.Do(ctx, call)
	if err != nil {
		return g.PublishUnanswered(err)
	}
	return g.resultWithLimits(resp, idOf)
}

// resultWithLimits returns the result of the publishing call, with the rate limits from the response.
func (g *Graph) resultWithLimits(resp *transport.Response, idOf func(body []byte) string) platforms.Result {
	result := g.ResultOf(resp, idOf)
	result.RateLimits = ParseUsage(resp.Header).rateLimits(g.Clock.Now())
	return result
}

// CreatedID returns the id in the response to a call that creates an object, or "" if there is none.
func CreatedID(body []byte) string {
	created, _ := jsondoc.Decode[struct {
		ID jsondoc.Text `json:"id"`
	}](body)
	if id := created.ID.String(); ValidID(id) {
		return id
	}
	return ""
}

// ResultOf returns the result of the publishing call, based on the response. idOf is as in PublishAs.
func (g *Graph) ResultOf(resp *transport.Response, idOf func(body []byte) string) platforms.Result {
	if resp.Status >= http.StatusOK && resp.Status < http.StatusMultipleChoices {
		if id := idOf(resp.Body); id != "" {
			return platforms.Result{Outcome: platforms.Posted, ExternalID: id}
		}
		return g.NoID()
	}
	bad := g.ClassifyForAccount(resp, ThePost)
	switch {
	case !bad.GraphError.Refusal():
		return g.InDoubt(resp.Status, bad.GraphError)
	case bad.Class == platforms.ClassDuplicate:
		// The duplicate may be this very post, as published by a call whose response was lost.
		return platforms.Result{Outcome: platforms.Unknown, Err: bad.Error}
	default:
		return platforms.Result{Outcome: platforms.Refused, Err: bad.Error}
	}
}

// ThePost is the default subject of a call, for messages.
const ThePost = "the post"

// TheFile describes a file as the subject of a call.
func TheFile(file *platforms.File) string { return fmt.Sprintf("the file %q", file.Name) }
