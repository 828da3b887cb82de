// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/platforms"
)

// contentEnv has a connection to each of four platforms, named after them, with low limits. Its media files are named
// after their properties: "image", "big-image", "video", "big-video", "pending", "rejected", "expired", "missing" (lost
// by the store) and "leaving" (being deleted). A connection whose name ends in "-leaving" is being deleted.
func contentEnv() Env {
	all := []v1alpha1.Category{v1alpha1.CategoryText, v1alpha1.CategoryImage, v1alpha1.CategoryVideo, v1alpha1.CategoryTree}
	limits := map[v1alpha1.Platform]platforms.Capabilities{
		v1alpha1.PlatformX: {
			Categories: all, MaxCaption: 10, CaptionUnit: "characters", CaptionLength: utf8.RuneCountInString, MaxImages: 2, MaxVideoBytes: 500,
			CaptionProblem: func(text string) string {
				if strings.TrimSpace(text) == "" {
					return "is blank"
				}
				return ""
			},
			Card: platforms.CardLimits{MaxItems: 2, MaxVideos: 1, MaxImageBytes: 50, MaxVideoBytes: 500},
		},
		v1alpha1.PlatformThreads: {
			Categories: all, MaxCaption: 20, CaptionUnit: "characters", CaptionLength: utf8.RuneCountInString, MaxImages: 4,
			Card: platforms.CardLimits{MaxItems: 4, MaxVideos: 4, Mixed: true, MaxImageBytes: 80},
		},
		v1alpha1.PlatformInstagram: {Categories: all[1:3], MaxImages: 3},
		v1alpha1.PlatformYouTube: {
			Categories: all[2:3], MaxTitle: 5, TitleLength: utf8.RuneCountInString,
			TitleProblem: func(title string) string {
				if strings.Contains(title, "<") {
					return "contains <"
				}
				return ""
			},
		},
	}
	media := map[string]*v1alpha1.Media{}
	file := func(name string, kind v1alpha1.MimeType, size int64, phase v1alpha1.MediaPhase) *v1alpha1.Media {
		m := &v1alpha1.Media{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.MediaSpec{MimeType: kind, SizeBytes: 1}}
		m.Status.Phase, m.Status.SizeBytes = phase, size
		media[name] = m
		return m
	}
	file("image", v1alpha1.MimePNG, 40, v1alpha1.MediaUploaded)
	file("big-image", v1alpha1.MimePNG, 60, v1alpha1.MediaUploaded)
	file("video", v1alpha1.MimeMP4, 400, v1alpha1.MediaUploaded).Status.DurationMillis = 2000
	file("big-video", v1alpha1.MimeMP4, 600, v1alpha1.MediaUploaded)
	file("full-image", v1alpha1.MimePNG, 50, v1alpha1.MediaUploaded)
	file("full-video", v1alpha1.MimeMP4, 500, v1alpha1.MediaUploaded)
	file("pending", v1alpha1.MimePNG, 0, v1alpha1.MediaPending)
	file("rejected", v1alpha1.MimePNG, 0, v1alpha1.MediaRejected)
	file("expired", v1alpha1.MimePNG, 0, v1alpha1.MediaExpired)
	file("leaving", v1alpha1.MimePNG, 40, v1alpha1.MediaUploaded).DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	conditions.Apply(&file("missing", v1alpha1.MimePNG, 40, v1alpha1.MediaUploaded).Status.Conditions,
		conditions.Summary{Reason: v1alpha1.ReasonFileMissing, Message: "lost", Progress: conditions.Stuck}, 1, time.Unix(1, 0))
	return Env{
		Connection: func(name string) *v1alpha1.Connection {
			name, leaving := strings.CutSuffix(strings.TrimSuffix(name, "-2"), "-leaving")
			platform := v1alpha1.Platform(name)
			if _, ok := limits[platform]; !ok {
				return nil
			}
			c := &v1alpha1.Connection{Spec: v1alpha1.ConnectionSpec{Platform: platform}}
			if leaving {
				c.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			}
			return c
		},
		Media:        func(name string) *v1alpha1.Media { return media[name] },
		Capabilities: func(p v1alpha1.Platform) (platforms.Capabilities, bool) { l, ok := limits[p]; return l, ok },
	}
}

func refs(names ...string) []v1alpha1.MediaReference {
	var out []v1alpha1.MediaReference
	for _, name := range names {
		out = append(out, v1alpha1.MediaReference{Name: name})
	}
	return out
}

// to returns targets with a caption.
func to(names ...string) []v1alpha1.PostTarget {
	var out []v1alpha1.PostTarget
	for _, name := range names {
		out = append(out, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: name}, Caption: "fine"})
	}
	return out
}

// says returns a target with this caption.
func says(name, caption string) []v1alpha1.PostTarget {
	out := to(name)
	out[0].Caption = caption
	return out
}

// bare returns targets without a caption, as in a tree.
func bare(names ...string) []v1alpha1.PostTarget {
	out := to(names...)
	for i := range out {
		out[i].Caption = ""
	}
	return out
}

func images(targets []v1alpha1.PostTarget, names ...string) v1alpha1.PostSpec {
	return v1alpha1.PostSpec{Category: v1alpha1.CategoryImage, Image: &v1alpha1.ImageContent{MediaRefs: refs(names...)}, Targets: targets}
}

func video(targets []v1alpha1.PostTarget, name string, at ...int32) v1alpha1.PostSpec {
	content := &v1alpha1.VideoContent{MediaRef: v1alpha1.MediaReference{Name: name}}
	for _, millis := range at {
		content.ThumbnailOffsetMillis = &millis
	}
	return v1alpha1.PostSpec{Category: v1alpha1.CategoryVideo, Video: content, Targets: targets}
}

func card(caption string, media ...string) v1alpha1.TreeCard {
	return v1alpha1.TreeCard{Caption: caption, MediaRefs: refs(media...)}
}

func tree(targets []v1alpha1.PostTarget, cards ...v1alpha1.TreeCard) v1alpha1.PostSpec {
	return v1alpha1.PostSpec{Category: v1alpha1.CategoryTree, Tree: &v1alpha1.TreeContent{Cards: cards}, Targets: targets}
}

// described sets the alt text of a post's first file.
func described(spec v1alpha1.PostSpec, altText string) v1alpha1.PostSpec {
	switch {
	case spec.Image != nil:
		spec.Image.MediaRefs[0].AltText = altText
	case spec.Video != nil:
		spec.Video.MediaRef.AltText = altText
	default:
		spec.Tree.Cards[0].MediaRefs[0].AltText = altText
	}
	return spec
}

func draft(spec v1alpha1.PostSpec) v1alpha1.PostSpec {
	spec.Draft = true
	return spec
}

func titled(title string) []v1alpha1.PostTarget {
	out := to("youtube")
	out[0].YouTube = &v1alpha1.YouTubeOptions{Title: title}
	return out
}

// TestFiles checks the number of files. A tree of a hundred full cards on Threads is the largest post that a platform
// shows. In a draft, the schema allows more.
func TestFiles(t *testing.T) {
	env := contentEnv()
	env.Media = func(name string) *v1alpha1.Media {
		m := &v1alpha1.Media{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.MediaSpec{MimeType: v1alpha1.MimePNG, SizeBytes: 1}}
		m.Status.Phase = v1alpha1.MediaUploaded
		return m
	}
	limits := env.Capabilities
	env.Capabilities = func(p v1alpha1.Platform) (platforms.Capabilities, bool) {
		l, ok := limits(p)
		l.Card.MaxItems = 20
		return l, ok
	}
	cards := func(each ...int) (out []v1alpha1.TreeCard) {
		n := 0
		for _, count := range each {
			var names []string
			for range count {
				names = append(names, fmt.Sprintf("m%d", n))
				n++
			}
			out = append(out, card("", names...))
		}
		return out
	}
	full := slices.Repeat([]int{20}, 100)
	for _, tt := range []struct {
		name, reason string
		spec         v1alpha1.PostSpec
		want         string
	}{
		{"a hundred full cards", "the page can show them all", tree(bare("threads"), cards(full...)...), ""},
		{
			"one card too many", "no platform shows as many", draft(tree(bare("threads"), cards(append(full[:99:99], 21)...)...)),
			"spec.tree.cards: Invalid value: 2001: the post names 2001 different media files, and can name at most 2000; create several posts of it",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if err := Validate(&v1alpha1.Post{Spec: tt.spec}, env).ToAggregate(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s:\n%s", tt.reason, diff)
			}
		})
	}
}

func TestContent(t *testing.T) {
	const imageRefs = "spec.image.mediaRefs"
	for _, tt := range []struct {
		name, reason string
		spec         v1alpha1.PostSpec
		want         []string
	}{
		{"one image", "the post is valid", images(to("x"), "image"), nil},
		{"the same image twice", "a file may be repeated", images(to("x"), "image", "image"), nil},
		{"no image", "media_ids is required", images(to("x")), []string{"Required " + imageRefs}},
		{"no image, draft", "in drafts too", draft(images(to("x"))), []string{"Required " + imageRefs}},
		{"strictest target", "the cap is that of the strictest chosen target", images(to("instagram", "threads", "x"), "image", "image", "image"), []string{"Invalid " + imageRefs}},
		{"strictest target first", "the order of targets does not matter", images(to("x", "threads"), "image", "image", "image"), []string{"Invalid " + imageRefs}},
		{"strictest target, draft", "counts are not postponed outside trees", draft(images(to("x"), "image", "image", "image")), []string{"Invalid " + imageRefs}},
		{"enough for all", "three images are too many for x only", images(to("instagram", "threads"), "image", "image", "image"), nil},
		{"unknown media", "the media may be created later", images(to("x"), "gone"), []string{"NotFound " + imageRefs + "[0].name"}},
		{"unknown media, draft", "drafts name media that exist", draft(images(to("x"), "gone")), []string{"NotFound " + imageRefs + "[0].name"}},
		{"not uploaded", "the media may be uploaded later", images(to("x"), "image", "pending"), []string{"NotFound " + imageRefs + "[1].name"}},
		{"being deleted", "the media will not exist", images(to("x"), "leaving"), []string{"NotFound " + imageRefs + "[0].name"}},
		{"missing", "the media may be restored, but cannot be posted until then", images(to("x"), "missing"), []string{"NotFound " + imageRefs + "[0].name"}},
		{"missing, draft", "the draft names existing media", draft(images(to("x"), "missing")), []string{"NotFound " + imageRefs + "[0].name"}},
		{"rejected", "a rejected file never becomes valid", images(to("x"), "rejected"), []string{"Invalid " + imageRefs + "[0].name"}},
		{"expired", "the media will never be uploaded", images(to("x"), "expired"), []string{"Invalid " + imageRefs + "[0].name"}},
		{"a video among images", "an image post can contain only images", images(to("x"), "video"), []string{"Invalid " + imageRefs + "[0].name"}},
		{"images to a video platform", "the platform does not have such posts", images(to("youtube"), "image"), []string{"Invalid spec.targets[0].connectionRef.name", "Required spec.targets[0].youtube.title"}},

		{"an alt text of the longest", "the limit itself is allowed, in characters of any width", described(images(to("x"), "image"), strings.Repeat("é", v1alpha1.MaxAltText)), nil},
		{"a longer alt text", "the platforms would reject the alt text", described(images(to("x"), "image"), strings.Repeat("a", v1alpha1.MaxAltText+1)), []string{"Invalid " + imageRefs + "[0].altText"}},
		{"a longer alt text, draft", "limits are not postponed outside trees", draft(described(images(to("x"), "image"), strings.Repeat("a", v1alpha1.MaxAltText+1))), []string{"Invalid " + imageRefs + "[0].altText"}},
		{"a longer alt text of a video", "a video has the same limit", described(video(to("x"), "video"), strings.Repeat("a", v1alpha1.MaxAltText+1)), []string{"Invalid spec.video.mediaRef.altText"}},
		{"a longer alt text of a missing file", "both problems are reported together", described(images(to("x"), "gone"), strings.Repeat("a", v1alpha1.MaxAltText+1)), []string{"Invalid " + imageRefs + "[0].altText", "NotFound " + imageRefs + "[0].name"}},
		{"a longer alt text on a card", "a card has the same limit", described(tree(bare("x"), card("one", "image"), card("two")), strings.Repeat("a", v1alpha1.MaxAltText+1)), []string{"Invalid spec.tree.cards[0].mediaRefs[0].altText"}},
		{"an alt text with NUL", "platforms cannot show it", described(images(to("x"), "image"), "a\x00"), []string{"Invalid " + imageRefs + "[0].altText"}},
		{"an alt text for YouTube", "YouTube ignores alt texts", described(video(titled("Title"), "video"), "a rocket"), nil},

		{"a connection being deleted", "the connection will not exist", images(to("x-leaving"), "image"), []string{"NotFound spec.targets[0].connectionRef.name"}},

		{"a video", "the post is valid", video(to("x"), "video"), nil},
		{"no video", "media_id is required, in drafts too", draft(video(to("x"), "")), []string{"Required spec.video.mediaRef.name"}},
		{"an image as a video", "a video post needs a video", video(to("x"), "image"), []string{"Invalid spec.video.mediaRef.name"}},
		{"too large for one", "X does not accept such a file", video(to("instagram", "x"), "big-video"), []string{"Invalid spec.video.mediaRef.name"}},
		{"X's maximum size", "the limit is inclusive", video(to("x"), "full-video"), nil},
		{"large, but not for these", "other platforms have no lower limit", video(to("instagram", "threads"), "big-video"), nil},
		{"thumbnail at the end", "the last moment is valid", video(to("x"), "video", 2000), nil},
		{"thumbnail time after the end", "the film is shorter", video(to("x"), "video", 2001), []string{"Invalid spec.video.thumbnailOffsetMillis"}},
		{"thumbnail, length unknown", "the platform checks it", video(to("threads"), "big-video", 90000), nil},
		{"youtube", "the post is valid", video(titled("Title"), "video"), nil},
		{"youtube without a title", "youtube_title is required", video(to("youtube"), "video"), []string{"Required spec.targets[0].youtube.title"}},
		{"youtube draft without a title", "a draft may omit the title", draft(video(to("youtube"), "video")), nil},
		{"title too long", "YouTube would reject the title", draft(video(titled("Titles"), "video")), []string{"Invalid spec.targets[0].youtube.title"}},
		{"title with a bracket", "YouTube would reject the title", video(titled("a<b"), "video"), []string{"Invalid spec.targets[0].youtube.title"}},
		{"a title with NUL", "platforms cannot show it", draft(video(titled("a\x00b"), "video")), []string{"Invalid spec.targets[0].youtube.title"}},
		{"a caption with NUL", "platforms cannot show it", func() v1alpha1.PostSpec {
			spec := draft(images(to("x", "gone"), "image"))
			spec.Targets[0].Caption, spec.Targets[1].Caption = "a\x00", "\x00"
			return spec
		}(), []string{"Invalid spec.targets[0].caption", "Invalid spec.targets[1].caption", "NotFound spec.targets[1].connectionRef.name"}},
		{"title for another platform", "the other platform ignores the title", func() v1alpha1.PostSpec {
			targets := titled("far too long a title")
			targets[0].ConnectionRef.Name = "x"
			return video(targets, "video")
		}(), nil},

		{"a tree", "cards need text or media", tree(bare("x", "threads"), card("one"), card("", "image")), nil},
		{"one card", "a tree that is published has two", tree(bare("x"), card("one")), []string{"Invalid spec.tree.cards"}},
		{"one card, draft", "a draft may have one card", draft(tree(bare("x"), card("one"))), nil},
		{"no card, draft", "a tree needs cards", draft(tree(bare("x"))), []string{"Required spec.tree.cards"}},
		{"an empty card", "a card needs content", tree(bare("x"), card("one"), card("")), []string{"Required spec.tree.cards[1]"}},
		{"an empty card, draft", "the card may be filled later", draft(tree(bare("x"), card("one"), card(""))), nil},
		{"a card too long for one", "each chosen target's limit counts", tree(bare("x", "threads"), card("01234567890"), card("two")), []string{"Invalid spec.tree.cards[0].caption"}},
		{"a card too long for both", "each limit is reported", tree(bare("x", "threads"), card("012345678901234567890"), card("two")), []string{"Invalid spec.tree.cards[0].caption", "Invalid spec.tree.cards[0].caption"}},
		{"a card too long, draft", "lengths are postponed", draft(tree(bare("x"), card("01234567890"))), nil},
		{"the same platform twice", "its limits are reported once", tree(bare("x", "x-2"), card("01234567890"), card("two")), []string{"Invalid spec.tree.cards[0].caption"}},
		{"a card with NUL, draft", "platforms cannot display it, and REST rejects it everywhere", draft(tree(bare("x"), card("one"), card("t\x00o"))), []string{"Invalid spec.tree.cards[1].caption"}},
		{"unknown media on a card", "checked always", draft(tree(bare("x"), card("one", "image", "gone"))), []string{"NotFound spec.tree.cards[0].mediaRefs[1].name"}},
		{"too many media", "X accepts two here", tree(bare("x", "threads"), card("one", "image", "image", "image"), card("two")), []string{"Invalid spec.tree.cards[0].mediaRefs"}},
		{"too many media, draft", "counts of cards are postponed", draft(tree(bare("x"), card("one", "image", "image", "image"))), nil},
		{"an image too large", "X accepts fifty bytes here", tree(bare("x", "threads"), card("one", "big-image"), card("two")), []string{"Invalid spec.tree.cards[0].mediaRefs[0].name"}},
		{"an image of X's maximum size", "the limit is inclusive", tree(bare("x"), card("one", "full-image"), card("two")), nil},
		{"a video of X's maximum size", "the limit is inclusive", tree(bare("x"), card("one", "full-video"), card("two")), nil},
		{"X's maximum number of media", "the limit is inclusive", tree(bare("x"), card("one", "image", "image"), card("two")), nil},
		{"an image too large, draft", "sizes are postponed", draft(tree(bare("x"), card("one", "big-image"))), nil},
		{"a video too large", "X accepts five hundred bytes here", tree(bare("x"), card("one", "big-video"), card("two")), []string{"Invalid spec.tree.cards[0].mediaRefs[0].name"}},
		{"mixed on threads", "images and videos may be mixed", tree(bare("threads"), card("one", "image", "video"), card("two")), nil},
		{"mixed on x", "images and video cannot be mixed", tree(bare("x"), card("one", "image", "video"), card("two")), []string{"Forbidden spec.tree.cards[0].mediaRefs"}},
		{"two videos on x", "one video at most", tree(bare("x"), card("one", "video", "video"), card("two")), []string{"Invalid spec.tree.cards[0].mediaRefs"}},
		{"blanks as a text", "the platform does not accept empty posts", v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: says("x", " \n")}, []string{"Invalid spec.targets[0].caption"}},
		{"blanks as a text, draft", "texts are checked in drafts too", draft(v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: says("x", " \n")}), []string{"Invalid spec.targets[0].caption"}},
		{"blanks next to images", "blanks count as no text", images(says("x", " \n"), "image"), nil},
		{"many blanks next to a video", "many blanks count as no text", video(says("x", strings.Repeat(" ", 11)), "video"), nil},
		{"no caption next to images", "the contract requires at least one character", images(says("x", ""), "image"), []string{"Required spec.targets[0].caption"}},
		{"a card of blanks", "the platform does not accept empty cards", tree(bare("x"), card("one"), card("\t")), []string{"Invalid spec.tree.cards[1].caption"}},
		{"a card of blanks and media", "a card needs text or media", tree(bare("x"), card("one"), card("\t", "image")), nil},
		{"a connection twice", "outside trees only", tree(bare("x", "x"), card("one"), card("two")), []string{"Duplicate spec.targets[1].connectionRef.name"}},
		{"a connection twice, draft", "checked always", draft(tree(bare("x", "x"), card("one"))), []string{"Duplicate spec.targets[1].connectionRef.name"}},
		{"a platform without trees, draft", "trees have platform limits in drafts too", draft(tree(bare("instagram"), card("one"))), []string{"Invalid spec.targets[0].connectionRef.name"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, err := range Validate(&v1alpha1.Post{Spec: tt.spec}, contentEnv()) {
				got = append(got, strings.TrimPrefix(string(err.Type), "FieldValue")+" "+err.Field)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s:\n%s", tt.reason, diff)
			}
		})
	}
}

// FuzzValidate checks that validation is deterministic and never panics.
func FuzzValidate(f *testing.F) {
	f.Add("tree", "x", "caption", "image", 3, false, int32(7))
	f.Add("video", "youtube", "", "video", 1, true, int32(-1))
	f.Add("image", "gone", "<", "", 40, false, int32(0))
	f.Fuzz(func(t *testing.T, category, connection, text, media string, n int, isDraft bool, at int32) {
		names := make([]string, min(max(n, 0), 50))
		for i := range names {
			names[i] = media
		}
		spec := v1alpha1.PostSpec{
			Category: v1alpha1.Category(category), Draft: isDraft, Targets: to(connection, connection, "x"),
			Image: &v1alpha1.ImageContent{MediaRefs: refs(names...)},
			Video: &v1alpha1.VideoContent{MediaRef: v1alpha1.MediaReference{Name: media}, ThumbnailOffsetMillis: &at},
			Tree:  &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{card(text, names...), card("", media)}},
		}
		spec.Targets[0].Caption = text
		post := &v1alpha1.Post{Spec: spec}
		first := fmt.Sprint(Validate(post, contentEnv()))
		if again := fmt.Sprint(Validate(post, contentEnv())); again != first {
			t.Errorf("two validations of the same post differ:\n%s\n%s", first, again)
		}
		Validate(post, Env{Connection: contentEnv().Connection, Capabilities: contentEnv().Capabilities})
	})
}
