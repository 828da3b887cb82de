// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/media/probe"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/must"
	"github.com/herald-social/herald/test/storetest"
)

var noon = clocktesting.NewFakePassiveClock(time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC))

func media(uid, mimeType string, size int64) *v1alpha1.Media {
	return &v1alpha1.Media{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "m", UID: types.UID(uid), Generation: 3},
		Spec:       v1alpha1.MediaSpec{FileName: "f", MimeType: v1alpha1.MimeType(mimeType), SizeBytes: size},
		Status:     v1alpha1.MediaStatus{Phase: v1alpha1.MediaPending, UploadURL: "https://s/", UploadURLExpiresAt: v1alpha1.NewTimePtr(noon.Now())},
	}
}

func TestVerify(t *testing.T) {
	files, err := store.New(storetest.Start(t))
	must.Succeed(t, err)
	verifier := &probe.Verifier{Store: files, Clock: noon}
	picture, video := file(t, "picture.png"), file(t, "rotated.mp4")
	for name, tc := range map[string]struct {
		why      string
		data     []byte
		declared string
		size     int64
		reason   string
	}{
		"image":         {"the file matches its declaration", picture, pngType, int64(len(picture)), v1alpha1.ReasonUploaded},
		"video":         {"the file matches its declaration", video, mp4Type, int64(len(video)), v1alpha1.ReasonUploaded},
		"size unknown":  {"a source need not state a size", picture, pngType, 0, v1alpha1.ReasonUploaded},
		"another size":  {"part of a file, or another file", picture, pngType, int64(len(picture)) + 1, v1alpha1.ReasonWrongSize},
		"another type":  {"the declared type determines the platform's request", picture, jpegType, int64(len(picture)), v1alpha1.ReasonWrongType},
		"cut off":       {"a file that no viewer shows", picture[:300], pngType, 300, v1alpha1.ReasonDamaged},
		"far too large": {"the limit applies without a declared size", make([]byte, v1alpha1.MaxImageBytes+1), pngType, 0, v1alpha1.ReasonWrongSize},
	} {
		t.Run(name, func(t *testing.T) {
			m := media(name, tc.declared, tc.size)
			object, err := files.Put(t.Context(), store.Key(m), tc.declared, int64(len(tc.data)), bytes.NewReader(tc.data))
			must.Succeed(t, err)
			status, err := verifier.Verify(t.Context(), m)
			must.Succeed(t, err)
			good := tc.reason == v1alpha1.ReasonUploaded
			if got := conditions.Reason(status.Conditions); got != tc.reason || conditions.IsReady(status.Conditions) != good {
				t.Errorf("%s: got %s, %+v", tc.why, got, status.Conditions)
			}
			if (status.Phase == v1alpha1.MediaUploaded) != good || (status.Phase == v1alpha1.MediaRejected) == good {
				t.Errorf("%s: the phase is %s", tc.why, status.Phase)
			}
			if good != (status.ETag == object.ETag) || good != (status.Width > 0) {
				t.Errorf("%s: got etag %q, width %d", tc.why, status.ETag, status.Width)
			}
			if status.SizeBytes != int64(len(tc.data)) || status.ObservedGeneration != m.Generation || status.UploadURL != "" {
				t.Errorf("%s: got %+v", tc.why, status)
			}
			if m.Status.UploadURL == "" {
				t.Error("the Media itself was changed")
			}
		})
	}
	t.Run("a missing file", func(t *testing.T) {
		if _, err := verifier.Verify(t.Context(), media("none", pngType, 1)); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("got %v", err)
		}
	})
}

// overwritten is a store whose file is replaced while it is examined.
type overwritten struct {
	times int
	data  []byte
}

func (o *overwritten) Stat(context.Context, string) (store.Object, error) {
	return store.Object{Size: int64(len(o.data)), ETag: "e"}, nil
}

func (o *overwritten) ReaderAt(_ context.Context, _, _ string, _ int64) io.ReaderAt {
	o.times--
	if o.times >= 0 {
		return &sparse{fail: store.ErrChanged}
	}
	return bytes.NewReader(o.data)
}

func TestVerifyWhileOverwritten(t *testing.T) {
	data := file(t, "picture.png")
	for times, want := range map[int]error{0: nil, 2: nil, 3: store.ErrChanged} {
		verifier := &probe.Verifier{Store: &overwritten{times: times, data: data}, Clock: noon}
		status, err := verifier.Verify(t.Context(), media("m", pngType, 0))
		if !errors.Is(err, want) || (err == nil) != (status.Phase == v1alpha1.MediaUploaded) {
			t.Errorf("overwritten %d times: got %s, %v", times, status.Phase, err)
		}
	}
}
