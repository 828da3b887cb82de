// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/postindex"
	texts "github.com/herald-social/herald/internal/text"
)

// listed are the phases that lists offer, in the order of a post's life.
var listed = []v1alpha1.PostPhase{
	v1alpha1.PhaseDraft, v1alpha1.PhaseScheduled, v1alpha1.PhaseProcessing, v1alpha1.PhasePosted, v1alpha1.PhaseFailed,
}

// offered returns the platforms that menus and texts name. Those that version 1 of the API lacks are named only if the
// installation publishes to them.
func (s *Site) offered() (names []v1alpha1.Platform) {
	for _, p := range v1alpha1.Platforms() {
		if _, publishes := s.Service.Capabilities(p); publishes || p.InVersion1() {
			names = append(names, p)
		}
	}
	return names
}

// kindOrder is the order of the kinds of posts in menus.
var kindOrder = []v1alpha1.Category{v1alpha1.CategoryText, v1alpha1.CategoryImage, v1alpha1.CategoryVideo, v1alpha1.CategoryTree}

// maxFilter limits the length of each filter in an address, in characters.
const maxFilter = bridge.MaxQuery

// Prefixes of the filter by creator.
const (
	byPerson  = "person:"
	byAnAgent = "agent:"
)

// filters are the filters in the address of a list or a calendar.
type filters struct {
	// status is a phase, stateUndecided or stateUnhandled.
	status   v1alpha1.PostPhase
	platform v1alpha1.Platform
	kind     v1alpha1.Category
	// words is the search as typed.
	words string
	// account is a connection's name, and by the creator with one of the prefixes.
	account, by string
	// from and to are the first and the last day, in dateForm; empty for no bound.
	from, to string
}

// filtersOf parses the filters in an address. It ignores unknown values.
func filtersOf(query url.Values) filters {
	f := filters{words: strings.TrimSpace(texts.First(query.Get("q"), maxFilter)), account: texts.First(query.Get("account"), maxFilter)}
	if status := v1alpha1.PostPhase(query.Get("status")); slices.Contains([]v1alpha1.PostPhase{stateUndecided, stateUnhandled}, status) || slices.Contains(listed, status) {
		f.status = status
	}
	if platform := v1alpha1.Platform(query.Get("platform")); slices.Contains(v1alpha1.Platforms(), platform) {
		f.platform = platform
	}
	if kind := v1alpha1.Category(query.Get("kind")); slices.Contains(kindOrder, kind) {
		f.kind = kind
	}
	if by := texts.First(query.Get("by"), maxFilter); strings.HasPrefix(by, byPerson) || strings.HasPrefix(by, byAnAgent) {
		f.by = by
	}
	for name, date := range map[string]*string{"from": &f.from, "to": &f.to} {
		if _, ok := dayIn(query.Get(name)); ok {
			*date = query.Get(name)
		}
	}
	return f
}

// dayIn parses a day in an address, as a midnight in UTC: in some time zones the clocks skip a midnight.
func dayIn(date string) (time.Time, bool) {
	day, err := time.Parse(dateForm, date)
	return day, err == nil && day.Year() >= 2000 && day.Year() <= 2900
}

// turned reports whether the first day is later than the last one.
func (f filters) turned() bool { return f.from != "" && f.to != "" && f.from > f.to }

// pairs returns the parameters of these filters that are set, by name.
func (f filters) pairs() []string {
	var out []string
	for _, p := range [][2]string{
		{"q", f.words},
		{"status", string(f.status)},
		{"platform", string(f.platform)},
		{"kind", string(f.kind)},
		{"account", f.account},
		{"by", f.by},
		{"from", f.from},
		{"to", f.to},
	} {
		if p[1] != "" {
			out = append(out, p[0], p[1])
		}
	}
	return out
}

// query returns these filters as a query string, with additional parameters.
func (f filters) query(more ...string) string { return queryOf(append(f.pairs(), more...)) }

// queryOf returns pairs of a name and a value as a query string.
func queryOf(pairs []string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

// states returns the query's phase and undecided filter. An undecided post is listed only under stateUndecided.
func (f filters) states() (v1alpha1.PostPhase, postindex.UndecidedFilter) {
	if f.status == "" {
		return "", postindex.IncludeUndecided
	}
	if f.status == stateUndecided {
		return "", postindex.OnlyUndecided
	}
	if f.status == stateUnhandled {
		return v1alpha1.PhaseFailed, postindex.ExcludeUndecided
	}
	return f.status, postindex.ExcludeUndecided
}

// search returns the search for the filtered posts, without a limit. Scheduled posts are sorted soonest first.
func (f filters) search(v *visit) *postindex.Search {
	q := &postindex.Search{Platform: f.platform, SoonestFirst: f.soonestFirst()}
	q.Status, q.Undecided = f.states()
	q.Category, q.Account = f.kind, f.account
	q.Words = bridge.QueryWords(f.words)
	if author, ok := strings.CutPrefix(f.by, byPerson); ok {
		q.Author = author
	} else if agent, ok := strings.CutPrefix(f.by, byAnAgent); ok {
		q.Agent = agent
	}
	if day, ok := dayIn(f.from); ok {
		q.From = v.midnight(day)
	}
	if day, ok := dayIn(f.to); ok {
		q.To = v.midnight(day.AddDate(0, 0, 1))
	}
	if f.status == stateUnhandled {
		q.Unhandled = true
		if since := v.unhandledSince(); q.From.Before(since) {
			q.From = since
		}
	}
	return q
}

// soonestFirst reports whether a list starts with the next post to be published. Lists that mix states start with the
// newest.
func (f filters) soonestFirst() bool { return f.status == v1alpha1.PhaseScheduled }

// more counts the filters besides the state and the words.
func (f filters) more() int {
	f.status, f.words = "", ""
	return len(f.pairs()) / 2
}

// inWordsOf describes the filters, including the state.
func (s *Site) inWordsOf(v *visit, f filters) []string {
	var out []string
	add := func(set bool, what string) {
		if set {
			out = append(out, what)
		}
	}
	add(f.words != "", "text "+quoted(f.words))
	add(f.status != "", "state: "+stateName(f.status))
	add(f.platform != "", "platform: "+f.platform.Title())
	add(f.account != "", "account: "+s.accountLabel(v, f.account))
	add(f.kind != "", "kind: "+categories[f.kind])
	if f.by != "" {
		all := s.Service.Creators(v.caller)
		add(true, "created by: "+s.creatorAmong(v, &all, f.by))
	}
	add(f.from != "", "from "+shownDay(f.from))
	add(f.to != "", "until "+shownDay(f.to))
	return out
}

func shownDay(date string) string {
	day, _ := dayIn(date)
	return day.Format(dayForm)
}

// creator returns the display text for a filter by one of the creators.
func (s *Site) creator(v *visit, by string) string {
	if agent, ok := strings.CutPrefix(by, byAnAgent); ok {
		return "the agent " + quoted(agent)
	}
	return s.personNamed(v, strings.TrimPrefix(by, byPerson))
}

// creatorAmong is like creator, but does not show a name that no post has, because an address can contain any text.
func (s *Site) creatorAmong(v *visit, all *postindex.Creators, by string) string {
	if agent, ok := strings.CutPrefix(by, byAnAgent); ok && !slices.Contains(all.Agents, agent) {
		return "an unknown agent"
	}
	if author, ok := strings.CutPrefix(by, byPerson); ok && !slices.Contains(all.Authors, author) {
		return "an unknown person"
	}
	return s.creator(v, by)
}

// accountLabel returns an account's name and platform. An address can contain any text, so unknown names are not shown.
func (s *Site) accountLabel(v *visit, name string) string {
	account := s.account(v, name)
	if account == nil {
		return "Unknown account"
	}
	return v.called(account, name) + " on " + account.Spec.Platform.Title()
}

// narrow shows the states as tabs, and the search form. Only the list of posts has fields for dates: a calendar sets
// its own. more are additional parameters of the page.
func (s *Site) narrow(v *visit, page string, f filters, more ...string) (g.Node, error) {
	counts, err := s.Service.CountPosts(v.Context(), v.caller)
	if err != nil {
		return nil, err
	}
	plain := f.words == "" && f.more() == 0
	tab := func(status v1alpha1.PostPhase, label string, n int) g.Node {
		to := f
		to.status = status
		return h.Li(h.A(h.Href(v.path(page)+to.query(more...)), g.If(status == f.status, h.Aria("current", "true")),
			g.Text(label), g.If(plain, h.Span(h.Class("count"), g.Text(strconv.Itoa(n))))))
	}
	asked := counts.AllUndecided()
	return h.Div(h.Class("narrow"),
		h.Nav(h.Aria("label", "Posts by state"), h.Ul(h.Class("tabs"),
			tab("", "All", counts.All()),
			g.If(asked > 0 || f.status == stateUndecided, tab(stateUndecided, stateName(stateUndecided), asked)),
			g.Iff(f.status == stateUnhandled, func() g.Node { return tab(stateUnhandled, stateName(stateUnhandled), s.unhandled(v)) }),
			g.Map(listed, func(phase v1alpha1.PostPhase) g.Node { return tab(phase, phases[phase], counts.Decided(phase)) }),
		)),
		s.searchForm(v, page, f, more),
	), nil
}

func (s *Site) searchForm(v *visit, page string, f filters, more []string) g.Node {
	label := "Filters"
	if n := f.more(); n > 0 {
		label += " (" + strconv.Itoa(n) + ")"
	}
	return h.Form(h.Method("get"), h.Action(v.path(page)), h.Class("search"), h.Role("search"),
		g.If(f.status != "", hidden("status", string(f.status))),
		hiddenPairs(more),
		h.Label(h.For("q"), h.Class("hidden"), g.Text("Search captions")),
		h.Input(h.ID("q"), h.Type("search"), h.Name("q"), h.Value(f.words), h.MaxLength(strconv.Itoa(maxFilter)), h.Placeholder("Search captions"), g.Attr("enterkeyhint", "search")),
		submit("Search", "small"),
		h.Details(h.Class("filters"), g.If(f.more() > 0, g.Attr("open")),
			h.Summary(g.Text(label)),
			h.Div(h.Class("fields"),
				menu("platform", "Platform", "All platforms", string(f.platform), s.platformChoices()),
				menu("account", "Account", "All accounts", f.account, s.accountChoices(v, f.account)),
				menu("kind", "Kind", "All kinds", string(f.kind), kindChoices()),
				menu("by", "Created by", "Anyone", f.by, s.creatorChoices(v, f.by)),
				g.If(page == string(placePosts), g.Group{dateField("from", "From", f.from), dateField("to", "Until", f.to)}),
			),
			h.P(h.Class("actions"), submit("Apply", "small"), g.If(len(f.pairs()) > 0, link(v.path(page)+filters{}.query(more...), "Clear all", "small quiet"))),
		),
	)
}

func hiddenPairs(of []string) g.Node {
	var out g.Group
	for i := 0; i+1 < len(of); i += 2 {
		out = append(out, hidden(of[i], of[i+1]))
	}
	return out
}

// menu is a form's select field; its options are pairs of a value and a label.
func menu(name, label, all, chosen string, options [][2]string) g.Node {
	return h.Div(h.Class("field"), h.Label(h.For("by-"+name), g.Text(label)),
		h.Select(h.ID("by-"+name), h.Name(name),
			h.Option(h.Value(""), g.Text(all)),
			g.Map(options, func(o [2]string) g.Node {
				return h.Option(h.Value(o[0]), g.If(o[0] == chosen, h.Selected()), g.Text(o[1]))
			}),
		))
}

func dateField(name, label, value string) g.Node {
	return h.Div(h.Class("field"), h.Label(h.For("by-"+name), g.Text(label)), h.Input(h.ID("by-"+name), h.Type("date"), h.Name(name), h.Value(value)))
}

func (s *Site) platformChoices() (out [][2]string) {
	for _, p := range s.offered() {
		out = append(out, [2]string{string(p), p.Title()})
	}
	return out
}

func kindChoices() (out [][2]string) {
	for _, kind := range kindOrder {
		out = append(out, [2]string{string(kind), categories[kind]})
	}
	return out
}

// accountChoices are the team's accounts, and the chosen one if it is no longer connected.
func (s *Site) accountChoices(v *visit, chosen string) (out [][2]string) {
	known := chosen == ""
	for _, account := range s.accounts(v) {
		known = known || account.Name == chosen
		out = append(out, [2]string{account.Name, s.accountLabel(v, account.Name)})
	}
	if !known {
		out = append(out, [2]string{chosen, s.accountLabel(v, chosen)})
	}
	return out
}

// creatorChoices are the users and agents who created the team's posts.
func (s *Site) creatorChoices(v *visit, chosen string) (out [][2]string) {
	all := s.Service.Creators(v.caller)
	var values []string
	if chosen != "" { // the menu always has it
		out = append(out, [2]string{chosen, s.creatorAmong(v, &all, chosen)})
	}
	for _, author := range all.Authors {
		values = append(values, byPerson+author)
	}
	for _, agent := range all.Agents {
		values = append(values, byAnAgent+agent)
	}
	for _, by := range values {
		if len(out) == maxCreators {
			break
		}
		if by != chosen {
			out = append(out, [2]string{by, s.creator(v, by)})
		}
	}
	return out
}

// maxCreators limits the menu of creators, because agents choose their own names.
const maxCreators = 100
