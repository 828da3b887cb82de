// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
)

// logFlags are the flags about logs that every long-running command has.
type logFlags struct {
	format string
	level  slog.Level
}

func addLogFlags(flags *flag.FlagSet) *logFlags {
	f := &logFlags{}
	flags.StringVar(&f.format, "log-format", "text", "format of the log: text or json")
	flags.TextVar(&f.level, "log-level", slog.LevelInfo, "least level to log: debug, info, warn or error")
	return f
}

// logger returns the logger that the flags ask for. It writes to stderr.
func (f *logFlags) logger() (*slog.Logger, error) {
	options := &slog.HandlerOptions{Level: f.level}
	switch f.format {
	case "text":
		return slog.New(slog.NewTextHandler(os.Stderr, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(os.Stderr, options)), nil
	default:
		return nil, usageError{fmt.Errorf("--log-format=%s: want text or json", f.format)}
	}
}
