// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/must"
)

var t0 = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)

// accounts are the existing Connections. "x1" and "x1-too" are the same account.
func accounts(connection string) (v1alpha1.Platform, string, bool) {
	switch connection {
	case "x1", "x1-too":
		return v1alpha1.PlatformX, "1", true
	case "x2":
		return v1alpha1.PlatformX, "2", true
	case "threads":
		return v1alpha1.PlatformThreads, "1", true
	}
	return "", "", false
}

// noConnections resolves no account, as after the deletion of all Connections.
func noConnections(string) (v1alpha1.Platform, string, bool) { return "", "", false }

// post returns a post with this UID. Each target is a connection and its outcome: "posted", "unknown", "open",
// "refused", "failed" before a call, "pending", "withdrawn".
func post(uid types.UID, targets ...string) *v1alpha1.Post {
	p := &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team-acme", Name: "launch", UID: uid, Generation: 1, CreationTimestamp: metav1.NewTime(t0.Add(time.Duration(len(uid)) * time.Hour)),
		},
		Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText},
	}
	for i, target := range targets {
		connection, fate, _ := strings.Cut(target, "=")
		p.Spec.Targets = append(p.Spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: connection}, Caption: "hello"})
		platform, id, _ := accounts(connection)
		entry := v1alpha1.TargetStatus{Index: int32(i), Platform: platform, State: v1alpha1.TargetPending}
		called := &v1alpha1.Attempt{
			Number: 1, ID: fmt.Sprintf("%s-%d", uid, i), AccountID: id, StartedAt: v1alpha1.NewTime(t0), SendBefore: v1alpha1.NewTime(t0),
			Checkpoint: "container", ContentHash: "hash",
		}
		switch fate {
		case "posted":
			entry.State, entry.Attempt, called.Outcome = v1alpha1.TargetPosted, called, v1alpha1.OutcomePosted
			entry.ExternalID, entry.ExternalURL, entry.PostedAt = string(uid)+"-"+fmt.Sprint(i), "https://x.example/"+fmt.Sprint(i), v1alpha1.NewTimePtr(t0)
		case "unknown":
			entry.State, entry.Attempt, called.Outcome = v1alpha1.TargetUndecided, called, v1alpha1.OutcomeUnknown
		case "again":
			entry.Attempt, called.Outcome = called, v1alpha1.OutcomeUnknown // with onUnknownOutcome: retry
		case "open":
			entry.Attempt = called
		case "refused":
			entry.State, entry.Attempt, called.Outcome = v1alpha1.TargetFailed, called, v1alpha1.OutcomeRefused
		case "failed":
			entry.State, entry.Blocked = v1alpha1.TargetFailed, &v1alpha1.Blocked{Reason: v1alpha1.ReasonMissedSchedule, Problem: "late"}
		case "withdrawn":
			entry.State = v1alpha1.TargetWithdrawn
		case "pending":
			entry.Prepared = &v1alpha1.Prepared{ContentHash: "h", Checkpoint: "c", MadeAt: v1alpha1.NewTime(t0)}
			entry.NextTryAt, entry.TryUntil = v1alpha1.NewTimePtr(t0), v1alpha1.NewTimePtr(t0)
		default:
			continue
		}
		p.Status.Targets = append(p.Status.Targets, entry)
	}
	return p
}

// tree makes p a tree whose first cards are published.
func tree(p *v1alpha1.Post, cards, out int) *v1alpha1.Post {
	p.Spec.Category, p.Spec.Tree = v1alpha1.CategoryTree, &v1alpha1.TreeContent{Cards: make([]v1alpha1.TreeCard, cards)}
	for i := range p.Status.Targets {
		t := &p.Status.Targets[i]
		for card := range out {
			t.Cards = append(t.Cards, v1alpha1.CardStatus{Index: int32(card), ExternalID: fmt.Sprintf("%s-card%d", p.UID, card)})
			t.ExternalID = t.Cards[0].ExternalID
		}
	}
	return p
}

// uncalled removes the attempts, as in a record from a version that did not store them.
func uncalled(p *v1alpha1.Post) *v1alpha1.Post {
	for i := range p.Status.Targets {
		p.Status.Targets[i].Attempt = nil
	}
	return p
}

// fates formats the outcomes of a post's targets, in the words of post, with their IDs.
func fates(p *v1alpha1.Post) []string {
	list := []string{}
	for i := range p.Status.Targets {
		t := &p.Status.Targets[i]
		word := fmt.Sprintf("%d %s", t.Index, t.State)
		if t.ExternalID != "" {
			word += " " + t.ExternalID
		}
		if len(t.Cards) > 0 {
			word += fmt.Sprintf(" cards %d", len(t.Cards))
		}
		list = append(list, word)
	}
	return list
}

func TestAdopt(t *testing.T) {
	for _, tt := range []struct {
		name, why string
		was       *v1alpha1.Post
		account   Account // when the record was made; nil means the existing ones
		now       *v1alpha1.Post
		want      []string
		unknown   []string
	}{
		{name: "published", why: "the target is published", was: post("a", "x1=posted"), now: post("bb", "x1"), want: []string{"0 posted a-0"}},
		{name: "unknown", why: "a user must answer", was: post("a", "x1=unknown"), now: post("bb", "x1"), want: []string{"0 undecided"}},
		{name: "unknown and sent again", why: "the first call may have published", was: post("a", "x1=again"), now: post("bb", "x1"), want: []string{"0 undecided"}},
		{name: "open", why: "the call may have published", was: post("a", "x1=open"), now: post("bb", "x1"), want: []string{"0 undecided"}},
		{name: "open when it was deleted", why: "the call may have published the target", was: deleted(post("a", "x1=open")), now: post("bb", "x1"), want: []string{"0 undecided"}},
		{name: "itself, and unknown", why: "a user must answer", was: post("a", "x1=unknown"), now: post("a", "x1"), want: []string{"0 undecided"}},
		{name: "refused", why: "the target is not published", was: post("a", "x1=refused"), now: post("bb", "x1"), want: []string{}},
		{name: "failed before a call", why: "the target is not published", was: post("a", "x1=failed"), now: post("bb", "x1"), want: []string{}},
		{name: "partly, and the rest in progress", why: "the target may have been published after the record was written", was: post("a", "x1=posted", "x2=pending", "threads=refused"), now: post("bb", "x1", "x2", "threads"), want: []string{"0 posted a-0", "1 undecided"}},
		{name: "partly, and the rest in progress when it was deleted", why: "the deleted post was not published later", was: deleted(post("a", "x1=posted", "x2=pending")), now: post("bb", "x1", "x2"), want: []string{"0 posted a-0"}},
		{name: "a tree in progress", why: "further cards may have been published", was: tree(post("a", "x1=pending", "x2=open"), 3, 2), now: tree(post("bb", "x1"), 3, 0), want: []string{"0 undecided a-card0 cards 2"}},
		{name: "refused, and retried by another post", why: "the retrying post may have published the target", was: retried(post("a", "x1=refused", "x2=refused")), now: post("bb", "x1", "x2"), want: []string{"0 failed"}},
		{name: "never claimed", why: "the target is not published", was: post("a", "x1=pending"), now: post("bb", "x1"), want: []string{}},
		{name: "withdrawn", why: "the target is not published", was: post("a", "x1=withdrawn"), now: post("bb", "x1"), want: []string{}},
		{name: "partly", why: "each target is separate", was: post("a", "x1=posted", "threads=refused"), now: post("bb", "x1", "threads"), want: []string{"0 posted a-0"}},
		{name: "in another order", why: "the account counts, not the index", was: post("a", "x1=posted", "threads=refused"), now: post("bb", "threads", "x1"), want: []string{"1 posted a-0"}},
		{name: "by another connection", why: "the account counts, not the name", was: post("a", "x1=posted"), now: post("bb", "x1-too"), want: []string{"0 posted a-0"}},
		{name: "the same id on another platform", why: "an id on another platform is another account", was: post("a", "x1=posted"), now: post("bb", "threads"), want: []string{}},
		{name: "another account", why: "the post is not published on the other account", was: post("a", "x1=posted"), now: post("bb", "x2", "x1"), want: []string{"1 posted a-0"}},
		{name: "two to one account", why: "their turn counts", was: post("a", "x1=failed", "x1=posted"), now: post("bb", "x1", "x1"), want: []string{"1 posted a-1"}},
		{name: "one more to an account", why: "its turn is new", was: post("a", "x1=posted"), now: post("bb", "x1", "x1-too"), want: []string{"0 posted a-0"}},
		{name: "no call, and the connection was deleted", why: "an equal target has the account", account: noConnections, was: post("a", "x1=failed", "x1=posted"), now: post("bb", "x1", "x1"), want: []string{"1 posted a-1"}},
		{name: "a connection that does not exist yet", why: "the record matches the name", was: gone(post("a", "old=posted")), now: post("bb", "old"), want: []string{"0 posted a-0"}},
		{name: "an id from a user that the platform did not confirm", why: "the Connection has the account", was: gone(post("a", "x1=posted")), now: post("bb", "x1-too"), want: []string{"0 posted a-0"}},
		{name: "the same, and the Connection was deleted then", why: "the publication belongs to the account that the name refers to now", account: noConnections, was: gone(post("a", "x1=posted")), now: post("bb", "x1-too", "x1"), want: []string{"0 posted a-0"}},
		{name: "the same, of another platform", why: "the name refers to another account now", account: noConnections, was: of(v1alpha1.PlatformThreads, gone(post("a", "x1=posted"))), now: post("bb", "x1"), want: []string{}},
		{name: "a copy with a question, and whose Connection was deleted", why: "the copy may be published", account: noConnections, was: uncalled(post("a", "x1=unknown")), now: post("bb", "x1"), want: []string{"0 undecided"}},
		{name: "an unknown account", why: "the account may be the one with the publication", was: post("a", "x1=posted"), now: post("bb", "x1", "new"), want: []string{}, unknown: []string{"new"}},
		{name: "a tree", why: "all its cards are published", was: tree(post("a", "x1=posted"), 3, 3), now: tree(post("bb", "x1"), 3, 0), want: []string{"0 posted a-card0 cards 3"}},
		{name: "an interrupted tree", why: "the tree continues from the failed card", was: tree(post("a", "x1=refused"), 3, 2), now: tree(post("bb", "x1"), 3, 0), want: []string{"0 pending a-card0 cards 2"}},
		{name: "a tree whose last call is unknown", why: "a user must answer", was: tree(post("a", "x1=unknown"), 3, 2), now: tree(post("bb", "x1"), 3, 0), want: []string{"0 undecided a-card0 cards 2"}},
		{name: "a tree that is shorter now", why: "all its cards are published", was: tree(post("a", "x1=refused"), 4, 3), now: tree(post("bb", "x1"), 3, 0), want: []string{"0 posted a-card0 cards 3"}},
		{name: "a tree that is longer now", why: "a completely published tree does not change", was: tree(post("a", "x1=posted"), 3, 3), now: tree(post("bb", "x1"), 5, 0), want: []string{"0 posted a-card0 cards 3"}},
		{name: "a tree that is a text now", why: "part of the tree is published", was: tree(post("a", "x1=refused"), 3, 1), now: post("bb", "x1"), want: []string{"0 posted a-card0"}},
		{name: "a text that is a tree now", why: "the text is published", was: post("a", "x1=posted"), now: tree(post("bb", "x1"), 3, 0), want: []string{"0 posted a-0"}},
		{name: "itself, put back to before a later call", why: "the record is of the last one", was: post("a", "x1=posted"), now: post("a", "x1=refused"), want: []string{"0 posted a-0"}},
		{name: "itself, restored to an open call", why: "the record contains the outcome", was: post("a", "x1=posted"), now: post("a", "x1=open"), want: []string{"0 posted a-0"}},
		{name: "itself, put back to fewer cards", why: "the record has more", was: tree(post("a", "x1=posted"), 3, 3), now: tree(post("a", "x1=open"), 3, 1), want: []string{"0 posted a-card0 cards 3"}},
		{name: "a call, and the record of an object without one", why: "a claimed call is never dropped", was: uncalled(post("a", "x1=posted")), now: post("bb", "x1=open"), want: []string{"0 posted a-0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			account := tt.account
			if account == nil {
				account = accounts
			}
			was := New(tt.was, "acme", account)
			for i := range was.Targets { // an older version has recorded more
				t := &was.Targets[i]
				t.Reason, t.Message, t.NextTryAt = "R", "it waits", v1alpha1.NewTimePtr(t0)
			}
			got := was.Adopt(tt.now, accounts)
			if diff := cmp.Diff(tt.want, fates(tt.now)); diff != "" {
				t.Errorf("%s (%s)", diff, tt.why)
			}
			if diff := cmp.Diff(tt.unknown, got.Unknown); diff != "" {
				t.Errorf("%s (%s)", diff, tt.why)
			}
			if len(got.Targets) != len(tt.want) {
				t.Errorf("adopted targets %v, want %v", got.Targets, tt.want)
			}
			for i := range got.Targets {
				s := &tt.now.Status.Targets[i]
				if s.Reason+s.Message != "" || s.NextTryAt != nil {
					t.Errorf("%+v: Describe derives the messages, and delivery the times", s)
				}
				if self := tt.was.UID == tt.now.UID; s.State == v1alpha1.TargetUndecided && (s.Blocked == nil || strings.HasPrefix(s.Blocked.Problem, "this post") != self) {
					t.Errorf("%+v: want whether the post itself was sent: %t", s.Blocked, self)
				}
			}
			for i := range tt.now.Status.Targets {
				if a := tt.now.Status.Targets[i].Attempt; a != nil && (a.Outcome == "" || a.Checkpoint != "") {
					t.Errorf("attempt %+v: an open one would be looked up, and a checkpoint has no use", a)
				}
			}
		})
	}
}

// TestAdoptRetried checks that a target that another post retries is never sent, and says which post that is.
func TestAdoptRetried(t *testing.T) {
	for name, tt := range map[string]struct {
		reason string
		was    *v1alpha1.Post
	}{
		"refused":              {"the other post may have published the target", post("a", "x1=refused")},
		"failed before a call": {"the other post may have published the target", post("a", "x1=failed")},
		"pending":              {"an edited record does not undo the reservation", post("a", "x1=pending")},
	} {
		now := post("bb", "x1")
		New(retried(tt.was), "acme", accounts).Adopt(now, accounts)
		want := &v1alpha1.Blocked{Reason: v1alpha1.ReasonRetried, Problem: `not sent: an earlier post of this name was not published, and post "another" retries it`}
		if entry := now.Status.Targets[0]; entry.State != v1alpha1.TargetFailed || !v1alpha1.SemanticEqual(entry.Blocked, want) {
			t.Errorf("%s: %s, %+v; want failed, %+v (%s)", name, entry.State, entry.Blocked, want, tt.reason)
		}
	}
}

// TestAdoptKeepsFacts checks which facts of an entry outlast the adoption of a record.
func TestAdoptKeepsFacts(t *testing.T) {
	for _, tt := range []struct {
		name, why string
		was, now  *v1alpha1.Post
		// want is the ID of the attempt, its outcome, the post's ID and the IDs of its cards.
		want string
	}{
		{"the record has a call", "the call is the later one", post("a", "x1=posted"), post("bb", "x1=open"), "a-0 posted a-0 []"},
		{"the record has no call", "a claimed call may have published as well", uncalled(post("a", "x1=posted")), post("bb", "x1=open"), "bb-0 unknown a-0 []"},
		{"the record has as many cards", "its cards are the later ones", tree(post("a", "x1=posted"), 3, 1), tree(post("bb", "x1=refused"), 3, 1), "a-0 posted bb-card0 [a-card0]"},
		{"the record has fewer cards", "a published card is never forgotten", tree(post("a", "x1=unknown"), 3, 0), tree(post("bb", "x1=refused"), 3, 1), "a-0 unknown bb-card0 [bb-card0]"},
	} {
		New(tt.was, "acme", accounts).Adopt(tt.now, accounts)
		entry, cards := &tt.now.Status.Targets[0], []string{}
		for _, card := range entry.Cards {
			cards = append(cards, card.ExternalID)
		}
		if got := fmt.Sprint(entry.Attempt.ID, " ", entry.Attempt.Outcome, " ", entry.ExternalID, " ", cards); got != tt.want {
			t.Errorf("%s: got %q, want %q (%s)", tt.name, got, tt.want, tt.why)
		}
	}
}

// gone leaves only the names of a post's Connections.
func gone(p *v1alpha1.Post) *v1alpha1.Post {
	for i := range p.Status.Targets {
		p.Status.Targets[i].Platform, p.Status.Targets[i].Attempt.AccountID = v1alpha1.PlatformX, ""
	}
	return p
}

// retried leaves p's first target to another post.
func retried(p *v1alpha1.Post) *v1alpha1.Post {
	p.Status.Targets[0].RetriedBy = "another"
	return p
}

// deleted marks p as being deleted.
func deleted(p *v1alpha1.Post) *v1alpha1.Post {
	p.DeletionTimestamp = &metav1.Time{Time: t0.Add(time.Hour)}
	return p
}

// finished marks p as finished.
func finished(p *v1alpha1.Post) *v1alpha1.Post {
	p.Status.Finished, p.Status.FinishedAt = true, v1alpha1.NewTimePtr(t0)
	return p
}

// of sets the platform of all targets.
func of(platform v1alpha1.Platform, p *v1alpha1.Post) *v1alpha1.Post {
	for i := range p.Status.Targets {
		p.Status.Targets[i].Platform = platform
	}
	return p
}

// TestAdoptMore checks which targets are adopted when a post becomes due: those that the first lookup did not see, or
// saw with another account.
func TestAdoptMore(t *testing.T) {
	was := New(post("a", "x1=posted", "threads=unknown"), "acme", accounts)
	for _, tt := range []struct {
		name, why string
		now       *v1alpha1.Post
		targets   []int32
		want      []string
		unknown   []string
	}{
		{"no change", "the post was looked up", post("bb", "x2=pending"), nil, []string{"0 pending"}, nil},
		{"a target that an edit added", "the target is published", post("bb", "x2=pending", "x1"), []int32{1}, []string{"0 pending", "1 posted a-0"}, nil},
		{"a target that names another account now", "the target is published there", post("bb", "x1=pending"), []int32{0}, []string{"0 posted a-0"}, nil},
		{"a target with a question", "the user's answer is awaited", uncalled(post("bb", "threads=unknown")), nil, []string{"0 undecided"}, nil},
		{"a target that was declared not published", "an answered question is not repeated", post("bb", "threads=refused"), nil, []string{"0 failed"}, nil},
		{"a failed target", "the target is not sent", post("bb", "x1=failed"), nil, []string{"0 failed"}, nil},
		{"an unknown connection", "the account may be one with the publication", post("bb", "new"), nil, []string{}, []string{"new"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := was.AdoptMore(tt.now, accounts)
			if diff := cmp.Diff(Adopted{Targets: tt.targets, Unknown: tt.unknown}, got); diff != "" {
				t.Errorf("%s (%s)", diff, tt.why)
			}
			if diff := cmp.Diff(tt.want, fates(tt.now)); diff != "" {
				t.Errorf("%s (%s)", diff, tt.why)
			}
		})
	}
}

// TestAdoptKeepsRecordedTargets checks that the post's posted targets stay as they are, whatever the record says.
func TestAdoptKeepsRecordedTargets(t *testing.T) {
	now := post("a", "x1=posted")
	before := now.DeepCopy()
	if adopted := New(post("a", "x1=unknown"), "acme", accounts).Adopt(now, accounts); len(adopted.Targets) > 0 {
		t.Errorf("%+v", adopted)
	}
	if diff := cmp.Diff(before, now); diff != "" {
		t.Error(diff)
	}
}

func TestSucceed(t *testing.T) {
	for _, tt := range []struct {
		name, why string
		objects   []*v1alpha1.Post // in record write order
		uid       types.UID
		earlier   []types.UID
		want      []string // the adopted outcomes of a post to x1 twice, x2 and threads
	}{
		{"one", "the record has no predecessor", []*v1alpha1.Post{post("a", "x1=posted")}, "a", nil, []string{"0 posted a-0"}},
		{"repeated", "the record follows the post", []*v1alpha1.Post{post("a", "x1=unknown"), post("a", "x1=posted")}, "a", nil, []string{"0 posted a-0"}},
		{
			"restored to before the answer", "the record's outcome remains",
			[]*v1alpha1.Post{post("a", "x1=posted"), post("a", "x1=unknown")},
			"a",
			nil,
			[]string{"0 posted a-0"},
		},
		{
			"a removed target", "the target is published anyway",
			[]*v1alpha1.Post{post("a", "x1=posted", "threads=posted"), post("bb", "x1=posted")},
			"bb",
			[]types.UID{"a"},
			[]string{"0 posted bb-0", "3 posted a-1"},
		},
		{
			"a second target of a removed account", "its position remains",
			[]*v1alpha1.Post{post("a", "x1=posted", "x1=posted"), post("bb", "x1=posted")},
			"bb",
			[]types.UID{"a"},
			[]string{"0 posted bb-0", "1 posted a-1"},
		},
		{
			"published again, and refused", "the target remains published",
			[]*v1alpha1.Post{post("a", "x1=posted"), post("bb", "x1=refused")},
			"bb",
			[]types.UID{"a"},
			[]string{"0 posted a-0"},
		},
		{
			"published again, and unknown", "its own call may have published as well",
			[]*v1alpha1.Post{post("a", "x1=posted"), post("bb", "x1=unknown")},
			"bb",
			[]types.UID{"a"},
			[]string{"0 undecided"},
		},
		{
			"the oldest one is written last", "the order is that of the objects",
			[]*v1alpha1.Post{post("bb", "x1=posted"), post("ccc", "x1=posted"), post("a", "x1=posted")},
			"ccc",
			[]types.UID{"a", "bb"},
			[]string{"0 posted ccc-0"},
		},
		{
			"the older one is written last", "a leader that was slow must not undo",
			[]*v1alpha1.Post{post("bb", "x1=posted"), post("a", "x1=posted", "x2=posted")},
			"bb",
			[]types.UID{"a"},
			[]string{"0 posted bb-0", "2 posted a-1"},
		},
		{
			"two of three targets of a removed account", "the last target keeps its position, although the one before is not published",
			[]*v1alpha1.Post{post("a", "x1=posted", "x1=refused", "x1=posted"), post("bb", "x1=posted")},
			"bb",
			[]types.UID{"a"},
			[]string{"0 posted bb-0"},
		},
		{
			"an older one is joined that fills a turn, and has more", "positions keep their later entries",
			[]*v1alpha1.Post{post("a", "x1=posted", "x1=refused", "x1=posted"), post("bb", "x1=posted"), post("a", "x1=posted", "x1=posted", "x1=posted", "x2=posted")},
			"bb",
			[]types.UID{"a"},
			[]string{"0 posted bb-0", "1 posted a-1", "2 posted a-3"},
		},
		{
			"over three objects", "no outcome is lost",
			[]*v1alpha1.Post{post("a", "x1=posted"), post("bb", "x2=posted"), post("ccc", "threads=posted")},
			"ccc",
			[]types.UID{"a", "bb"},
			[]string{"0 posted a-0", "2 posted bb-0", "3 posted ccc-0"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var joined *Record
			for _, object := range tt.objects {
				r := New(object, "acme", accounts)
				joined = r.Merge(joined)
				if diff := cmp.Diff(New(object, "acme", accounts), r); diff != "" {
					t.Errorf("Merge changes its receiver: %s", diff)
				}
			}
			if joined.UID != tt.uid || cmp.Diff(tt.earlier, joined.Earlier) != "" {
				t.Errorf("the record is of %s, after %v; want %s, after %v (%s)", joined.UID, joined.Earlier, tt.uid, tt.earlier, tt.why)
			}
			next := post("dddd", "x1", "x1", "x2", "threads")
			joined.Adopt(next, accounts)
			if diff := cmp.Diff(tt.want, fates(next)); diff != "" {
				t.Errorf("%s (%s)", diff, tt.why)
			}
			again := New(tt.objects[len(tt.objects)-1], "acme", accounts).Merge(joined)
			if diff := cmp.Diff(joined, again); diff != "" {
				t.Errorf("writing a record again changes it: %s", diff)
			}
		})
	}
}

// TestTurns checks that targets match by their order in the spec, regardless of the order of the post's entries.
func TestTurns(t *testing.T) {
	first := New(post("a", "x1=refused", "x1=posted"), "acme", accounts)
	for _, tt := range []struct {
		name, why string
		second    func(adopted *v1alpha1.Post)
		want      []string
	}{
		{
			"sent and rejected again", "the adopted entry is first",
			func(p *v1alpha1.Post) {
				p.Status.Targets = append(p.Status.Targets, post("bb", "x1=refused").Status.Targets[0])
			},
			[]string{"1 posted a-1"},
		},
		{
			"sent, with an unknown outcome", "the target is the first of the two undecided ones",
			func(p *v1alpha1.Post) {
				p.Status.Targets = append(p.Status.Targets, post("bb", "x1=unknown").Status.Targets[0])
			},
			[]string{"0 undecided", "1 posted a-1"},
		},
		{"deleted before the first was entered", "the second target is published", func(p *v1alpha1.Post) { deleted(p) }, []string{"1 posted a-1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			second := post("bb", "x1", "x1")
			first.Adopt(second, accounts)
			tt.second(second)
			kept := New(second, "acme", accounts).Merge(first)
			third := post("ccc", "x1", "x1")
			kept.Adopt(third, accounts)
			if diff := cmp.Diff(tt.want, fates(third)); diff != "" {
				t.Errorf("%s (%s)", diff, tt.why)
			}
		})
	}
}

// TestTurnsOfThree checks that a published target keeps its place when an unpublished one before it is removed as well.
func TestTurnsOfThree(t *testing.T) {
	joined := New(post("bb", "x1=posted"), "acme", accounts).Merge(New(post("a", "x1=posted", "x1=refused", "x1=posted"), "acme", accounts))
	next := post("ccc", "x1", "x1", "x1")
	joined.Adopt(next, accounts)
	if diff := cmp.Diff([]string{"0 posted bb-0", "2 posted a-2"}, fates(next)); diff != "" {
		t.Error(diff)
	}
}

// TestMergedTarget checks that a published target takes the place of the younger object's unpublished one.
func TestMergedTarget(t *testing.T) {
	joined := New(post("bb", "x2=posted", "x1-too=refused"), "acme", accounts).Merge(New(post("a", "x1=posted", "x1=refused"), "acme", accounts))
	if got := joined.Targets[1]; got.ExternalID != "a-0" || got.Index != 1 || got.Connection != "x1-too" || len(joined.Before) > 0 {
		t.Errorf("got %+v, before it %+v", got, joined.Before)
	}
}

// TestRecordedTargets checks the accounts of targets whose Connections are gone, and targets that an edit has removed.
func TestRecordedTargets(t *testing.T) {
	p := post("a", "x1=failed", "x1=posted", "x2=failed", "x1=refused")
	p.Spec.Targets = p.Spec.Targets[:3]
	var got []string
	for _, target := range New(p, "acme", noConnections).Targets {
		got = append(got, fmt.Sprintf("%d %s account %q", target.Index, target.Connection, target.AccountID))
	}
	if diff := cmp.Diff([]string{`0 x1 account "1"`, `1 x1 account "1"`, `2 x2 account ""`, `3  account "1"`}, got); diff != "" {
		t.Error(diff)
	}
}

// TestRecordFoundLate checks that a posted target stays posted if a copy that made no calls became undecided before the
// record was found.
func TestRecordFoundLate(t *testing.T) {
	for _, tt := range []struct {
		why    string
		before string
		want   []string
	}{
		{"the record has the outcome", "x1=posted", []string{"0 posted a-0"}},
		{"the record does not have the outcome either", "x1=unknown", []string{"0 undecided"}},
	} {
		second := post("bb", "x1")
		second.Status.Targets = []v1alpha1.TargetStatus{{Platform: v1alpha1.PlatformX, State: v1alpha1.TargetUndecided}}
		kept := New(second, "acme", accounts).Merge(New(post("a", tt.before), "acme", accounts))
		third := post("ccc", "x1")
		kept.Adopt(third, accounts)
		if diff := cmp.Diff(tt.want, fates(third)); diff != "" {
			t.Errorf("%s (%s)", diff, tt.why)
		}
	}
}

// TestFinishedRecordIsFinal checks that writing an older record late does not replace that of the finished post.
func TestFinishedRecordIsFinal(t *testing.T) {
	before := New(post("a", "x1=posted", "x2=pending"), "acme", accounts)
	after := New(finished(post("a", "x1=posted", "x2=posted")), "acme", accounts)
	for name, joined := range map[string]*Record{"written in order": after.Merge(before), "written late": before.Merge(after)} {
		if diff := cmp.Diff(after, joined); diff != "" || !before.Underway {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestEarlierIsLimited(t *testing.T) {
	var joined *Record
	for i := range 3 * maxEarlier {
		joined = New(post(types.UID(strings.Repeat("u", i+1)), "x1=posted"), "acme", accounts).Merge(joined)
	}
	if n := len(joined.Earlier); n != maxEarlier || len(joined.Earlier[n-1]) != 3*maxEarlier-1 {
		t.Errorf("%d uids of earlier objects are stored, the last one %s", n, joined.Earlier[n-1])
	}
}

func TestWanted(t *testing.T) {
	born := func(at time.Time, keyed bool) func(*v1alpha1.Post) {
		return func(p *v1alpha1.Post) {
			p.Labels = map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginAPI}
			p.Annotations = map[string]string{v1alpha1.BornAnnotation: v1alpha1.NewTime(at).String()}
			if keyed {
				p.Annotations[v1alpha1.RequestAnnotation] = "v1:abc"
			}
		}
	}
	armed := func(value string) func(*v1alpha1.Post) {
		return func(p *v1alpha1.Post) { p.Annotations = map[string]string{v1alpha1.ArmedAnnotation: value} }
	}
	looked := func(uid string) func(*v1alpha1.Post) {
		return func(p *v1alpha1.Post) { p.Status.Earlier = &v1alpha1.EarlierPost{Object: uid} }
	}
	created := post("a").CreationTimestamp.Time
	for _, tt := range []struct {
		name, why      string
		targets        string
		change         func(*v1alpha1.Post)
		wanted, copied bool
	}{
		{"applied", "the post may exist already", "x1", nil, true, false},
		{"applied, looked up", "the post was looked up already", "x1", looked("a"), false, false},
		{"restored with its status", "the lookup was another object's", "x1", looked("z"), true, false},
		{"applied with the label of the API", "anyone can set a label", "x1", func(p *v1alpha1.Post) { p.Labels = map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginAPI} }, true, false},
		{"armed", "the post was looked up", "x1", armed("launch/a"), false, false},
		{"armed as another object", "the post is a copy of that object", "x1", armed("launch/z"), true, true},
		{"copied by a user under a new name", "the post is new", "x1", armed("lunch/z"), true, false},
		{"a malformed annotation", "the annotation is ignored", "x1", armed("launch"), true, false},
		{"created through the API", "the name is unique", "x1", born(created, false), false, false},
		{"created through the API with a key", "the same key results in the same name", "x1", born(created, true), true, false},
		{"created through the API, slowly", "the API server may be slow", "x1", born(created.Add(-5*time.Second), false), false, false},
		{"created through the API, and applied later", "the post may have been published before", "x1", born(created.Add(-6*time.Second), false), true, false},
		{"restored from a backup", "the post may have been published", "x1", born(created.Add(-time.Hour), false), true, true},
		{"started", "its own entries have the outcome", "x1=refused", nil, false, false},
		{"started, and restored with its status", "the delivery may have continued since", "x1=refused", armed("launch/z"), true, true},
		{"finished", "a finished post makes no more calls", "x1", func(p *v1alpha1.Post) { p.Status.Finished = true }, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := post("a", tt.targets)
			if tt.change != nil {
				tt.change(p)
			}
			if wanted, copied := LookupRequired(p), IsCopy(p); wanted != tt.wanted || copied != tt.copied {
				t.Errorf("wanted %t, copied %t; want %t, %t (%s)", wanted, copied, tt.wanted, tt.copied, tt.why)
			}
		})
	}
}

func TestRoundTrip(t *testing.T) {
	p := tree(post("a", "x1=posted", "threads=refused", "x2=pending"), 3, 1)
	p.Labels = map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginAPI, "team": "growth"}
	p.Annotations = map[string]string{v1alpha1.AuthorAnnotation: "ada", v1alpha1.RequestAnnotation: "v1:abc", "note": "private"}
	p.Status.FinishedAt = v1alpha1.NewTimePtr(t0)
	p.Status.Targets[0].Candidates = []v1alpha1.Candidate{{ExternalID: "candidate"}}
	p.Spec.Targets[0].Caption = "1 < 2 && é"
	r := New(p, "acme", accounts)
	data, err := r.Encode()
	must.Succeed(t, err)
	for _, kept := range []string{"container", `"hash"`, "private", "growth", "u003c", "candidate", "prepared", "nextTryAt"} {
		if strings.Contains(string(data), kept) {
			t.Errorf("the record contains %q, which it must not: %s", kept, data)
		}
	}
	read, err := Decode(data)
	must.Succeed(t, err)
	if diff := cmp.Diff(r, read); diff != "" {
		t.Error(diff)
	}
	back := read.Post()
	if diff := cmp.Diff(p.Spec, back.Spec); diff != "" {
		t.Error(diff)
	}
	if back.Labels[v1alpha1.OriginLabel] != v1alpha1.OriginAPI || back.Annotations[v1alpha1.AuthorAnnotation] != "ada" || back.UID != p.UID ||
		!back.Status.Finished || back.Status.FinishedOn != "2026-12-01" || back.Status.Platforms != "x,threads" || !back.CreationTimestamp.Equal(&p.CreationTimestamp) || back.Status.CancelledAt != nil {
		t.Errorf("the post reads %+v", back)
	}
	if r.Phase = v1alpha1.PhaseCancelled; !r.Post().Status.CancelledAt.Equal(r.FinishedAt) {
		t.Error("a cancelled post reads as cancelled when it was finished")
	}
	if diff := cmp.Diff(fates(p), fates(back)); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON": "<html>", "another document": "{}", "a newer form": `{"version":2,"namespace":"n","name":"p","uid":"u"}`,
		"nobody's": `{"version":1,"namespace":"n","name":"p"}`, "without a namespace": `{"version":1,"name":"p","uid":"u"}`,
		"without a version": `{"namespace":"n","name":"p","uid":"u"}`,
	} {
		if r, err := Decode([]byte(text)); err == nil {
			t.Errorf("%s was parsed as %+v", name, r)
		}
	}
}

func TestNeeded(t *testing.T) {
	for state, want := range map[string]bool{"posted": true, "refused": true, "open": true, "pending": false, "failed": false, "": false} {
		if got := Required(post("a", "x1="+state)); got != want {
			t.Errorf("a record of a post that is %q is needed: %t, want %t", state, got, want)
		}
	}
	if asked := uncalled(post("a", "x1=unknown")); !Required(asked) {
		t.Error("an undecided copy may be published, and needs a record")
	}
	if !Required(finished(post("a", "x1=failed"))) {
		t.Error("clients read finished posts during their retention, so they need a record")
	}
	asked := post("a", "x1=pending")
	asked.Status.Targets[0].State = v1alpha1.TargetUndecided
	if !Required(asked) {
		t.Error("an undecided target needs a record even without a claim")
	}
}
