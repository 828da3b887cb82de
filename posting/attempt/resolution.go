// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
)

// Resolution is a user's answer for an undecided target.
type Resolution struct {
	// Index is the target's index.
	Index int32
	// ExternalID and ExternalURL identify the published post. The user provides one of them, and the platform may add the
	// other.
	ExternalID  string
	ExternalURL string
	// Unnamed means that the target was published, but the user gave neither its ID nor its URL.
	Unnamed bool
	// AccountID is the account of the post if the platform has confirmed it. Otherwise it is empty, and the ID is
	// recorded as entered.
	AccountID string
}

// Published reports whether the user answered that the target was published.
func (r Resolution) Published() bool { return r.Unnamed || r.ExternalID != "" || r.ExternalURL != "" }

// ParseResolutions parses the social.herald.dev/settle annotation, a comma-separated list of "<index>=posted:<id>",
// "<index>=posted:<https URL>", "<index>=posted" and "<index>=not-sent". URLs may contain commas, so a comma
// separates entries only if a number and "=" follow.
func ParseResolutions(value string) ([]Resolution, error) {
	var resolutions []Resolution
	for value != "" || resolutions == nil {
		entry := value
		if at := entryStart.FindStringIndex(value); at != nil {
			entry, value = value[:at[0]], value[at[0]+1:]
		} else {
			value = ""
		}
		r, err := parseResolution(strings.TrimSpace(entry))
		if err != nil {
			return nil, err
		}
		resolutions = append(resolutions, r)
	}
	return resolutions, nil
}

var entryStart = regexp.MustCompile(`,\s*-?[0-9]+=`)

func parseResolution(entry string) (Resolution, error) {
	malformed := fmt.Errorf("%q is not a resolution; write \"<index>=posted:<id or https URL>\", \"<index>=posted\" or \"<index>=not-sent\"", entry)
	number, what, ok := strings.Cut(entry, "=")
	index, err := strconv.ParseInt(number, 10, 32)
	if !ok || err != nil || index < 0 {
		return Resolution{}, malformed
	}
	r := Resolution{Index: int32(index), Unnamed: what == "posted"}
	if r.Unnamed || what == "not-sent" {
		return r, nil
	}
	found, ok := strings.CutPrefix(what, "posted:")
	switch {
	case !ok:
		return Resolution{}, malformed
	case strings.Contains(found, "://"):
		if err := validAddress(found); err != nil {
			return Resolution{}, fmt.Errorf("target %d: %q is not the URL of a post: %w; copy it from the browser", index, found, err)
		}
		r.ExternalURL = found
	case found == idPlaceholder || !validID(found):
		return Resolution{}, fmt.Errorf("target %d: %q is not the id of a post; enter the platform's own id, or the post's URL, starting with https://", index, found)
	default:
		r.ExternalID = found
	}
	return r, nil
}

// idPlaceholder is the placeholder for the ID in commands shown to users.
const idPlaceholder = "ID"

// The schema's maximum lengths, in characters. For URLs the length is checked in bytes, which is at least as strict.
const (
	longestID  = 256
	longestURL = 2048
)

// validID accepts the characters of all platforms' IDs, and so rejects URLs and placeholders in brackets.
func validID(id string) bool {
	if id == "" || len(id) > longestID {
		return false
	}
	return !strings.ContainsFunc(id, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && !strings.ContainsRune("-_.~:", r)
	})
}

func validAddress(address string) error {
	if len(address) > longestURL {
		return fmt.Errorf("it is longer than %d characters", longestURL)
	}
	if strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("<>\"\\^`{|}", r) }) {
		return errors.New("it contains a character that URLs cannot contain")
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return errors.New("it cannot be read")
	case u.Scheme != "https" && u.Scheme != "http":
		return errors.New("it does not start with https:// or http://")
	case u.Hostname() == "" || u.User != nil:
		return errors.New("it names no site")
	}
	return nil
}

// Resolve records a user's answer for an undecided target. tryUntil is the deadline for later calls: a repeated call
// after "not-sent", or calls for a tree's next cards. cards has the same meaning as in Record.
func Resolve(t *v1alpha1.TargetStatus, r Resolution, cards int, tryUntil, now time.Time) error {
	if state := posting.StateOf(t); state != v1alpha1.TargetUndecided {
		return fmt.Errorf("target %d: only a target whose outcome is unknown can be settled by a user; this one is %s", t.Index, state)
	}
	if r.Published() && r.ExternalID == "" && len(t.Cards)+1 < cards {
		return fmt.Errorf("target %d: card %d of %d has later cards that reply to its id; answer with the id or the URL of the card: \"%[1]d=posted:<id or https URL>\"",
			t.Index, len(t.Cards)+1, cards)
	}
	if t.Attempt == nil {
		t.Attempt = &v1alpha1.Attempt{
			Number: 1, ID: "declared", AccountID: r.AccountID, StartedAt: v1alpha1.NewTime(now), SendBefore: v1alpha1.NewTime(now),
		}
	}
	t.Attempt.UnknownSince = nil
	if r.Published() {
		resolvePosted(t, r, cards, tryUntil, now)
		return nil
	}
	if IsOpen(t.Attempt) || t.Attempt.Outcome == v1alpha1.OutcomeUnknown {
		t.Attempt.Outcome = v1alpha1.OutcomeNotSent
	}
	t.State, t.Blocked = v1alpha1.TargetPending, nil
	t.NextTryAt, t.TryUntil = nil, v1alpha1.NewTimePtr(tryUntil)
	return nil
}

func resolvePosted(t *v1alpha1.TargetStatus, r Resolution, cards int, tryUntil, now time.Time) {
	what := listed(t, r)
	first := t.ExternalID == ""
	if r.ExternalID == "" {
		// A tree's last card does not get a CardStatus, which would need an ID.
		cards = 0
	}
	recordPosted(t, what, cards, now)
	if r.AccountID == "" {
		t.Unconfirmed = t.Unconfirmed || first
		if cards > 1 {
			t.Cards[len(t.Cards)-1].Unconfirmed = true
		}
	}
	if t.State == v1alpha1.TargetPending {
		t.TryUntil = v1alpha1.NewTimePtr(tryUntil)
	}
}

// listed returns the post that a resolution names, completed from the list of candidates.
func listed(t *v1alpha1.TargetStatus, r Resolution) platforms.LookupResult {
	what := platforms.LookupResult{ExternalID: r.ExternalID, ExternalURL: r.ExternalURL}
	for i := range t.Candidates {
		c := &t.Candidates[i]
		if c.ExternalID != r.ExternalID {
			continue
		}
		if what.ExternalURL == "" {
			what.ExternalURL = c.ExternalURL
		}
		if c.PostedAt != nil {
			what.PostedAt = c.PostedAt.Time
		}
	}
	return what
}
