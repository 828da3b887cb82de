// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/attempt"
)

func refs(names ...string) (refs []v1alpha1.MediaReference) {
	for _, name := range names {
		refs = append(refs, v1alpha1.MediaReference{Name: name})
	}
	return refs
}

// cardsOf returns a three-card tree whose second card has a file. The first cards are published.
func cardsOf(published int) *v1alpha1.Post {
	p := tree(v1alpha1.TargetStatus{State: v1alpha1.TargetPending})
	for i, caption := range []string{"one", "two", "three"} {
		p.Spec.Tree.Cards[i].Caption = caption
	}
	p.Spec.Tree.Cards[1].MediaRefs = refs("m")
	for i, id := range []string{"id1", "id2", "id3"} {
		if i < published {
			p.Status.Targets[0].Cards = append(p.Status.Targets[0].Cards, v1alpha1.CardStatus{Index: int32(i), ExternalID: id})
		}
	}
	return p
}

func video(change func(*v1alpha1.PostSpec)) *v1alpha1.Post {
	p := post(v1alpha1.TargetStatus{})
	p.Spec.Category, p.Spec.Video = v1alpha1.CategoryVideo, &v1alpha1.VideoContent{MediaRef: refs("m")[0]}
	if change != nil {
		change(&p.Spec)
	}
	return p
}

func picture() *v1alpha1.Media {
	m := &v1alpha1.Media{}
	m.Spec.FileName, m.Spec.MimeType = "launch.mp4", "video/mp4"
	m.Status = v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded, SizeBytes: 7, Width: 8, Height: 9, DurationMillis: 1500, ETag: "e"}
	return m
}

func focused(file platforms.File) platforms.File {
	file.FocalPoint = &v1alpha1.FocalPoint{X: 10}
	return file
}

func TestContent(t *testing.T) {
	file := platforms.File{Name: "launch.mp4", MIMEType: "video/mp4", Size: 7, Width: 8, Height: 9, Duration: 1500 * time.Millisecond, ETag: "e"}
	options := v1alpha1.TikTokOptions{PrivacyLevel: "SELF_ONLY"}
	offset := 2500 * time.Millisecond
	for _, tt := range []struct {
		name, why string
		post      *v1alpha1.Post
		want      platforms.Content
	}{
		{"text", "its caption is all", post(v1alpha1.TargetStatus{}), platforms.Content{Text: "hello"}},
		{"video", "the file that was verified", video(nil), platforms.Content{Category: v1alpha1.CategoryVideo, Text: "hello", Media: []platforms.File{file}}},
		{"video with a thumbnail", "the moment is in milliseconds", video(func(s *v1alpha1.PostSpec) { s.Video.ThumbnailOffsetMillis = new(int32(2500)) }), platforms.Content{
			Category: v1alpha1.CategoryVideo, Text: "hello", Media: []platforms.File{file}, ThumbnailAt: &offset,
		}},
		{"a file that does not exist", "its name is known", video(func(s *v1alpha1.PostSpec) { s.Video.MediaRef.Name = "gone" }), platforms.Content{
			Category: v1alpha1.CategoryVideo, Text: "hello", Media: []platforms.File{{Name: "gone"}},
		}},
		{"blanks next to a file", "platforms accept a file without a text, and do not document how they treat blanks", video(func(s *v1alpha1.PostSpec) { s.Targets[0].Caption = " \n\u00a0" }), platforms.Content{
			Category: v1alpha1.CategoryVideo, Media: []platforms.File{file},
		}},
		{"only blanks", "without a file the rules reject them, so they are not dropped", func() *v1alpha1.Post {
			p := post(v1alpha1.TargetStatus{})
			p.Spec.Targets[0].Caption = " \n\u00a0"
			return p
		}(), platforms.Content{Text: " \n\u00a0"}},
		{"images", "in order", video(func(s *v1alpha1.PostSpec) {
			s.Category, s.Video, s.Image = v1alpha1.CategoryImage, nil, &v1alpha1.ImageContent{MediaRefs: refs("m", "gone")}
		}), platforms.Content{Category: v1alpha1.CategoryImage, Text: "hello", Media: []platforms.File{file, {Name: "gone"}}}},
		{"options of platforms", "only these platforms use them", video(func(s *v1alpha1.PostSpec) {
			s.Targets[0].YouTube, s.Targets[0].TikTok = &v1alpha1.YouTubeOptions{Title: "Launch"}, &options
		}), platforms.Content{Category: v1alpha1.CategoryVideo, Text: "hello", Title: "Launch", TikTok: options, Media: []platforms.File{file}}},
		{"options of Mastodon", "the focal point belongs to the use of a file", video(func(s *v1alpha1.PostSpec) {
			s.Targets[0].Mastodon, s.Video.MediaRef.FocalPoint = &v1alpha1.MastodonOptions{Sensitive: true}, &v1alpha1.FocalPoint{X: 10}
		}), platforms.Content{
			Category: v1alpha1.CategoryVideo, Text: "hello", Mastodon: v1alpha1.MastodonOptions{Sensitive: true}, Media: []platforms.File{focused(file)},
		}},
		{"a language", "it belongs to the target's text", video(func(s *v1alpha1.PostSpec) { s.Targets[0].Language = "pt-BR" }), platforms.Content{
			Category: v1alpha1.CategoryVideo, Text: "hello", Language: "pt-BR", Media: []platforms.File{file},
		}},
		{"the first card", "the first card is not a reply", cardsOf(0), platforms.Content{Category: v1alpha1.CategoryTree, Text: "one"}},
		{"the second card", "the card replies to the first, and has its own file", cardsOf(1), platforms.Content{Category: v1alpha1.CategoryTree, Text: "two", InReplyTo: "id1", Media: []platforms.File{file}}},
		{"the third card", "the card replies to the second", cardsOf(2), platforms.Content{Category: v1alpha1.CategoryTree, Text: "three", InReplyTo: "id2"}},
		{"after the last card", "all cards are published, and only the post's caption remains", cardsOf(3), platforms.Content{Category: v1alpha1.CategoryTree, Text: "hello"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Content(tt.post, 0, map[string]*v1alpha1.Media{"m": picture()})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.why, diff)
			}
		})
	}
	if got := Text(post(v1alpha1.TargetStatus{}), 1); got != "" {
		t.Errorf("a removed target must have no text: got %q", got)
	}
}

// TestAltText checks which alt text each use of a file is sent with.
func TestAltText(t *testing.T) {
	for _, tt := range []struct{ reason, ofMedia, ofUse, want string }{
		{"the file has no alt text", "", "", ""},
		{"the file's own is the default", "a rocket", "", "a rocket"},
		{"a use may need another alt text", "a rocket", "our launch", "our launch"},
		{"a file without one can be described in a post", "", "our launch", "our launch"},
		{"white space is not a description, and X rejects an empty alt text", " ", "", ""},
		{"an empty description is not replaced by the file's", "a rocket", "\n", ""},
	} {
		m := picture()
		m.Spec.AltText = tt.ofMedia
		content := Content(video(func(s *v1alpha1.PostSpec) { s.Video.MediaRef.AltText = tt.ofUse }), 0, map[string]*v1alpha1.Media{"m": m})
		if got := content.Media[0].AltText; got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.reason, got, tt.want)
		}
	}
}

func TestFileProblem(t *testing.T) {
	pending := picture()
	pending.Status.Phase = v1alpha1.MediaPending
	for _, tt := range []struct {
		why   string
		media *v1alpha1.Media
		want  string
	}{
		{"the file is uploaded", picture(), ""},
		{"the file may still be created", nil, `media file "m" does not exist; the post proceeds when it does`},
		{"the file may still be uploaded", pending, `media file "m" cannot be sent (phase pending)`},
	} {
		if got := FileProblem(video(nil), 0, map[string]*v1alpha1.Media{"m": tt.media}); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.why, got, tt.want)
		}
	}
}

// TestContentHash checks that a hash depends on everything that is published and on nothing else, because preparations
// are valid for one hash.
func TestContentHash(t *testing.T) {
	hash := func(p *v1alpha1.Post, conn *v1alpha1.Connection, m *v1alpha1.Media) string {
		return ContentHash(p, 0, conn, map[string]*v1alpha1.Media{"m": m})
	}
	conn := func(change func(*v1alpha1.Connection)) *v1alpha1.Connection {
		c := &v1alpha1.Connection{}
		c.UID, c.Spec.AccountID = "conn", "account"
		if change != nil {
			change(c)
		}
		return c
	}
	media := func(change func(*v1alpha1.Media)) *v1alpha1.Media {
		m := picture()
		change(m)
		return m
	}
	tiktok := func(change func(*v1alpha1.TikTokOptions)) *v1alpha1.Post {
		return video(func(s *v1alpha1.PostSpec) {
			s.Targets[0].TikTok = &v1alpha1.TikTokOptions{}
			change(s.Targets[0].TikTok)
		})
	}
	seen := map[string]string{}
	for _, tt := range []struct {
		name string
		post *v1alpha1.Post
		conn *v1alpha1.Connection
		file *v1alpha1.Media
		// as is the name of an earlier row that has the same hash.
		as string
	}{
		{name: "a video"},
		{name: "another account", conn: conn(func(c *v1alpha1.Connection) { c.Spec.AccountID = "other" })},
		{name: "another connection", conn: conn(func(c *v1alpha1.Connection) { c.UID = "other" })},
		{name: "another caption", post: video(func(s *v1alpha1.PostSpec) { s.Targets[0].Caption = "bye" })},
		{name: "a title", post: video(func(s *v1alpha1.PostSpec) { s.Targets[0].YouTube = &v1alpha1.YouTubeOptions{Title: "Launch"} })},
		{name: "a thumbnail", post: video(func(s *v1alpha1.PostSpec) { s.Video.ThumbnailOffsetMillis = new(int32(0)) })},
		{name: "another thumbnail", post: video(func(s *v1alpha1.PostSpec) { s.Video.ThumbnailOffsetMillis = new(int32(1)) })},
		{name: "a privacy level", post: tiktok(func(o *v1alpha1.TikTokOptions) { o.PrivacyLevel = "SELF_ONLY" })},
		{name: "comments", post: tiktok(func(o *v1alpha1.TikTokOptions) { o.AllowComment = new(true) })},
		{name: "no comments", post: tiktok(func(o *v1alpha1.TikTokOptions) { o.AllowComment = new(false) })},
		{name: "no options", post: tiktok(func(*v1alpha1.TikTokOptions) {}), as: "a video"},
		{name: "another file name", file: media(func(m *v1alpha1.Media) { m.Spec.FileName = "other.mp4" })},
		{name: "another type", file: media(func(m *v1alpha1.Media) { m.Spec.MimeType = "video/quicktime" })},
		{name: "another size", file: media(func(m *v1alpha1.Media) { m.Status.SizeBytes++ })},
		{name: "other bytes", file: media(func(m *v1alpha1.Media) { m.Status.ETag = "f" })},
		{name: "shown otherwise", file: media(func(m *v1alpha1.Media) { m.Status.Width++ }), as: "a video"},
		{name: "an alt text", post: video(func(s *v1alpha1.PostSpec) { s.Video.MediaRef.AltText = "a rocket" })},
		{name: "another alt text", post: video(func(s *v1alpha1.PostSpec) { s.Video.MediaRef.AltText = "a launch" })},
		{name: "the alt text as the file's default", file: media(func(m *v1alpha1.Media) { m.Spec.AltText = "a rocket" }), as: "an alt text"},
		{name: "an alt text of white space", post: video(func(s *v1alpha1.PostSpec) { s.Video.MediaRef.AltText = " \n" }), as: "a video"},
		{name: "a focal point", post: video(func(s *v1alpha1.PostSpec) { s.Video.MediaRef.FocalPoint = &v1alpha1.FocalPoint{X: 10} })},
		{name: "another focal point", post: video(func(s *v1alpha1.PostSpec) { s.Video.MediaRef.FocalPoint = &v1alpha1.FocalPoint{Y: 10} })},
		{name: "a content warning", post: video(func(s *v1alpha1.PostSpec) { s.Targets[0].Mastodon = &v1alpha1.MastodonOptions{ContentWarning: "a"} })},
		{name: "no options of Mastodon", post: video(func(s *v1alpha1.PostSpec) { s.Targets[0].Mastodon = &v1alpha1.MastodonOptions{} }), as: "a video"},
		{name: "a language", post: video(func(s *v1alpha1.PostSpec) { s.Targets[0].Language = "en" })},
		{name: "another language", post: video(func(s *v1alpha1.PostSpec) { s.Targets[0].Language = "de" })},
		{name: "a text", post: post(v1alpha1.TargetStatus{})},
		{name: "a text with a visibility", post: func() *v1alpha1.Post {
			p := post(v1alpha1.TargetStatus{})
			p.Spec.Targets[0].Mastodon = &v1alpha1.MastodonOptions{Visibility: v1alpha1.MastodonUnlisted}
			return p
		}()},
		{name: "a text with a title, which its category lacks", post: func() *v1alpha1.Post {
			p := post(v1alpha1.TargetStatus{})
			p.Spec.Targets[0].YouTube = &v1alpha1.YouTubeOptions{Title: "Launch"}
			return p
		}(), as: "a text"},
		{name: "a card", post: cardsOf(0)},
		{name: "the same card below another one", post: func() *v1alpha1.Post {
			p := cardsOf(2)
			p.Spec.Tree.Cards[2].Caption = "one"
			return p
		}()},
	} {
		p, c, m := tt.post, tt.conn, tt.file
		if p == nil {
			p = video(nil)
		}
		if c == nil {
			c = conn(nil)
		}
		if m == nil {
			m = picture()
		}
		got := hash(p, c, m)
		if seen[got] != tt.as {
			t.Errorf("%s: has the hash of %q, want that of %q", tt.name, seen[got], tt.as)
		}
		if tt.as == "" {
			seen[got] = tt.name
		}
	}
	if got, want := hash(post(v1alpha1.TargetStatus{}), conn(nil), nil), attempt.ContentHash("conn", "account", "hello"); got != want {
		t.Errorf("a text has the hash %s, want %s as recorded by earlier versions", got, want)
	}
}

// TestContentHashIsStable pins the version 1 hashes. If a hash changed, all prepared content would be uploaded again;
// such a change must use the next version.
func TestContentHashIsStable(t *testing.T) {
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
			Video: &v1alpha1.VideoContent{MediaRef: v1alpha1.MediaReference{Name: "film"}, ThumbnailOffsetMillis: &offset},
		}, "1-a18f3cf37a08217b01cff814637f4e79"},
		{"tree", v1alpha1.PostSpec{Category: v1alpha1.CategoryTree, Targets: to, Tree: &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{Caption: "a"}, {Caption: "b"}}}}, "1-58efe1a2939c471a108139b434be17ae"},
	} {
		post := &v1alpha1.Post{Spec: tt.spec, Status: v1alpha1.PostStatus{Targets: []v1alpha1.TargetStatus{{}}}}
		if got := ContentHash(post, 0, conn, media); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestKey(t *testing.T) {
	base := func(change func(*v1alpha1.Post)) platforms.Key {
		p := post(v1alpha1.TargetStatus{})
		p.UID, p.CreationTimestamp = "uid", metav1.NewTime(t0)
		p.Spec.Targets = append(p.Spec.Targets, p.Spec.Targets[0])
		change(p)
		return Key(p, 0)
	}
	first := base(func(*v1alpha1.Post) {})
	if !first.CreatedAt.Equal(t0) {
		t.Errorf("the key is from %s, want the post's creation", first.CreatedAt)
	}
	for _, tt := range []struct {
		name, reason string
		change       func(*v1alpha1.Post)
		same         bool
	}{
		{"another attempt", "another attempt publishes the same content", func(p *v1alpha1.Post) {
			p.Status.Targets = []v1alpha1.TargetStatus{{Attempt: &v1alpha1.Attempt{Number: 7}}}
		}, true},
		{"a new name", "the object is the same", func(p *v1alpha1.Post) { p.Name = "renamed" }, true},
		{"another post", "another post is another publication, even with the same text", func(p *v1alpha1.Post) { p.UID = "other" }, false},
		{"the next card", "each card is a post on the platform", func(p *v1alpha1.Post) {
			p.Status.Targets = []v1alpha1.TargetStatus{{Cards: make([]v1alpha1.CardStatus, 1)}}
		}, false},
	} {
		if got := base(tt.change); (got == first) != tt.same {
			t.Errorf("%s: the key is the same: %t, want %t (%s)", tt.name, got == first, tt.same, tt.reason)
		}
	}
	p := post(v1alpha1.TargetStatus{})
	if Key(p, 0) == Key(p, 1) {
		t.Error("two targets have the same key, and may be the same account")
	}
}
