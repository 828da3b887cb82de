// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/plan"
)

// TestAuthor verifies that a user's post has an author, and a program's post does not.
func TestAuthor(t *testing.T) {
	t.Parallel()
	agent := bridge.Caller{Namespace: "team-a", Key: "grant", Author: "oidc:ada", Agent: "Claude"}
	scout := bridge.Caller{Namespace: "team-a", Key: "k", Agent: "scout"}
	for name, tc := range map[string]struct {
		reason      string
		caller      bridge.Caller
		origin      string
		author      string
		wantsEvents []string
	}{
		"Person":  {"the post records its user", person, v1alpha1.OriginWeb, "herald:link", []string{"CreatedByPerson Post/P: by herald:link in the web application"}},
		"Program": {"requests with an API key are only in the access log", caller, v1alpha1.OriginAPI, "", nil},
		"Agent":   {"the agent acts for a user, through the API", agent, v1alpha1.OriginAPI, "oidc:ada", []string{`CreatedByAgent Post/P: by the agent "Claude" for oidc:ada`}},
		"KeyOnly": {"an agent with a key names itself", scout, v1alpha1.OriginAPI, "", []string{`CreatedByAgent Post/P: by the agent "scout" with API key k`}},
	} {
		p, trail := &posts{stored: map[string]*v1alpha1.Post{}}, &events{}
		s := service(p, inMemory("acme"))
		s.Events = trail
		in := hello("acme")
		in.IdempotencyKey = "form"
		var id string
		for range 2 { // the form is sent twice
			made, err := s.CreatePost(t.Context(), tc.caller, in)
			if err != nil {
				t.Fatal(err)
			}
			id = made.ID
		}
		post := p.stored[id]
		if len(p.stored) != 1 || post.Labels[v1alpha1.OriginLabel] != tc.origin || post.Annotations[v1alpha1.AuthorAnnotation] != tc.author ||
			post.Annotations[v1alpha1.AgentAnnotation] != tc.caller.Agent {
			t.Errorf("%s: %s: %d posts, %v, %v", name, tc.reason, len(p.stored), post.Labels, post.Annotations)
		}
		for i := range trail.written {
			trail.written[i] = strings.ReplaceAll(trail.written[i], id, "P")
		}
		if diff := cmp.Diff(tc.wantsEvents, trail.written); diff != "" {
			t.Errorf("%s: %s:\n%s", name, tc.reason, diff)
		}
		in.Spec.Targets[0].Caption = "Other"
		_, err := s.CreatePost(t.Context(), tc.caller, in)
		if isForm := strings.Contains(err.Error(), "this form has already created post"); code(err) != "CONFLICT" || isForm != (tc.origin == v1alpha1.OriginWeb) {
			t.Errorf("%s: the key can be reused: %v", name, err)
		}
	}
}

// TestActionEvents verifies that an action is recorded in the log and as an event, and that a failure to write the event has
// no other effect.
func TestActionEvents(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	trail := &events{err: errors.New("boom")}
	s := service(&posts{}, &connections{})
	s.Events, s.Log = trail, slog.New(slog.NewTextHandler(&out, nil))
	ctx := request.With(t.Context(), &request.Info{ID: "r-17"})
	s.Acted(ctx, caller, bridge.ActConnected, onX("acme"))
	if out.Len() > 0 || trail.written != nil {
		t.Errorf("a program leaves no trail: %s", &out)
	}
	s.Acted(ctx, person, bridge.ActConnected, onX("acme"))
	s.Acted(ctx, person, bridge.ActKeyRevoked, &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "k"}})
	want := []string{"ConnectedByPerson Connection/acme: by herald:link in the web application", "KeyRevokedByPerson APIKey/k: by herald:link in the web application"}
	if diff := cmp.Diff(want, trail.written); diff != "" {
		t.Error(diff)
	}
	const line = `level=INFO msg="A person acted" person=herald:link act=ConnectedByPerson kind=Connection namespace=team-a name=acme requestId=r-17`
	if !strings.Contains(out.String(), line) || !strings.Contains(out.String(), "level=WARN") {
		t.Errorf("logged:\n%s\nwant %s, and a warning", &out, line)
	}
}

// TestActionLogs verifies which callers' actions are logged, and with which fields.
func TestActionLogs(t *testing.T) {
	t.Parallel()
	for reason, tc := range map[string]struct {
		caller bridge.Caller
		want   string
	}{
		"requests with an API key are in the access log":  {caller, ""},
		"users are logged by name":                        {person, `msg="A person acted" person=herald:link act=ConnectedByPerson `},
		"an agent with an API key is logged with its key": {bridge.Caller{Agent: "scout", Key: "k"}, `msg="An agent acted" agent=scout key=k act=ConnectedByAgent `},
		"an agent with a grant is logged with its user":   {bridge.Caller{Agent: "Claude", Key: "grant", Author: "oidc:ada"}, `msg="An agent acted" person=oidc:ada agent=Claude key=grant act=ConnectedByAgent `},
	} {
		var out bytes.Buffer
		s := service(&posts{}, &connections{})
		s.Events, s.Log = nil, slog.New(slog.NewTextHandler(&out, nil))
		s.Acted(t.Context(), tc.caller, bridge.ActConnected, onX("acme"))
		if (out.Len() > 0) != (tc.want != "") || !strings.Contains(out.String(), tc.want) {
			t.Errorf("%s: logged %q, want %q", reason, &out, tc.want)
		}
	}
}

func TestCancelByPerson(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		caller bridge.Caller
		last   string
		events int
	}{
		"Person": {person, "herald:link", 1}, "Program": {caller, "", 0},
	} {
		s := staged(olderDraft(scheduledFor(tomorrow)))
		if err := s.CancelPost(t.Context(), tc.caller, "p1"); err != nil {
			t.Fatal(err)
		}
		post := s.post()
		if !post.Spec.Cancelled || post.Annotations[v1alpha1.LastAuthorAnnotation] != tc.last || len(s.events.written) != tc.events {
			t.Errorf("%s: %+v, %v, %v", name, post.Spec, post.Annotations, s.events.written)
		}
	}
}

func TestSettle(t *testing.T) {
	t.Parallel()
	undecided := func(p *v1alpha1.Post) {
		p.Spec.Draft = false
		p.Spec.Targets = append(p.Spec.Targets, target("beta"))
		for i := range int32(2) {
			p.Status.Targets = append(p.Status.Targets, v1alpha1.TargetStatus{
				Index: i, State: v1alpha1.TargetUndecided, Attempt: &v1alpha1.Attempt{Number: 1, ID: "a", Outcome: v1alpha1.OutcomeUnknown},
			})
		}
	}
	waiting := func(value string) func(*v1alpha1.Post) {
		return func(p *v1alpha1.Post) { p.Annotations = map[string]string{v1alpha1.SettleAnnotation: value} }
	}
	first := func(edit func(*v1alpha1.TargetStatus)) func(*v1alpha1.Post) {
		return func(p *v1alpha1.Post) { edit(&p.Status.Targets[0]) }
	}
	busy := fault{err: apierrors.NewConflict(resource, "p1", errors.New("written"))}
	posted, notSent := bridge.Verdict{Posted: true, ExternalID: " 1991 "}, bridge.Verdict{}
	lost := errors.New("read: connection reset by peer")
	for name, tc := range map[string]struct {
		reason  string
		edits   []func(*v1alpha1.Post)
		faults  []fault
		target  int
		verdict bridge.Verdict
		want    string
		value   string // of the annotation afterwards
		events  int
	}{
		"Posted":       {"the user found it", nil, nil, 0, posted, "", "0=posted:1991", 1},
		"NotSent":      {"the user did not find it", nil, nil, 1, notSent, "", "1=not-sent", 1},
		"BesideOther":  {"the manager has not processed the other answer yet", []func(*v1alpha1.Post){waiting("1=not-sent")}, nil, 0, posted, "", "1=not-sent,0=posted:1991", 1},
		"Again":        {"the button was pressed twice", []func(*v1alpha1.Post){waiting("0=posted:1991")}, nil, 0, posted, "", "0=posted:1991", 0},
		"Contradicts":  {"two users gave different answers", []func(*v1alpha1.Post){waiting("0=not-sent")}, nil, 0, posted, "CONFLICT", "0=not-sent", 0},
		"Malformed":    {"a malformed answer is replaced", []func(*v1alpha1.Post){waiting("x")}, nil, 0, posted, "", "0=posted:1991", 1},
		"Address":      {"a URL is not an id", nil, nil, 0, bridge.Verdict{Posted: true, ExternalID: "https://x.com/a/1991"}, "VALIDATION_ERROR", "", 0},
		"Permalink":    {"the manager resolves the id", nil, nil, 0, bridge.Verdict{Posted: true, ExternalURL: "https://fb.watch/abc"}, "", "0=posted:https://fb.watch/abc", 1},
		"Comma":        {"a URL cannot contain a second answer", nil, nil, 0, bridge.Verdict{Posted: true, ExternalURL: "https://fb.watch/a,1=not-sent"}, "", "0=posted:https://fb.watch/a%2C1=not-sent", 1},
		"Unnamed":      {"the user saw it, but has no id", nil, nil, 0, bridge.Verdict{Posted: true, Unnamed: true}, "", "0=posted", 1},
		"UnnamedSo":    {"the manager has processed the answer", []func(*v1alpha1.Post){first(func(t *v1alpha1.TargetStatus) { t.State = v1alpha1.TargetPosted })}, nil, 0, bridge.Verdict{Posted: true, Unnamed: true}, "", "", 0},
		"Smuggled":     {"an id cannot contain a second answer", nil, nil, 0, bridge.Verdict{Posted: true, ExternalID: "1,1=not-sent"}, "VALIDATION_ERROR", "", 0},
		"NoID":         {"the answer contains neither an id nor a URL", nil, nil, 0, bridge.Verdict{Posted: true}, "VALIDATION_ERROR", "", 0},
		"NoSuchTarget": {"the post has two targets", nil, nil, 2, notSent, "VALIDATION_ERROR", "", 0},
		"Negative":     {"target indexes start at 0", nil, nil, -1, notSent, "VALIDATION_ERROR", "", 0},
		"Decided":      {"a lookup was successful", []func(*v1alpha1.Post){first(func(t *v1alpha1.TargetStatus) { t.State, t.ExternalID = v1alpha1.TargetPosted, "1" })}, nil, 0, posted, "CONFLICT", "", 0},
		"DecidedSo":    {"the manager has processed the answer", []func(*v1alpha1.Post){first(func(t *v1alpha1.TargetStatus) { t.State, t.ExternalID = v1alpha1.TargetPosted, "1991" })}, nil, 0, posted, "", "", 0},
		"NotSentSo": {"the manager has processed that answer, too", []func(*v1alpha1.Post){first(func(t *v1alpha1.TargetStatus) {
			t.State, t.Attempt.Outcome = v1alpha1.TargetPending, v1alpha1.OutcomeNotSent
		})}, nil, 0, notSent, "", "", 0},
		"NothingSent": {"the post has no undecided call", []func(*v1alpha1.Post){first(func(t *v1alpha1.TargetStatus) {
			t.State, t.Attempt = v1alpha1.TargetPending, nil
		})}, nil, 0, notSent, "CONFLICT", "", 0},
		"AlwaysWritten": {"each update conflicts", nil, []fault{busy, busy, busy, busy, busy}, 0, posted, "CONFLICT", "", 0},
		"NothingBegun":  {"the post has no targets", []func(*v1alpha1.Post){func(p *v1alpha1.Post) { p.Status.Targets = nil }}, nil, 0, notSent, "CONFLICT", "", 0},
		"Conflict":      {"the manager updated the post concurrently", nil, []fault{{err: apierrors.NewConflict(resource, "p1", lost)}}, 0, posted, "", "0=posted:1991", 1},
		"Lost":          {"the response was lost", nil, []fault{{false, lost}}, 0, posted, "", "0=posted:1991", 1},
		"Landed":        {"the update was stored before the response was lost", nil, []fault{{true, lost}}, 0, posted, "", "0=posted:1991", 1},
		"Forbidden":     {"Herald lacks the permission", nil, []fault{{err: apierrors.NewForbidden(resource, "p1", lost)}}, 0, posted, "internal", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := staged(olderDraft(append([]func(*v1alpha1.Post){undecided}, tc.edits...)...))
			s.posts.faults = tc.faults
			err := s.Settle(t.Context(), person, "p1", tc.target, tc.verdict)
			if code(err) != tc.want {
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.want)
			}
			if got := s.post().Annotations[v1alpha1.SettleAnnotation]; got != tc.value {
				t.Errorf("%s: the annotation is %q, want %q", tc.reason, got, tc.value)
			}
			signed := s.post().Annotations[v1alpha1.LastAuthorAnnotation] == person.Author
			if len(s.events.written) != tc.events || signed != (tc.events > 0) {
				t.Errorf("%s: its trail is %v, %v", tc.reason, s.events.written, s.post().Annotations)
			}
		})
	}
}

func TestDuplicate(t *testing.T) {
	t.Parallel()
	file := func(name string, phase v1alpha1.MediaPhase) *v1alpha1.Media {
		return &v1alpha1.Media{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: photo(nil), Status: v1alpha1.MediaStatus{Phase: phase}}
	}
	refs := func(names ...string) (refs []v1alpha1.MediaReference) {
		for _, name := range names {
			refs = append(refs, v1alpha1.MediaReference{Name: name})
		}
		return refs
	}
	here := []v1alpha1.PostTarget{target("acme")}
	for name, tc := range map[string]struct {
		reason string
		spec   v1alpha1.PostSpec
		want   v1alpha1.PostSpec
		left   []string
	}{
		"Draft":     {"the copy is not a draft", v1alpha1.PostSpec{Draft: true, Targets: here}, v1alpha1.PostSpec{Targets: here}, nil},
		"Scheduled": {"the copy has no time", v1alpha1.PostSpec{ScheduledAt: v1alpha1.NewTimePtr(now), Cancelled: true, Targets: here}, v1alpha1.PostSpec{Targets: here}, nil},
		"Accounts": {
			"one account is no longer connected",
			v1alpha1.PostSpec{Targets: []v1alpha1.PostTarget{target("gone"), here[0]}},
			v1alpha1.PostSpec{Targets: here},
			[]string{`account "gone" is no longer connected`},
		},
		"Images": {
			"the remaining accounts keep their order",
			v1alpha1.PostSpec{Targets: here, Image: &v1alpha1.ImageContent{MediaRefs: refs("b", "expired", "a", "gone", "b", "not/a/name")}},
			v1alpha1.PostSpec{Targets: here, Image: &v1alpha1.ImageContent{MediaRefs: refs("b", "a", "b")}},
			[]string{`file "a.jpg" (expired) has been deleted; upload it again`, `file "gone" has been deleted; upload it again`, `file "not/a/name" has been deleted; upload it again`},
		},
		"Video": {
			"the form selects another account",
			v1alpha1.PostSpec{Targets: here, Video: &v1alpha1.VideoContent{MediaRef: refs("gone")[0]}},
			v1alpha1.PostSpec{Targets: here, Video: &v1alpha1.VideoContent{}},
			[]string{`file "gone" has been deleted; upload it again`},
		},
		"Tree": {
			"cards keep their texts",
			v1alpha1.PostSpec{Targets: here, Tree: &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{Caption: "one", MediaRefs: refs("gone")}, {MediaRefs: refs("a")}}}},
			v1alpha1.PostSpec{Targets: here, Tree: &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{Caption: "one", MediaRefs: refs()}, {MediaRefs: refs("a")}}}},
			[]string{`file "gone" has been deleted; upload it again`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &files{stored: map[string]*v1alpha1.Media{
				"a": file("a", v1alpha1.MediaUploaded), "b": file("b", v1alpha1.MediaUploaded), "expired": file("expired", v1alpha1.MediaExpired),
			}}
			s := withFiles(f)
			s.Posts = &posts{stored: map[string]*v1alpha1.Post{"p1": {ObjectMeta: metav1.ObjectMeta{Name: "p1"}, Spec: tc.spec}}}
			got, err := s.DuplicatePost(t.Context(), person, "p1")
			if err != nil {
				t.Fatal(err)
			}
			if !v1alpha1.SemanticEqual(tc.want, got.Spec) {
				t.Errorf("%s: -want +got:\n%s", tc.reason, cmp.Diff(tc.want, got.Spec))
			}
			if diff := cmp.Diff(tc.left, got.Omitted); diff != "" {
				t.Errorf("%s: rejected targets -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestViewTeam(t *testing.T) {
	t.Parallel()
	made := metav1.NewTime(now.Add(-24 * time.Hour))
	trial := v1alpha1.Subscription{State: v1alpha1.SubscriptionTrialing, Plan: v1alpha1.PlanStarter}
	for name, tc := range map[string]struct {
		reason       string
		subscription v1alpha1.Subscription
		want         bridge.TeamView
	}{
		"Trial": {"a trial ends a week after the team's creation", trial, bridge.TeamView{
			Plan: "starter", State: "trialing", TrialEndsAt: now.Add(6 * 24 * time.Hour), XPosts: bridge.Meter{Used: 2, Limit: 30}, Accounts: bridge.Meter{Used: 2, Limit: 10},
		}},
		"Unlimited": {"an unlimited plan has no counts", v1alpha1.Subscription{State: v1alpha1.SubscriptionActive, Plan: v1alpha1.PlanUnlimited}, bridge.TeamView{
			Plan: "unlimited", State: "active", Accounts: bridge.Meter{Used: 2},
		}},
		"PastDue": {"a team that is past due may not create posts", v1alpha1.Subscription{State: v1alpha1.SubscriptionPastDue, Plan: v1alpha1.PlanUnlimited}, bridge.TeamView{
			Plan: "unlimited", State: "pastDue", Accounts: bridge.Meter{Used: 2}, Refusal: "the team's subscription is past due; pay it to go on posting",
		}},
	} {
		s := staged(olderDraft())
		tok := account("tok", v1alpha1.PlatformTikTok, 0, func(c *v1alpha1.Connection) { c.Spec.Disabled = true })
		s.Connections = &listing{all: []*v1alpha1.Connection{
			tok, onX("a"), onX("b"), account("off", v1alpha1.PlatformX, 0, func(c *v1alpha1.Connection) { c.Spec.Disabled = true }),
			account("leaving", v1alpha1.PlatformX, 0, func(c *v1alpha1.Connection) { c.DeletionTimestamp = &made }),
		}}
		s.Owner = func(string) *v1alpha1.Team {
			return &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "acme", CreationTimestamp: made}, Spec: v1alpha1.TeamSpec{DisplayName: "ACME", Subscription: tc.subscription}}
		}
		used := &v1alpha1.Usage{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Status: v1alpha1.UsageStatus{Used: 2}}
		// Two drafts from yesterday morning no longer count, regardless of the stored number.
		used.Spec = plan.TikTokDrafts(tok)
		for _, ago := range []time.Duration{time.Hour, 26 * time.Hour, 26 * time.Hour} {
			used.Status.Entries = append(used.Status.Entries, v1alpha1.UsageEntry{Post: "p", Count: 1, At: v1alpha1.NewTime(now.Add(-ago)), Since: v1alpha1.NewTime(now)})
		}
		tc.want.TikTokDrafts = []bridge.AccountMeter{{Connection: tok, Meter: bridge.Meter{Used: 1, Limit: 5}}}
		s.Index.Upsert("team-a", s.Summarise(s.post()), 1)
		tc.want.Posts = 1
		s.Pending = func(string, []string) (files, bytes int64, known []bool) { return 3, 4000, nil }
		s.CountKeys = func(string) int { return 5 }
		budget := plan.BudgetOf(s.Owner(""))
		tc.want.Budget = []v1alpha1.BudgetUse{
			budget.Use("posts", 1), budget.Use("postBytes", posting.Of(s.post()).Footprint()), budget.Use("unfinishedPosts", 1),
			budget.Use("pendingFiles", 3), budget.Use("pendingFileBytes", 4000), budget.Use("keys", 5),
		}
		s.Quota = reading{newCounts(), used}
		tc.want.Name, tc.want.DisplayName = "acme", "ACME"
		got, err := s.ViewTeam(t.Context(), person)
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
			t.Errorf("%s: %s: %v\n%s", name, tc.reason, err, diff)
		}
	}
	s := staged(olderDraft())
	s.Owner = func(string) *v1alpha1.Team { return nil }
	if _, err := s.ViewTeam(t.Context(), person); code(err) != "NOT_FOUND" {
		t.Errorf("no team owns the namespace: %v", err)
	}
}

// reading is a usage store with a given number of posts to X.
type reading struct {
	*counts

	usage *v1alpha1.Usage
}

func (r reading) Read(context.Context, string, v1alpha1.UsageSpec) (*v1alpha1.Usage, error) {
	return r.usage, nil
}

func TestFollowPost(t *testing.T) {
	t.Parallel()
	s := service(&posts{}, &connections{})
	signals, stopped := make(chan struct{}, 1), false
	s.Subscribe = func(namespace, name string) (<-chan struct{}, func(), bool) {
		return signals, func() { stopped = true }, namespace == "team-a" && name == "p1"
	}
	changes, stop, err := s.SubscribePost(person, "p1")
	if err != nil {
		t.Fatal(err)
	}
	signals <- struct{}{}
	<-changes
	stop()
	if !stopped {
		t.Error("the cancelled post continues")
	}
	if _, _, err := s.SubscribePost(person, "p2"); code(err) != "RATE_LIMITED" {
		t.Errorf("too many follow: %v", err)
	}
}

func TestPostsOfPages(t *testing.T) {
	t.Parallel()
	s := staged(olderDraft())
	read, err := s.ReadPost(t.Context(), person, "p1")
	if err != nil || read.Name != "p1" {
		t.Fatalf("%+v, %v", read, err)
	}
	if _, err := s.ReadPost(t.Context(), person, "../p1"); code(err) != "NOT_FOUND" {
		t.Errorf("no post can have that name: %v", err)
	}
	if _, err := s.UpdateDraft(t.Context(), person, "p1", bridge.Version(read), saying("New", "acme")); err != nil {
		t.Fatal(err)
	}
	if counts, err := s.CountPosts(t.Context(), person); err != nil || counts.Status[v1alpha1.PhaseDraft] != 1 || counts.All() != 1 {
		t.Errorf("usage: %v, %v", counts, err)
	}
	created := read.CreationTimestamp.Time
	q := &postindex.Search{From: created, To: created.Add(time.Second), Limit: 1}
	if found, err := s.FindPosts(t.Context(), person, q); err != nil || found.Total != 1 || found.Posts[0].Title != "New" {
		t.Errorf("found %+v, %v", found, err)
	}
	if days, err := s.PostsByDay(t.Context(), person, q, []time.Time{q.From, q.To}); err != nil || len(days) != 1 || days[0].Total != 1 {
		t.Errorf("by day: %+v, %v", days, err)
	}
	if month := plan.XPosts(created); s.counts.usageByTarget(t, month) != nil {
		t.Error("a draft was counted")
	}
}

// TestListCandidates verifies that a listing is requested once, and only for an undecided post.
func TestListCandidates(t *testing.T) {
	t.Parallel()
	state := func(state v1alpha1.TargetState) func(*v1alpha1.Post) {
		return func(p *v1alpha1.Post) {
			p.Spec.Draft = false
			p.Status.Targets = []v1alpha1.TargetStatus{{State: state, Attempt: &v1alpha1.Attempt{Number: 1, ID: "a", Outcome: v1alpha1.OutcomeUnknown}}}
		}
	}
	for name, tc := range map[string]struct {
		reason string
		edits  []func(*v1alpha1.Post)
		want   string
		asked  bool
	}{
		"Asked":   {"a user requests candidates", []func(*v1alpha1.Post){state(v1alpha1.TargetUndecided)}, "", true},
		"Again":   {"two clicks are one request", []func(*v1alpha1.Post){state(v1alpha1.TargetUndecided), func(p *v1alpha1.Post) { p.Annotations = map[string]string{v1alpha1.ListCandidatesAnnotation: "before"} }}, "", true},
		"Decided": {"the target was decided meanwhile", []func(*v1alpha1.Post){state(v1alpha1.TargetPosted)}, "CONFLICT", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := staged(olderDraft(tc.edits...))
			err := s.ListCandidates(t.Context(), person, "p1")
			_, asked := s.post().Annotations[v1alpha1.ListCandidatesAnnotation]
			if code(err) != tc.want || asked != tc.asked || len(s.events.written) > 0 {
				t.Errorf("%s: %v, called %v, audit log %v", tc.reason, err, asked, s.events.written)
			}
			if listed := pageOf(t, s.Service, person, postindex.Query{Limit: 1}); listed.Total != s.posts.updates {
				t.Errorf("%s: %d posts are listed after %d writes", tc.reason, listed.Total, s.posts.updates)
			}
		})
	}
}

// TestUndecidedReads verifies the error messages that clients see for an undecided post.
func TestUndecidedReads(t *testing.T) {
	t.Parallel()
	undecided := func(edit func(*v1alpha1.TargetStatus)) func(*v1alpha1.Post) {
		return func(p *v1alpha1.Post) {
			target := v1alpha1.TargetStatus{
				State: v1alpha1.TargetUndecided, Phase: v1alpha1.PhaseFailed, Platform: v1alpha1.PlatformX, Blocked: &v1alpha1.Blocked{Problem: "the response was lost"},
				Message: "look, then say so with the annotation " + v1alpha1.SettleAnnotation,
			}
			edit(&target)
			p.Spec.Draft, p.Status.Targets = false, []v1alpha1.TargetStatus{target}
		}
	}
	page := func(namespace, id string) string { return "https://herald.example/teams/" + namespace + "/posts/" + id }
	for name, tc := range map[string]struct {
		reason string
		page   func(namespace, id string) string
		edit   func(*v1alpha1.TargetStatus)
		want   string
		left   bool
	}{
		"Left":   {"archived posts cannot be answered", page, func(*v1alpha1.TargetStatus) {}, "Needs an answer: it is unknown whether it was published (the response was lost). The post is archived, so no outcome can be recorded.", true},
		"Page":   {"the page accepts the answer", page, func(*v1alpha1.TargetStatus) {}, "Needs an answer: it is unknown whether it was published (the response was lost). Do not post it again: it may be online. Someone must check the account, open https://herald.example/teams/team-a/posts/p1 and answer there.", false},
		"Thread": {"the question concerns one card", page, func(t *v1alpha1.TargetStatus) { t.Cards = []v1alpha1.CardStatus{{ExternalID: "1"}} }, "Needs an answer: it is unknown whether card 2 was published (the response was lost). The cards before it are online.", false},
		"NoSite": {"without the web application, kubectl accepts the answer", nil, func(*v1alpha1.TargetStatus) {}, "read the condition OutcomeUnknown of the Post", false},
		"Old":    {"old entries do not have a reason", page, func(t *v1alpha1.TargetStatus) { t.Blocked = nil }, "whether it was published. Do not post it again", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := staged(olderDraft(undecided(tc.edit), func(p *v1alpha1.Post) {
				if tc.left {
					p.ResourceVersion = ""
				}
			}))
			s.PageOf = tc.page
			detail, err := s.GetPost(t.Context(), caller, "p1")
			if err != nil {
				t.Fatal(err)
			}
			got := detail.Platforms[0]
			if got.Status != v1alpha1.PhaseFailed || !strings.Contains(got.ErrorMessage, tc.want) || strings.Contains(got.ErrorMessage, "annotation") {
				t.Errorf("%s: %s, %q, want %q", tc.reason, got.Status, got.ErrorMessage, tc.want)
			}
		})
	}
}
