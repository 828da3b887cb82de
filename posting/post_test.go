// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package posting

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

var t0 = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)

// post returns a post with one target per entry, and at least one target.
func post(change func(*v1alpha1.Post), entries ...v1alpha1.TargetStatus) *v1alpha1.Post {
	p := &v1alpha1.Post{}
	p.Generation = 2
	p.CreationTimestamp = metav1.NewTime(t0)
	p.Spec.Category = v1alpha1.CategoryText
	for i := range max(len(entries), 1) {
		p.Spec.Targets = append(p.Spec.Targets, v1alpha1.PostTarget{Caption: "hello"})
		if i < len(entries) {
			entries[i].Index = int32(i)
			p.Status.Targets = append(p.Status.Targets, entries[i])
		}
	}
	if change != nil {
		change(p)
	}
	return p
}

func entry(phase v1alpha1.PostPhase, tried bool) v1alpha1.TargetStatus {
	t := v1alpha1.TargetStatus{Phase: phase}
	if tried {
		t.Attempt = &v1alpha1.Attempt{Number: 1, ID: "a"}
	}
	return t
}

func refused(generation int64) func(*v1alpha1.Post) {
	return func(p *v1alpha1.Post) {
		p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionFalse, ObservedGeneration: generation, Message: "bad"}}
	}
}

func TestPhases(t *testing.T) {
	waits := v1alpha1.TargetStatus{TryUntil: v1alpha1.NewTimePtr(t0.Add(time.Hour))}
	scheduled := func(p *v1alpha1.Post) { p.Spec.ScheduledAt = v1alpha1.NewTimePtr(t0.Add(time.Hour)) }
	ended := []v1alpha1.PostPhase{v1alpha1.PhasePosted, v1alpha1.PhaseFailed, v1alpha1.PhaseCancelled}
	for _, tt := range []struct {
		name       string
		reason     string
		post       *v1alpha1.Post
		want       v1alpha1.PostPhase
		wantTarget v1alpha1.PostPhase
		wantCancel bool
	}{
		{"immediate", "reads as processing from its first response on", post(nil), v1alpha1.PhaseProcessing, v1alpha1.PhaseProcessing, false},
		{"draft", "kept", post(func(p *v1alpha1.Post) { p.Spec.Draft = true }), v1alpha1.PhaseDraft, v1alpha1.PhaseDraft, true},
		{"scheduled", "its time is in the future", post(scheduled), v1alpha1.PhaseScheduled, v1alpha1.PhaseScheduled, true},
		{"late", "scheduled until the claim is stored, but its time has passed", post(func(p *v1alpha1.Post) {
			p.Spec.ScheduledAt = v1alpha1.NewTimePtr(t0.Add(-time.Hour))
		}), v1alpha1.PhaseScheduled, v1alpha1.PhaseScheduled, false},
		{"cancelled", "before a claim", post(func(p *v1alpha1.Post) { scheduled(p); p.Spec.Cancelled = true }), v1alpha1.PhaseCancelled, v1alpha1.PhaseCancelled, false},
		{"claimed", "a claimed post is processing", post(scheduled, entry(v1alpha1.PhaseProcessing, true)), v1alpha1.PhaseProcessing, v1alpha1.PhaseProcessing, false},
		{"one of two posted", "not every target is settled", post(nil, entry(v1alpha1.PhasePosted, true), entry(v1alpha1.PhaseProcessing, false)), v1alpha1.PhaseProcessing, v1alpha1.PhasePosted, false},
		{"posted", "every target is", post(nil, entry(v1alpha1.PhasePosted, true), entry(v1alpha1.PhasePosted, true)), v1alpha1.PhasePosted, v1alpha1.PhasePosted, false},
		{"partly failed", "posted targets remain posted, but the post failed", post(nil, entry(v1alpha1.PhasePosted, true), entry(v1alpha1.PhaseFailed, true)), v1alpha1.PhaseFailed, v1alpha1.PhasePosted, false},
		{"refused", "the post waits for a correction", post(refused(2)), v1alpha1.PhaseProcessing, v1alpha1.PhaseProcessing, false},
		{"refused, scheduled", "the post stays scheduled, and may be cancelled", post(func(p *v1alpha1.Post) { scheduled(p); refused(2)(p) }), v1alpha1.PhaseScheduled, v1alpha1.PhaseScheduled, true},
		{"refused draft", "the post stays a draft, and may be cancelled", post(func(p *v1alpha1.Post) { p.Spec.Draft = true; refused(2)(p) }), v1alpha1.PhaseDraft, v1alpha1.PhaseDraft, true},
		{"refused, cancelled", "once is enough", post(func(p *v1alpha1.Post) { scheduled(p); refused(2)(p); p.Spec.Cancelled = true }), v1alpha1.PhaseCancelled, v1alpha1.PhaseCancelled, false},
		{"due and waiting", "the reason for waiting is recorded, regardless of the clock", post(scheduled, waits), v1alpha1.PhaseProcessing, v1alpha1.PhaseProcessing, false},
		{"due and waiting, cancelled", "the post has no claim", post(func(p *v1alpha1.Post) { scheduled(p); p.Spec.Cancelled = true }, waits), v1alpha1.PhaseCancelled, v1alpha1.PhaseCancelled, false},
		{"the waiting target was removed", "an edit removed the target and rescheduled the post", post(func(p *v1alpha1.Post) { scheduled(p); p.Spec.Targets = p.Spec.Targets[:1] }, v1alpha1.TargetStatus{}, waits), v1alpha1.PhaseScheduled, v1alpha1.PhaseScheduled, true},
		{"made a draft again", "a draft does not wait", post(func(p *v1alpha1.Post) { p.Spec.Draft = true }, waits), v1alpha1.PhaseDraft, v1alpha1.PhaseDraft, true},
		{"cancelled after it was published", "a cancellation does not withdraw an earlier object's publication", post(func(p *v1alpha1.Post) {
			p.Status.CancelledAt = v1alpha1.NewTimePtr(t0)
		}, entry(v1alpha1.PhasePosted, false)), v1alpha1.PhasePosted, v1alpha1.PhasePosted, false},
		{"failed", "the deadline passed, so the post cannot be published", post(scheduled, entry(v1alpha1.PhaseFailed, false)), v1alpha1.PhaseFailed, v1alpha1.PhaseFailed, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Of(tt.post).Phase(); got != tt.want {
				t.Errorf("Phase = %s, want %s (%s)", got, tt.want, tt.reason)
			}
			if got := Of(tt.post).TargetPhase(0); got != tt.wantTarget {
				t.Errorf("TargetPhase = %s, want %s (%s)", got, tt.wantTarget, tt.reason)
			}
			if got := Of(tt.post).CanCancel(t0); got != tt.wantCancel {
				t.Errorf("CanCancel = %v, want %v (%s)", got, tt.wantCancel, tt.reason)
			}
			if got := Unfinished(tt.want); got == slices.Contains(ended, tt.want) {
				t.Errorf("Unfinished = %v for %s", got, tt.want)
			}
		})
	}
}

func TestTitle(t *testing.T) {
	for _, tt := range []struct {
		name     string
		captions []string
		want     string
	}{
		{"none", []string{""}, ""},
		{"short", []string{"hi"}, "hi"},
		{"first that is not empty", []string{"", "second"}, "second"},
		{"thirty code points", []string{"ééééééééééééééééééééééééééééééXY"}, "éééééééééééééééééééééééééééééé"},
		{"an emoji is one code point here", []string{"🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉"}, "🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉🎉"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &v1alpha1.Post{}
			for _, c := range tt.captions {
				p.Spec.Targets = append(p.Spec.Targets, v1alpha1.PostTarget{Caption: c})
			}
			if got := Of(p).Title(nobody); got != tt.want {
				t.Errorf("Title = %q, want %q", got, tt.want)
			}
		})
	}
}

func nobody(int) v1alpha1.Platform { return "" }

func TestTitleOfContent(t *testing.T) {
	onYouTube := func(i int) v1alpha1.Platform {
		return []v1alpha1.Platform{v1alpha1.PlatformX, v1alpha1.PlatformYouTube}[i]
	}
	titled := func(title string) *v1alpha1.YouTubeOptions { return &v1alpha1.YouTubeOptions{Title: title} }
	for _, tt := range []struct {
		name string
		spec v1alpha1.PostSpec
		want string
	}{
		{"the complete YouTube title", v1alpha1.PostSpec{Targets: []v1alpha1.PostTarget{
			{Caption: "first"}, {Caption: "second", YouTube: titled("a title of more than thirty characters, kept")},
		}}, "a title of more than thirty characters, kept"},
		{"no title for another platform", v1alpha1.PostSpec{Targets: []v1alpha1.PostTarget{{Caption: "first", YouTube: titled("title")}, {}}}, "first"},
		{"a YouTube draft without a title", v1alpha1.PostSpec{Targets: []v1alpha1.PostTarget{{}, {Caption: "second", YouTube: titled("")}}}, "second"},
		{"the first card with text", v1alpha1.PostSpec{Targets: []v1alpha1.PostTarget{{}}, Tree: &v1alpha1.TreeContent{
			Cards: []v1alpha1.TreeCard{{}, {Caption: "card"}},
		}}, "card"},
	} {
		if got := Of(&v1alpha1.Post{Spec: tt.spec}).Title(onYouTube); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestHeading(t *testing.T) {
	words := strings.Repeat("nine chars", 20)
	for name, tc := range map[string]struct {
		reason, caption, want string
	}{
		"Short":   {"the text fits", "A caption that is longer than a title, and not too long", "A caption that is longer than a title, and not too long"},
		"Exact":   {"the text ends at the limit", strings.Repeat("ü", 120), strings.Repeat("ü", 120)},
		"Long":    {"a heading ends after a word, with an ellipsis", words, words[:114] + "…"},
		"OneWord": {"a long word is truncated", strings.Repeat("ü", 121), strings.Repeat("ü", 120) + "…"},
		"Late":    {"a heading starts with the title", "one two " + strings.Repeat("ü", 121), "one two " + strings.Repeat("ü", 112) + "…"},
		"Title":   {"the text is cut after the title, which is a whole word", strings.Repeat("ü", 30) + " " + strings.Repeat("ü", 121), strings.Repeat("ü", 30) + "…"},
		"Nothing": {"a post may have no text", "", ""},
	} {
		post := Of(&v1alpha1.Post{Spec: v1alpha1.PostSpec{Targets: []v1alpha1.PostTarget{{Caption: tc.caption}}}})
		if got := post.Heading(nobody); got != tc.want || !strings.HasPrefix(got, post.Title(nobody)) {
			t.Errorf("%s: %s: %q, want %q", name, tc.reason, got, tc.want)
		}
	}
	options := &v1alpha1.YouTubeOptions{Title: "Its title"}
	post := Of(&v1alpha1.Post{Spec: v1alpha1.PostSpec{Targets: []v1alpha1.PostTarget{{Caption: "text", YouTube: options}}}})
	if got := post.Heading(func(int) v1alpha1.Platform { return v1alpha1.PlatformYouTube }); got != "Its title" {
		t.Errorf("a film's heading is its title, got %q", got)
	}
}

func TestMediaNames(t *testing.T) {
	ref := func(name string) v1alpha1.MediaReference { return v1alpha1.MediaReference{Name: name} }
	for _, tt := range []struct {
		name string
		spec v1alpha1.PostSpec
		want []string
	}{
		{"text", v1alpha1.PostSpec{}, nil},
		{"content without a category", v1alpha1.PostSpec{
			Image: &v1alpha1.ImageContent{MediaRefs: []v1alpha1.MediaReference{ref("a")}},
			Video: &v1alpha1.VideoContent{MediaRef: ref("b")},
			Tree:  &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{MediaRefs: []v1alpha1.MediaReference{ref("a"), ref("c")}}}},
		}, []string{"a", "b", "c"}},
		{"images, each once", v1alpha1.PostSpec{Image: &v1alpha1.ImageContent{MediaRefs: []v1alpha1.MediaReference{ref("b"), ref("a"), ref("b")}}}, []string{"b", "a"}},
		{"a video", v1alpha1.PostSpec{Video: &v1alpha1.VideoContent{MediaRef: ref("v")}}, []string{"v"}},
		{"cards", v1alpha1.PostSpec{Tree: &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{
			{}, {MediaRefs: []v1alpha1.MediaReference{ref("a")}}, {MediaRefs: []v1alpha1.MediaReference{ref("b"), ref("a")}},
		}}}, []string{"a", "b"}},
	} {
		if diff := cmp.Diff(tt.want, Of(&v1alpha1.Post{Spec: tt.spec}).MediaNames()); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

func TestCards(t *testing.T) {
	cards := &v1alpha1.TreeContent{Cards: make([]v1alpha1.TreeCard, 3)}
	for _, tt := range []struct {
		name, reason string
		spec         v1alpha1.PostSpec
		want         int
	}{
		{"a tree", "each card is published", v1alpha1.PostSpec{Category: v1alpha1.CategoryTree, Tree: cards}, 3},
		{"a tree without content", "the rules reject it", v1alpha1.PostSpec{Category: v1alpha1.CategoryTree}, 0},
		{"a text with cards", "the rules reject it", v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Tree: cards}, 0},
	} {
		if got := Of(&v1alpha1.Post{Spec: tt.spec}).Cards(); got != tt.want {
			t.Errorf("%s: got %d, want %d (%s)", tt.name, got, tt.want, tt.reason)
		}
	}
}

func TestTooLarge(t *testing.T) {
	for _, tt := range []struct {
		reason string
		err    error
		want   bool
	}{
		{"the post was stored", nil, false},
		{"etcd rejects it", errors.New("etcdserver: request is too large"), true},
		{"the etcd client rejects it", errors.New("rpc error: trying to send message larger than max (2 vs. 1)"), true},
		{"another rejection", errors.New("etcdserver: leader changed"), false},
	} {
		if got := TooLarge(tt.err); got != tt.want {
			t.Errorf("%s: got %t for %v", tt.reason, got, tt.err)
		}
	}
}

func TestDisplayAt(t *testing.T) {
	at := func(d time.Duration) *v1alpha1.Time { return v1alpha1.NewTimePtr(t0.Add(d)) }
	sent := post(func(p *v1alpha1.Post) { p.Spec.ScheduledAt = at(time.Hour) }, entry(v1alpha1.PhasePosted, true), entry(v1alpha1.PhasePosted, true))
	sent.Status.Targets[0].PostedAt, sent.Status.Targets[1].PostedAt = at(3*time.Hour), at(2*time.Hour)
	partly := post(nil, entry(v1alpha1.PhasePosted, true), entry(v1alpha1.PhasePosted, true))
	partly.Status.Targets[1].PostedAt = at(3 * time.Hour)
	for _, tt := range []struct {
		name string
		post *v1alpha1.Post
		want time.Duration
	}{
		{"created", post(nil), 0},
		{"created at the apiserver's annotated time", post(func(p *v1alpha1.Post) {
			p.Annotations = map[string]string{v1alpha1.BornAnnotation: t0.Add(300 * time.Millisecond).Format(time.RFC3339Nano)}
		}), 300 * time.Millisecond},
		{"recreated from a backup", post(func(p *v1alpha1.Post) {
			p.Annotations = map[string]string{v1alpha1.BornAnnotation: t0.Add(-time.Hour).Format(time.RFC3339Nano)}
		}), 0},
		{"scheduled", post(func(p *v1alpha1.Post) { p.Spec.ScheduledAt = at(time.Hour) }), time.Hour},
		{"posted, at its first target", sent, 2 * time.Hour},
		{"posted by an earlier version to one of its targets, without a time for the other", partly, 3 * time.Hour},
	} {
		if got := Of(tt.post).DisplayAt(); !got.Equal(t0.Add(tt.want)) {
			t.Errorf("%s: DisplayAt = %v, want %v after creation", tt.name, got.Sub(t0), tt.want)
		}
	}
}

func TestTryUntil(t *testing.T) {
	kept := post(func(p *v1alpha1.Post) { p.Status.ObservedGeneration = 1 }, entry(v1alpha1.PhaseDraft, false))
	for _, tt := range []struct {
		name   string
		reason string
		post   *v1alpha1.Post
		now    time.Duration
		want   time.Duration
		fixed  bool
	}{
		{"scheduled", "from its time on", post(func(p *v1alpha1.Post) { p.Spec.ScheduledAt = v1alpha1.NewTimePtr(t0.Add(time.Minute)) }), 30 * time.Minute, 61 * time.Minute, true},
		{"immediate", "the deadline counts from its creation", post(nil), 30 * time.Minute, time.Hour, true},
		{"the manager was unavailable", "the post does not fail immediately", post(nil), 3 * time.Hour, 4 * time.Hour, false},
		{"edited before any entry", "the post had no entry: its creation counts", post(func(p *v1alpha1.Post) { p.Status.ObservedGeneration = 1 }), 10 * time.Minute, time.Hour, true},
		{"edited before its first pass", "its entries are from this pass: its creation counts", post(nil, entry(v1alpha1.PhaseDraft, false)), 10 * time.Minute, time.Hour, true},
		{"promoted draft", "its creation was long ago, or does not count", kept, 10 * time.Minute, 70 * time.Minute, false},
	} {
		until, fixed := Of(tt.post).TryUntil(t0.Add(tt.now), time.Hour)
		if until.Sub(t0) != tt.want || fixed != tt.fixed {
			t.Errorf("%s: %s after creation, fixed %v; want %s, %v (%s)", tt.name, until.Sub(t0), fixed, tt.want, tt.fixed, tt.reason)
		}
	}
}

func TestRestored(t *testing.T) {
	for _, tt := range []struct {
		name string
		born string
		want bool
	}{
		{"created by kubectl", "", false},
		{"created by the apiserver just now", t0.Add(-time.Second).Format(time.RFC3339Nano), false},
		{"created by an apiserver with the maximum clock difference", t0.Add(-time.Minute).Format(time.RFC3339Nano), false},
		{"recreated a day later", t0.Add(-24 * time.Hour).Format(time.RFC3339Nano), true},
		{"an invalid annotation", "yesterday", false},
		{"an annotation from the future", t0.Add(24 * time.Hour).Format(time.RFC3339Nano), false},
	} {
		p := post(nil)
		if tt.born != "" {
			p.Annotations = map[string]string{v1alpha1.BornAnnotation: tt.born}
		}
		if got := Of(p).Restored(); got != tt.want {
			t.Errorf("%s: Restored = %v", tt.name, got)
		}
	}
}

// TestRecreated recreates a post's object as soon as the first one can be removed.
func TestRecreated(t *testing.T) {
	const margin = 2 * time.Second
	for _, tt := range []struct {
		name, reason string
		// born is the recorded creation time, relative to the creation of the first object.
		born time.Duration
		// remade is what Recreated should return for the first object, and shows is the time from which it is true for the
		// next one.
		remade bool
		shows  time.Duration
	}{
		{"just before", "an ordinary post: it must not look like a copy", -300 * time.Millisecond, false, 7700 * time.Millisecond},
		{"the maximum before", "an ordinary post: it must not count as a copy", -5 * time.Second, false, 3 * time.Second},
		{"longer before", "the post is looked up, like later posts", -5*time.Second - time.Millisecond, true, 0},
		{"a moment after", "clocks differ", 300 * time.Millisecond, false, 8300 * time.Millisecond},
		{"clearly after", "the apiserver's clock is fast, or a user wrote it; a copy must be recognized", 30 * time.Second, true, 38 * time.Second},
		{"the maximum clock difference after", "the margin is included", time.Minute, true, 68 * time.Second},
		{"hours after", "the wait is limited", 2 * time.Hour, true, 0},
	} {
		first := post(nil)
		first.Annotations = map[string]string{v1alpha1.BornAnnotation: t0.Add(tt.born).Format(time.RFC3339Nano)}
		if got := Of(first).Recreated(); got != tt.remade {
			t.Errorf("%s: %s: Remade = %v", tt.name, tt.reason, got)
		}
		shows := Of(first).RecreatedVisibleFrom(margin)
		if want := t0.Add(tt.shows); !shows.Equal(want) && (tt.shows != 0 || !shows.IsZero()) {
			t.Errorf("%s: %s: shows at %v, want %v", tt.name, tt.reason, shows, want)
		}
		if shows.IsZero() {
			continue
		}
		// Kubernetes' clock may be behind, and its times are in whole seconds.
		next := first.DeepCopy()
		next.CreationTimestamp.Time = shows.Add(-margin).Truncate(time.Second)
		if !Of(next).Recreated() {
			t.Errorf("%s: the next object, created at %v, must count as recreated", tt.name, next.CreationTimestamp)
		}
	}
	if !Of(post(nil)).RecreatedVisibleFrom(margin).IsZero() {
		t.Error("an applied post must be looked up whenever it is created")
	}
}

func TestCreated(t *testing.T) {
	for _, tt := range []struct {
		name, reason string
		born         time.Duration
		want         time.Duration
	}{
		{"just before", "the apiserver stores milliseconds, which Kubernetes drops", -300 * time.Millisecond, -300 * time.Millisecond},
		{"a moment after", "the clocks of the two differ a little", 300 * time.Millisecond, 300 * time.Millisecond},
		{"the maximum clock difference before", "the margin is included", -time.Minute, -time.Minute},
		{"the maximum clock difference after", "the margin is symmetric", time.Minute, time.Minute},
		{"a day before", "a copy keeps its original time", -24 * time.Hour, 0},
		{"more than the maximum clock difference after", "a creation time after the object's creation is invalid: users cannot move a post to another month", time.Minute + time.Millisecond, 0},
		{"years after", "an annotation that differs is invalid", 5 * 365 * 24 * time.Hour, 0},
	} {
		p := post(nil)
		p.Annotations = map[string]string{v1alpha1.BornAnnotation: t0.Add(tt.born).Format(time.RFC3339Nano)}
		if got := Of(p).Created().Sub(t0); got != tt.want {
			t.Errorf("%s: created %s after its creationTimestamp, want %s: %s", tt.name, got, tt.want, tt.reason)
		}
	}
	p := post(nil)
	p.CreationTimestamp = metav1.Time{}
	p.Annotations = map[string]string{v1alpha1.BornAnnotation: t0.Format(time.RFC3339Nano)}
	if got := Of(p).Created(); !got.Equal(t0) {
		t.Errorf("the post to be created is from %s, want its annotated time", got)
	}
}

func TestDue(t *testing.T) {
	p := &v1alpha1.Post{}
	p.CreationTimestamp.Time = t0
	if got := Of(p).Due(); !got.Equal(t0) {
		t.Errorf("an immediate post is due at %s, want its creation", got)
	}
	p.Spec.ScheduledAt = v1alpha1.NewTimePtr(t0.Add(time.Hour))
	if got := Of(p).Due(); !got.Equal(t0.Add(time.Hour)) {
		t.Errorf("a scheduled post is due at %s, want its time", got)
	}
}

func TestTextToSend(t *testing.T) {
	for _, tt := range []struct {
		reason, caption string
		besideFiles     bool
		want            string
	}{
		{"a text is sent unchanged", " hello\n", true, " hello\n"},
		{"blanks next to files are not a text", " \t\n\u00a0\u3000", true, ""},
		{"the rules reject blanks, so they are not dropped", " \n", false, " \n"},
		{"an empty text remains empty", "", true, ""},
	} {
		if got := TextToSend(tt.caption, tt.besideFiles); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.reason, got, tt.want)
		}
	}
}
