// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFaultOnPublish(t *testing.T) {
	tests := []struct {
		name, reason string
		fault        string
		wantStatus   int // 0: the connection is closed without a response
		wantActed    bool
		wantHeader   map[string]string
	}{
		{
			name: "status", reason: "an outage before acting publishes nothing",
			fault: `{"kind":"status","status":503}`, wantStatus: 503,
		},
		{
			name: "status of the platform's own wording", reason: "402 is how X says that the credits are gone",
			fault: `{"kind":"status","status":402}`, wantStatus: 402,
		},
		{
			name: "redirect", reason: "a client that follows it would ask twice",
			fault: `{"kind":"status","status":307}`, wantStatus: 307,
			wantHeader: map[string]string{"Location": "/x/2/tweets"},
		},
		{
			name: "status by default", reason: "what is not said is a plain failure",
			fault: `{"kind":"status"}`, wantStatus: 500,
		},
		{
			name: "drop before", reason: "the connection ends and nothing was done",
			fault: `{"kind":"drop_before"}`,
		},
		{
			name: "drop after", reason: "the connection ends though the post is out: the outcome is unknown to the client",
			fault: `{"kind":"drop_after"}`, wantActed: true,
		},
		{
			name: "error after", reason: "a failure is answered though the post is out",
			fault: `{"kind":"error_after","status":502}`, wantStatus: 502, wantActed: true,
		},
		{
			name: "rate limit", reason: "the headers say when to come back, in whole seconds and never too early",
			fault: `{"kind":"rate_limit","retry_after_s":7}`, wantStatus: 429,
			wantHeader: map[string]string{
				"X-Rate-Limit-Remaining": "0",
				"X-Rate-Limit-Reset":     strconv.FormatInt(newClock().Now().Unix()+8, 10),
			},
		},
		{
			name: "token expired", reason: "the request is refused as with an old token",
			fault: `{"kind":"token_expired"}`, wantStatus: 401,
		},
		{
			name: "token revoked", reason: "the request is refused as with a revoked token",
			fault: `{"kind":"token_revoked"}`, wantStatus: 401,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := start(t, "")
			b.fault(`{"platform":"x","operation":"publish","times":1,` + tt.fault[1:])
			r, err := b.try(http.MethodPost, "/x/2/tweets", demoAccess, "application/json", textBody("hello"))
			if (err != nil) != (tt.wantStatus == 0) || r.status != tt.wantStatus {
				t.Errorf("%s: status %d, error %v, want status %d", tt.reason, r.status, err, tt.wantStatus)
			}
			for name, want := range tt.wantHeader {
				if got := r.header.Get(name); got != want {
					t.Errorf("%s: header %s is %q, want %q", tt.reason, name, got, want)
				}
			}
			if acted := len(b.texts()) == 1; acted != tt.wantActed {
				t.Errorf("%s: acted %v, want %v", tt.reason, acted, tt.wantActed)
			}
			if n := b.calls("publish"); n != 1 {
				t.Errorf("%d calls counted, want 1: faulted requests count", n)
			}
			b.post("afterwards") // the fault is used up
		})
	}
}

func TestFaultMatching(t *testing.T) {
	const status = `"kind":"status","status":503`
	tests := []struct {
		name, reason string
		faults       []string
		want         []int // statuses of identity, publish, list, identity
	}{
		{
			name: "another operation", reason: "a fault waits for its own operation",
			faults: []string{`"operation":"list","times":1,` + status}, want: []int{200, 201, 503, 200},
		},
		{
			name: "any operation", reason: "* matches all, as often as it says",
			faults: []string{`"operation":"*","times":3,` + status}, want: []int{503, 503, 503, 200},
		},
		{
			name: "another account", reason: "a fault for one account leaves the others alone",
			faults: []string{`"operation":"*","times":9,"account":"42",` + status}, want: []int{200, 201, 200, 200},
		},
		{
			name: "this account", reason: "the token tells whose request it is",
			faults: []string{`"operation":"*","times":1,"account":"` + demoID + `",` + status}, want: []int{503, 201, 200, 200},
		},
		{
			name: "one after the other", reason: "of two answers, the one that waited longer comes first",
			faults: []string{
				`"operation":"identity","times":1,` + status, `"operation":"identity","times":1,"kind":"status","status":500`,
			},
			want: []int{503, 201, 200, 500},
		},
		{
			name: "token expired for all", reason: "the token is refused once and works afterwards",
			faults: []string{`"operation":"*","times":1,"kind":"token_expired"`}, want: []int{401, 201, 200, 200},
		},
		{
			name: "without times", reason: "a fault is for one request when it does not say",
			faults: []string{`"operation":"identity",` + status}, want: []int{503, 201, 200, 200},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := start(t, "")
			for _, f := range tt.faults {
				b.fault(`{"platform":"x",` + f + `}`)
			}
			got := []int{
				b.get("/x/2/users/me").status, b.tweet(textBody("hi")).status,
				b.get("/x/2/users/" + demoID + "/tweets").status, b.get("/x/2/users/me").status,
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestTokenFaultsOnRefresh(t *testing.T) {
	tests := []struct {
		name, reason, fault string
		want                int
	}{
		{"expired for all", "an expired access token does not stop a refresh", `"operation":"*","kind":"token_expired"`, 200},
		{"expired refresh token", "named, the refresh token itself is meant", `"operation":"refresh_token","kind":"token_expired"`, 400},
		{"revoked for all", "a revoked grant cannot be refreshed", `"operation":"*","kind":"token_revoked"`, 400},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := start(t, "")
			b.fault(`{"platform":"x",` + tt.fault + `}`)
			r := b.refresh("x-refresh-demo")
			if r.status != tt.want || (tt.want == 400 && r.text("error") != "invalid_request") {
				t.Errorf("%s: %d %s, want %d", tt.reason, r.status, r.body, tt.want)
			}
		})
	}
}

func TestDelayActsThoughTheClientHasGone(t *testing.T) {
	b := start(t, "")
	b.fault(`{"platform":"x","operation":"publish","kind":"delay","delay_ms":5000,"times":1}`)
	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.http.URL+"/x/2/tweets", strings.NewReader(textBody("late")))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+demoAccess)
	req.Header.Set("Content-Type", "application/json")
	gone := make(chan error, 1)
	go func() {
		resp, err := b.client.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		gone <- err
	}()
	<-b.clock.timers
	leave()
	if err := <-gone; err == nil {
		t.Fatal("the client got an answer before the delay was over")
	}
	if got := b.texts(); len(got) != 0 {
		t.Fatalf("posted %q before the delay was over", got)
	}
	b.clock.Step(5 * time.Second)
	b.http.Close() // waits for the handler
	b.listenAgain()
	if diff := cmp.Diff([]string{"late"}, b.texts()); diff != "" {
		t.Errorf("the post must be made although the client has gone (-want +got):\n%s", diff)
	}
}

func TestDelayCombinesWithADrop(t *testing.T) {
	b := start(t, "")
	b.fault(`{"platform":"x","operation":"publish","kind":"drop_after"}`)
	b.fault(`{"platform":"x","operation":"publish","kind":"delay","delay_ms":5000}`)
	done := make(chan error, 1)
	go func() {
		_, err := b.try(http.MethodPost, "/x/2/tweets", demoAccess, "application/json", textBody("slow"))
		done <- err
	}()
	<-b.clock.timers
	b.clock.Step(5 * time.Second)
	if err := <-done; err == nil {
		t.Error("the connection should have been closed")
	}
	if diff := cmp.Diff([]string{"slow"}, b.texts()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCloseEndsDelays(t *testing.T) {
	b := start(t, "")
	b.fault(`{"platform":"x","operation":"publish","kind":"delay","delay_ms":3600000}`)
	done := make(chan error, 1)
	go func() {
		_, err := b.try(http.MethodPost, "/x/2/tweets", demoAccess, "application/json", textBody("never"))
		done <- err
	}()
	<-b.clock.timers
	if err := b.server.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil {
		t.Error("a request that waits when the server closes must be dropped")
	}
}

func TestStaleList(t *testing.T) {
	b := start(t, "")
	old := b.post("old")
	b.clock.Step(10 * time.Second)
	recent := b.post("recent")
	b.fault(`{"platform":"x","operation":"list","kind":"stale_list","delay_ms":5000,"times":1}`)
	if diff := cmp.Diff([]string{old}, b.timeline("")); diff != "" {
		t.Errorf("the faulted listing lags (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{recent, old}, b.timeline("")); diff != "" {
		t.Errorf("the next one does not (-want +got):\n%s", diff)
	}
	b.fault(`{"platform":"x","operation":"*","kind":"stale_list","delay_ms":5000,"times":1}`)
	b.get("/x/2/users/me")
	if diff := cmp.Diff([]string{old}, b.timeline("")); diff != "" {
		t.Errorf("* leaves other operations alone, and their requests do not count (-want +got):\n%s", diff)
	}
}

func TestClearFaults(t *testing.T) {
	b := start(t, "")
	b.fault(`{"platform":"x","operation":"*","kind":"status","status":500,"times":100}`)
	b.control(http.MethodDelete, "/faults", "", http.StatusNoContent)
	if r := b.get("/x/2/users/me"); r.status != http.StatusOK {
		t.Errorf("status %d after the faults were cleared", r.status)
	}
}
