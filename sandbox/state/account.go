// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// ErrNoAccount says that the platform has no such account.
var ErrNoAccount = errors.New("no such account")

// Key names something within a platform.
type Key struct {
	Platform string `json:"platform"`
	ID       string `json:"id"`
}

// Settings are what the control API can change on an account. The zero value is the default.
type Settings struct {
	// Quota is how many posts the account may make in any 24 hours; nil means without limit.
	Quota *int `json:"quota,omitempty"`
	// Private hides the account's posts from others.
	Private bool `json:"private,omitempty"`
	// CommentDisabled says that the account's owner has switched comments off.
	CommentDisabled bool `json:"comment_disabled,omitempty"`
	// ListingLag is how much later than its creation a post appears in listings; nil means the platform's default.
	ListingLag *time.Duration `json:"listing_lag,omitempty"`
	// TokenTTL is the life of access tokens; 0 means the platform's default.
	TokenTTL time.Duration `json:"token_ttl,omitempty"`
	// Processing is how long the platform works on what it was handed before that can be published; nil means the
	// platform's default.
	Processing *time.Duration `json:"processing,omitempty"`
	// ProcessingError, when not empty, is what that work ends with instead.
	ProcessingError string `json:"processing_error,omitempty"`
	// DocumentedLimits lets the platform's own rates and daily limits apply, where its simulator counts them.
	DocumentedLimits bool `json:"documented_limits,omitempty"`
}

// Lag is how much later than its creation a post appears in listings, on a platform with that default.
func (s Settings) Lag(otherwise time.Duration) time.Duration {
	if s.ListingLag != nil {
		return *s.ListingLag
	}
	return otherwise
}

// Account is one account on a simulated platform.
type Account struct {
	Key
	Username    string    `json:"username"`
	DisplayName string    `json:"display_name"`
	CreatedAt   time.Time `json:"created_at"`
	Settings    Settings  `json:"settings"`
	// Login is how its owner connects it, where the platform has more than one way; empty is the platform's own.
	Login string `json:"login,omitempty"`
}

// FacebookLogin is the Login of an account on Instagram that is connected through the Facebook Page it is linked to.
const FacebookLogin = "facebook"

// account is an Account with its posts.
type account struct {
	mu   sync.RWMutex
	info Account
	// posts are in order of creation; deleted ones stay, for they count against the quota.
	posts []*Post
	// latest is the newest post without media per text, for the check for duplicates.
	latest map[string]*Post
	live   int // posts that are not deleted
}

func (a *account) view() Account {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.info
}

// forgetPosts empties the account. Call it with the lock held.
func (a *account) forgetPosts() {
	a.posts, a.latest, a.live = nil, map[string]*Post{}, 0
}

// Account returns the account with that key.
func (s *Store) Account(key Key) (Account, bool) {
	if a := s.lookup(key); a != nil {
		return a.view(), true
	}
	return Account{}, false
}

// AccountNamed returns the account with that username, whatever its case.
func (s *Store) AccountNamed(platform, username string) (Account, bool) {
	s.mu.RLock()
	a := s.usernames[usernameKey(platform, username)]
	s.mu.RUnlock()
	if a == nil {
		return Account{}, false
	}
	return a.view(), true
}

// PostCount returns how many posts an account has that are not deleted.
func (s *Store) PostCount(key Key) int {
	a := s.lookup(key)
	if a == nil {
		return 0
	}
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.live
}

// Summary is an account with how much it has posted.
type Summary struct {
	Account
	Posts int
	// LastPost is when its newest post was made; zero without posts.
	LastPost time.Time
}

// Summaries returns all accounts by platform and id.
func (s *Store) Summaries() []Summary {
	var out []Summary
	for _, a := range s.allAccounts() {
		a.mu.RLock()
		sum := Summary{Account: a.info, Posts: a.live}
		if n := len(a.posts); n > 0 {
			sum.LastPost = a.posts[n-1].CreatedAt()
		}
		a.mu.RUnlock()
		out = append(out, sum)
	}
	slices.SortFunc(out, func(l, r Summary) int {
		return cmp.Or(cmp.Compare(l.Platform, r.Platform), cmp.Compare(l.ID, r.ID))
	})
	return out
}

func (s *Store) allAccounts() []*account {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]*account, 0, len(s.accounts))
	for _, a := range s.accounts {
		out = append(out, a)
	}
	return out
}

// UsernameTakenError says that another account of the platform has that name.
type UsernameTakenError struct{ Username, Holder string }

// Error names the account that has the name.
func (e *UsernameTakenError) Error() string {
	return fmt.Sprintf("the username %q belongs to account %s", e.Username, e.Holder)
}

// CreateAccount adds an account with its first tokens unless there is one with its key; it returns the account as it is
// then, and whether it is new. Empty token strings are made up; withRefresh false gives an access token only.
func (s *Store) CreateAccount(fresh Account, first Tokens, withRefresh bool) (Account, bool, error) {
	s.change.Lock() // the look-up and the creation are one step, and creations are rare
	defer s.change.Unlock()
	if existing, ok := s.Account(fresh.Key); ok {
		return existing, false, nil
	}
	if holder, ok := s.AccountNamed(fresh.Platform, fresh.Username); ok {
		return Account{}, false, &UsernameTakenError{Username: fresh.Username, Holder: holder.ID}
	}
	fresh.CreatedAt = s.clock.Now().UTC().Truncate(time.Millisecond)
	rec := record{Op: opAccount, Account: &fresh, Grant: s.newGrant(fresh.Key, &first, withRefresh)}
	if err := s.commit(rec); err != nil {
		return Account{}, false, err
	}
	return fresh, true, nil
}

// ChangeAccount lets edit change an account's settings and display name. A new token life also shortens the access tokens
// that the account has; it never lengthens them.
func (s *Store) ChangeAccount(key Key, edit func(*Account)) (Account, error) {
	s.change.Lock()
	defer s.change.Unlock()
	a, ok := s.Account(key)
	if !ok {
		return Account{}, ErrNoAccount
	}
	before := a.Settings.TokenTTL
	edit(&a)
	rec := record{Op: opAccount, Account: &a}
	if ttl := a.Settings.TokenTTL; ttl > 0 && ttl != before {
		until := s.clock.Now().Add(ttl)
		rec.Until = &until
	}
	return a, s.commit(rec)
}

func (s *Store) applyAccount(info Account) {
	s.mu.Lock()
	a := s.accounts[info.Key]
	if a == nil {
		a = &account{latest: map[string]*Post{}}
		s.accounts[info.Key] = a
	}
	s.usernames[usernameKey(info.Platform, info.Username)] = a
	s.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.info = info
}
