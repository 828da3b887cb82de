// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"fmt"
	"time"

	"github.com/herald-social/herald/platforms"
)

// Row is one of a graph's errors: its name and its classification.
type Row struct {
	// Code identifies the error. Last is the end of a range of codes with the same meaning.
	Code, Last int
	// Subcode refines Code. Zero matches every subcode without a separate row.
	Subcode int
	// Word is an identifier in the message, for errors without a specific code.
	Word string
	Kind Kind
	// Meaning describes this code in words; empty if Kind's description is sufficient.
	Meaning string
	// Error overrides the kind's classification.
	Error *platforms.Error
	// Retryable reports whether a new container may fix the error, immediately or after Pause.
	Retryable bool
	Pause     time.Duration
	// Source is the documentation of the code, or the client that observed it.
	Source string
}

// uniqueSubcodes is the first subcode that has the same meaning under every code. Smaller ones are numbered separately
// for each code ("Handling Errors", Error Subcodes).
const uniqueSubcodes = 1_000_000

// names reports how exactly the row matches an error: 3 for a word, 2 for the subcode, 1 for only the code, and 0 for
// no match.
func (r *Row) names(e *Error) (exactness int) {
	covered := e.Code == r.Code || e.Code > r.Code && e.Code <= r.Last
	switch {
	case r.Word != "":
		if r.Word == e.Word && (covered || r.Code == 0) {
			return 3
		}
	case r.Subcode != 0:
		same := r.Subcode == e.Subcode && (covered || r.Subcode >= uniqueSubcodes)
		// In some responses, the code is such a subcode.
		if same || r.Subcode >= uniqueSubcodes && r.Subcode == e.Code {
			return 2
		}
	case covered && e.Code != 0:
		return 1
	}
	return 0
}

// Name returns the name that the row is looked up by.
func (r *Row) Name() string {
	e := Error{Code: r.Code, Subcode: r.Subcode, Word: r.Word}
	if r.Last != 0 {
		return fmt.Sprintf("%d-%d", r.Code, r.Last)
	}
	return e.Name()
}

// Sample returns an error that matches the row.
func (r *Row) Sample() *Error {
	return &Error{Status: 400, Code: r.Code, Subcode: r.Subcode, Word: r.Word}
}

// Table lists a graph's errors. Among rows that match equally well, the first one applies.
type Table []Row

// find returns an error's row, or nil if the table has none. A nil table means the errors that all graphs share.
func (t Table) find(e *Error) *Row {
	if t == nil {
		t = shared
	}
	var best *Row
	most := 0
	for i := range t {
		if exactness := t[i].names(e); exactness > most {
			best, most = &t[i], exactness
		}
	}
	return best
}

// With returns a table of the given rows followed by those that all graphs share.
func With(own ...Row) Table { return append(Table(own), shared...) }

const (
	handling = "Graph API, \"Handling Errors\""
	limits   = "Graph API, \"Rate Limits\""
	// seen is the source given for undocumented codes.
	seen = "observed by other clients (gitroomhq/postiz-app, Facebook provider)"
)

// shared are the errors that all graphs have in common.
var shared = Table{
	{Code: -2, Kind: KindUnavailable, Source: "Instagram Platform, \"Error Codes\""},
	{Code: -1, Kind: KindUnavailable, Source: "Instagram Platform, \"Error Codes\""},
	{Code: 1, Kind: KindUnavailable, Source: handling},
	{Code: 2, Kind: KindUnavailable, Source: handling},
	{Code: 3, Kind: KindPermission, Meaning: "the app lacks a capability", Source: handling},
	{Code: 4, Kind: KindLimit, Meaning: "app rate limit reached", Source: limits},
	{Code: 9, Kind: KindQuota, Source: "Instagram Platform, \"Error Codes\""},
	{Code: 10, Kind: KindPermission, Source: handling},
	{Code: 17, Kind: KindLimit, Meaning: "user rate limit reached", Source: limits},
	{Code: 32, Kind: KindLimit, Meaning: "Page rate limit reached", Source: limits},
	{Code: 100, Kind: KindOther, Meaning: "a parameter is invalid; the code does not identify which one", Source: handling},
	{Code: codeInvalid, Subcode: subcodeMissing, Kind: KindOther, Meaning: "the object does not exist, or the token cannot access it", Source: "Graph API error message"},
	{Code: 102, Kind: KindToken, Meaning: "the session has expired", Source: handling},
	{Code: 104, Kind: KindToken, Meaning: "the request has no access token", Source: handling},
	{Code: 190, Kind: KindToken, Source: handling},
	{Code: 190, Subcode: 458, Kind: KindToken, Meaning: "the app was removed from the account", Source: handling},
	{Code: 190, Subcode: 459, Kind: KindToken, Meaning: "the user who connected the account must log in to Facebook and complete a security check", Source: handling},
	{Code: 190, Subcode: 460, Kind: KindToken, Meaning: "the password has changed", Source: handling},
	{Code: 190, Subcode: 463, Kind: KindToken, Meaning: "the access token has expired", Source: handling},
	{Code: 190, Subcode: 464, Kind: KindToken, Meaning: "the user who connected the account has not confirmed their own account", Source: handling},
	{Code: 190, Subcode: 467, Kind: KindToken, Meaning: "the access token is invalid", Source: handling},
	{Code: 190, Subcode: 492, Kind: KindToken, Meaning: "the user who connected the account no longer has a role on the Page", Source: handling},
	{Code: 200, Last: 299, Kind: KindPermission, Source: handling},
	{Code: codeBlockedApp, Word: wordBlockedApp, Kind: KindApp, Source: "incident of 2 September 2026: all connections of one app were refused at once"},
	{Code: codeApplicationLimit, Kind: KindLimit, Meaning: "app limit reached", Source: handling},
	{Code: 368, Kind: KindBlocked, Source: handling},
	{Code: 506, Kind: KindDuplicate, Source: handling},
	{Code: 613, Kind: KindLimit, Meaning: "rate limit for this call type reached", Source: limits},
	{Code: 80000, Last: 80014, Kind: KindLimit, Meaning: "business use case rate limit reached", Source: limits},
	{Subcode: 1346003, Kind: KindContent, Source: seen},
	{Subcode: 1363047, Kind: KindUnavailable, Source: seen},
	{Subcode: 1366051, Kind: KindDuplicate, Meaning: "the photos have already been posted", Source: seen},
	{Subcode: 1390008, Kind: KindBlocked, Meaning: "the account posts too frequently", Source: seen},
	{Subcode: 1404006, Kind: KindPerson, Meaning: "the account's owner must complete a security check", Source: seen},
	{Subcode: 1404078, Kind: KindPerson, Meaning: "Page Publishing Authorization is required", Source: seen},
	{Subcode: 1404102, Kind: KindContent, Source: seen},
	{Subcode: 1404112, Kind: KindPerson, Meaning: "the account's owner must confirm their identity", Source: seen},
	{Subcode: 1609010, Kind: KindUnavailable, Source: seen},
	{Code: 25, Subcode: 2207050, Kind: KindPerson, Meaning: "the account is restricted or inactive", Source: "Instagram Platform, \"Error Codes\""},
	{Code: 4, Subcode: 2207051, Kind: KindBlocked, Meaning: "the account is suspected of spam", Source: "Instagram Platform, \"Error Codes\""},
	{Subcode: 4854002, Kind: KindPerson, Meaning: "the account's owner must confirm their identity", Source: seen},
}
