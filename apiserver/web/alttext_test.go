// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

// withPictures returns a world with three pictures, with and without alt texts, and a draft that shows them.
func withPictures() *world {
	w := newWorld(clocktesting.NewFakeClock(now))
	w.upload("m-own", func(m *v1alpha1.Media) { m.Spec.AltText = "A rocket" })
	w.upload("m-post", func(*v1alpha1.Media) {})
	w.upload("m-none", func(*v1alpha1.Media) {})
	w.put(textPost("p-1", "text", asDraft, func(post *v1alpha1.Post) {
		post.Spec.Category, post.Spec.Image = v1alpha1.CategoryImage, &v1alpha1.ImageContent{MediaRefs: []v1alpha1.MediaReference{
			{Name: "m-own"}, {Name: "m-post", AltText: "Our launch"}, {Name: "m-none"}, {Name: "m-post", AltText: "The same again"},
		}}
	}))
	return w
}

func TestPostShowsAltTexts(t *testing.T) {
	t.Parallel()
	page := textOf(withPictures().get(t, viewer, "/teams/"+acme+"/posts/p-1"))
	for _, want := range []string{"A rocket", "Our launch", "The same again"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of a post lacks the alt text %q", want)
		}
	}
	if n := strings.Count(page, "Alt text of "); n != 3 {
		t.Errorf("the page lists %d alt texts, want one for each picture that has one", n)
	}
}

// TestAltTextFields edits a post's alt texts.
func TestAltTextFields(t *testing.T) {
	t.Parallel()
	w := withPictures()
	page := w.get(t, editor, "/teams/"+acme+"/posts/p-1/edit")
	// CSS hides the reminders of fields that are not empty.
	const ofNewFiles, ofUses = 5, 3 // the template of a part has one of its own
	if n := strings.Count(textOf(page), "Not described yet"); n != ofNewFiles+ofUses {
		t.Errorf("%d reminders, want %d: a file with its own alt text needs none", n, ofNewFiles+ofUses)
	}
	form := sent(withID(t, page, "compose"))
	if got := form["alt-image-m-post"]; !slices.Equal(got, []string{"Our launch", "The same again"}) {
		t.Errorf("the form has %q, want the texts of both uses", got)
	}
	form["alt-image-m-post"][0] = "What we launched"
	form["alt-image-m-none"] = []string{strings.Repeat("a", v1alpha1.MaxAltText+1)}
	answer := w.serve(newRequest(&editor, "/teams/"+acme+"/posts/p-1/edit", form))
	if answer.Code != http.StatusBadRequest && answer.Code != http.StatusUnprocessableEntity {
		t.Fatalf("a long alt text returned %d", answer.Code)
	}
	refused := parsed(t, answer.Body.String())
	if !strings.Contains(textOf(refused), "1001 characters are too many for an alt text") {
		t.Error("the page does not name the limit")
	}
	if again := sent(withID(t, refused, "compose")); len(again.Get("alt-image-m-none")) < v1alpha1.MaxAltText || !strings.Contains(again.Get("alt-image-m-post"), "What we launched") {
		t.Error("the form lost the entered text")
	}
	form["alt-image-m-none"] = []string{""}
	if answer := w.serve(newRequest(&editor, "/teams/"+acme+"/posts/p-1/edit", form)); answer.Code != http.StatusSeeOther {
		t.Fatalf("got %d", answer.Code)
	}
	got := w.posts[acme+"/p-1"].Spec.Image.MediaRefs
	want := []v1alpha1.MediaReference{{Name: "m-own"}, {Name: "m-post", AltText: "What we launched"}, {Name: "m-none"}, {Name: "m-post", AltText: "The same again"}}
	if !slices.Equal(got, want) {
		t.Errorf("stored %+v, want %+v", got, want)
	}
}

// TestDuplicateKeepsAltTexts opens the form for a copy of a post.
func TestDuplicateKeepsAltTexts(t *testing.T) {
	t.Parallel()
	w := withPictures()
	form := sent(withID(t, w.get(t, editor, "/teams/"+acme+"/posts/new?from=p-1"), "compose"))
	if got := readWriting(form).perFile.references("image", form["image"]); len(got) != 4 || got[1].AltText != "Our launch" || got[3].AltText != "The same again" {
		t.Errorf("the copy has %+v", got)
	}
}
