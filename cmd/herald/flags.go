// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/internal/apiclock"
)

// newFlagSet returns a flag set that leaves errors to report and prints help to stdout, for `--help | less`.
func newFlagSet(name string) *flag.FlagSet {
	flags := flag.NewFlagSet("herald "+name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	return flags
}

// parse parses args. It prints help on request and converts every other error to a usageError. A positional argument is
// an error too, because it is usually a flag without its dashes.
func parse(flags *flag.FlagSet, args []string) error {
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(os.Stdout)
		fmt.Printf("Usage: %s [flags]\n\n", flags.Name())
		flags.PrintDefaults()
		return err
	}
	if err != nil {
		return usageError{err}
	}
	if flags.NArg() > 0 {
		return usageError{fmt.Errorf("unexpected argument %q; a flag begins with dashes", flags.Arg(0))}
	}
	return nil
}

// commonFlags are the flags of both long-running parts of Herald. All other settings are in the file of --config.
type commonFlags struct {
	kubeconfig string
	config     string
	namespaces string
	logFormat  string
	logLevel   slog.Level
}

func (f *commonFlags) add(flags *flag.FlagSet, kind string) {
	flags.StringVar(&f.config, "config", "", "file of kind "+kind+"; see `herald config check`")
	flags.StringVar(&f.namespaces, "namespace", "", "namespaces of the teams to serve, separated by commas, in the place of those in the file; empty for these")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig file; empty inside a cluster")
	flags.StringVar(&f.logFormat, "log-format", "text", "format of the log: text or json")
	flags.TextVar(&f.logLevel, "log-level", slog.LevelInfo, "least level to log, at the start and wherever the file has no log.level: debug, info, warn or error")
}

// read reads the configuration file of --config.
func read[T interface{ Shared() *configv1alpha1.Common }](f *commonFlags, from func(path string) (T, error)) (config T, err error) {
	if f.config == "" {
		return config, usageError{errors.New("--config is required: name a configuration file")}
	}
	if config, err = from(f.config); err != nil || f.namespaces == "" {
		return config, err
	}
	namespaces := strings.Split(f.namespaces, ",")
	for _, namespace := range namespaces {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			return config, usageError{fmt.Errorf("--namespace: %q is no name of a namespace; write small letters, digits and dashes, and commas between names", namespace)}
		}
	}
	config.Shared().Namespaces = namespaces
	return config, nil
}

// kubernetes is the connection to the Kubernetes API.
type kubernetes struct {
	*rest.Config
	// namespace is the namespace of this process: of its pod, or of the kubeconfig's context.
	namespace string
	// clock follows the clock of the Kubernetes API. It is nil in one-shot commands.
	clock *apiclock.Clock
}

// syncClock makes the process follow the clock of the Kubernetes API from its first response on. Clients created from
// the configuration after this call measure the offset, at least once a minute until ctx is done.
func (k *kubernetes) syncClock(ctx context.Context, log *slog.Logger) {
	k.clock = apiclock.New(apiclock.Options{Base: baseClock(), Registerer: metrics.Registry, Log: log})
	k.Wrap(k.clock.Wrap)
	config := rest.CopyConfig(k.Config)
	go func() {
		if err := k.clock.Watch(ctx, config); err != nil {
			log.ErrorContext(ctx, "The clock is compared with that of the Kubernetes API by its other answers alone", "error", err)
		}
	}()
}

// kubeConfig finds the Kubernetes API and the namespace of this process. name becomes the user agent.
func (f *commonFlags) kubeConfig(name string) (kubernetes, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: f.kubeconfig}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil)
	// Without a kubeconfig, the loader uses the pod's service account for both.
	config, err := loader.ClientConfig()
	if err != nil {
		return kubernetes{}, fmt.Errorf("cannot find the Kubernetes API (name a kubeconfig with --kubeconfig, or run inside a cluster): %w", err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return kubernetes{}, fmt.Errorf("cannot tell the namespace of this process: %w", err)
	}
	config.UserAgent = name + "/" + version
	return kubernetes{Config: config, namespace: namespace}, nil
}
