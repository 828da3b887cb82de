// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"errors"
	"net/http"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/rest"
	"github.com/herald-social/herald/posting"
)

// Errors for a form that cannot be turned into a post.
var (
	errNoTime     = errors.New("choose a day and a time, or publish now")
	errNoAudience = errors.New("choose who can see the post on TikTok")
	errNoMoment   = errors.New("the cover picture's time must be a number of seconds, such as 2.5")
	errTwice      = errors.New("this post lists an account twice, so it cannot be edited here; edit it where it was created")
)

func (s *Site) compose(w http.ResponseWriter, v *visit) error {
	form := v.newPost(newWriting(v.zone))
	query := v.URL.Query()
	switch from := query.Get("from"); {
	case from != "" && query.Has("target"):
		if err := s.sendAgain(v, form, from, query.Get("target")); err != nil {
			return err
		}
	case from != "":
		like, err := s.Service.DuplicatePost(v.Context(), v.caller, from)
		if err != nil {
			return err
		}
		form.writing, form.omitted = writingOf(&like.Spec, v.zone), like.Omitted
		for i := range form.targets {
			form.targets[i].already = like.Already[form.targets[i].connection]
		}
	default:
		form.attach(s.Service.Previews(v.caller), v, query["file"])
		if accounts := s.usable(v); len(accounts) == 1 {
			form.targets = []targetWriting{{connection: accounts[0].Name}}
		}
		form.notice = s.justSent(v, query.Get("sent"))
	}
	if day, err := time.ParseInLocation(dateForm, query.Get("day"), v.zone); err == nil {
		form.on(day, v.now)
	}
	s.render(w, v, http.StatusOK, s.composer(v, form))
	return nil
}

func (s *Site) create(w http.ResponseWriter, v *visit) error {
	written, err := s.readForm(w, v)
	if err != nil {
		return err
	}
	form := v.newPost(written)
	form.again = true
	if s.changesParts(w, v, form) {
		return nil
	}
	if found, err := s.storeComposed(w, v, form); found || err != nil {
		return err
	}
	spec, err := written.spec(s.platforms(v))
	if err == nil {
		err = audienceChosen(&spec)
	}
	if err != nil {
		return s.again(w, v, form, err)
	}
	made, err := s.Service.CreatePost(v.Context(), v.caller, bridge.CreatePost{
		Spec: spec, IdempotencyKey: written.key, UnlessRepeated: v.PostForm.Get(fieldRepeat) == "",
		Delay: v.undoTime(),
	})
	if err != nil {
		return s.again(w, v, form, err)
	}
	v.redirect(w, "posts/"+made.ID, v.wordFor(written.when))
	return nil
}

func (v *visit) newPost(written *writing) *composer {
	return &composer{writing: written, title: "New post", action: v.path("posts/new"), check: v.path("compose/check"), save: v.path("compose/save")}
}

// wordFor returns the key of the confirmation to show after the form was submitted.
func (v *visit) wordFor(when string) string {
	switch {
	case when == whenLater:
		return "scheduled"
	case when == whenDraft:
		return "saved"
	case v.undoTime() > 0:
		return wordSoon
	default:
		return wordCreated
	}
}

func (s *Site) readForm(w http.ResponseWriter, v *visit) (*writing, error) {
	done, err := s.parseForm(w, v.Request, v.namespace)
	v.done = done
	if err != nil {
		return nil, err
	}
	written := readWriting(v.PostForm)
	if written.zone == "" {
		written.zone = v.zone.String()
	}
	return written, nil
}

// changesParts adds or removes a part of a thread, turns a text into a thread or back, or lists the team's files, if
// the form requests it.
func (s *Site) changesParts(w http.ResponseWriter, v *visit, form *composer) bool {
	switch v.PostForm.Get("do") {
	case "add":
		form.cards = append(form.cards[:min(len(form.cards), maxCards-1)], v1alpha1.TreeCard{})
	case "library":
		form.library = true
	case "drop":
		form.cards = form.cards[:max(len(form.cards)-1, 2)]
	case "split":
		if err := s.split(v, form); err != nil {
			form.problems = []string{sentence(err.Error())}
		}
	case "unsplit":
		form.unsplit()
	default:
		return false
	}
	s.render(w, v, http.StatusOK, s.composer(v, form))
	return true
}

// again shows the submitted form with its errors or a repeat's confirmation, and returns all other errors.
func (s *Site) again(w http.ResponseWriter, v *visit, form *composer, err error) error {
	var (
		known    *bridge.Error
		repeated *bridge.RepeatedError
	)
	switch {
	case errors.As(err, &repeated):
		s.confirmRepeat(w, v, repeated, form.action)
	case errors.As(err, &known) && known.Stale:
		var failed error
		if form.versions, failed = s.bothVersions(v, known.Post, form.writing); failed != nil {
			return failed
		}
		s.render(w, v, http.StatusConflict, s.composer(v, form))
	case errors.As(err, &known):
		form.problems = s.inWords(v, form.writing, known)
		s.render(w, v, rest.StatusOf(known.Code), s.composer(v, form))
	case timeMissing(err), errors.Is(err, errNoMoment), errors.Is(err, errNoAudience):
		form.problems = []string{sentence(err.Error())}
		s.render(w, v, http.StatusBadRequest, s.composer(v, form))
	default:
		return err
	}
	return nil
}

// timeMissing reports whether no time was entered, or one that a clock change skips or repeats.
func timeMissing(err error) bool {
	_, odd := errors.AsType[*oddHour](err)
	return odd || errors.Is(err, errNoTime)
}

// platforms returns a lookup of an account's platform, which is visible to everyone who may see posts to that account.
func (s *Site) platforms(v *visit) func(string) v1alpha1.Platform {
	return func(name string) v1alpha1.Platform {
		if account := s.Service.Connections.Get(v.namespace, name); account != nil {
			return account.Spec.Platform
		}
		return ""
	}
}

func (s *Site) edit(w http.ResponseWriter, v *visit) error {
	post, err := s.Service.ReadPost(v.Context(), v.caller, v.PathValue("id"))
	if err != nil {
		return err
	}
	if !posting.Of(post).Cancellable() {
		v.redirect(w, "posts/"+post.Name, wordFinal)
		return nil
	}
	if twice(&post.Spec) {
		return &bridge.Error{Code: bridge.CodeConflict, Message: errTwice.Error()}
	}
	written := writingOf(&post.Spec, v.zone)
	if at, _ := requestedAt(post); at != nil {
		written.propose(at.Time, v.now)
	}
	written.version = bridge.Version(post)
	s.render(w, v, http.StatusOK, s.composer(v, s.editor(v, post, written)))
	return nil
}

func (s *Site) editor(v *visit, post *v1alpha1.Post, written *writing) *composer {
	title := "Edit scheduled post"
	if post.Spec.Draft {
		title = "Edit draft"
	}
	at := v.path("posts/" + post.Name)
	c := &composer{writing: written, title: title, action: at + "/edit", check: at + "/check", exists: true, scheduled: !post.Spec.Draft}
	if post.Spec.Draft {
		// Changes to a scheduled post are stored only on request: the stored content is published.
		c.save, c.draft, c.check = at+"/save", post.Name, c.check+"?"+ofDraft
	}
	return c
}

// twice reports whether two of a post's targets have the same connection.
func twice(spec *v1alpha1.PostSpec) bool {
	seen := map[string]bool{}
	for i := range spec.Targets {
		if seen[spec.Targets[i].ConnectionRef.Name] {
			return true
		}
		seen[spec.Targets[i].ConnectionRef.Name] = true
	}
	return false
}

// change stores the edited post.
func (s *Site) change(w http.ResponseWriter, v *visit) error {
	written, err := s.readForm(w, v)
	if err != nil {
		return err
	}
	post, err := s.Service.ReadPost(v.Context(), v.caller, v.PathValue("id"))
	if err != nil {
		return err
	}
	if !post.Spec.Draft {
		written.category = post.Spec.Category
	}
	form := s.editor(v, post, written)
	form.again = true
	if s.changesParts(w, v, form) {
		return nil
	}
	return s.store(w, v, form, post)
}

// store stores the form's content in a post: as a draft, published now, or scheduled.
func (s *Site) store(w http.ResponseWriter, v *visit, form *composer, post *v1alpha1.Post) error {
	id, written := post.Name, form.writing
	spec, err := written.spec(s.platforms(v))
	if err == nil {
		err = audienceChosen(&spec)
	}
	if err != nil {
		return s.again(w, v, form, err)
	}
	spec.OnUnknownOutcome = post.Spec.OnUnknownOutcome
	switch {
	case written.when == whenDraft:
		_, err = s.Service.UpdateDraft(v.Context(), v.caller, id, written.version, spec)
	case post.Spec.Draft, written.when != whenLater:
		at, _ := written.time()
		delayed := at == nil && v.undoTime() > 0
		if delayed {
			at = new(v.now.Add(v.undoTime()))
		}
		publish := s.Service.PublishUnlessRepeated
		if v.PostForm.Get(fieldRepeat) != "" {
			publish = s.Service.Publish
		}
		_, err = publish(v.Context(), v.caller, id, written.version, spec, at)
		if err != nil && delayed && s.Service.GoesOut(v.Context(), v.caller, id, &spec, *at) {
			err = nil // the form was sent twice
		}
	default:
		_, err = s.Service.EditScheduled(v.Context(), v.caller, id, written.version, spec)
	}
	if err != nil {
		return s.again(w, v, form, err)
	}
	v.redirect(w, "posts/"+id, v.wordFor(written.when))
	return nil
}
