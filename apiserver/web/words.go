// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

func paragraph(text string) g.Node { return h.P(g.Text(text)) }

// quoted is a name that a stranger chose for itself, as it stands in a sentence of ours. It cannot end its quotation.
func quoted(name string) string {
	return "“" + strings.NewReplacer("“", "'", "”", "'", "„", "'", "‟", "'", "\"", "'").Replace(name) + "”"
}

// sentence makes a sentence of a message: a capital letter, and a full stop.
func sentence(message string) string {
	if message == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(message)
	message = string(unicode.ToUpper(first)) + message[size:]
	if last := message[len(message)-1]; last != '.' && last != '!' && last != '?' {
		message += "."
	}
	return message
}

// titleOfError is the heading of a page that shows an error.
func titleOfError(err *bridge.Error) string {
	switch err.Code {
	case bridge.CodeNotFound:
		return "There is nothing here"
	case bridge.CodeConflict:
		return "That cannot be done now"
	case bridge.CodeSubscriptionRequired:
		return "The plan does not allow this"
	case bridge.CodeReconnectRequired:
		return "An account has to be connected again"
	case bridge.CodeReadinessUnavailable:
		return "A platform does not answer"
	case bridge.CodeValidation, bridge.CodeTikTokPrivacy, bridge.CodeUnauthorized, bridge.CodeRateLimited, bridge.CodeInsufficientScope, bridge.CodeInternal:
		return "That did not work"
	default:
		return "That did not work"
	}
}

// backLink leads to the page that a request came from, if that is one of ours.
func backLink(r *http.Request) g.Node {
	from, err := url.Parse(r.Referer())
	if err != nil || from.Host != r.Host || !strings.HasPrefix(from.Path, "/") || strings.HasPrefix(from.Path, "//") {
		return nil
	}
	return h.P(link(from.RequestURI(), "Back", ""))
}

// flashMessages are the messages that a page shows once after something was done. An address names one by its word and never holds the text,
// so that no link can put words into our mouth.
var flashMessages = map[string]string{
	"ended":        "The agent is revoked. It may do nothing here any more.",
	wordCreated:    "The post is on its way.",
	"scheduled":    "The post is scheduled.",
	"saved":        "The draft is saved.",
	"cancelled":    "The post is cancelled.",
	wordFinal:      "This post cannot be edited any more: it is on its way, finished or cancelled. Duplicate it to write another one like it.",
	"discarded":    "What you wrote is discarded. Nothing was stored.",
	"moved":        "The post has a new time.",
	"looking":      "Herald looks at the account. What it finds is shown here in a few seconds.",
	"settled":      "Thank you. Herald goes on from there.",
	"connected":    "The account is connected.",
	"reconnected":  "The account is connected again.",
	"disconnected": "The account is disconnected.",
	"revoked":      "The key is revoked. It no longer works.",
	"dropped":      "The old token no longer works.",
}

const (
	// wordFinal says that nothing was done: a post cannot be edited any more.
	wordFinal = "final"
	// wordCreated holds until the post is settled. Then its state says what came of it.
	wordCreated = "created"
)

// flash is the message that the address asks for.
func (v *visit) flash() g.Node {
	word := v.URL.Query().Get("said")
	text, ok := flashMessages[word]
	if !ok || word == wordCreated && v.settled {
		return nil
	}
	how, icon := good, "check"
	if word == wordFinal {
		how, icon = caution, "alert"
	}
	return h.Div(h.Class("note "+string(how)), h.Role("status"), g.If(word == wordCreated, h.Data("until-settled", "")), drawing(icon), h.Div(paragraph(text)))
}

// go leads to a page of the team, which says what was done.
func (v *visit) redirect(w http.ResponseWriter, page, word string) {
	if word != "" {
		page += "?said=" + word
	}
	http.Redirect(w, v.Request, v.path(page), http.StatusSeeOther) //nolint:gosec // G710: it is a page of the team
}

// condition is one of a post, or nil.
func condition(post *v1alpha1.Post, kind string) *metav1.Condition {
	for i := range post.Status.Conditions {
		if post.Status.Conditions[i].Type == kind {
			return &post.Status.Conditions[i]
		}
	}
	return nil
}

// asError is what a person can do something about, if an error is that.
func asError(err error) (*bridge.Error, bool) {
	if denied, ok := errors.AsType[*errForbidden](err); ok {
		return &bridge.Error{Code: bridge.CodeSubscriptionRequired, Message: denied.message}, true
	}
	return errors.AsType[*bridge.Error](err)
}

// inWords are the problems of a form, each a sentence.
func (s *Site) inWords(v *visit, written *writing, refused *bridge.Error) []string {
	spec, err := written.spec(s.platforms(v))
	if err == nil && refused.Code == bridge.CodeValidation {
		if found := s.Service.CheckPost(v.Context(), v.caller, &spec); len(found.Problems) > 0 {
			return inSentences(found.Problems, func(i int) string { return found.Targets[i].Platform.Title() })
		}
	}
	return []string{sentence(refused.Message)}
}

// inSentences words problems, with the account or the part of a thread that each concerns.
func inSentences(problems []bridge.Problem, nameOf func(target int) string) []string {
	out := make([]string, 0, len(problems))
	for _, p := range problems {
		switch {
		case p.Target != bridge.NoIndex:
			out = append(out, nameOf(p.Target)+": "+sentence(p.Message))
		case p.Card != bridge.NoIndex:
			out = append(out, "Part "+strconv.Itoa(p.Card+1)+": "+sentence(p.Message))
		default:
			out = append(out, sentence(p.Message))
		}
	}
	return out
}

// items are sentences, one below the other.
func items(of []string) g.Node {
	return h.Ul(g.Map(of, func(text string) g.Node { return h.Li(g.Text(text)) }))
}
