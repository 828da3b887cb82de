// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process contains the parts that all Herald processes share: the command line, the configuration file and its
// changes, the log, traces, the heap, and the servers for probes, metrics and profiles.
package process

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
)

// UsageError reports an invalid command line.
type UsageError struct {
	Err error
}

func (e UsageError) Error() string { return e.Err.Error() }
func (e UsageError) Unwrap() error { return e.Err }

// NewFlagSet returns a flag set that leaves errors to the caller and prints help to stdout, for `--help | less`.
func NewFlagSet(name string) *flag.FlagSet {
	flags := flag.NewFlagSet("herald "+name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	return flags
}

// Parse parses args. It prints help on request and converts every other error to a UsageError. A positional argument is
// also an error: it is usually a flag without its dashes.
func Parse(flags *flag.FlagSet, args []string) error {
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(os.Stdout)
		fmt.Printf("Usage: %s [flags]\n\n", flags.Name())
		flags.PrintDefaults()
		return err
	}
	if err != nil {
		return UsageError{Err: err}
	}
	if flags.NArg() > 0 {
		return UsageError{Err: fmt.Errorf("unexpected argument %q; a flag begins with dashes", flags.Arg(0))}
	}
	return nil
}

// Flags holds the flags shared by both long-running parts of Herald. All other settings are in the file of --config.
type Flags struct {
	Kubeconfig string
	Config     string

	namespaces string
	logFormat  string
	logLevel   slog.Level
}

// Add defines the flags; kind is the kind of the configuration file.
func (f *Flags) Add(flags *flag.FlagSet, kind string) {
	flags.StringVar(&f.Config, "config", "", "file of kind "+kind+"; see `herald config check`")
	flags.StringVar(&f.namespaces, "namespace", "", "namespaces of the teams to serve, separated by commas, which replace those in the file")
	flags.StringVar(&f.Kubeconfig, "kubeconfig", "", "kubeconfig file; empty inside a cluster")
	flags.StringVar(&f.logFormat, "log-format", "text", "format of the log: text or json")
	flags.TextVar(&f.logLevel, "log-level", slog.LevelInfo, "minimum level to log, until the file is read and if it has no log.level: debug, info, warn or error")
}

// ReadConfig reads the configuration file of --config.
func ReadConfig[T interface{ Shared() *configv1alpha1.Common }](f *Flags, from func(path string) (T, error)) (config T, err error) {
	if f.Config == "" {
		return config, UsageError{Err: errors.New("--config is required: name a configuration file")}
	}
	if config, err = from(f.Config); err != nil || f.namespaces == "" {
		return config, err
	}
	namespaces := strings.Split(f.namespaces, ",")
	for _, namespace := range namespaces {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			return config, UsageError{Err: fmt.Errorf("--namespace: %q is not the name of a namespace; write lower-case letters, digits and dashes, with commas between names", namespace)}
		}
	}
	config.Shared().Namespaces = namespaces
	return config, nil
}
