// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
)

var long = flag.Bool("explore.long", false, "explore with more faults, which takes minutes")

// listing is the reliability of an account's listing.
type listing int

const (
	// reliable: a post that is missing after the lag was not published.
	reliable listing = iota
	// unreliable: the listing may never contain a post.
	unreliable
)

// scenario describes one exploration.
type scenario struct {
	name string
	// listing, containers and works are features of the platform: a listing, containers whose state is authoritative,
	// and operation IDs for calls that it has accepted and is processing.
	listing    listing
	containers bool
	works      bool
	// tells: a lookup finds a call in processing even without its operation ID, as with an upload session.
	tells bool
	// dedupes: the platform refuses repeated calls as duplicates.
	dedupes bool
	// keyed: the platform keeps one post per key, refuses repeated calls as duplicates, and finds the post by its key.
	keyed   bool
	targets int
	cards   int
	policy  v1alpha1.UnknownOutcomePolicy
	// chained: a single write records a card and claims the next one.
	chained bool
	// faults is the number of faults per run. kinds are the allowed faults; if it is empty, all are allowed. longer is the
	// number of faults that -explore.long adds.
	faults, longer int
	kinds          []fault
	// alone: there is one manager at a time; when it dies, another one starts.
	alone bool
	// cancels, edits and asked let the user cancel, edit and answer.
	cancels, edits, asked bool
	// pulls is the maximum number of team suspensions.
	pulls int
	// crowd lets the post be armed.
	crowd bool
	// shares: the post has a file, which both managers may prepare. Only the first of them leads, until the second one
	// begins to lead; elections is the number of times that this may happen. undisturbed: no fault justifies a failure of
	// the post.
	shares      bool
	elections   int
	undisturbed bool
	// uploadTime is the maximum duration of an upload, in milliseconds.
	uploadTime int64
	// clocks are the initial offsets of the managers' clocks, and jumps are the offsets that a clock may jump to.
	clocks [][managers]int64
	jumps  []int64

	settings     delivery.Settings
	capabilities platforms.Capabilities
	timing       attempt.Timing

	broken   broken
	noSchema bool
	beyond   beyond
}

func (s *scenario) mayHappen(f fault) bool {
	if s.kinds == nil {
		// A refused lookup is the same as a failed one with shorter retries, so only scenarios that name it include it.
		return f != denied
	}
	return slices.Contains(s.kinds, f)
}

// Where only the order matters, the times are short. The lag equals the interval between two lookups, which leaves the
// least room for error.
var (
	settings = delivery.Settings{
		StartingDeadline: 2 * time.Minute, SendWindow: 3 * time.Second, ClockMargin: margin * time.Millisecond, PrepareAhead: time.Minute, HoldFor: time.Minute,
	}
	capabilities = platforms.Capabilities{
		CallTimeout: 4 * time.Second, ListingLag: time.Second, Delivers: []v1alpha1.Category{v1alpha1.CategoryText, v1alpha1.CategoryTree},
	}
)

// margin is the clock margin in milliseconds.
const margin = 2000

// late is the time by which a late listing exceeds the declared lag, in milliseconds. With this value, a post is listed
// only after the rate limit that the platform reported for it has expired and its refusal has been confirmed, but before
// the next attempt is looked up.
const late = 82_000

// right is a pair of correct clocks. lying are pairs with one clock that is as wrong as allowed.
var (
	right = [][managers]int64{{0, 0}}
	lying = [][managers]int64{{0, 0}, {0, margin}, {0, -margin}}
)

func text(name string, change func(*scenario)) scenario {
	s := scenario{
		name: name, targets: 1, policy: v1alpha1.OnUnknownFail, clocks: right, faults: 2, longer: 1,
		settings: settings, capabilities: capabilities,
	}
	change(&s)
	s.capabilities.ListingAuthoritative, s.capabilities.Idempotent = nil, s.keyed
	if s.listing == reliable && !s.containers {
		s.capabilities.ListingAuthoritative = s.capabilities.Delivers
	}
	s.timing, _ = s.facts(&v1alpha1.Post{Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText}}, t0).Timing(v1alpha1.PlatformX)
	return s
}

// braked returns a scenario in which the team may be suspended once. The deadline is near, so that it can pass during
// the suspension.
func braked(name string, change func(*scenario)) scenario {
	return text(name, func(s *scenario) {
		s.settings.StartingDeadline, s.pulls = 18*time.Second, 1
		change(s)
	})
}

func scenarios() []scenario {
	return []scenario{
		text("a text, where the listing is proof", func(s *scenario) {}),
		text("a text, with clocks that lie", func(s *scenario) {
			s.clocks, s.kinds = lying, []fault{crash, answerLost}
		}),
		text("a text, with a clock that jumps", func(s *scenario) {
			s.jumps, s.kinds = []int64{-margin / 2, 0, margin / 2}, []fault{clockJump, crash, answerLost}
		}),
		text("a text, where a process stalls again and again and dies", func(s *scenario) {
			s.alone, s.faults, s.kinds = true, 4, []fault{crash, stall}
		}),
		text("a text that is cancelled and edited", func(s *scenario) { s.cancels, s.edits, s.faults = true, true, 1 }),
		text("a text, prepared in a container", func(s *scenario) {
			s.containers, s.edits, s.faults, s.kinds = true, true, 1, []fault{crash, stall, answerLost, writeLost}
		}),
		text("a text, where the listing proves nothing", func(s *scenario) {
			s.listing, s.asked, s.kinds = unreliable, true, []fault{crash, answerLost, blind, writeLost}
		}),
		text("a text to be sent again in doubt", func(s *scenario) {
			s.listing, s.policy, s.asked, s.kinds = unreliable, v1alpha1.OnUnknownRetry, true, []fault{crash, answerLost, blind, writeLost, refusal}
		}),
		text("a text to be sent again in doubt, until it is too late", func(s *scenario) {
			s.listing, s.policy, s.asked, s.kinds = unreliable, v1alpha1.OnUnknownRetry, true, []fault{crash, answerLost, refusal}
			s.settings.StartingDeadline = 18 * time.Second
		}),
		text("a text that the platform takes and works on", func(s *scenario) {
			s.listing, s.works, s.asked = unreliable, true, true
			s.kinds = []fault{crash, stall}
		}),
		text("a text that the platform takes, works on and may give up", func(s *scenario) {
			s.listing, s.works, s.asked = unreliable, true, true
			s.kinds = []fault{crash, answerLost, writeLost, givesUp}
		}),
		text("a text that the platform works on for ever", func(s *scenario) {
			s.listing, s.works, s.asked, s.faults, s.kinds = unreliable, true, true, 1, []fault{endless}
		}),
		text("a text that the platform works on, and tells of where its answer was lost or a refusal", func(s *scenario) {
			s.listing, s.works, s.tells, s.asked = unreliable, true, true, true
			s.kinds = []fault{lies, answerLost, crash, givesUp}
		}),
		text("a text that is published and refused", func(s *scenario) {
			s.alone, s.asked, s.faults, s.kinds = true, true, 3, []fault{lies, crash, blind, writeLost}
		}),
		text("a text that is published and refused, with clocks that lie", func(s *scenario) {
			s.clocks, s.kinds = lying, []fault{lies, crash, stall}
		}),
		text("a text that is published and refused, where the listing proves nothing", func(s *scenario) {
			s.listing, s.asked, s.kinds = unreliable, true, []fault{lies, crash, blind, busy}
		}),
		text("a text that is published and refused, to be sent again in doubt", func(s *scenario) {
			s.listing, s.policy, s.asked, s.kinds = unreliable, v1alpha1.OnUnknownRetry, true, []fault{lies, answerLost, busy}
		}),
		text("a text that is published and refused, where the platform refuses questions as well", func(s *scenario) {
			s.faults, s.kinds = 3, []fault{lies, denied, crash}
		}),
		text("a text that is published and refused, listed later than declared, where the platform refuses repetitions", func(s *scenario) {
			s.alone, s.dedupes, s.beyond.lag, s.kinds = true, true, late, []fault{lies, blind}
		}),
		text("a text that is published and refused, prepared in a container", func(s *scenario) {
			s.containers, s.faults, s.kinds = true, 2, []fault{lies, crash, writeLost}
		}),
		text("a tree of which cards are published and refused", func(s *scenario) {
			s.cards, s.chained, s.kinds = 2, true, []fault{lies, crash, writeLost}
		}),
		text("a tree", func(s *scenario) { s.cards, s.kinds = 2, []fault{crash, answerLost, stale} }),
		text("a text under a key of its own", func(s *scenario) {
			s.listing, s.keyed, s.cancels = unreliable, true, true
			s.kinds = []fault{crash, stall, answerLost, lies, blind, writeLost, busy, duplicate}
		}),
		text("a text under a key of its own, with clocks that lie", func(s *scenario) {
			s.listing, s.keyed, s.clocks, s.kinds = unreliable, true, lying, []fault{crash, answerLost, lies}
		}),
		text("a text under a key of its own, where the platform works on a call for longer than it declares", func(s *scenario) {
			s.listing, s.keyed, s.beyond.work, s.kinds = unreliable, true, 5000, []fault{crash, answerLost, blind}
		}),
		text("a text under a key of its own, where lookups fail until it is too late", func(s *scenario) {
			s.listing, s.keyed, s.faults, s.kinds = unreliable, true, 3, []fault{answerLost, blind}
			s.settings.StartingDeadline = 8 * time.Second
		}),
		text("a tree under keys of its own", func(s *scenario) {
			s.listing, s.keyed, s.cards, s.chained, s.kinds = unreliable, true, 2, true, []fault{crash, answerLost, lies, writeLost}
		}),
		text("a tree, where a card is recorded and the next one claimed by one write", func(s *scenario) {
			s.cards, s.chained, s.kinds = 2, true, []fault{crash, answerLost, writeLost}
		}),
		text("a text for two accounts", func(s *scenario) { s.targets, s.faults = 2, 1 }),
		braked("a text of a team that is suspended", func(s *scenario) {
			s.faults, s.kinds = 1, []fault{crash, answerLost}
		}),
		braked("a text of a team that is suspended, where a process stalls and calls are refused", func(s *scenario) {
			s.alone, s.faults, s.kinds = true, 2, []fault{stall, busy}
		}),
		braked("a text of a team that is suspended twice", func(s *scenario) { s.pulls, s.alone, s.faults, s.kinds = 2, true, 1, []fault{stall, busy} }),
		braked("a text of a team that is suspended, with clocks that lie", func(s *scenario) {
			s.clocks, s.faults = lying, 0
		}),
		braked("a text of a team that is suspended, prepared in a container", func(s *scenario) {
			s.alone, s.containers, s.faults, s.kinds = true, true, 1, []fault{crash, stall}
		}),
		braked("a tree of a team that is suspended, where a card is recorded and the next one claimed by one write", func(s *scenario) {
			s.cards, s.chained, s.alone, s.faults, s.kinds = 2, true, true, 1, []fault{crash, stall, writeLost}
		}),
	}
}

// TestProtocol checks the rules of docs/adr/0001 in every schedule.
func TestProtocol(t *testing.T) {
	for _, s := range slices.Concat(scenarios(), crowds(), uploads()) {
		t.Run(s.name, func(t *testing.T) {
			s.faults = max(s.faults-fewer, 0)
			if *long {
				s.faults += s.longer
			}
			began := time.Now()
			r := explore(s)
			t.Logf("%d faults: %s, in %s", s.faults, r, time.Since(began).Round(10*time.Millisecond))
			if r.violation != nil {
				t.Fatalf("%s: %s\n%s", r.violation.rule, r.violation.why, strings.Join(r.trace, "\n"))
			}
		})
	}
}
