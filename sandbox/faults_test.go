// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

func TestFaultOnPublish(t *testing.T) {
	for _, tt := range []struct {
		why, fault string
		want       is // nil: the connection is closed without a response
		posts      int
	}{
		{"an outage before the action publishes nothing", `"kind":"status","status":503`, is{503}, 0},
		{"X reports used credits with 402", `"kind":"status","status":402`, is{402}, 0},
		{"a client that follows a redirect sends the post twice", `"kind":"status","status":307`, is{307, "Location: /x/2/tweets"}, 0},
		{"500 is the default status", `"kind":"status"`, is{500}, 0},
		{"the connection is closed before the action", `"kind":"drop_before"`, nil, 0},
		{"the connection is closed after the action", `"kind":"drop_after"`, nil, 1},
		{"an error is returned after the action", `"kind":"error_after","status":502`, is{502}, 1},
		{
			"the headers give the end of the limit in whole seconds, rounded up", `"kind":"rate_limit","retry_after_s":7`,
			is{429, "X-Rate-Limit-Remaining: 0", fmt.Sprint("X-Rate-Limit-Reset: ", newClock().Now().Unix()+8)},
			0,
		},
		{"the token counts as expired", `"kind":"token_expired"`, is{401}, 0},
		{"the token counts as revoked", `"kind":"token_revoked"`, is{401}, 0},
	} {
		t.Run(tt.why, func(t *testing.T) {
			b := start(t, "")
			b.fault(`{"platform":"x","operation":"publish","times":1,` + tt.fault + `}`)
			r, err := b.try(http.MethodPost, "/x/2/tweets", demoAccess, jsonType, textBody("hello"))
			same(t, "the connection is closed", tt.want == nil, err != nil)
			r.want(t, tt.why, tt.want...)
			same(t, "posts", tt.posts, len(b.texts()))
			same(t, "requests with a fault count", 1, b.callsOn("x", "publish"))
			b.post("afterwards") // the fault is used up
		})
	}
}

func TestFaultMatching(t *testing.T) {
	const status = `"kind":"status","status":503`
	for _, tt := range []struct {
		why    string
		faults []string
		want   []int // statuses of identity, publish, list, identity
	}{
		{"a fault waits for its own operation", []string{`"operation":"list","times":1,` + status}, []int{200, 201, 503, 200}},
		{"* matches all operations, as often as times", []string{`"operation":"*","times":3,` + status}, []int{503, 503, 503, 200}},
		{"another account's fault", []string{`"operation":"*","times":9,"account":"42",` + status}, []int{200, 201, 200, 200}},
		{"the account's own fault", []string{`"operation":"*","times":1,"account":"` + demoID + `",` + status}, []int{503, 201, 200, 200}},
		{
			"the older of two faults comes first",
			[]string{`"operation":"identity","times":1,` + status, `"operation":"identity","times":1,"kind":"status","status":500`},
			[]int{503, 201, 200, 500},
		},
		{"a token works again after a fault", []string{`"operation":"*","times":1,"kind":"token_expired"`}, []int{401, 201, 200, 200}},
		{"a fault is for one request by default", []string{`"operation":"identity",` + status}, []int{503, 201, 200, 200}},
	} {
		b := start(t, "")
		for _, f := range tt.faults {
			b.fault(`{"platform":"x",` + f + `}`)
		}
		same(t, tt.why, tt.want, []int{
			b.get("/x/2/users/me").status, b.tweet(textBody("hi")).status, b.get(timeline).status, b.get("/x/2/users/me").status,
		})
	}
	b := start(t, "")
	b.fault(`{"platform":"x","operation":"*","kind":"status","status":500,"times":100}`)
	b.control(http.MethodDelete, "/faults", "", http.StatusNoContent)
	b.get("/x/2/users/me").want(t, "deleted faults", 200)
}

func TestTokenFaultsOnRefresh(t *testing.T) {
	for fault, want := range map[string]is{
		`"operation":"*","kind":"token_expired"`:             {200}, // an expired access token does not prevent a refresh
		`"operation":"refresh_token","kind":"token_expired"`: {400, "error=invalid_request"},
		`"operation":"*","kind":"token_revoked"`:             {400, "error=invalid_request"},
	} {
		b := start(t, "")
		b.fault(`{"platform":"x",` + fault + `}`)
		b.refresh("x-refresh-demo").want(t, fault, want...)
	}
}

func TestDelayedRequestActsAfterDisconnect(t *testing.T) {
	b := start(t, "")
	b.fault(`{"platform":"x","operation":"publish","kind":"delay","delay_ms":5000,"times":1}`)
	b.disconnect(http.MethodPost, b.http.URL+"/x/2/tweets", []byte(textBody("late")), "Authorization: Bearer "+demoAccess, "Content-Type: "+jsonType)
	same(t, "posts during the delay", 0, len(b.texts()))
	b.clock.Step(5 * time.Second)
	b.http.Close() // waits for the handler
	b.listenAgain()
	same(t, "posts after the delay", []string{"late"}, b.texts())
}

// delayed sends a post whose response is delayed by a fault of the given kind, and returns the channel for its error.
func (b *box) delayed(kind, text string) <-chan error {
	b.t.Helper()
	b.fault(`{"platform":"x","operation":"publish","kind":"` + kind + `","delay_ms":5000}`)
	done := make(chan error, 1)
	go func() {
		_, err := b.try(http.MethodPost, "/x/2/tweets", demoAccess, jsonType, textBody(text))
		done <- err
	}()
	<-b.clock.timers
	return done
}

func TestDelayCombinesWithADrop(t *testing.T) {
	b := start(t, "")
	b.fault(`{"platform":"x","operation":"publish","kind":"drop_after"}`)
	done := b.delayed("delay", "slow")
	b.clock.Step(5 * time.Second)
	if err := <-done; err == nil {
		t.Error("the connection should have been closed")
	}
	same(t, "posts", []string{"slow"}, b.texts())
}

func TestSlowResponseActsImmediately(t *testing.T) {
	b := start(t, "")
	first, second := b.delayed("slow_answer", "first"), b.delayed("slow_answer", "second")
	same(t, "posts before the answers", []string{"first", "second"}, b.texts())
	same(t, "calls in flight at one time", 2, b.countOn("x", "publish", "peak"))
	select {
	case err := <-first:
		t.Errorf("the response arrived early: %v", err)
	default:
	}
	b.clock.Step(5 * time.Second)
	same(t, "the answers", [2]error{}, [2]error{<-first, <-second})
}

func TestCloseEndsDelays(t *testing.T) {
	b := start(t, "")
	done := b.delayed("delay", "never")
	if err := b.server.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil {
		t.Error("a delayed request must be dropped when the server closes")
	}
}

func TestStaleList(t *testing.T) {
	b := start(t, "")
	old := b.post("old")
	b.clock.Step(10 * time.Second)
	recent := b.post("recent")
	b.fault(`{"platform":"x","operation":"list","kind":"stale_list","delay_ms":5000,"times":1}`)
	same(t, "the listing with the fault", []string{old}, b.timeline(""))
	same(t, "the next listing", []string{recent, old}, b.timeline(""))
	b.fault(`{"platform":"x","operation":"*","kind":"stale_list","delay_ms":5000,"times":1}`)
	b.get("/x/2/users/me")
	same(t, "* matches listings only", []string{old}, b.timeline(""))
}
