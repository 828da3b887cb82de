// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rest is the HTTP door to the operations of apiserver/bridge. What it
// decodes and encodes is generated from apiserver/openapi; what is left here is
// the order of the checks, the conversions, and how errors are worded.
package rest

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/ogen-go/ogen/middleware"

	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/openapi"
	"github.com/herald-social/herald/apiserver/ratelimit"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/rest/oas"
)

// Prefix is the path below which the API lies.
const Prefix = "/api/v1"

const (
	// maxBody is the greatest size of a request's body in bytes.
	maxBody = 1 << 20
	// answerWithin bounds how long an operation may wait for others: for the
	// check of a connection, at most five seconds, and for the Kubernetes API,
	// should it not answer at all. It is shorter than the server's own timeout,
	// which would cut the client off without a word.
	answerWithin = 20 * time.Second
)

// NewHandler returns the handler for everything below Prefix. A nil limiter
// limits nobody.
func NewHandler(service *bridge.Service, limiter *ratelimit.Limiter) (http.Handler, error) {
	document, err := openapi.JSON()
	if err != nil {
		return nil, err
	}
	schemas, err := readSchemas(document)
	if err != nil {
		return nil, err
	}
	d := &door{service: service, limiter: limiter, schemas: schemas}
	server, err := oas.NewServer(d, d,
		oas.WithPathPrefix(Prefix),
		oas.WithErrorHandler(d.handleError),
		oas.WithNotFound(d.notFound),
		oas.WithMethodNotAllowed(d.methodNotAllowed),
		oas.WithMiddleware(strictly, inTime),
	)
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		server.ServeHTTP(w, withinInt(r))
		if done := request.From(r.Context()).Answered; done != nil {
			done()
		}
	}), nil
}

// inTime ends what an operation waits for after answerWithin. Lists wait for
// nobody.
func inTime(req middleware.Request, next middleware.Next) (middleware.Response, error) {
	if req.OperationName == oas.ListPostsOperation || req.OperationName == oas.ListConnectionsOperation {
		return next(req)
	}
	ctx, cancel := context.WithTimeout(req.Context, answerWithin)
	defer cancel()
	req.SetContext(ctx)
	return next(req)
}

// door implements what the generated server calls.
type door struct {
	service *bridge.Service
	limiter *ratelimit.Limiter
	schemas *schemas
	// listings holds *listing for use again: what every list would leave to the
	// garbage collector otherwise.
	listings sync.Pool
}

var (
	_ oas.Handler         = (*door)(nil)
	_ oas.SecurityHandler = (*door)(nil)
)

type callerKey struct{}

// caller returns whom HandleBearerAuth let in. Without one it is the zero
// Caller, which owns nothing.
func caller(ctx context.Context) bridge.Caller {
	c, _ := ctx.Value(callerKey{}).(bridge.Caller)
	return c
}

// HandleBearerAuth lets a caller in, or not: it runs before parameters and body are
// looked at, because 401 and 403 come before 404 and 400.
func (d *door) HandleBearerAuth(ctx context.Context, operation oas.OperationName, key oas.BearerAuth) (context.Context, error) {
	info := request.From(ctx)
	info.Operation = operationID(operation)
	c, err := d.admit(ctx, key.Token)
	if err != nil {
		return nil, err
	}
	if operation == oas.CreatePostOperation || operation == oas.CreateMediaUploadUrlOperation {
		if err := d.service.RequireSubscription(c); err != nil {
			return nil, err
		}
	}
	return context.WithValue(ctx, callerKey{}, c), nil
}

// admit finds out who calls, and whether they may call again already.
func (d *door) admit(ctx context.Context, token string) (bridge.Caller, error) {
	c, err := d.service.Authenticate(strings.TrimSpace(token))
	if err != nil {
		return bridge.Caller{}, err
	}
	info := request.From(ctx)
	info.Namespace, info.Key = c.Namespace, c.Key
	if allowed, wait := d.limiter.Take(c.Namespace+"/"+c.Key, info.Header); !allowed {
		return bridge.Caller{}, &bridge.Error{
			Code:    bridge.CodeRateLimited,
			Message: fmt.Sprintf("too many requests with this API key; try again in %.0f seconds", max(math.Ceil(wait.Seconds()), 1)),
		}
	}
	return c, nil
}

// operationID is the operationId of an operation, whose generated name begins
// with a capital letter instead.
func operationID(operation oas.OperationName) string {
	return strings.ToLower(operation[:1]) + operation[1:]
}
