// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/platforms"
)

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
	progress, finished := holds("IN_PROGRESS"), holds("FINISHED")
	trouble := debug(500, "ProcessingFailedError", true)
	tests := map[string]struct {
		reason, earlier string
		answers         answers
		class           platforms.Class
		asked, notes    []string
	}{
		"taken":              {"the container is noted before its bytes, and after", "", answers{ok, taken, finished}, "", []string{makes, sends, asks}, whole},
		"cut":                {"the host does not say how far it came, so it begins again", "", answers{ok, hangUp, progress, taken, finished}, "", []string{makes, sends, asks, sends, asks}, whole},
		"answer lost":        {"what has arrived is not sent again", "", answers{ok, hangUp, finished, finished}, "", []string{makes, sends, asks, asks}, whole},
		"trouble":            {"it passes, but not at once", "", answers{ok, trouble, progress, trouble}, platforms.ClassTransient, []string{makes, sends, asks, sends}, waiting},
		"retriable":          {"the host's own word is believed", "", answers{ok, debug(400, "Odd", true), progress, taken, finished}, "", []string{makes, sends, asks, sends, asks}, whole},
		"status unknown":     {"without an answer it is not known what to do", "", answers{ok, trouble, says(502, ``)}, platforms.ClassTransient, []string{makes, sends, asks}, waiting},
		"refused once":       {"another container may do", "", answers{ok, debug(400, "PartialRequestError", false), ok, taken, finished}, "", []string{makes, sends, makes, sends, asks}, append([]string{waiting[0]}, whole...)},
		"refused":            {"not for ever", "", answers{ok, debug(400, "FileTooLargeError", false), ok, debug(400, "FileTooLargeError", false)}, platforms.ClassPermanent, []string{makes, sends, makes, sends}, []string{waiting[0], waiting[0]}},
		"limited":            {"a limit is in the graph's words", "", answers{ok, problem(400, 80002, 0)}, platforms.ClassRateLimited, []string{makes, sends}, waiting},
		"limited, 429":       {"or in none", "", answers{ok, says(429, ``)}, platforms.ClassRateLimited, []string{makes, sends}, waiting},
		"dead token":         {"a person must connect again", "", answers{ok, debug(401, "NotAuthorizedError", false)}, platforms.ClassReconnect, []string{makes, sends}, waiting},
		"permission":         {"or grant more", "", answers{ok, debug(403, "NotAuthorizedError", false)}, platforms.ClassReconnect, []string{makes, sends}, waiting},
		"something between":  {"a proxy's words prove nothing", "", answers{ok, says(403, `<html>`)}, platforms.ClassUnknown, []string{makes, sends}, waiting},
		"redirect":           {"a redirect is not followed", "", answers{ok, says(307, ``, "Location", "/elsewhere")}, platforms.ClassUnknown, []string{makes, sends}, waiting},
		"says nothing":       {"an empty success is none", "", answers{ok, says(200, ``)}, platforms.ClassUnknown, []string{makes, sends}, waiting},
		"not taken":          {"nor is a success that says so", "", answers{ok, says(200, `{"success":false}`)}, platforms.ClassUnknown, []string{makes, sends}, waiting},
		"after a crash":      {"the container that waits is filled", waiting[0], answers{progress, taken, finished}, "", []string{asks, sends, asks}, nil},
		"crash after bytes":  {"they had arrived", waiting[0], answers{finished, finished}, "", []string{asks, asks}, nil},
		"lapsed":             {"a new one takes its place", waiting[0], answers{holds("EXPIRED"), holds("EXPIRED"), ok, taken, finished}, "", []string{asks, asks, makes, sends, asks}, whole},
		"waits for nothing":  {"so it does if nothing can be told of the old one", waiting[0], answers{progress, debug(400, "AlreadyUploadedError", false), ok, taken, finished}, "", []string{asks, sends, makes, sends, asks}, whole},
		"trouble, then":      {"the container still waits", waiting[0], answers{progress, trouble, progress, trouble}, platforms.ClassTransient, []string{asks, sends, asks, sends}, nil},
		"unknown, after":     {"without an answer nothing is sent", waiting[0], answers{says(502, ``)}, platforms.ClassTransient, []string{asks}, nil},
		"odd name":           {"an error's name is no sentence", "", answers{ok, debug(400, "see access", false), ok, debug(400, "see access", false)}, platforms.ClassPermanent, []string{makes, sends, makes, sends}, []string{waiting[0], waiting[0]}},
		"long name":          {"nor a story", "", answers{ok, debug(400, strings.Repeat("access", 20), false), ok, debug(400, "Odd", false)}, platforms.ClassPermanent, []string{makes, sends, makes, sends}, []string{waiting[0], waiting[0]}},
		"processing, failed": {"what is wrong with the file shows later", "", answers{ok, taken, broke("2207026")}, platforms.ClassPermanent, []string{makes, sends, asks}, whole},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, server := newInstagram(t, inTurn(tc.answers))
			kept := &diary{}
			job := jobFor("hello", linked, film("film"))
			job.Checkpoint, job.StoreCheckpoint = tc.earlier, kept.keep
			got, err := p.Prepare(t.Context(), job)
			if (got == container) != (tc.class == "") || class(asError(err)) != tc.class {
				t.Errorf("%s: got %q, %v", tc.reason, got, err)
			}
			if err != nil && strings.Contains(err.Error(), "access") && err.Class != platforms.ClassReconnect {
				t.Errorf("the host's own words are not passed on: %v", err)
			}
			if diff := cmp.Diff(tc.asked, server.Paths()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.notes, kept.notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
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
	}, holds("FINISHED")}))
	job := jobFor("hello", linked, film("film"))
	if _, err := p.Prepare(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	h := <-told
	if got := h.Get("Offset") + " of " + h.Get("File_size") + ": " + h.Get("Content-Type"); got != "0 of 4: application/octet-stream" {
		t.Errorf("got %s", got)
	}
}
