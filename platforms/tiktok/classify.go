// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/herald-social/herald/platforms"
)

// adviceUnknown is the remedy for a refusal whose cause TikTok does not name.
const adviceUnknown = "see whether TikTok's app shows the account a notice; if there is none, change the post and post it again"

// failedOf says why TikTok gave a post up.
func failedOf(reason string) *platforms.Error {
	var failure platforms.Error
	if r := reasonRow(reason); r != nil {
		failure = r.error
		failure.Code = reason
	} else {
		failure = *platforms.Errorf(platforms.ClassPermanent, "TikTok could not process the post (%s)", sanitizeWord(reason)).Advise(adviceUnknown)
		failure.Code, failure.Unlisted = sanitizeWord(reason), true
	}
	return failure.Because(fmt.Errorf("the post failed with reason %.64q", reason))
}

// reasonWord is the form of the documented reasons and codes.
var reasonWord = regexp.MustCompile(`^[a-z][a-z_]{2,60}$`)

// sanitizeWord returns what has the form of a documented word as it is, and nothing else
// that TikTok says.
func sanitizeWord(s string) string {
	if reasonWord.MatchString(s) {
		return s
	}
	return "unspecified"
}

// refusal is an answer that is not a success.
type refusal struct {
	*platforms.Error
	// code is TikTok's word for it, and documented says that the answer is one
	// of those by which TikTok refuses, so that what was asked was not done.
	// Another may come from something between TikTok and us, after TikTok did
	// its part.
	code       string
	documented bool
}

// isUnknownID reports that TikTok does not know the publish id that it was asked about.
func (r *refusal) isUnknownID() bool {
	return r.documented && (r.code == codeUnknownID || r.code == codeAnothersID)
}

// apiError is what an answer that is not a success says of the error.
type apiError struct {
	status        int
	code, message string
	// signed says that the answer has the id by which TikTok's support finds it, as
	// all of TikTok's own have ("Error Handling"). Nothing else between TikTok and us
	// makes one.
	signed bool
}

// isFromTikTok reports whether TikTok itself gave the answer, so that a refusal in it
// holds. A timeout does not tell what was done before it.
func (s apiError) isFromTikTok() bool {
	documented := []int{http.StatusOK, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests}
	return slices.Contains(documented, s.status) ||
		s.signed && s.status >= http.StatusBadRequest && s.status < http.StatusInternalServerError && s.status != http.StatusRequestTimeout
}

// limitPause is how long TikTok counts calls: a sliding window of a minute. It
// sends no header that would say more.
const limitPause = time.Minute

// classify reads an answer that is not a success. TikTok sends some errors with
// status 200.
func (p *Platform) classify(s apiError) *refusal {
	cause := fmt.Errorf("HTTP status %d with error %.64q", s.status, s.code)
	out := &refusal{code: s.code}
	found := callRow(s.code, s.message)
	if found == nil && s.status == http.StatusTooManyRequests {
		found = callRow("rate_limit_exceeded", "")
	}
	switch {
	case s.status >= http.StatusInternalServerError:
		out.Error = p.api.Busy(cause)
	case found != nil && s.isFromTikTok():
		known := found.error
		known.Code = s.code
		out.Error = known.Because(cause)
	case s.code != "" && s.code != codeOK && s.signed && s.isFromTikTok():
		out.Error = unlisted(s.code).Because(cause)
	default:
		out.Error = p.api.Nonsense(s.status, cause)
	}
	if out.Class == platforms.ClassRateLimited {
		out.RetryAt = p.clock.Now().Add(limitPause)
	}
	out.documented = out.Class != platforms.ClassTransient && out.Class != platforms.ClassUnknown
	return out
}

// unlisted is the error of a code that is in no row of the table. The code does not
// say what is at fault, and so the error does not, either.
func unlisted(code string) *platforms.Error {
	failure := platforms.Errorf(platforms.ClassPermanent, "TikTok refused the request with the error %s, which Herald does not know", sanitizeWord(code)).Advise(adviceUnknown)
	failure.Code, failure.Unlisted = sanitizeWord(code), true
	return failure
}

// classifyAccount reads an answer to a question about an account. A refusal of the request
// says nothing about the account.
func (p *Platform) classifyAccount(s apiError) *platforms.Error {
	failure := p.classify(s).Error
	if failure.Class == platforms.ClassPermanent {
		failure.Class = platforms.ClassUnknown
	}
	return failure
}

// rateLimited says that TikTok was called too often.
func (p *Platform) rateLimited(cause error) *platforms.Error {
	return p.classify(apiError{status: http.StatusTooManyRequests}).Because(cause)
}
