// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"context"
	"net/http"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/internal/meta"
)

// host is the graph of one login.
type host struct {
	login   Login
	graph   meta.Client
	version string
	clock   clock.PassiveClock
}

// failure is an error together with what the graph said.
type failure struct {
	*platforms.Error

	// said is empty, and never nil, where the graph said nothing.
	said *meta.Error
	// again says that another container may mend it at once.
	again bool
}

// because makes a failure of which the graph said nothing.
func because(class platforms.Class, format string, args ...any) *failure {
	return failed(platforms.Errorf(class, format, args...))
}

func failed(err *platforms.Error) *failure { return &failure{Error: err, said: new(meta.Error)} }

// read asks for what the path names, which comes below the version.
func (h *host) read(ctx context.Context, action, path string, token platforms.Token) (jsondoc.Object, *failure) {
	return h.ask(ctx, meta.Call{Action: action, Path: h.path(path), Token: token.Access, Timeout: readTimeout}, thePost)
}

// ask makes a call that may be repeated and returns the answer if it is a
// success; it is nil if it cannot be read. about is what the call is about, for
// people.
func (h *host) ask(ctx context.Context, call meta.Call, about string) (jsondoc.Object, *failure) {
	resp, err := h.graph.Do(ctx, call)
	if err != nil {
		return nil, failed(unanswered(err))
	}
	if resp.Status != http.StatusOK {
		return nil, h.classify(resp, about)
	}
	doc, _ := jsondoc.Parse(resp.Body)
	return doc, nil
}

// path makes the path of something in the graph.
func (h *host) path(rest string) string { return "/" + h.version + rest }
