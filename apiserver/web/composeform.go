// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"slices"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
)

type composer struct {
	*writing

	title string
	// action is the form's URL, and check the URL of the previews shown while the user writes.
	action, check string
	// exists reports that the post already exists.
	exists bool
	// scheduled reports that the post is scheduled, so its kind cannot be changed and it cannot become a draft again.
	scheduled bool
	// save is the URL of the autosave; empty if the post is stored only on request.
	save string
	// draft is the id of the draft that the form is saved as; empty if it is unknown.
	draft string
	// again reports that the form was sent before, so its fields are newer than the copy that the browser has kept.
	again bool
	// versions shows both versions of a post that has changed in the meantime; nil otherwise.
	versions g.Node
	// omitted lists the parts that a duplicate cannot copy.
	omitted []string
	// notice is shown above the form. It is about the post that was just sent, or the one that is being sent again.
	notice   g.Node
	problems []string
	// library shows the team's files in the form, for a browser without scripts.
	library bool
}

func (s *Site) composer(v *visit, c *composer) view {
	accounts := s.usable(v)
	return view{title: c.title, place: placePosts, wide: true, uploads: true, without: "You can write posts and choose among the team's files, but not upload files or see a preview or character count. " +
		"Problems are listed when you submit.", content: []g.Node{
		h.Form(h.ID("compose"), h.Class("compose"), h.AutoComplete("off"), v.draftAttributes(c), g.If(!c.exists, once(v)), h.Method("post"), h.Action(c.action),
			// Pressing Enter in a field activates the form's first button.
			h.Button(h.Type("submit"), h.Class("hidden"), h.TabIndex("-1"), h.Aria("hidden", "true")),
			hidden("key", c.key), hidden("version", c.version), hidden("zone", zoneNamed(c.zone).String()), hidden("cards", strconv.Itoa(len(c.cards))), g.If(c.before != "", hidden("before", c.before)),
			g.If(c.retryOf != "", hidden("retry_of", c.retryOf)),
			h.Div(h.Class("write"),
				h.Div(h.ID("conflict"), c.versions),
				c.notice,
				splitNotice(c.writing),
				g.If(len(c.problems) > 0, h.Div(h.ID("problems"), h.Class("note bad"), h.Role("alert"), drawing("alert"),
					h.Div(h.P(h.Strong(g.Text("Nothing was sent."))), items(c.problems)))),
				g.If(len(c.omitted) > 0, notice(neutral, h.P(g.Text("Left out:")), items(c.omitted))),
				s.kindFields(c),
				s.accountFields(v, c, accounts),
				s.textFields(v, c),
				s.mediaFields(v, c),
				s.cardFields(v, c),
				s.timeFields(v, c),
				h.Div(h.Class("actions send"),
					submit("Publish now", "primary when-now"), submit("Schedule", "primary when-later"), submit("Save draft", "primary when-draft"),
					h.A(h.Class("button quiet"), h.Href(v.path("posts")+"?said=discarded"), h.Data("discard", ""), g.Text("Discard")),
					h.P(h.ID("saved"), h.Class("soft")),
				),
			),
			h.Aside(h.Class("preview"), h.Aria("label", "Preview"), h.TabIndex("0"),
				h.Div(h.ID("check"), g.Attr("hx-post", c.check), g.Attr("hx-include", "#compose"),
					g.Attr("hx-trigger", "load, input from:#compose delay:300ms, change from:#compose delay:100ms"), g.Attr("hx-sync", "this:replace"),
					h.P(h.Class("soft"), g.Text("Choose an account to see what the post will look like.")))),
		),
		g.Group{g.If(v.may.seeFiles, libraryDialog(v)), s.cropDialog()},
	}}
}

// usable returns the accounts that are not disabled, sorted by platform and name.
func (s *Site) usable(v *visit) []*v1alpha1.Connection {
	return slices.DeleteFunc(s.accounts(v), func(c *v1alpha1.Connection) bool { return c.Spec.Disabled })
}

func choice(name, value, label string, chosen bool) g.Node {
	id := name + "-" + value
	return h.Span(
		h.Input(h.Type("radio"), h.ID(id), h.Name(name), h.Value(value), g.If(chosen, h.Checked())),
		h.Label(h.For(id), g.Text(label)),
	)
}

// formKinds are the kinds of posts, in the order of the form.
var formKinds = []v1alpha1.Category{v1alpha1.CategoryText, v1alpha1.CategoryImage, v1alpha1.CategoryVideo, v1alpha1.CategoryTree}

func (s *Site) kindFields(c *composer) g.Node {
	if c.scheduled {
		return hidden("category", string(c.category))
	}
	return h.FieldSet(h.Class("kinds"), h.Legend(g.Text("Kind of post")),
		g.Map(formKinds, func(k v1alpha1.Category) g.Node {
			return choice("category", string(k), categories[k], k == c.category)
		}))
}

// class marks fields that exist only for some kinds of posts. CSS shows the fields for the chosen kind.
func (c *composer) class(of string) g.Node {
	if c.scheduled {
		return h.Class(of + " chosen-" + string(c.category))
	}
	return h.Class(of)
}

func (s *Site) accountFields(v *visit, c *composer, accounts []*v1alpha1.Connection) g.Node {
	if len(accounts) == 0 {
		return notice(caution, paragraph("There is no account to post to."), h.P(link(v.path("connections"), "Connect an account", "small primary")))
	}
	return h.FieldSet(h.Class("pick"), h.Legend(g.Text("Where it goes")),
		h.Ul(g.Map(accounts, func(a *v1alpha1.Connection) g.Node {
			t, chosen := c.target(a.Name)
			return s.accountTile(v, a, &t, chosen)
		})))
}

func (s *Site) targetFields(a *v1alpha1.Connection, t *targetWriting) g.Node {
	own, title, language := "own-"+a.Name, "title-"+a.Name, "language-"+a.Name
	return g.Group{
		g.El("output", h.ID("count-"+a.Name), h.Class("count"), h.For("caption "+own)),
		g.If(a.Spec.Platform == v1alpha1.PlatformYouTube, h.P(h.Class("only-video field"),
			h.Label(h.For(title), g.Text("Title on YouTube")), h.Input(h.ID(title), h.Name(title), h.Dir("auto"), h.Value(t.title), h.MaxLength("200"), h.AutoComplete("off")))),
		g.If(a.Spec.Platform == v1alpha1.PlatformTikTok, s.tiktokFields(a, t)),
		g.If(a.Spec.Platform == v1alpha1.PlatformMastodon, mastodonFields(a.Name, &t.mastodon)),
		g.If(a.Spec.Platform.HasLanguage(), h.P(h.Class("field"), h.Label(h.For(language), g.Text("Language on "+a.Spec.Platform.Title())),
			h.Input(h.ID(language), h.Name(language), h.Value(t.language), h.MaxLength("12"), h.Placeholder("such as en or pt-BR"), h.AutoComplete("off")))),
		h.Details(h.Class("only-caption"), g.If(t.caption != "", g.Attr("open")),
			h.Summary(g.Text("Different text for "+a.Spec.Platform.Title())),
			h.Label(h.Class("hidden"), h.For(own), g.Text("Text for "+nameOfAccount(a, a.Name)+" on "+a.Spec.Platform.Title())),
			h.Textarea(h.ID(own), h.Name(own), h.Dir("auto"), h.Rows("4"), h.Placeholder("If empty, the text for all accounts is used."), typed(t.caption))),
	}
}

// privacies are the labels of the privacy levels that Herald supports. TikTok has more.
var privacies = map[v1alpha1.TikTokPrivacyLevel]string{v1alpha1.TikTokPublicToEveryone: "Everyone", v1alpha1.TikTokSelfOnly: "Only you"}

// privacyOptions are the levels that the account offers. The post's current level remains in the list even if the
// account no longer offers it: otherwise the browser would silently choose another one, and the checks already report
// the problem. No level is preselected, because TikTok requires a user to choose (Content Sharing Guidelines).
func privacyOptions(offered []string, has v1alpha1.TikTokPrivacyLevel) g.Node {
	if has != "" && !slices.Contains(offered, string(has)) {
		offered = append(slices.Clone(offered), string(has))
	}
	return g.Group{
		g.If(has == "", h.Option(h.Value(""), g.Text("Choose"))),
		g.Map(offered, func(name string) g.Node {
			level := v1alpha1.TikTokPrivacyLevel(name)
			label, known := privacies[level]
			return g.If(known, h.Option(h.Value(name), g.If(level == has, h.Selected()), g.Text(label)))
		}),
	}
}

// tiktokFields are TikTok's fields, with only the account's options (Content Sharing Guidelines).
func (s *Site) tiktokFields(a *v1alpha1.Connection, t *targetWriting) g.Node {
	may := a.Status.TikTok
	if may == nil {
		may = &v1alpha1.TikTokAccount{PrivacyLevelOptions: []string{"PUBLIC_TO_EVERYONE", "SELF_ONLY"}}
	}
	box := func(name, class, label string, ticked, disabled bool) g.Node {
		id := name + "-" + a.Name
		return h.Span(h.Class("box "+class), h.Input(h.Type("checkbox"), h.ID(id), h.Name(id), h.Value("yes"), g.If(ticked && !disabled, h.Checked()), g.If(disabled, h.Disabled())),
			h.Label(h.For(id), g.Text(label)))
	}
	on := func(b *bool) bool { return b == nil || *b }
	id := "privacy-" + a.Name
	return h.Div(h.Class("only-media tiktok"), hidden("tiktok-"+a.Name, "yes"),
		h.P(h.Class("field"), h.Label(h.For(id), g.Text("Who can see it on TikTok")), h.Select(h.ID(id), h.Name(id),
			privacyOptions(may.PrivacyLevelOptions, t.tiktok.PrivacyLevel))),
		h.P(h.Class("boxes"),
			box("comment", "", "Comments", on(t.tiktok.AllowComment), may.CommentDisabled),
			box("duet", "only-video", "Duets", on(t.tiktok.AllowDuet), may.DuetDisabled),
			box("stitch", "only-video", "Stitches", on(t.tiktok.AllowStitch), may.StitchDisabled),
			box("music", "only-image", "Let TikTok add music", t.tiktok.AutoAddMusic, false),
			box("ai", "", "Made with AI", t.tiktok.IsAIGenerated, false),
			box("inbox", "", "Send to the app's inbox as a draft", t.tiktok.Draft, false),
		),
	)
}

func (s *Site) textFields(v *visit, c *composer) g.Node {
	var offer g.Node
	if spec, err := c.spec(s.platforms(v)); err == nil && !c.scheduled {
		offer = splitOffer(s.threadOf(v, &spec))
	}
	return g.Group{
		h.P(c.class("only-caption field"), h.Label(h.For("caption"), g.Text("Text")),
			h.Textarea(h.ID("caption"), h.Name("caption"), h.Dir("auto"), h.Rows("7"), h.Placeholder("What do you want to say?"), typed(c.caption))),
		h.Div(h.ID(splitID), c.class("only-caption"), offer),
	}
}

func (s *Site) cardFields(v *visit, c *composer) g.Node {
	focus := s.hasFocalPoints(v, c)
	return h.FieldSet(c.class("only-tree parts"), h.Legend(g.Text("Parts of the thread")),
		h.Ol(g.Map(indexes(len(c.cards)), func(i int) g.Node { return s.cardField(v, c, strconv.Itoa(i), strconv.Itoa(i+1), c.cards[i], focus) })),
		// The page's script adds parts without reloading the page, and replaces both numbers.
		g.El("template", h.Data("part", ""), s.cardField(v, &composer{}, "{index}", "{number}", v1alpha1.TreeCard{}, focus)),
		h.P(h.Class("soft"), g.Text(v.placeRule())),
		h.P(h.Class("actions"),
			h.Button(h.Type("submit"), h.Class("button small"), h.Name("do"), h.Value("add"), h.FormNoValidate(), g.Text("Add a part")),
			h.Button(h.Type("submit"), h.Class("button small quiet"), h.Name("do"), h.Value("drop"), h.FormNoValidate(), g.If(len(c.cards) <= 2, g.Attr("hidden")), g.Text("Remove the last part")),
		))
}

func (s *Site) cardField(v *visit, c *composer, index, number string, card v1alpha1.TreeCard, focus bool) g.Node {
	files := &fileField{
		name: "media-" + index, label: "Pictures and videos of part " + number, types: pictureTypes + "," + videoTypes, many: true,
		files: card.MediaRefs, focus: focus, library: c.library && c.category == v1alpha1.CategoryTree,
	}
	return h.Li(
		h.Label(h.For("card-"+index), g.Text("Part "+number)),
		h.Textarea(h.ID("card-"+index), h.Name("card-"+index), h.Dir("auto"), h.Rows("4"), typed(card.Caption)),
		s.dropZone(v, files),
	)
}

func (s *Site) mediaFields(v *visit, c *composer) g.Node {
	var videos []v1alpha1.MediaReference
	if c.video != "" {
		videos = c.perFile.references("video", []string{c.video})
	}
	focus := s.hasFocalPoints(v, c)
	return g.Group{
		h.Div(c.class("only-image"), s.dropZone(v, &fileField{name: "image", label: "Images", types: pictureTypes, many: true, kind: v1alpha1.CategoryImage, files: c.perFile.references("image", c.images), focus: focus, library: c.library && c.category == v1alpha1.CategoryImage})),
		h.Div(c.class("only-video"),
			s.dropZone(v, &fileField{name: "video", label: "Video", types: videoTypes, kind: v1alpha1.CategoryVideo, files: videos, focus: focus, library: c.library && c.category == v1alpha1.CategoryVideo}),
			h.P(h.Class("field"), h.Label(h.For("thumbnail"), g.Text("Cover picture at (seconds)")),
				h.Input(h.ID("thumbnail"), h.Name("thumbnail"), h.Value(c.thumbnail), g.Attr("inputmode", "decimal"), h.Placeholder("the platform chooses"), h.AutoComplete("off")))),
		h.P(h.Class("only-media soft"), g.Text(v.placeRule())),
	}
}

// placeRule explains whether files are published with the location where they were taken.
func (v *visit) placeRule() string {
	if v.team.Spec.Media.KeepLocation {
		return "Your team publishes pictures and videos with the location where they were taken, if the files contain it."
	}
	return "Platforms receive pictures and videos without the location where they were taken."
}

func (s *Site) timeFields(v *visit, c *composer) g.Node {
	return h.FieldSet(h.Class("times"), h.Legend(g.Text("When")),
		h.Div(h.Class("kinds"),
			choice("when", whenNow, "Now", c.when == whenNow),
			choice("when", whenLater, "At a time", c.when == whenLater),
			g.If(!c.scheduled, choice("when", whenDraft, "Keep as a draft", c.when == whenDraft)),
		),
		h.P(h.Class("field when-later"), h.Label(h.For("at"), g.Text("Day and time ("), h.Span(h.Data("zone", ""), g.Text(zoneNamed(c.zone).String())), g.Text(")")),
			hidden("scheduled_at", c.at), h.Input(h.Type("datetime-local"), h.ID("at"), h.Name("at"), h.Data("utc", "scheduled_at"), h.Aria("describedby", timeNoteID), h.Value(c.local))),
		h.Div(h.ID(timeNoteID), h.Class("when-later"), h.Aria("live", "polite"), v.timeNote(c.writing)))
}
