// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrNoAccount is returned for an account that does not exist on the platform.
var ErrNoAccount = errors.New("no such account")

// Key identifies an object within a platform.
type Key struct {
	Platform string `json:"platform"`
	ID       string `json:"id"`
}

// String returns the key for the database.
func (k Key) String() string { return k.Platform + "/" + k.ID }

// Settings are the account settings of the control API. The zero value is the default.
type Settings struct {
	// Quota is the number of posts in any 24 hours; nil means no limit.
	Quota *int `json:"quota,omitempty"`
	// Private hides the account's posts from others.
	Private bool `json:"private,omitempty"`
	// CommentDisabled means that the account's owner has disabled comments.
	CommentDisabled bool `json:"comment_disabled,omitempty"`
	// ListingLag is the time between the creation of a post and its appearance in listings; nil uses the platform's
	// default.
	ListingLag *time.Duration `json:"listing_lag,omitempty"`
	// TokenTTL is the lifetime of access tokens; 0 uses the platform's default.
	TokenTTL time.Duration `json:"token_ttl,omitempty"`
	// Processing is the platform's processing time for an upload before its publication; nil uses the platform's default.
	Processing *time.Duration `json:"processing,omitempty"`
	// ProcessingError, if not empty, is the error that the processing ends with.
	ProcessingError string `json:"processing_error,omitempty"`
	// Pages are the IDs of other accounts managed by the same user. A client authorized by the user can choose among all of them. Only
	// Facebook has such accounts.
	Pages []string `json:"pages,omitempty"`
}

// Work returns the processing time, given the platform's default.
func (s Settings) Work(otherwise time.Duration) time.Duration {
	if s.Processing != nil {
		return *s.Processing
	}
	return otherwise
}

// Lag returns the listing lag, given the platform's default.
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
	// Login is the login flow that connects the account; empty is the platform's default flow.
	Login string `json:"login,omitempty"`
}

// FacebookLogin is the Login of an Instagram account that is connected through its linked Facebook Page.
const FacebookLogin = "facebook"

// account is an Account with its posts.
type account struct {
	info Account
	// posts are in order of creation, including deleted ones.
	posts []*Post
	// deleted is the number of deleted posts in posts.
	deleted int
	// latest maps text to its newest post without media, for the duplicate check.
	latest map[string]*Post
}

// Account returns the account with the key.
func (s *Store) Account(key Key) (Account, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return infoOf(s.accounts[key])
}

// AccountNamed returns the account with the username, ignoring case.
func (s *Store) AccountNamed(platform, username string) (Account, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return infoOf(s.usernames[usernameKey(platform, username)])
}

func infoOf(a *account) (Account, bool) {
	if a == nil {
		return Account{}, false
	}
	return a.info, true
}

// PostCount returns the number of an account's posts, without deleted ones.
func (s *Store) PostCount(key Key) int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if a := s.accounts[key]; a != nil {
		return len(a.posts) - a.deleted
	}
	return 0
}

// Summary is an account with its post statistics.
type Summary struct {
	Account
	Posts int
	// LastPost is the creation time of the newest post; zero without posts.
	LastPost time.Time
}

// Summaries returns all accounts, sorted by platform and id.
func (s *Store) Summaries() []Summary {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []Summary
	for _, a := range s.accounts {
		sum := Summary{Account: a.info, Posts: len(a.posts) - a.deleted}
		for _, post := range slices.Backward(a.posts) {
			if !post.Deleted {
				sum.LastPost = post.CreatedAt()
				break
			}
		}
		out = append(out, sum)
	}
	slices.SortFunc(out, func(l, r Summary) int {
		return cmp.Or(cmp.Compare(l.Platform, r.Platform), cmp.Compare(l.ID, r.ID))
	})
	return out
}

// UsernameTakenError is returned if another account of the platform has the username.
type UsernameTakenError struct{ Username, Holder string }

// Error returns a message with the username and its owner.
func (e *UsernameTakenError) Error() string {
	return fmt.Sprintf("the username %q belongs to account %s", e.Username, e.Holder)
}

// CreateAccount adds an account with its first tokens unless the key exists. It returns the stored account and whether
// it is new. It generates token strings that are empty; without withRefresh, it issues only an access token.
func (s *Store) CreateAccount(fresh Account, first Tokens, withRefresh bool) (Account, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if existing, ok := infoOf(s.accounts[fresh.Key]); ok {
		return existing, false, nil
	}
	if holder, ok := infoOf(s.usernames[usernameKey(fresh.Platform, fresh.Username)]); ok {
		return Account{}, false, &UsernameTakenError{Username: fresh.Username, Holder: holder.ID}
	}
	fresh.CreatedAt = s.clock.Now().UTC().Truncate(time.Millisecond)
	g := s.newGrant(fresh.Key, &first, withRefresh)
	if err := s.save(entry{bucketAccounts, fresh.String(), fresh}, g.entry()); err != nil {
		return Account{}, false, err
	}
	s.addAccount(fresh)
	s.tokens.add(g)
	return fresh, true, nil
}

// ChangeAccount applies edit to an account's settings and display name. A new token lifetime can shorten the account's existing access
// tokens but never extends them.
func (s *Store) ChangeAccount(key Key, edit func(*Account)) (Account, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[key]
	if a == nil {
		return Account{}, ErrNoAccount
	}
	info := a.info
	edit(&info)
	entries := []entry{{bucketAccounts, key.String(), info}}
	var shortened []grant
	if ttl := info.Settings.TokenTTL; ttl > 0 && ttl != a.info.Settings.TokenTTL {
		until := s.clock.Now().Add(ttl)
		for _, g := range s.tokens.grants[key] {
			cut := g.endingBy(until)
			shortened = append(shortened, cut)
			entries = append(entries, cut.entry())
		}
	}
	if err := s.save(entries...); err != nil {
		return Account{}, err
	}
	a.info = info
	for _, g := range shortened {
		s.tokens.replace(g)
	}
	return info, nil
}

// addAccount adds a new account to the maps.
func (s *Store) addAccount(info Account) {
	a := &account{info: info, latest: map[string]*Post{}}
	s.accounts[info.Key], s.usernames[usernameKey(info.Platform, info.Username)] = a, a
}
