// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package release takes Herald's finalizers off, so that what was made of its kinds can be
// deleted where no manager runs. It changes nothing else: objects stay, and so does what the
// bucket holds.
//
// A manager must not run meanwhile. It would put finalizers on again, and those of posts
// that it publishes are what keeps their outcome from being lost.
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
	"github.com/herald-social/herald/internal/pager"
)

// prefix begins the names of all of Herald's finalizers, also of those of other versions.
var prefix = v1alpha1.GroupVersion.Group + "/"

const (
	// rounds is how often all objects are read at most. The first round takes finalizers
	// off, the last one finds none; those between are for what was made meanwhile.
	rounds = 5
	// maxNamed is how many objects are named of those whose finalizer could not be taken off.
	maxNamed = 10

	posts = "posts"
	teams = "teams"
)

// kind is a kind of objects that have a finalizer of Herald.
type kind struct {
	resource, name string
	// everywhere is set if its objects are in no namespace.
	everywhere bool
}

// kinds are in the order in which they are released.
func kinds() []kind {
	return []kind{{posts, "Post", false}, {"media", "Media", false}, {teams, "Team", true}}
}

// Options are what Run needs. Config, Clock and Out are required.
type Options struct {
	// Config reaches the Kubernetes API.
	Config *rest.Config
	// Namespaces are those of the teams whose objects are released; none for all.
	Namespaces configv1alpha1.Namespaces
	// DryRun has it said what would be done, and nothing done.
	DryRun bool
	// WithoutRecords lets posts go too whose record may be in no bucket: see stays.
	WithoutRecords bool
	// Clock tells how long posts have been deleted.
	Clock clock.PassiveClock
	// ActiveManager returns who works as Herald's manager again, and "" if nobody does. It is asked
	// before each page of objects is released; nil has nobody look.
	ActiveManager func(ctx context.Context) (holder string, err error)
	// Rate is how many requests a second are made at most; 0 leaves it to the API.
	Rate int
	// Out is told what is done.
	Out io.Writer
}

// run is one call of Run.
type run struct {
	Options

	metadata metadata.Interface
	dynamic  dynamic.Interface
	// released counts the objects that were released, by the resource.
	released map[string]int
	// owned are the namespaces of Teams that are not being deleted.
	owned func() (map[string]bool, error)

	mu sync.Mutex
	// terminating remembers of namespaces whether they are being deleted.
	terminating map[string]bool
	// goneNames are posts that went with their finalizer.
	goneNames []string
}

// Run takes the finalizers off. It returns no error only if no object has one any more, or
// after a dry run. It can be ended at any time, and run again.
func Run(ctx context.Context, o Options) error {
	r, err := newRun(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(r.all(ctx), r.reportGone())
}

// all reads and releases until nothing is left.
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
	return errors.New("objects get finalizers of Herald while they are taken off: something still makes or changes posts; " +
		"scale Herald's manager and apiserver to 0, wait until their pods have ended, and run this again")
}

func newRun(ctx context.Context, o Options) (*run, error) {
	config := rest.CopyConfig(o.Config)
	config.QPS, config.Burst = float32(o.Rate), max(o.Rate, atOnce)
	if o.Rate == 0 {
		config.QPS = -1
	}
	config.Wrap(pager.WrapTransport)
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for the Kubernetes API: %w", err)
	}
	whole, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for Teams: %w", err)
	}
	r := &run{Options: o, metadata: meta, dynamic: whole, released: map[string]int{}, terminating: map[string]bool{}}
	r.owned = sync.OnceValues(func() (map[string]bool, error) { return r.readOwned(ctx) })
	return r, nil
}

// round reads the objects of all kinds once, takes finalizers off those that have one, and
// returns how many had. What fails for one object does not keep others from being released.
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
	failed = append(failed[:min(many, maxNamed)], fmt.Errorf("%d of %d objects still have a finalizer of Herald%s; mend what the errors say, and run this again: what is done stays done", many, found, r.where()))
	return found, errors.Join(failed...)
}

// sum tells what was done.
func (r *run) sum() error {
	_, err := fmt.Fprintf(r.Out, "finalizers taken off: %s\nno object has a finalizer of Herald any more%s\n", r.done(), r.where())
	return err
}

// done is how many objects were released, by their kinds.
func (r *run) done() string {
	var done []string
	for _, k := range kinds() {
		done = append(done, fmt.Sprintf("%s %d", k.resource, r.released[k.resource]))
	}
	return strings.Join(done, ", ")
}

// Stopped says that a manager works again.
type Stopped struct{ holder, done string }

func (s *Stopped) Error() string {
	return fmt.Sprintf("stopped: the manager %s works again, and puts on what this takes off; finalizers taken off so far: %s. "+
		"To keep Herald, leave it at that: the manager goes on with all objects. To uninstall it, scale its Deployment to 0, see that nothing "+
		"scales it up again, such as a GitOps tool, and run this again", s.holder, s.done)
}

// checkStopped returns a Stopped if a manager works again.
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

// where says which namespaces are meant, if not all are.
func (r *run) where() string {
	if len(r.Namespaces) == 0 {
		return ""
	}
	return " in " + strings.Join(r.Namespaces, ", ")
}

// split parts Herald's finalizers from those of others, which stay as they are.
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
