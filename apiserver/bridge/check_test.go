// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/platforms"
)

// checkService returns a service that may post to x, tok, tube and book, each on its own platform, with small limits.
func checkService() (*bridge.Service, *files) {
	of := func(platform v1alpha1.Platform) *v1alpha1.Connection {
		c := onX(string(platform))
		c.Spec.Platform = platform
		return c
	}
	memory := map[string]*v1alpha1.Connection{
		"x": of(v1alpha1.PlatformX), "tok": of(v1alpha1.PlatformTikTok), "tube": of(v1alpha1.PlatformYouTube), "book": of(v1alpha1.PlatformFacebook),
	}
	f := &files{stored: map[string]*v1alpha1.Media{
		"m":       {ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: photo(nil), Status: v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded}},
		"fresh":   {ObjectMeta: metav1.ObjectMeta{Name: "fresh"}, Spec: photo(nil)},
		"expired": {ObjectMeta: metav1.ObjectMeta{Name: "expired"}, Spec: photo(nil), Status: v1alpha1.MediaStatus{Phase: v1alpha1.MediaExpired}},
	}}
	s := withFiles(f)
	s.Connections = &connections{memory: memory, err: errors.New("the API must not be read")}
	s.Capabilities = func(platform v1alpha1.Platform) (platforms.Capabilities, bool) {
		c := platforms.Capabilities{
			Categories: []v1alpha1.Category{v1alpha1.CategoryText, v1alpha1.CategoryImage, v1alpha1.CategoryVideo, v1alpha1.CategoryTree}, MaxImages: 2,
			Card: platforms.CardLimits{MaxItems: 4},
		}
		if platform != v1alpha1.PlatformFacebook {
			c.MaxCaption, c.CaptionUnit, c.CaptionLength = 5, "letters", utf8.RuneCountInString
		}
		if platform == v1alpha1.PlatformYouTube {
			c.MaxTitle, c.TitleLength = 3, utf8.RuneCountInString
		}
		if platform == v1alpha1.PlatformTikTok {
			c.ValidateOptions = func(target *v1alpha1.PostTarget, draft bool, _ *v1alpha1.ConnectionStatus, path *field.Path) field.ErrorList {
				if draft || target.TikTok != nil {
					return nil
				}
				return field.ErrorList{field.Required(path.Child("tiktok", "privacyLevel"), "choose who sees it")}
			}
		}
		return c, true
	}
	return s, f
}

func TestCheckPost(t *testing.T) {
	t.Parallel()
	to := func(name, caption string) v1alpha1.PostTarget {
		return v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: name}, Caption: caption}
	}
	images := func(names ...string) *v1alpha1.ImageContent {
		c := &v1alpha1.ImageContent{}
		for _, name := range names {
			c.MediaRefs = append(c.MediaRefs, v1alpha1.MediaReference{Name: name})
		}
		return c
	}
	tree := func(cards ...string) v1alpha1.PostSpec {
		spec := v1alpha1.PostSpec{Category: v1alpha1.CategoryTree, Tree: &v1alpha1.TreeContent{}, Targets: []v1alpha1.PostTarget{to("x", ""), to("book", "")}}
		for _, card := range cards {
			spec.Tree.Cards = append(spec.Tree.Cards, v1alpha1.TreeCard{Caption: card})
		}
		return spec
	}
	draft := func(spec v1alpha1.PostSpec) v1alpha1.PostSpec {
		spec.Draft = true
		return spec
	}
	text := func(targets ...v1alpha1.PostTarget) v1alpha1.PostSpec {
		return v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: targets}
	}
	blank := tree("  ", "  ")
	blank.Tree.Cards[0].MediaRefs = images("m").MediaRefs
	tooLate := text(to("x", "a"))
	tooLate.ScheduledAt = v1alpha1.NewTimePtr(time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC))
	late := text(to("x", "a"))
	late.ScheduledAt = v1alpha1.NewTimePtr(now.Add(-time.Second))
	for name, tc := range map[string]struct {
		reason  string
		spec    v1alpha1.PostSpec
		lengths string
		// problems are "target/card field: message"; those after ">" only block publishing a draft.
		problems []string
	}{
		"Good":         {"a valid text has no problems", text(to("x", "Hellö")), "x 5/5 letters", nil},
		"TooLong":      {"each target has its own limit", text(to("x", "Hello!"), to("book", "Hello!")), "x 6/5 letters, facebook 6/0 characters", []string{"0/-1 caption: 6 letters are too many"}},
		"Title":        {"titles have a limit as well", v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "tube"}, Caption: "a", YouTube: &v1alpha1.YouTubeOptions{Title: "long"}}}}, "youtube 1/5 letters title 4/3", []string{"0/-1 youtube.title: 4 characters"}},
		"Nobody":       {"the connection was deleted, perhaps after the page was loaded, and is not probed", text(to("gone", "a")), " 0/0 ", []string{`0/-1 connectionRef.name: no such connection "gone"`}},
		"DraftLater":   {"a draft's problems are listed", draft(text(to("x", ""), to("tok", "a"))), "x 0/5 letters, tiktok 1/5 letters", []string{">0/-1 caption: a post that is not a draft needs a caption", ">1/-1 tiktok.privacyLevel: choose who sees it"}},
		"DraftTooLong": {"limits apply to drafts, and are reported once", draft(text(to("x", "Hello!"))), "x 6/5 letters", []string{"0/-1 caption: 6 letters"}},
		"Options":      {"a rule of one platform", text(to("tok", "a")), "tiktok 1/5 letters", []string{"0/-1 tiktok.privacyLevel: choose"}},
		"Late":         {"the time has its own path", late, "x 1/5 letters", []string{"-1/-1 scheduledAt: must be in the future"}},
		"TooLate":      {"its year is not supported", tooLate, "x 1/5 letters", []string{"-1/-1 scheduledAt: must not be after the year 2999"}},
		"BlanksAlone":  {"without files, blanks count as text", text(to("x", "  ")), "x 2/5 letters", nil},
		"BlanksOnCard": {"each card without files counts too", blank, "x 0/5 letters, facebook 0/0 characters; x 0/5, facebook 0/0; x 2/5, facebook 2/0", nil},
		"Blanks":       {"with files, blanks do not count as text", v1alpha1.PostSpec{Category: v1alpha1.CategoryImage, Image: images("m"), Targets: []v1alpha1.PostTarget{to("x", "  ")}}, "x 0/5 letters", nil},
		"Fresh":        {"its upload has just ended; it is verified when the post is stored", v1alpha1.PostSpec{Category: v1alpha1.CategoryImage, Image: images("fresh"), Targets: []v1alpha1.PostTarget{to("x", "a")}}, "x 1/5 letters", nil},
		"Files": {
			"problems of files",
			v1alpha1.PostSpec{Category: v1alpha1.CategoryImage, Image: images("expired", "gone", "m", "../m"), Targets: []v1alpha1.PostTarget{to("x", "a")}},
			"x 1/5 letters",
			[]string{"-1/-1 image.mediaRefs[0].name: the file is gone", `-1/-1 image.mediaRefs[1].name: no such media file "gone"`, "-1/-1 image.mediaRefs[3].name: no such media file", "-1/-1 image.mediaRefs: x accepts at most 2 images"},
		},
		"Tree":      {"cards are counted per platform", tree("one", "too long"), "x 0/5 letters, facebook 0/0 characters; x 3/5, facebook 3/0; x 8/5, facebook 8/0", []string{"-1/1 caption: 8 letters"}},
		"DraftTree": {"cards may be completed later", draft(tree("one")), "x 0/5 letters, facebook 0/0 characters; x 3/5, facebook 3/0", []string{">-1/-1 tree.cards: a tree needs at least two cards"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := checkService()
			before := *tc.spec.DeepCopy()
			got := s.CheckPost(t.Context(), person, &tc.spec)
			if diff := cmp.Diff(tc.lengths, lengths(&got)); diff != "" {
				t.Errorf("%s: lengths:\n%s", tc.reason, diff)
			}
			var problems []string
			for _, p := range got.Problems {
				problems = append(problems, fmt.Sprintf("%d/%d %s: %s", p.Target, p.Card, p.Field, p.Message))
			}
			for _, p := range got.BeforePublishing {
				problems = append(problems, fmt.Sprintf(">%d/%d %s: %s", p.Target, p.Card, p.Field, p.Message))
			}
			if len(problems) != len(tc.problems) {
				t.Fatalf("%s: problems %q, want %q", tc.reason, problems, tc.problems)
			}
			for i, want := range tc.problems {
				if !strings.HasPrefix(problems[i], want) {
					t.Errorf("%s: problem %q, want %q", tc.reason, problems[i], want)
				}
			}
			if !v1alpha1.SemanticEqual(before, tc.spec) {
				t.Errorf("%s: the post was changed", tc.reason)
			}
		})
	}
}

func lengths(c *bridge.Check) string {
	var targets, cards []string
	for _, t := range c.Targets {
		s := fmt.Sprintf("%s %d/%d %s", t.Platform, t.Caption.Count, t.Caption.Limit, t.Caption.Unit)
		if t.Title.Limit > 0 {
			s += fmt.Sprintf(" title %d/%d", t.Title.Count, t.Title.Limit)
		}
		targets = append(targets, s)
	}
	for _, card := range c.Cards {
		var captions []string
		for _, p := range card.Captions {
			captions = append(captions, fmt.Sprintf("%s %d/%d", p.Platform, p.Count, p.Limit))
		}
		cards = append(cards, "; "+strings.Join(captions, ", "))
	}
	return strings.Join(targets, ", ") + strings.Join(cards, "")
}

// TestCheckAgreesWithCreate verifies that the live check reports the same problems as saving.
func TestCheckAgreesWithCreate(t *testing.T) {
	t.Parallel()
	s, _ := checkService()
	spec := saying("Hello!", "x")
	check := s.CheckPost(t.Context(), person, &spec)
	_, err := s.CreatePost(t.Context(), person, bridge.CreatePost{Spec: spec})
	refused, ok := errors.AsType[*bridge.Error](err)
	if !ok {
		t.Fatalf("create accepts the post: %v", err)
	}
	if diff := cmp.Diff(check.Problems, refused.Problems); diff != "" || len(check.Problems) != 1 {
		t.Errorf("checked %+v, refused %+v", check.Problems, refused.Problems)
	}
}

// TestCheckOfUnreadableFiles verifies that a check continues if files cannot be read, and reports content outside the
// plan.
func TestCheckOfUnreadableFiles(t *testing.T) {
	t.Parallel()
	s, f := checkService()
	var log bytes.Buffer
	s.Log = slog.New(slog.NewTextHandler(&log, nil))
	f.reading = errors.New("boom")
	for _, spec := range []v1alpha1.PostSpec{
		{Category: v1alpha1.CategoryImage, Image: &v1alpha1.ImageContent{MediaRefs: []v1alpha1.MediaReference{{Name: "m"}}}, Targets: saying("a", "x").Targets},
		{Category: v1alpha1.CategoryVideo, Video: &v1alpha1.VideoContent{MediaRef: v1alpha1.MediaReference{Name: "m"}}, Targets: saying("a", "x").Targets},
	} {
		if got := s.CheckPost(t.Context(), person, &spec); len(got.Problems) != 0 {
			t.Errorf("an unavailable check must not report problems: %+v", got.Problems)
		}
	}
	if strings.Count(log.String(), "media=m error=boom") != 2 {
		t.Errorf("logged:\n%s", &log)
	}
	var many []*v1alpha1.Connection
	for i := range 11 {
		many = append(many, account(fmt.Sprint("c", i), v1alpha1.PlatformX, i, nil))
	}
	memory := map[string]*v1alpha1.Connection{"c10": many[10]}
	s.Owner, s.Connections = starter{}.Owner, &listing{connections{memory: memory}, many}
	spec := saying("a", "c10")
	got := s.CheckPost(t.Context(), person, &spec)
	if len(got.Problems) != 1 || !strings.Contains(got.Problems[0].Message, "allows 10 connected accounts") {
		t.Errorf("the plan does not cover the account: %+v", got.Problems)
	}
}

// slowMedia counts reads, both in total and concurrent.
type slowMedia struct {
	*files

	mu                 sync.Mutex
	reads, under, most int
}

func (m *slowMedia) Get(ctx context.Context, namespace, name string) (*v1alpha1.Media, error) {
	m.trackReads(1)
	defer m.trackReads(-1)
	time.Sleep(time.Second) //nolint:forbidigo // fake clock
	return m.files.Get(ctx, namespace, name)
}

func (m *slowMedia) trackReads(change int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads += max(change, 0)
	m.under += change
	m.most = max(m.most, m.under)
}

// TestCheckReadsFiles verifies that a check reads each file once, at most eight concurrently, and none for a post with
// too many files.
func TestCheckReadsFiles(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cards, each int
		reads, most int
	}{
		"Some":    {2, 10, 10, 8},
		"TooMany": {101, 20, 0, 0},
		"Bounded": {20, 20, 200, 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, f := checkService()
				m := &slowMedia{files: f}
				s.Media = m
				spec := v1alpha1.PostSpec{Category: v1alpha1.CategoryTree, Tree: &v1alpha1.TreeContent{}, Targets: saying("", "x").Targets}
				for c := range tc.cards {
					var card v1alpha1.TreeCard
					for i := range tc.each {
						of := c
						if tc.reads == tc.each {
							of = 0 // both cards have the same files
						}
						card.MediaRefs = append(card.MediaRefs, v1alpha1.MediaReference{Name: fmt.Sprint("m", of*tc.each+i)})
					}
					spec.Tree.Cards = append(spec.Tree.Cards, card)
				}
				s.CheckPost(t.Context(), person, &spec)
				if m.reads != tc.reads || m.most != tc.most {
					t.Errorf("%d reads, %d of them concurrent; want %d and %d", m.reads, m.most, tc.reads, tc.most)
				}
			})
		})
	}
}

// TestCheckIsBounded checks posts with many problems and with many files.
func TestCheckIsBounded(t *testing.T) {
	t.Parallel()
	s, f := checkService()
	for i := range 200 {
		f.stored[fmt.Sprintf("m%x-%x", i/4, i%4)] = &v1alpha1.Media{Spec: photo(nil), Status: v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded}}
	}
	for reason, tc := range map[string]struct {
		spec v1alpha1.PostSpec
		want int
		cost int
	}{
		"a form shows at most 100 problems": {thread(101, 0, "m", func(s *v1alpha1.PostSpec) {
			s.Targets, s.Draft = to("x"), false
			for i := range s.Tree.Cards {
				s.Tree.Cards[i].Caption = "too long"
			}
		}), 100, 0},
		"files beyond the first 200 count as valid": {thread(51, 4, "m", func(s *v1alpha1.PostSpec) { s.Targets = to("x") }), 0, 20},
	} {
		ctx, meter := limits.WithMeter(t.Context())
		if got := s.CheckPost(ctx, person, &tc.spec); len(got.Problems) != tc.want || meter.Requests() != tc.cost {
			t.Errorf("%s: %d problems, want %d; costs %d more requests, want %d", reason, len(got.Problems), tc.want, meter.Requests(), tc.cost)
		}
	}
}
