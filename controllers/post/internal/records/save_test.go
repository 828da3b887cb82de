// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/must"
)

// silentBucket returns a bucket in a store that does not respond.
func silentBucket(t *testing.T) *store.Store {
	t.Helper()
	bucket, err := store.New(store.Config{Endpoint: "127.0.0.1:1", Insecure: true, Bucket: "media", AccessKey: "a", SecretKey: "b"})
	must.Succeed(t, err)
	return bucket
}

// someArchive configures an archive that is never used.
func someArchive(t *testing.T) *Config {
	t.Helper()
	return &Config{Archive: archive.New(silentBucket(t))}
}

// TestSaveWithoutArchive checks that SaveRecord returns ErrNotRecorded. Otherwise its caller would delete a post that
// has no record.
func TestSaveWithoutArchive(t *testing.T) {
	bucket := silentBucket(t)
	deleted := metav1.Now()
	for name, tc := range map[string]struct {
		reason string
		owner  *v1alpha1.Team
		files  *store.Store
	}{
		"without a Team":                  {"records belong to Teams", nil, bucket},
		"of a Team that is being deleted": {"the records of a deleted Team are deleted with it", &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "acme", DeletionTimestamp: &deleted}}, bucket},
		"without a bucket":                {"records have nowhere to go", &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}, store.None()},
	} {
		t.Run(name, func(t *testing.T) {
			o := &Options{Clock: clocktesting.NewFakeClock(deleted.Time), Failpoint: func(string) {}, Records: &Config{
				Archive: archive.New(tc.files), Owner: func(context.Context, string) (*v1alpha1.Team, error) { return tc.owner, nil },
			}}
			post := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "launch"}, Status: v1alpha1.PostStatus{Finished: true}}
			err := New(o).Save(t.Context(), post)
			if !errors.Is(err, ErrNotRecorded) || !strings.Contains(err.Error(), "acme/launch") {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

// TestUnsaved: a record counts as unsaved from its first failure until a success.
func TestUnsaved(t *testing.T) {
	rs := New(&Options{Clock: clocktesting.NewFakeClock(metav1.Now().Time)})
	one, two := types.NamespacedName{Namespace: "acme", Name: "one"}, types.NamespacedName{Namespace: "acme", Name: "two"}
	for _, tc := range []struct {
		reason string
		of     types.NamespacedName
		waits  bool
		want   int
	}{
		{"the store is unavailable", one, true, 1},
		{"the write is retried", one, true, 1},
		{"another one", two, true, 2},
		{"the record was saved", one, false, 1},
		{"a post that never failed", one, false, 1},
		{"the archive is up to date", two, false, 0},
	} {
		rs.trackSave(tc.of, tc.waits)
		if got := rs.Unsaved()["acme"]; got != tc.want {
			t.Errorf("%s: %d records wait, want %d", tc.reason, got, tc.want)
		}
	}
}
