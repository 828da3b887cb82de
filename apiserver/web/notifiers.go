// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

// pageNotifiers is the path of the notifiers' page, which calls them notifications.
const pageNotifiers = "notifications"

// notifierFormat is a format with its name.
type notifierFormat struct {
	format v1alpha1.NotifierFormat
	name   string
}

// notifierFormats are the formats, in the order of the form.
var notifierFormats = []notifierFormat{{v1alpha1.FormatEmail, "Email"}, {v1alpha1.FormatSlack, "Slack"}, {v1alpha1.FormatStandardWebhooks, "Webhook"}}

func nameOfFormat(format v1alpha1.NotifierFormat) string {
	for _, f := range notifierFormats {
		if f.format == format {
			return f.name
		}
	}
	return string(format)
}

// notifierEvent is an event with its name and meaning.
type notifierEvent struct {
	event      v1alpha1.NotifierEvent
	name, help string
}

// notifierEvents are the events, in the order of the form.
var notifierEvents = []notifierEvent{
	{v1alpha1.EventPostFailed, "A post failed", "It was not published on at least one account, and is not retried."},
	{v1alpha1.EventPostNeedsAttention, "A post needs an answer", "It is unknown whether it was published."},
	{v1alpha1.EventConnectionBroken, "An account stopped working", "It accepts no posts until someone reconnects it."},
	{v1alpha1.EventConnectionExpiring, "An account expires soon", "It must be reconnected within a week."},
	{v1alpha1.EventMediaRejected, "A file was rejected", "It is damaged, or changed after the upload."},
	{v1alpha1.EventPostPosted, "A post was published", "On all of its accounts."},
}

func nameOfEvent(event v1alpha1.NotifierEvent) string {
	for _, e := range notifierEvents {
		if e.event == event {
			return e.name
		}
	}
	return string(event)
}

// notifiers lists the team's notifiers.
func (s *Site) notifiers(w http.ResponseWriter, v *visit) error {
	all, err := s.Service.ListNotifiers(v.Context(), v.caller)
	if err != nil {
		return err
	}
	toNew := g.If(v.may.createNotifiers, link(v.path(pageNotifiers+"/new"), "New notification", "primary"))
	text := "Learn when a post fails, needs an answer or is published: by email, in Slack, or in a system of your own."
	if !v.may.createNotifiers {
		text += " An administrator of your team can set this up."
	}
	content := []g.Node{empty("No notification yet", text, toNew)}
	if len(all) > 0 {
		content = []g.Node{h.Ul(h.Class("accounts"), g.Map(all, func(n bridge.Notifier) g.Node { return s.notifierCard(v, &n) }))}
	}
	s.render(w, v, http.StatusOK, view{title: "Notifications", place: placeTeam, content: content, actions: []g.Node{g.If(len(all) > 0, toNew)}})
	return nil
}

// notifierState is a notifier's displayed state.
type notifierState struct {
	tone  tone
	label string
	// problem explains why nothing is sent, with the remedy; empty if there is no problem.
	problem string
	// since is when the receiver began to fail; zero if it does not.
	since time.Time
}

// storingSecret is how long a new notifier may lack its Secret, which is stored after it and which the manager may
// notice only at its next check.
const storingSecret = 30 * time.Second

func stateOfNotifier(n *bridge.Notifier, now time.Time) notifierState {
	ready := meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionReady)
	failing := meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionFailing)
	switch {
	case n.Spec.Suspend:
		return notifierState{tone: neutral, label: "Suspended"}
	case ready == nil || n.Status.ObservedGeneration != n.Generation:
		return notifierState{tone: neutral, label: "Being checked"}
	case ready.Status != metav1.ConditionTrue:
		return stoppedNotifier(n, ready, now)
	case failing != nil && failing.Status == metav1.ConditionTrue:
		_, problem, _ := strings.Cut(failing.Message, ": ")
		return notifierState{
			caution, "Failing", "The last attempt failed: " + strings.TrimSuffix(problem, ".") + ". Herald retries each notification for a day.", failing.LastTransitionTime.Time,
		}
	default:
		return notifierState{tone: good, label: "Active"}
	}
}

// stoppedNotifier describes a notifier that sends nothing, with the remedy on these pages.
func stoppedNotifier(n *bridge.Notifier, ready *metav1.Condition, now time.Time) notifierState {
	isSlack := n.Spec.Format == v1alpha1.FormatSlack
	switch ready.Reason {
	case v1alpha1.ReasonSecretNotFound, v1alpha1.ReasonSecretInvalid:
		if ready.Reason == v1alpha1.ReasonSecretNotFound && now.Sub(n.CreationTimestamp.Time) < storingSecret {
			return notifierState{tone: neutral, label: "Being checked"}
		}
		problem := "Its signing secret is missing or invalid. Create a new one."
		if isSlack {
			problem = "Its address is missing or invalid. Edit it and enter the address again."
		}
		return notifierState{tone: bad, label: "Cannot send", problem: problem}
	case v1alpha1.ReasonReceiverGone:
		return notifierState{tone: bad, label: "Stopped", problem: "The receiver reported that it no longer exists (410). Change the address, or send a notification again once the receiver is back."}
	case v1alpha1.ReasonEmailNotConfigured:
		return notifierState{tone: bad, label: "Cannot send", problem: noMailServer}
	default:
		return notifierState{tone: caution, label: "Waits", problem: sentence(ready.Message)}
	}
}

// noMailServer explains why an installation sends no emails, and who can change it.
const noMailServer = "This installation has no mail server, so it cannot send emails. Its administrator configures one, as smtp in the values of the Helm chart or notifications.smtp in the manager's configuration."

// receiverOf returns a notifier's receiver for display. The path of an address may be a secret, and is shown only on
// the notifier's page.
func receiverOf(n *bridge.Notifier) string {
	content := bridge.ContentOf(n.Notifier)
	switch content.Format {
	case v1alpha1.FormatEmail:
		return strings.Join(content.To, ", ")
	case v1alpha1.FormatSlack:
		return "an incoming webhook"
	case v1alpha1.FormatStandardWebhooks:
	}
	if u, err := url.Parse(content.URL); err == nil && u.Host != "" {
		return u.Host
	}
	return content.URL
}

// reportedEvents lists the events that a notifier reports, such as "A post failed, an account stopped working".
func reportedEvents(n *bridge.Notifier) g.Node {
	var names []string
	for _, e := range notifierEvents {
		switch {
		case !slices.Contains(n.Spec.Events, e.event):
		case len(names) == 0:
			names = append(names, e.name)
		default:
			names = append(names, strings.ToLower(e.name[:1])+e.name[1:])
		}
	}
	return g.Text(strings.Join(names, ", "))
}

func (s *Site) notifierCard(v *visit, n *bridge.Notifier) g.Node {
	return h.Li(h.Class("card account"), h.ID(n.Name),
		v.notifierHead(n, h.H2(h.A(h.Href(v.path(pageNotifiers+"/"+n.Name)), g.Text(n.Name)))),
		v.notifierProblem(n),
		v.notifierFacts(n),
		v.notifierActions(n),
	)
}

func (v *visit) notifierHead(n *bridge.Notifier, name g.Node) g.Node {
	state := stateOfNotifier(n, v.now)
	return h.Div(h.Class("target-head"), h.Span(h.Class("account"), name, h.Span(h.Class("soft"), g.Text(nameOfFormat(n.Spec.Format)+" to "+receiverOf(n)))),
		h.Span(h.Class("badge kind-"+string(state.tone)), g.Text(state.label)))
}

func (v *visit) notifierProblem(n *bridge.Notifier) g.Node {
	state := stateOfNotifier(n, v.now)
	return g.If(state.problem != "", notice(state.tone, h.P(g.Text(state.problem), g.Iff(!state.since.IsZero(), func() g.Node {
		return g.Group{g.Text(" It has failed since "), v.moment(state.since), g.Text(".")}
	}))))
}

func (v *visit) notifierFacts(n *bridge.Notifier) g.Node {
	return h.Dl(h.Class("small reports"),
		fact("Reports", reportedEvents(n)),
		fact("Waiting", g.Text(strconv.Itoa(int(n.Status.Pending)))),
		g.Iff(n.Status.LastDeliveredAt != nil, func() g.Node { return fact("Last delivered", v.moment(n.Status.LastDeliveredAt.Time)) }),
		g.If(n.Status.LastDeliveredAt == nil, fact("Last delivered", g.Text("never"))),
	)
}

func (v *visit) notifierActions(n *bridge.Notifier) g.Node {
	at := v.path(pageNotifiers + "/" + n.Name)
	ask := "Suspend this notification? Nothing is sent until you resume it. What happens meanwhile waits for at most a day."
	if !v.may.changeNotifiers && !v.may.deleteNotifiers {
		return nil
	}
	return h.Div(h.Class("actions"),
		g.If(v.may.changeNotifiers, h.A(h.Class("button small"), h.Href(at+"/edit"), h.Aria("label", "Edit "+n.Name), g.Text("Edit"))),
		g.If(v.may.changeNotifiers && !n.Spec.Suspend, form(at+"/suspend", ask, h.Button(h.Type("submit"), h.Class("button small"), h.Aria("label", "Suspend "+n.Name), g.Text("Suspend")))),
		g.If(v.may.changeNotifiers && n.Spec.Suspend, form(at+"/resume", "", h.Button(h.Type("submit"), h.Class("button small primary"), h.Aria("label", "Resume "+n.Name), g.Text("Resume")))),
		g.If(v.may.deleteNotifiers, h.A(h.Class("button small danger"), h.Href(at+"/delete"), h.Aria("label", "Delete "+n.Name+"…"), g.Text("Delete…"))),
	)
}

// suspendNotifier and resumeNotifier change whether a notifier sends.
func (s *Site) suspendNotifier(w http.ResponseWriter, v *visit) error {
	return s.setSuspended(w, v, true, wordNotifierSuspended)
}

func (s *Site) resumeNotifier(w http.ResponseWriter, v *visit) error {
	return s.setSuspended(w, v, false, wordNotifierResumed)
}

func (s *Site) setSuspended(w http.ResponseWriter, v *visit, suspend bool, word string) error {
	changed, err := s.Service.SuspendNotifier(v.Context(), v.caller, v.PathValue("id"), suspend)
	if err != nil {
		return err
	}
	v.redirect(w, pageNotifiers+"/"+changed.Name, word)
	return nil
}

// confirmDeleteNotifier asks for confirmation, and states what will be deleted.
func (s *Site) confirmDeleteNotifier(w http.ResponseWriter, v *visit) error {
	n, err := s.Service.GetNotifier(v.Context(), v.caller, v.PathValue("id"))
	if err != nil {
		return err
	}
	effects := []string{"Nothing more is sent, and the list of what was sent disappears."}
	switch waiting := int(n.Status.Pending); waiting {
	case 0:
	case 1:
		effects = append(effects, "1 notification that waits for delivery is not sent.")
	default:
		effects = append(effects, plural(waiting, "notification")+" that wait for delivery are not sent.")
	}
	if n.Spec.SecretRef != nil && n.Spec.Format == v1alpha1.FormatStandardWebhooks {
		effects = append(effects, "Its signing secret is deleted, if it was created here.")
	}
	at := v.path(pageNotifiers + "/" + n.Name)
	s.render(w, v, http.StatusOK, view{
		title: "Delete " + n.Name, place: placeTeam, content: []g.Node{h.Section(h.Class("card"),
			h.H2(g.Text("What happens")), items(effects),
			g.If(v.may.changeNotifiers && !n.Spec.Suspend, h.P(h.Class("soft"), g.Text("To stop it for a while, suspend it instead."))),
			h.Div(h.Class("actions"),
				form(at+"/delete", "", submit("Delete the notification", "danger")),
				g.If(v.may.changeNotifiers && !n.Spec.Suspend, form(at+"/suspend", "", submit("Suspend it", ""))),
				link(at, "Cancel", "quiet")),
		)},
	})
	return nil
}

func (s *Site) deleteNotifier(w http.ResponseWriter, v *visit) error {
	if err := s.Service.DeleteNotifier(v.Context(), v.caller, v.PathValue("id")); err != nil {
		return err
	}
	v.redirect(w, pageNotifiers, wordNotifierGone)
	return nil
}
