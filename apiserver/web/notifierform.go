// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/rest"
)

// notifierForm is the form for a notifier, with what was entered.
type notifierForm struct {
	// stored is the notifier being edited; nil for a new one. version is its version when the form was opened.
	stored        *bridge.Notifier
	version, name string
	format        v1alpha1.NotifierFormat
	// webhook and slack are the addresses for these formats, and recipients the email addresses, one per line.
	webhook, slack, recipients string
	events                     []v1alpha1.NotifierEvent
	suspend                    bool
	problems                   []string
}

// mostUrgent are the events that are preselected in a new form: those that require action.
var mostUrgent = []v1alpha1.NotifierEvent{v1alpha1.EventPostFailed, v1alpha1.EventPostNeedsAttention, v1alpha1.EventConnectionBroken}

// newNotifier shows the form for a new notifier.
func (s *Site) newNotifier(w http.ResponseWriter, v *visit) error {
	f := &notifierForm{format: v1alpha1.FormatEmail, events: mostUrgent}
	if !s.SendsEmail {
		f.format = v1alpha1.FormatSlack
	}
	s.render(w, v, http.StatusOK, s.notifierView(v, f))
	return nil
}

// editNotifier shows the form for a stored notifier.
func (s *Site) editNotifier(w http.ResponseWriter, v *visit) error {
	stored, err := s.Service.GetNotifier(v.Context(), v.caller, v.PathValue("id"))
	if err != nil {
		return err
	}
	content := bridge.ContentOf(stored.Notifier)
	s.render(w, v, http.StatusOK, s.notifierView(v, &notifierForm{
		stored: &stored, version: stored.Version, name: stored.Name, format: content.Format, webhook: content.URL, recipients: strings.Join(content.To, "\n"),
		events: content.Events, suspend: content.Suspend,
	}))
	return nil
}

// readNotifier reads the form for the notifier in the address, or for a new one.
func (s *Site) readNotifier(w http.ResponseWriter, v *visit) (*notifierForm, error) {
	if _, err := s.readForm(w, v); err != nil {
		return nil, err
	}
	in := v.PostForm
	f := &notifierForm{
		name: nameFrom(in.Get("name")), format: v1alpha1.NotifierFormat(in.Get("format")), version: in.Get("version"), webhook: strings.TrimSpace(in.Get("webhook")),
		slack: strings.TrimSpace(in.Get("slack")), recipients: text(in.Get("recipients")), suspend: in.Get("suspend") != "",
	}
	for _, e := range notifierEvents {
		if slices.Contains(in["event"], string(e.event)) {
			f.events = append(f.events, e.event)
		}
	}
	if id := v.PathValue("id"); id != "" {
		stored, err := s.Service.GetNotifier(v.Context(), v.caller, id)
		if err != nil {
			return nil, err
		}
		f.stored, f.name, f.format = &stored, stored.Name, stored.Spec.Format
	}
	return f, nil
}

// content returns the notifier that the form describes.
func (f *notifierForm) content() *bridge.NotifierContent {
	c := &bridge.NotifierContent{Format: f.format, Events: f.events, Suspend: f.suspend}
	switch f.format {
	case v1alpha1.FormatStandardWebhooks:
		c.URL = f.webhook
	case v1alpha1.FormatSlack:
		c.URL = f.slack
	case v1alpha1.FormatEmail:
		c.To = strings.FieldsFunc(f.recipients, func(r rune) bool { return strings.ContainsRune(" ,;\t\r\n", r) })
	}
	return c
}

var (
	errNoNotifierName = errors.New("give the notification a name with letters from a to z or digits")
	errNoFormat       = errors.New("choose where the notifications go")
)

// storeNotifier creates or changes a notifier, and shows a new secret.
func (s *Site) storeNotifier(w http.ResponseWriter, v *visit) error {
	f, err := s.readNotifier(w, v)
	if err != nil {
		return err
	}
	isKnown := slices.ContainsFunc(notifierFormats, func(known notifierFormat) bool { return known.format == f.format })
	switch {
	case f.name == "":
		err = errNoNotifierName
	case !isKnown:
		err = errNoFormat
	}
	if err != nil {
		f.problems = []string{sentence(err.Error())}
		s.render(w, v, http.StatusBadRequest, s.notifierView(v, f))
		return nil
	}
	var saved bridge.Notifier
	if f.stored == nil {
		saved, err = s.Service.CreateNotifier(v.Context(), v.caller, f.name, f.content())
	} else {
		saved, err = s.Service.UpdateNotifier(v.Context(), v.caller, f.name, f.version, f.content())
	}
	if refused, ok := errors.AsType[*bridge.Error](err); ok {
		f.problems = s.notifierProblems(v, refused)
		s.render(w, v, rest.StatusOf(refused.Code), s.notifierView(v, f))
		return nil
	}
	if err != nil {
		return err
	}
	if saved.SigningSecret != "" {
		s.showNotifier(w, v, http.StatusCreated, &saved)
		return nil
	}
	v.redirect(w, pageNotifiers+"/"+saved.Name, wordNotifies)
	return nil
}

// notifierProblems returns a notifier's problems, each with the field's name.
func (s *Site) notifierProblems(v *visit, refused *bridge.Error) []string {
	if len(refused.Problems) == 0 {
		return []string{sentence(s.messageOf(v, refused))}
	}
	var out []string
	for _, p := range refused.Problems {
		switch name, _, _ := strings.Cut(p.Path, "["); name {
		case "events":
			out = append(out, "Choose at least one event.")
		case "email_to":
			out = append(out, "Recipients: "+sentence(p.Message))
		default:
			label := map[string]string{"name": "Name", "url": "Address"}[name]
			out = append(out, strings.TrimPrefix(label+": "+sentence(p.Message), ": "))
		}
	}
	return out
}

func (s *Site) notifierView(v *visit, f *notifierForm) view {
	title, action, cancel := "New notification", v.path(pageNotifiers+"/new"), v.path(pageNotifiers)
	class := "card notify"
	if f.stored != nil {
		title, action, cancel = "Edit "+f.name, v.path(pageNotifiers+"/"+f.name+"/edit"), v.path(pageNotifiers+"/"+f.name)
		class += " is-" + string(f.format)
	}
	return view{title: title, place: placeTeam, content: []g.Node{
		g.If(len(f.problems) > 0, h.Div(h.ID("problems"), h.Class("note bad"), h.Role("alert"), drawing("alert"),
			h.Div(h.P(h.Strong(g.Text("Nothing was stored."))), items(f.problems)))),
		h.Form(h.ID("edit"), h.Class(class), h.AutoComplete("off"), h.Method("post"), h.Action(action),
			hidden("version", f.version),
			g.If(f.stored == nil, g.Group{
				h.FieldSet(h.Class("kinds"), h.Legend(g.Text("Where the notifications go")), g.Map(notifierFormats, func(known notifierFormat) g.Node {
					return choice("format", string(known.format), known.name, f.format == known.format)
				})),
				h.P(h.Class("field"), h.Label(h.For("name"), g.Text("Name")),
					h.Input(h.ID("name"), h.Name("name"), h.Value(f.name), h.Required(), h.MaxLength("63"), h.Placeholder("failures"))),
			}),
			s.receiverFields(f),
			h.FieldSet(h.Class("events"), h.Legend(g.Text("What to report")), g.Map(notifierEvents, func(e notifierEvent) g.Node {
				id := "event-" + string(e.event)
				return h.P(h.Class("box"), h.Input(h.Type("checkbox"), h.ID(id), h.Name("event"), h.Value(string(e.event)), h.Aria("describedby", id+"-help"),
					g.If(slices.Contains(f.events, e.event), h.Checked())),
					h.Span(h.Label(h.For(id), g.Text(e.name)), h.Br(), h.Span(h.ID(id+"-help"), h.Class("soft"), g.Text(e.help))))
			})),
			h.P(h.Class("box"), h.Input(h.Type("checkbox"), h.ID("suspend"), h.Name("suspend"), h.Value("true"), g.If(f.suspend, h.Checked())),
				h.Label(h.For("suspend"), g.Text("Suspended: send nothing for now"))),
			h.Div(h.Class("actions"), submit("Save", "primary"), h.A(h.Class("button quiet"), h.Href(cancel), g.Text("Cancel"))),
		),
	}}
}

// receiverFields are the fields of each format. The form shows those of the chosen one.
func (s *Site) receiverFields(f *notifierForm) g.Node {
	address := func(name, value, placeholder, help string) g.Node {
		return h.P(h.Class("field"), h.Label(h.For(name), g.Text("Address")),
			h.Input(h.Type("url"), h.ID(name), h.Name(name), h.Value(value), h.MaxLength("2048"), h.Placeholder(placeholder), g.Attr("spellcheck", "false"), h.Aria("describedby", name+"-help")),
			h.Span(h.ID(name+"-help"), h.Class("soft"), g.Text(help)))
	}
	isOf := func(format v1alpha1.NotifierFormat) bool { return f.stored == nil || f.format == format }
	slackHelp := "The address of an incoming webhook, from Slack or a service that accepts its format. It is stored as a secret and not shown again."
	if f.stored != nil {
		slackHelp = "Empty: the stored address, which is a secret and not shown."
	}
	return g.Group{
		g.If(isOf(v1alpha1.FormatEmail), h.Div(h.Class("on-email"),
			g.If(!s.SendsEmail, notice(caution, paragraph(noMailServer+" You can save this notification; it begins to send then."))),
			h.P(h.Class("field"), h.Label(h.For("recipients"), g.Text("Recipients")),
				h.Textarea(h.ID("recipients"), h.Name("recipients"), h.Rows("3"), g.Attr("spellcheck", "false"), h.Aria("describedby", "recipients-help"), typed(f.recipients)),
				h.Span(h.ID("recipients-help"), h.Class("soft"), g.Text("Up to ten email addresses, one on each line."))))),
		g.If(isOf(v1alpha1.FormatSlack), h.Div(h.Class("on-slack"), address("slack", f.slack, "https://hooks.slack.com/services/…", slackHelp))),
		g.If(isOf(v1alpha1.FormatStandardWebhooks), h.Div(h.Class("on-webhook"), address("webhook", f.webhook, "https://hooks.example.com/herald",
			"Herald sends signed JSON there (Standard Webhooks). It must start with https:// and be reachable from the internet. The secret for the signatures is shown after you save."))),
	}
}
