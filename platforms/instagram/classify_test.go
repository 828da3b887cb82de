// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/meta/metatest"
)

// TestErrors makes Instagram refuse containers, with each code that makes Herald create another one and with one code
// of each other class. TestErrorTable covers all codes.
func TestErrors(t *testing.T) {
	const (
		reconnect, permanent = platforms.ClassReconnect, platforms.ClassPermanent
		transient, quota     = platforms.ClassTransient, platforms.ClassQuota
		limited, unknown     = platforms.ClassRateLimited, platforms.ClassUnknown
		restricted           = platforms.ClassRestricted
	)
	tests := []struct {
		reason        string
		code, subcode int
		class         platforms.Class
		// tries is the expected number of containers.
		tries int
	}{
		{"the token has ended", 190, 463, reconnect, 1},
		{"a permission is missing", 10, 0, reconnect, 1},
		{"the token has no access to the account", 100, 33, reconnect, 1},
		{"spam is suspected", 4, 2207051, quota, 1},
		{"the app's limit", 4, 0, limited, 1},
		{"the download timed out", -2, 2207003, transient, 2},
		{"the container has expired", -2, 2207020, transient, 2},
		{"internal Instagram error", -1, 2207001, transient, 2},
		{"making it failed", -1, 2207032, transient, 2},
		{"the upload failed", -1, 2207053, transient, 2},
		{"a child is not found", 24, 2207006, transient, 2},
		{"the account is restricted", 25, 2207050, restricted, 1},
		{"a carousel of the wrong length", 100, 2207028, permanent, 2},
		{"Instagram fails to fetch at times", 9004, 2207052, transient, 3},
		{"too large", 36000, 2207004, permanent, 1},
		{"the video could not be fetched", 100, 2207077, transient, 2},
		{"an upload that failed", 100, 2207082, transient, 2},
		{"Instagram has an outage", 2, 0, transient, 1},
		{"a response without a code", 0, 0, unknown, 1},
	}
	for _, tc := range tests {
		t.Run(fmt.Sprintf("%d %d", tc.code, tc.subcode), func(t *testing.T) {
			p, server := newInstagram(t, problem(400, tc.code, tc.subcode))
			_, err := p.Prepare(t.Context(), jobFor("hello", "", picture("a.jpg")))
			if class(err) != tc.class || len(server.Requests()) != tc.tries {
				t.Fatalf("%s: got %v after %v, want class %s after %d", tc.reason, err, server.Paths(), tc.class, tc.tries)
			}
			if waits := tc.class == quota || tc.class == limited || tc.class == restricted; waits != err.RetryAt.After(noon.Add(time.Minute)) {
				t.Errorf("%s: the retry is at %v", tc.reason, err.RetryAt)
			}
			if strings.Contains(err.Error(), "%!") || strings.Contains(err.Error(), "…") {
				t.Errorf("%s: got %q", tc.reason, err.Error())
			}
		})
	}
}

// TestErrorTable tests each row of the table, and compares the table with the page that documents it. To update the
// page, run go test -run ErrorTable -args -update.
func TestErrorTable(t *testing.T) {
	p := New(Config{}, nil)
	notTaken := metatest.Trouble
	want := map[string]metatest.Want{
		"-1/2207001": notTaken, "-2/2207003": notTaken, "24/2207006": notTaken, "24/2207008": notTaken, "-2/2207020": notTaken,
		"9007/2207027": notTaken, "-1/2207032": notTaken, "-1/2207053": notTaken, "2207077": notTaken, "2207082": notTaken,
		"36000/2207004": metatest.BadFile, "36001/2207005": metatest.BadFile, "36003/2207009": metatest.BadFile, "100/2207023": metatest.BadFile,
		"352/2207026": metatest.BadFile, "1/2207057": metatest.BadFile, "36004/2207010": metatest.BadText,
		"100/2207028": metatest.Refused, "100/2207035": metatest.Refused, "100/2207036": metatest.Refused, "100/2207037": metatest.Refused,
		"100/2207040": metatest.Refused, "9/2207042": metatest.Blocked, "9004/2207052": metatest.NotFetched,
		"2207081": {Class: platforms.ClassPermanent, Subject: platforms.SubjectAccount},
	}
	for _, h := range []*host{&p.own, &p.linked} {
		metatest.CheckErrors(t, "instagram", &h.Graph, want)
	}
}
