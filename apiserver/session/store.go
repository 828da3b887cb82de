// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/apiserver/postindex"
)

const (
	// tries limits the attempts at a write after conflicts. Each conflict means that another write succeeded, so more
	// than a handful indicates a different problem.
	tries = 20
	// tendEvery is how often to check whether a key is due, and retryEvery how long to wait after a failure.
	tendEvery  = 10 * time.Minute
	retryEvery = 5 * time.Second
	// ownWriteWindow is how long after one of this process's writes the store ignores older versions from the watch.
	// After that, an older version comes from a restore, and is applied.
	ownWriteWindow = 10 * time.Second
	// updateTimeout is the timeout of one update, including its retries.
	updateTimeout = 10 * time.Second
)

// SecretClient accesses Secrets; the typed client of a namespace implements it.
type SecretClient interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Secret, error)
	Create(ctx context.Context, secret *corev1.Secret, options metav1.CreateOptions) (*corev1.Secret, error)
	Update(ctx context.Context, secret *corev1.Secret, options metav1.UpdateOptions) (*corev1.Secret, error)
	List(ctx context.Context, options metav1.ListOptions) (*corev1.SecretList, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// fieldOwner is the field manager of writes to the Secret.
const fieldOwner = "herald-apiserver"

type store struct {
	secrets SecretClient
	name    string
	// creates makes the store create a missing Secret.
	creates bool
	clock   clock.Clock
	log     *slog.Logger
	changed func(*state)

	current atomic.Pointer[state]
	// awake makes run call tend again.
	awake chan struct{}

	mu sync.Mutex
	// version is the resourceVersion of the Secret last applied, and wrote the time of this process's last write.
	version uint64
	wrote   time.Time
	// trouble is the error that prevents reading or writing the state.
	trouble error
	// news is closed when there is a new state.
	news chan struct{}
}

func newStore(secrets SecretClient, name string, clk clock.Clock, log *slog.Logger) *store {
	s := &store{secrets: secrets, name: name, clock: clk, log: log, changed: func(*state) {}, awake: make(chan struct{}, 1), news: make(chan struct{})}
	s.current.Store(&state{})
	return s
}

// run watches the Secret and creates keys when they are due, until ctx is done.
func (s *store) run(ctx context.Context) {
	var background sync.WaitGroup
	defer background.Wait()
	background.Go(func() { s.informer().RunWithContext(ctx) })
	for ctx.Err() == nil {
		s.tend(ctx)
		again := tendEvery
		if len(s.current.Load().keys) == 0 {
			again = retryEvery
		}
		select {
		case <-s.awake:
		case <-s.clock.After(again):
		case <-ctx.Done():
		}
	}
}

// informer watches only this Secret. The service account cannot read any other Secret.
func (s *store) informer() cache.SharedIndexInformer {
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, s.name).String()
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = only
			return s.secrets.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = only
			return s.secrets.Watch(ctx, options)
		},
	}, &corev1.Secret{}, 0, cache.Indexers{})
	// Both calls fail only if the informer has already started. A broken watch restarts by itself; tend reports a
	// Secret that cannot be read at all.
	_ = informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {})
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    s.seen,
		UpdateFunc: func(_, obj any) { s.seen(obj) },
		// The cached state is kept; tend creates the Secret again if that is allowed.
		DeleteFunc: func(any) { s.wake() },
	})
	return informer
}

func (s *store) seen(obj any) {
	secret, ok := obj.(*corev1.Secret)
	if !ok || secret.Name != s.name {
		return
	}
	if err := s.apply(secret, false); err != nil {
		s.fail(err)
	}
}

func (s *store) wake() {
	select {
	case s.awake <- struct{}{}:
	default:
	}
}

// apply replaces the state, unless this process has just written a newer Secret.
func (s *store) apply(secret *corev1.Secret, own bool) error {
	next, err := parse(secret)
	if err != nil {
		return fmt.Errorf("the Secret %s cannot be used: %w", s.name, err)
	}
	version, _ := postindex.ParseVersion(secret.ResourceVersion) // a version that is not a number counts as the oldest
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	if !own && version < s.version && now.Sub(s.wrote) < ownWriteWindow {
		return nil
	}
	if own {
		s.wrote = now
	}
	s.version = version
	if len(next.keys) == 0 {
		// The cached state is kept until there is a key.
		s.wake()
		return nil
	}
	if next.lacksSigningKey() { // an older version wrote it
		s.wake()
	}
	s.trouble = nil
	s.current.Store(next)
	s.changed(next)
	close(s.news)
	s.news = make(chan struct{})
	return nil
}

func (s *store) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.news
}

// tend creates a key if one is due, and the Secret if it is missing. If it fails, the cached state remains in use.
func (s *store) tend(ctx context.Context) {
	err := s.update(ctx, func(next *state) error {
		now := s.clock.Now()
		if !next.keyDue(now) && !next.lacksSigningKey() {
			return errUnchanged
		}
		if next.keyDue(now) {
			next.keys = append(next.keys, NewSealingKey(now))
		}
		if next.lacksSigningKey() {
			next.lasting = NewSealingKey(now).Secret
		}
		return nil
	})
	if err == nil || ctx.Err() != nil || err.Error() == s.err().Error() {
		return
	}
	s.fail(err)
	s.log.WarnContext(ctx, "The web application's Secret cannot be updated; sessions continue with the keys in memory",
		"secret", s.name, "error", err)
}

func (s *store) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble = err
}

func (s *store) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trouble == nil {
		return errors.New("it has not been read yet")
	}
	return s.trouble
}

// errUnchanged is returned by a change that has nothing to write.
var errUnchanged = errors.New("nothing to write")

// update reads the Secret, applies change, and writes the result with its resourceVersion; after a conflict it retries.
// This way, exactly one of several replicas uses a link, and all get the same keys. An error from change ends update
// without a write; for errUnchanged, update returns nil.
func (s *store) update(ctx context.Context, change func(*state) error) error {
	ctx, cancel := context.WithTimeout(ctx, updateTimeout)
	defer cancel()
	var err error
	for range tries {
		if err = s.updateOnce(ctx, change); !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	return err
}

func (s *store) updateOnce(ctx context.Context, change func(*state) error) error {
	secret, err := s.secrets.Get(ctx, s.name, metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	switch {
	case missing && s.creates:
		secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: s.name}, Type: corev1.SecretTypeOpaque}
	case err != nil:
		return fmt.Errorf("cannot read the Secret %s: %w", s.name, err)
	}
	next, err := parse(secret)
	if err != nil {
		return fmt.Errorf("the Secret %s cannot be used: %w", s.name, err)
	}
	if err := change(next); errors.Is(err, errUnchanged) {
		return s.apply(secret, false)
	} else if err != nil {
		return err
	}
	next.prune(s.clock.Now())
	secret = secret.DeepCopy()
	if err := next.store(secret); err != nil {
		return err
	}
	if missing {
		secret, err = s.secrets.Create(ctx, secret, metav1.CreateOptions{FieldManager: fieldOwner})
	} else {
		secret, err = s.secrets.Update(ctx, secret, metav1.UpdateOptions{FieldManager: fieldOwner})
	}
	if err != nil {
		return fmt.Errorf("cannot write the Secret %s: %w", s.name, err)
	}
	return s.apply(secret, true)
}
