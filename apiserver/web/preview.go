// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

// ofDraft is the query parameter of checks of a stored draft, whose kind can be changed.
const ofDraft = "draft"

// check renders the preview of a post while it is being written: how it looks on each platform, how much of the maximum
// length its text uses, and its problems. It uses the same rules as publishing.
func (s *Site) check(w http.ResponseWriter, v *visit) error {
	if allowed, wait := s.checks.Allow(v.person.Name, http.Header{}); !allowed {
		s.tooOften(w, v, wait)
		return nil
	}
	written, err := s.readForm(w, v)
	if err != nil {
		return err
	}
	spec, err := written.spec(s.platforms(v))
	var missing []string
	note := h.Div(h.ID(timeNoteID), g.Attr("hx-swap-oob", "innerHTML"), v.timeNote(written))
	if timeMissing(err) {
		// A missing time is reported below the preview rather than replacing it.
		missing = []string{whatToChoose(err)}
		written.when = whenNow
		spec, err = written.spec(s.platforms(v))
	}
	if err != nil {
		s.write(w, http.StatusOK, notice(caution, paragraph(sentence(err.Error()))))
		return nil
	}
	if err := audienceChosen(&spec); err != nil {
		missing = append(missing, sentence(err.Error()))
	}
	found := s.Service.CheckPost(v.Context(), v.caller, &spec)
	offer := g.Node(nil)
	if v.PathValue("id") == "" || v.URL.Query().Has(ofDraft) {
		offer = splitOffer(s.threadOf(v, &spec))
	}
	v.pictures.previews, v.pictures.players, v.pictures.moment = found.Previews, true, momentOf(&spec)
	s.write(w, http.StatusOK, g.Group{
		note,
		h.Div(h.ID(splitID), g.Attr("hx-swap-oob", "innerHTML"), offer),
		s.fitting(v, written, &spec, &found),
		stops(written, &spec, missing, &found),
		warnings(&found),
		g.If(len(spec.Targets) == 0, h.P(h.Class("soft"), g.Text("Choose an account to see what the post will look like."))),
		g.Map(indexes(len(spec.Targets)), func(i int) g.Node { return s.mock(v, &spec, &found, i) }),
		g.Map(indexes(len(spec.Targets)), func(i int) g.Node { return lengthMeter(&spec, &found, i) }),
		v.checkAgain(),
	})
	return nil
}

// checkAgain requests another check while a shown file has not been verified: until then, its shape and its problems
// are unknown. Call it after all previews have been rendered.
func (v *visit) checkAgain() g.Node {
	for _, f := range v.pictures.found {
		if f.URL != "" && (f.Phase == "" || f.Phase == v1alpha1.MediaPending) {
			return h.Div(g.Attr("hx-post", v.URL.RequestURI()), g.Attr("hx-include", "#compose"), g.Attr("hx-target", "#check"), g.Attr("hx-sync", "#check:replace"),
				g.Attr("hx-trigger", "load delay:3s"))
		}
	}
	return nil
}

// checksPerMinute limits one person's checks. The page sends fewer even if a user never stops typing: one per 300 ms.
const checksPerMinute = 300

// tooOften responds to preview requests above the limit. htmx does not show error responses, so it gets status 200.
func (s *Site) tooOften(w http.ResponseWriter, v *visit, wait time.Duration) {
	status := http.StatusTooManyRequests
	if v.Header.Get("HX-Request") != "" {
		status = http.StatusOK
	}
	w.Header().Set("Retry-After", strconv.Itoa(int(wait.Seconds())+1))
	s.write(w, status, notice(caution, paragraph("The preview was requested too often and is paused for a moment. Your text is still here, and the preview returns when you continue writing.")))
}

// stops shows the problems that are about the whole post rather than one account or part.
func stops(written *writing, spec *v1alpha1.PostSpec, missing []string, found *bridge.Check) g.Node {
	problems := missing
	for _, p := range slices.Concat(found.Problems, found.BeforePublishing) {
		// Until an account is chosen, the missing choice is not reported.
		if p.Target == bridge.NoIndex && p.Card == bridge.NoIndex && len(spec.Targets) > 0 {
			problems = append(problems, sentence(p.Message))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	title := "Before it can be published:"
	if written.when == whenDraft {
		title = "It can be kept as a draft. Before it can be published:"
	}
	return notice(neutral, h.P(h.Strong(g.Text(title))), items(problems))
}

// warnings shows why a platform may refuse the post from some accounts.
func warnings(found *bridge.Check) g.Node {
	if len(found.Warnings) == 0 {
		return nil
	}
	texts := make([]string, 0, len(found.Warnings))
	for _, w := range found.Warnings {
		texts = append(texts, sentence(w))
	}
	return notice(caution, h.P(h.Strong(g.Text("It can be published, but a platform may refuse it from this account:"))), items(texts))
}

// lengthMeter shows how much of a platform's maximum length the text uses, next to the account.
func lengthMeter(spec *v1alpha1.PostSpec, found *bridge.Check, i int) g.Node {
	texts, class := []string{}, "count"
	add := func(name, content string, l bridge.Length) {
		if l.Unit == "" {
			return
		}
		text := name + strconv.Itoa(l.Count)
		if l.Limit > 0 {
			text += " of " + strconv.Itoa(l.Limit)
			if l.Count > l.Limit {
				class = "count over"
			} else if l.Count*10 > l.Limit*9 && class == "count" {
				class = "count near"
			}
		}
		texts = append(texts, text+" "+unitOf(l, found.Targets[i].Platform, content))
	}
	if spec.Tree == nil {
		add("", warningOf(&spec.Targets[i])+spec.Targets[i].Caption, found.Targets[i].Caption)
		if of := spec.Targets[i].YouTube; of != nil {
			add("title ", of.Title, found.Targets[i].Title)
		} else {
			add("title ", "", found.Targets[i].Title)
		}
	}
	for n, card := range found.Cards {
		for _, of := range card.Captions {
			if of.Platform == found.Targets[i].Platform && (of.Connection == "" || of.Connection == spec.Targets[i].ConnectionRef.Name) {
				add("part "+strconv.Itoa(n+1)+": ", warningOf(&spec.Targets[i])+spec.Tree.Cards[n].Caption, of.Length)
			}
		}
	}
	return g.El("output", h.ID("count-"+spec.Targets[i].ConnectionRef.Name), h.Class(class), g.Attr("hx-swap-oob", "true"),
		g.Text(strings.Join(texts, ", ")))
}

// warningOf returns a target's content warning, which counts toward the length of its text.
func warningOf(target *v1alpha1.PostTarget) string {
	if target.Mastodon == nil {
		return ""
	}
	return target.Mastodon.ContentWarning
}

// unitOf returns the display text of a length's unit. Every platform counts characters as people do until a text has
// emoji, links or letters that it counts differently.
func unitOf(l bridge.Length, p v1alpha1.Platform, text string) string {
	if l.Count == utf8.RuneCountInString(text) {
		return "characters"
	}
	return "characters as " + p.Title() + " counts them"
}

// mock shows the post in its platform's style.
func (s *Site) mock(v *visit, spec *v1alpha1.PostSpec, found *bridge.Check, i int) g.Node {
	t, name := found.Targets[i], spec.Targets[i].ConnectionRef.Name
	account := s.account(v, name)
	handle := ""
	if account != nil && account.Status.Username != "" {
		handle = "@" + account.Status.Username
	}
	problems := problemsOf(found, i)
	head := h.Div(h.Class("mock-head"), avatar(account, t.Platform),
		h.Span(h.Class("account"), h.Strong(h.Dir("auto"), g.Text(v.called(account, name))), h.Span(h.Class("soft"), g.Text(handle))), stateBadge(v, account))
	return h.Section(h.ID("mock-"+name), h.Class("mock on-"+string(t.Platform)), h.Aria("label", t.Platform.Title()+", "+v.called(account, name)),
		g.Iff(spec.Tree != nil, func() g.Node {
			return s.mockThread(v, spec.Tree, t.Platform, g.Group{head, mockWarning(&spec.Targets[i])})
		}),
		g.Iff(spec.Tree == nil, func() g.Node { return s.mockPost(v, spec, t.Platform, head, i) }),
		g.If(len(problems) > 0, h.Div(h.Class("mock-problems"), items(problems))),
	)
}

// mockThread is the mock of a thread, part by part.
func (s *Site) mockThread(v *visit, tree *v1alpha1.TreeContent, p v1alpha1.Platform, head g.Node) g.Node {
	limits, _ := s.Service.Capabilities(p)
	most := s.maxFilesOf(p, true)
	return h.Ol(h.Class("mock-thread"), g.Map(tree.Cards, func(c v1alpha1.TreeCard) g.Node {
		return h.Li(head, mockText(c.Caption, limits.Display), s.mockMedia(v, p, c.MediaRefs, most))
	}))
}

// problemsOf returns the problems of one target and of the parts of a thread, as text. It includes those that matter
// only once a draft is published.
func problemsOf(found *bridge.Check, i int) []string {
	var of []bridge.Problem
	for _, p := range slices.Concat(found.Problems, found.BeforePublishing) {
		if p.Target == i || p.Card != bridge.NoIndex {
			p.Target = bridge.NoIndex
			of = append(of, p)
		}
	}
	return inSentences(of, nil)
}

// mockPost is the mock of a post that is not a thread. It puts pictures before or after the text, as the platform does.
func (s *Site) mockPost(v *visit, spec *v1alpha1.PostSpec, p v1alpha1.Platform, head g.Node, i int) g.Node {
	title := ""
	if of := spec.Targets[i].YouTube; of != nil {
		title = of.Title
	}
	limits, _ := s.Service.Capabilities(p)
	files := s.mockMedia(v, p, filesOf(spec), s.maxFilesOf(p, false))
	words := g.Group{g.If(title != "", h.P(h.Class("mock-title"), h.Dir("auto"), g.Text(title))), mockWarning(&spec.Targets[i]), mockText(spec.Targets[i].Caption, limits.Display)}
	switch p {
	case v1alpha1.PlatformInstagram, v1alpha1.PlatformTikTok, v1alpha1.PlatformYouTube:
		return g.Group{head, files, words}
	case v1alpha1.PlatformX, v1alpha1.PlatformThreads, v1alpha1.PlatformFacebook, v1alpha1.PlatformBluesky, v1alpha1.PlatformMastodon:
		return g.Group{head, words, files}
	default:
		return g.Group{head, words, files}
	}
}
