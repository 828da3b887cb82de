// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"time"

	"github.com/herald-social/herald/test/browser/chrome"
)

// Site drives a Herald site's pages as a user.
type Site struct {
	Page *chrome.Page
	// URL is the site's address without a trailing slash.
	URL string
	// Zone is the user's time zone, which must be the same as the time zone of the page.
	Zone *time.Location
}

// steps runs the steps in order until one fails.
func steps(all ...func() error) error {
	for _, step := range all {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// SignIn signs in with a one-time link.
func (s Site) SignIn(link string) error {
	return steps(
		func() error { return s.Page.Open(link) },
		s.Page.Get("button", signIn).Follow,
		s.Page.Get("navigation", mainMenu).Wait,
	)
}

// SignInWithProvider signs in through OpenID Connect, as a user of the test's provider.
func (s Site) SignInWithProvider(who string) error {
	return steps(
		func() error { return s.Page.Open(s.URL + "/signin") },
		s.Page.GetByPartialName("link", signIn).Follow,
		s.Page.Get("link", who).Follow,
		s.Page.Get("navigation", mainMenu).Wait,
	)
}

// SignOut signs out.
func (s Site) SignOut() error { return s.Page.Get("button", signOut).Follow() }

// menu opens a page from the menu.
func (s Site) menu(link string) error {
	return s.Page.Get("navigation", mainMenu).GetByPartialName("link", link).Follow()
}

// Overview opens the team's overview.
func (s Site) Overview() error { return s.menu(linkOverview) }

// Posts opens the list of posts.
func (s Site) Posts() error { return s.menu(linkPosts) }

// Calendar opens the calendar.
func (s Site) Calendar() error { return s.menu(linkCalendar) }

// Accounts opens the connected accounts.
func (s Site) Accounts() error { return s.menu(linkAccounts) }

// Keys opens the API keys.
func (s Site) Keys() error { return s.menu(linkKeys) }

// Team opens the page of the team, its plan and its usage.
func (s Site) Team() error { return s.menu(linkTeam) }

// ToConsent goes from the Accounts page to the platform's consent page.
func (s Site) ToConsent(platform string) error {
	return steps(
		s.Page.GetByPartialName("button", connect+" "+Titles[platform]).Click,
		// An intermediate page redirects automatically.
		func() error { return s.Page.WaitURL("redirect_uri=") },
		s.Page.Settle,
	)
}

// Consent goes from the Accounts page to the platform's consent page, and grants Herald access to the account with the
// handle.
func (s Site) Consent(platform, handle string) error {
	err := steps(
		func() error { return s.ToConsent(platform) },
		func() error { return s.Page.Follow(func() error { return Allow(s.Page, handle) }) },
	)
	if err != nil {
		return fmt.Errorf("connect %s on %s: %w", handle, Titles[platform], err)
	}
	return nil
}

// Connect connects the platform's account with the handle, from the Accounts page through the platform's consent page.
// On platforms that offer a choice of accounts it keeps the default.
func (s Site) Connect(platform, handle string) error {
	if err := s.Consent(platform, handle); err != nil {
		return err
	}
	chosen := s.Page.Get("button", connectThis)
	count, err := chosen.Count()
	if err != nil {
		return err
	}
	if count > 0 {
		if err := chosen.Follow(); err != nil {
			return err
		}
	}
	return s.Page.Get("navigation", mainMenu).Wait()
}

// card locates an object's list item, such as an account's or a key's, by text in it.
func (s Site) card(text string) *chrome.Element { return s.Page.GetSaying("listitem", text) }

// Disconnect removes the connection on the card that contains the text (its ID, for example), and confirms.
func (s Site) Disconnect(text string) error {
	return steps(
		s.card(text).Get("button", disconnect).Click,
		s.Page.Get("dialog", "").Get("button", disconnect).Follow,
	)
}

// MakeKey creates an API key on the API keys page, and returns its token.
func (s Site) MakeKey(description string) (token string, err error) {
	err = steps(
		func() error { return s.Page.Get("textbox", keyName).Fill(description) },
		s.Page.Get("button", makeKey).Follow,
	)
	if err != nil {
		return "", err
	}
	return chrome.Eval[string](s.Page, `document.getElementById("token").textContent`)
}

// RevokeKey revokes an API key, and confirms.
func (s Site) RevokeKey(description string) error {
	return steps(
		s.card(description).Get("button", revoke).Click,
		s.Page.Get("dialog", "").Get("button", revoke).Follow,
	)
}
