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

// ErrNoAccount says that the platform has no such account.
var ErrNoAccount = errors.New("no such account")

// Key names something within a platform.
type Key struct {
	Platform string `json:"platform"`
	ID       string `json:"id"`
}

// String is the key in the database.
func (k Key) String() string { return k.Platform + "/" + k.ID }

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
	// Pages are the ids of other accounts of the platform that the same person manages: they are offered beside this one
	// to a client that the person let in. Facebook has them alone.
	Pages []string `json:"pages,omitempty"`
}

// Work is how long the platform works on what it was handed, on a platform with that default.
func (s Settings) Work(otherwise time.Duration) time.Duration {
	if s.Processing != nil {
		return *s.Processing
	}
	return otherwise
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
	info Account
	// posts are in order of creation.
	posts []*Post
	// deleted is how many of them are deleted.
	deleted int
	// latest is the newest post without media per text, for the check for duplicates.
	latest map[string]*Post
}

// Account returns the account with that key.
func (s *Store) Account(key Key) (Account, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return infoOf(s.accounts[key])
}

// AccountNamed returns the account with that username, whatever its case.
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

// PostCount returns how many posts an account has that are not deleted.
func (s *Store) PostCount(key Key) int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if a := s.accounts[key]; a != nil {
		return len(a.posts) - a.deleted
	}
	return 0
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

// UsernameTakenError says that another account of the platform has that name.
type UsernameTakenError struct{ Username, Holder string }

// Error names the account that has the name.
func (e *UsernameTakenError) Error() string {
	return fmt.Sprintf("the username %q belongs to account %s", e.Username, e.Holder)
}

// CreateAccount adds an account with its first tokens unless there is one with its key. It returns the account that is
// there then, and whether it is new. Empty token strings are made up; withRefresh false gives an access token only.
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

// ChangeAccount lets edit change an account's settings and display name. A new token life also shortens the access tokens
// that the account has; it never lengthens them.
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

// addAccount puts a new account into the maps.
func (s *Store) addAccount(info Account) {
	a := &account{info: info, latest: map[string]*Post{}}
	s.accounts[info.Key], s.usernames[usernameKey(info.Platform, info.Username)] = a, a
}
