// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"crypto/rand"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// The form's choices for when to publish a post.
const (
	whenNow   = "now"
	whenLater = "later"
	whenDraft = "draft"
)

// writing is the content of the post form. It keeps the fields of every kind, so a user can change the kind and change
// it back.
type writing struct {
	// key is the form's idempotency key.
	key string
	// retryOf is the failed post that is being sent again; empty for other posts.
	retryOf string
	// version is the version of the post being edited; empty for a new one.
	version  string
	category v1alpha1.Category
	caption  string
	images   []string
	video    string
	perFile  fileFields
	cards    []v1alpha1.TreeCard
	// thumbnail is the time of the video's cover picture, in seconds, as entered.
	thumbnail string
	// before is the content that a split replaced, as JSON; empty if the thread was not split from a text.
	before string
	// targets are the chosen accounts, in the form's order.
	targets []targetWriting
	when    string
	// at is the chosen time in UTC, as computed by the page's script. Without the script at is empty, and local, the
	// browser's date and time, applies in zone. fold chooses between the two times in an hour that clocks repeat.
	at, local, zone, fold string
}

// targetWriting is the part of the form for one account.
type targetWriting struct {
	connection string
	// already explains why the account is not preselected, although the duplicated post goes there.
	already string
	// caption is the account's own text; empty if it uses the common one.
	caption  string
	title    string
	language string
	tiktok   v1alpha1.TikTokOptions
	mastodon v1alpha1.MastodonOptions
}

// localForm is the format that browsers use to send a date and time (HTML, "valid local date and time string").
const localForm = "2006-01-02T15:04"

// Limits on the accounts and files in a form, since the server looks up each one. They equal a post's limits
// (api/v1alpha1); all parts of a thread together have at most the 2,000 files of posting/rules.
const (
	maxCards   = 100
	maxMedia   = 100
	maxFiles   = 2000
	maxTargets = 100
)

func newWriting(zone *time.Location) *writing {
	return &writing{
		key: rand.Text(), category: v1alpha1.CategoryText, when: whenNow, zone: zone.String(), cards: make([]v1alpha1.TreeCard, 2),
	}
}

func readWriting(form url.Values) *writing {
	w := &writing{
		key: form.Get("key"), retryOf: form.Get("retry_of"), version: cmp.Or(form.Get(fieldOver), form.Get("version")), category: v1alpha1.Category(form.Get("category")),
		caption: text(form.Get("caption")), images: form["image"], video: lastOf(form["video"]), before: form.Get("before"), thumbnail: strings.TrimSpace(form.Get("thumbnail")),
		when: form.Get("when"), at: form.Get("scheduled_at"), local: form.Get("at"), zone: form.Get("zone"), fold: form.Get("fold"),
	}
	w.images, w.perFile = w.images[:min(len(w.images), maxMedia)], fileFields{}
	w.perFile.read(form, "image", w.images)
	w.perFile.read(form, "video", []string{w.video})
	if _, known := categories[w.category]; !known {
		w.category = v1alpha1.CategoryText
	}
	count, _ := strconv.Atoi(form.Get("cards"))
	room := maxFiles
	for i := range min(max(count, 2), maxCards) {
		n := strconv.Itoa(i)
		media := form["media-"+n]
		media = media[:min(len(media), maxMedia, room)]
		room -= len(media)
		w.perFile.read(form, "media-"+n, media)
		w.cards = append(w.cards, v1alpha1.TreeCard{Caption: text(form.Get("card-" + n)), MediaRefs: w.perFile.references("media-"+n, media)})
	}
	targets := form["target"]
	for _, name := range targets[:min(len(targets), maxTargets)] {
		w.targets = append(w.targets, targetWriting{
			connection: name, caption: text(form.Get("own-" + name)), title: strings.TrimSpace(form.Get("title-" + name)),
			language: languageIn(form.Get("language-" + name)), tiktok: readTikTok(form, name), mastodon: readMastodon(form, name),
		})
	}
	return w
}

// text returns entered text. Browsers send a line break as two characters; platforms count one.
func text(typed string) string { return strings.ReplaceAll(typed, "\r\n", "\n") }

func readTikTok(form url.Values, name string) v1alpha1.TikTokOptions {
	has := func(option string) bool { return form.Get(option+"-"+name) != "" }
	options := v1alpha1.TikTokOptions{
		PrivacyLevel: v1alpha1.TikTokPrivacyLevel(form.Get("privacy-" + name)),
		Draft:        has("inbox"), AutoAddMusic: has("music"), IsAIGenerated: has("ai"),
	}
	// Browsers do not send unchecked boxes. This field reports that the form contained the boxes.
	if has("tiktok") {
		options.AllowComment, options.AllowDuet, options.AllowStitch = new(has("comment")), new(has("duet")), new(has("stitch"))
	}
	return options
}

// Proposed times for a post on a day in the calendar: in the morning, or soon if the morning is over.
const (
	proposedHour = 10
	proposedSoon = time.Hour
)

// on proposes a time on the given day.
func (w *writing) on(day, now time.Time) {
	at := time.Date(day.Year(), day.Month(), day.Day(), proposedHour, 0, 0, 0, day.Location())
	if soon := now.Add(proposedSoon).In(day.Location()).Truncate(time.Hour); at.Before(soon) {
		at = soon
	}
	w.when, w.at, w.local = whenLater, at.UTC().Format(time.RFC3339), at.Format(localForm)
}

// propose prefills the time that an agent requested for a draft.
func (w *writing) propose(at, now time.Time) {
	if at.After(now) {
		w.at, w.local = at.UTC().Format(time.RFC3339Nano), at.In(zoneNamed(w.zone)).Format(localForm)
	}
}

// target returns the fields for an account, and whether it is chosen.
func (w *writing) target(name string) (targetWriting, bool) {
	i := slices.IndexFunc(w.targets, func(t targetWriting) bool { return t.connection == name })
	if i < 0 {
		// TikTok requires that a user enable comments, duets and stitches (Content Sharing Guidelines).
		return targetWriting{connection: name, tiktok: v1alpha1.TikTokOptions{AllowComment: new(false), AllowDuet: new(false), AllowStitch: new(false)}}, false
	}
	return w.targets[i], w.targets[i].already == ""
}

// audienceChosen returns an error if the TikTok audience is missing. For drafts, and for posts to the app's inbox, a
// person chooses it later.
func audienceChosen(spec *v1alpha1.PostSpec) error {
	for i := range spec.Targets {
		if options := spec.Targets[i].TikTok; options != nil && !spec.Draft && !options.Draft && options.PrivacyLevel == "" {
			return errNoAudience
		}
	}
	return nil
}

func (w *writing) spec(platformOf func(connection string) v1alpha1.Platform) (v1alpha1.PostSpec, error) {
	spec := v1alpha1.PostSpec{Category: w.category, Draft: w.when == whenDraft}
	if w.retryOf != "" {
		spec.RetryOf = &v1alpha1.LocalReference{Name: w.retryOf}
	}
	at, err := w.time()
	if err != nil {
		return spec, err
	}
	if at != nil {
		spec.ScheduledAt = new(v1alpha1.NewTime(*at))
	}
	switch w.category {
	case v1alpha1.CategoryImage:
		spec.Image = &v1alpha1.ImageContent{MediaRefs: w.perFile.references("image", w.images)}
	case v1alpha1.CategoryVideo:
		if spec.Video, err = w.videoContent(); err != nil {
			return spec, err
		}
	case v1alpha1.CategoryTree:
		spec.Tree = &v1alpha1.TreeContent{Cards: w.filledCards()}
	case v1alpha1.CategoryText:
	}
	for _, t := range w.targets {
		spec.Targets = append(spec.Targets, t.target(w, platformOf(t.connection)))
	}
	return spec, nil
}

func (w *writing) videoContent() (*v1alpha1.VideoContent, error) {
	video := &v1alpha1.VideoContent{MediaRef: w.perFile.references("video", []string{w.video})[0]}
	if w.thumbnail != "" {
		seconds, err := strconv.ParseFloat(strings.Replace(w.thumbnail, ",", ".", 1), 64)
		millis := math.Round(seconds * 1000)
		// NaN fails every comparison, so the condition is negated as a whole.
		if err != nil || !(millis >= 0 && millis <= math.MaxInt32) {
			return nil, errNoMoment
		}
		video.ThumbnailOffsetMillis = new(int32(millis))
	}
	return video, nil
}

// filledCards returns a tree's cards without the empty ones at its end.
func (w *writing) filledCards() []v1alpha1.TreeCard {
	last := len(w.cards)
	for last > 1 && w.cards[last-1].Caption == "" && len(w.cards[last-1].MediaRefs) == 0 {
		last--
	}
	return w.cards[:last]
}

// target returns the post's target for one account. It omits options that the platform does not have for this kind of
// post.
func (t *targetWriting) target(w *writing, platform v1alpha1.Platform) v1alpha1.PostTarget {
	out := v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: t.connection}}
	if platform == "" || platform.HasLanguage() {
		out.Language = t.language
	}
	if options := t.mastodon; mayBe(platform, v1alpha1.PlatformMastodon) && options != (v1alpha1.MastodonOptions{}) {
		out.Mastodon = &options
	}
	if w.category == v1alpha1.CategoryTree {
		return out
	}
	if out.Caption = w.caption; t.caption != "" {
		out.Caption = t.caption
	}
	if mayBe(platform, v1alpha1.PlatformYouTube) && t.title != "" {
		out.YouTube = &v1alpha1.YouTubeOptions{Title: t.title}
	}
	chosen := platform == v1alpha1.PlatformTikTok || platform == "" && t.tiktok != (v1alpha1.TikTokOptions{})
	if chosen && w.category != v1alpha1.CategoryText {
		out.TikTok = t.tiktokOf(w.category)
	}
	return out
}

// mayBe reports whether an account may be on the platform of an option. An account that does not exist has no known
// platform: it keeps its options, which apply again once it is reconnected.
func mayBe(platform, of v1alpha1.Platform) bool { return platform == of || platform == "" }

// tiktokOf returns the TikTok options that a kind of post has.
func (t *targetWriting) tiktokOf(category v1alpha1.Category) *v1alpha1.TikTokOptions {
	options := t.tiktok
	if category == v1alpha1.CategoryImage {
		options.AllowDuet, options.AllowStitch = nil, nil
	} else {
		options.AutoAddMusic = false
	}
	// A draft in TikTok's app has neither, because its owner chooses them there (api/v1alpha1).
	if options.Draft {
		options.PrivacyLevel, options.AutoAddMusic = "", false
	}
	return &options
}

func writingOf(spec *v1alpha1.PostSpec, zone *time.Location) *writing {
	w := newWriting(zone)
	w.category, w.perFile = spec.Category, fieldsOfFiles(spec)
	if spec.RetryOf != nil {
		w.retryOf = spec.RetryOf.Name
	}
	switch {
	case spec.Draft:
		w.when = whenDraft
	case spec.ScheduledAt != nil:
		w.when, w.at, w.local = whenLater, spec.ScheduledAt.UTC().Format(time.RFC3339Nano), spec.ScheduledAt.In(zone).Format(localForm)
	}
	switch {
	case spec.Image != nil:
		w.images = namesOf(spec.Image.MediaRefs)
	case spec.Video != nil:
		w.video = spec.Video.MediaRef.Name
		if at := spec.Video.ThumbnailOffsetMillis; at != nil {
			w.thumbnail = strconv.FormatFloat(float64(*at)/1000, 'f', -1, 64)
		}
	case spec.Tree != nil:
		w.cards = slices.Clone(spec.Tree.Cards)
	}
	w.caption = commonCaption(spec.Targets)
	for i := range spec.Targets {
		t := &spec.Targets[i]
		of := targetWriting{connection: t.ConnectionRef.Name, language: t.Language}
		if t.Caption != w.caption {
			of.caption = t.Caption
		}
		if t.YouTube != nil {
			of.title = t.YouTube.Title
		}
		if t.TikTok != nil {
			of.tiktok = *t.TikTok
		}
		if t.Mastodon != nil {
			of.mastodon = *t.Mastodon
		}
		w.targets = append(w.targets, of)
	}
	return w
}

// commonCaption returns the text of all accounts without a custom text. The form cannot show an empty custom text, so
// there is no common text if any account's text is empty.
func commonCaption(targets []v1alpha1.PostTarget) string {
	if len(targets) == 0 || slices.ContainsFunc(targets, func(t v1alpha1.PostTarget) bool { return t.Caption == "" }) {
		return ""
	}
	return targets[0].Caption
}

func namesOf(references []v1alpha1.MediaReference) []string {
	out := make([]string, 0, len(references))
	for _, r := range references {
		out = append(out, r.Name)
	}
	return out
}
