// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package meta calls Meta's graphs, those of Facebook, Instagram and Threads,
// and understands what they have in common: how they report errors and limits,
// how they list, and how two of them publish containers. Where platforms differ,
// their own folders say so.
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
	// ReadTimeout bounds the calls that only ask.
	ReadTimeout = 10 * time.Second
	// PermalinkTimeout bounds reading the address of what was just published:
	// the id of the post waits for it to be stored.
	PermalinkTimeout = 3 * time.Second
)

// Graph calls one graph for a platform.
type Graph struct {
	client.Client
	// Version is the first segment of most paths.
	Version string
	// Clock tells when limits and tokens end, and waits for containers.
	Clock clock.Clock
	// Errors is the platform's table of errors.
	Errors Table
	// Kinds say what errors ask for on this platform, where that is not what
	// they ask for elsewhere. A row's own words go before them.
	Kinds map[Kind]platforms.Error
}

// VersionedPath is the path of something in the graph.
func (g *Graph) VersionedPath(rest string) string { return "/" + g.Version + rest }

// AccountPath is the path of something that belongs to an account.
func (g *Graph) AccountPath(account *platforms.Account, rest string) string {
	return g.VersionedPath("/" + url.PathEscape(account.ID) + "/" + rest)
}

// Call makes a call that may be repeated, and returns the body of a success.
// about is what the call is about, for messages. A call with a body goes to a path
// of an account.
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

// Get asks for what a path names, below the version. An answer that is no JSON
// object reads as an empty one.
func Get[T any](ctx context.Context, g *Graph, action, path string, token platforms.Token) (T, *Failure) {
	body, bad := g.Call(ctx, client.Call{Action: action, Path: g.VersionedPath(path), Token: token.Access, Timeout: ReadTimeout}, ThePost)
	v, _ := jsondoc.Decode[T](body)
	return v, bad
}

// Publish makes the call that publishes, once, and returns the body of its
// answer as well.
func (g *Graph) Publish(ctx context.Context, call client.Call) (platforms.Result, []byte) {
	resp, err := g.Do(ctx, call)
	if err != nil {
		return g.PublishUnanswered(err), nil
	}
	return g.resultWithLimits(resp, CreatedID), resp.Body
}

// PublishAs is Publish for a call whose answer does not name the post. idOf returns the
// post's id if the body confirms the call.
func (g *Graph) PublishAs(ctx context.Context, call client.Call, idOf func(body []byte) string) platforms.Result {
	resp, err := g.Do(ctx, call)
	if err != nil {
		return g.PublishUnanswered(err)
	}
	return g.resultWithLimits(resp, idOf)
}

// resultWithLimits is the result of an answer to the call that publishes.
func (g *Graph) resultWithLimits(resp *transport.Response, idOf func(body []byte) string) platforms.Result {
	result := g.ResultOf(resp, idOf)
	result.RateLimits = ParseUsage(resp.Header).rateLimits(g.Clock.Now())
	return result
}

// CreatedID reads the id in the answer to a call that creates something; ""
// if there is none.
func CreatedID(body []byte) string {
	made, _ := jsondoc.Decode[struct {
		ID jsondoc.Text `json:"id"`
	}](body)
	if id := made.ID.String(); ValidID(id) {
		return id
	}
	return ""
}

// ResultOf decides what the answer to the call that publishes says about the post. idOf
// is as in PublishAs.
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
		// It may repeat this very post, from a call whose answer was lost.
		return platforms.Result{Outcome: platforms.Unknown, Err: bad.Error}
	default:
		return platforms.Result{Outcome: platforms.Refused, Err: bad.Error}
	}
}

// ThePost is what most calls are about, in messages.
const ThePost = "the post"

// TheFile names a file as what a call is about.
func TheFile(file *platforms.File) string { return fmt.Sprintf("the file %q", file.Name) }
