// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// The names of errors that Herald reacts to (lexicons of com.atproto.server and com.atproto.repo).
const (
	expiredToken   = "ExpiredToken"
	invalidToken   = "InvalidToken"
	recordNotFound = "RecordNotFound"
	invalidSwap    = "InvalidSwap"
	blobNotFound   = "BlobNotFound"
)

const newPassword = "create an app password in Bluesky's settings, under Privacy and security, and store it in the credentials Secret as accessToken: <handle>:<app password>"

var (
	malformedToken = platforms.NewError(platforms.ClassReconnect, platforms.SubjectAccount,
		"the access token is not a handle and an app password, separated by a colon", newPassword)
	passwordRevoked = platforms.NewError(platforms.ClassReconnect, platforms.SubjectAccount,
		"Bluesky does not accept the app password: it is wrong or was revoked", newPassword)
)

var tooMany = platforms.NewError(platforms.ClassRateLimited, platforms.SubjectAccount,
	"Bluesky does not accept more calls for the moment", "wait, or post less often")

// row is an error of Bluesky.
type row struct {
	name   string
	error  platforms.Error
	source string
}

const (
	lexiconSession = "lexicon com.atproto.server.createSession"
	lexiconPut     = "lexicon com.atproto.repo.putRecord"
	observedPDS    = "observed on @atproto/pds 0.5.35"
)

func restricted(problem string) platforms.Error {
	return platforms.NewError(platforms.ClassRestricted, platforms.SubjectAccount, problem, "sign in at bsky.app as this account and follow the instructions")
}

// table lists Bluesky's known errors. The messages do not vary between calls.
var table = []row{
	{name: "AuthenticationRequired", error: passwordRevoked, source: observedPDS},
	{name: "AuthMissing", error: passwordRevoked, source: observedPDS},
	{name: expiredToken, error: platforms.NewError(platforms.ClassTransient, "", "Bluesky ended the session of the account", ""), source: observedPDS},
	{name: invalidToken, error: platforms.NewError(platforms.ClassTransient, "", "Bluesky did not accept the session of the account", ""), source: observedPDS},
	{name: "AuthFactorTokenRequired", error: platforms.NewError(platforms.ClassReconnect, platforms.SubjectAccount,
		"Bluesky asks for a code from an e-mail, which it does only for the account's own password", newPassword), source: lexiconSession},
	{name: "AccountTakedown", error: restricted("Bluesky has taken the account down"), source: lexiconSession},
	{name: "AccountDeactivated", error: restricted("the account is deactivated on Bluesky"), source: observedPDS},
	{name: "RepoTakendown", error: restricted("Bluesky has taken the account down"), source: "lexicon com.atproto.sync.getRepo"},
	{name: "RepoDeactivated", error: restricted("the account is deactivated on Bluesky"), source: "lexicon com.atproto.sync.getRepo"},
	{name: "RateLimitExceeded", error: tooMany, source: "Bluesky, \"Rate Limits\""},
	{name: invalidSwap, error: platforms.NewError(platforms.ClassDuplicate, "", "Bluesky already has a post under the key of this one", ""), source: lexiconPut},
	{name: blobNotFound, error: platforms.NewError(platforms.ClassTransient, "", "Bluesky no longer has a file of the post", ""), source: observedPDS},
	{name: "BlobTooLarge", error: platforms.NewError(platforms.ClassPermanent, platforms.SubjectFile, "Bluesky refused a file of the post: it is too large", "use a smaller file"), source: observedPDS},
	{name: "InvalidMimeType", error: platforms.NewError(platforms.ClassPermanent, platforms.SubjectFile, "Bluesky refused a file of the post: it does not support its format", "export the file in another format"), source: observedPDS},
	{name: "PayloadTooLarge", error: platforms.NewError(platforms.ClassPermanent, platforms.SubjectFile, "Bluesky refused a file of the post: it is too large", "use a smaller file"), source: observedPDS},
	{name: "InvalidRequest", error: platforms.NewError(platforms.ClassPermanent, "", "Bluesky refused the request as invalid", ""), source: observedPDS},
}

// answerError is the body of a failed call (AT Protocol, "HTTP API (XRPC)").
type answerError struct {
	Error jsondoc.Text `json:"error"`
}

// errorName returns the name of the error in a response, or "". Only the server's own errors have one, so a response
// from a proxy in front of it has none.
func errorName(resp *transport.Response) string {
	said, _ := jsondoc.Decode[answerError](resp.Body)
	if name := said.Error.String(); text.Consists(name, 1, 64, text.Letters+text.Digits) {
		return name
	}
	return ""
}

// isExpired reports whether the server rejected a call because its session has expired. Such a call had no effect.
func isExpired(resp *transport.Response) bool {
	name := errorName(resp)
	return (resp.Status == http.StatusBadRequest || resp.Status == http.StatusUnauthorized) && (name == expiredToken || name == invalidToken)
}

// classify returns the error for a failed call. refused reports whether the response proves that the call had no
// effect.
func (p *Platform) classify(resp *transport.Response) (failure *platforms.Error, refused bool) {
	cause := fmt.Errorf("HTTP status %d with error %q", resp.Status, errorName(resp))
	if resp.Status >= http.StatusInternalServerError {
		return p.api.Busy(cause), false
	}
	name := errorName(resp)
	for i := range table {
		if table[i].name != name {
			continue
		}
		known := table[i].error
		known.Code, known.Err = name, cause
		if known.Class == platforms.ClassRateLimited {
			known.RetryAt = resetTime(resp.Header, p.config.Clock.Now())
		}
		return &known, true
	}
	if resp.Status == http.StatusTooManyRequests {
		// The response may come from a proxy in front of the server, so it proves nothing.
		limited := tooMany
		limited.RetryAt, limited.Err = resetTime(resp.Header, p.config.Clock.Now()), cause
		return &limited, false
	}
	failure = p.api.Nonsense(resp.Status, cause)
	failure.Code, failure.Unlisted = name, name != ""
	return failure, false
}

// maxWait is the longest pause that Herald accepts from Bluesky, whose longest window is a day.
const maxWait = 24 * time.Hour

// resetTime returns the end of the rate limit reported in a response, or zero.
func resetTime(h http.Header, now time.Time) time.Time {
	seconds, err := strconv.ParseInt(h.Get("RateLimit-Reset"), 10, 64)
	if at := time.Unix(seconds, 0).UTC(); err == nil && at.After(now) && !at.After(now.Add(maxWait)) {
		return at
	}
	return time.Time{}
}

// writeWindow is the shorter of the two windows of an account's write limits.
const writeWindow = time.Hour

// rateLimits returns the limit on posts from a response to putRecord, or nil. Several limits apply, and the server
// reports the one closest to being exhausted ("Rate Limits": points for an account's writes, per hour and per day, and
// calls per IP address in five minutes). The limit on calls does not limit posts.
func rateLimits(h http.Header, now time.Time) []platforms.RateLimit {
	left, err := strconv.Atoi(h.Get("RateLimit-Remaining"))
	most, err2 := strconv.Atoi(h.Get("RateLimit-Limit"))
	_, window, _ := strings.Cut(h.Get("RateLimit-Policy"), ";w=")
	seconds, err3 := strconv.Atoi(window)
	if err != nil || err2 != nil || err3 != nil || left < 0 || most <= 0 || seconds < int(writeWindow/time.Second) {
		return nil
	}
	limit := platforms.RateLimit{Name: platforms.PostsPerWindow, Limit: most / pointsPerPost, Remaining: left / pointsPerPost, ResetsAt: resetTime(h, now)}
	if limit.Remaining == 0 {
		limit.BlockedUntil = limit.ResetsAt
	}
	return []platforms.RateLimit{limit}
}

// pointsPerPost is the number of points that a putRecord costs (packages/pds, com.atproto.repo.putRecord).
const pointsPerPost = 2
