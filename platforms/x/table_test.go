// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/errordocs"
)

// problemOf returns X's response for a problem of the given kind.
func problemOf(kind, detail string) string {
	return fmt.Sprintf(`{"title":"…","detail":%q,"type":"https://api.x.com/2/problems/%s"}`, detail, kind)
}

// legacy returns a response from X in the old API's format.
func legacy(code int, message string) string {
	return fmt.Sprintf(`{"errors":[{"code":%d,"message":%q}]}`, code, message)
}

// words returns a response from X that contains only words.
func words(detail string) string {
	return fmt.Sprintf(`{"title":"Forbidden","detail":%q,"type":"about:blank","status":403}`, detail)
}

// facts are an error's properties other than its messages.
type facts struct {
	Class    platforms.Class
	Subject  platforms.Subject
	Code     string
	AppWide  bool
	Unlisted bool
}

func factsOf(e *platforms.Error) facts {
	return facts{e.Class, e.Subject, e.Code, e.AppWide, e.Unlisted}
}

// TestTable lists the responses that identify each row of the table.
func TestTable(t *testing.T) {
	const (
		account, app, text, file = platforms.SubjectAccount, platforms.SubjectApp, platforms.SubjectText, platforms.SubjectFile
		restricted, quota        = platforms.ClassRestricted, platforms.ClassQuota
		permanent                = platforms.ClassPermanent
	)
	tests := []struct {
		reason string
		status int
		body   string
		reply  bool
		header []string
		want   facts
		says   string
	}{
		{"an app-only token", 403, problemOf("unsupported-authentication", ""), false, nil, facts{platforms.ClassReconnect, account, "unsupported-authentication", false, false}, "kind of token"},
		{"an app that X has suspended stops all accounts", 401, legacy(416, "Invalid / suspended application"), false, nil, facts{quota, app, "416", true, false}, "suspended Herald's X app"},
		{"an ended token", 401, `{"title":"Unauthorized","type":"about:blank"}`, false, nil, facts{platforms.ClassRefresh, account, "", false, false}, "access token"},
		{"the balance of the app", 402, problemOf("credits", "CreditsDepleted"), false, nil, facts{quota, app, "credits", true, false}, "credits"},
		{"the month's cap of the app", 429, problemOf("usage-capped", ""), false, nil, facts{quota, app, "usage-capped", true, false}, "usage cap"},
		{"the app's day", 429, ``, false, []string{"X-App-Limit-24hour-Remaining", "0"}, facts{quota, app, "", true, false}, "all its accounts"},
		{"the account's day", 429, ``, false, []string{"X-User-Limit-24hour-Remaining", "0"}, facts{quota, account, "", false, false}, "24-hour"},
		{"the account's quarter of an hour", 429, legacy(88, "Rate limit exceeded"), false, nil, facts{platforms.ClassRateLimited, account, "88", false, false}, "rate limit"},
		{"a repetition", 403, legacy(187, "Status is a duplicate."), false, nil, facts{platforms.ClassDuplicate, "", "187", false, false}, "duplicate"},
		{"a repetition, in the text of API v2", 403, words("You are not allowed to create a Tweet with duplicate content."), false, nil, facts{platforms.ClassDuplicate, "", "187", false, false}, "duplicate"},
		{"a locked account", 403, legacy(326, "To protect our users from spam and other malicious activity, this account is temporarily locked."), false, nil, facts{restricted, account, "326", false, false}, "temporarily locked this account"},
		{"a locked account, by the text only", 403, words("Your account is temporarily locked. Please log in to https://x.com to unlock your account."), false, nil, facts{restricted, account, "326", false, false}, "temporarily locked this account"},
		{"a suspended account", 403, legacy(64, "Your account is suspended and is not permitted to access this feature."), false, nil, facts{restricted, account, "64", false, false}, "suspended this account"},
		{"a suspended account, by the text only", 403, words("Your account is suspended and is not permitted to access this feature."), false, nil, facts{restricted, account, "64", false, false}, "suspended this account"},
		{"a suspended account, as a kind", 403, problemOf("user-suspended", ""), false, nil, facts{restricted, account, "user-suspended", false, false}, "suspended this account"},
		{"the account's limit of posts", 403, legacy(185, "User is over daily status update limit."), false, nil, facts{quota, account, "185", false, false}, "may not post more"},
		{"the account's limit of posts, by the text only", 403, words("User is over daily status update limit."), false, nil, facts{quota, account, "185", false, false}, "may not post more"},
		{"an automated post", 403, legacy(226, "This request looks like it might be automated."), false, nil, facts{quota, account, "226", false, false}, "automated"},
		{"an automated post, by its text only", 403, words("This request looks like it might be automated. To protect our users …"), false, nil, facts{quota, account, "226", false, false}, "automated"},
		{"the day's posts and messages", 403, legacy(344, "You have reached your daily limit for sending Tweets and messages."), false, nil, facts{quota, account, "344", false, false}, "daily limit"},
		{"the day's posts and messages, by the text only", 403, words("You have reached your daily limit for sending Tweets and messages."), false, nil, facts{quota, account, "344", false, false}, "daily limit"},
		{"an app in no project", 403, `{"reason":"client-not-enrolled","type":"https://api.twitter.com/2/problems/client-forbidden"}`, false, nil, facts{quota, app, "client-forbidden", true, false}, "not enrolled"},
		{"an app that may not write", 403, legacy(261, "Application cannot perform write actions."), false, nil, facts{quota, app, "261", true, false}, "write"},
		{"a missing permission", 403, problemOf("not-authorized-for-resource", ""), false, nil, facts{platforms.ClassReconnect, account, "not-authorized-for-resource", false, false}, "permission"},
		{"a reply without a mention", 403, words("Reply to this conversation is not allowed because you have not been mentioned or otherwise engaged by the author of the post you are replying to."), true, nil, facts{permanent, app, "433", false, false}, "self-serve"},
		{"a deleted parent", 403, words("You attempted to reply to a Tweet that is deleted or not visible to you."), true, nil, facts{permanent, "", "385", false, false}, "replies to"},
		{"a video that is too long for the account", 403, words("This user is not allowed to post a video longer than 2 minutes."), false, nil, facts{permanent, file, "", false, false}, "video is longer"},
		{"a text that is too long", 403, legacy(186, "Tweet needs to be a bit shorter."), false, nil, facts{permanent, text, "186", false, false}, "longer than"},
		{"an invalid URL", 403, words("The Tweet contains an invalid URL."), false, nil, facts{permanent, text, "407", false, false}, "address"},
		{"an address that X blocks", 403, words("We can't complete this request because this link has been identified by X or our partners as being potentially harmful."), false, nil, facts{permanent, text, "407", false, false}, "address"},
		{"two cashtags", 403, words("You have exceeded the maximum of one cashtag."), false, nil, facts{permanent, text, "", false, false}, "cashtag"},
		{"files that X lost", 400, problemOf("invalid-request", "Your media IDs are invalid."), false, nil, facts{platforms.ClassTransient, file, "invalid-request", false, false}, "uploaded files"},
		{"files that do not go together", 403, legacy(386, "The Tweet exceeds the number of allowed attachment types."), false, nil, facts{permanent, file, "386", false, false}, "these files"},
		{"a parameter that is the text", 400, `{"errors":[{"message":"$.text: is too long"}],"type":"https://api.x.com/2/problems/invalid-request"}`, false, nil, facts{permanent, text, "invalid-request", false, false}, "text of the post"},
		{"a reply that X refuses without a reason", 403, words("You are not permitted to perform this action."), true, nil, facts{permanent, "", "", false, false}, "self-serve"},
		{"a post that X refuses without a reason", 403, words("You are not permitted to perform this action."), false, nil, facts{permanent, "", "", false, false}, "gives no reason"},
		{"a request that X finds invalid", 400, problemOf("invalid-request", "One or more parameters to your request was invalid."), false, nil, facts{permanent, "", "invalid-request", false, false}, "does not identify a part"},
	}
	p := New(Config{}, nil)
	reached := map[*row]bool{}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			header := http.Header{}
			for i := 0; i+1 < len(tc.header); i += 2 {
				header.Set(tc.header[i], tc.header[i+1])
			}
			content := &platforms.Content{}
			if tc.reply {
				content.InReplyTo = "1"
			}
			resp := &transport.Response{Status: tc.status, Header: header, Body: []byte(tc.body)}
			got, refused := p.classifyPost(resp, content)
			if diff := cmp.Diff(tc.want, factsOf(got)); diff != "" || !refused || !strings.Contains(got.Problem, tc.says) {
				t.Errorf("%s: refused %v, %v (-want +got):\n%s", tc.reason, refused, got, diff)
			}
			said, _ := parseProblem(resp.Body)
			reached[rowOf(&answer{Response: resp, said: said, reply: tc.reply})] = true
		})
	}
	for i := range table {
		r := &table[i]
		if !reached[r] {
			t.Errorf("no test covers the row %q", r.error.Problem)
		}
		if r.source == "" || r.error.Class == permanent && r.error.Remedy == "" {
			t.Errorf("the row %q lacks a source or a remedy", r.error.Problem)
		}
	}
}

// TestUnlisted tests responses that match no row: the error must not blame the text or a file, and must contain the
// code.
func TestUnlisted(t *testing.T) {
	tests := []struct {
		reason     string
		status     int
		body, code string
	}{
		{"a code of the old API", 403, legacy(999, "Something new."), "999"},
		{"a kind of problem", 403, problemOf("brand-new", "Something new."), "brand-new"},
		{"only a text, with its status", 403, words("Something new."), "HTTP 403"},
		{"a new code is more precise than a general text", 403, legacy(999, "You are not permitted to perform this action."), "999"},
		{"a name in a form that X does not use is not repeated", 403, problemOf(`x%20y`, "Something new."), "HTTP 403"},
		{"an invalid request of a new kind", 400, problemOf("brand-new", "One or more parameters to your request was invalid."), "brand-new"},
	}
	p := New(Config{}, nil)
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			got, refused := p.classify(&transport.Response{Status: tc.status, Body: []byte(tc.body)})
			want := facts{platforms.ClassPermanent, "", tc.code, false, true}
			if diff := cmp.Diff(want, factsOf(got)); diff != "" || !refused || !strings.Contains(got.Problem, tc.code) {
				t.Errorf("%s: refused %v, %v (-want +got):\n%s", tc.reason, refused, got, diff)
			}
			if strings.Contains(got.Error(), "text") {
				t.Errorf("%s: the text is blamed: %v", tc.reason, got)
			}
		})
	}
}

// TestErrorTable compares the table with its section of docs/platform-errors.md.
func TestErrorTable(t *testing.T) {
	var rows []errordocs.Row
	for i := range table {
		r := &table[i]
		listed := errordocs.Row{Code: r.String(), Kind: r.error.Problem, Error: r.error, Source: r.source}
		if r.remakes {
			listed.Also = "uploads the files again first"
		}
		rows = append(rows, listed)
	}
	errordocs.Check(t, "x", rows)
}

// String returns a sign as shown in docs/platform-errors.md.
func (s sign) String() string {
	var parts []string
	for _, name := range []string{s.code, s.kind} {
		if name != "" {
			parts = append(parts, name)
		}
	}
	for _, words := range s.words {
		parts = append(parts, fmt.Sprintf("%q", words))
	}
	if s.spent != "" {
		parts = append(parts, s.spent+"-remaining: 0")
	}
	if len(parts) == 0 {
		return fmt.Sprintf("HTTP %d", s.status)
	}
	return strings.Join(parts, " with ")
}

// String returns the forms of an error as shown in docs/platform-errors.md.
func (r *row) String() string {
	var forms []string
	for _, s := range r.signs {
		if form := s.String(); !slices.Contains(forms, form) {
			forms = append(forms, form)
		}
	}
	out := strings.Join(forms, ", ")
	if r.replies {
		out += ", for a reply"
	}
	return out
}

var tea = time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC)

// addLimitHeaders adds the headers of one limit.
func addLimitHeaders(h http.Header, prefix string, most, left int, reset time.Time) http.Header {
	h.Set(prefix+"-limit", strconv.Itoa(most))
	h.Set(prefix+"-remaining", strconv.Itoa(left))
	h.Set(prefix+"-reset", strconv.FormatInt(reset.Unix(), 10))
	return h
}

func TestAllowances(t *testing.T) {
	quarter, day := tea.Add(15*time.Minute), tea.Add(24*time.Hour)
	tests := map[string]struct {
		reason string
		header http.Header
		want   []platforms.RateLimit
	}{
		"none": {"missing headers are ignored", http.Header{}, nil},
		"room": {
			"the remaining quota is in every response", addLimitHeaders(http.Header{}, window, 100, 99, quarter),
			[]platforms.RateLimit{{Name: platforms.PostsPerWindow, Limit: 100, Remaining: 99, ResetsAt: quarter}},
		},
		"last post of the day": {
			"the next call would be rejected until the day ends", addLimitHeaders(addLimitHeaders(http.Header{}, window, 100, 50, quarter), userDaily, 300, 0, day),
			[]platforms.RateLimit{
				{Name: platforms.PostsPerWindow, Limit: 100, Remaining: 50, ResetsAt: quarter},
				{Name: platforms.PostsPerDay, Limit: 300, Remaining: 0, ResetsAt: day, BlockedUntil: day},
			},
		},
		"last post of the app": {
			"all accounts share it", addLimitHeaders(http.Header{}, appDaily, 10000, 0, day),
			[]platforms.RateLimit{{Name: platforms.AppPostsPerDay, Limit: 10000, Remaining: 0, ResetsAt: day, BlockedUntil: day, AppWide: true}},
		},
		"reset long ago": {
			"a past time does not block", addLimitHeaders(http.Header{}, window, 100, 0, tea.Add(-time.Hour)),
			[]platforms.RateLimit{{Name: platforms.PostsPerWindow, Limit: 100}},
		},
		"nonsense": {"a limit of zero is invalid", addLimitHeaders(http.Header{}, window, 0, 0, quarter), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, rateLimits(tc.header, tea)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAppWide(t *testing.T) {
	tests := map[string]struct {
		reason string
		status int
		body   string
		header http.Header
		want   bool
		class  platforms.Class
	}{
		"account's window": {"other accounts may continue", 429, `{"title":"Too Many Requests"}`, addLimitHeaders(http.Header{}, window, 100, 0, tea.Add(time.Minute)), false, platforms.ClassRateLimited},
		"account's day":    {"other accounts may continue", 429, `{"title":"Too Many Requests"}`, addLimitHeaders(http.Header{}, userDaily, 300, 0, tea.Add(time.Hour)), false, platforms.ClassQuota},
		"app's day":        {"no account may continue", 429, `{"title":"Too Many Requests"}`, addLimitHeaders(http.Header{}, appDaily, 10000, 0, tea.Add(time.Hour)), true, platforms.ClassQuota},
		"credits":          {"the app has to pay", 402, `{"title":"CreditsDepleted","type":"https://api.x.com/2/problems/credits"}`, http.Header{}, true, platforms.ClassQuota},
		"usage cap":        {"the app's cap", 429, `{"title":"UsageCapExceeded","type":"https://api.x.com/2/problems/usage-capped"}`, http.Header{}, true, platforms.ClassQuota},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := New(Config{Clock: clocktesting.NewFakeClock(tea)}, nil)
			failure, refused := p.classify(&transport.Response{Status: tc.status, Header: tc.header, Body: []byte(tc.body)})
			if failure.AppWide != tc.want || failure.Class != tc.class || !refused {
				t.Errorf("%s: got %+v", tc.reason, failure)
			}
		})
	}
}
