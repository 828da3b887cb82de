// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
)

// noon is the time of these tests.
var noon = recorder.Noon

var (
	says   = recorder.Respond
	hangUp = recorder.HangUp
	class  = recorder.ClassOf

	identifies, renews  = platformtest.Identified, platformtest.Renewed
	refuses, leavesOpen = platformtest.Refused, platformtest.Unknown
)

// newX returns a Platform that uses a server with the given response.
func newX(t *testing.T, config Config, answer http.HandlerFunc) (*Platform, *recorder.Server) {
	t.Helper()
	server := recorder.Start(t, answer)
	config.APIURL, config.Clock = server.URL, clocktesting.NewFakeClock(noon)
	return New(config, transport.New(transport.Options{})), server
}

func newPublicX(t *testing.T, answer http.HandlerFunc) (*Platform, *recorder.Server) {
	t.Helper()
	return newX(t, Config{ClientID: "id"}, answer)
}

// snowflake returns the id of a post created at the given time.
func snowflake(at time.Time) string {
	return fmt.Sprint((at.UnixMilli()-snowflakeEpoch)<<snowflakeShift | 7)
}

func jobFor(text string) platforms.Job {
	return platforms.Job{
		Account: platforms.Account{ID: "42", Username: "acme", Token: platforms.Token{Access: "access"}},
		Content: platforms.Content{Category: v1alpha1.CategoryText, Text: text},
	}
}

func TestLimits(t *testing.T) {
	limits := New(Config{}, nil).Capabilities()
	if !limits.Allows(v1alpha1.CategoryText) {
		t.Error("X takes posts of text only")
	}
	if got := limits.CaptionLength("read https://example.com/" + strings.Repeat("a", 300)); got != 28 {
		t.Errorf("an address must count 23, so that the whole is 28; got %d", got)
	}
	tests := map[string]struct {
		reason, caption string
		problem         bool
	}{
		"plain":           {"ordinary text is fine", "We launched.", false},
		"empty":           {"whether a caption may be empty is not X's to say", "", false},
		"byte order mark": {"X refuses U+FEFF anywhere", "We\uFEFF launched.", true},
		"blanks":          {"X refuses a post without a visible character", " \n\t", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := limits.CaptionProblem(tc.caption); (got != "") != tc.problem {
				t.Errorf("%s: got %q", tc.reason, got)
			}
		})
	}
}

func TestSnowflake(t *testing.T) {
	at := noon.Add(123 * time.Millisecond)
	got, ok := snowflakeTime(snowflake(at))
	if !ok || !got.Equal(at) {
		t.Errorf("got %v, %v; want %v", got, ok, at)
	}
	for _, id := range []string{"", "abc", "-5", "12", "99999999999999999999"} {
		if _, ok := snowflakeTime(id); ok {
			t.Errorf("%q is no id of X's, but got a time", id)
		}
	}
	// The bound is exclusive: a post of the same millisecond is above it.
	bound, _ := snowflakeTime(idBefore(at))
	if want := at.Add(-time.Millisecond); !bound.Equal(want) {
		t.Errorf("the bound lies at %v, want %v", bound, want)
	}
	if got := idBefore(time.Time{}); got != "" {
		t.Errorf("before X existed there is no id; got %q", got)
	}
}

// TestCashtags tests the warning for texts that an app on a self-serve plan may not post.
func TestCashtags(t *testing.T) {
	warning := New(Config{}, nil).Capabilities().CaptionWarning
	for text, want := range map[string]bool{
		"": false, "$ACME is up": false, "$ACME and $abc": true, "$ACME $ABC": true, "$ACME, ($ABC) and $BRK.B": true, "a$ACME b$ABC": false,
		"costs $5 and $10": false, "$TOOLONGNAME and $OTHERTOO": false,
	} {
		if got := warning(text); (got != "") != want {
			t.Errorf("%q: got %q", text, got)
		}
	}
}
