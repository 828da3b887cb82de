// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/internal/archive"
)

// recorded has the same record for every name, or an error. It counts its calls.
type recorded struct {
	request archive.Request
	err     error
	calls   int
}

func (r *recorded) Request(context.Context, archive.Team, string) (archive.Request, error) {
	r.calls++
	return r.request, r.err
}

// TestRecordOfADeletedPost resends a request after its post was deleted. The record of the request distinguishes a used
// key from a new one.
func TestRecordOfADeletedPost(t *testing.T) {
	t.Parallel()
	const warning = "Cannot check whether an Idempotency-Key was used for a deleted object"
	for name, tc := range map[string]struct {
		reason string
		caller bridge.Caller
		key    string
		other  bool // another request had the key
		err    error
		want   string
		says   string
		calls  int
		logged bool
	}{
		"Same":      {"the request takes effect once", caller, "k", false, nil, "CONFLICT", "the post that this Idempotency-Key created, ", 1, false},
		"Form":      {"the web application does not show keys", person, "k", false, nil, "CONFLICT", "this form has already created post ", 1, false},
		"Other":     {"a key belongs to one request", caller, "k", true, nil, "CONFLICT", "was used for another request", 1, false},
		"NoRecord":  {"the key is new", caller, "k", false, archive.ErrNotFound, "", "", 1, false},
		"NoArchive": {"the installation does not have an archive", caller, "k", false, archive.ErrNone, "", "", 1, false},
		"Away":      {"the manager looks the post up before it publishes", caller, "k", false, errors.New("boom"), "", "", 1, true},
		"NoKey":     {"each request without a key is a new post", caller, "", false, nil, "", "", 0, false},
	} {
		var log bytes.Buffer
		p := &posts{stored: map[string]*v1alpha1.Post{}}
		s := service(p, inMemory("acme"))
		in := hello("acme")
		in.IdempotencyKey = tc.key
		first, err := s.CreatePost(t.Context(), tc.caller, in)
		if err != nil {
			t.Fatal(err)
		}
		r := &recorded{err: tc.err}
		r.request.Fingerprint = p.stored[first.ID].Annotations[v1alpha1.RequestAnnotation]
		clear(p.stored)
		if tc.other {
			in.Spec.Targets[0].Caption = "Other"
		}
		s.Requests, s.Log = r, slog.New(slog.NewTextHandler(&log, nil))
		_, err = s.CreatePost(t.Context(), tc.caller, in)
		if code(err) != tc.want || err != nil && !strings.Contains(err.Error(), tc.says) || r.calls != tc.calls {
			t.Errorf("%s: %s: error %v after %d reads, want %q with %q after %d", name, tc.reason, err, r.calls, tc.want, tc.says, tc.calls)
		}
		if logged := strings.Contains(log.String(), warning); logged != tc.logged {
			t.Errorf("%s: %s: logged %q", name, tc.reason, &log)
		}
	}
}

// TestKeyOfAStoppedPost resends a request whose post was deleted during delivery. The message for a user mentions the
// form instead of the key.
func TestKeyOfAStoppedPost(t *testing.T) {
	t.Parallel()
	for want, who := range map[string]bridge.Caller{
		"the post that this Idempotency-Key created, ": caller, "this form has already created post ": person,
	} {
		p := &posts{stored: map[string]*v1alpha1.Post{}}
		s := service(p, inMemory("acme"))
		in := hello("acme")
		in.IdempotencyKey = "k"
		first, err := s.CreatePost(t.Context(), who, in)
		if err != nil {
			t.Fatal(err)
		}
		stopped := p.stored[first.ID].DeepCopy()
		stopped.Status.Phase = v1alpha1.PhaseProcessing
		clear(p.stored)
		s.Archive = archived{post: stopped}
		if _, err := s.CreatePost(t.Context(), who, in); code(err) != "CONFLICT" || !strings.Contains(err.Error(), want+first.ID+", which was deleted") && !strings.Contains(err.Error(), want+first.ID+", was deleted") {
			t.Errorf("error %v, want %q", err, want+first.ID)
		}
	}
}
