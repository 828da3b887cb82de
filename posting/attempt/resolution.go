// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
)

// Resolution is what a person found out about a target whose outcome is unknown.
type Resolution struct {
	// Index of the target.
	Index int32
	// ExternalID of the published post; empty if nothing was published.
	ExternalID string
	// AccountID is the account whose post that is, as the platform confirmed; empty if
	// it did not, so that the id is kept as it was told.
	AccountID string
}

// ParseResolutions reads the value of the annotation social.herald.dev/settle:
// entries "<index>=posted:<id>" or "<index>=not-sent", separated by commas.
func ParseResolutions(value string) ([]Resolution, error) {
	var resolutions []Resolution
	for entry := range strings.SplitSeq(value, ",") {
		r, err := parseResolution(strings.TrimSpace(entry))
		if err != nil {
			return nil, err
		}
		resolutions = append(resolutions, r)
	}
	return resolutions, nil
}

func parseResolution(entry string) (Resolution, error) {
	malformed := fmt.Errorf("%q is not a resolution; write \"<index>=posted:<id>\" or \"<index>=not-sent\"", entry)
	number, what, ok := strings.Cut(entry, "=")
	index, err := strconv.ParseInt(number, 10, 32)
	if !ok || err != nil || index < 0 {
		return Resolution{}, malformed
	}
	if what == "not-sent" {
		return Resolution{Index: int32(index)}, nil
	}
	id, ok := strings.CutPrefix(what, "posted:")
	switch {
	case !ok:
		return Resolution{}, malformed
	case id == idPlaceholder || !validID(id):
		return Resolution{}, fmt.Errorf("target %d: %q is not the id of a post; write the platform's own id alone, without its address", index, id)
	}
	return Resolution{Index: int32(index), ExternalID: id}, nil
}

// idPlaceholder stands for the id in the command that people are shown.
const idPlaceholder = "ID"

// longestID is the schema's bound on an external id.
const longestID = 256

// validID reports whether this can be an id: no platform's ids hold anything but
// letters, digits and a few signs. An address is no id, nor is a placeholder in
// brackets.
func validID(id string) bool {
	if id == "" || len(id) > longestID {
		return false
	}
	return !strings.ContainsFunc(id, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && !strings.ContainsRune("-_.~:", r)
	})
}

// Resolve enters what a person found out. Only an undecided target can be
// settled so; tryUntil bounds the attempts that follow: those that "not-sent"
// allows, and those of the next cards of a tree. cards is as in Record.
func Resolve(t *v1alpha1.TargetStatus, r Resolution, cards int, tryUntil, now time.Time) error {
	if state := posting.StateOf(t); state != v1alpha1.TargetUndecided {
		return fmt.Errorf("target %d: only a target whose outcome is unknown can be settled by a person; this one is %s", t.Index, state)
	}
	if t.Attempt == nil {
		t.Attempt = &v1alpha1.Attempt{
			Number: 1, ID: "declared", AccountID: r.AccountID, StartedAt: v1alpha1.NewTime(now), SendBefore: v1alpha1.NewTime(now),
		}
	}
	t.Attempt.UnknownSince = nil
	if r.ExternalID != "" {
		first := t.ExternalID == ""
		posted(t, platforms.LookupResult{ExternalID: r.ExternalID}, cards, now)
		if r.AccountID == "" {
			t.Unconfirmed = t.Unconfirmed || first
			if cards > 1 {
				t.Cards[len(t.Cards)-1].Unconfirmed = true
			}
		}
		if t.State == v1alpha1.TargetPending {
			t.TryUntil = v1alpha1.NewTimePtr(tryUntil)
		}
		return nil
	}
	if IsOpen(t.Attempt) || t.Attempt.Outcome == v1alpha1.OutcomeUnknown {
		t.Attempt.Outcome = v1alpha1.OutcomeNotSent
	}
	t.State, t.Blocked = v1alpha1.TargetPending, nil
	t.NextTryAt, t.TryUntil = nil, v1alpha1.NewTimePtr(tryUntil)
	return nil
}
