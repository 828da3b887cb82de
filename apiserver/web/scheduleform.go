// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/rest"
)

// scheduleForm is the form for a schedule, with what was entered.
type scheduleForm struct {
	// composer has the content of the posts.
	*composer

	// stored is the schedule being edited; nil for a new one.
	stored *bridge.Schedule
	name   string
	texts  []string
	repeat repeat
	// timeZone is an IANA name. from and until are days in it.
	timeZone, from, until, count string
	// preview shows the next times; nil until they are requested.
	preview g.Node
}

// formTexts is the maximum number of texts in a form, as in the resource.
const formTexts = 100

// newSchedule shows the form for a new schedule.
func (s *Site) newSchedule(w http.ResponseWriter, v *visit) error {
	f := &scheduleForm{
		composer: &composer{writing: newWriting(v.zone), title: "New schedule", action: v.path(pageSchedules + "/new"), check: v.path(pageSchedules + "/check")},
		texts:    []string{""}, repeat: repeatOf("0 9 * * 1"), timeZone: v.zone.String(),
	}
	if accounts := s.usable(v); len(accounts) == 1 {
		f.targets = []targetWriting{{connection: accounts[0].Name}}
	}
	s.render(w, v, http.StatusOK, s.scheduleView(v, f))
	return nil
}

// editSchedule shows the form for a stored schedule.
func (s *Site) editSchedule(w http.ResponseWriter, v *visit) error {
	stored, err := s.Service.GetSchedule(v.Context(), v.caller, v.PathValue("id"))
	if err != nil {
		return err
	}
	f := v.storedForm(&stored)
	spec := &stored.Spec
	if twice(&v1alpha1.PostSpec{Targets: spec.Template.Targets}) {
		return &bridge.Error{Code: bridge.CodeConflict, Message: "this schedule lists an account twice, so it cannot be edited here; edit it where it was created"}
	}
	f.writing = writingOf(&v1alpha1.PostSpec{Category: spec.Template.Category, Image: spec.Template.Image, Video: spec.Template.Video, Targets: spec.Template.Targets}, v.zone)
	f.version, f.texts, f.repeat, f.timeZone = stored.Version, spec.Texts, repeatOf(spec.Schedule), stored.Zone.String()
	for i := range f.targets {
		if len(f.texts) > 0 { // a caption replaces the texts
			f.targets[i].caption = spec.Template.Targets[i].Caption
		}
	}
	if len(f.texts) == 0 {
		f.texts = []string{f.caption} // the caption of all accounts is the only text
	}
	f.caption = ""
	f.from, f.until = dayOf(spec.StartAt, stored.Zone), dayOf(spec.EndAt, stored.Zone)
	if spec.Count != nil {
		f.count = strconv.Itoa(int(*spec.Count))
	}
	f.preview = v.upcoming(&stored)
	s.render(w, v, http.StatusOK, s.scheduleView(v, f))
	return nil
}

func (v *visit) storedForm(stored *bridge.Schedule) *scheduleForm {
	at := v.path(pageSchedules + "/" + stored.Name)
	return &scheduleForm{composer: &composer{title: "Edit " + stored.Name, action: at + "/edit", check: at + "/check", exists: true}, stored: stored, name: stored.Name}
}

func dayOf(at *v1alpha1.Time, zone *time.Location) string {
	if at == nil {
		return ""
	}
	return at.In(zone).Format(dateForm)
}

// checkSchedule shows the next times of a schedule while it is being written, and its problems.
func (s *Site) checkSchedule(w http.ResponseWriter, v *visit) error {
	if allowed, wait := s.checks.Allow(v.person.Name, http.Header{}); !allowed {
		s.tooOften(w, v, wait)
		return nil
	}
	f, err := s.readSchedule(w, v)
	if err != nil {
		return err
	}
	found, err := s.checked(v, f)
	if err != nil {
		return err
	}
	s.write(w, http.StatusOK, found)
	return nil
}

// checked returns the next times of a schedule that is being written, and what is wrong or missing.
func (s *Site) checked(v *visit, f *scheduleForm) (g.Node, error) {
	spec, missing := f.spec(s.platforms(v))
	var problems []string
	if missing != nil {
		problems = []string{sentence(missing.Error())}
	}
	found, refused, err := s.Service.CheckSchedule(v.Context(), v.caller, cmp.Or(f.name, "new"), spec)
	if err != nil {
		return nil, err
	}
	if refused != nil && missing == nil {
		problems = s.scheduleProblems(v, &spec, refused)
	}
	return g.Group{
		g.If(found.Rule != nil, h.P(g.Text("The next posts:"))), v.upcoming(&found),
		g.If(found.Warning != "", notice(caution, paragraph(xRepeats))),
		g.If(len(problems) > 0, notice(neutral, h.P(h.Strong(g.Text("Before it can be stored:"))), items(problems))),
	}, nil
}

// scheduleProblems returns a schedule's problems, each with the field's name.
func (s *Site) scheduleProblems(v *visit, spec *v1alpha1.PostScheduleSpec, refused *bridge.Error) []string {
	if len(refused.Problems) == 0 {
		return []string{sentence(s.messageOf(v, refused))}
	}
	var out []string
	for _, p := range refused.Problems {
		var label string
		switch name, _, _ := strings.Cut(p.Path, "["); {
		case p.Target != bridge.NoIndex && p.Target < len(spec.Template.Targets):
			label = v.called(s.account(v, spec.Template.Targets[p.Target].ConnectionRef.Name), spec.Template.Targets[p.Target].ConnectionRef.Name)
		case name == "texts":
			label = "Text " + strconv.Itoa(textNumber(p.Path))
		default:
			label = scheduleFieldNames[name]
		}
		out = append(out, strings.TrimPrefix(label+": "+sentence(p.Message), ": "))
	}
	return out
}

// scheduleFieldNames are the labels of the form, by the paths of problems.
var scheduleFieldNames = map[string]string{
	"name": "Name", "schedule": "Repeat", "time_zone": "Time zone", "start_at": "First day", "end_at": "Last day", "count": "Number of posts", "targets": "Where it goes",
	"media_ids": "Images", "media_id": "Video", "alt_texts": "Alt text", "alt_text": "Alt text", "thumbnail_time": "Cover picture",
}

// textNumber returns the number of the text in a path such as texts[0], counted from 1.
func textNumber(path string) int {
	n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(path, "texts["), "]")) // the path has a number
	return n + 1
}

// storeSchedule creates or changes a schedule, or adds a text to the form.
func (s *Site) storeSchedule(w http.ResponseWriter, v *visit) error {
	f, err := s.readSchedule(w, v)
	if err != nil {
		return err
	}
	switch v.PostForm.Get("do") {
	case "text":
		f.texts = append(f.texts, "")
	case "library":
		f.library = true
	case "times":
		if f.preview, err = s.checked(v, f); err != nil {
			return err
		}
	default:
		return s.saveSchedule(w, v, f)
	}
	s.render(w, v, http.StatusOK, s.scheduleView(v, f))
	return nil
}

func (s *Site) saveSchedule(w http.ResponseWriter, v *visit, f *scheduleForm) error {
	spec, err := f.spec(s.platforms(v))
	if err == nil && f.name == "" {
		err = errNoName
	}
	if err != nil {
		f.problems = []string{sentence(err.Error())}
		s.render(w, v, http.StatusBadRequest, s.scheduleView(v, f))
		return nil
	}
	if f.stored == nil {
		_, err = s.Service.CreateSchedule(v.Context(), v.caller, f.name, spec)
	} else {
		_, err = s.Service.UpdateSchedule(v.Context(), v.caller, f.name, f.version, spec)
	}
	if refused, ok := errors.AsType[*bridge.Error](err); ok {
		f.problems = s.scheduleProblems(v, &spec, refused)
		s.render(w, v, rest.StatusOf(refused.Code), s.scheduleView(v, f))
		return nil
	}
	if err != nil {
		return err
	}
	v.redirect(w, pageSchedules, wordRepeats)
	return nil
}

// scheduleKinds are the kinds of posts that can recur.
var scheduleKinds = []v1alpha1.Category{v1alpha1.CategoryText, v1alpha1.CategoryImage, v1alpha1.CategoryVideo}

func (s *Site) scheduleView(v *visit, f *scheduleForm) view {
	return view{title: f.title, place: placeCalendar, wide: true, uploads: true, without: "You can write schedules and choose among the team's files, but not upload files. " +
		"To see the next times, choose Show the next times.", content: []g.Node{
		h.Form(h.ID("compose"), h.Class("compose schedule"), h.AutoComplete("off"), h.Method("post"), h.Action(f.action),
			// Pressing Enter in a field activates the form's first button.
			h.Button(h.Type("submit"), h.Class("hidden"), h.TabIndex("-1"), h.Aria("hidden", "true")),
			hidden("version", f.version),
			h.Div(h.Class("write"),
				g.If(len(f.problems) > 0, h.Div(h.ID("problems"), h.Class("note bad"), h.Role("alert"), drawing("alert"),
					h.Div(h.P(h.Strong(g.Text("Nothing was stored."))), items(f.problems)))),
				g.If(f.stored == nil, h.P(h.Class("field"), h.Label(h.For("name"), g.Text("Name")),
					h.Input(h.ID("name"), h.Name("name"), h.Value(f.name), h.Required(), h.MaxLength("48"), h.Placeholder("monday-greeting")))),
				g.If(f.stored != nil, notice(neutral, paragraph("Changes apply to posts that do not exist yet. Each is created an hour before its time."))),
				s.scheduleContent(v, f),
				scheduleTimes(f),
				h.Div(h.Class("actions send"),
					submit("Save the schedule", "primary"),
					h.Button(h.Type("submit"), h.Class("button"), h.Name("do"), h.Value("times"), h.FormNoValidate(), g.Text("Show the next times")),
					h.A(h.Class("button quiet"), h.Href(v.path(pageSchedules)), g.Text("Cancel"))),
			),
			h.Aside(h.Class("preview"), h.Aria("label", "Next times"), h.TabIndex("0"),
				h.Div(h.ID("check"), h.Aria("live", "polite"), g.Attr("hx-post", f.check), g.Attr("hx-include", "#compose"),
					g.Attr("hx-trigger", "load, input from:#compose delay:300ms, change from:#compose delay:100ms"), g.Attr("hx-sync", "this:replace"), f.preview)),
		),
		g.Group{g.If(v.may.seeFiles, libraryDialog(v)), s.cropDialog()},
	}}
}

// scheduleContent are the fields for the content of the posts.
func (s *Site) scheduleContent(v *visit, f *scheduleForm) g.Node {
	kinds := hidden("category", string(f.category))
	if !f.exists {
		kinds = h.FieldSet(h.Class("kinds"), h.Legend(g.Text("Kind of post")),
			g.Map(scheduleKinds, func(k v1alpha1.Category) g.Node { return choice("category", string(k), categories[k], k == f.category) }))
	}
	return g.Group{
		kinds,
		s.accountFields(v, f.composer, s.usable(v)),
		h.FieldSet(h.Class("parts"), h.Legend(g.Text("Texts, in turn")),
			h.Ol(g.Map(indexes(len(f.texts)), func(i int) g.Node {
				id := "text-" + strconv.Itoa(i)
				return h.Li(h.Label(h.For(id), g.Text("Text "+strconv.Itoa(i+1))), h.Textarea(h.ID(id), h.Name("text"), h.Dir("auto"), h.Rows("4"), typed(f.texts[i])))
			})),
			h.P(h.Class("soft"), g.Text("Posts take the texts in turn; empty ones are left out. X rejects a text that repeats a recent one, so write several if you post to X.")),
			g.If(len(f.texts) < formTexts, h.P(h.Button(h.Type("submit"), h.Class("button small"), h.Name("do"), h.Value("text"), h.FormNoValidate(), g.Text("Add a text"))))),
		s.mediaFields(v, f.composer),
	}
}

// scheduleTimes are the fields for the times of a schedule.
func scheduleTimes(f *scheduleForm) g.Node {
	day := func(name, label, value, help string) g.Node {
		return h.P(h.Class("field"), h.Label(h.For(name), g.Text(label)), h.Input(h.Type("date"), h.ID(name), h.Name(name), h.Value(value), h.Aria("describedby", name+"-help")),
			h.Span(h.ID(name+"-help"), h.Class("soft"), g.Text(help)))
	}
	return h.Section(h.Class("times"),
		repeatFields(&f.repeat),
		h.P(h.Class("field"), h.Label(h.For("time_zone"), g.Text("Time zone")),
			h.Input(h.ID("time_zone"), h.Name("time_zone"), h.Value(f.timeZone), h.MaxLength("64"), g.Attr("spellcheck", "false"), h.Aria("describedby", "zone-help")),
			h.Span(h.ID("zone-help"), h.Class("soft"), g.Text("A name such as Europe/Berlin or America/New_York. Posts keep their time of day when clocks change."))),
		day("from", "First day", f.from, "Empty: from now on."),
		day("until", "Last day", f.until, "Empty: without an end."),
		h.P(h.Class("field"), h.Label(h.For("count"), g.Text("Number of posts")),
			h.Input(h.Type("number"), h.ID("count"), h.Name("count"), h.Min("1"), h.Max(strconv.Itoa(maxCount)), h.Value(f.count), h.Aria("describedby", "count-help")),
			h.Span(h.ID("count-help"), h.Class("soft"), g.Text("Empty: without a limit."))))
}
