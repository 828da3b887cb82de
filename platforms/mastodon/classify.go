// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mastodon

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

const newToken = "create an application with the scopes read, write:statuses and write:media in the account's preferences, under Development, and store its access token in the credentials Secret"

var tokenRevoked = platforms.NewError(platforms.ClassReconnect, platforms.SubjectAccount, "the server does not accept the access token", newToken)

var tooMany = platforms.NewError(platforms.ClassRateLimited, platforms.SubjectAccount, "the server does not accept more calls for the moment", "wait, or post less often")

const signIn = "sign in to the server as this account and follow the instructions"

// row is one of Mastodon's error responses. Responses have no codes, so words must be part of the English text; empty
// matches any text with this status.
type row struct {
	status int
	words  string
	error  platforms.Error
	source string
}

func permanent(subject platforms.Subject, problem, remedy string) platforms.Error {
	return platforms.NewError(platforms.ClassPermanent, subject, problem, remedy)
}

const (
	methodStatuses = "methods/statuses"
	methodMedia    = "methods/media"
	postService    = "app/services/post_status_service.rb"
	errorHandling  = "app/controllers/concerns/api/error_handling.rb"
	baseController = "app/controllers/api/base_controller.rb"
)

// table lists Mastodon's error responses, the more specific ones first. The messages do not vary between calls.
var table = []row{
	{http.StatusBadRequest, "", permanent("", "Mastodon refused the request as invalid", ""), errorHandling},
	{http.StatusUnauthorized, "", tokenRevoked, methodStatuses},
	{http.StatusForbidden, "outside the authorized scopes", platforms.NewError(platforms.ClassReconnect, platforms.SubjectAccount, "the access token lacks a permission", newToken), "api/oauth-scopes"},
	{http.StatusForbidden, "Your login", platforms.NewError(platforms.ClassRestricted, platforms.SubjectAccount, "the server has disabled the account's login", signIn), baseController},
	{http.StatusForbidden, "", platforms.NewError(platforms.ClassRestricted, platforms.SubjectAccount, "the server does not allow the account to do this", signIn), errorHandling},
	{http.StatusNotFound, "trying to reply", permanent("", "the previous card of the tree is no longer on Mastodon", "publish the rest of the tree manually"), postService},
	{http.StatusNotFound, "", permanent("", "Mastodon did not find what the request refers to", "check whether the account still exists on its server"), methodStatuses},
	{http.StatusGone, "", platforms.NewError(platforms.ClassRestricted, platforms.SubjectAccount, "the account is suspended on its server", signIn), "methods/accounts"},
	{http.StatusUnprocessableEntity, "already attached to another", platforms.NewError(platforms.ClassDuplicate, "", "Mastodon already has a post with a file of this one", ""), postService},
	{http.StatusUnprocessableEntity, "not finished processing", platforms.NewError(platforms.ClassTransient, platforms.SubjectFile, "Mastodon has not finished processing a file of the post", ""), postService},
	{http.StatusUnprocessableEntity, "character limit", permanent(platforms.SubjectText, "Mastodon refused the text of the post: it is too long for this server", "shorten it"), "app/validators/status_length_validator.rb"},
	{http.StatusUnprocessableEntity, "can't be blank", permanent(platforms.SubjectText, "Mastodon refused the post: it has no text", "write some text"), methodStatuses},
	{http.StatusUnprocessableEntity, "Cannot attach", permanent(platforms.SubjectFile, "Mastodon refused the files of the post: there are too many, or a video is among images", "use up to 4 images, or one video"), postService},
	{http.StatusUnprocessableEntity, "Error processing", permanent(platforms.SubjectFile, "Mastodon could not process a file of the post", "export it again"), methodMedia},
	{http.StatusUnprocessableEntity, "videos are not supported", permanent(platforms.SubjectFile, "Mastodon refused a video: it has too many pixels or frames per second", "export it with a lower resolution"), "app/models/media_attachment.rb"},
	{http.StatusUnprocessableEntity, "File", permanent(platforms.SubjectFile, "Mastodon refused a file of the post: it does not support its format or size", "export the file in another format"), methodMedia},
	{http.StatusUnprocessableEntity, "", permanent("", "Mastodon refused the post as invalid", ""), methodStatuses},
	{http.StatusTooManyRequests, "", tooMany, "api/rate-limits"},
}

// code returns the name of an error response in a post's status and in the documentation.
func (r *row) code() string {
	if r.words == "" {
		return strconv.Itoa(r.status)
	}
	return strconv.Itoa(r.status) + " " + r.words
}

// errorText returns the text of Mastodon's error, or "" if the response is not from Mastodon: a proxy in front of it
// responds with HTML or without a body.
func errorText(resp *transport.Response) string {
	doc, _ := jsondoc.Decode[struct {
		Error jsondoc.Text `json:"error"`
	}](resp.Body)
	return doc.Error.String()
}

// classify returns the error for a failed call. refused reports whether Mastodon itself refused the call.
func (p *Platform) classify(resp *transport.Response) (failure *platforms.Error, refused bool) {
	cause := fmt.Errorf("HTTP status %d", resp.Status)
	words := errorText(resp)
	switch {
	case resp.Status >= http.StatusInternalServerError:
		return p.api.Busy(cause), false
	case words == "" && resp.Status == http.StatusTooManyRequests:
		// The response may come from a proxy in front of the server, so it proves nothing.
		limited := tooMany
		limited.RetryAt, limited.Err = resetTime(resp.Header, p.config.Clock.Now()), cause
		return &limited, false
	case words == "" || resp.Status < http.StatusBadRequest:
		return p.api.Nonsense(resp.Status, cause), false
	}
	for i := range table {
		row := &table[i]
		if row.status != resp.Status || !strings.Contains(words, row.words) {
			continue
		}
		known := row.error
		known.Code, known.Err = row.code(), cause
		if known.Class == platforms.ClassRateLimited {
			known.RetryAt = resetTime(resp.Header, p.config.Clock.Now())
		}
		return &known, true
	}
	failure = p.api.Nonsense(resp.Status, cause)
	failure.Code, failure.Unlisted = strconv.Itoa(resp.Status), true
	return failure, false
}

// maxWait is the longest pause that Herald accepts from a server. The limit on posts covers three hours
// (app/lib/rate_limiter.rb), and administrators may extend it.
const maxWait = 24 * time.Hour

// resetTime returns the end of the rate limit reported in a response, or zero (api/rate-limits).
func resetTime(h http.Header, now time.Time) time.Time {
	at := jsondoc.Text(h.Get("X-RateLimit-Reset")).Time()
	if at.After(now) && !at.After(now.Add(maxWait)) {
		return at
	}
	return time.Time{}
}

// rateLimits returns the limit from the response to a publishing call. Several limits apply, and the server reports the
// one closest to being exhausted (api/rate-limits).
func rateLimits(h http.Header, now time.Time) []platforms.RateLimit {
	left, err := strconv.Atoi(h.Get("X-RateLimit-Remaining"))
	most, err2 := strconv.Atoi(h.Get("X-RateLimit-Limit"))
	if err != nil || err2 != nil || left < 0 || most <= 0 {
		return nil
	}
	limit := platforms.RateLimit{Name: platforms.PostsPerWindow, Limit: most, Remaining: min(left, most), ResetsAt: resetTime(h, now)}
	if left == 0 {
		limit.BlockedUntil = limit.ResetsAt
	}
	return []platforms.RateLimit{limit}
}
