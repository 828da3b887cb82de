// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/cmd/herald/internal/config"
	"github.com/herald-social/herald/internal/installation"
)

// rereadEvery is how often the file is read. Kubernetes takes up to a minute to update a ConfigMap in a pod. It does so
// by switching a symbolic link, which the next read follows.
const rereadEvery = 5 * time.Second

// reloadableFields are the fields that a running process applies without a restart.
var reloadableFields = []string{"log", "suspend"}

// configWatcher applies changes to the configuration file to a running process.
type configWatcher[T any] struct {
	path string
	// load reads the file, and apply applies its reloadable fields.
	load  func(path string) (T, error)
	apply func(ctx context.Context, c T)
	log   *slog.Logger

	// initial holds the fields at the start. waiting lists the changed fields that need a restart.
	initial map[string]json.RawMessage
	waiting string
}

// watch applies changes to the file's reloadable fields until ctx is done. It logs a mistake in the file and ignores
// the change.
func (f *configWatcher[T]) watch(ctx context.Context, clk clock.WithTicker) {
	ticker := clk.NewTicker(rereadEvery)
	defer ticker.Stop()
	if c, err := f.load(f.path); err == nil {
		f.initial = fieldsOf(c)
	}
	var known []byte
	unread := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		data, err := os.ReadFile(f.path)
		was := unread
		if unread = err != nil; err == nil && known != nil && bytes.Equal(data, known) || was && unread {
			continue
		}
		if err == nil {
			known = data
			var c T
			if c, err = f.load(f.path); err == nil {
				f.apply(ctx, c)
				f.warnRestart(ctx, c)
				continue
			}
		}
		f.log.WarnContext(ctx, "The configuration file cannot be reloaded; the current configuration remains in use", "error", err)
	}
}

// warnRestart logs the changed fields that need a restart.
func (f *configWatcher[T]) warnRestart(ctx context.Context, c T) {
	now := fieldsOf(c)
	var different []string
	for name := range now {
		if f.initial != nil && !bytes.Equal(now[name], f.initial[name]) {
			different = append(different, name)
		}
	}
	for name := range f.initial {
		if _, still := now[name]; !still {
			different = append(different, name)
		}
	}
	slices.Sort(different)
	waiting := strings.Join(different, ", ")
	if waiting != f.waiting && waiting != "" {
		f.log.WarnContext(ctx, "The configuration file has changes that take effect when the process is started again", "fields", waiting)
	}
	f.waiting = waiting
}

// fieldsOf returns the fields of a configuration that need a restart, by name.
func fieldsOf(c any) (fields map[string]json.RawMessage) {
	data, err := json.Marshal(c)
	if err != nil || json.Unmarshal(data, &fields) != nil {
		return nil
	}
	for _, name := range reloadableFields {
		delete(fields, name)
	}
	return fields
}

// WatchManagerConfig returns the suspend switch of a manager's configuration. From now on until ctx is done, it applies
// the reloadable fields: first those of c, and then those of the changed file.
func WatchManagerConfig(ctx context.Context, f *Flags, c *configv1alpha1.ManagerConfiguration, log *Log) *installation.Suspension {
	log.applyLevel(ctx, &c.Log)
	suspend := &installation.Suspension{}
	suspend.Set(c.Suspend)
	live := &configWatcher[*configv1alpha1.ManagerConfiguration]{path: f.Config, load: config.Manager, apply: reloadManager(log, suspend), log: log.Logger}
	go live.watch(ctx, clock.RealClock{})
	return suspend
}

// WatchAPIServerConfig does the same for an apiserver, whose only reloadable field is the log level.
func WatchAPIServerConfig(ctx context.Context, f *Flags, c *configv1alpha1.APIServerConfiguration, log *Log) {
	apply := func(ctx context.Context, c *configv1alpha1.APIServerConfiguration) { log.applyLevel(ctx, &c.Log) }
	apply(ctx, c)
	live := &configWatcher[*configv1alpha1.APIServerConfiguration]{path: f.Config, load: config.APIServer, apply: apply, log: log.Logger}
	go live.watch(ctx, clock.RealClock{})
}

// reloadManager returns a function that applies the reloadable fields of a manager's configuration.
func reloadManager(log *Log, stop *installation.Suspension) func(ctx context.Context, c *configv1alpha1.ManagerConfiguration) {
	return func(ctx context.Context, c *configv1alpha1.ManagerConfiguration) {
		log.applyLevel(ctx, &c.Log)
		if !stop.Set(c.Suspend) {
			return
		}
		if c.Suspend {
			log.WarnContext(ctx, "Herald is suspended by its configuration: posts are accepted and prepared, and nothing is published")
			return
		}
		log.WarnContext(ctx, "Herald is no longer suspended by its configuration: due posts are published")
	}
}
