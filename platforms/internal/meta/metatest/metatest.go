// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metatest tests the error tables of Meta's platforms.
package metatest

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/errordocs"
	"github.com/herald-social/herald/platforms/internal/meta"
)

// Want is an error's expected classification.
type Want struct {
	Class   platforms.Class
	Subject platforms.Subject
	// AppWide is set if the error blocks all accounts of the app.
	AppWide bool
	// Waits is set if the error must have a RetryAt.
	Waits bool
}

// Wants shared by many rows.
var (
	Reconnect  = Want{Class: platforms.ClassReconnect, Subject: platforms.SubjectAccount}
	Restricted = Want{Class: platforms.ClassRestricted, Subject: platforms.SubjectAccount, Waits: true}
	Blocked    = Want{Class: platforms.ClassQuota, Subject: platforms.SubjectAccount, Waits: true}
	Limited    = Want{Class: platforms.ClassRateLimited, Subject: platforms.SubjectAccount, Waits: true}
	AppLimit   = Want{Class: platforms.ClassRateLimited, Subject: platforms.SubjectApp, AppWide: true, Waits: true}
	Trouble    = Want{Class: platforms.ClassTransient}
	NotFetched = Want{Class: platforms.ClassTransient, Subject: platforms.SubjectInstallation}
	Duplicate  = Want{Class: platforms.ClassDuplicate}
	Refused    = Want{Class: platforms.ClassPermanent}
	BadText    = Want{Class: platforms.ClassPermanent, Subject: platforms.SubjectText}
	BadFile    = Want{Class: platforms.ClassPermanent, Subject: platforms.SubjectFile}
)

// shared are the expected classifications of the errors that all graphs have in common.
var shared = map[string]Want{
	"-2": Trouble, "-1": Trouble, "1": Trouble, "2": Trouble, "3": Reconnect, "4": AppLimit, "9": Blocked, "10": Reconnect, "17": Limited, "32": Limited,
	"100": Refused, "100/33": Refused, "102": Reconnect, "104": Reconnect, "190": Reconnect, "190/458": Reconnect, "190/459": Reconnect,
	"190/460": Reconnect, "190/463": Reconnect, "190/464": Reconnect, "190/467": Reconnect, "190/492": Reconnect, "200-299": Reconnect,
	"200 API access blocked": {Class: platforms.ClassQuota, Subject: platforms.SubjectApp, AppWide: true, Waits: true},
	"341":                    AppLimit, "368": Blocked, "506": Duplicate, "613": Limited, "80000-80014": Limited,
	"1346003": Refused, "1363047": Trouble, "1366051": Duplicate, "1390008": Blocked, "1404006": Restricted, "1404078": Restricted,
	"1404102": Refused, "1404112": Restricted, "1609010": Trouble, "25/2207050": Restricted, "4854002": Restricted,
	// One account is suspected of spam. The app's other accounts are not affected, although code 4 alone is an app rate
	// limit.
	"4/2207051": Blocked,
}

// meanings describe the kinds, for rows without a Meaning.
var meanings = map[meta.Kind]string{
	meta.KindToken: "the access token is no longer accepted", meta.KindPermission: "a permission is missing",
	meta.KindApp: "the app is blocked", meta.KindQuota: "the 24-hour post quota is used up", meta.KindBlocked: "the account is blocked from posting",
	meta.KindDuplicate: "duplicate of an earlier post", meta.KindContent: "the content violates the platform's rules",
	meta.KindUnavailable: "platform outage",
}

// CheckErrors tests each row of a graph's table against the classification expected for its name, and checks the page
// that documents the table.
func CheckErrors(t *testing.T, platform string, g *meta.Graph, own map[string]Want) {
	t.Helper()
	wants := maps.Clone(shared)
	maps.Copy(wants, own)
	var docs []errordocs.Row
	for i := range g.Errors {
		row := &g.Errors[i]
		want, tested := wants[row.Name()]
		if !tested {
			t.Errorf("no test has the expected classification of the row %s", row.Name())
		}
		delete(wants, row.Name())
		bad := g.Explain(row.Sample(), meta.ThePost)
		t.Run(row.Name(), func(t *testing.T) { check(t, row, bad.Error, want) })
		docs = append(docs, document(row, bad.Error))
	}
	for name := range wants {
		t.Errorf("no row has the tested name %s", name)
	}
	t.Run("unlisted", func(t *testing.T) { checkUnlisted(t, g) })
	errordocs.Check(t, platform, docs)
}

// placeholder matches placeholders left unfilled in a message.
var placeholder = regexp.MustCompile(`\{|%!|…`)

func check(t *testing.T, row *meta.Row, bad *platforms.Error, want Want) {
	t.Helper()
	got := Want{Class: bad.Class, Subject: bad.Subject, AppWide: bad.AppWide, Waits: !bad.RetryAt.IsZero()}
	if got != want {
		t.Errorf("got %+v, want %+v: %v", got, want, bad)
	}
	if bad.Unlisted || bad.Code != row.Sample().Name() {
		t.Errorf("code %q, unlisted %t; the table has it", bad.Code, bad.Unlisted)
	}
	blamesText := strings.Contains(bad.Error(), "change the text") || strings.Contains(bad.Error(), "the caption of")
	if placeholder.MatchString(bad.Error()) || blamesText && bad.Subject != platforms.SubjectText && bad.Class != platforms.ClassDuplicate {
		t.Errorf("says %q", bad.Error())
	}
}

// checkUnlisted responds with codes that are not in the table: the error contains the code and does not blame the
// content.
func checkUnlisted(t *testing.T, g *meta.Graph) {
	t.Helper()
	for _, status := range []int{http.StatusBadRequest, http.StatusForbidden} {
		body := `{"error":{"message":"The caption is bad","code":98765,"error_subcode":9876543}}`
		bad := g.Classify(&transport.Response{Status: status, Header: http.Header{}, Body: []byte(body)}, meta.ThePost)
		want := Want{Class: platforms.ClassPermanent}
		if got := (Want{Class: bad.Class, Subject: bad.Subject, AppWide: bad.AppWide, Waits: !bad.RetryAt.IsZero()}); got != want {
			t.Errorf("got %+v, want %+v: %v", got, want, bad.Error)
		}
		if bad.Code != "98765/9876543" || !bad.Unlisted || !strings.Contains(bad.Problem, bad.Code) || strings.Contains(bad.Remedy, "text") {
			t.Errorf("code %q, unlisted %t: %v", bad.Code, bad.Unlisted, bad.Error)
		}
	}
}

// document converts a row for the error page.
func document(row *meta.Row, bad *platforms.Error) errordocs.Row {
	doc := errordocs.Row{Code: row.Name(), Kind: row.Meaning, Error: *bad, Source: row.Source}
	if doc.Kind == "" {
		doc.Kind = meanings[row.Kind]
	}
	switch {
	case row.Retryable && row.Pause > 0:
		doc.Instead = fmt.Sprintf("retries the rejected call after %s, then %s", row.Pause, errordocs.Does(bad))
	case row.Retryable:
		doc.Instead = "retries the rejected call immediately, then " + errordocs.Does(bad)
	case row.Kind == meta.KindUnavailable:
		doc.Also = "if the publishing call was made, looks up the post first"
	}
	return doc
}
