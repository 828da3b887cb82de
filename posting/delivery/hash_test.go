// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

// TestContentHashStays pins the version 1 hashes. If a hash changed, all prepared content would be uploaded again; such
// a change has to use the next version.
func TestContentHashStays(t *testing.T) {
	conn := &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{UID: "uid"}, Spec: v1alpha1.ConnectionSpec{AccountID: "42"}}
	media := map[string]*v1alpha1.Media{"film": {
		Spec:   v1alpha1.MediaSpec{FileName: "film.mp4", MimeType: v1alpha1.MimeMP4},
		Status: v1alpha1.MediaStatus{SizeBytes: 1000, ETag: "e", DurationMillis: 5000},
	}}
	to := []v1alpha1.PostTarget{{Caption: "hello"}}
	offset := int32(1500)
	for _, tt := range []struct {
		name string
		spec v1alpha1.PostSpec
		want string
	}{
		{"text", v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: to}, "1-093c7ceb7d515ba8bd34376d1b061980"},
		{"video", v1alpha1.PostSpec{
			Category: v1alpha1.CategoryVideo, Targets: to,
			Video: &v1alpha1.VideoContent{MediaRef: v1alpha1.LocalReference{Name: "film"}, ThumbnailOffsetMillis: &offset},
		}, "1-a18f3cf37a08217b01cff814637f4e79"},
		{"tree", v1alpha1.PostSpec{Category: v1alpha1.CategoryTree, Targets: to, Tree: &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{Caption: "a"}, {Caption: "b"}}}}, "1-58efe1a2939c471a108139b434be17ae"},
	} {
		post := &v1alpha1.Post{Spec: tt.spec, Status: v1alpha1.PostStatus{Targets: []v1alpha1.TargetStatus{{}}}}
		if got := ContentHash(post, 0, conn, media); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
