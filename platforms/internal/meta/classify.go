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

// Failure is an error together with what the graph said.
type Failure struct {
	*platforms.Error

	// GraphError is empty, and never nil, where the graph said nothing.
	GraphError *Error
	// Retryable says that another container may mend it at once, or after Pause.
	Retryable bool
	Pause     time.Duration
}

// NewFailure makes a failure about which the graph said nothing.
func NewFailure(err *platforms.Error) *Failure { return &Failure{Error: err, GraphError: new(Error)} }

// Classification is what an error asks for. Its texts may name {platform}, {about},
// which is what the call was about, and {error}, the graph's name of the error.
type Classification struct {
	platforms.Error

	// Retryable says that another container may mend it at once, or after Pause.
	Retryable bool
	Pause     time.Duration
}

// kinds are what errors ask for on every platform that says nothing else.
// Trouble and nonsense are worded as on the platforms that are not Meta's.
var kinds = map[Kind]platforms.Error{
	KindToken: {
		Class: platforms.ClassReconnect, Subject: platforms.SubjectAccount,
		Problem: "{platform} no longer accepts the access token: it has ended or was revoked",
		Remedy:  "connect the account again",
	},
	KindPermission: {
		Class: platforms.ClassReconnect, Subject: platforms.SubjectAccount,
		Problem: "{platform} refuses Herald's access to this account, because a permission is missing",
		Remedy:  "connect the account again and allow publishing",
	},
	KindApp: {
		Class: platforms.ClassQuota, Subject: platforms.SubjectApp,
		Problem: "Meta has blocked Herald's app, so that no account of {platform} can be used",
		Remedy:  "the administrator has to look for the reason in Meta's app dashboard",
	},
	KindPerson: {
		Class: platforms.ClassRestricted, Subject: platforms.SubjectAccount,
		Problem: "{platform} has restricted this account (code {error})",
		Remedy:  "open {platform} with this account and do what it asks for",
	},
	KindLimit: {
		Class: platforms.ClassRateLimited, Subject: platforms.SubjectAccount,
		Problem: "{platform} limits how often this account may be used, and the limit is reached",
	},
	KindBlocked: {
		Class: platforms.ClassQuota, Subject: platforms.SubjectAccount,
		Problem: "{platform} keeps this account from posting for a while, because it suspects spam (code {error})",
		Remedy:  "wait, or post less",
	},
	KindQuota: {
		Class: platforms.ClassQuota, Subject: platforms.SubjectAccount,
		Problem: "this account has reached {platform}'s limit of posts for 24 hours",
		Remedy:  "wait, or post less",
	},
	KindDuplicate: {
		Class:   platforms.ClassDuplicate,
		Problem: "{platform} refused the post as a repetition of an earlier one of this account",
		Remedy:  "if no earlier one exists, change it",
	},
	KindContent: {
		Class:   platforms.ClassPermanent,
		Problem: "{platform} refused what the post says or shows as against its rules (code {error})",
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
	KindMedia:    {Class: platforms.ClassTransient, Problem: "{platform} failed to take {about} (code {error})"},
	KindLost:     {Class: platforms.ClassTransient, Problem: "{platform} no longer has what was uploaded for {about} (code {error})"},
	KindNotReady: {Class: platforms.ClassTransient, Problem: "{platform} is not done with preparing {about} (code {error})"},
	KindOther: {
		Class:   platforms.ClassPermanent,
		Problem: "{platform} refused {about} with code {error}, which does not say what is at fault",
		Remedy:  "look on {platform} what it says of the account, try the same post there, or ask the administrator about the code",
	},
}

// Classify reads an answer that is not a success, for what it asks for. about is
// what the call was about.
func (g *Graph) Classify(resp *transport.Response, about string) *Failure {
	said := g.Errors.Parse(resp)
	bad := g.Explain(said, about)
	bad.RetryAt = RetryAt(resp.Header, said.Kind(), g.Clock.Now())
	return bad
}

// ClassifyForAccount is Classify for a call to a path of an account that makes
// something: if there is no such path, the token has lost the account, and no
// change of the content helps.
func (g *Graph) ClassifyForAccount(resp *transport.Response, about string) *Failure {
	bad := g.Classify(resp, about)
	if !bad.GraphError.Missing() || !bad.GraphError.Refusal() {
		return bad
	}
	lost := g.Render(Classification{Error: g.byKind(KindPermission)}, bad.GraphError, about)
	lost.Err, lost.Code = bad.GraphError, bad.Code
	return lost
}

// Explain says what an error asks for that came without a header.
func (g *Graph) Explain(said *Error, about string) *Failure {
	said.row = g.Errors.find(said)
	kind := said.Kind()
	meaning := Classification{Error: g.kind(said)}
	if row := said.row; row != nil && said.Status < http.StatusInternalServerError {
		meaning.Retryable, meaning.Pause = row.Retryable, row.Pause
		if row.Error != nil {
			meaning.Error = *row.Error
		}
	}
	bad := g.Render(meaning, said, about)
	bad.Err, bad.Code, bad.Unlisted = said, said.Name(), said.IsUnlisted()
	bad.RetryAt = RetryAt(nil, kind, g.Clock.Now())
	if bad.AppWide = said.isAppWide(); bad.AppWide {
		bad.Subject = platforms.SubjectApp
	}
	return bad
}

// Render words a meaning for what a call was about.
func (g *Graph) Render(m Classification, said *Error, about string) *Failure {
	names := strings.NewReplacer("{platform}", g.Name, "{about}", about, "{error}", said.Name())
	m.Problem, m.Remedy = names.Replace(m.Problem), names.Replace(m.Remedy)
	return &Failure{Error: &m.Error, GraphError: said, Retryable: m.Retryable, Pause: m.Pause}
}

// kind is what an error asks for by its kind.
func (g *Graph) kind(said *Error) platforms.Error {
	kind := said.Kind()
	if kind == KindUnavailable {
		return *g.Busy(said)
	}
	if kind == KindNonsense {
		return *g.Nonsense(said.Status, said)
	}
	return g.byKind(kind)
}

// byKind is what the errors of a kind ask for.
func (g *Graph) byKind(kind Kind) platforms.Error {
	if own, ok := g.Kinds[kind]; ok {
		return own
	}
	return kinds[kind]
}
