// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/must"
)

// indexer builds a client with the requested index.
type indexer struct {
	builder *fake.ClientBuilder
	err     error
}

func (i *indexer) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	i.builder.WithIndex(obj, field, extract)
	return i.err
}

// late is a client that is created after the index.
type late struct {
	client.Reader
	made func() client.WithWatch
}

func (l *late) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return l.made().List(ctx, list, opts...)
}

func TestOwner(t *testing.T) {
	t.Parallel()
	made := func(name, namespace string, seconds int) client.Object {
		return &v1alpha1.Team{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(int64(1e9+seconds), 0))},
			Spec:       v1alpha1.TeamSpec{Namespace: namespace},
		}
	}
	scheme := runtime.NewScheme()
	must.Succeed(t, v1alpha1.AddToScheme(scheme))
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		made("a", "shared", 2), made("b", "shared", 1), made("c", "shared", 1), made("d", "other", 0))
	directory, err := NewTeams(t.Context(), &late{made: sync.OnceValue(builder.Build)}, &indexer{builder: builder})
	must.Succeed(t, err)
	for namespace, tc := range map[string]struct{ reason, want string }{
		"shared": {"the oldest, and of the same second the first by name", "b"},
		"other":  {"the only one", "d"},
		"nobody": {"nobody owns it", ""},
	} {
		owner, err := directory.Owner(t.Context(), namespace)
		must.Succeed(t, err)
		got := ""
		if owner != nil {
			got = owner.Name
		}
		if got != tc.want {
			t.Errorf("%s: %q owns it, want %q: %s", namespace, got, tc.want, tc.reason)
		}
	}
}

func TestMedia(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	must.Succeed(t, v1alpha1.AddToScheme(scheme))
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.TeamSpec{Namespace: "keeps", Media: v1alpha1.TeamMedia{KeepLocation: true}}},
		&v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: v1alpha1.TeamSpec{Namespace: "says-nothing"}})
	directory, err := NewTeams(t.Context(), &late{made: sync.OnceValue(builder.Build)}, &indexer{builder: builder})
	must.Succeed(t, err)
	for namespace, want := range map[string]bool{"keeps": true, "says-nothing": false, "nobodys": false} {
		if got, err := directory.Media(t.Context(), namespace); err != nil || got.KeepLocation != want {
			t.Errorf("the team of %s keeps places: %t, want %t (%v)", namespace, got.KeepLocation, want, err)
		}
	}
}

func TestTeamsNeedTheirIndex(t *testing.T) {
	t.Parallel()
	broken := errors.New("no such kind")
	scheme := runtime.NewScheme()
	must.Succeed(t, v1alpha1.AddToScheme(scheme))
	if _, err := NewTeams(t.Context(), nil, &indexer{builder: fake.NewClientBuilder().WithScheme(scheme), err: broken}); !errors.Is(err, broken) {
		t.Errorf("error %v, want the indexer's", err)
	}
}
