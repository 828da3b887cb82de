// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"github.com/herald-social/herald/api/v1alpha1"
)

// zoneIn returns a time zone for the tests.
func zoneIn(name string) *time.Location {
	zone, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return zone
}

// written renders the form of a post, submits it as a browser does, and returns the resulting post.
func written(tb testing.TB, w *world, spec *v1alpha1.PostSpec, zone *time.Location) v1alpha1.PostSpec {
	tb.Helper()
	v := &visit{Request: newRequest(&administrator, "/teams/"+acme+"/posts/new", nil), namespace: acme, team: w.teams[0], zone: zone, now: now, may: rights{seeAccounts: true}}
	v.caller.Namespace, v.caller.Author = acme, administrator.Name
	var page strings.Builder
	form := w.site.composer(v, &composer{writing: writingOf(spec, zone), action: "/"})
	for _, node := range form.content {
		if err := node.Render(&page); err != nil {
			tb.Fatal(err)
		}
	}
	got, err := readWriting(sent(withID(tb, parsed(tb, page.String()), "compose"))).spec(w.site.platforms(v))
	if err != nil {
		tb.Fatal(err)
	}
	return got
}

// TestFormOfAnyPost verifies that opening a post in the editor and submitting it unchanged does not change the post.
func TestFormOfAnyPost(t *testing.T) {
	t.Parallel()
	w := newWorld(clock.RealClock{})
	captions := rapid.OneOf(rapid.Just(""), rapid.SampledFrom([]string{"\nfirst a line", "a\nb", " room ", "<b>&amp;", `"quoted'`, "</textarea>", "👩‍👩‍👧", "a\n\n"}),
		rapid.StringOfN(rapid.RuneFrom([]rune("aä漢 \n<>&\"'%+;")), 0, 30, -1))
	points := rapid.Custom(func(r *rapid.T) *v1alpha1.FocalPoint {
		if !rapid.Bool().Draw(r, "has a focal point") {
			return nil
		}
		percent := rapid.Int32Range(-100, 100)
		return &v1alpha1.FocalPoint{X: percent.Draw(r, "x"), Y: percent.Draw(r, "y")}
	})
	files := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) v1alpha1.MediaReference {
		// Few names, so that a list contains a file twice.
		return v1alpha1.MediaReference{Name: rapid.StringMatching(`m-[ab]{1,2}`).Draw(r, "file"), AltText: captions.Draw(r, "alt text"), FocalPoint: points.Draw(r, "focal point")}
	}), 0, 4)
	rapid.Check(t, func(r *rapid.T) {
		spec := v1alpha1.PostSpec{Category: rapid.SampledFrom([]v1alpha1.Category{
			v1alpha1.CategoryText, v1alpha1.CategoryImage, v1alpha1.CategoryVideo, v1alpha1.CategoryTree,
		}).Draw(r, "category")}
		switch spec.Category {
		case v1alpha1.CategoryImage:
			spec.Image = &v1alpha1.ImageContent{MediaRefs: files.Draw(r, "images")}
		case v1alpha1.CategoryVideo:
			spec.Video = &v1alpha1.VideoContent{MediaRef: v1alpha1.MediaReference{
				Name: rapid.StringMatching(`m-[a-z]{6}`).Draw(r, "video"), AltText: captions.Draw(r, "alt text"), FocalPoint: points.Draw(r, "focal point"),
			}}
			if rapid.Bool().Draw(r, "has a cover") {
				spec.Video.ThumbnailOffsetMillis = new(rapid.Int32Range(0, 2_000_000_000).Draw(r, "cover"))
			}
		case v1alpha1.CategoryTree:
			spec.Tree = &v1alpha1.TreeContent{}
			for range rapid.IntRange(1, 5).Draw(r, "cards") {
				spec.Tree.Cards = append(spec.Tree.Cards, v1alpha1.TreeCard{Caption: captions.Draw(r, "card"), MediaRefs: files.Draw(r, "files")})
			}
			// An empty part at the end would be omitted.
			last := &spec.Tree.Cards[len(spec.Tree.Cards)-1]
			last.Caption += "."
		case v1alpha1.CategoryText:
		}
		switch rapid.SampledFrom([]string{whenNow, whenLater, whenDraft}).Draw(r, "when") {
		case whenDraft:
			spec.Draft = true
		case whenLater:
			spec.ScheduledAt = new(v1alpha1.NewTime(time.UnixMilli(rapid.Int64Range(now.UnixMilli(), now.AddDate(20, 0, 0).UnixMilli()).Draw(r, "at"))))
		}
		for _, platform := range v1alpha1.Platforms() {
			if rapid.Bool().Draw(r, "on "+string(platform)) {
				spec.Targets = append(spec.Targets, targetOf(r, spec.Category, platform, captions))
			}
		}
		zone := zoneIn(rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Apia"}).Draw(r, "zone"))
		if got := written(t, w, &spec, zone); !v1alpha1.SemanticEqual(got, spec) || !sameTime(got.ScheduledAt, spec.ScheduledAt) {
			r.Fatalf("the form turns\n%+v into\n%+v", spec, got)
		}
	})
}

func sameTime(a, b *v1alpha1.Time) bool { return a.Equal(b) }

// targetOf draws a target, with the options that the form has.
func targetOf(r *rapid.T, category v1alpha1.Category, platform v1alpha1.Platform, captions *rapid.Generator[string]) v1alpha1.PostTarget {
	t := v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: "our-" + string(platform)}}
	if platform.HasLanguage() {
		t.Language = rapid.SampledFrom([]string{"", "en", "zh-Hant-TW"}).Draw(r, "language")
	}
	if options := (v1alpha1.MastodonOptions{
		ContentWarning: rapid.SampledFrom([]string{"", `the "ending" & more`}).Draw(r, "content warning"), Sensitive: rapid.Bool().Draw(r, "sensitive"),
		Visibility: rapid.SampledFrom([]v1alpha1.MastodonVisibility{"", v1alpha1.MastodonPublic, v1alpha1.MastodonUnlisted, v1alpha1.MastodonPrivate, v1alpha1.MastodonDirect}).Draw(r, "visibility"),
	}); platform == v1alpha1.PlatformMastodon && options != (v1alpha1.MastodonOptions{}) {
		t.Mastodon = &options
	}
	if category == v1alpha1.CategoryTree {
		return t
	}
	t.Caption = captions.Draw(r, "caption")
	media := category == v1alpha1.CategoryImage || category == v1alpha1.CategoryVideo
	switch {
	case platform == v1alpha1.PlatformYouTube && category == v1alpha1.CategoryVideo:
		t.YouTube = &v1alpha1.YouTubeOptions{Title: rapid.SampledFrom([]string{"One", `<"title">`, "a & b"}).Draw(r, "title")}
	case platform == v1alpha1.PlatformTikTok && media:
		t.TikTok = &v1alpha1.TikTokOptions{
			PrivacyLevel: rapid.SampledFrom([]v1alpha1.TikTokPrivacyLevel{v1alpha1.TikTokPublicToEveryone, v1alpha1.TikTokSelfOnly}).Draw(r, "privacy"),
			AllowComment: new(rapid.Bool().Draw(r, "comment")), Draft: rapid.Bool().Draw(r, "inbox"), IsAIGenerated: rapid.Bool().Draw(r, "ai"),
		}
		if category == v1alpha1.CategoryVideo {
			t.TikTok.AllowDuet, t.TikTok.AllowStitch = new(rapid.Bool().Draw(r, "duet")), new(rapid.Bool().Draw(r, "stitch"))
		} else {
			t.TikTok.AutoAddMusic = rapid.Bool().Draw(r, "music")
		}
		if t.TikTok.Draft {
			t.TikTok.PrivacyLevel, t.TikTok.AutoAddMusic = "", false
		}
	}
	return t
}

func TestFormOfPosts(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	target := func(platform, caption string) v1alpha1.PostTarget {
		return v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: "our-" + platform}, Caption: caption}
	}
	tiktok := func(o v1alpha1.TikTokOptions) []v1alpha1.PostTarget {
		of := target("tiktok", "")
		of.TikTok = &o
		return []v1alpha1.PostTarget{of}
	}
	video := &v1alpha1.VideoContent{MediaRef: v1alpha1.MediaReference{Name: "m-1"}}
	for name, tc := range map[string]struct {
		reason string
		spec   v1alpha1.PostSpec
		want   func(*v1alpha1.PostSpec)
	}{
		"EmptyBesideText": {
			"an account without a text stays without, next to one with a text",
			v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{target("x", "text"), target("threads", "")}},
			nil,
		},
		"LanguageOfAThread": {
			"a thread's target has no text of its own, but a language",
			v1alpha1.PostSpec{
				Category: v1alpha1.CategoryTree, Tree: &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{Caption: "um"}, {Caption: "dois"}}},
				Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "our-bluesky"}, Language: "pt-BR"}},
			},
			nil,
		},
		"LanguageElsewhere": {
			"other platforms have no languages",
			v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "our-x"}, Caption: "a", Language: "en"}}},
			func(s *v1alpha1.PostSpec) { s.Targets[0].Language = "" },
		},
		"MastodonThread": {
			"Mastodon's options apply to each part",
			v1alpha1.PostSpec{
				Category: v1alpha1.CategoryTree, Tree: &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{Caption: "one"}, {Caption: "two"}}},
				Targets: []v1alpha1.PostTarget{{
					ConnectionRef: v1alpha1.LocalReference{Name: "our-mastodon"}, Mastodon: &v1alpha1.MastodonOptions{ContentWarning: "the ending", Sensitive: true, Visibility: v1alpha1.MastodonUnlisted},
				}},
			},
			nil,
		},
		"MastodonElsewhere": {
			"other platforms do not have the options",
			v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "our-bluesky"}, Caption: "a", Mastodon: &v1alpha1.MastodonOptions{Sensitive: true}}}},
			func(s *v1alpha1.PostSpec) { s.Targets[0].Mastodon = nil },
		},
		"Milliseconds": {
			"an API client may choose a time between two minutes",
			v1alpha1.PostSpec{Category: v1alpha1.CategoryText, ScheduledAt: v1alpha1.NewTimePtr(now.Add(1234567 * time.Millisecond))},
			nil,
		},
		"GoneFromTheCard": {
			"empty cards at the end are dropped",
			v1alpha1.PostSpec{Category: v1alpha1.CategoryTree, Tree: &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{Caption: "a"}, {}, {Caption: "c"}, {}, {}}}},
			func(s *v1alpha1.PostSpec) { s.Tree.Cards = s.Tree.Cards[:3] },
		},
		"TikTokSaysNothing": {
			"options without a value allow everything, as the form shows",
			v1alpha1.PostSpec{Category: v1alpha1.CategoryVideo, Video: video, Targets: tiktok(v1alpha1.TikTokOptions{PrivacyLevel: "SELF_ONLY"})},
			func(s *v1alpha1.PostSpec) {
				o := s.Targets[0].TikTok
				o.AllowComment, o.AllowDuet, o.AllowStitch = new(true), new(true), new(true)
			},
		},
		"PrivacyNotOffered": {
			"an audience that the account no longer offers does not become a larger one",
			v1alpha1.PostSpec{Category: v1alpha1.CategoryVideo, Video: video, Targets: tiktok(v1alpha1.TikTokOptions{
				PrivacyLevel: "SELF_ONLY", AllowComment: new(true), AllowDuet: new(true), AllowStitch: new(true),
			})},
			nil,
		},
		"Inbox": {
			"a draft in TikTok's app has neither audience nor music, whatever the form contains",
			v1alpha1.PostSpec{
				Category: v1alpha1.CategoryImage, Image: &v1alpha1.ImageContent{MediaRefs: references([]string{"m-1"})},
				Targets: tiktok(v1alpha1.TikTokOptions{Draft: true, PrivacyLevel: "SELF_ONLY", AutoAddMusic: true, AllowComment: new(true)}),
			},
			func(s *v1alpha1.PostSpec) {
				s.Targets[0].TikTok.PrivacyLevel, s.Targets[0].TikTok.AutoAddMusic = "", false
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := tc.spec.DeepCopy()
			if tc.want != nil {
				tc.want(want)
			}
			if got := written(t, w, &tc.spec, time.UTC); !v1alpha1.SemanticEqual(got, *want) || !sameTime(got.ScheduledAt, want.ScheduledAt) {
				t.Errorf("%s: got\n%+v, want\n%+v", tc.reason, got, *want)
			}
		})
	}
}

func TestTimeOfForm(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason              string
		when, at, local, in string
		want                string
		fails               bool
	}{
		"Now":            {"only scheduled posts have a time", whenNow, "2026-12-24T18:00:00Z", "", "", "", false},
		"Draft":          {"a draft has no time", whenDraft, "2026-12-24T18:00:00Z", "", "", "", false},
		"Script":         {"the page's script sends the time in UTC", whenLater, "2026-12-24T18:00:00.000Z", "2026-12-24T19:00", "Europe/Berlin", "2026-12-24T18:00:00Z", false},
		"NoScript":       {"without a script, the form's zone applies", whenLater, "", "2026-12-24T19:00", "Europe/Berlin", "2026-12-24T18:00:00Z", false},
		"Summer":         {"the offset is that of the chosen day", whenLater, "", "2026-07-24T19:00", "Europe/Berlin", "2026-07-24T17:00:00Z", false},
		"Stale":          {"without a script, an unchanged time is kept", whenLater, "2026-12-24T18:00:34.5Z", "2026-12-25T19:00", "Europe/Berlin", "2026-12-25T18:00:00Z", false},
		"Unchanged":      {"the field does not show seconds", whenLater, "2026-12-24T18:00:34.5Z", "2026-12-24T19:00", "Europe/Berlin", "2026-12-24T18:00:34Z", false},
		"UnknownZone":    {"an unknown zone is UTC", whenLater, "", "2026-12-24T19:00", "Nowhere/City", "2026-12-24T19:00:00Z", false},
		"PathAsZone":     {"a path is not a zone", whenLater, "", "2026-12-24T19:00", "../../../etc/passwd", "2026-12-24T19:00:00Z", false},
		"Nothing":        {"the time is required", whenLater, "", "", "UTC", "", true},
		"NoTime":         {"an invalid time is rejected", whenLater, "tomorrow", "soon", "UTC", "", true},
		"ScriptConfused": {"the script's empty value is ignored", whenLater, "Invalid Date", "2026-12-24T19:00", "UTC", "2026-12-24T19:00:00Z", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := readWriting(url.Values{"when": {tc.when}, "scheduled_at": {tc.at}, "at": {tc.local}, "zone": {tc.in}})
			got, err := w.time()
			if (err != nil) != tc.fails {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			text := ""
			if got != nil {
				text = got.UTC().Format(time.RFC3339)
			}
			if text != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, text, tc.want)
			}
		})
	}
}

func TestThumbnail(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, typed string
		want          *int32
		fails         bool
	}{
		"Empty":    {"the platform chooses", "", nil, false},
		"Zero":     {"the first frame is valid", "0", new(int32(0)), false},
		"Fraction": {"2.3 has no exact binary form, but is 2,300 ms", "2.3", new(int32(2300)), false},
		"Thin":     {"1.001 has no exact binary form, but is 1,001 ms", "1.001", new(int32(1001)), false},
		"Comma":    {"half of Europe uses a comma", "2,5", new(int32(2500)), false},
		"Greatest": {"the field has 32 bits", "2147483.647", new(int32(2147483647)), false},
		"TooGreat": {"larger values are rejected", "2147483.648", nil, true},
		"Negative": {"negative times are rejected", "-1", nil, true},
		"NotOne":   {"NaN is neither smaller nor larger than a limit", "NaN", nil, true},
		"Endless":  {"infinity is rejected", "Inf", nil, true},
		"Words":    {"a text is not a number", "the end", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := readWriting(url.Values{"category": {"video"}, "thumbnail": {tc.typed}})
			video, err := w.videoContent()
			if (err != nil) != tc.fails {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if err == nil && !reflect.DeepEqual(video.ThumbnailOffsetMillis, tc.want) {
				t.Errorf("%s: got %v, want %v", tc.reason, value(video.ThumbnailOffsetMillis), value(tc.want))
			}
		})
	}
}

func value(of *int32) any {
	if of == nil {
		return nil
	}
	return *of
}

func TestReadWriting(t *testing.T) {
	t.Parallel()
	long := make([]string, 5000)
	for i := range long {
		long[i] = "our-x"
	}
	for name, tc := range map[string]struct {
		reason string
		form   url.Values
		holds  func(*writing) bool
	}{
		"LineBreaks":   {"platforms count one character per line break", url.Values{"caption": {"a\r\nb"}}, func(w *writing) bool { return w.caption == "a\nb" }},
		"UnknownKind":  {"an unknown category is text", url.Values{"category": {"poem"}}, func(w *writing) bool { return w.category == v1alpha1.CategoryText }},
		"NoCards":      {"a thread has at least two cards", url.Values{}, func(w *writing) bool { return len(w.cards) == 2 }},
		"LessThanNone": {"a form cannot reduce them", url.Values{"cards": {"-5"}}, func(w *writing) bool { return len(w.cards) == 2 }},
		"ManyCards":    {"the number is limited", url.Values{"cards": {"2000000000"}}, func(w *writing) bool { return len(w.cards) == maxCards }},
		"ManyImages":   {"the number of files is limited", url.Values{"image": long}, func(w *writing) bool { return len(w.images) == maxMedia }},
		"ManyFiles":    {"a card's files are limited", url.Values{"media-0": long}, func(w *writing) bool { return len(w.cards[0].MediaRefs) == maxMedia }},
		"ManyAccounts": {"accounts are limited, because each is read and previewed", url.Values{"target": long}, func(w *writing) bool { return len(w.targets) == maxTargets }},
		"Unticked":     {"an unticked box means no", url.Values{"target": {"t"}, "tiktok-t": {"yes"}}, func(w *writing) bool { return !*w.targets[0].tiktok.AllowComment }},
		"NoAudience":   {"an unknown audience on Mastodon is the account's own", url.Values{"target": {"m"}, "visibility-m": {"friends"}}, func(w *writing) bool { return w.targets[0].mastodon.Visibility == "" }},
		"NoBoxes":      {"a form without boxes has no values", url.Values{"target": {"t"}}, func(w *writing) bool { return w.targets[0].tiktok.AllowComment == nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if w := readWriting(tc.form); !tc.holds(w) {
				t.Errorf("%s: %+v", tc.reason, w)
			}
		})
	}
}

// TestManyFilesOfParts verifies that a form, however it distributes its files, does not make the server look up more
// files than a post can have.
func TestManyFilesOfParts(t *testing.T) {
	t.Parallel()
	form := url.Values{"cards": {"100"}}
	for i := range 100 {
		for range 100 {
			form.Add("media-"+string(rune('0'+i/10))+string(rune('0'+i%10)), "m-1")
			form.Add("media-"+string(rune('0'+i%10)), "m-1")
		}
	}
	files := 0
	for _, card := range readWriting(form).cards {
		files += len(card.MediaRefs)
	}
	if files > maxFiles {
		t.Errorf("the form has %d files, want at most %d", files, maxFiles)
	}
}

// For any form: the parsed content is limited, and rendering and parsing it again gives the same content.
func FuzzWriting(f *testing.F) {
	f.Add("category=text&target=a&target=b&own-a=Hello&when=now")
	f.Add("category=video&video=m-1&thumbnail=1e999&target=a&title-a=%20x%20&when=at&at=2026-12-01T09%3A00&zone=Europe%2FBerlin")
	f.Add("category=tree&cards=99999999999&card-0=%0D%0A&media-0=m-1&media-1=m-2&tiktok-a=1&privacy-a=SELF_ONLY&target=a")
	f.Add("category=image&image=&image=%00&when=at&scheduled_at=0000-00-00T00%3A00%3A00Z&zone=..%2F..%2Fetc")
	f.Fuzz(func(t *testing.T, body string) {
		form, err := url.ParseQuery(body)
		if err != nil {
			return
		}
		written := readWriting(form)
		spec, err := written.spec(func(string) v1alpha1.Platform { return v1alpha1.PlatformTikTok })
		if len(written.cards) > maxCards || len(written.targets) > maxTargets || len(written.images) > maxMedia {
			t.Fatalf("%d cards, %d targets, %d images", len(written.cards), len(written.targets), len(written.images))
		}
		if err != nil {
			return
		}
		files := 0
		if spec.Tree != nil {
			for i := range spec.Tree.Cards {
				files += len(spec.Tree.Cards[i].MediaRefs)
			}
		}
		if files > maxFiles {
			t.Errorf("%d files", files)
		}
		if spec.Video != nil && spec.Video.ThumbnailOffsetMillis != nil && *spec.Video.ThumbnailOffsetMillis < 0 {
			t.Errorf("the thumbnail is %d ms before the film's start", *spec.Video.ThumbnailOffsetMillis)
		}
		// The editor shows a stored post in the same form.
		writingOf(&spec, time.UTC)
	})
}

// TestOptionsOfAccounts verifies that a target loses another platform's options, but keeps all options while its
// account does not exist.
func TestOptionsOfAccounts(t *testing.T) {
	t.Parallel()
	private := v1alpha1.MastodonOptions{Visibility: v1alpha1.MastodonPrivate}
	tiktok := v1alpha1.TikTokOptions{PrivacyLevel: v1alpha1.TikTokSelfOnly}
	all := targetWriting{connection: "a", language: "de", title: "b", mastodon: private, tiktok: tiktok}
	target := func(edit func(*v1alpha1.PostTarget)) v1alpha1.PostTarget {
		out := v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: "a"}, Caption: "c"}
		edit(&out)
		return out
	}
	for name, tc := range map[string]struct {
		reason   string
		platform v1alpha1.Platform
		written  targetWriting
		want     v1alpha1.PostTarget
	}{
		"gone": {"it may be connected again", "", all, target(func(t *v1alpha1.PostTarget) {
			t.Language, t.Mastodon, t.YouTube, t.TikTok = "de", &private, &v1alpha1.YouTubeOptions{Title: "b"}, &tiktok
		})},
		"gone without options": {"it has none to keep", "", targetWriting{connection: "a"}, target(func(*v1alpha1.PostTarget) {})},
		"Mastodon":             {"it has its own", v1alpha1.PlatformMastodon, all, target(func(t *v1alpha1.PostTarget) { t.Language, t.Mastodon = "de", &private })},
		"YouTube":              {"it has its own", v1alpha1.PlatformYouTube, all, target(func(t *v1alpha1.PostTarget) { t.YouTube = &v1alpha1.YouTubeOptions{Title: "b"} })},
		"TikTok":               {"it has its own", v1alpha1.PlatformTikTok, all, target(func(t *v1alpha1.PostTarget) { t.TikTok = &tiktok })},
		"X":                    {"it has none", v1alpha1.PlatformX, all, target(func(*v1alpha1.PostTarget) {})},
	} {
		got := tc.written.target(&writing{category: v1alpha1.CategoryVideo, caption: "c"}, tc.platform)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
	}
}
