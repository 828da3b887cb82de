// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"slices"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

// kindsOfPosts are the categories as worded after "does not accept".
var kindsOfPosts = map[v1alpha1.Category]string{
	v1alpha1.CategoryText: "posts without files", v1alpha1.CategoryImage: "images", v1alpha1.CategoryVideo: "videos", v1alpha1.CategoryTree: "threads",
}

// refusedKind is a kind of post that an account does not accept. by is the platform, or the account's server on a
// platform that accepts it.
type refusedKind struct {
	kind v1alpha1.Category
	by   string
}

// refused returns the kinds of posts that an account does not accept, in the order of the form.
func (s *Site) refused(a *v1alpha1.Connection) []refusedKind {
	general, _ := s.Service.Capabilities(a.Spec.Platform)
	limits := general.Of(&a.Status)
	var kinds []refusedKind
	for _, kind := range formKinds {
		switch {
		case limits.Allows(kind):
		case general.Allows(kind):
			kinds = append(kinds, refusedKind{kind, "The account's server"})
		default:
			kinds = append(kinds, refusedKind{kind, a.Spec.Platform.Title()})
		}
	}
	return kinds
}

// accountTile is an account in the form. The styles show it as unavailable for a kind of post that its platform does
// not accept, and for content that, according to check, it cannot accept. The script then refuses to choose it.
func (s *Site) accountTile(v *visit, a *v1alpha1.Connection, t *targetWriting, chosen bool) g.Node {
	id, refusal, remark := "target-"+a.Name, "refusal-"+a.Name, "remark-"+a.Name
	var classes []string
	refused := s.refused(a)
	for _, not := range refused {
		classes = append(classes, "no-"+string(not.kind))
	}
	return h.Li(g.If(len(classes) > 0, h.Class(strings.Join(classes, " "))),
		h.Input(h.Type("checkbox"), h.Class("picked"), h.ID(id), h.Name("target"), h.Value(a.Name), h.Aria("describedby", refusal+" "+remark), g.If(chosen, h.Checked())),
		h.Label(h.For(id), avatar(a, a.Spec.Platform), h.Span(h.Class("account"), h.Strong(h.Dir("auto"), g.Text(nameOfAccount(a, a.Name))), h.Span(h.Class("soft"), g.Text(handleOn(a))),
			g.If(t.already != "", h.Span(h.Class("already"), g.Text(sentence(t.already)))))),
		h.P(h.ID(refusal), h.Class("refusal"), g.Map(refused, func(not refusedKind) g.Node {
			return h.Span(h.Class("only-"+string(not.kind)), g.Text(not.by+" does not accept "+kindsOfPosts[not.kind]+"."))
		}), unfit(a.Name, nil)),
		remarkOn(a.Name, ""),
		tileState(v, a),
		h.Div(h.Class("options"), s.targetFields(a, t)),
	)
}

// shownProblems limits the reasons on a tile: each of 35 pictures may have one.
const shownProblems = 3

// unfit is the part of a tile with the reasons why the account cannot take the content; empty if it can.
func unfit(name string, problems []bridge.Problem, more ...g.Node) g.Node {
	reasons := inSentences(problems[:min(len(problems), shownProblems)], nil)
	if left := len(problems) - shownProblems; left > 0 {
		reasons = append(reasons, "And "+plural(left, "more reason")+".")
	}
	return h.Span(h.ID("unfit-"+name), h.Class("unfit"), g.Group(more), g.Text(strings.Join(reasons, " ")))
}

// remarkOn is a text on the tile of an account that can still be chosen.
func remarkOn(name, text string, more ...g.Node) g.Node {
	return h.P(h.ID("remark-"+name), h.Class("remark soft"), g.Group(more), g.Text(text))
}

// fitting updates the tiles with the problems that accounts have with the current content.
func (s *Site) fitting(v *visit, written *writing, spec *v1alpha1.PostSpec, found *bridge.Check) g.Node {
	accounts := s.usable(v)
	checks := s.Service.CheckAccounts(v.Context(), v.caller, spec, written.caption, found.Previews, accounts)
	replace := g.Attr("hx-swap-oob", "true")
	return g.Map(indexes(len(accounts)), func(i int) g.Node {
		name, platform, remark := accounts[i].Name, accounts[i].Spec.Platform.Title(), ""
		// For a chosen account, its length meter already shows this.
		if of := checks[i].TooLong; of.Count > 0 && !slices.ContainsFunc(written.targets, func(t targetWriting) bool { return t.connection == name }) {
			remark = "The text is too long for " + platform + ": " + strconv.Itoa(of.Count) + " of " + strconv.Itoa(of.Limit) + "."
			if spec.Tree == nil {
				remark += " Choose it to write a different text."
			}
		}
		return g.Group{unfit(name, checks[i].Problems, replace), remarkOn(name, remark, replace)}
	})
}

// tileState shows why posts to an account may wait or fail, and where to connect it again; nothing for a ready account.
func tileState(v *visit, a *v1alpha1.Connection) g.Node {
	state := stateOf(a, v.now)
	if state.tone != bad && state.tone != caution {
		return nil
	}
	return h.Div(h.Class("tile-state"), stateBadge(v, a),
		h.Span(g.Text(state.text+" "),
			g.If(state.reconnect && state.tone == bad, g.Text("Posts to it wait until it is reconnected. ")),
			g.If(state.reconnect && v.may.reconnect, h.A(h.Href(v.path("connections")+"#"+a.Name), g.Text("Connect it again")))))
}

// stateBadge names the state of an account that is not ready.
func stateBadge(v *visit, a *v1alpha1.Connection) g.Node {
	if a == nil {
		return nil
	}
	state := stateOf(a, v.now)
	if state.tone != bad && state.tone != caution {
		return nil
	}
	label := state.label
	if state.reconnect && state.tone == bad {
		label = "Reconnect first"
	}
	return h.Span(h.Class("badge kind-"+string(state.tone)), g.Text(label))
}
