// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/rest"
)

// savesPerMinute limits one person's autosaves. A page sends at most one every two seconds.
const savesPerMinute = 120

// Errors for a form that is not a valid draft yet.
var (
	errNothing = errors.New("there is nothing to save yet")
	errNowhere = errors.New("choose an account; a draft is saved for an account")
)

// draftAttributes marks the form for drafts.js, which keeps its content in the browser and, if the form has an address for it,
// saves it as a draft.
func (v *visit) draftAttributes(c *composer) g.Node {
	return g.Group{
		h.Data("keep", v.namespace+" "+v.person.Name), g.If(c.again, h.Data("again", "")), g.If(c.save != "" && v.may.update, h.Data("save", c.save)),
		g.If(c.draft != "", h.Data("draft", c.draft)),
	}
}

// saveNew stores an unfinished new post as a draft: one draft per form.
func (s *Site) saveNew(w http.ResponseWriter, v *visit) error {
	return s.autosave(w, v, func(written *writing, spec v1alpha1.PostSpec) (*v1alpha1.Post, error) {
		if written.version == "" && isEmpty(&spec) {
			return nil, errNothing
		}
		return s.Service.Autosave(v.Context(), v.caller, bridge.Autosave{Key: written.key, Version: written.version, Spec: spec})
	})
}

// saveEdit stores unfinished changes to a draft.
func (s *Site) saveEdit(w http.ResponseWriter, v *visit) error {
	return s.autosave(w, v, func(written *writing, spec v1alpha1.PostSpec) (*v1alpha1.Post, error) {
		return s.Service.AutosaveDraft(v.Context(), v.caller, v.PathValue("id"), written.version, spec)
	})
}

func (s *Site) autosave(w http.ResponseWriter, v *visit, save func(*writing, v1alpha1.PostSpec) (*v1alpha1.Post, error)) error {
	if allowed, wait := s.saves.Allow(v.person.Name, http.Header{}); !allowed {
		w.Header().Set("Retry-After", strconv.Itoa(int(wait.Seconds())+1))
		answerError(w, http.StatusTooManyRequests, "too many changes at once; saving continues in a moment")
		return nil
	}
	written, err := s.readForm(w, v)
	if err != nil {
		return err
	}
	written.when = whenDraft
	spec, err := written.spec(s.platforms(v))
	var post *v1alpha1.Post
	switch {
	case err != nil:
	case len(spec.Targets) == 0:
		err = errNowhere
	default:
		withoutUnfinishedLanguages(&spec)
		post, err = save(written, spec)
	}
	if err != nil {
		return s.notSaved(w, v, written, err)
	}
	answer(w, http.StatusOK, map[string]string{"id": post.Name, "key": written.key, "version": bridge.Version(post), "saved_at": v.now.UTC().Format(time.RFC3339)})
	return nil
}

// notSaved responds with the reason, and after a conflict with both versions of the post. A form that is not a valid
// draft yet does not make the request fail: this is normal while a user is writing.
func (s *Site) notSaved(w http.ResponseWriter, v *visit, written *writing, err error) error {
	known, ok := errors.AsType[*bridge.Error](err)
	switch {
	case errors.Is(err, errNoMoment), errors.Is(err, errNothing), errors.Is(err, errNowhere):
		answer(w, http.StatusOK, map[string]string{"reason": err.Error()})
		return nil
	case !ok:
		return err
	case rest.StatusOf(known.Code) == http.StatusBadRequest:
		answer(w, http.StatusOK, map[string]string{"reason": strings.Join(s.inWords(v, written, known), " ")})
		return nil
	case !known.Stale:
		answerError(w, rest.StatusOf(known.Code), strings.Join(s.inWords(v, written, known), " "))
		return nil
	}
	found, err := s.bothVersions(v, known.Post, written)
	if err != nil {
		return err
	}
	var out strings.Builder
	_ = found.Render(&out) // a Builder returns no errors
	answer(w, http.StatusConflict, map[string]any{"error": map[string]string{"message": s.messageOf(v, known)}, "versions": out.String()})
	return nil
}

// isEmpty reports whether a post has neither text nor files.
func isEmpty(spec *v1alpha1.PostSpec) bool {
	for i := range spec.Targets {
		if t := &spec.Targets[i]; strings.TrimSpace(t.Caption) != "" || t.YouTube != nil && t.YouTube.Title != "" {
			return false
		}
	}
	if spec.Tree != nil {
		for i := range spec.Tree.Cards {
			if card := &spec.Tree.Cards[i]; strings.TrimSpace(card.Caption) != "" || len(card.MediaRefs) > 0 {
				return false
			}
		}
	}
	return (spec.Image == nil || len(spec.Image.MediaRefs) == 0) && (spec.Video == nil || spec.Video.MediaRef.Name == "")
}

// storeComposed publishes, schedules or saves the draft that a form was autosaved as. found is false if there is none.
func (s *Site) storeComposed(w http.ResponseWriter, v *visit, form *composer) (found bool, err error) {
	post, err := s.Service.ComposedPost(v.Context(), v.caller, form.key)
	if post == nil {
		return false, err
	}
	if form.version == "" {
		form.version = bridge.InitialVersion(post)
	}
	form.draft = post.Name
	return true, s.store(w, v, form, post)
}
