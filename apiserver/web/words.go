// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
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

// quoted returns an untrusted name in quotation marks, without any quotation marks inside.
func quoted(name string) string {
	return "“" + strings.NewReplacer("“", "'", "”", "'", "„", "'", "‟", "'", "\"", "'").Replace(name) + "”"
}

// sentence turns a message into a sentence, with a capital letter and a period.
func sentence(message string) string {
	if message == "" {
		return ""
	}
	message = forPeople(message)
	first, size := utf8.DecodeRuneInString(message)
	message = string(unicode.ToUpper(first)) + message[size:]
	if last := message[len(message)-1]; last != '.' && last != '!' && last != '?' {
		message += "."
	}
	return message
}

// Parts of messages that API clients also read: platforms as API values, units by how they are counted, and accounts as
// resources.
var (
	accepting    = regexp.MustCompile(`\b(` + platformWords() + `)(,? (?:which )?(?:accepts|does not accept))\b`)
	postsTo      = regexp.MustCompile(`\b(post to|title on) (` + platformWords() + `)\b`)
	characters   = regexp.MustCompile(`\b(?:UTF-16 code units|weighted characters|characters \(an emoji counts its UTF-8 bytes\)) are too many\b`)
	accountWords = strings.NewReplacer("connection to post to", "account to post to", "choose another connection", "choose another account", "the other connections", "the other accounts")
)

// platformWords matches the platforms' values in the API.
func platformWords() string {
	var words []string
	for _, p := range v1alpha1.Platforms() {
		words = append(words, regexp.QuoteMeta(string(p)))
	}
	return strings.Join(words, "|")
}

// forPeople words a message for the web application's users.
func forPeople(message string) string {
	message = accepting.ReplaceAllStringFunc(message, func(found string) string {
		parts := accepting.FindStringSubmatch(found)
		return v1alpha1.Platform(parts[1]).Title() + parts[2]
	})
	message = postsTo.ReplaceAllStringFunc(message, func(found string) string {
		parts := postsTo.FindStringSubmatch(found)
		return parts[1] + " " + v1alpha1.Platform(parts[2]).Title()
	})
	return accountWords.Replace(characters.ReplaceAllString(message, "characters are too many"))
}

// generatedID matches a post's generated id in an error that API clients also read.
var generatedID = regexp.MustCompile(`\bpost p[a-z0-9]{25}\b`)

// withoutID replaces a post's generated id with "the post", because users never see generated ids.
func withoutID(message string) string { return generatedID.ReplaceAllString(message, "the post") }

// grouped formats a non-negative number, with commas between groups of thousands.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

func titleOfError(err *bridge.Error) string {
	switch err.Code {
	case bridge.CodeNotFound:
		return "There is nothing here"
	case bridge.CodeConflict:
		return "That cannot be done now"
	case bridge.CodeSubscriptionRequired:
		return "The plan does not allow this"
	case bridge.CodeReconnectRequired:
		return "An account must be reconnected"
	case bridge.CodeReadinessUnavailable:
		return "A platform does not respond"
	case bridge.CodeValidation, bridge.CodeTikTokPrivacy, bridge.CodeUnauthorized, bridge.CodeRateLimited, bridge.CodeInsufficientScope,
		bridge.CodePreconditionRequired, bridge.CodePreconditionFailed, bridge.CodeInternal:
		return "That did not work"
	default:
		return "That did not work"
	}
}

// backLink links to the page that a request came from, if it is on this site.
func backLink(r *http.Request) g.Node {
	from, err := url.Parse(r.Referer())
	if err != nil || from.Host != r.Host || !strings.HasPrefix(from.Path, "/") || strings.HasPrefix(from.Path, "//") {
		return nil
	}
	return h.P(link(from.RequestURI(), "Back", ""))
}

// flashMessages are the messages that a page shows once after an action. An address contains only a message's key, so
// that a link cannot make the site show other text.
var flashMessages = map[string]string{
	"ended":        "The agent is revoked. It no longer has access.",
	wordCreated:    "The post is on its way.",
	"scheduled":    "The post is scheduled.",
	"saved":        "The draft is saved.",
	"cancelled":    "The post is cancelled.",
	wordFinal:      "This post can no longer be edited: it is on its way, finished or cancelled. Duplicate it to write a similar one.",
	wordLate:       "It is too late to take this post back: it is being published, or no longer waits.",
	wordTakenBack:  "The post is taken back: it is cancelled, and this is its copy as a draft.",
	"discarded":    "Your changes are discarded. Nothing was stored.",
	paramMoved:     "Post moved.",
	wordDismissed:  "Dismissed. The post stays among the failed ones, and no longer counts as needing attention.",
	"looking":      "Herald is checking the account. The result appears here in a few seconds.",
	"settled":      "Thank you. Herald continues from there.",
	"connected":    "The account is connected.",
	"reconnected":  "The account is connected again.",
	"disconnected": "The account is disconnected.",
	"revoked":      "The key is revoked. It no longer works.",
	"dropped":      "The old token no longer works.",

	wordRepeats:      "The schedule is stored.",
	wordSuspended:    "The schedule is suspended. No posts are created until you resume it.",
	wordResumed:      "The schedule is resumed. Times in between are left out.",
	wordScheduleGone: "The schedule is deleted. Its posts disappear in a few seconds.",

	wordNotifies:          "The notification is stored.",
	wordNotifierSuspended: "The notification is suspended. Nothing is sent until you resume it.",
	wordNotifierResumed:   "The notification is resumed. What happened meanwhile is sent now.",
	wordNotifierGone:      "The notification is deleted.",
	wordResent:            "It is being sent again. The list shows the result in a few seconds.",
}

const (
	// wordFinal is the message that a post can no longer be edited.
	wordFinal = "final"
	// wordSoon marks a post that can be taken back; its page says so itself.
	wordSoon = "soon"
	// wordLate is the message that a post can no longer be taken back, and wordTakenBack that it was.
	wordLate      = "late"
	wordTakenBack = "back"
	wordDismissed = "dismissed"
	// Keys of the messages about a change to a schedule.
	wordRepeats      = "repeats"
	wordSuspended    = "suspended"
	wordResumed      = "resumed"
	wordScheduleGone = "unscheduled"
	// Keys of the messages about a change to a notifier.
	wordNotifies          = "notifies"
	wordNotifierSuspended = "muted"
	wordNotifierResumed   = "unmuted"
	wordNotifierGone      = "silent"
	wordResent            = "resent"
	// wordCreated is shown until the post is settled. After that, its state shows the result.
	wordCreated = "created"
)

// flash shows the message that the address selects.
func (v *visit) flash() g.Node {
	word := v.URL.Query().Get("said")
	text, ok := flashMessages[word]
	if !ok || word == wordCreated && v.settled {
		return nil
	}
	how, icon := good, "check"
	if word == wordFinal || word == wordLate {
		how, icon = caution, "alert"
	}
	return h.Div(h.Class("note "+string(how)), h.Role("status"), g.If(word == wordCreated, h.Data("until-settled", "")), drawing(icon), h.Div(paragraph(text), g.Iff(word == paramMoved, v.undoMove)))
}

func (v *visit) redirect(w http.ResponseWriter, page, word string) {
	if word != "" {
		page += "?said=" + word
	}
	http.Redirect(w, v.Request, v.path(page), http.StatusSeeOther) //nolint:gosec // G710: it is a page of the team
}

func condition(post *v1alpha1.Post, kind string) *metav1.Condition {
	for i := range post.Status.Conditions {
		if post.Status.Conditions[i].Type == kind {
			return &post.Status.Conditions[i]
		}
	}
	return nil
}

// asError returns the error to show to a user, if they can correct it.
func asError(err error) (*bridge.Error, bool) {
	if denied, ok := errors.AsType[*errForbidden](err); ok {
		return &bridge.Error{Code: bridge.CodeSubscriptionRequired, Message: denied.message}, true
	}
	return errors.AsType[*bridge.Error](err)
}

func (s *Site) inWords(v *visit, written *writing, refused *bridge.Error) []string {
	spec, err := written.spec(s.platforms(v))
	if err == nil && refused.Code == bridge.CodeValidation {
		if found := s.Service.CheckPost(v.Context(), v.caller, &spec); len(found.Problems) > 0 {
			return inSentences(found.Problems, func(i int) string { return found.Targets[i].Platform.Title() })
		}
	}
	return []string{sentence(withoutID(s.messageOf(v, refused)))}
}

// inSentences formats problems, each with its account or its part of the thread.
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

func items(of []string) g.Node {
	return h.Ul(g.Map(of, func(text string) g.Node { return h.Li(g.Text(text)) }))
}
