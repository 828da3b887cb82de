// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sessiontest keeps the web application's Secret in memory, for tests without an API server.
package sessiontest

import (
	"context"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// Name and Namespace identify the Secret.
const (
	Name      = "herald-web"
	Namespace = "herald-system"
)

// Secrets is a namespace with at most one Secret. Like the Kubernetes API, it rejects writes that are not based on the
// latest version.
type Secrets struct {
	mu       sync.Mutex
	secret   *corev1.Secret
	version  int
	watchers []*watch.RaceFreeFakeWatcher
	fail     func(verb string) error
	// writes counts successful creates and updates.
	writes int
}

// New returns a namespace with an empty Secret, as in a new installation.
func New() *Secrets {
	s := Missing()
	s.put(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: Name}})
	return s
}

// Missing returns a namespace without a Secret.
func Missing() *Secrets { return &Secrets{fail: func(string) error { return nil }} }

// Fail makes requests fail with the error that the function returns for their verb; nil ends that.
func (s *Secrets) Fail(fail func(verb string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = fail
	if fail == nil {
		s.fail = func(string) error { return nil }
	}
}

// Put replaces the data of the Secret, as a user or a tool does.
func (s *Secrets) Put(data map[string][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: Name}, Data: data})
}

// Data returns the data of the Secret.
func (s *Secrets) Data() map[string][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.secret.DeepCopy().Data
}

// Writes returns the number of successful creates and updates.
func (s *Secrets) Writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// put stores a Secret and notifies the watches.
func (s *Secrets) put(secret *corev1.Secret) *corev1.Secret {
	kind := watch.Modified
	if s.secret == nil {
		kind = watch.Added
	}
	s.version++
	s.secret = secret.DeepCopy()
	s.secret.ResourceVersion = strconv.Itoa(s.version)
	for _, watcher := range s.watchers {
		watcher.Action(kind, s.secret.DeepCopy())
	}
	return s.secret.DeepCopy()
}

var resource = schema.GroupResource{Resource: "secrets"}

// Get implements session.Secrets.
func (s *Secrets) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fail("get"); err != nil {
		return nil, err
	}
	if s.secret == nil || name != Name {
		return nil, apierrors.NewNotFound(resource, name)
	}
	return s.secret.DeepCopy(), nil
}

// Create implements session.Secrets.
func (s *Secrets) Create(_ context.Context, secret *corev1.Secret, _ metav1.CreateOptions) (*corev1.Secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fail("create"); err != nil {
		return nil, err
	}
	if s.secret != nil {
		return nil, apierrors.NewAlreadyExists(resource, secret.Name)
	}
	s.writes++
	return s.put(secret), nil
}

// Update implements session.Secrets.
func (s *Secrets) Update(_ context.Context, secret *corev1.Secret, _ metav1.UpdateOptions) (*corev1.Secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fail("update"); err != nil {
		return nil, err
	}
	if s.secret == nil {
		return nil, apierrors.NewNotFound(resource, secret.Name)
	}
	if secret.ResourceVersion != s.secret.ResourceVersion {
		return nil, apierrors.NewConflict(resource, secret.Name, nil)
	}
	s.writes++
	return s.put(secret), nil
}

// List implements session.Secrets.
func (s *Secrets) List(_ context.Context, _ metav1.ListOptions) (*corev1.SecretList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fail("list"); err != nil {
		return nil, err
	}
	list := &corev1.SecretList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version)}}
	if s.secret != nil {
		list.Items = append(list.Items, *s.secret.DeepCopy())
	}
	return list, nil
}

// Watch implements session.Secrets. It delivers only changes made after the call.
func (s *Secrets) Watch(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fail("watch"); err != nil {
		return nil, err
	}
	if options.SendInitialEvents != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
	}
	watcher := watch.NewRaceFreeFake()
	s.watchers = append(s.watchers, watcher)
	return watcher, nil
}
