// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"net/http"
	"strings"
	"time"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
)

// Failure is a classified error together with the graph's own error.
type Failure struct {
	*platforms.Error

	// GraphError is never nil. It is empty if the graph returned no error.
	GraphError *Error
	// Retryable reports whether a new container may fix the error, immediately or after Pause.
	Retryable bool
	Pause     time.Duration
}

// NewFailure returns a failure without a graph error.
func NewFailure(err *platforms.Error) *Failure { return &Failure{Error: err, GraphError: new(Error)} }

// Classification describes Herald's reaction to an error. Its messages may contain {platform}, {about} for the subject
// of the call, and {error} for the graph's name for the error.
type Classification struct {
	platforms.Error

	// Retryable reports whether a new container may fix the error, immediately or after Pause.
	Retryable bool
	Pause     time.Duration
}

// kinds are the default classifications by kind, which Graph.Kinds overrides. The messages for outages and malformed
// responses are the same as on platforms outside Meta.
var kinds = map[Kind]platforms.Error{
	KindToken: {
		Class: platforms.ClassReconnect, Subject: platforms.SubjectAccount,
		Problem: "{platform} no longer accepts the access token: it has expired or was revoked",
		Remedy:  "connect the account again",
	},
	KindPermission: {
		Class: platforms.ClassReconnect, Subject: platforms.SubjectAccount,
		Problem: "{platform} denies Herald access to this account because a permission is missing",
		Remedy:  "connect the account again and allow publishing",
	},
	KindApp: {
		Class: platforms.ClassQuota, Subject: platforms.SubjectApp,
		Problem: "Meta has blocked Herald's app, so no {platform} account can be used",
		Remedy:  "the administrator must check Meta's app dashboard for the reason",
	},
	KindPerson: {
		Class: platforms.ClassRestricted, Subject: platforms.SubjectAccount,
		Problem: "{platform} has restricted this account (code {error})",
		Remedy:  "open {platform} with this account and follow the instructions",
	},
	KindLimit: {
		Class: platforms.ClassRateLimited, Subject: platforms.SubjectAccount,
		Problem: "this account has reached {platform}'s rate limit",
	},
	KindBlocked: {
		Class: platforms.ClassQuota, Subject: platforms.SubjectAccount,
		Problem: "{platform} has temporarily blocked this account from posting because it suspects spam (code {error})",
		Remedy:  "wait, or post less often",
	},
	KindQuota: {
		Class: platforms.ClassQuota, Subject: platforms.SubjectAccount,
		Problem: "this account has reached {platform}'s 24-hour post limit",
		Remedy:  "wait, or post less often",
	},
	KindDuplicate: {
		Class:   platforms.ClassDuplicate,
		Problem: "{platform} refused the post as a duplicate of an earlier one from this account",
		Remedy:  "if no earlier one exists, change it",
	},
	KindContent: {
		Class:   platforms.ClassPermanent,
		Problem: "{platform} refused the content of the post because it violates the rules (code {error})",
		Remedy:  "change it",
	},
	KindText: {
		Class: platforms.ClassPermanent, Subject: platforms.SubjectText,
		Problem: "{platform} refused the text of {about} (code {error})",
		Remedy:  "change the text",
	},
	KindFile: {
		Class: platforms.ClassPermanent, Subject: platforms.SubjectFile,
		Problem: "{platform} refused a file of {about} (code {error})",
		Remedy:  "change the file",
	},
	KindMedia:    {Class: platforms.ClassTransient, Problem: "{platform} failed to process {about} (code {error})"},
	KindLost:     {Class: platforms.ClassTransient, Problem: "{platform} no longer has the upload for {about} (code {error})"},
	KindNotReady: {Class: platforms.ClassTransient, Problem: "{platform} has not finished preparing {about} (code {error})"},
	KindOther: {
		Class:   platforms.ClassPermanent,
		Problem: "{platform} refused {about} with code {error}, which does not identify the cause",
		Remedy:  "check {platform} for notices about the account, try the same post there, or ask the administrator about the code",
	},
}

// Classify classifies an unsuccessful response. about is the subject of the call.
func (g *Graph) Classify(resp *transport.Response, about string) *Failure {
	graphErr := g.Errors.Parse(resp)
	bad := g.Explain(graphErr, about)
	bad.RetryAt = RetryAt(resp.Header, graphErr.Kind(), g.Clock.Now())
	return bad
}

// ClassifyForAccount is like Classify, for a call that creates something under an account's path. If that path does not
// exist, the token has lost access to the account, and changing the content does not help.
func (g *Graph) ClassifyForAccount(resp *transport.Response, about string) *Failure {
	bad := g.Classify(resp, about)
	if !bad.GraphError.Missing() || !bad.GraphError.Refusal() {
		return bad
	}
	lost := g.Render(Classification{Error: g.byKind(KindPermission)}, bad.GraphError, about)
	lost.Err, lost.Code = bad.GraphError, bad.Code
	return lost
}

// Explain classifies an error that arrived without headers.
func (g *Graph) Explain(graphErr *Error, about string) *Failure {
	graphErr.row = g.Errors.find(graphErr)
	kind := graphErr.Kind()
	meaning := Classification{Error: g.kind(graphErr)}
	if row := graphErr.row; row != nil && graphErr.Status < http.StatusInternalServerError {
		meaning.Retryable, meaning.Pause = row.Retryable, row.Pause
		if row.Error != nil {
			meaning.Error = *row.Error
		}
	}
	bad := g.Render(meaning, graphErr, about)
	bad.Err, bad.Code, bad.Unlisted = graphErr, graphErr.Name(), graphErr.IsUnlisted()
	bad.RetryAt = RetryAt(nil, kind, g.Clock.Now())
	if bad.AppWide = graphErr.isAppWide(); bad.AppWide {
		bad.Subject = platforms.SubjectApp
	}
	return bad
}

// Render fills in a classification's placeholders.
func (g *Graph) Render(m Classification, graphErr *Error, about string) *Failure {
	names := strings.NewReplacer("{platform}", g.Name, "{about}", about, "{error}", graphErr.Name())
	m.Problem, m.Remedy = names.Replace(m.Problem), names.Replace(m.Remedy)
	return &Failure{Error: &m.Error, GraphError: graphErr, Retryable: m.Retryable, Pause: m.Pause}
}

func (g *Graph) kind(graphErr *Error) platforms.Error {
	kind := graphErr.Kind()
	if kind == KindUnavailable {
		return *g.Busy(graphErr)
	}
	if kind == KindNonsense {
		return *g.Nonsense(graphErr.Status, graphErr)
	}
	return g.byKind(kind)
}

func (g *Graph) byKind(kind Kind) platforms.Error {
	if own, ok := g.Kinds[kind]; ok {
		return own
	}
	return kinds[kind]
}
