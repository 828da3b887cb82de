// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/platforms"
)

// adviceUnknown is the remedy for a refusal without a specific cause.
const adviceUnknown = "check whether TikTok's app shows a notice for the account; if not, change the post and post it again"

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

// sanitizeWord returns a word that has the documented form, and "unspecified" for any other text.
func sanitizeWord(s string) string {
	if text.Consists(s, 3, 61, text.Lower+"_") && s[0] != '_' {
		return s
	}
	return "unspecified"
}

type refusal struct {
	*platforms.Error
	// documented reports whether the refusal is documented by TikTok, which means that the request was not
	// executed. Any other response may come from a proxy after TikTok executed the request.
	code       string
	documented bool
}

func (r *refusal) isUnknownID() bool {
	return r.documented && (r.code == codeUnknownID || r.code == codeAnothersID)
}

type apiError struct {
	status        int
	code, message string
	// signed reports whether the response has a log id for TikTok's support, as all of TikTok's own responses do
	// ("Error Handling"). A proxy does not create one.
	signed bool
}

// isFromTikTok reports whether the response comes from TikTok itself, so a refusal in it is reliable. After a timeout
// it is unknown whether the request was executed.
func (s apiError) isFromTikTok() bool {
	documented := []int{http.StatusOK, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests}
	return slices.Contains(documented, s.status) ||
		s.signed && s.status >= http.StatusBadRequest && s.status < http.StatusInternalServerError && s.status != http.StatusRequestTimeout
}

// limitPause is the window over which TikTok counts calls: a sliding minute. No header contains the exact time.
const limitPause = time.Minute

// classify classifies an unsuccessful response. TikTok sends some errors with status 200.
func (p *Platform) classify(s apiError) *refusal {
	cause := fmt.Errorf("HTTP status %d with error %.64q", s.status, s.code)
	out := &refusal{code: s.code}
	found := callRow(s.code, s.message)
	if found == nil && s.status == http.StatusTooManyRequests {
		found = callRow("rate_limit_exceeded", "")
	}
	switch {
	case s.status >= http.StatusInternalServerError:
		out.Error = p.API.Busy(cause)
	case found != nil && s.isFromTikTok():
		known := found.error
		known.Code = s.code
		out.Error = known.Because(cause)
	case s.code != "" && s.code != codeOK && s.signed && s.isFromTikTok():
		out.Error = unlisted(s.code).Because(cause)
	default:
		out.Error = p.API.Nonsense(s.status, cause)
	}
	if out.Class == platforms.ClassRateLimited {
		out.RetryAt = p.Clock.Now().Add(limitPause)
	}
	out.documented = out.Class != platforms.ClassTransient && out.Class != platforms.ClassUnknown
	return out
}

func unlisted(code string) *platforms.Error {
	failure := platforms.Errorf(platforms.ClassPermanent, "TikTok refused the request with the error %s, which Herald does not recognize", sanitizeWord(code)).Advise(adviceUnknown)
	failure.Code, failure.Unlisted = sanitizeWord(code), true
	return failure
}

// classifyAccount classifies the response to an account query. If TikTok rejects the request itself, the account is not
// at fault.
func (p *Platform) classifyAccount(s apiError) *platforms.Error {
	failure := p.classify(s).Error
	if failure.Class == platforms.ClassPermanent {
		failure.Class = platforms.ClassUnknown
	}
	return failure
}

func (p *Platform) rateLimited(cause error) *platforms.Error {
	return p.classify(apiError{status: http.StatusTooManyRequests}).Because(cause)
}
