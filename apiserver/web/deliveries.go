// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

// notifier shows a notifier with its deliveries.
func (s *Site) notifier(w http.ResponseWriter, v *visit) error {
	n, err := s.Service.GetNotifier(v.Context(), v.caller, v.PathValue("id"))
	if err != nil {
		return err
	}
	s.showNotifier(w, v, http.StatusOK, &n)
	return nil
}

// showNotifier shows a notifier, with the secret if this request created one.
func (s *Site) showNotifier(w http.ResponseWriter, v *visit, status int, n *bridge.Notifier) {
	isSigned := n.Spec.Format == v1alpha1.FormatStandardWebhooks
	ask := "Create a new secret? The receiver rejects notifications until you have entered it there; Herald retries them."
	s.render(w, v, status, view{title: n.Name, before: "Notification ", place: placeTeam, content: []g.Node{
		h.P(h.A(h.Href(v.path(pageNotifiers)), g.Text("All notifications"))),
		g.Iff(n.SigningSecret != "", func() g.Node { return signingSecret(n.SigningSecret) }),
		h.Section(h.Class("card"),
			v.notifierHead(n, h.H2(g.Text("State"))),
			v.notifierProblem(n),
			v.notifierFacts(n),
			g.If(isSigned, h.Dl(h.Class("small"), fact("Address", h.Code(g.Text(n.Spec.URL))))),
			v.notifierActions(n),
		),
		g.If(isSigned && v.may.changeNotifiers && n.SigningSecret == "", h.Section(h.Class("card"),
			h.H2(g.Text("Signing secret")),
			paragraph("Each request is signed, so that the receiver can verify that it comes from Herald. The secret was shown once, when it was created."),
			form(v.path(pageNotifiers+"/"+n.Name+"/secret"), ask, submit("Create a new secret", "small")))),
		h.Section(h.Class("sent"), h.H2(g.Text("What was sent")), s.deliveries(v, n)),
	}})
}

// signingSecret shows a new secret, which no other page shows.
func signingSecret(secret string) g.Node {
	return h.Section(h.Class("note good once"), h.Role("status"), drawing("check"), h.Div(
		h.P(h.Strong(g.Text("Copy the signing secret now. It is not shown again."))),
		h.P(h.Code(h.ID("secret"), g.Text(secret)), h.Button(h.Type("button"), h.Class("button small"), h.Data("copy", "#secret"), g.Text("Copy"))),
		h.P(h.Class("soft"), g.Text("Enter it in the receiver, which verifies the signatures of Standard Webhooks with it."))))
}

// deliveryStates are the labels and tones of delivery states.
var deliveryStates = map[v1alpha1.DeliveryState]struct {
	tone  tone
	label string
}{
	v1alpha1.DeliveryPending: {caution, "Waits"}, v1alpha1.DeliveryDelivered: {good, "Delivered"}, v1alpha1.DeliveryFailed: {bad, "Not delivered"},
}

func (s *Site) deliveries(v *visit, n *bridge.Notifier) g.Node {
	all := n.Status.Deliveries
	if len(all) == 0 {
		return empty("Nothing yet", "What happens from now on is sent, and is listed here a few seconds later.")
	}
	return g.Group{
		h.Ul(h.Class("list deliveries"), g.Map(all, func(d v1alpha1.NotifierDelivery) g.Node { return s.deliveryRow(v, n, &d) })),
		h.P(h.Class("soft"), g.Text("All that wait, as far as there is space, and the latest 50 others. The list is a few seconds old.")),
	}
}

func (s *Site) deliveryRow(v *visit, n *bridge.Notifier, d *v1alpha1.NotifierDelivery) g.Node {
	state, about := deliveryStates[d.State], s.aboutDelivery(v, d)
	isRequested := n.IsRequested(d.ID)
	attempts := ""
	switch {
	case isRequested:
		state.tone, state.label = neutral, "Being sent again"
	case d.State == v1alpha1.DeliveryPending && d.Attempts == 0:
		state.tone = neutral
	case d.Attempts > 1 || d.State == v1alpha1.DeliveryPending:
		attempts = " after " + plural(int(d.Attempts), "attempt")
	}
	return h.Li(h.ID(d.ID), h.Div(h.Class("row"),
		h.Span(h.Class("what"), h.Strong(g.Text(nameOfEvent(d.Event))), about.link),
		h.Span(h.Class("when"), h.Span(h.Class("badge kind-"+string(state.tone)), g.Text(state.label+attempts)), v.moment(d.OccurredAt.Time)),
		g.If(d.Message != "", h.P(h.Class("soft"), g.Text(sentence(d.Message)))),
		g.If(v.may.changeNotifiers && !isRequested, form(v.path(pageNotifiers+"/"+n.Name+"/resend"), "", hidden("delivery", d.ID),
			h.Button(h.Type("submit"), h.Class("button small"), h.Aria("label", "Send again: "+nameOfEvent(d.Event)+", "+about.name), g.Text("Send again")))),
	))
}

// deliveryObject is what a notification is about.
type deliveryObject struct {
	name string
	link g.Node
}

// aboutDelivery returns the name of a delivery's object, and a link to its page if there is one.
func (s *Site) aboutDelivery(v *visit, d *v1alpha1.NotifierDelivery) deliveryObject {
	switch d.Kind {
	case "Post":
		name := s.Service.Index.Title(v.namespace, d.Name)
		if name == "" {
			name = "a post"
			if !bridge.IsCreated(d.Name) {
				name = d.Name
			}
		}
		return deliveryObject{name, h.A(h.Href(v.path("posts/"+d.Name)), h.Dir("auto"), g.Text(name))}
	case "Connection":
		if account := s.account(v, d.Name); account != nil {
			name := nameOfAccount(account, d.Name) + " on " + account.Spec.Platform.Title()
			return deliveryObject{name, h.A(h.Href(v.path("connections")+"#"+d.Name), g.Text(name))}
		}
		return deliveryObject{d.Name, h.Span(g.Text(d.Name))}
	default:
		return deliveryObject{d.Name, h.Span(h.Class("soft"), g.Text(d.Name))}
	}
}

func (s *Site) resendDelivery(w http.ResponseWriter, v *visit) error {
	if _, err := s.readForm(w, v); err != nil {
		return err
	}
	n, _, err := s.Service.Resend(v.Context(), v.caller, v.PathValue("id"), v.PostForm.Get("delivery"))
	if err != nil {
		return err
	}
	v.redirect(w, pageNotifiers+"/"+n.Name, wordResent)
	return nil
}

// replaceSecret creates a new signing secret and shows it.
func (s *Site) replaceSecret(w http.ResponseWriter, v *visit) error {
	n, err := s.Service.ReplaceSecret(v.Context(), v.caller, v.PathValue("id"))
	if err != nil {
		return err
	}
	s.showNotifier(w, v, http.StatusOK, &n)
	return nil
}
