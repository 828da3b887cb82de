// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"strconv"
	"time"
)

// Target is an account to publish to.
type Target struct {
	// Account is part of its label in the composer, such as "X, @herald_demo".
	Account string
	// Platform is required for a separate text. An empty Text means the post's text.
	Platform, Text string
}

// Draft is the content to enter in the composer.
type Draft struct {
	// Kind is Text, Image, Video or Tree.
	Kind    string
	Targets []Target
	// Text is the common caption; Parts are a thread's parts.
	Text  string
	Parts []string
	// Title is the title on YouTube.
	Title string
	// Files are local paths. The first file is dropped, the others are chosen.
	Files []string
}

// Compose opens the composer and fills it in without submitting it.
func (s Site) Compose(draft Draft) error {
	// Empty pages show the link twice.
	if err := s.Page.Get("link", linkNewPost).Nth(0).Follow(); err != nil {
		return err
	}
	if err := s.Page.Get("group", groupKind).Get("radio", draft.Kind).Check(true); err != nil {
		return err
	}
	for _, target := range draft.Targets {
		if err := s.choose(target); err != nil {
			return err
		}
	}
	for name, value := range map[string]string{fieldText: draft.Text, fieldTitle: draft.Title} {
		if value == "" {
			continue
		}
		if err := s.Page.Get("textbox", name).Fill(value); err != nil {
			return err
		}
	}
	for i, part := range draft.Parts {
		field := s.Page.Get("textbox", fieldPart+" "+strconv.Itoa(i+1))
		if count, err := field.Count(); err != nil {
			return err
		} else if count == 0 {
			if err := s.Page.Get("button", addPart).Click(); err != nil {
				return err
			}
		}
		if err := field.Fill(part); err != nil {
			return err
		}
	}
	if err := s.upload(draft); err != nil {
		return err
	}
	// Until the previews are complete, the form may grow and its buttons may move.
	return s.Page.WaitFor("the previews are there", `!document.querySelector(".htmx-request") &&
		document.querySelectorAll("#check .mock").length === document.querySelectorAll(".picked:checked").length`)
}

func (s Site) choose(target Target) error {
	accounts := s.Page.Get("group", groupAccounts)
	if err := accounts.GetByPartialName("checkbox", target.Account).Check(true); err != nil || target.Text == "" {
		return err
	}
	title := Titles[target.Platform]
	if err := accounts.Get("DisclosureTriangle", otherText+" "+title).Click(); err != nil {
		return err
	}
	return accounts.GetByPartialName("textbox", "on "+title).Fill(target.Text)
}

// upload adds the files and waits until they are stored.
func (s Site) upload(draft Draft) error {
	if len(draft.Files) == 0 {
		return nil
	}
	area := s.Page.Get("group", groupImages)
	if draft.Kind == Video {
		area = s.Page.Get("group", groupVideo)
	}
	if err := area.Drop(draft.Files[0]); err != nil {
		return err
	}
	if len(draft.Files) > 1 {
		if err := area.GetByPartialName("button", "Choose files").Choose(draft.Files[1:]...); err != nil {
			return err
		}
	}
	if err := area.GetByPartialName("button", "Remove").Nth(len(draft.Files) - 1).Wait(); err != nil {
		return err
	}
	return s.Page.WaitFor("the files are in the store", `[...document.querySelectorAll("[data-files] > *")].every((item) => item.querySelector("input[type=hidden]"))`)
}

// WaitSaved waits until the server has saved the composer's content as a draft.
func (s Site) WaitSaved() error {
	return s.Page.WaitFor("the draft is saved", `document.getElementById("saved").textContent.startsWith("Saved ") && !document.querySelector("form[data-dirty]")`)
}

// Publish submits the composer to publish immediately. On a draft's edit screen it turns the draft into a post.
func (s Site) Publish() error { return s.send(Now, publish) }

// SaveDraft submits the composer as a draft.
func (s Site) SaveDraft() error { return s.send(AsDraft, saveDraft) }

// Schedule submits the composer for the given time. On a draft's edit screen it turns the draft into a post.
func (s Site) Schedule(at time.Time) error {
	if err := s.when(Later); err != nil {
		return err
	}
	if err := s.Page.GetByPartialName("DateTime", fieldTime).Fill(at.In(s.Zone).Format("2006-01-02T15:04")); err != nil {
		return err
	}
	return s.Page.Get("button", schedule).Follow()
}

func (s Site) when(choice string) error {
	return s.Page.Get("group", groupWhen).Get("radio", choice).Check(true)
}

func (s Site) send(when, button string) error {
	if err := s.when(when); err != nil {
		return err
	}
	return s.Page.Get("button", button).Follow()
}

// Edit opens the edit screen from the page of a draft or scheduled post.
func (s Site) Edit() error { return s.Page.Get("link", edit).Follow() }

// Duplicate opens the composer with a copy of the post, from the post's page.
func (s Site) Duplicate() error { return s.Page.Get("link", duplicate).Follow() }

// Cancel cancels the post on its page, and confirms.
func (s Site) Cancel() error {
	return steps(
		s.Page.Get("button", cancelPost).Click,
		s.Page.Get("dialog", "").Get("button", cancelPost).Follow,
	)
}
