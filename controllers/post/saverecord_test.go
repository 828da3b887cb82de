// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/internal/media/store"
)

// TestSaveRecordWithoutArchive checks that SaveRecord returns ErrNotRecorded. Otherwise its caller would delete a
// post that has no record.
func TestSaveRecordWithoutArchive(t *testing.T) {
	bucket, err := store.New(store.Config{Endpoint: "127.0.0.1:1", Insecure: true, Bucket: "media", AccessKey: "a", SecretKey: "b"})
	if err != nil {
		t.Fatal(err)
	}
	deleted := metav1.Now()
	for name, tc := range map[string]struct {
		reason string
		owner  *v1alpha1.Team
		files  *store.Store
	}{
		"without a Team":                  {"records belong to Teams", nil, bucket},
		"of a Team that is being deleted": {"its records go with it", &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "acme", DeletionTimestamp: &deleted}}, bucket},
		"without a bucket":                {"there is no place for it", &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}, store.None()},
	} {
		t.Run(name, func(t *testing.T) {
			o := &Options{Clock: clocktesting.NewFakeClock(deleted.Time), Failpoint: func(string) {}, Records: &Records{
				Archive: archive.New(tc.files), Owner: func(context.Context, string) (*v1alpha1.Team, error) { return tc.owner, nil },
			}}
			post := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", Name: "launch"}, Status: v1alpha1.PostStatus{Finished: true}}
			err := (&Reconciler{records: newRecords(o, nil)}).SaveRecord(t.Context(), post)
			if !errors.Is(err, ErrNotRecorded) || !strings.Contains(err.Error(), "acme/launch") {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}
