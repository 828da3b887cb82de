// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/sandboxtest"
)

// card returns the text of a tree's card; title returns a video's title.
func card(words string, i int) string { return fmt.Sprintf("%s, card %d", words, i) }
func title(words string) string       { return "The film of " + words }

// row counts the outcomes of one kind of post on one platform.
type row struct {
	targets, attempts, cancelled, twice, lost, givenUp, looked int
	// denied counts failed targets that are online.
	denied int
}

func (r *row) add(o row) {
	r.targets += o.targets
	r.attempts += o.attempts
	r.cancelled += o.cancelled
	r.twice += o.twice
	r.lost += o.lost
	r.givenUp += o.givenUp
	r.looked += o.looked
	r.denied += o.denied
}

// totals are the results of a campaign.
type totals struct {
	posts, kills, serverKills, cuts, holds, faults int
	// lies counts refusals of posts that were published.
	lies int
	rows map[pair]*row
	// reasons counts the reasons for giving up posts; unnamed counts the posts whose reason does not name what to
	// check.
	reasons map[string]int
	unnamed int
}

func newTotals() *totals { return &totals{rows: map[pair]*row{}, reasons: map[string]int{}} }

func (t *totals) row(p pair) *row {
	if t.rows[p] == nil {
		t.rows[p] = &row{}
	}
	return t.rows[p]
}

// sum adds up the rows that match.
func (t *totals) sum(match func(pair) bool) (out row) {
	for p, r := range t.rows {
		if match(p) {
			out.add(*r)
		}
	}
	return out
}

func everyPair(pair) bool { return true }

// String returns the totals as a table.
func (t *totals) String() string {
	var out bytes.Buffer
	all := t.sum(everyPair)
	fmt.Fprintf(&out, "%d posts, %d kills (%d of the API server or its store), %d cuts, %d pauses, %d platform faults, %d false refusals: "+
		"%d published twice, %d lost, %d published but failed, %d given up, %d settled by a lookup\n\n",
		t.posts, t.kills+t.serverKills, t.serverKills, t.cuts, t.holds, t.faults, t.lies, all.twice, all.lost, all.denied, all.givenUp, all.looked)
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(table, "platform\tkind\ttargets\tcancelled\tattempts\ttwice\tlost\tpublished, failed\tgiven up\tby lookup\t")
	line := func(platform, kind string, r row) {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n",
			platform, kind, r.targets, r.cancelled, r.attempts, r.twice, r.lost, r.denied, r.givenUp, r.looked)
	}
	for _, on := range everywhere {
		for _, k := range kinds {
			if r := t.rows[pair{k, on}]; r != nil {
				line(string(on), k.name, *r)
			}
		}
	}
	line("all", "", all)
	_ = table.Flush()
	for _, on := range everywhere {
		if n := t.sum(func(p pair) bool { return p.to == on }).givenUp; n > 0 {
			fmt.Fprintf(&out, "questions for users about %s: %d\n", on, n)
		}
	}
	for reason, n := range t.reasons {
		fmt.Fprintf(&out, "given up %d times: %s\n", n, reason)
	}
	return out.String()
}

// words identify a post on an account.
type words struct {
	on    v1alpha1.Platform
	text  string
	inbox bool
}

// part is a visible part of a target: a post, or a card of a tree.
type part struct {
	words
	title string
	files []string
}

// parts returns a target's visible parts.
func (s *sent) parts(t *team, i int) (out []part) {
	target := &s.Spec.Targets[i]
	on := v1alpha1.Platform(target.ConnectionRef.Name)
	hashes := func(k int) (out []string) {
		for _, ref := range s.kind.refs(k) {
			out = append(out, t.hashes[ref.Name])
		}
		return out
	}
	if s.Spec.Tree != nil {
		for k, c := range s.Spec.Tree.Cards {
			out = append(out, part{words: words{on: on, text: c.Caption}, files: hashes(k)})
		}
		return out
	}
	p := part{words: words{on, target.Caption, s.kind.inbox}, files: hashes(0)}
	if s.kind.inbox {
		p.text = "" // a video in the inbox has no text
	}
	if target.YouTube != nil {
		p.title = target.YouTube.Title
	}
	return []part{p}
}

// shown returns the team's posts on the sandbox, by words.
func (t *team) shown(ctx context.Context) map[words][]sandboxtest.Post {
	out := map[words][]sandboxtest.Post{}
	for on, account := range t.accounts {
		all, err := platform.Posts(ctx, string(on), account.ID)
		Expect(err).NotTo(HaveOccurred())
		for _, p := range all {
			w := words{on, p.Text, p.Draft}
			out[w] = append(out[w], p)
		}
	}
	return out
}

// verifyTeam compares the status of each of a team's posts with the sandbox.
func (t *totals) verifyTeam(ctx context.Context, tm *team) {
	now, err := tm.all(ctx)
	Expect(err).NotTo(HaveOccurred())
	looked, shown := settledByLooking(), tm.shown(ctx)
	wanted, ids := map[words]int{}, map[string]string{}
	for _, p := range tm.posts {
		for i := range p.Spec.Targets {
			for _, part := range p.parts(tm, i) {
				if !p.cancelled {
					wanted[part.words]++
				}
			}
		}
	}
	for _, p := range tm.posts {
		t.posts++
		for i := range p.Spec.Targets {
			on := v1alpha1.Platform(p.Spec.Targets[i].ConnectionRef.Name)
			r := t.row(pair{p.kind, on})
			r.targets++
			var is v1alpha1.PostStatus
			if post := now[p.Name]; post != nil {
				is = post.Status
			}
			var target v1alpha1.TargetStatus
			if i < len(is.Targets) {
				target = is.Targets[i]
			}
			if target.Attempt != nil {
				r.attempts += int(target.Attempt.Number)
			}
			r.looked += looked[fmt.Sprintf("%s/%d", p.UID, i)]
			if is.Phase == v1alpha1.PhaseCancelled {
				r.cancelled++
			}
			if p.cancelled != (is.Phase == v1alpha1.PhaseCancelled) {
				r.lost++
				GinkgoWriter.Printf("%s/%s is %s, and was cancelled: %t\n", p.Namespace, p.Name, is.Phase, p.cancelled)
			}
			bad := t.compare(r, p, &target, p.parts(tm, i), wanted, shown)
			id := string(on) + "/" + target.ExternalID
			if other := ids[id]; target.ExternalID != "" && other != "" {
				bad = append(bad, "another post has the same id: "+other)
				r.lost++
			}
			ids[id] = p.Name
			if len(bad) > 0 {
				GinkgoWriter.Printf("%s %s/%s target %d on %s: %s\n  %+v\n  attempt %+v\n",
					p.kind.name, p.Namespace, p.Name, i, on, strings.Join(bad, "; "), target, target.Attempt)
			}
		}
	}
}

// compare checks a target and returns its problems.
func (t *totals) compare(r *row, p *sent, target *v1alpha1.TargetStatus, parts []part, wanted map[words]int, shown map[words][]sandboxtest.Post) (bad []string) {
	before, complete, unclaimed := "", true, false
	for k, want := range parts {
		got := shown[want.words]
		if len(got) > wanted[want.words] {
			r.twice++
			bad = append(bad, fmt.Sprintf("part %d is shown %d times, not %d", k, len(got), wanted[want.words]))
		}
		id := target.ExternalID
		if k > 0 {
			id = ""
		}
		if k < len(target.Cards) {
			id = target.Cards[k].ExternalID
		}
		match := slices.IndexFunc(got, func(g sandboxtest.Post) bool {
			// A post in TikTok's inbox has no ID and is recorded under its ticket. A Meta container proves that its
			// post is published, but not which of several posts with the same words it is.
			allShown := len(got) == wanted[want.words]
			return g.ID == id || want.inbox && strings.Contains(id, "~") && allShown ||
				id == "" && len(parts) == 1 && target.Phase == v1alpha1.PhasePosted && allShown && len(got) > 1
		})
		if match < 0 {
			complete = false
			unclaimed = unclaimed || len(got) == wanted[want.words]
			continue
		}
		if is := got[match]; is.InReplyTo != before || want.title != "" && is.Title != want.title || !slices.Equal(hashesOf(is), want.files) {
			bad = append(bad, fmt.Sprintf("part %d is shown as %+v, want %+v in reply to %q", k, is, want, before))
			complete = false
		}
		before = id
	}
	switch {
	case p.cancelled: // must not be published
	case target.Phase == v1alpha1.PhaseFailed && target.Reason == v1alpha1.ReasonOutcomeUnknown:
		r.givenUp++
		t.reasons[reasonOf(target.Message)]++
		if !strings.Contains(target.Message, "Check the account") || !strings.Contains(target.Message, v1alpha1.SettleAnnotation) {
			t.unnamed++
			bad = append(bad, "the message does not name what to check")
		}
	case target.Phase == v1alpha1.PhaseFailed && unclaimed:
		r.denied++
		bad = append(bad, "the post failed, but is published")
	case target.Phase != v1alpha1.PhasePosted || !complete:
		r.lost++
		bad = append(bad, "the post is lost")
	}
	return bad
}

// reasonOf returns the reason for giving up a post.
func reasonOf(message string) string {
	_, why, _ := strings.Cut(message, "(")
	why, _, _ = strings.Cut(why, "). Look")
	return why
}

func hashesOf(p sandboxtest.Post) (out []string) {
	for _, m := range p.Media {
		out = append(out, m.SHA256)
	}
	return out
}

var lookupLine = regexp.MustCompile(`looked up a call whose response was lost.*uid=(\S+) target=(\d+) attempt=(\w+) .*outcome=\w`)

// settledByLooking counts the lookups that decided an outcome, by post and target, from the managers' logs.
func settledByLooking() map[string]int {
	log, err := os.ReadFile(filepath.Join(folder, "manager.log"))
	Expect(err).NotTo(HaveOccurred())
	out, seen := map[string]int{}, map[string]bool{}
	for _, m := range lookupLine.FindAllSubmatch(log, -1) {
		// Two managers may have looked up the same attempt, but only one of them could write.
		if attempt := string(m[3]); !seen[attempt] {
			seen[attempt] = true
			out[string(m[1])+"/"+string(m[2])]++
		}
	}
	return out
}
