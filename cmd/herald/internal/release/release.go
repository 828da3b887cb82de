// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package release removes Herald's finalizers, so that its objects can be deleted without a running manager. It does
// not change anything else: objects and the contents of the bucket are kept.
//
// A manager must not run at the same time. It would add finalizers again, and the finalizer of a published post
// protects its outcome from being lost.
package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/kubeclient"
)

// prefix is the prefix of all Herald finalizers, including finalizers of other versions.
var prefix = v1alpha1.GroupVersion.Group + "/"

const (
	// rounds limits how often all objects are read. The first round removes finalizers and the last one finds none; the
	// rounds in between handle objects that were created in the meantime.
	rounds = 5
	// maxNamed limits the object names in a message.
	maxNamed = 10

	posts = "posts"
	teams = "teams"
)

// kind is a kind of object that may have one of Herald's finalizers.
type kind struct {
	resource, name string
	// everywhere is true for a cluster-scoped kind.
	everywhere bool
}

// kinds returns the kinds in the order of their release.
func kinds() []kind {
	return []kind{{posts, "Post", false}, {"media", "Media", false}, {teams, "Team", true}}
}

// Options configures Run. Config, Clock and Out are required.
type Options struct {
	// Config reaches the Kubernetes API.
	Config *rest.Config
	// Namespaces are the namespaces of the teams whose objects are released; none means all.
	Namespaces configv1alpha1.Namespaces
	// DryRun prints the changes without making them.
	DryRun bool
	// WithoutRecords also releases posts that may have no record in the bucket: see checkRecorded.
	WithoutRecords bool
	// Clock measures the time since posts were deleted.
	Clock clock.PassiveClock
	// ActiveManager returns the identity of a manager that has started again, or "". It is called before each page of
	// objects. Nil disables the check.
	ActiveManager func(ctx context.Context) (holder string, err error)
	// Rate limits the requests per second; 0 means no limit.
	Rate int
	// Out receives the progress.
	Out io.Writer
}

type run struct {
	Options

	metadata metadata.Interface
	dynamic  dynamic.Interface
	// released counts the released objects by resource.
	released map[string]int
	// owned returns the namespaces of Teams that are not being deleted.
	owned func() (map[string]bool, error)

	mu sync.Mutex
	// terminating caches whether namespaces are being deleted.
	terminating map[string]bool
	// goneNames are the posts that were deleted when their finalizer was removed.
	goneNames []string
}

// Run removes the finalizers. It returns nil only if no object has one left, or after a dry run. It can be interrupted
// and repeated.
func Run(ctx context.Context, o Options) error {
	r, err := newRun(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(r.all(ctx), r.reportGone())
}

// all reads and releases objects until none has a finalizer.
func (r *run) all(ctx context.Context) error {
	for range rounds {
		found, err := r.round(ctx)
		switch {
		case err != nil:
			return err
		case r.DryRun:
			_, err = fmt.Fprintf(r.Out, "%d objects have a finalizer of Herald%s; nothing was changed\n", found, r.where())
			return err
		case found == 0:
			return r.sum()
		}
	}
	return errors.New("objects get new finalizers of Herald while the old ones are removed: something still creates or changes posts; " +
		"scale Herald's manager and apiserver to 0, wait until their pods have ended, and run this again")
}

func newRun(ctx context.Context, o Options) (*run, error) {
	config := rest.CopyConfig(o.Config)
	config.QPS, config.Burst = float32(o.Rate), max(o.Rate, atOnce)
	if o.Rate == 0 {
		config.QPS = -1
	}
	config.Wrap(kubeclient.WrapTransport)
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client for the Kubernetes API: %w", err)
	}
	whole, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client for Teams: %w", err)
	}
	r := &run{Options: o, metadata: meta, dynamic: whole, released: map[string]int{}, terminating: map[string]bool{}}
	r.owned = sync.OnceValues(func() (map[string]bool, error) { return r.readOwned(ctx) })
	return r, nil
}

// round reads the objects of all kinds once, removes their finalizers, and returns the number of objects that had one.
// An error for one object does not affect the others.
func (r *run) round(ctx context.Context) (found int, err error) {
	var failed []error
	for _, k := range kinds() {
		here, problems, err := r.releaseKind(ctx, k)
		if err != nil {
			return 0, err
		}
		found += here
		failed = append(failed, problems...)
	}
	if len(failed) == 0 {
		return found, nil
	}
	many := len(failed)
	failed = append(failed[:min(many, maxNamed)], fmt.Errorf("%d of %d objects still have a finalizer of Herald%s; fix the reported errors and run this again: objects that were released remain so", many, found, r.where()))
	return found, errors.Join(failed...)
}

func (r *run) sum() error {
	_, err := fmt.Fprintf(r.Out, "finalizers removed: %s\nno object has a finalizer of Herald%s\n", r.done(), r.where())
	return err
}

func (r *run) done() string {
	var done []string
	for _, k := range kinds() {
		done = append(done, fmt.Sprintf("%s %d", k.resource, r.released[k.resource]))
	}
	return strings.Join(done, ", ")
}

// Stopped is the error that a manager has started again.
type Stopped struct{ holder, done string }

func (s *Stopped) Error() string {
	return fmt.Sprintf("stopped: the manager %s works again and adds the finalizers that this removes; finalizers removed so far: %s. "+
		"To keep Herald, do nothing more: the manager continues with all objects. To uninstall it, scale its Deployment to 0, make sure that nothing "+
		"scales it up again, such as a GitOps tool, and run this again", s.holder, s.done)
}

// checkStopped returns a Stopped error if a manager has started again.
func (r *run) checkStopped(ctx context.Context) error {
	if r.ActiveManager == nil {
		return nil
	}
	holder, err := r.ActiveManager(ctx)
	if err == nil && holder != "" {
		err = &Stopped{holder, r.done()}
	}
	return err
}

func (r *run) where() string {
	if len(r.Namespaces) == 0 {
		return ""
	}
	return " in " + strings.Join(r.Namespaces, ", ")
}

// split separates Herald's finalizers from the others, which are not changed.
func split(finalizers []string) (ours, others []string) {
	for _, f := range finalizers {
		if strings.HasPrefix(f, prefix) {
			ours = append(ours, f)
		} else {
			others = append(others, f)
		}
	}
	return ours, slices.Clip(others)
}
