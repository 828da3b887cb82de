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
	"github.com/herald-social/herald/apiserver/bridge"
)

const bulkPath = "/teams/" + acme + "/bulk"

// bulkForm returns the form of a page that changes several posts, as a browser sends it.
func bulkForm(tb testing.TB, page *html.Node) url.Values {
	tb.Helper()
	for _, form := range elements(page, "form") {
		action, _ := attribute(form, "action")
		if method, _ := attribute(form, "method"); action == bulkPath && method == "post" {
			return sent(form)
		}
	}
	tb.Fatalf("the page has no form: %s", textOf(elements(page, "main")[0]))
	return nil
}

// send submits a form that changes several posts, and returns the result's page.
func (w *world) send(t *testing.T, form url.Values) *html.Node {
	t.Helper()
	answer := w.serve(newRequest(&editor, bulkPath, form))
	if answer.Code != http.StatusOK {
		t.Fatalf("%d: %s", answer.Code, answer.Body)
	}
	return parsed(t, answer.Body.String())
}

func mainOf(page *html.Node) string { return textOf(elements(page, "main")[0]) }

// inBerlin returns a user's page in Berlin's time zone.
func (w *world) inBerlin(t *testing.T, path string) *html.Node {
	t.Helper()
	r := newRequest(&editor, path, nil)
	r.AddCookie(&http.Cookie{Name: zoneCookie, Value: "Europe%2FBerlin"})
	return parsed(t, w.serve(r).Body.String())
}

// TestBulkMove moves posts across the end of summer time, and back.
func TestBulkMove(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 10, 22, 9, 0, 0, 0, time.UTC)
	w := newWorld(clocktesting.NewFakeClock(now))
	before := time.Date(2026, 10, 24, 7, 0, 0, 0, time.UTC) // 09:00 in Berlin
	w.put(textPost("p-1", "One", at(before)))
	w.put(textPost("p-2", "Two", at(before.Add(time.Hour))))
	w.put(textPost("p-3", "A draft", asDraft))
	w.put(textPost("p-4", "Failed", became(v1alpha1.TargetFailed)))
	page := w.inBerlin(t, bulkPath+"?act=move&days=2&post=p-1&post=p-2&post=p-3&post=p-4&post=p-1&post=none")
	says(t, "the effect is stated first", mainOf(page), []string{
		"Move 2 posts 2 days later", "Each post keeps its time of day in Europe/Berlin", "24 Oct 2026, 09:00 Berlin → 26 Oct 2026, 09:00 Berlin",
		"Not moved: 3 posts", "Draft. Only scheduled posts can be moved", "Failed. Only scheduled", "A deleted post", "This team has no such post",
	}, nil)
	form := bulkForm(t, page)
	if w.written() != 0 {
		t.Fatal("a question changed a post")
	}
	moved := w.posts[acme+"/p-2"] // someone else moves it
	moved.Generation++
	moved.Spec.ScheduledAt = v1alpha1.NewTimePtr(before.Add(2 * time.Hour))
	result := w.send(t, form)
	says(t, "each post's result is stated", mainOf(result), []string{"1 of 2 posts moved", "Not moved: 1 post", "has changed since you opened it", "Undo (1)"}, nil)
	if got := w.posts[acme+"/p-1"].Spec.ScheduledAt; !got.Equal(v1alpha1.NewTimePtr(before.Add(49 * time.Hour))) {
		t.Errorf("the post is at %v", got)
	}
	writes := w.written()
	says(t, "a repeated form does not move posts", mainOf(w.send(t, form)), []string{"1 of 2 posts moved", "has changed since"}, nil)
	if w.written() != writes {
		t.Error("reloading the page changed a post")
	}
	undone := w.send(t, bulkForm(t, result))
	says(t, "undo moves the post back", mainOf(undone), []string{"1 post moved", "Undo (1)"}, nil)
	if got := w.posts[acme+"/p-1"].Spec.ScheduledAt; !got.Equal(v1alpha1.NewTimePtr(before)) || len(w.posts) != 4 {
		t.Errorf("after undoing, the post is at %v, and there are %d posts", got, len(w.posts))
	}
	writes = w.written()
	says(t, "the first form does not move posts after an undo", mainOf(w.send(t, form)), []string{"0 of 2 posts moved", "has changed since"}, nil)
	if w.written() != writes {
		t.Error("a repeated form moved posts again")
	}
}

// TestBulkMoveLimits verifies which moves are offered.
func TestBulkMoveLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.put(textPost("p-1", "Soon", at(now.Add(time.Hour))))
	w.put(textPost("p-2", "Later", at(now.AddDate(0, 0, 3))))
	for name, tc := range map[string]struct {
		reason, query string
		code          int
		says          string
	}{
		"Earlier":  {"posts can be moved to an earlier day", "act=move&days=-2&post=p-2", http.StatusOK, "Move 1 post 2 days earlier"},
		"Past":     {"posts cannot be moved to the past", "act=move&days=-2&post=p-1", http.StatusOK, "its new time would be in the past"},
		"Some":     {"the other posts can still be moved", "act=move&days=-2&post=p-1&post=p-2", http.StatusOK, "Not moved: 1 post"},
		"Default":  {"the list does not have a calendar's days", "act=move&post=p-1", http.StatusOK, "Move 1 post 1 day later"},
		"NoDays":   {"a post on the same day is not moved", "act=move&days=0&post=p-1", http.StatusOK, "choose how many days"},
		"FarAway":  {"within a year", "act=move&days=99999&post=p-1", http.StatusOK, "Move 1 post 366 days later"},
		"NoPosts":  {"no post is selected", "act=move&days=1", http.StatusBadRequest, "no posts are selected"},
		"NoAct":    {"no action is selected", "post=p-1", http.StatusBadRequest, "choose what to do"},
		"Unknown":  {"URLs may contain anything", "act=delete&post=p-1", http.StatusBadRequest, "choose what to do"},
		"TooMany":  {"a page's posts are the maximum", "act=cancel&post=" + strings.Join(numbers(maxBulk+1), "&post="), http.StatusBadRequest, "at most 100 posts"},
		"One":      {"one post is not a selection", "act=cancel&post=p-1", http.StatusOK, "This post will not be published"},
		"ManyOnce": {"the same post counts once", "act=cancel&post=" + strings.Repeat("p-1&post=", 200) + "p-1", http.StatusOK, "Cancel 1 post"},
	} {
		answer := w.serve(newRequest(&editor, bulkPath+"?"+tc.query, nil))
		if page := mainOf(parsed(t, answer.Body.String())); answer.Code != tc.code || !strings.Contains(strings.ToLower(page), strings.ToLower(tc.says)) {
			t.Errorf("%s: %s: %d, %s", name, tc.reason, answer.Code, page)
		}
	}
}

func numbers(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprint("p-", i))
	}
	return out
}

// TestBulkCancel cancels posts and copies them to new drafts, once.
func TestBulkCancel(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.put(textPost("p-1", "One", at(now.Add(time.Hour))))
	w.put(textPost("p-2", "Two", asDraft))
	w.put(textPost("p-3", "Failed", became(v1alpha1.TargetFailed)))
	page := w.get(t, editor, bulkPath+"?act=cancel&post=p-1&post=p-2&post=p-3&back=%2Fteams%2Fteam-acme%2Fposts%3Fq%3Do")
	says(t, "the page first states what cannot be undone", mainOf(page), []string{"Cancel 2 posts", "These posts will not be published", "This cannot be undone, but you can copy them to new drafts", "Not cancelled: 1 post", "Failed. Only drafts and scheduled posts can be cancelled"}, nil)
	result := w.send(t, bulkForm(t, page))
	says(t, "the page reports the result", mainOf(result), []string{"2 posts cancelled", "Copy to new drafts (2)"}, []string{"Undo"})
	if !w.posts[acme+"/p-1"].Spec.Cancelled || !w.posts[acme+"/p-2"].Spec.Cancelled {
		t.Error("the posts are not cancelled")
	}
	if back := w.followLinkAddress(t, result, "Back to the list"); back != "/teams/"+acme+"/posts?q=o" {
		t.Errorf("back leads to %s", back)
	}
	copying := bulkForm(t, result)
	for range 2 { // reloading a page sends its form again
		says(t, "copies", mainOf(w.send(t, copying)), []string{"2 posts copied to new drafts", "One", "Two"}, nil)
	}
	if len(w.posts) != 5 {
		t.Errorf("got %d posts, want the first three and two copies", len(w.posts))
	}
	for name, post := range w.posts {
		if !strings.HasPrefix(name, acme+"/p-") && (!post.Spec.Draft || post.Spec.ScheduledAt != nil || post.Spec.Cancelled) {
			t.Errorf("a copy is %+v", post.Spec)
		}
	}
}

// followLinkAddress returns the address of a link.
func (w *world) followLinkAddress(tb testing.TB, page *html.Node, label string) string {
	tb.Helper()
	for _, link := range elements(page, "a") {
		if href, _ := attribute(link, "href"); textOf(link) == label {
			return href
		}
	}
	tb.Fatalf("link %s is missing", label)
	return ""
}

// TestBulkPublish publishes drafts at once or at the time that an agent requested, and withdraws those that are not
// due.
func TestBulkPublish(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	wanted := now.AddDate(0, 0, 2)
	w.put(textPost("p-1", "At once", asDraft))
	w.put(textPost("p-2", "Later", asDraft, func(p *v1alpha1.Post) {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, v1alpha1.AgentAnnotation, "Claude")
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, v1alpha1.WantedAtAnnotation, wanted.Format(time.RFC3339))
	}))
	w.put(textPost("p-3", strings.Repeat("too long ", 40), asDraft))
	w.put(textPost("p-4", "Changed meanwhile", asDraft))
	w.put(textPost("p-5", "Scheduled", at(now.Add(time.Hour))))
	w.put(textPost("p-6", "At once", asDraft)) // says the same as the first
	page := w.get(t, editor, bulkPath+"?act=publish&post=p-1&post=p-2&post=p-3&post=p-4&post=p-5&post=p-6")
	says(t, "the effect is stated first", mainOf(page), []string{
		"Publish 4 drafts", "3 posts will be published now. This cannot be undone.", "1 post will be published at the time an agent asked for. You can take it back until then.", "for 3 Dec 2026, 09:00",
		"Not published: 2 posts", "Not a draft (Scheduled)", "280",
	}, nil)
	form := bulkForm(t, page)
	changed := w.posts[acme+"/p-4"]
	changed.Generation++
	changed.Spec.Targets[0].Caption = "Other words"
	result := w.send(t, form)
	says(t, "each post's result is stated", mainOf(result), []string{"1 post being published, 1 scheduled, 2 not published", "has changed since you opened it", "The same content was published a moment ago", "Undo (1)"}, nil)
	if now, later := w.posts[acme+"/p-1"].Spec, w.posts[acme+"/p-2"].Spec; now.Draft || now.ScheduledAt != nil || later.Draft || !later.ScheduledAt.Equal(v1alpha1.NewTimePtr(wanted)) {
		t.Errorf("published: %+v and %+v", now, later)
	}
	undo := bulkForm(t, result)
	scheduled := w.posts[acme+"/p-2"]
	scheduled.Generation++ // someone edits it
	says(t, "a changed post stays", mainOf(w.send(t, undo)), []string{"0 of 1 post withdrawn", "has changed since"}, []string{"not copied"})
	scheduled.Generation--
	says(t, "a post that is not due is withdrawn", mainOf(w.send(t, bulkForm(t, result))), []string{"1 post withdrawn and copied to new drafts", "Later"}, nil)
	if !w.posts[acme+"/p-2"].Spec.Cancelled || len(w.posts) != 7 {
		t.Errorf("got %d posts, and the withdrawn one is %+v", len(w.posts), w.posts[acme+"/p-2"].Spec)
	}
}

// TestBulkPermissions verifies that copies need permission to create posts, and that forms without posts do nothing.
func TestBulkPermissions(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now), without("create posts"))
	w.put(textPost("p-1", "One", at(now.Add(time.Hour))))
	for name, tc := range map[string]struct {
		reason string
		form   url.Values
		code   int
	}{
		"Copy":     {"a copy is a new post", url.Values{"act": {"copy"}, "post": {"p-1"}, "key": {"k"}}, http.StatusForbidden},
		"Withdraw": {"a withdrawn post stays, and its copy is new", url.Values{"act": {"withdraw"}, "post": {"p-1"}, "key": {"k"}}, http.StatusForbidden},
		"NoPosts":  {"no post is selected", url.Values{"act": {"cancel"}}, http.StatusBadRequest},
		"NoAct":    {"no action is selected", url.Values{"post": {"p-1"}}, http.StatusBadRequest},
		"TooMany":  {"a page's posts are the maximum", url.Values{"act": {"cancel"}, "post": numbers(maxBulk + 1)}, http.StatusBadRequest},
		"NoTimes":  {"a forged form has no effect", url.Values{"act": {"move"}, "post": {"p-1"}}, http.StatusOK},
	} {
		if answer := w.serve(newRequest(&editor, bulkPath, tc.form)); answer.Code != tc.code || w.written() != 0 {
			t.Errorf("%s: %s: %d after %d writes", name, tc.reason, answer.Code, w.written())
		}
	}
	form := bulkForm(t, w.get(t, editor, bulkPath+"?act=cancel&post=p-1"))
	says(t, "no copies are offered", mainOf(w.send(t, form)), []string{"1 post cancelled"}, []string{"Copy"})
}

// TestSelection verifies which posts of a list can be selected.
func TestSelection(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.put(textPost("p-1", "Scheduled", at(now.Add(time.Hour))))
	w.put(textPost("p-2", "Draft", asDraft))
	w.put(textPost("p-3", "Failed", became(v1alpha1.TargetFailed)))
	boxes := func(page *html.Node) (all, checked int) {
		for _, input := range elements(page, "input") {
			if name, _ := attribute(input, "name"); name == "post" {
				all++
				if _, ok := attribute(input, "checked"); ok {
					checked++
				}
			}
		}
		return all, checked
	}
	page := w.get(t, editor, "/teams/"+acme+"/posts")
	if all, checked := boxes(page); all != 2 || checked != 0 {
		t.Errorf("%d boxes, %d of them checked; want those of the posts that can change", all, checked)
	}
	if all, checked := boxes(w.followLink(t, page, "Select all on this page")); all != 2 || checked != 2 {
		t.Errorf("without scripts, %d of %d boxes are checked", checked, all)
	}
	if all, _ := boxes(w.get(t, viewer, "/teams/"+acme+"/posts")); all != 0 {
		t.Errorf("a viewer sees %d boxes", all)
	}
	if all, _ := boxes(w.get(t, editor, "/teams/"+acme+"/posts?status=failed")); all != 0 {
		t.Errorf("%d failed posts can be selected", all)
	}
}

// TestBulkCancelSeen verifies that posts are canceled only if they have not changed since the user saw them.
func TestBulkCancelSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now), byProvider)
	w.put(textPost("p-1", "One", asDraft))
	w.put(textPost("p-2", "Two", asDraft))
	form := bulkForm(t, w.get(t, editor, bulkPath+"?act=cancel&post=p-1&post=p-2"))
	edited := w.posts[acme+"/p-2"]
	edited.Generation++
	metav1.SetMetaDataAnnotation(&edited.ObjectMeta, v1alpha1.LastAuthorAnnotation, "oidc:vera@example.com")
	says(t, "an edited post stays", mainOf(w.send(t, form)), []string{"1 of 2 posts cancelled", "has changed since you opened it, last by vera@example.com;"}, []string{"oidc:"})
	if w.posts[acme+"/p-2"].Spec.Cancelled {
		t.Error("an unseen post is cancelled")
	}
}

// TestBulkUncopied verifies that a post that is canceled but not copied is reported as such, and can still be copied.
func TestBulkUncopied(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.put(textPost("p-1", "One", at(now.Add(time.Hour))))
	form := url.Values{"act": {"withdraw"}, "post": {"p-1"}, "version-p-1": {bridge.Version(w.posts[acme+"/p-1"])}, "key": {"k"}}
	accounts := w.connections[acme]
	w.connections[acme] = nil
	result := w.send(t, form)
	says(t, "a copy needs an account", mainOf(result), []string{"0 of 1 post withdrawn", "Not completed: 1 post", "Cancelled, but not copied: ", "Copy to new drafts (1)"}, nil)
	if !w.posts[acme+"/p-1"].Spec.Cancelled || len(w.posts) != 1 {
		t.Errorf("got %d posts", len(w.posts))
	}
	w.connections[acme] = accounts
	says(t, "the copy is made later", mainOf(w.send(t, bulkForm(t, result))), []string{"1 post copied to new drafts"}, nil)
	says(t, "and once, if the first form is sent again", mainOf(w.send(t, form)), []string{"1 post withdrawn and copied"}, nil)
	if len(w.posts) != 2 {
		t.Errorf("got %d posts, want the cancelled one and its copy", len(w.posts))
	}
}

// TestBulkMoveOddHours verifies that a post is not moved to a time of day that its new day lacks or has twice.
func TestBulkMoveOddHours(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(time.Date(2026, 10, 1, 9, 0, 0, 0, time.UTC)))
	w.put(textPost("p-1", "Autumn", at(time.Date(2026, 10, 24, 0, 30, 0, 0, time.UTC)))) // 02:30 in Berlin
	w.put(textPost("p-2", "Spring", at(time.Date(2027, 3, 27, 1, 30, 0, 0, time.UTC))))  // 02:30 in Berlin
	for name, tc := range map[string]struct {
		reason, query string
		want          []string
	}{
		"Twice":  {"clocks go back: the time is ambiguous", "days=1&post=p-1", []string{"Not moved: 1 post", "02:30 comes twice in Berlin on 25 October 2026"}},
		"Never":  {"clocks go forward: the time does not exist", "days=1&post=p-2", []string{"Not moved: 1 post", "here is no 02:30 in Berlin on 28 March 2027"}},
		"Across": {"the day after has the time once", "days=2&post=p-1&post=p-2", []string{"Move 2 posts 2 days later", "26 Oct 2026, 02:30 Berlin", "29 Mar 2027, 02:30 Berlin"}},
	} {
		says(t, name+": "+tc.reason, mainOf(w.inBerlin(t, bulkPath+"?act=move&"+tc.query)), tc.want, nil)
	}
}
