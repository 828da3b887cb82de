// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials_test

import (
	"strings"
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/credentials"
)

const x = v1alpha1.PlatformX

func apps(id, secret string) credentials.Apps {
	return credentials.Apps{x: {ID: id, Secret: func() string { return secret }}}
}

func TestOf(t *testing.T) {
	own := apps("herald", "the app's secret")
	mark := own.Sign(x, "access", "refresh")
	for name, tc := range map[string]struct {
		reason                string
		asked                 credentials.Apps
		platform              v1alpha1.Platform
		mark, access, refresh string
		want                  string
	}{
		"marked":               {"Herald's own mark names its app", own, x, mark, "access", "refresh", "herald"},
		"another token":        {"a mark is copied to a token of another app in vain", own, x, mark, "other", "refresh", ""},
		"another refresh":      {"the refresh token must belong to the same app", own, x, mark, "access", "other", ""},
		"moved between parts":  {"the delimiter is part of the mark", own, x, mark, "acces", "srefresh", ""},
		"no mark":              {"users' tokens may belong to any app", own, x, "", "access", "refresh", ""},
		"cut mark":             {"all of the mark counts", own, x, mark[:len(mark)-1], "access", "refresh", ""},
		"another platform":     {"the platform has no app", own, v1alpha1.PlatformThreads, mark, "access", "refresh", ""},
		"another app":          {"the installation changed its app", apps("other", "the app's secret"), x, mark, "access", "refresh", ""},
		"another secret":       {"the mark needs the secret", apps("herald", "guessed"), x, mark, "access", "refresh", ""},
		"no secret":            {"a public client does not sign marks", apps("herald", ""), x, mark, "access", "refresh", ""},
		"no secret, no mark":   {"an empty mark is not valid for a public client", apps("herald", ""), x, "", "access", "refresh", ""},
		"no app":               {"an installation without an app does not sign marks", nil, x, "", "access", "refresh", ""},
		"no client id":         {"an app without a client id does not sign marks", apps("", "s"), x, "", "access", "refresh", ""},
		"secret never set":     {"a nil Secret counts as missing", credentials.Apps{x: {ID: "herald"}}, x, "", "access", "refresh", ""},
		"no token, empty mark": {"an empty token does not belong to an app", own, x, "", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.asked.Identify(tc.platform, tc.mark, tc.access, tc.refresh); got != tc.want {
				t.Errorf("%s: it is of app %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestSeal(t *testing.T) {
	own := apps("herald", "the app's secret")
	mark := own.Sign(x, "access-token", "refresh-token")
	if !strings.HasPrefix(mark, "v1.") || len(mark) > 64 {
		t.Errorf("the mark is %q", mark)
	}
	for _, secret := range []string{"access-token", "refresh-token", "the app's secret"} {
		if strings.Contains(mark, secret) {
			t.Errorf("the mark shows %q", secret)
		}
	}
	if again := own.Sign(x, "access-token", "refresh-token"); again != mark {
		t.Errorf("both processes mark the same credentials alike: %q and %q", mark, again)
	}
	if got := own.ID(x); got != "herald" {
		t.Errorf("the app is %q", got)
	}
	for name, none := range map[string]credentials.Apps{"no app": nil, "a public client": apps("herald", "")} {
		if mark := none.Sign(x, "access", ""); mark != "" {
			t.Errorf("%s marks with %q", name, mark)
		}
	}
}
