// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/internal/media/store"
)

// parts is a fake store that takes files in parts. It records its calls, and each fails with its error if it has one.
type parts struct {
	calls                              []string
	beginning, signing, joining, fails error
}

func (p *parts) BeginParts(context.Context, string, string) (string, error) {
	p.calls = append(p.calls, "begin")
	return "u-1", p.beginning
}

func (p *parts) PresignParts(_ context.Context, _, upload string, _ int64) ([]string, time.Time, error) {
	p.calls = append(p.calls, "sign "+upload)
	return []string{"", "https://store/2"}, now.Add(time.Hour), p.signing
}

func (p *parts) JoinParts(_ context.Context, _, upload string, _ int64) error {
	p.calls = append(p.calls, "join "+upload)
	return p.joining
}

func (p *parts) AbortParts(_ context.Context, _, upload string) error {
	p.calls = append(p.calls, "abort "+upload)
	return p.fails
}

// TestCreatePartUpload verifies which files are uploaded in parts, and that nothing is left of an upload that fails.
func TestCreatePartUpload(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason  string
		size    int64
		parts   *parts
		caller  bridge.Caller
		signing error
		inParts bool
		want    string
		calls   []string
	}{
		"Large":       {"a cut connection costs one part", store.PartSize + 1, &parts{}, caller, nil, true, "", []string{"begin", "sign u-1"}},
		"Small":       {"one part is a single request", store.PartSize, &parts{}, caller, nil, false, "", nil},
		"NoParts":     {"the store does not take parts", store.PartSize + 1, nil, caller, nil, false, "", nil},
		"NotBegun":    {"a single request may work", store.PartSize + 1, &parts{beginning: errLost}, caller, nil, false, "", []string{"begin"}},
		"NotSigned":   {"the access key may not list parts, and nobody pays for an upload without them", store.PartSize + 1, &parts{signing: errLost}, caller, nil, false, "", []string{"begin", "sign u-1", "abort u-1"}},
		"NotAborted":  {"the manager removes it later", store.PartSize + 1, &parts{signing: errLost, fails: errLost}, caller, nil, false, "", []string{"begin", "sign u-1", "abort u-1"}},
		"Unavailable": {"the store cannot be used at all", store.PartSize + 1, &parts{beginning: errLost}, caller, errLost, false, "internal", []string{"begin"}},
		"Reads":       {"its scope is read-only", store.PartSize + 1, &parts{}, bridge.Caller{Namespace: caller.Namespace, Scopes: []bridge.Scope{bridge.ScopeRead}}, nil, false, "INSUFFICIENT_SCOPE", nil},
	} {
		f := &files{stored: map[string]*v1alpha1.Media{}, signing: tc.signing}
		s := withFiles(f)
		if tc.parts != nil {
			s.Parts = tc.parts
		}
		in := bridge.CreateMediaUpload{Spec: v1alpha1.MediaSpec{FileName: "a.mp4", MimeType: v1alpha1.MimeMP4, SizeBytes: tc.size}}
		made, inParts, err := s.CreatePartUpload(t.Context(), tc.caller, in)
		if code(err) != tc.want || (inParts != nil) != tc.inParts || (made.UploadURL != "") != (tc.want == "" && !tc.inParts) {
			t.Errorf("%s: %v, %+v, %+v; want %q, in parts: %t (%s)", name, err, made, inParts, tc.want, tc.inParts, tc.reason)
		}
		if inParts != nil && (inParts.Upload != "u-1" || inParts.ID != made.ID || inParts.PartBytes != store.PartSize || len(inParts.URLs) != 2) {
			t.Errorf("%s: %+v (%s)", name, inParts, tc.reason)
		}
		if tc.parts != nil {
			if diff := cmp.Diff(tc.calls, tc.parts.calls); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
			}
		}
	}
}

// TestPartsInLog verifies the log lines about a store that does not accept parts.
func TestPartsInLog(t *testing.T) {
	t.Parallel()
	const file, kept, wrapped = "namespace=team-a media=m", `error="read: connection reset by peer"`, `: read: connection reset by peer"`
	for name, tc := range map[string]struct {
		reason string
		parts  *parts
		logged []string
	}{
		"Large":      {"nothing is wrong", &parts{}, nil},
		"NotBegun":   {"the store has no uploads in parts", &parts{beginning: errLost}, []string{wrapped}},
		"NotSigned":  {"the access key may not list parts", &parts{signing: errLost}, []string{wrapped}},
		"NotAborted": {"the store keeps the parts for some days", &parts{signing: errLost, fails: errLost}, []string{kept, wrapped}},
	} {
		s, log := withFiles(&files{stored: map[string]*v1alpha1.Media{}}), &bytes.Buffer{}
		s.Parts, s.Log = tc.parts, slog.New(slog.NewTextHandler(log, nil))
		in := bridge.CreateMediaUpload{Spec: v1alpha1.MediaSpec{FileName: "a.mp4", MimeType: v1alpha1.MimeMP4, SizeBytes: store.PartSize + 1}}
		if _, _, err := s.CreatePartUpload(t.Context(), caller, in); err != nil {
			t.Errorf("%s: %v (%s)", name, err, tc.reason)
		}
		lines := slices.Collect(strings.Lines(log.String()))
		if !slices.EqualFunc(lines, tc.logged, func(line, want string) bool { return strings.Contains(line, file) && strings.Contains(line, want) }) {
			t.Errorf("%s: logged %q, want %q (%s)", name, lines, tc.logged, tc.reason)
		}
	}
}

// TestBegunUpload verifies how an upload in parts continues and ends.
func TestBegunUpload(t *testing.T) {
	t.Parallel()
	resume := func(ctx context.Context, s *bridge.Service, who bridge.Caller, id string) (string, error) {
		got, err := s.ResumeUpload(ctx, who, id, "u-1")
		return fmt.Sprint(got.ID, " ", got.Upload, " ", len(got.URLs)), err
	}
	finish := func(ctx context.Context, s *bridge.Service, who bridge.Caller, id string) (string, error) {
		return "", s.FinishUpload(ctx, who, id, "u-1")
	}
	abort := func(ctx context.Context, s *bridge.Service, who bridge.Caller, id string) (string, error) {
		return "", s.AbortUpload(ctx, who, id, "u-1")
	}
	phase := func(phase v1alpha1.MediaPhase) func(*v1alpha1.Media) {
		return func(m *v1alpha1.Media) { m.Status.Phase = phase }
	}
	begun, uploaded := phase(v1alpha1.MediaPending), phase(v1alpha1.MediaUploaded)
	leaves := func(m *v1alpha1.Media) { m.DeletionTimestamp = &metav1.Time{Time: now} }
	reader := bridge.Caller{Namespace: caller.Namespace, Scopes: []bridge.Scope{bridge.ScopeRead}}
	for name, tc := range map[string]struct {
		reason string
		do     func(context.Context, *bridge.Service, bridge.Caller, string) (string, error)
		caller bridge.Caller
		id     string
		file   func(*v1alpha1.Media)
		parts  *parts
		// reading and awaiting are the errors of the Kubernetes API.
		reading, awaiting error
		got, want         string
		calls             []string
		awaited           int
	}{
		"Resume":           {"the manager waits as long as the addresses are valid", resume, caller, "m-1", begun, &parts{}, nil, nil, "m-1 u-1 2", "", []string{"sign u-1"}, 1},
		"ResumeUploaded":   {"the response to the end was lost", resume, caller, "m-1", uploaded, &parts{}, nil, nil, "m-1 u-1 0", "", nil, 0},
		"ResumeJoined":     {"the store joined the parts, but the Media does not record it", resume, caller, "m-1", begun, &parts{signing: store.ErrNotFound}, nil, nil, "m-1 u-1 0", "", []string{"sign u-1", "join u-1"}, 0},
		"ResumeNothing":    {"the store has removed the upload", resume, caller, "m-1", begun, &parts{signing: store.ErrNotFound, joining: store.ErrNotFound}, nil, nil, "", "NOT_FOUND", []string{"sign u-1", "join u-1"}, 0},
		"ResumeFails":      {"the store does not respond", resume, caller, "m-1", begun, &parts{signing: errLost}, nil, nil, "", "internal", []string{"sign u-1"}, 0},
		"ResumeUnrecorded": {"the manager would remove the file", resume, caller, "m-1", begun, &parts{}, nil, errLost, "", "internal", []string{"sign u-1"}, 1},
		"Finish":           {"all parts are stored", finish, caller, "m-1", begun, &parts{}, nil, nil, "", "", []string{"join u-1"}, 0},
		"FinishUploaded":   {"the response was lost", finish, caller, "m-1", uploaded, &parts{}, nil, nil, "", "", nil, 0},
		"FinishEarly":      {"parts are missing", finish, caller, "m-1", begun, &parts{joining: store.ErrIncomplete}, nil, nil, "", "CONFLICT", []string{"join u-1"}, 0},
		"FinishNothing":    {"the store has removed the upload", finish, caller, "m-1", begun, &parts{joining: store.ErrNotFound}, nil, nil, "", "NOT_FOUND", []string{"join u-1"}, 0},
		"FinishFails":      {"the store does not respond", finish, caller, "m-1", begun, &parts{joining: errLost}, nil, nil, "", "internal", []string{"join u-1"}, 0},
		"Abort":            {"the store frees the parts", abort, caller, "m-1", begun, &parts{}, nil, nil, "", "", []string{"abort u-1"}, 0},
		"AbortFails":       {"the manager removes it later", abort, caller, "m-1", begun, &parts{fails: errLost}, nil, nil, "", "", []string{"abort u-1"}, 0},
		"AbortExpired":     {"the manager has removed it", abort, caller, "m-1", phase(v1alpha1.MediaExpired), &parts{}, nil, nil, "", "NOT_FOUND", nil, 0},
		"Rejected":         {"its content is wrong", resume, caller, "m-1", phase(v1alpha1.MediaRejected), &parts{}, nil, nil, "", "NOT_FOUND", nil, 0},
		"Leaving":          {"the file is being deleted", resume, caller, "m-1", leaves, &parts{}, nil, nil, "", "NOT_FOUND", nil, 0},
		"Unknown":          {"the file does not exist", resume, caller, "m-2", begun, &parts{}, nil, nil, "", "NOT_FOUND", nil, 0},
		"NoName":           {"no file can have this name", resume, caller, "M/1", begun, &parts{}, errLost, nil, "", "NOT_FOUND", nil, 0},
		"NoParts":          {"the store does not take parts any more", resume, caller, "m-1", begun, nil, nil, nil, "", "NOT_FOUND", nil, 0},
		"Unreadable":       {"the Kubernetes API does not respond", resume, caller, "m-1", begun, &parts{}, errLost, nil, "", "internal", nil, 0},
		"Reads":            {"its scope is read-only", resume, reader, "m-1", begun, &parts{}, nil, nil, "", "INSUFFICIENT_SCOPE", nil, 0},
	} {
		m := &v1alpha1.Media{ObjectMeta: metav1.ObjectMeta{Namespace: caller.Namespace, Name: "m-1", UID: "m"}, Spec: v1alpha1.MediaSpec{SizeBytes: 2 * store.PartSize}}
		tc.file(m)
		f := &files{stored: map[string]*v1alpha1.Media{"m-1": m}, reading: tc.reading, awaiting: tc.awaiting}
		s := withFiles(f)
		if tc.parts != nil {
			s.Parts = tc.parts
		}
		got, err := tc.do(t.Context(), s, tc.caller, tc.id)
		if code(err) != tc.want || err == nil && got != tc.got || len(f.awaited) != tc.awaited {
			t.Errorf("%s: %q, %v, %d deadlines; want %q, %q, %d (%s)", name, got, err, len(f.awaited), tc.got, tc.want, tc.awaited, tc.reason)
		}
		if tc.want == "NOT_FOUND" && !strings.Contains(err.Error(), "upload the file again") {
			t.Errorf("%s: %v does not name the remedy (%s)", name, err, tc.reason)
		}
		if tc.parts != nil {
			if diff := cmp.Diff(tc.calls, tc.parts.calls); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
			}
		}
	}
}
