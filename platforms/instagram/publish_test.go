// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/meta"
	"github.com/herald-social/herald/platforms/platformtest"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
)

// prepared returns a job whose container already exists.
func prepared(scopes string) platforms.Job {
	job := jobFor("hello", scopes, picture("a.jpg"))
	job.Checkpoint = container
	return job
}

func TestPublish(t *testing.T) {
	for scopes, base := range map[string]string{"": "", linked: "/facebook"} {
		permalink := says(200, `{"id":"`+mediaID+`","permalink":"https://www.instagram.com/p/Cabc/","timestamp":"2026-11-20T12:00:01+0000"}`)
		p, server := newInstagram(t, inTurn(answers{made(mediaID), permalink}))
		got := p.Publish(t.Context(), prepared(scopes))
		want := platforms.Result{
			Outcome: platforms.Posted, ExternalID: mediaID, ExternalURL: "https://www.instagram.com/p/Cabc/", PostedAt: noon.Add(time.Second),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("result (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"POST " + base + "/v25.0/42/media_publish", "GET " + base + "/v25.0/" + mediaID}, server.Paths()); diff != "" {
			t.Fatalf("requests (-want +got):\n%s", diff)
		}
		seen := server.Requests()
		if len(seen[0].Form) != 1 || seen[0].Form.Get("creation_id") != container || seen[0].Token != "access" || len(seen[0].Query) != 0 {
			t.Errorf("the publishing request is %+v", seen[0])
		}
	}
}

func TestPublishWithoutPermalink(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"hang up": hangUp, "outage": says(503, `oops`), "dead token": problem(400, 190, 0), "not JSON": says(200, `<html>`),
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := newInstagram(t, inTurn(answers{says(200, `{"id":`+mediaID+`}`), answer}))
			got := p.Publish(t.Context(), prepared(""))
			if got.Outcome != platforms.Posted || got.ExternalID != mediaID || got.Err != nil {
				t.Errorf("a confirmed post is posted, with or without a URL; got %+v", got)
			}
		})
	}
}

func TestVerdicts(t *testing.T) {
	blocked := says(400, `{"error":{"message":"API access blocked.","code":200}}`)
	invalid, lost, notFound := problem(400, 100, 0), problem(400, 100, 33), problem(400, 24, 2207008)
	platformtest.Verdicts(t, newInstagram, prepared(""), "POST /v25.0/42/media_publish", status,
		leavesOpen("code 1", "an unknown error is not proof", problem(400, 1, 0)),
		leavesOpen("code -1", "a failure of Instagram's own is not proof", problem(400, -1, 2207001)),
		leavesOpen("code -2", "a temporary error is not proof", problem(400, -2, 2207020)),
		refuses("duplicate", "an earlier call may have published the container", problem(400, 506, 0), platforms.ClassDuplicate).Unproven(),
		refuses("dead token", "a dead token cannot be renewed", problem(400, 190, 463), platforms.ClassReconnect),
		refuses("permission", "a user has to grant the permission", problem(403, 10, 0), platforms.ClassReconnect),
		refuses("account lost", "the token no longer reaches the account", lost, platforms.ClassReconnect).WithState(containerState("FINISHED")),
		refuses("lost, and published", "a published container is not refused",
			lost, platforms.ClassReconnect).Unproven().WithState(containerState("PUBLISHED")),
		refuses("app blocked", "a block of the app does not concern the account", blocked, platforms.ClassQuota).OfTheApp().Waiting(time.Hour),
		refuses("limit", "without a time, calling soon would prolong the limit",
			problem(403, 4, 0), platforms.ClassRateLimited).OfTheApp().Waiting(5*time.Minute),
		refuses("limit, linked", "a business account has its own limit", problem(400, 80002, 0), platforms.ClassRateLimited).Waiting(5*time.Minute),
		refuses("quota", "the posts of 24 hours are used up", problem(400, 9, 2207042), platforms.ClassQuota).Waiting(time.Hour),
		refuses("spam", "the account has to pause for hours", problem(400, 4, 2207051), platforms.ClassQuota).Waiting(time.Hour),
		refuses("restricted", "a user has to act on Instagram", problem(400, 25, 2207050), platforms.ClassRestricted).Waiting(time.Hour),
		refuses("invalid", "rejected content is never sent again unchanged", invalid, platforms.ClassPermanent).WithState(containerState("FINISHED")),
		refuses("invalid, published", "a published container is not refused", invalid, platforms.ClassPermanent).Unproven().WithState(containerState("PUBLISHED")),
		refuses("invalid, expired", "another container may succeed", invalid, platforms.ClassTransient).WithState(containerState("EXPIRED")),
		refuses("invalid, and no answer", "the answer for a published container is undocumented",
			invalid, platforms.ClassPermanent).Unproven().WithState(containerState("oops")),
		refuses("not ready", "the container will be ready", problem(400, 9007, 2207027), platforms.ClassTransient).WithState(containerState("IN_PROGRESS")),
		refuses("not found yet", "the container will be found", notFound, platforms.ClassTransient).WithState(containerState("FINISHED")),
		refuses("not found, published", "a published container gives the same answer",
			notFound, platforms.ClassTransient).Unproven().WithState(containerState("PUBLISHED")),
		refuses("not found, and no answer", "without the container's state the outcome is unknown",
			notFound, platforms.ClassTransient).Unproven().WithState(containerState("oops")),
		refuses("media not found, and gone", "a new container replaces it",
			problem(400, 24, 2207006), platforms.ClassTransient).WithState(containerState("EXPIRED")))
}

func TestPublishNeedsAContainer(t *testing.T) {
	p, server := newInstagram(t, hangUp)
	for _, part := range []string{"", "items:1,2", "upload:1"} {
		job := prepared("")
		job.Checkpoint = part
		if got := p.Publish(t.Context(), job); got.Outcome != platforms.NotSent || len(server.Requests()) != 0 {
			t.Errorf("%q: got %+v after %v, want no request", part, got, server.Paths())
		}
	}
}

// FuzzJudge checks that any response results in a permitted outcome.
func FuzzJudge(f *testing.F) {
	f.Add(200, `{"id":"17900000000000777"}`)
	f.Add(400, `{"error":{"code":100,"error_subcode":2207028}}`)
	f.Add(400, `{"error":{"code":-1,"error_subcode":2207001}}`)
	f.Add(500, `{"error":{"code":190}}`)
	f.Add(429, ``)
	f.Add(204, ``)
	p := New(Config{Config: platforms.Config{Clock: recorder.Clock{FakeClock: clocktesting.NewFakeClock(noon)}}}, nil)
	f.Fuzz(func(t *testing.T, status int, body string) {
		got := p.own.ResultOf(&transport.Response{Status: status, Body: []byte(body)}, meta.CreatedID)
		success := status >= 200 && status < 300
		switch {
		case got.Outcome == platforms.Posted && (!success || !meta.ValidID(got.ExternalID) || got.Err != nil),
			got.Outcome == platforms.Refused && (status < 400 || status >= 500 || got.Err == nil),
			got.Outcome == platforms.Unknown && (got.Err == nil || got.ExternalID != ""),
			got.Outcome == platforms.NotSent:
			t.Errorf("status %d with %q returned %+v (%v)", status, body, got, got.Err)
		}
	})
}

// debug responds with an error in the upload host's format.
func debug(status int, kind string, retriable bool) http.HandlerFunc {
	word := map[bool]string{true: "true", false: "false"}[retriable]
	return says(status, `{"debug_info":{"retriable":`+word+`,"type":"`+kind+`","message":"access"}}`)
}

func TestUpload(t *testing.T) {
	const (
		makes = "POST /facebook/v25.0/42/media"
		asks  = "GET /facebook/v25.0/" + container
		sends = "POST /rupload/ig-api-upload/v25.0/" + container
	)
	whole, waiting := []string{"upload:" + container, container}, []string{"upload:" + container}
	ok, taken := made(container), says(200, `{"success":true}`)
	progress, finished := containerState("IN_PROGRESS"), containerState("FINISHED")
	trouble := debug(500, "ProcessingFailedError", true)
	tests := map[string]struct {
		reason, earlier string
		answers         answers
		class           platforms.Class
		asked, notes    []string
	}{
		"taken":              {"the container is recorded before and after its upload", "", answers{ok, taken, finished}, "", []string{makes, sends, asks}, whole},
		"cut":                {"the host does not report its progress, so the upload starts over", "", answers{ok, hangUp, progress, taken, finished}, "", []string{makes, sends, asks, sends, asks}, whole},
		"answer lost":        {"a received file is not sent again", "", answers{ok, hangUp, finished, finished}, "", []string{makes, sends, asks, asks}, whole},
		"trouble":            {"the problem is temporary, but may last", "", answers{ok, trouble, progress, trouble}, platforms.ClassTransient, []string{makes, sends, asks, sends}, waiting},
		"retriable":          {"the host's own flag is used", "", answers{ok, debug(400, "Odd", true), progress, taken, finished}, "", []string{makes, sends, asks, sends, asks}, whole},
		"status unknown":     {"without a response the next step is unknown", "", answers{ok, trouble, says(502, ``)}, platforms.ClassTransient, []string{makes, sends, asks}, waiting},
		"refused once":       {"another container may succeed", "", answers{ok, debug(400, "PartialRequestError", false), ok, taken, finished}, "", []string{makes, sends, makes, sends, asks}, append([]string{waiting[0]}, whole...)},
		"refused":            {"not for ever", "", answers{ok, debug(400, "FileTooLargeError", false), ok, debug(400, "FileTooLargeError", false)}, platforms.ClassPermanent, []string{makes, sends, makes, sends}, []string{waiting[0], waiting[0]}},
		"limited":            {"a limit has the graph's format", "", answers{ok, problem(400, 80002, 0)}, platforms.ClassRateLimited, []string{makes, sends}, waiting},
		"limited, 429":       {"a limit without an end", "", answers{ok, says(429, ``)}, platforms.ClassRateLimited, []string{makes, sends}, waiting},
		"dead token":         {"a user must reconnect the account", "", answers{ok, debug(401, "NotAuthorizedError", false)}, platforms.ClassReconnect, []string{makes, sends}, waiting},
		"permission":         {"a user must grant more permissions", "", answers{ok, debug(403, "NotAuthorizedError", false)}, platforms.ClassReconnect, []string{makes, sends}, waiting},
		"a proxy in between": {"a proxy's response is not proof", "", answers{ok, says(403, `<html>`)}, platforms.ClassUnknown, []string{makes, sends}, waiting},
		"redirect":           {"a redirect is not followed", "", answers{ok, says(307, ``, "Location", "/elsewhere")}, platforms.ClassUnknown, []string{makes, sends}, waiting},
		"an empty error":     {"an empty success is not proof", "", answers{ok, says(200, ``)}, platforms.ClassUnknown, []string{makes, sends}, waiting},
		"not taken":          {"success must be true", "", answers{ok, says(200, `{"success":false}`)}, platforms.ClassUnknown, []string{makes, sends}, waiting},
		"after a crash":      {"the container that waits is filled", waiting[0], answers{progress, taken, finished}, "", []string{asks, sends, asks}, nil},
		"crash after bytes":  {"the bytes had arrived", waiting[0], answers{finished, finished}, "", []string{asks, asks}, nil},
		"lapsed":             {"a new container replaces it", waiting[0], answers{containerState("EXPIRED"), containerState("EXPIRED"), ok, taken, finished}, "", []string{asks, asks, makes, sends, asks}, whole},
		"waits for nothing":  {"a container after one with an unknown state waits", waiting[0], answers{progress, debug(400, "AlreadyUploadedError", false), ok, taken, finished}, "", []string{asks, sends, makes, sends, asks}, whole},
		"trouble, then":      {"the container still waits", waiting[0], answers{progress, trouble, progress, trouble}, platforms.ClassTransient, []string{asks, sends, asks, sends}, nil},
		"unknown, after":     {"without a state, no bytes are sent", waiting[0], answers{says(502, ``)}, platforms.ClassTransient, []string{asks}, nil},
		"odd name":           {"an error's name must be a single word", "", answers{ok, debug(400, "see access", false), ok, debug(400, "see access", false)}, platforms.ClassPermanent, []string{makes, sends, makes, sends}, []string{waiting[0], waiting[0]}},
		"long name":          {"an error's name has a maximum length", "", answers{ok, debug(400, strings.Repeat("access", 20), false), ok, debug(400, "Odd", false)}, platforms.ClassPermanent, []string{makes, sends, makes, sends}, []string{waiting[0], waiting[0]}},
		"processing, failed": {"problems of the file are found during processing", "", answers{ok, taken, broke("2207026")}, platforms.ClassPermanent, []string{makes, sends, asks}, whole},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, server := newInstagram(t, inTurn(tc.answers))
			kept := &diary{}
			job := jobFor("hello", linked, film("film"))
			job.Checkpoint, job.StoreCheckpoint = tc.earlier, kept.save
			got, err := p.Prepare(t.Context(), job)
			if (got == container) != (tc.class == "") || class(err) != tc.class {
				t.Errorf("%s: got %q, %v", tc.reason, got, err)
			}
			if err != nil && strings.Contains(err.Error(), "access") && err.Class != platforms.ClassReconnect {
				t.Errorf("the host's own text is in the error: %v", err)
			}
			if diff := cmp.Diff(tc.asked, server.Paths()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.notes, kept.notes); diff != "" {
				t.Errorf("checkpoints (-want +got):\n%s", diff)
			}
			for _, r := range server.Requests() {
				if strings.HasPrefix(r.Path, "/rupload/") && (r.Token != "OAuth access" || !r.Form.Has("film")) {
					t.Errorf("uploaded %+v", r)
				}
			}
		})
	}
}

func TestUploadHeaders(t *testing.T) {
	told := make(chan http.Header, 1)
	p, _ := newInstagram(t, inTurn(answers{made(container), func(w http.ResponseWriter, r *http.Request) {
		told <- r.Header.Clone()
		says(200, `{"success":true}`)(w, r)
	}, containerState("FINISHED")}))
	job := jobFor("hello", linked, film("film"))
	if _, err := p.Prepare(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	h := <-told
	if got := h.Get("Offset") + " of " + h.Get("File_size") + ": " + h.Get("Content-Type"); got != "0 of 4: application/octet-stream" {
		t.Errorf("got %s", got)
	}
}
