// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/herald-social/herald/platforms"
)

// TestErrors is the table of Instagram's errors, each as the answer to making a
// container.
func TestErrors(t *testing.T) {
	const (
		reconnect, permanent = platforms.ClassReconnect, platforms.ClassPermanent
		transient, quota     = platforms.ClassTransient, platforms.ClassQuota
		limited, unknown     = platforms.ClassRateLimited, platforms.ClassUnknown
	)
	tests := []struct {
		reason        string
		code, subcode int
		class         platforms.Class
		// again says that another container is tried at once.
		again bool
	}{
		{"the app was removed", 190, 458, reconnect, false},
		{"a checkpoint", 190, 459, reconnect, false},
		{"the password was changed", 190, 460, reconnect, false},
		{"the token has ended", 190, 463, reconnect, false},
		{"the account is unconfirmed", 190, 464, reconnect, false},
		{"the token is invalid", 190, 467, reconnect, false},
		{"no role on the Page", 190, 492, reconnect, false},
		{"a permission is missing", 10, 0, reconnect, false},
		{"a permission is missing", 200, 0, reconnect, false},
		{"a permission is missing", 299, 0, reconnect, false},
		{"a capability is missing", 3, 0, reconnect, false},
		{"the account is unknown to this token", 100, 33, permanent, false},
		{"spam is suspected", 4, 2207051, quota, false},
		{"the day's posts are used up", 9, 2207042, quota, false},
		{"the app's limit", 4, 0, limited, false},
		{"the user's limit", 17, 0, limited, false},
		{"the Page's limit", 32, 0, limited, false},
		{"a custom limit", 613, 0, limited, false},
		{"a business limit", 80001, 0, limited, false},
		{"Instagram's business limit", 80002, 0, limited, false},
		{"fetching took too long", -2, 2207003, transient, true},
		{"what was prepared has expired", -2, 2207020, transient, true},
		{"Instagram has failed", -1, 2207001, transient, true},
		{"making it failed", -1, 2207032, transient, true},
		{"the upload failed", -1, 2207053, transient, true},
		{"the thumbnail lies outside", 1, 2207057, permanent, false},
		{"a child is not found", 24, 2207006, transient, true},
		{"the container is not found", 24, 2207008, transient, false},
		{"the account is restricted", 25, 2207050, permanent, false},
		{"an unknown kind", 100, 2207023, permanent, false},
		{"a carousel of the wrong length", 100, 2207028, permanent, false},
		{"tags", 100, 2207035, permanent, false},
		{"tags", 100, 2207036, permanent, false},
		{"tags", 100, 2207037, permanent, false},
		{"tags", 100, 2207040, permanent, false},
		{"a video of another kind", 352, 2207026, permanent, false},
		{"not fetchable, once more", 9004, 2207052, permanent, true},
		{"not ready", 9007, 2207027, transient, false},
		{"too large", 36000, 2207004, permanent, false},
		{"no JPEG", 36001, 2207005, permanent, false},
		{"too wide or too high", 36003, 2207009, permanent, false},
		{"a long caption", 36004, 2207010, permanent, false},
		{"the video could not be fetched", 100, 2207077, transient, true},
		{"nor uploaded", 100, 2207082, transient, true},
		{"no trial reels", 100, 2207081, permanent, false},
		{"Instagram has trouble", 2, 0, transient, false},
		{"an answer without a code", 0, 0, unknown, false},
	}
	for _, tc := range tests {
		t.Run(fmt.Sprintf("%d %d", tc.code, tc.subcode), func(t *testing.T) {
			p, server := newInstagram(t, problem(400, tc.code, tc.subcode))
			_, err := p.Prepare(t.Context(), jobFor("hello", "", picture("a.jpg")))
			tries := map[bool]int{false: 1, true: 2}[tc.again]
			if class(asError(err)) != tc.class || len(server.Requests()) != tries {
				t.Fatalf("%s: got %v after %v, want class %s after %d", tc.reason, err, server.Paths(), tc.class, tries)
			}
			if waits := tc.class == quota || tc.class == limited; waits != err.RetryAt.After(noon.Add(time.Minute)) {
				t.Errorf("%s: to be tried again at %v", tc.reason, err.RetryAt)
			}
			if strings.Contains(err.Error(), "%!") || strings.Contains(err.Error(), "…") {
				t.Errorf("%s: says %q", tc.reason, err.Error())
			}
		})
	}
}
