// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"errors"
	"fmt"
	"time"

	"github.com/herald-social/herald/test/browser/chrome"
)

// Site is a person at the pages of a Herald.
type Site struct {
	Page *chrome.Page
	// URL is its address, without a slash at the end.
	URL string
	// Zone is that of the person; it must be that of the page.
	Zone *time.Location
}

// steps does one after the other until one fails.
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

// SignInWithProvider signs in by OpenID Connect, as a person of the test's provider.
func (s Site) SignInWithProvider(who string) error {
	return steps(
		func() error { return s.Page.Open(s.URL + "/signin") },
		s.Page.GetPart("link", signIn).Follow,
		s.Page.Get("link", who).Follow,
		s.Page.Get("navigation", mainMenu).Wait,
	)
}

// SignOut signs out.
func (s Site) SignOut() error { return s.Page.Get("button", signOut).Follow() }

// menu goes to a page by the menu.
func (s Site) menu(link string) error {
	return s.Page.Get("navigation", mainMenu).Get("link", link).Follow()
}

// Posts, Calendar, Connections, Keys and Team go to the page of that name by the menu.
func (s Site) Posts() error { return s.menu(linkPosts) }

// Calendar shows the month.
func (s Site) Calendar() error { return s.menu(linkCalendar) }

// Connections shows the connected accounts.
func (s Site) Connections() error { return s.menu(linkConnections) }

// Keys shows the API keys.
func (s Site) Keys() error { return s.menu(linkKeys) }

// Team shows the team, its plan and its usage.
func (s Site) Team() error { return s.menu(linkTeam) }

// Connect connects the platform's account of that handle, from the page Connections, through the platform's page of
// consent. Where the platform lets a person choose what is connected, the first is taken.
func (s Site) Connect(platform, handle string) error {
	err := steps(
		s.Page.Get("button", connect+" "+Titles[platform]).Follow,
		func() error { return s.Page.Follow(func() error { return Allow(s.Page, handle) }) },
	)
	if err != nil {
		return fmt.Errorf("connect %s: %w", account(platform, handle), err)
	}
	choices, err := s.Page.Get("radio", "").Count()
	if err != nil {
		return err
	}
	if choices > 0 {
		err = s.Page.Get("button", connect).Follow()
	}
	return errors.Join(err, s.connection(platform, handle).Wait())
}

func (s Site) connection(platform, handle string) *chrome.Element {
	return s.Page.Get("listitem", account(platform, handle))
}

// Disconnect removes a connection, and answers the question before it.
func (s Site) Disconnect(platform, handle string) error {
	return steps(
		s.connection(platform, handle).GetPart("button", disconnect).Click,
		s.Page.Get("dialog", "").GetPart("button", disconnect).Follow,
		s.connection(platform, handle).WaitGone,
	)
}

// MakeKey makes an API key, from the page API keys, and returns its token.
func (s Site) MakeKey(name string) (token string, err error) {
	err = steps(
		func() error { return s.Page.Get("textbox", keyName).Fill(name) },
		s.Page.Get("button", makeKey).Follow,
		s.Page.Get("button", copyText).Wait,
	)
	if err != nil {
		return "", err
	}
	return s.Page.Get("textbox", newKey).Value()
}

// RevokeKey revokes an API key, and answers the question before it.
func (s Site) RevokeKey(name string) error {
	return steps(
		s.Page.Get("button", revoke+" "+name).Click,
		s.Page.Get("dialog", "").GetPart("button", revoke).Follow,
	)
}
