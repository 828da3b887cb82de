// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/internal/tracing"
)

// Log is the log of a process. Its level can change while the process runs.
type Log struct {
	*slog.Logger

	level *slog.LevelVar
	// start is the level of --log-level.
	start slog.Level
}

// SetupLog returns the log configured by the flags, which writes to stderr. The Kubernetes libraries log to it as well.
func (f *Flags) SetupLog() (*Log, error) {
	l, err := f.newLog(os.Stderr)
	if err != nil {
		return nil, err
	}
	log := logr.FromSlogHandler(l.Handler())
	setKlogOnce.Do(func() { klog.SetLogger(log) })
	ctrl.SetLogger(log)
	// HTTP servers in libraries log their errors here.
	slog.SetDefault(l.Logger)
	return l, nil
}

// setKlogOnce sets klog's logger only once, because goroutines of the Kubernetes libraries read it without a lock.
var setKlogOnce sync.Once

func (f *Flags) newLog(out io.Writer) (*Log, error) {
	l := &Log{level: &slog.LevelVar{}, start: f.logLevel}
	l.level.Set(f.logLevel)
	options := &slog.HandlerOptions{Level: l.level, ReplaceAttr: inWords}
	var handler slog.Handler
	switch f.logFormat {
	case "text":
		handler = slog.NewTextHandler(out, options)
	case "json":
		handler = slog.NewJSONHandler(out, options)
	default:
		return nil, UsageError{Err: fmt.Errorf("--log-format=%s: want text or json", f.logFormat)}
	}
	l.Logger = slog.New(libraryHandler{tracing.LogHandler(handler)})
	return l, nil
}

// inWords writes a duration with its unit, such as 1m30s. JSON would contain the number of nanoseconds.
func inWords(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

// library is the prefix of controller-runtime's own logger names. Controllers have other names.
const library = "controller-runtime"

// libraryHandler lowers controller-runtime's info lines to debug, such as those about servers that start and stop.
type libraryHandler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h libraryHandler) Handle(ctx context.Context, line slog.Record) error {
	if line.Level == slog.LevelInfo && isOfLibrary(&line) {
		if !h.Enabled(ctx, slog.LevelDebug) {
			return nil
		}
		line.Level = slog.LevelDebug
	}
	return h.Handler.Handle(ctx, line)
}

// WithAttrs implements slog.Handler.
func (h libraryHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return libraryHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h libraryHandler) WithGroup(name string) slog.Handler {
	return libraryHandler{h.Handler.WithGroup(name)}
}

// isOfLibrary reports whether controller-runtime itself wrote a line.
func isOfLibrary(line *slog.Record) (is bool) {
	line.Attrs(func(a slog.Attr) bool {
		is = a.Key == "logger" && strings.HasPrefix(a.Value.String(), library)
		return !is
	})
	return is
}

// applyLevel sets the level from the configuration file, or from the flag if the file has none.
func (l *Log) applyLevel(ctx context.Context, c *configv1alpha1.Log) {
	level := l.start
	if c.Level != "" {
		if err := level.UnmarshalText([]byte(c.Level)); err != nil {
			return // the configuration has been validated
		}
	}
	if was := l.level.Level(); was != level {
		l.level.Set(level)
		// The line is at the new level or info, whichever is higher, so that it always appears.
		l.Log(ctx, max(level, slog.LevelInfo), "The log level has changed", "was", was.String(), "is", level.String())
	}
}
