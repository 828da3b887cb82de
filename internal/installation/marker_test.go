// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package installation_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/internal/installation"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/must"
	"github.com/herald-social/herald/test/storetest"
)

var now = time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)

func cluster(uid string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return uid, nil }
}

// TestMarker follows one bucket through its owners, in the real store.
func TestMarker(t *testing.T) {
	files, err := store.New(storetest.Start(t))
	must.Succeed(t, err)
	may := func(own, from string) error {
		return installation.New(files, cluster(own), from, clocktesting.NewFakePassiveClock(now)).MayDelete(t.Context())
	}
	for _, step := range []struct {
		name, own, from string
		// others is the bucket's owner, if that is not the caller.
		others string
	}{
		{"the first cluster becomes the owner of a new bucket", "one", "", ""},
		{"the owner may sweep the bucket again", "one", "", ""},
		{"a second cluster is rejected", "two", "", "one"},
		{"an administrator's entry of a third cluster is ignored", "two", "three", "one"},
		{"an administrator may name the cluster to replace", "two", "one", ""},
		{"the setting may stay in the configuration", "two", "one", ""},
		{"the replaced cluster is rejected", "one", "", "two"},
		{"the first cluster is rejected, whatever earlier owner it names", "one", "zero", "two"},
	} {
		err := may(step.own, step.from)
		var others *installation.ForeignBucketError
		switch {
		case step.others == "" && err != nil:
			t.Errorf("%s: %v", step.name, err)
		case step.others != "" && (!errors.As(err, &others) || others.Cluster != step.others || !strings.Contains(err.Error(), "takeOverFrom: "+step.others)):
			t.Errorf("%s: %v, want that the bucket belongs to %s, and the remedy", step.name, err, step.others)
		}
	}
	data, etag, err := files.ReadDocument(t.Context(), installation.Key, "", 1<<10)
	must.Succeed(t, err)
	var marker installation.Marker
	if err := json.Unmarshal(data, &marker); err != nil || marker != (installation.Marker{Cluster: "two", Since: now, Before: "one"}) {
		t.Errorf("the marker is %s, %v", data, err)
	}
	for _, text := range []string{"not a marker", `{}`} {
		if etag, err = files.PutDocument(t.Context(), installation.Key, "application/json", []byte(text), etag); err != nil {
			t.Fatal(err)
		}
		if err := may("two", ""); err == nil || !strings.Contains(err.Error(), installation.Key) {
			t.Errorf("a marker with %q returned %v; files of an unknown owner must not be deleted", text, err)
		}
	}
}

// TestMarkerWithoutStore checks that an installation without a store is not restricted.
func TestMarkerWithoutStore(t *testing.T) {
	if err := installation.New(store.None(), cluster("one"), "", clocktesting.NewFakePassiveClock(now)).MayDelete(t.Context()); err != nil {
		t.Error(err)
	}
}

// raced is a store that another cluster writes to between each read and write.
type raced struct {
	installation.Documents
	others int
}

func (r *raced) PutDocument(ctx context.Context, key, mimeType string, data []byte, etag string) (string, error) {
	if r.others > 0 {
		r.others--
		if _, err := r.Documents.PutDocument(ctx, key, mimeType, []byte(`{"cluster":"two"}`), store.Any); err != nil {
			return "", err
		}
	}
	return r.Documents.PutDocument(ctx, key, mimeType, data, etag)
}

// TestRace checks that if two clusters claim a bucket at the same time, only one gets it.
func TestRace(t *testing.T) {
	files, err := store.New(storetest.Start(t))
	must.Succeed(t, err)
	err = installation.New(&raced{Documents: files, others: 1}, cluster("one"), "", clocktesting.NewFakePassiveClock(now)).MayDelete(t.Context())
	var others *installation.ForeignBucketError
	if !errors.As(err, &others) || others.Cluster != "two" {
		t.Errorf("%v, want that the bucket belongs to the faster cluster", err)
	}
}

// TestUnknownCluster checks that nothing is removed while the identity of this cluster is unknown.
func TestUnknownCluster(t *testing.T) {
	away := errors.New("the API server is unavailable")
	own := func(context.Context) (string, error) { return "", away }
	if err := installation.New(store.None(), own, "", clocktesting.NewFakePassiveClock(now)).MayDelete(t.Context()); !errors.Is(err, away) {
		t.Error(err)
	}
}
