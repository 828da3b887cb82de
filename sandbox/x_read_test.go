// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTimelineRanges(t *testing.T) {
	b := start(t, "")
	var ids []string
	for i := range 12 {
		ids = append(ids, b.post(fmt.Sprintf("post %d", i)))
		b.clock.Step(time.Second)
	}
	newest := slices.Clone(ids)
	slices.Reverse(newest)
	tests := []struct {
		name, query string
		want        []string
	}{
		{"ten by default", "", newest[:10]},
		{"five", "?max_results=5", newest[:5]},
		{"all", "?max_results=100", newest},
		{"since an id, without it", "?since_id=" + ids[8], newest[:3]},
		{"since an id that is not one of theirs", "?since_id=1", newest[:10]},
		{"nothing", "?since_id=" + ids[11], []string{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, b.timeline(tt.query)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTimelinePages(t *testing.T) {
	b := start(t, "")
	var ids []string
	for i := range 12 {
		ids = append([]string{b.post(fmt.Sprintf("post %d", i))}, ids...)
	}
	var got []string
	token := ""
	for page := range 3 {
		r := b.get("/x/2/users/" + demoID + "/tweets?max_results=5" + token)
		for _, post := range r.list("data") {
			object, _ := post.(map[string]any)
			id, _ := object["id"].(string)
			got = append(got, id)
		}
		next := r.text("meta", "next_token")
		if (next == "") != (page == 2) {
			t.Fatalf("page %d: next_token %q", page, next)
		}
		token = "&pagination_token=" + next
	}
	if diff := cmp.Diff(ids, got); diff != "" {
		t.Errorf("the pages together are the timeline (-want +got):\n%s", diff)
	}
}

func TestTimelineRefusals(t *testing.T) {
	b := start(t, "")
	tests := []struct{ query, wantIn string }{
		{"?max_results=4", "max_results"},
		{"?max_results=101", "max_results"},
		{"?max_results=many", "max_results"},
		{"?since_id=abc", "since_id"},
		{"?since_id=-1", "since_id"},
		{"?exclude=quotes", "exclude"},
		{"?tweet.fields=colour", "tweet.fields"},
		{"?pagination_token=made-up", "pagination_token"},
		{"?count=5", "[count] is not one of"},
	}
	for _, tt := range tests {
		r := b.get("/x/2/users/" + demoID + "/tweets" + tt.query)
		if r.status != http.StatusBadRequest || !strings.Contains(r.body, tt.wantIn) || !strings.Contains(r.text("type"), "invalid-request") {
			t.Errorf("%s: %d %s", tt.query, r.status, r.body)
		}
	}
}

func TestTimelineOfOthers(t *testing.T) {
	b := start(t, "")
	b.post("hello")
	other := b.control(http.MethodPut, "/accounts/x/2", "", http.StatusCreated).text("data", "access_token")
	read := func(id string) reply { return b.call(http.MethodGet, "/x/2/users/"+id+"/tweets", other, "", "") }
	if r := read(demoID); len(r.list("data")) != 1 {
		t.Errorf("a public account: %d %s", r.status, r.body)
	}
	b.control(http.MethodPut, "/accounts/x/"+demoID, `{"private":true}`, http.StatusOK)
	if r := read(demoID); r.at("data") != nil || !strings.Contains(r.body, "not-authorized-for-resource") {
		t.Errorf("a private account: %d %s", r.status, r.body)
	}
	if r := read("999"); r.at("data") != nil || !strings.Contains(r.body, "resource-not-found") {
		t.Errorf("no account: %d %s", r.status, r.body)
	}
	if got := b.timeline(""); len(got) != 1 {
		t.Errorf("its owner sees %v", got)
	}
}

func TestListingLag(t *testing.T) {
	b := start(t, "")
	b.control(http.MethodPut, "/accounts/x/"+demoID, `{"listing_lag_ms":30000}`, http.StatusOK)
	id := b.post("slow to appear")
	b.clock.Step(30*time.Second - time.Millisecond)
	if got := b.timeline(""); len(got) != 0 {
		t.Errorf("listed before its time: %v", got)
	}
	b.clock.Step(time.Millisecond)
	if diff := cmp.Diff([]string{id}, b.timeline("")); diff != "" {
		t.Errorf("not listed in time (-want +got):\n%s", diff)
	}
}

func TestUsersMe(t *testing.T) {
	b := start(t, "")
	plain := map[string]any{"id": demoID, "name": "Herald Demo", "username": "herald_demo"}
	if diff := cmp.Diff(any(plain), b.get("/x/2/users/me").at("data")); diff != "" {
		t.Errorf("by default (-want +got):\n%s", diff)
	}
	r := b.get("/x/2/users/me?user.fields=id,name,username,profile_image_url,verified,verified_type")
	plain["verified"], plain["verified_type"] = false, "none"
	picture := b.http.URL + "/_assets/avatar/x/" + demoID + ".svg"
	plain["profile_image_url"] = picture
	if diff := cmp.Diff(any(plain), r.at("data")); diff != "" {
		t.Errorf("with fields (-want +got):\n%s", diff)
	}
	image := b.call(http.MethodGet, strings.TrimPrefix(picture, b.http.URL), "", "", "")
	if image.status != http.StatusOK || image.header.Get("Content-Type") != "image/svg+xml" || !strings.Contains(image.body, ">HD<") {
		t.Errorf("the picture: %d %s", image.status, image.body)
	}
	if r := b.get("/x/2/users/me?user.fields=shoe_size"); r.status != http.StatusBadRequest {
		t.Errorf("unknown field: %d %s", r.status, r.body)
	}
}

func TestUnauthorized(t *testing.T) {
	b := start(t, "")
	limited := authorize(b, "tweet.read users.read")
	tests := []struct {
		name, method, path, token, body string
		want                            int
	}{
		{"no token", "GET", "/x/2/users/me", "", "", 401},
		{"unknown token", "GET", "/x/2/users/me", "nonsense", "", 401},
		{"a refresh token instead", "GET", "/x/2/users/me", "x-refresh-demo", "", 401},
		{"no token to post", "POST", "/x/2/tweets", "", `{"text":"a"}`, 401},
		{"scope missing to post", "POST", "/x/2/tweets", limited, `{"text":"a"}`, 403},
		{"scopes enough to read", "GET", "/x/2/users/me", limited, "", 200},
		{"no such path", "GET", "/x/2/nothing", demoAccess, "", 404},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := b.call(tt.method, tt.path, tt.token, "application/json", tt.body)
			if r.status != tt.want || (tt.want != 200 && r.at("status") != float64(tt.want)) {
				t.Errorf("%d %s, want %d as a problem", r.status, r.body, tt.want)
			}
		})
	}
	b.clock.Step(2 * time.Hour)
	if r := b.get("/x/2/users/me"); r.status != http.StatusUnauthorized || r.text("title") != "Unauthorized" || r.text("type") != "about:blank" {
		t.Errorf("after two hours: %d %s", r.status, r.body)
	}
}
