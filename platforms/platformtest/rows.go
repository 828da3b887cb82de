// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platformtest

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
)

// Row is a platform's response to a call, and the expected result.
type Row struct {
	name, reason string
	answer       http.HandlerFunc
	want         rowResult
	old          platforms.Token
	state        http.HandlerFunc
}

// rowResult is the result of a call. Wait is how long after noon the call may be repeated.
type rowResult struct {
	Identity platforms.Identity
	Token    platforms.Token
	Outcome  platforms.Outcome
	Class    platforms.Class
	AppWide  bool
	Wait     time.Duration
}

// Refused returns a row that expects an error. A nil answer means that no call is made.
func Refused(name, reason string, answer http.HandlerFunc, class platforms.Class) Row {
	return Row{name: name, reason: reason, answer: answer, want: rowResult{Class: class}}
}

// Identified returns a row that expects an account.
func Identified(name, reason string, answer http.HandlerFunc, identity platforms.Identity) Row {
	return Row{name: name, reason: reason, answer: answer, want: rowResult{Identity: identity}}
}

// Renewed returns a row that expects a token.
func Renewed(name, reason string, answer http.HandlerFunc, token platforms.Token) Row {
	return Row{name: name, reason: reason, answer: answer, want: rowResult{Token: token}}
}

// Unknown returns a row that expects that the response says nothing about the outcome.
func Unknown(name, reason string, answer http.HandlerFunc) Row {
	return Refused(name, reason, answer, platforms.ClassUnknown).Unproven()
}

// Unproven changes the row to expect that the call may have taken effect despite the error.
func (r Row) Unproven() Row {
	r.want.Outcome = platforms.Unknown
	return r
}

// OfTheApp changes the row to expect an error that blocks all accounts of the app.
func (r Row) OfTheApp() Row {
	r.want.AppWide = true
	return r
}

// WithState changes the row to expect a second call, for the state of the publication, and sets its response.
func (r Row) WithState(state http.HandlerFunc) Row {
	r.state = state
	return r
}

// NoRetryTime is the wait for a response without a retry time.
const NoRetryTime = -1

// Waiting changes the row to expect that the call may be repeated after the given time.
func (r Row) Waiting(wait time.Duration) Row {
	r.want.Wait = wait
	return r
}

// Of changes the token to renew, which is otherwise the same for all rows.
func (r Row) Of(old platforms.Token) Row {
	r.old = old
	return r
}

// Start returns a platform on a server that sends the given response. Its clock is set to recorder.Noon.
type Start[P platforms.Accounts] func(t *testing.T, answer http.HandlerFunc) (P, *recorder.Server)

func (r Row) compare(t *testing.T, got rowResult, err error) {
	t.Helper()
	if failure, ok := errors.AsType[*platforms.Error](err); ok {
		got.Class, got.AppWide = failure.Class, failure.AppWide && got.Outcome != ""
		if got.Wait = NoRetryTime; !failure.RetryAt.IsZero() {
			got.Wait = failure.RetryAt.Sub(recorder.Noon)
		}
		if got.Outcome != "" {
			r.want.Wait = cmp.Or(r.want.Wait, NoRetryTime)
		} else if r.want.Wait == 0 {
			got.Wait = 0 // the row is not about the time
		}
	}
	if diff := gocmp.Diff(r.want, got); diff != "" {
		t.Errorf("%s: error %v (-want +got):\n%s", r.reason, err, diff)
	}
}

// Identify tests a platform's rows, and responses that do not identify an account on any platform. asked is the path
// and the unescaped query of the expected call.
func Identify[P platforms.Accounts](t *testing.T, start Start[P], asked string, rows ...Row) {
	t.Helper()
	rows = append(rows,
		Refused("hang up", "a lost response is requested again", recorder.HangUp, platforms.ClassTransient),
		Refused("wrong server", "another server's response does not describe the account", recorder.Respond(404, `not here`), platforms.ClassUnknown),
		Refused("not JSON", "an unreadable success does not describe the account", recorder.Respond(200, `<html>`), platforms.ClassUnknown),
		Refused("empty", "a success without an account does not describe it", recorder.Respond(200, `{}`), platforms.ClassUnknown))
	for i := range rows {
		row := &rows[i]
		t.Run(row.name, func(t *testing.T) {
			p, server := start(t, row.answer)
			identity, err := p.Identify(t.Context(), platforms.Token{Access: "access"})
			row.compare(t, rowResult{Identity: identity}, err)
			r := server.Requests()[0]
			if query, bad := url.QueryUnescape(r.Query.Encode()); bad != nil || r.Path+"?"+query != asked || r.Token != "access" {
				t.Errorf("asked %+v", r)
			}
		})
	}
}

// Renew tests a platform's rows, and responses that do not contain a token on any platform. asked is the expected
// request.
func Renew[P platforms.Accounts](t *testing.T, start Start[P], old platforms.Token, asked recorder.Request, rows ...Row) {
	t.Helper()
	rows = append(rows,
		Refused("hang up", "a lost response does not disconnect the account", recorder.HangUp, platforms.ClassTransient),
		Refused("not the platform's", "a proxy's 400 is not proof", recorder.Respond(400, `Bad Request`), platforms.ClassUnknown),
		Refused("cut", "a response without a token is not stored", recorder.Respond(200, `{"access_tok`), platforms.ClassUnknown))
	for i := range rows {
		row := &rows[i]
		if row.old == (platforms.Token{}) {
			row.old = old
		}
		t.Run(row.name, func(t *testing.T) {
			p, server := start(t, row.answer)
			token, err := p.Refresh(t.Context(), row.old)
			row.compare(t, rowResult{Token: token}, err)
			for _, secret := range []string{row.old.Access, row.old.Refresh} {
				if err != nil && secret != "" && strings.Contains(err.Error(), secret) {
					t.Errorf("the message holds a token: %v", err)
				}
			}
			var want []recorder.Request
			if row.answer != nil {
				want = []recorder.Request{asked}
			}
			if diff := gocmp.Diff(want, server.Requests(), cmpopts.IgnoreFields(asked, "Body", "Header"), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// Verdicts tests the results of a job's publishing call, for a platform's rows and for responses that do not settle the
// outcome on any platform. call and state are the expected requests.
func Verdicts[P platforms.Publisher](t *testing.T, start Start[P], job platforms.Job, call, state string, rows ...Row) {
	t.Helper()
	rows = append(rows,
		Unknown("hang up", "the response was lost", recorder.HangUp),
		Unknown("outage", "the post may have been published before", recorder.Respond(503, `oops`)),
		Unknown("redirect", "a redirect is not followed", recorder.Respond(307, ``, "Location", "/elsewhere")),
		Unknown("bare 400", "a proxy may have responded", recorder.Respond(400, `<html>`)),
		Unknown("bare 403", "an address filter may have responded", recorder.Respond(403, `<html>`)),
		Unknown("timeout", "a proxy may send 408", recorder.Respond(408, ``)),
		Unknown("success, cut", "the post was published: a lookup has to find it", recorder.Respond(200, `{"id":"17`)),
		Unknown("success, no id", "the post was published without an id", recorder.Respond(200, `{}`)),
		Unknown("success, odd id", "an invalid id is not used", recorder.Respond(200, `{"id":"../me"}`)))
	for i := range rows {
		row := &rows[i]
		t.Run(row.name, func(t *testing.T) {
			answers, asked := []http.HandlerFunc{row.answer}, []string{call}
			if row.state != nil {
				answers, asked = append(answers, row.state), append(asked, state)
			}
			p, server := start(t, recorder.Sequence(answers))
			got := p.Publish(t.Context(), job)
			row.want.Outcome = cmp.Or(row.want.Outcome, platforms.Refused)
			row.compare(t, rowResult{Outcome: got.Outcome}, asError(got.Err))
			if diff := gocmp.Diff(asked, server.Paths()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if strings.Contains(fmt.Sprintf("%v %+v", got.Err, got.Err), "token access") {
				t.Errorf("the message quotes the platform's own text: %+v", got.Err)
			}
		})
	}
}
