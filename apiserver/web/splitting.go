// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/split"
)

// splitID is the id of the place below the text where a split is offered.
const splitID = "split"

// thread is a post's text as a thread.
type thread struct {
	// platform is the platform whose limit the text exceeds, or for which its author divided it; length and limit are its counts.
	platform      v1alpha1.Platform
	length, limit int
	// parts are the parts of the text; err is set instead if it cannot be divided.
	parts []string
	err   error
	// others are chosen platforms that do not accept threads.
	others []string
}

// threadOf divides a post's text into a thread if it is too long for a platform with threads, or has lines of "---";
// otherwise it returns nil. Each part fits on every chosen account whose platform accepts threads.
func (s *Site) threadOf(v *visit, spec *v1alpha1.PostSpec) *thread {
	if spec.Tree != nil {
		return nil
	}
	var made *thread
	var text string
	var all []platforms.Capabilities
	var others []string
	for i := range spec.Targets {
		target := &spec.Targets[i]
		account := s.Service.Connections.Get(v.namespace, target.ConnectionRef.Name)
		if account == nil {
			continue
		}
		p := account.Spec.Platform
		limits, ok := s.Service.Capabilities(p)
		limits = limits.Of(&account.Status).For(target)
		switch {
		case !ok:
			continue
		case !limits.Allows(v1alpha1.CategoryTree):
			others = append(others, p.Title())
			continue
		}
		all = append(all, limits)
		caption := target.Caption
		if n := limits.CaptionLength(caption); made == nil && (n > limits.MaxCaption || len(split.Sections(caption)) > 1) {
			made, text = &thread{platform: p, length: n, limit: limits.MaxCaption}, caption
		}
	}
	if made == nil {
		return nil
	}
	slices.Sort(others)
	made.others = slices.Compact(others)
	if len(text) > posting.MaxPost {
		made.err = split.ErrTooMany // no post can contain it, and it would be divided again at each pause in typing
		return made
	}
	made.parts, made.err = divide(text, all)
	return made
}

// divide returns the parts of a text. Sections that are too long are divided further.
func divide(text string, all []platforms.Capabilities) ([]string, error) {
	var parts []string
	for _, section := range split.Sections(text) {
		more, err := split.Text(section, partRules(section, all))
		if err != nil {
			return nil, err
		}
		if parts = append(parts, more...); len(parts) > maxCards {
			return nil, split.ErrTooMany
		}
	}
	return parts, nil
}

// partRules are the rules for parts of text that go to all the given platforms.
func partRules(text string, all []platforms.Capabilities) split.Rules {
	var links []platforms.Link
	for _, limits := range all {
		links = append(links, limits.Display.Links(text)...)
	}
	return split.Rules{Links: united(links), MaxParts: maxCards, Fits: func(part string) bool {
		return !slices.ContainsFunc(all, func(limits platforms.Capabilities) bool { return limits.CaptionLength(part) > limits.MaxCaption })
	}}
}

// united sorts links and merges those that overlap, because platforms detect different ones.
func united(links []platforms.Link) []platforms.Link {
	slices.SortFunc(links, func(a, b platforms.Link) int { return cmp.Compare(a.Start, b.Start) })
	var out []platforms.Link
	for _, l := range links {
		if last := len(out) - 1; last >= 0 && l.Start < out[last].End {
			out[last].End = max(out[last].End, l.End)
			continue
		}
		out = append(out, l)
	}
	return out
}

// splitOffer is the content of the place below the text: the offer to divide a text that is too long, or nothing.
func splitOffer(of *thread) g.Node {
	switch {
	case of == nil:
		return nil
	case of.err != nil:
		return notice(caution, paragraph(sentence(of.err.Error()+" on "+of.platform.Title())))
	}
	why := "Lines of --- divide the text into a thread."
	if of.length > of.limit {
		why = "The text is too long for " + of.platform.Title() + " (" + strconv.Itoa(of.length) + " of " + strconv.Itoa(of.limit) + "), but fits in a thread."
	}
	return notice(neutral, paragraph(why),
		g.If(len(of.others) > 0, paragraph(strings.Join(of.others, ", ")+": no threads. Clear the choice there, or post there separately.")),
		h.P(doButton("split", "Split into a thread of "+plural(len(of.parts), "part"))))
}

// doButton changes the form without storing it.
func doButton(what, label string) g.Node {
	return h.Button(h.Type("submit"), h.Class("button small"), h.Name("do"), h.Value(what), h.FormNoValidate(), g.Text(label))
}

// whole is a form's kind and parts before its text was divided. The text itself and the files remain in the form.
type whole struct {
	Kind  v1alpha1.Category `json:"kind"`
	Cards []wholeCard       `json:"cards,omitempty"`
}

type wholeCard struct {
	Caption string                    `json:"caption"`
	Media   []v1alpha1.MediaReference `json:"media,omitempty"`
}

var (
	errNotSplit = errors.New("the text fits, or no chosen account accepts threads, so there is nothing to split")
	errFixed    = errors.New("the kind of a scheduled post cannot be changed; write a new post")
)

// split turns the form's text into a thread, with the files in its first part. The form contains the replaced content.
func (s *Site) split(v *visit, c *composer) error {
	if c.scheduled {
		return errFixed
	}
	w := c.writing
	now := *w
	now.when = whenNow // a missing time does not matter
	spec, err := now.spec(s.platforms(v))
	if err != nil {
		return err
	}
	made := s.threadOf(v, &spec)
	if made == nil {
		return errNotSplit
	}
	if made.err != nil {
		return made.err
	}
	before := whole{Kind: w.category}
	if slices.ContainsFunc(w.cards, func(c v1alpha1.TreeCard) bool { return c.Caption != "" || len(c.MediaRefs) > 0 }) {
		for _, c := range w.cards {
			before.Cards = append(before.Cards, wholeCard{c.Caption, c.MediaRefs})
		}
	}
	stored, err := json.Marshal(before)
	if err != nil {
		return err
	}
	w.before, w.cards = string(stored), make([]v1alpha1.TreeCard, 0, len(made.parts))
	for _, part := range made.parts {
		w.cards = append(w.cards, v1alpha1.TreeCard{Caption: part})
	}
	w.cards[0].MediaRefs = filesOf(&spec)
	w.category = v1alpha1.CategoryTree
	return nil
}

// filesOf returns the files of a form that is not a thread. The form may not contain a video yet.
func filesOf(spec *v1alpha1.PostSpec) []v1alpha1.MediaReference {
	if spec.Video != nil && spec.Video.MediaRef.Name == "" {
		return nil
	}
	return posting.OwnMedia(spec)
}

// unsplit restores what split has replaced.
func (w *writing) unsplit() {
	var before whole
	if json.Unmarshal([]byte(w.before), &before) != nil || len(before.Cards) > maxCards {
		return
	}
	if _, known := categories[before.Kind]; !known {
		return
	}
	w.before, w.category, w.cards = "", before.Kind, make([]v1alpha1.TreeCard, max(len(before.Cards), 2))
	for i, c := range before.Cards {
		w.cards[i] = v1alpha1.TreeCard{Caption: c.Caption, MediaRefs: c.Media[:min(len(c.Media), maxMedia)]}
	}
}

// splitNotice is shown above a thread that was split from a text.
func splitNotice(w *writing) g.Node {
	if w.before == "" || w.category != v1alpha1.CategoryTree {
		return nil
	}
	return h.Div(h.Class("note good"), h.Role("status"), drawing("check"), h.Div(
		paragraph("The text is now a thread of "+plural(len(w.cards), "part")+"."), h.P(doButton("unsplit", "Undo"))))
}
