// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"time"
)

// Target is an account to which a post goes.
type Target struct {
	Platform, Handle string
	// Text is a caption of its own; empty is that of the post.
	Text string
}

// Draft is what a person enters into the composer.
type Draft struct {
	// Kind is Text, Image, Video or Tree.
	Kind    string
	Targets []Target
	Text    string
	Title   string
	// Files are paths of files of this machine. The first is dropped, the others are chosen.
	Files []string
	// Cards are what follows the first post of a thread.
	Cards []string
}

// Compose opens the composer and fills it in, without sending it.
func (s Site) Compose(draft Draft) error {
	if err := s.menu(linkNewPost); err != nil {
		return err
	}
	if err := s.Page.Get("group", groupKind).Get("radio", draft.Kind).Check(true); err != nil {
		return err
	}
	for _, target := range draft.Targets {
		name := account(target.Platform, target.Handle)
		if err := s.Page.Get("group", groupAccounts).Get("checkbox", name).Check(true); err != nil {
			return err
		}
		if target.Text == "" {
			continue
		}
		if err := s.Page.Get("textbox", fieldText+" for "+name).Fill(target.Text); err != nil {
			return err
		}
	}
	if draft.Text != "" {
		if err := s.Page.Get("textbox", fieldText).Fill(draft.Text); err != nil {
			return err
		}
	}
	if draft.Title != "" {
		if err := s.Page.Get("textbox", fieldTitle).Fill(draft.Title); err != nil {
			return err
		}
	}
	for i, card := range draft.Cards {
		if err := s.Page.Get("button", addCard).Click(); err != nil {
			return err
		}
		if err := s.Page.Get("textbox", fmt.Sprintf("%s of post %d", fieldText, i+2)).Fill(card); err != nil {
			return err
		}
	}
	return s.upload(draft.Files)
}

// upload brings the files to the store and waits until they are there.
func (s Site) upload(files []string) error {
	if len(files) == 0 {
		return nil
	}
	area := s.Page.Get("group", groupFiles)
	if err := area.Drop(files[0]); err != nil {
		return err
	}
	if len(files) > 1 {
		if err := area.Get("button", addFiles).Choose(files[1:]...); err != nil {
			return err
		}
	}
	for range files {
		if err := area.Get("progressbar", "").WaitGone(); err != nil {
			return err
		}
	}
	return s.Page.Settle()
}

// Publish sends the composer's post for now.
func (s Site) Publish() error { return s.Page.Get("button", publish).Follow() }

// SaveDraft keeps the composer's post.
func (s Site) SaveDraft() error { return s.Page.Get("button", saveDraft).Follow() }

// Schedule sends the composer's post for a time, or the draft on whose page the person is.
func (s Site) Schedule(at time.Time) error {
	if err := s.enterTime(at); err != nil {
		return err
	}
	return s.Page.Get("button", schedule).Follow()
}

func (s Site) enterTime(at time.Time) error {
	choice := s.Page.Get("radio", later)
	if count, err := choice.Count(); err != nil {
		return err
	} else if count > 0 {
		if err := choice.Check(true); err != nil {
			return err
		}
	}
	return s.Page.GetPart("DateTime", fieldTime).Fill(at.In(s.Zone).Format("2006-01-02T15:04"))
}

// PublishNow promotes the draft on whose page the person is.
func (s Site) PublishNow() error { return s.Page.Get("button", publishNow).Follow() }

// Edit opens the edit screen of the draft on whose page the person is.
func (s Site) Edit() error { return s.Page.Get("link", edit).Follow() }

// Duplicate opens the composer with what the post on whose page the person is says.
func (s Site) Duplicate() error { return s.Page.Get("link", duplicate).Follow() }

// Cancel cancels the post on whose page the person is, and answers the question before it.
func (s Site) Cancel() error {
	return steps(
		s.Page.Get("button", cancelPost).Click,
		s.Page.Get("dialog", "").Get("button", cancelPost).Follow,
	)
}
