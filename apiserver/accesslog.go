// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/signin"
)

// strangersLine is the log limiter's key for unauthenticated requests. Identical requests are logged once per minute.
type strangersLine struct {
	operation string
	status    int
	address   string
}

// maxLogAttrs is the number of attributes of the longest line.
const maxLogAttrs = 12

func (o *observer) report(r *http.Request, out *recorder, info *request.Info, took time.Duration) {
	ctx := r.Context()
	operation, status := cmp.Or(info.Operation, noOperation), cmp.Or(out.status, http.StatusOK)
	counted := status
	if info.Err != nil && status == http.StatusOK && ctx.Err() == nil {
		counted = http.StatusInternalServerError // agents receive errors with status 200, and alerts use this metric
	}
	o.metrics.requests.WithLabelValues(operation, strconv.Itoa(counted)).Inc()
	o.metrics.duration.WithLabelValues(operation).Observe(took.Seconds())

	level, leftOut := slog.LevelInfo, int64(0)
	if !info.Authenticated {
		var write bool
		if write, leftOut = o.lines.Allow(strangersLine{operation, status, request.Address(r)}); !write {
			return // the metrics have counted it
		}
	}
	// The capacity keeps the attributes on the stack.
	attrs := append(make([]slog.Attr, 0, maxLogAttrs),
		slog.String("method", request.Method(r)),
		slog.String("path", logged(r.URL.Path)),
		slog.Int("status", status),
		slog.Duration("took", took),
		slog.Int64("bytes", out.bytes),
		slog.String("operation", operation),
		slog.String("requestId", info.ID),
		slog.String("remote", request.Remote(r)),
	)
	if info.Namespace != "" {
		attrs = append(attrs, slog.String("namespace", info.Namespace), slog.String("key", info.Key))
	}
	if leftOut > 0 {
		attrs = append(attrs, slog.Int64("notLogged", leftOut))
	}
	if info.Err != nil {
		attrs = append(attrs, slog.Any("error", info.Err))
		if ctx.Err() == nil { // otherwise the client disconnected, which is not a server error
			level = slog.LevelError
		}
	}
	o.log.LogAttrs(ctx, level, "Request", attrs...)
}

// logged returns a path for the log. The path of a one-time link is a secret and is redacted; a long path is truncated.
func logged(path string) string {
	if strings.HasPrefix(path, signin.LinkPath) {
		return signin.LinkPath + "…"
	}
	return request.Short(path)
}

// serverLog limits net/http's messages, because unauthenticated clients can cause some of them.
type serverLog struct {
	slog.Handler

	lines *limits.LogLimiter
}

// Handle writes a line unless the limiter suppresses it. Lines that match up to their first digit share a limit.
func (l serverLog) Handle(ctx context.Context, line slog.Record) error {
	of := line.Message
	if i := strings.IndexFunc(of, unicode.IsDigit); i >= 0 {
		of = of[:i]
	}
	write, leftOut := l.lines.Allow(request.Short(of))
	if !write {
		return nil
	}
	line.AddAttrs(slog.Int64("notLogged", leftOut))
	return l.Handler.Handle(ctx, line) //nolint:wrapcheck // the wrapped handler
}
