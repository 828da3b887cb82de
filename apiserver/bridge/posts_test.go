// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/apiserver/readiness"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/plan"
)

func at(d time.Duration) *v1alpha1.Time { return v1alpha1.NewTimePtr(now.Add(d)) }

func TestCreateChecks(t *testing.T) {
	t.Parallel()
	optionProblem := func(*v1alpha1.PostTarget, *v1alpha1.ConnectionStatus, *field.Path) field.ErrorList {
		return field.ErrorList{field.Forbidden(field.NewPath("spec", "targets").Index(0).Child("tiktok"), "this account cannot choose it")}
	}
	is := func(state readiness.State) func(context.Context, *v1alpha1.Connection) readiness.Result {
		return func(context.Context, *v1alpha1.Connection) readiness.Result {
			return readiness.Result{State: state, Message: "so it is"}
		}
	}
	for name, tc := range map[string]struct {
		reason  string
		change  func(in *bridge.CreatePost, s *bridge.Service)
		want    string
		message string
	}{
		"LastYear": {"a time can hold it", func(in *bridge.CreatePost, _ *bridge.Service) {
			in.Spec.ScheduledAt = v1alpha1.NewTimePtr(time.Date(2999, 12, 31, 23, 59, 59, 0, time.UTC))
		}, "", ""},
		"AfterTheLastYear": {"no time can hold it", func(in *bridge.CreatePost, _ *bridge.Service) {
			in.Spec.ScheduledAt = v1alpha1.NewTimePtr(time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC))
		}, "VALIDATION_ERROR", "scheduled_at: must not lie after the year 2999"},
		"Past": {"it cannot be kept", func(in *bridge.CreatePost, _ *bridge.Service) { in.Spec.ScheduledAt = at(-time.Hour) }, "VALIDATION_ERROR", "scheduled_at: "},
		"Problems": {"what the request says beside the post counts", func(in *bridge.CreatePost, _ *bridge.Service) {
			in.Problems = []string{"targets[0].tiktok: no"}
		}, "VALIDATION_ERROR", "targets[0].tiktok: no"},
		"Reconnect": {"a person has to connect the account first", func(_ *bridge.CreatePost, s *bridge.Service) {
			s.Readiness = is(readiness.Reconnect)
		}, "POSTING_READINESS_RECONNECT_REQUIRED", `nothing was posted; connection "acme" (x): so it is. Connect`},
		"Unavailable": {"it may pass", func(_ *bridge.CreatePost, s *bridge.Service) {
			s.Readiness = is(readiness.Unavailable)
		}, "POSTING_READINESS_UNAVAILABLE", `nothing was posted; connection "acme" (x): so it is. Resend`},
		"Draft": {"it has time to become ready", func(in *bridge.CreatePost, s *bridge.Service) {
			in.Spec.Draft = true
			s.Readiness = is(readiness.Reconnect)
		}, "", ""},
		"Options": {"what is wrong comes before what is not ready", func(_ *bridge.CreatePost, s *bridge.Service) {
			s.Readiness = is(readiness.Reconnect)
			s.Limits = func(v1alpha1.Platform) (platforms.Capabilities, bool) {
				return platforms.Capabilities{Categories: []v1alpha1.Category{v1alpha1.CategoryText}, ValidateOptions: optionProblem}, true
			}
		}, "TIKTOK_PRIVACY_LEVEL_UNAVAILABLE", "this account cannot choose it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &posts{stored: map[string]*v1alpha1.Post{}}
			s, in := service(p, inMemory("acme")), hello("acme")
			tc.change(&in, s)
			_, err := s.CreatePost(t.Context(), caller, in)
			if code(err) != tc.want || err != nil && !strings.Contains(err.Error(), tc.message) {
				t.Errorf("%s: error %v, want %q with %q", tc.reason, err, tc.want, tc.message)
			}
			if want := map[bool]int{true: 1}[tc.want == ""]; len(p.stored) != want {
				t.Errorf("%s: %d posts, want %d", tc.reason, len(p.stored), want)
			}
		})
	}
}

// TestReadinessOfMany checks all accounts of a post, and tells about all.
func TestReadinessOfMany(t *testing.T) {
	t.Parallel()
	const many = 5
	c := &connections{memory: map[string]*v1alpha1.Connection{}}
	in := hello("c0")
	in.Spec.Targets = nil
	for i := range many {
		name := fmt.Sprint("c", i)
		c.memory[name] = onX(name)
		in.Spec.Targets = append(in.Spec.Targets, target(name))
	}
	s := service(&posts{stored: map[string]*v1alpha1.Post{}}, c)
	var asked sync.WaitGroup
	asked.Add(many)
	s.Readiness = func(_ context.Context, connection *v1alpha1.Connection) readiness.Result {
		asked.Done()
		asked.Wait() // all are checked side by side
		state := readiness.Unavailable
		if connection.Name == "c3" || connection.Name == "c1" {
			state = readiness.Reconnect
		}
		return readiness.Result{State: state, Message: "no"}
	}
	_, err := s.CreatePost(t.Context(), caller, in)
	const want = `nothing was posted; connection "c1" (x): no; connection "c3" (x): no. Connect the account again, then resend the post.`
	if code(err) != "POSTING_READINESS_RECONNECT_REQUIRED" || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestCreateTellsTheLatest answers with the account's name that a check has just learnt.
func TestCreateTellsTheLatest(t *testing.T) {
	t.Parallel()
	learnt := onX("acme")
	learnt.Status.AccountName = "Acme"
	for name, tc := range map[string]struct {
		reason      string
		connections *connections
		learns      bool
		want        string
	}{
		"Learnt":   {"it is in memory by now", inMemory("acme"), true, "Acme"},
		"OnlyLive": {"the watch has not told it", &connections{live: map[string]*v1alpha1.Connection{"acme": learnt}}, false, "Acme"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := service(&posts{stored: map[string]*v1alpha1.Post{}}, tc.connections)
			s.Readiness = func(context.Context, *v1alpha1.Connection) readiness.Result {
				if tc.learns {
					tc.connections.memory["acme"] = learnt
				}
				return readiness.Result{State: readiness.Ready}
			}
			got, err := s.CreatePost(t.Context(), caller, hello("acme"))
			if err != nil || len(got.Platforms) != 1 || got.Platforms[0].AccountName != tc.want || got.Platforms[0].ConnectionID != "acme" {
				t.Errorf("%s: got %+v, %v", tc.reason, got.Platforms, err)
			}
		})
	}
}

// asking counts how often the Kubernetes API is asked.
type asking struct {
	*connections

	live int
}

func (a *asking) Live(ctx context.Context, namespace, name string) (*v1alpha1.Connection, error) {
	a.live++
	return a.connections.Live(ctx, namespace, name)
}

func TestCreateAsksOnce(t *testing.T) {
	t.Parallel()
	a := &asking{connections: &connections{live: map[string]*v1alpha1.Connection{"acme": onX("acme")}}}
	s := service(&posts{stored: map[string]*v1alpha1.Post{}}, a.connections)
	s.Connections = a
	if _, err := s.CreatePost(t.Context(), caller, hello("acme")); err != nil || a.live != 1 {
		t.Errorf("asked %d times for one connection that is not in memory: %v", a.live, err)
	}
}

// TestCreateCovered holds the plan's bound on accounts.
func TestCreateCovered(t *testing.T) {
	t.Parallel()
	most := plan.LimitsOf(starter{}.Owner("")).Accounts
	var all []*v1alpha1.Connection
	for i := range most {
		all = append(all, account(fmt.Sprint("c", i), v1alpha1.PlatformThreads, i, nil))
	}
	beyond := account("beyond", v1alpha1.PlatformThreads, most, nil)
	leaving := account("leaving", v1alpha1.PlatformThreads, most, func(c *v1alpha1.Connection) { c.DeletionTimestamp = &metav1.Time{Time: now} })
	for name, tc := range map[string]struct {
		reason   string
		owner    func(string) *v1alpha1.Team
		to       *v1alpha1.Connection
		listed   bool
		want     string
		notFound bool
	}{
		"Covered":   {"it is one of the oldest", starter{}.Owner, all[0], true, "", false},
		"Beyond":    {"the plan does not cover it", starter{}.Owner, beyond, true, "SUBSCRIPTION_REQUIRED", false},
		"NotListed": {"the watch has not told it, and the plan does not cover it", starter{}.Owner, beyond, false, "SUBSCRIPTION_REQUIRED", false},
		"NoLimit":   {"another plan covers all", owner{}.Owner, beyond, true, "", false},
		"Missing":   {"what does not exist is no matter of the plan", starter{}.Owner, account("none", "", 0, nil), false, "VALIDATION_ERROR", true},
		"Leaving":   {"what is being deleted is no matter of the plan", starter{}.Owner, leaving, true, "VALIDATION_ERROR", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &listing{all: slices.Clone(all)}
			l.memory = map[string]*v1alpha1.Connection{}
			if !tc.notFound {
				l.memory[tc.to.Name] = tc.to
			}
			if tc.listed {
				l.all = append(l.all, tc.to)
			}
			s := service(&posts{stored: map[string]*v1alpha1.Post{}}, &connections{})
			s.Connections, s.Owner, s.Quota = l, tc.owner, newCounts()
			if _, err := s.CreatePost(t.Context(), caller, hello(tc.to.Name)); code(err) != tc.want {
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// refusing is a count of which nothing is left for books of a kind when a request looks first.
type refusing struct {
	*counts

	kind string
	err  error
}

func (r *refusing) Check(_ context.Context, b quota.Counter, w *quota.Reservation, _ quota.Limit) (quota.Answer, error) {
	if r.err != nil {
		return quota.Answer{}, r.err
	}
	if b.Kind == r.kind {
		return quota.Answer{Refused: []int{w.Items[0].Target}, Used: 30}, nil
	}
	return quota.Answer{}, nil
}

// TestCreateLooksFirst refuses what cannot be counted before anything is checked that would cost a call.
func TestCreateLooksFirst(t *testing.T) {
	t.Parallel()
	bad := target("acme")
	bad.Caption = ""
	inbox := target("box")
	inbox.TikTok = &v1alpha1.TikTokOptions{Draft: true}
	for name, tc := range map[string]struct {
		reason  string
		refused string
		err     error
		targets []v1alpha1.PostTarget
		want    string
		message string
	}{
		"PlanFirst":     {"what the plan does not allow is told before what is wrong", quota.KindXPosts, nil, []v1alpha1.PostTarget{bad}, "SUBSCRIPTION_REQUIRED", "30 of December 2026 are used and this post needs 1"},
		"PlatformAfter": {"what is wrong is told before what a platform does not take", quota.KindTikTokDrafts, nil, []v1alpha1.PostTarget{bad, inbox}, "VALIDATION_ERROR", "caption"},
		"Platform":      {"a platform does not take it", quota.KindTikTokDrafts, nil, []v1alpha1.PostTarget{inbox}, "VALIDATION_ERROR", "targets[0].tiktok_draft: "},
		"Both":          {"the plan comes first", quota.KindXPosts, nil, []v1alpha1.PostTarget{inbox, target("acme")}, "SUBSCRIPTION_REQUIRED", ""},
		"Down":          {"what cannot be counted is not created", "", errors.New("boom"), []v1alpha1.PostTarget{target("acme")}, "internal", ""},
		"Room":          {"there is enough of all", "", nil, []v1alpha1.PostTarget{inbox, target("acme")}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := counting(&posts{stored: map[string]*v1alpha1.Post{}}, newCounts())
			s.Quota = &refusing{newCounts(), tc.refused, tc.err}
			asked := false
			s.Readiness = func(context.Context, *v1alpha1.Connection) readiness.Result {
				asked = true
				return readiness.Result{State: readiness.Ready}
			}
			_, err := s.CreatePost(t.Context(), caller, bridge.CreatePost{Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: tc.targets}})
			if code(err) != tc.want || err != nil && !strings.Contains(err.Error(), tc.message) || asked != (err == nil) {
				t.Errorf("%s: error %v, asked %t; want %q with %q", tc.reason, err, asked, tc.want, tc.message)
			}
		})
	}
}

// TestDraftsOfOneInbox counts each target that goes to an inbox, also if several go to the same.
func TestDraftsOfOneInbox(t *testing.T) {
	t.Parallel()
	c := newCounts()
	inbox := target("box")
	inbox.TikTok = &v1alpha1.TikTokOptions{Draft: true}
	s := counting(&posts{stored: map[string]*v1alpha1.Post{}}, c)
	other := onX("other")
	other.Spec.Platform, other.Spec.AccountID = v1alpha1.PlatformTikTok, "other"
	s.Connections.(*connections).memory["other"] = other
	elsewhere := target("other")
	elsewhere.TikTok = inbox.TikTok
	if _, err := s.CreatePost(t.Context(), caller, bridge.CreatePost{Spec: v1alpha1.PostSpec{
		Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{inbox, elsewhere, inbox},
	}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[int]int{0: 1, 2: 1}, c.held(t, boxBook)); diff != "" {
		t.Errorf("what is counted of the inbox:\n%s", diff)
	}
	if diff := cmp.Diff(map[int]int{1: 1}, c.held(t, quota.TikTokDrafts(other))); diff != "" {
		t.Errorf("what is counted of the other inbox:\n%s", diff)
	}
}

// TestRefusedWords words what the Kubernetes API refuses.
func TestRefusedWords(t *testing.T) {
	t.Parallel()
	refused := func(causes ...metav1.StatusCause) error {
		err := apierrors.NewInvalid(schema.GroupKind{Kind: "Post"}, "p", nil)
		err.ErrStatus.Details.Causes = causes
		return err
	}
	bare := apierrors.NewInvalid(schema.GroupKind{Kind: "Post"}, "p", nil)
	bare.ErrStatus.Details = nil
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   string
		text   string
	}{
		"Field":   {"it stands somewhere", refused(metav1.StatusCause{Field: "spec.scheduledAt", Message: "bad"}), "VALIDATION_ERROR", "scheduled_at: bad"},
		"NoField": {"it stands nowhere", refused(metav1.StatusCause{Message: "bad"}), "VALIDATION_ERROR", "bad"},
		"Nil":     {"so Kubernetes writes nowhere", refused(metav1.StatusCause{Field: "<nil>", Message: "bad"}), "VALIDATION_ERROR", "bad"},
		"NoCause": {"there is nothing to tell the client", refused(), "internal", "create a post: "},
		"Bare":    {"there is nothing to tell the client", bare, "internal", "create a post: "},
		"Down":    {"it may have been stored", apierrors.NewServiceUnavailable("down"), "uncertain", ""},
		"Server":  {"it may have been stored", apierrors.NewServerTimeout(resource, "create", 1), "uncertain", ""},
		"Error":   {"it may have been stored", apierrors.NewInternalError(errors.New("boom")), "uncertain", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fault{false, tc.err}
			p := &posts{stored: map[string]*v1alpha1.Post{}, faults: []fault{f, f, f}}
			_, err := service(p, inMemory("acme")).CreatePost(t.Context(), caller, hello("acme"))
			if code(err) != tc.want || tc.want == "VALIDATION_ERROR" && err.Error() != tc.text || !strings.HasPrefix(err.Error(), tc.text) {
				t.Errorf("%s: error %v, want %q: %s", tc.reason, err, tc.want, tc.text)
			}
		})
	}
}

// TestKeyThatCannotBeRead is sent a key again while the Kubernetes API does not answer.
func TestKeyThatCannotBeRead(t *testing.T) {
	t.Parallel()
	p := &unreadable{posts: &posts{stored: map[string]*v1alpha1.Post{}}}
	s := service(p.posts, inMemory("acme"))
	s.Posts = p
	in := hello("acme")
	in.IdempotencyKey = "k"
	if _, err := s.CreatePost(t.Context(), caller, in); code(err) != "internal" || !strings.Contains(err.Error(), "read what was created") || p.creates != 0 {
		t.Errorf("error %v after %d creates, want none of these: it may be there", err, p.creates)
	}
}

// unreadable are posts that cannot be read.
type unreadable struct{ *posts }

func (*unreadable) Get(context.Context, string, string) (*v1alpha1.Post, error) {
	return nil, errors.New("boom")
}

func TestPages(t *testing.T) {
	t.Parallel()
	s := service(&posts{stored: map[string]*v1alpha1.Post{}}, inMemory("acme"))
	for range 4 {
		if _, err := s.CreatePost(t.Context(), caller, hello("acme")); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		reason            string
		page, limit       int
		posts, onPage, of int
		next              bool
	}{
		{"more follow", 1, 2, 2, 1, 2, true},
		{"the last page is full", 2, 2, 2, 2, 2, false},
		{"a page is begun", 1, 3, 3, 1, 3, true},
		{"the last page is not full", 2, 3, 1, 2, 3, false},
		{"all fit", 1, 4, 4, 1, 4, false},
		{"behind the last page", 3, 2, 0, 3, 2, false},
		{"out of bounds", 0, 1000, 4, 1, 100, false},
	} {
		got := s.ListPosts(caller, postindex.Query{Page: tc.page, Limit: tc.limit})
		if len(got.Posts) != tc.posts || got.Total != 4 || got.Page != tc.onPage || got.Limit != tc.of || got.HasNext != tc.next {
			t.Errorf("%s: got %d posts, %+v", tc.reason, len(got.Posts), got)
		}
	}
	if title := s.ListPosts(caller, postindex.Query{Limit: 1}).Posts[0].Title; title != "Hello" {
		t.Errorf("the list says %q", title)
	}
}

// TestDetailTells holds what clients are told of a post beside its targets' states.
func TestDetailTells(t *testing.T) {
	t.Parallel()
	card := v1alpha1.TreeCard{Caption: "card"}
	p := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: caller.Namespace, Name: "p1"}, Spec: v1alpha1.PostSpec{
		Category: v1alpha1.CategoryTree, Tree: &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{card}}, ScheduledAt: at(time.Hour),
	}}
	c := inMemory("acme")
	c.memory["acme"].Status.AccountName = "Acme"
	c.memory["tube"] = account("tube", v1alpha1.PlatformYouTube, 0, nil)
	titled, untitled, both := target("tube"), target("tube"), target("acme")
	titled.YouTube, both.YouTube = &v1alpha1.YouTubeOptions{Title: "Launch"}, &v1alpha1.YouTubeOptions{Title: "Launch"}
	p.Spec.Targets = []v1alpha1.PostTarget{titled, untitled, both}
	p.Status.Targets = []v1alpha1.TargetStatus{{Index: 2, ExternalURL: "https://x/7"}}
	got, err := service(&posts{stored: map[string]*v1alpha1.Post{"p1": p}}, c).GetPost(t.Context(), caller, "p1")
	if err != nil {
		t.Fatal(err)
	}
	if got.ScheduledAt == nil || !got.ScheduledAt.Equal(now.Add(time.Hour)) || len(got.Cards) != 1 || got.Media != nil {
		t.Errorf("its time is %v, its cards %v, its media %v", got.ScheduledAt, got.Cards, got.Media)
	}
	var told []string
	for _, d := range got.Platforms {
		told = append(told, fmt.Sprintf("%s %q %q %q", d.Platform, d.AccountName, d.YouTubeTitle, d.ExternalURL))
	}
	if diff := cmp.Diff([]string{`youtube "" "Launch" ""`, `youtube "" "" ""`, `x "Acme" "" "https://x/7"`}, told); diff != "" {
		t.Errorf("account, title on YouTube alone, and address:\n%s", diff)
	}
	failed := p.DeepCopy()
	failed.Status.Targets = []v1alpha1.TargetStatus{{Index: 0, State: v1alpha1.TargetFailed}, {Index: 1, State: v1alpha1.TargetFailed, Reason: "Refused"}, {Index: 2, State: v1alpha1.TargetFailed}}
	got, err = service(&posts{stored: map[string]*v1alpha1.Post{"p1": failed}}, c).GetPost(t.Context(), caller, "p1")
	if err != nil || got.Platforms[0].ErrorMessage != "delivery failed for a reason that was not recorded" || got.Platforms[1].ErrorMessage != "Refused" {
		t.Errorf("%v, %+v", err, got.Platforms)
	}
}

// cancelling is a Kubernetes API in which posts can be cancelled.
type cancelling struct {
	*posts

	conflicts int
	version   string
}

func (c *cancelling) Cancel(_ context.Context, _, name, _ string) (*v1alpha1.Post, error) {
	if c.conflicts > 0 {
		c.conflicts--
		return nil, apierrors.NewConflict(resource, name, errors.New("written"))
	}
	post := c.stored[name].DeepCopy()
	post.Spec.Cancelled = true
	post.ResourceVersion = c.version
	c.stored[name] = post
	return post, nil
}

// returning notes what is given back.
type returning struct {
	*counts

	returned []string
	err      error
}

func (r *returning) Return(_ context.Context, b quota.Counter, post string, _ types.UID, keep func(int) int) error {
	r.returned = append(r.returned, fmt.Sprintf("%s of %s, %d and %d kept", b.Kind, post, keep(0), keep(1)))
	return r.err
}

func TestCancelReturnsWhatWasCounted(t *testing.T) {
	t.Parallel()
	inbox := target("box")
	inbox.TikTok = &v1alpha1.TikTokOptions{Draft: true}
	onXPosts, onInbox := quota.KindXPosts+" of p1, 0 and 0 kept", quota.KindTikTokDrafts+" of p1, 0 and 0 kept"
	for name, tc := range map[string]struct {
		reason    string
		draft     bool
		owner     func(string) *v1alpha1.Team
		targets   []v1alpha1.PostTarget
		conflicts int
		version   string
		err       error
		want      []string
		logged    string
	}{
		"Both":       {"all that it took", false, starter{}.Owner, []v1alpha1.PostTarget{target("acme"), inbox}, 0, "7", nil, []string{onXPosts, onInbox}, ""},
		"NoLimit":    {"a plan without a limit counts no posts to X", false, owner{}.Owner, []v1alpha1.PostTarget{target("acme"), inbox}, 0, "7", nil, []string{onInbox}, ""},
		"Nothing":    {"nothing was counted", false, owner{}.Owner, []v1alpha1.PostTarget{target("acme")}, 0, "7", nil, nil, ""},
		"Draft":      {"a draft takes nothing", true, starter{}.Owner, []v1alpha1.PostTarget{target("acme"), inbox}, 0, "7", nil, nil, ""},
		"Gone":       {"the connection is, and its inbox with it", false, owner{}.Owner, []v1alpha1.PostTarget{target("none")}, 0, "7", nil, nil, ""},
		"Anew":       {"it was written in between", false, owner{}.Owner, []v1alpha1.PostTarget{inbox}, 3, "7", nil, []string{onInbox}, ""},
		"Down":       {"it is cancelled all the same; the manager will", false, owner{}.Owner, []v1alpha1.PostTarget{inbox}, 0, "7", errors.New("boom"), []string{onInbox}, "Cannot give back yet"},
		"Unreadable": {"the watch will tell the list", false, owner{}.Owner, []v1alpha1.PostTarget{target("acme")}, 0, "new", nil, nil, "Cannot list a post"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &posts{stored: map[string]*v1alpha1.Post{"p1": {
				ObjectMeta: metav1.ObjectMeta{Namespace: caller.Namespace, Name: "p1", ResourceVersion: "6", CreationTimestamp: metav1.NewTime(now)},
				Spec:       v1alpha1.PostSpec{Draft: tc.draft, ScheduledAt: at(time.Hour), Targets: tc.targets},
			}}}
			s := counting(p, newCounts())
			var log bytes.Buffer
			r := &returning{counts: newCounts(), err: tc.err}
			s.Posts, s.Quota, s.Owner = &cancelling{posts: p, conflicts: tc.conflicts, version: tc.version}, r, tc.owner
			s.Log = slog.New(slog.NewTextHandler(&log, nil))
			before, err := postindex.ParseVersion("6")
			if err != nil {
				t.Fatal(err)
			}
			s.Index.Upsert(caller.Namespace, s.Summarise(p.stored["p1"]), before)
			if err := s.CancelPost(t.Context(), caller, "p1"); err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, r.returned); diff != "" {
				t.Errorf("%s: given back is\n%s", tc.reason, diff)
			}
			if (log.Len() > 0) != (tc.logged != "") || !strings.Contains(log.String(), tc.logged) {
				t.Errorf("%s: logged is %q, want %q", tc.reason, log.String(), tc.logged)
			}
			if listed := s.ListPosts(caller, postindex.Query{Limit: 1}); (listed.Total == 0) != (tc.version == "7") {
				t.Errorf("%s: the list, which shows no cancelled posts, says %+v", tc.reason, listed)
			}
		})
	}
}

// TestGiveBackFails notes what could not be given back, and answers all the same.
func TestGiveBackFails(t *testing.T) {
	t.Parallel()
	p := &posts{stored: map[string]*v1alpha1.Post{}, faults: []fault{{false, apierrors.NewForbidden(resource, "p", errors.New("no"))}}}
	s := counting(p, newCounts())
	var log bytes.Buffer
	s.Quota, s.Log = &stuck{newCounts()}, slog.New(slog.NewTextHandler(&log, nil))
	if _, err := s.CreatePost(t.Context(), caller, hello("acme")); code(err) != "internal" || !strings.HasPrefix(err.Error(), "create a post: ") {
		t.Errorf("error %v, want that of the create", err)
	}
	if !strings.Contains(log.String(), "Cannot give back yet") {
		t.Errorf("logged is %q", log.String())
	}
}

// TestKeepsWhatTheOtherPostTakes finds the post of another request under the same key: what that takes stays counted.
func TestKeepsWhatTheOtherPostTakes(t *testing.T) {
	t.Parallel()
	both := hello("acme")
	both.Spec.Targets = append(both.Spec.Targets, target("beta"))
	for name, tc := range map[string]struct {
		reason       string
		outer, inner bridge.CreatePost
		want         string
	}{
		"OnX":       {"it goes to X as well, and to one account only", both, hello("acme"), "1 and 0 kept"},
		"Elsewhere": {"it goes elsewhere", hello("acme"), hello("box"), "0 and 0 kept"},
		"OnXAndMore": {"it goes to X and elsewhere", both, bridge.CreatePost{Spec: v1alpha1.PostSpec{
			Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{target("acme"), target("box")},
		}}, "1 and 0 kept"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.outer.IdempotencyKey, tc.inner.IdempotencyKey = "k", "k"
			p := &posts{stored: map[string]*v1alpha1.Post{}}
			s, r := counting(p, newCounts()), &returning{counts: newCounts()}
			s.Quota = r
			p.creating = func() {
				p.creating = nil
				if _, err := s.CreatePost(t.Context(), caller, tc.inner); err != nil {
					t.Error(err)
				}
			}
			if _, err := s.CreatePost(t.Context(), caller, tc.outer); code(err) != "CONFLICT" {
				t.Fatalf("error %v", err)
			}
			if len(r.returned) != 1 || !strings.HasSuffix(r.returned[0], tc.want) {
				t.Errorf("%s: given back is %q, want %q", tc.reason, r.returned, tc.want)
			}
		})
	}
}

// TestGivesBackWhatItTook gives nothing back of what it did not get.
func TestGivesBackWhatItTook(t *testing.T) {
	t.Parallel()
	c := newCounts()
	c.full = quota.KindXPosts
	s := counting(&posts{stored: map[string]*v1alpha1.Post{}}, c)
	var log bytes.Buffer
	s.Quota, s.Log = &stuck{c}, slog.New(slog.NewTextHandler(&log, nil))
	if _, err := s.CreatePost(t.Context(), caller, hello("acme")); code(err) != "SUBSCRIPTION_REQUIRED" || log.Len() > 0 {
		t.Errorf("error %v, logged is %q", err, log.String())
	}
}

// delivered is a count that knows a delivered post of the same name until it is told that it is gone.
type delivered struct{ *counts }

func (d *delivered) Check(_ context.Context, _ quota.Counter, w *quota.Reservation, _ quota.Limit) (quota.Answer, error) {
	if w.Gone == "1" {
		return quota.Answer{}, nil
	}
	return quota.Answer{Delivered: "1"}, nil
}

// TestDeliveredBefore reads the post of the same name that was delivered: whether it is there decides what is counted.
func TestDeliveredBefore(t *testing.T) {
	t.Parallel()
	p := &posts{stored: map[string]*v1alpha1.Post{}}
	s := counting(p, newCounts())
	s.Quota = &delivered{newCounts()}
	if _, err := s.CreatePost(t.Context(), caller, hello("acme")); err != nil || p.creates != 1 {
		t.Errorf("it is gone, so that another may be created: %v", err)
	}
	s.Posts = &unreadable{p}
	if _, err := s.CreatePost(t.Context(), caller, hello("acme")); code(err) != "internal" || !strings.Contains(err.Error(), "read what was created") || p.creates != 1 {
		t.Errorf("it cannot be read, so that nothing is created: %v", err)
	}
}

// stuck are counts from which nothing can be taken back.
type stuck struct{ *counts }

func (*stuck) Undo(context.Context, quota.Counter, *quota.Reservation, quota.Answer, quota.Limit) error {
	return errors.New("boom")
}
