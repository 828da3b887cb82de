// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

// check answers what a post would look like on each platform, how much of its text each takes, and what is in the way: while it is
// being written. The rules are those that decide when it is sent.
func (s *Site) check(w http.ResponseWriter, v *visit) error {
	written, err := s.readForm(w, v)
	if err != nil {
		return err
	}
	spec, err := written.spec(s.platforms(v))
	var missing []string
	if errors.Is(err, errNoTime) {
		// A time that was not chosen yet is said below the preview, not instead of it.
		written.when = whenNow
		spec, err = written.spec(s.platforms(v))
		missing = []string{sentence(errNoTime.Error())}
	}
	if err != nil {
		s.write(w, http.StatusOK, note("warning", paragraph(sentence(err.Error()))))
		return nil
	}
	found, err := s.Service.Check(v.Context(), v.caller, spec)
	if err != nil {
		return err
	}
	s.write(w, http.StatusOK, g.Group{
		s.stops(written, missing, found),
		g.If(len(spec.Targets) == 0, h.P(h.Class("soft"), g.Text("Choose an account to see what the post will look like."))),
		g.Map(indexes(len(spec.Targets)), func(i int) g.Node { return s.mock(v, written, &spec, found.Targets[i]) }),
		g.Map(found.Targets, func(t bridge.TargetCheck) g.Node { return count(t) }),
	})
	return nil
}

// stops are what keeps a post from being published, in words.
func (s *Site) stops(written *writing, missing []string, found bridge.Check) g.Node {
	problems := append(missing, found.Problems...)
	if len(problems) == 0 {
		return nil
	}
	kind, title := "info", "Before it can be published:"
	if written.when == whenDraft {
		title = "It can be kept as a draft. Before it can be published:"
	}
	return note(kind, h.P(h.Strong(g.Text(title))), h.Ul(g.Map(problems, func(p string) g.Node { return h.Li(g.Text(sentence(p))) })))
}

// count says how much of a platform's room a text takes. It replaces what the form shows beside the account.
func count(t bridge.TargetCheck) g.Node {
	text, class := strconv.Itoa(t.Count), "count"
	if t.Limit > 0 {
		text += " of " + strconv.Itoa(t.Limit)
		if t.Count > t.Limit {
			class += " over"
		}
	}
	return g.El("output", h.ID("count-"+t.Connection), h.Class(class), g.Attr("hx-swap-oob", "true"), g.Text(strings.TrimSpace(text+" "+t.Unit)))
}

// mock looks like the post will on its platform.
func (s *Site) mock(v *visit, written *writing, spec *v1alpha1.PostSpec, t bridge.TargetCheck) g.Node {
	account := s.account(v, t.Connection)
	handle := ""
	if account != nil && account.Status.Username != "" {
		handle = "@" + account.Status.Username
	}
	i := indexOf(spec, t.Connection)
	caption := spec.Targets[i].Caption
	head := h.Div(h.Class("mock-head"), avatar(account, t.Platform), h.Span(h.Class("account"), h.Strong(g.Text(nameOfAccount(account, t.Connection))), h.Span(h.Class("soft"), g.Text(handle))))
	return h.Section(h.Class("mock on-"+string(t.Platform)), h.Aria("label", titleOf(t.Platform)+", "+nameOfAccount(account, t.Connection)),
		g.If(spec.Tree != nil, g.Iff(spec.Tree != nil, func() g.Node {
			return h.Ol(h.Class("mock-thread"), g.Map(spec.Tree.Cards, func(c v1alpha1.TreeCard) g.Node {
				return h.Li(head, mockText(c.Caption), s.thumbs(v, c.MediaRefs))
			}))
		})),
		g.Iff(spec.Tree == nil, func() g.Node {
			return s.mockPost(v, written, spec, t.Platform, head, caption, i)
		}),
		g.If(len(t.Problems) > 0, h.Ul(h.Class("mock-problems"), g.Map(t.Problems, func(p string) g.Node { return h.Li(g.Text(sentence(p))) }))),
	)
}

// mockPost is one that is not a chain. Where pictures come first and the text below, it is so here.
func (s *Site) mockPost(v *visit, written *writing, spec *v1alpha1.PostSpec, p v1alpha1.Platform, head g.Node, caption string, i int) g.Node {
	var media []v1alpha1.LocalReference
	if spec.Image != nil {
		media = spec.Image.MediaRefs
	}
	if spec.Video != nil && spec.Video.MediaRef.Name != "" {
		media = []v1alpha1.LocalReference{spec.Video.MediaRef}
	}
	title := ""
	if of := spec.Targets[i].YouTube; of != nil {
		title = of.Title
	}
	words := g.Group{g.If(title != "", h.P(h.Class("mock-title"), g.Text(title))), mockText(caption)}
	switch p {
	case v1alpha1.PlatformInstagram, v1alpha1.PlatformTikTok, v1alpha1.PlatformYouTube:
		return g.Group{head, s.thumbs(v, media), words}
	case v1alpha1.PlatformX, v1alpha1.PlatformThreads, v1alpha1.PlatformFacebook:
		return g.Group{head, words, s.thumbs(v, media)}
	default:
		return g.Group{head, words, s.thumbs(v, media)}
	}
}

// mockText shows a text with its tags, names and addresses as platforms do.
func mockText(text string) g.Node {
	if text == "" {
		return h.P(h.Class("mock-text soft"), g.Text("No text yet."))
	}
	var out g.Group
	for line := range strings.SplitAfterSeq(text, "\n") {
		for word := range strings.SplitAfterSeq(line, " ") {
			if len(word) > 1 && (word[0] == '#' || word[0] == '@' || strings.HasPrefix(word, "http://") || strings.HasPrefix(word, "https://")) {
				out = append(out, h.Span(h.Class("tag"), g.Text(word)))
			} else {
				out = append(out, g.Text(word))
			}
		}
	}
	return h.P(h.Class("mock-text"), out)
}

// indexOf is the place of an account among the targets.
func indexOf(spec *v1alpha1.PostSpec, connection string) int {
	for i := range spec.Targets {
		if spec.Targets[i].ConnectionRef.Name == connection {
			return i
		}
	}
	return 0
}

// thumbs are small pictures of files.
func (s *Site) thumbs(v *visit, files []v1alpha1.LocalReference) g.Node {
	return g.If(len(files) > 0, h.Div(h.Class("thumbs of-"+strconv.Itoa(min(len(files), 4))), g.Map(files, func(f v1alpha1.LocalReference) g.Node { return v.thumb(s, f.Name) })))
}

// thumb is a small picture of a file: an address that is good for some minutes.
func (v *visit) thumb(s *Site, name string) g.Node {
	preview, err := s.Service.PreviewMedia(v.Context(), v.caller, name)
	switch {
	case err != nil || preview.URL == "":
		return h.Span(h.Class("thumb gone"), g.Text("File"))
	case preview.Video:
		return h.Video(h.Class("thumb"), h.Src(preview.URL), h.Preload("metadata"), h.Muted(), g.Attr("playsinline"), h.Aria("label", "Video"))
	default:
		return h.Img(h.Class("thumb"), h.Src(preview.URL), h.Alt(preview.Name), h.Loading("lazy"))
	}
}
