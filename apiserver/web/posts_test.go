// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/postindex"
)

func by(author, agent string) func(*v1alpha1.Post) {
	return func(post *v1alpha1.Post) {
		metav1.SetMetaDataAnnotation(&post.ObjectMeta, v1alpha1.AuthorAnnotation, author)
		metav1.SetMetaDataAnnotation(&post.ObjectMeta, v1alpha1.AgentAnnotation, agent)
	}
}

// TestHeadingOf verifies how long headings end.
func TestHeadingOf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		post   postindex.Summary
		want   string
	}{
		"Whole":    {"a short title is complete", postindex.Summary{Title: "Launch"}, "Launch"},
		"Long":     {"the rest continues the title", postindex.Summary{Title: "What we have learnt this quart", Rest: "er…"}, "What we have learnt this quarter…"},
		"Archived": {"an archived title of full length may go on", postindex.Summary{Title: "What we have learnt this quart", Archived: true}, "What we have learnt this quart…"},
		"Space":    {"no space stands before the dots", postindex.Summary{Title: "Quick 00: what we have learnt ", Archived: true}, "Quick 00: what we have learnt…"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := headingOf(&tc.post); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// withRole returns the element with an ARIA role.
func withRole(tb testing.TB, page *html.Node, role string) *html.Node {
	tb.Helper()
	for n := range page.Descendants() {
		if got, _ := attribute(n, "role"); got == role {
			return n
		}
	}
	tb.Fatalf("the page has no element with the role %s", role)
	return nil
}

// followLink returns the page that a link leads to, by its text or label.
func (w *world) followLink(tb testing.TB, page *html.Node, label string) *html.Node {
	tb.Helper()
	for _, link := range elements(page, "a") {
		if name, _ := attribute(link, "aria-label"); name == label || textOf(link) == label {
			href, _ := attribute(link, "href")
			return w.get(tb, editor, href)
		}
	}
	tb.Fatalf("link %s is missing", label)
	return nil
}

// headings returns the headings of a list, in order.
func headings(page *html.Node) string {
	var out []string
	for n := range page.Descendants() {
		if class, _ := attribute(n, "class"); class == "what" {
			out = append(out, textOf(elements(n, "strong")[0]))
		}
	}
	return strings.Join(out, ", ")
}

// TestSearch verifies which posts match a list's filters, and in which order they are listed.
func TestSearch(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	day := 24 * time.Hour
	w.put(textPost("p-1", "Résumé of the year", at(now.Add(3*day)), by("oidc:ada", "")))
	w.put(textPost("p-2", "The year in numbers", at(now.Add(day)), by("oidc:vera", "")))
	w.put(textPost("p-3", "A new year", asDraft, by("oidc:ada", "Claude"), func(p *v1alpha1.Post) { p.Spec.Targets[0].ConnectionRef.Name = "our-threads" }))
	w.put(textPost("p-4", "", at(now.Add(2*day)), func(p *v1alpha1.Post) {
		p.Spec.Category = v1alpha1.CategoryTree
		p.Spec.Tree = &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{Caption: "One"}, {Caption: "Two of the year"}}}
	}))
	for name, tc := range map[string]struct{ reason, query, want, says string }{
		"All":        {"lists of all states start with the newest", "", "Résumé of the year, One, The year in numbers, A new year", "4 posts, newest first."},
		"Scheduled":  {"lists of scheduled posts start with the next one", "status=scheduled", "The year in numbers, One, Résumé of the year", "3 posts, soonest first."},
		"Word":       {"case and diacritics do not matter", "q=RESUME", "Résumé of the year", "1 post, newest first."},
		"Accented":   {"the account's name is not searched", "q=résumé+YÉAR", "Résumé of the year", ""},
		"AllWords":   {"every word has to match", "q=year+new", "A new year", ""},
		"Thread":     {"each card of a thread counts", "q=two", "One", "only the beginning of each post"},
		"Account":    {"the filter by account", "account=our-threads", "A new year", ""},
		"Platform":   {"the filter by platform", "platform=threads", "A new year", ""},
		"Kind":       {"the filter by kind", "kind=tree", "One", ""},
		"Person":     {"by a user", "by=person:oidc:ada", "Résumé of the year, A new year", ""},
		"Agent":      {"by an agent", "by=agent:Claude", "A new year", ""},
		"Dates":      {"the range includes both days", "from=2026-12-02&to=2026-12-03", "One, The year in numbers", "newest first"},
		"Until":      {"without a start", "to=2026-12-01", "A new year", ""},
		"Together":   {"all filters apply", "q=year&by=person:oidc:ada&status=scheduled", "Résumé of the year", "soonest first"},
		"Turned":     {"no post is between these days", "from=2026-12-24&to=2026-12-01", "", "The first day is later than the last one."},
		"Nothing":    {"the page shows the filters, and offers to clear them", "q=absent&platform=x&from=2026-12-24", "", "No posts match"},
		"Nonsense":   {"unknown values are ignored", "kind=film&by=ada&from=tomorrow&status=gone", "Résumé of the year, One, The year in numbers, A new year", ""},
		"OneSpace":   {"a search without words", "q=+", "Résumé of the year, One, The year in numbers, A new year", ""},
		"HostileAll": {"markup in a search is escaped", "q=%3Cb%3E", "", "text “<b>”"},
	} {
		page := w.get(t, editor, "/teams/"+acme+"/posts?"+tc.query)
		if got := headings(page); got != tc.want {
			t.Errorf("%s: %s: listed %q, want %q", name, tc.reason, got, tc.want)
		}
		says(t, name, textOf(page), []string{tc.says}, nil)
	}
	empty := textOf(w.get(t, editor, "/teams/"+acme+"/posts?q=absent&platform=x&from=2026-12-24&account=our-x&kind=video&by=agent:Claude&status=failed"))
	says(t, "the page names the filters", empty, []string{
		"text “absent”", "platform: X", "from 24 Dec 2026", "account: Account our-x on X", "kind: Video", "created by: the agent “Claude”", "state: Failed", "Clear all filters",
	}, nil)
}

// TestSearchForm verifies that a form keeps the filters of its page, so that a search without JavaScript adds to them.
func TestSearchForm(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.put(textPost("p-1", "text", by("oidc:ada", "")))
	want := url.Values{
		"q": {"year"}, "status": {"scheduled"}, "platform": {"x"}, "kind": {"text"}, "account": {"gone"}, "by": {"agent:nobody"}, "from": {"2026-12-01"}, "to": {"2026-12-24"},
	}
	form := sent(withRole(t, w.get(t, editor, "/teams/"+acme+"/posts?"+want.Encode()), "search"))
	if form.Encode() != want.Encode() {
		t.Errorf("the form sends %v", form)
	}
	calendar := url.Values{"view": {"week"}, "date": {"2026-12-03"}, "q": {"year"}, "kind": {""}, "account": {""}, "platform": {""}, "by": {"person:oidc:ada"}}
	if form := sent(withRole(t, w.get(t, editor, "/teams/"+acme+"/calendar?"+calendar.Encode()), "search")); form.Encode() != calendar.Encode() {
		t.Errorf("the calendar's form sends %v", form)
	}
}

// TestCursors verifies that the pages of a list follow one another, even if posts are added in the meantime.
func TestCursors(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	for i := range 2*pageSize + 3 {
		w.put(textPost(fmt.Sprintf("p-%02d", i), fmt.Sprintf("Number %02d", i), at(now.Add(time.Duration(i+1)*time.Hour))))
	}
	follow := func(page *html.Node, label string) *html.Node { return w.followLink(t, page, label) }
	page := w.get(t, editor, "/teams/"+acme+"/posts?q=number")
	says(t, "newest first", headings(page), []string{"Number 52", "Number 28"}, []string{"Number 27"})
	w.put(textPost("p-new", "Number 99", at(now.Add(99*time.Hour))))
	page = follow(page, "Older")
	says(t, "a new post does not shift the page", headings(page), []string{"Number 27", "Number 03"}, []string{"Number 28", "Number 02"})
	page = follow(page, "Newer")
	says(t, "and back", headings(page), []string{"Number 52", "Number 28"}, []string{"Number 27", "Number 99"})
	page = follow(page, "Newer")
	says(t, "to a whole first page", headings(page), []string{"Number 99", "Number 29"}, []string{"Number 28"})
	page = w.get(t, editor, "/teams/"+acme+"/posts?status=scheduled")
	says(t, "soonest first", headings(follow(page, "Later")), []string{"Number 25", "Number 49"}, []string{"Number 24", "Number 50"})
	for _, cursor := range []string{"after=", "after=soon", "before=1.", "after=99999999999999999999.p", "page=2"} {
		if answer := w.serve(newRequest(&editor, "/teams/"+acme+"/posts?"+cursor, nil)); answer.Code != http.StatusOK {
			t.Errorf("%s: %d", cursor, answer.Code)
		}
	}
}

// TestHeadings verifies that lists show more of a post than its title.
func TestHeadings(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	caption := strings.Repeat("words of ten ", 20)
	w.put(textPost("p-1", caption, asDraft))
	if got := headings(w.get(t, editor, "/teams/"+acme+"/posts")); got != strings.TrimSpace(caption[:117])+"…" {
		t.Errorf("the heading is %q", got)
	}
}

// TestThumbnailsOfAList verifies that a row has the post's picture, or a drawing where there is none to show.
func TestThumbnailsOfAList(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	images := func(name string) func(*v1alpha1.Post) {
		return func(p *v1alpha1.Post) {
			p.Spec.Category, p.Spec.Image = v1alpha1.CategoryImage, &v1alpha1.ImageContent{MediaRefs: []v1alpha1.MediaReference{{Name: name}}}
		}
	}
	w.media[acme+"/m-1"] = &v1alpha1.Media{
		ObjectMeta: metav1.ObjectMeta{Namespace: acme, Name: "m-1", UID: "u-1"}, Spec: v1alpha1.MediaSpec{FileName: "a.png", MimeType: v1alpha1.MimePNG, SizeBytes: 1000},
		Status: v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded},
	}
	w.put(textPost("p-1", "With a picture", asDraft, images("m-1")))
	w.put(textPost("p-2", "With a deleted one", asDraft, images("m-2")))
	w.put(textPost("p-3", "Without", asDraft))
	for _, path := range []string{"posts", "calendar?view=agenda"} {
		tiles := map[string]string{}
		for n := range w.get(t, editor, "/teams/"+acme+"/"+path).Descendants() {
			if class, _ := attribute(n, "class"); class == "tile" {
				tiles[textOf(elements(n.Parent, "strong")[0])] = n.Data
				if src, ok := attribute(n, "src"); ok && src != "https://store.example/team-acme/u-1?get" {
					t.Errorf("%s: the picture is at %s", path, src)
				}
			}
		}
		if len(tiles) != 2 || tiles["With a picture"] != "img" || tiles["With a deleted one"] != "span" {
			t.Errorf("%s: the tiles are %v", path, tiles)
		}
	}
}

// TestUnknownNames verifies that a name in an address is shown only if a post or an account has it.
func TestUnknownNames(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.put(textPost("p-1", "One", func(p *v1alpha1.Post) {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, v1alpha1.AuthorAnnotation, access.LinkPerson)
	}))
	for name, tc := range map[string]struct {
		reason, query, want string
		lacks               []string
	}{
		"Account": {"the account does not exist", "account=free-money", "Unknown account", []string{"free-money"}},
		"Person":  {"no user with this name created a post", "by=person:free-money", "an unknown person", []string{"free-money"}},
		"Agent":   {"no agent with this name created a post", "by=agent:free-money", "an unknown agent", []string{"free-money"}},
		"Link":    {"names of Kubernetes objects are not shown", "status=failed&by=person:" + url.QueryEscape(access.LinkPerson), "created by: " + linkUser, []string{access.LinkPerson}},
	} {
		says(t, name+": "+tc.reason, mainOf(w.get(t, editor, "/teams/"+acme+"/posts?"+tc.query)), []string{tc.want}, tc.lacks)
	}
}
