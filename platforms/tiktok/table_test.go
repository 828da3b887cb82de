// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/errordocs"
)

// facts are an error's properties other than its messages.
type facts struct {
	Class   platforms.Class
	Subject platforms.Subject
	AppWide bool
}

// TestTable lists the codes of each row of the table and the errors expected for them.
func TestTable(t *testing.T) {
	const (
		account, app, text, file = platforms.SubjectAccount, platforms.SubjectApp, platforms.SubjectText, platforms.SubjectFile
		permanent                = platforms.ClassPermanent
	)
	tests := []struct {
		reason, code, message string
		want                  facts
	}{
		{"a token that has ended", "access_token_invalid", "", facts{platforms.ClassRefresh, account, false}},
		{"a missing permission", "scope_not_authorized", "", facts{platforms.ClassReconnect, account, false}},
		{"a missing permission, by its other code", "scope_permission_missed", "", facts{platforms.ClassReconnect, account, false}},
		{"access that was withdrawn", "auth_removed", "", facts{platforms.ClassReconnect, account, false}},
		{"too many calls", "rate_limit_exceeded", "", facts{platforms.ClassRateLimited, account, false}},
		{"an outage of TikTok", "internal_error", "", facts{platforms.ClassTransient, "", false}},
		{"an outage of TikTok with a token", "server_error", "", facts{platforms.ClassTransient, "", false}},
		{"an outage for tokens", "temporarily_unavailable", "", facts{platforms.ClassTransient, "", false}},
		{"an outage of TikTok with a post", "internal", "", facts{platforms.ClassTransient, "", false}},
		{"the account's posts of a day", "spam_risk_too_many_posts", "", facts{platforms.ClassQuota, account, false}},
		{"the account's drafts", "spam_risk_too_many_pending_share", "", facts{platforms.ClassQuota, account, false}},
		{"the app's user limit only blocks accounts outside it", "reached_active_user_cap", "", facts{platforms.ClassQuota, account, false}},
		{"a banned account", "spam_risk_user_banned_from_posting", "", facts{platforms.ClassRestricted, account, false}},
		{"an account that posts spam", "spam_risk", "", facts{permanent, account, false}},
		{"a caption", "spam_risk_text", "", facts{permanent, text, false}},
		{"an old app on the owner's phone", "app_version_check_failed", "", facts{permanent, account, false}},
		{"an app that is not audited", "unaudited_client_can_only_post_to_private_accounts", "", facts{permanent, app, false}},
		{"a store that is not verified", "url_ownership_unverified", "", facts{permanent, platforms.SubjectInstallation, false}},
		{"an unreachable store", "video_pull_failed", "", facts{platforms.ClassTransient, platforms.SubjectInstallation, false}},
		{"an unreachable store for photos", "photo_pull_failed", "", facts{platforms.ClassTransient, platforms.SubjectInstallation, false}},
		{"a level that the account does not have", "privacy_level_option_mismatch", "", facts{permanent, account, false}},
		{"a file", "invalid_file_upload", "", facts{permanent, file, false}},
		{"a file's format", "file_format_check_failed", "", facts{permanent, file, false}},
		{"a video's length", "duration_check_failed", "", facts{permanent, file, false}},
		{"a video's frames", "frame_rate_check_failed", "", facts{permanent, file, false}},
		{"a file's size", "picture_size_check_failed", "", facts{permanent, file, false}},
		{"a post that was cancelled", "publish_cancelled", "", facts{permanent, "", false}},
		{"an unknown upload", codeUnknownID, "", facts{permanent, "", false}},
		{"another's upload", codeAnothersID, "", facts{permanent, "", false}},
		{"the sizes of chunks", "invalid_params", "The chunk size is invalid", facts{platforms.ClassTransient, "", false}},
		{"the number of chunks", "invalid_param", "The total chunk count is invalid", facts{platforms.ClassTransient, "", false}},
		{"an error without a documented subject", "invalid_params", "The request parameters are invalid", facts{permanent, "", false}},
		{"the same without an s", "invalid_param", "", facts{permanent, "", false}},
	}
	p := New(Config{}, nil)
	reached := map[*row]bool{}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			var got []*platforms.Error
			if r := callRow(tc.code, tc.message); r != nil {
				reached[r] = true
				got = append(got, p.classify(apiError{status: http.StatusForbidden, code: tc.code, message: tc.message}).Error)
			}
			if r := reasonRow(tc.code); r != nil {
				reached[r] = true
				got = append(got, failedOf(tc.code))
			}
			if len(got) == 0 {
				t.Errorf("%s: no row has it", tc.reason)
			}
			for _, e := range got {
				if diff := cmp.Diff(tc.want, facts{e.Class, e.Subject, e.AppWide}); diff != "" || e.Code != tc.code || e.Unlisted {
					t.Errorf("%s: %+v (-want +got):\n%s", tc.reason, e, diff)
				}
			}
		})
	}
	for i := range table {
		r := &table[i]
		if !reached[r] {
			t.Errorf("no test covers the row %q", r.error.Problem)
		}
		if r.error.Class == permanent && r.error.Remedy == "" {
			t.Errorf("the row %q lacks a remedy", r.error.Problem)
		}
	}
}

// TestErrorTable compares the table with its section of docs/platform-errors.md.
func TestErrorTable(t *testing.T) {
	var rows []errordocs.Row
	for i := range table {
		r := &table[i]
		listed := errordocs.Row{Code: strings.Join(r.codes, ", "), Kind: r.error.Problem, Error: r.error, Source: r.source}
		if r.message != "" {
			listed.Code += ", with " + r.message + " in the message"
		}
		if r.remakes {
			listed.Also = "restarts the upload"
		}
		rows = append(rows, listed)
	}
	errordocs.Check(t, "tiktok", rows)
}
