// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"net/http"
	"sync"
	"time"

	"github.com/herald-social/herald/sandbox/state"
)

const (
	// rateWindow is the time over which requests are counted; it slides.
	rateWindow = time.Minute
	// maxPending is how many drafts may wait at once for those who made them, within pendingWindow.
	maxPending    = 5
	pendingWindow = 24 * time.Hour
)

// The requests of one token in a minute, by what is asked.
const (
	initRate   = 6
	infoRate   = 20
	statusRate = 30
)

// rates remembers when requests came.
type rates struct {
	mu   sync.Mutex
	seen map[string][]time.Time
}

// spend counts a request, unless there have been as many as may be in the window; then it returns false.
func (r *rates) spend(key string, limit int, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.seen[key]
	for len(seen) > 0 && now.Sub(seen[0]) >= rateWindow {
		seen = seen[1:]
	}
	if len(seen) >= limit {
		r.seen[key] = seen
		return false
	}
	if r.seen == nil {
		r.seen = map[string][]time.Time{}
	}
	r.seen[key] = append(seen, now)
	return true
}

// checkRate applies a rate to an account with documented limits.
func (p *Platform) checkRate(r *http.Request, account state.Account, limit int) *refusal {
	if !account.Settings.DocumentedLimits || p.rates.spend(bearerToken(r)+" "+r.URL.Path, limit, p.Clock.Now()) {
		return nil
	}
	return &refusal{http.StatusTooManyRequests, "rate_limit_exceeded", rateExceeded}
}

// checkRoom says whether an account may post now; drafts have a limit of their own.
func (p *Platform) checkRoom(account state.Account, inbox bool) *refusal {
	if inbox {
		if account.Settings.DocumentedLimits && p.pending(account) >= maxPending {
			return forbidden(tooManyDrafts, "The user has too many posts pending in the inbox.")
		}
		return nil
	}
	if used, _ := p.Store.QuotaUsed(account.Key); account.Settings.Quota != nil && used >= *account.Settings.Quota {
		return forbidden(tooManyPosts, "The daily post cap from the API is reached for the current user.")
	}
	return nil
}

// pending is how many drafts wait; their owners finish them in the app, which is not simulated.
func (p *Platform) pending(account state.Account) int {
	n, since := 0, p.Clock.Now().Add(-pendingWindow)
	for _, post := range p.Store.Posts(Name, account.ID) {
		if post.Draft && post.CreatedAt().After(since) {
			n++
		}
	}
	return n
}

const (
	tooManyPosts  = "spam_risk_too_many_posts"
	tooManyDrafts = "spam_risk_too_many_pending_share"
)
