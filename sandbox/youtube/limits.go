// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"net/http"
	"sync"
	"time"

	"github.com/herald-social/herald/sandbox/state"
)

// What may be done in a day, which begins at midnight Pacific time, and what it costs. Google counts by project; here every
// account stands for one.
const (
	dailyInserts  = 100
	dailyUnits    = 10_000
	listCost      = 1
	thumbnailCost = 50
)

// spending is what was done on a day.
type spending struct {
	day            string
	inserts, units int
}

// books remembers what was spent, by account.
type books struct {
	mu    sync.Mutex
	spent map[state.Key]spending
}

// pacific is where Google's days begin.
var pacific = sync.OnceValue(func() *time.Location {
	if zone, err := time.LoadLocation("America/Los_Angeles"); err == nil {
		return zone
	}
	return time.FixedZone("PST", -8*60*60) // a machine that knows no zones
})

// spend counts units against an account with documented limits, also for what is refused afterwards.
func (p *Platform) spend(account state.Account, units int) *problem {
	return p.count(account, func(s *spending) bool {
		s.units += units
		return s.units <= dailyUnits
	})
}

// spendInsert counts a session: whether it is used or not.
func (p *Platform) spendInsert(account state.Account) *problem {
	return p.count(account, func(s *spending) bool {
		s.inserts++
		return s.inserts <= dailyInserts
	})
}

func (p *Platform) count(account state.Account, add func(*spending) bool) *problem {
	if !account.Settings.DocumentedLimits {
		return nil
	}
	p.books.mu.Lock()
	defer p.books.mu.Unlock()
	if p.books.spent == nil {
		p.books.spent = map[state.Key]spending{}
	}
	today := p.Clock.Now().In(pacific()).Format(time.DateOnly)
	spent := p.books.spent[account.Key]
	if spent.day != today {
		spent = spending{day: today}
	}
	if !add(&spent) {
		with := refuse(http.StatusForbidden, "PERMISSION_DENIED", "youtube.quota", "quotaExceeded",
			"The request cannot be completed because you have exceeded your quota.")
		return &with
	}
	p.books.spent[account.Key] = spent
	return nil
}
