// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"net/http"
	"time"

	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// appUsageHeader tells how much of its budget of calls the app has used.
const appUsageHeader = "X-App-Usage"

// Used is how much of its budgets of calls was used up, as an answer tells.
type Used struct {
	// App and Account are percents of the app's budget and of the account's;
	// -1 if they are not told.
	App, Account int
	// ShutOut is for how long the account is taken no calls of; zero if it is not
	// shut out.
	ShutOut time.Duration
}

// UsedOf reads the headers of an answer, a success or not.
func UsedOf(h http.Header) Used {
	used := Used{App: -1, Account: -1, ShutOut: shutOut(h)}
	if doc, ok := jsondoc.Parse([]byte(h.Get(appUsageHeader))); ok {
		used.App = percent(doc)
	}
	doc, _ := jsondoc.Parse([]byte(h.Get(usageHeader)))
	for business := range doc {
		uses, _ := doc.List(business)
		for _, use := range uses {
			used.Account = max(used.Account, percent(use))
		}
	}
	return used
}

// percent is the most used of the budgets that Meta counts.
func percent(use jsondoc.Object) int {
	return max(use.Int("call_count"), use.Int("total_time"), use.Int("total_cputime"), 0)
}

// AppWide tells whether an error is about a limit of the app, and so of all
// accounts that it is connected to.
func (e *Error) AppWide() bool { return e.Code == codeAppLimit || e.Code == codeApplicationLimit }

// The codes of the limits of an app.
const (
	codeAppLimit         = 4
	codeApplicationLimit = 341
)
