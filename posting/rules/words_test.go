// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
)

// TestWords checks messages whose wording depends on numbers or on the Media.
func TestWords(t *testing.T) {
	env := contentEnv()
	known := env.Media
	said := func(name string, phase v1alpha1.MediaPhase, reason, message string) *v1alpha1.Media {
		media := &v1alpha1.Media{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.MediaSpec{MimeType: v1alpha1.MimePNG, SizeBytes: 60}}
		media.Status.Phase = phase
		if reason != "" {
			conditions.Apply(&media.Status.Conditions, conditions.Summary{Reason: reason, Message: message, Progress: conditions.Stuck}, 1, time.Unix(1, 0))
		}
		return media
	}
	more := map[string]*v1alpha1.Media{
		"told":        said("told", v1alpha1.MediaRejected, v1alpha1.ReasonFileChanged, "it is a picture of 1 pixel"),
		"untold":      said("untold", v1alpha1.MediaRejected, v1alpha1.ReasonFileChanged, ""),
		"overwritten": said("overwritten", v1alpha1.MediaPending, v1alpha1.ReasonBeingOverwritten, "wait"),
		"awaited":     said("awaited", v1alpha1.MediaPending, v1alpha1.ReasonFileMissing, "wait"),
		"unmeasured":  said("unmeasured", v1alpha1.MediaUploaded, "", ""),
	}
	env.Media = func(name string) *v1alpha1.Media {
		if media := more[name]; media != nil {
			return media
		}
		return known(name)
	}
	for _, tt := range []struct {
		reason string
		spec   v1alpha1.PostSpec
		want   string
	}{
		{"K:a limit of one has a singular", tree(bare("x"), card("one", "video", "video"), card("two")), "at most 1 video on a card"},
		{"K:a limit of two has a plural", images(to("x"), "image", "image", "image"), "at most 2 images;"},
		{"a video's length is shown in seconds", video(to("x"), "video", 2001), "which is 2s long;"},
		{"why a file was rejected", images(to("x"), "told"), "the file was rejected: it is a picture of 1 pixel"},
		{"the default remedy", images(to("x"), "untold"), "upload another one"},
		{"an upload over the file hinders its examination", images(to("x"), "overwritten"), "end that upload"},
		{"a file that was not uploaded", images(to("x"), "awaited"), "nothing has been uploaded yet"},
		{"the size that was promised counts until it is measured", tree(bare("x"), card("one", "unmeasured"), card("two")), "has 60 bytes; x accepts at most 50"},
	} {
		errs := Validate(&v1alpha1.Post{Spec: tt.spec}, env)
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.reason, errs, tt.want)
		}
	}
}

func TestRegistryCapabilities(t *testing.T) {
	if _, ok := (platforms.Registry{}).Capabilities(v1alpha1.PlatformX); ok {
		t.Error("an unregistered platform declares limits")
	}
	of := platforms.Registry{v1alpha1.PlatformX: fourImages{}}.Capabilities
	if got, ok := of(v1alpha1.PlatformX); !ok || got.MaxImages != 4 {
		t.Errorf("got %d images, %t, want the 4 that the platform declares", got.MaxImages, ok)
	}
}

// fourImages is a platform that has a single limit.
type fourImages struct{ platforms.Platform }

func (fourImages) Capabilities() platforms.Capabilities { return platforms.Capabilities{MaxImages: 4} }

// TestSizeAtItsLimit checks posts at the limit and one byte beyond it.
func TestSizeAtItsLimit(t *testing.T) {
	filled := func(more int) (*v1alpha1.Post, field.ErrorList) {
		post := &v1alpha1.Post{Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: to("x")}}
		post.Spec.Targets[0].Caption += strings.Repeat("a", posting.MaxPost-posting.Of(post).Size()+more)
		return post, (&validation{post: post}).size(field.NewPath("spec"))
	}
	if post, errs := filled(0); len(errs) > 0 {
		t.Errorf("%d bytes of %d: %v", posting.Of(post).Size(), posting.MaxPost, errs)
	}
	if _, errs := filled(1); len(errs) != 1 || !strings.Contains(errs[0].Detail, "shorten the captions") {
		t.Errorf("one byte too many needs a shorter caption: %v", errs)
	}
	for _, tt := range []struct {
		reason         string
		targets, cards int
	}{
		{"10,000 records do not fit", 100, 100},
		{"the records leave no room for text", 46, 96},
	} {
		crowd := &v1alpha1.Post{Spec: tree(bare(make([]string, tt.targets)...), make([]v1alpha1.TreeCard, tt.cards)...)}
		if errs := (&validation{post: crowd}).size(field.NewPath("spec")); len(errs) != 1 || !strings.Contains(errs[0].Detail, "this many cards and targets") {
			t.Errorf("%s, where a shorter text does not help: %v", tt.reason, errs)
		}
	}
}
