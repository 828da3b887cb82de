// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// maxTitle is how long a title may be. YouTube does not say in which units: what the stricter reading, UTF-16, refuses is
	// refused here.
	maxTitle = 100
	// maxDescription is how long a description may be, in bytes.
	maxDescription = 5000
	// maxTags is how long all tags may be together, with the commas between them and quotes around those with a space.
	maxTags = 500
)

// resource is a video as a client describes it.
type resource struct {
	Snippet          *snippet                `json:"snippet,omitempty"`
	Status           *videoStatus            `json:"status,omitempty"`
	Recording        *recording              `json:"recordingDetails,omitempty"`
	ProductPlacement *productPlacement       `json:"paidProductPlacementDetails,omitempty"`
	Localizations    map[string]localization `json:"localizations,omitempty"`
}

type snippet struct {
	Title                string   `json:"title"`
	Description          string   `json:"description"`
	Tags                 []string `json:"tags,omitempty"`
	CategoryID           string   `json:"categoryId,omitempty"`
	DefaultLanguage      string   `json:"defaultLanguage,omitempty"`
	DefaultAudioLanguage string   `json:"defaultAudioLanguage,omitempty"`
}

type videoStatus struct {
	PrivacyStatus  string `json:"privacyStatus,omitempty"`
	PublishAt      string `json:"publishAt,omitempty"`
	License        string `json:"license,omitempty"`
	Embeddable     *bool  `json:"embeddable,omitempty"`
	StatsViewable  *bool  `json:"publicStatsViewable,omitempty"`
	MadeForKids    *bool  `json:"selfDeclaredMadeForKids,omitempty"`
	SyntheticMedia *bool  `json:"containsSyntheticMedia,omitempty"`
}

type recording struct {
	Date string `json:"recordingDate,omitempty"`
}

type productPlacement struct {
	Has bool `json:"hasPaidProductPlacement"`
}

type localization struct {
	Title       string `json:"title"`
	Description string `json:"description"`
}

// categories are those that a video may be put into.
var categories = []string{"1", "2", "10", "15", "17", "19", "20", "22", "23", "24", "25", "26", "27", "28", "29"}

// settable are the parts of a video that a client may give.
var settable = []string{"snippet", "status", "recordingDetails", "paidProductPlacementDetails", "localizations"}

// badVideo is the answer to a part of a video that is wrong.
func badVideo(why, message string) *problem {
	with := refuse(http.StatusBadRequest, "INVALID_ARGUMENT", "youtube.video", why, message)
	return &with
}

// readResource decodes a video and checks it. What is set must be named by a part.
func readResource(content []byte, asked []string, now time.Time) (resource, *problem) {
	var out resource
	given := map[string]json.RawMessage{}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	err := errors.Join(decoder.Decode(&out), json.Unmarshal(content, &given))
	if _, more := decoder.Token(); err != nil || !errors.Is(more, io.EOF) {
		with := refuse(http.StatusBadRequest, "INVALID_ARGUMENT", "global", "badRequest", "Invalid JSON payload received.")
		if err != nil {
			with.Message += " " + err.Error()
		}
		return out, &with
	}
	for part := range given {
		if !slices.Contains(asked, part) {
			with := badParameter("unexpectedPart", "part", "The resource sets "+part+", which the part parameter does not name.")
			return out, &with
		}
	}
	if out.Snippet == nil {
		return out, badVideo("invalidTitle", "The request metadata specifies an invalid or empty video title.")
	}
	if bad := checkSnippet(*out.Snippet); bad != nil {
		return out, bad
	}
	if out.Localizations != nil && out.Snippet.DefaultLanguage == "" {
		return out, badVideo("defaultLanguageNotSet", "The request is trying to add localized video details without specifying the default language.")
	}
	if out.Recording != nil {
		if _, err := time.Parse(time.RFC3339, out.Recording.Date); err != nil {
			return out, badVideo("invalidRecordingDetails", "The request metadata specifies invalid recording details.")
		}
	}
	if out.Status == nil {
		out.Status = &videoStatus{}
	}
	return out, checkStatus(out.Status, now)
}

func checkSnippet(s snippet) *problem {
	switch {
	case strings.TrimSpace(s.Title) == "", len(utf16.Encode([]rune(s.Title))) > maxTitle, strings.ContainsAny(s.Title, "<>"):
		return badVideo("invalidTitle", "The request metadata specifies an invalid or empty video title.")
	case len(s.Description) > maxDescription, strings.ContainsAny(s.Description, "<>"):
		return badVideo("invalidDescription", "The request metadata specifies an invalid video description.")
	case tagsLength(s.Tags) > maxTags, slices.Contains(s.Tags, ""):
		return badVideo("invalidTags", "The request metadata specifies invalid video keywords.")
	case s.CategoryID != "" && !slices.Contains(categories, s.CategoryID):
		return badVideo("invalidCategoryId", "The snippet.categoryId property specifies an invalid category ID.")
	default:
		return nil
	}
}

func tagsLength(tags []string) int {
	n := max(0, len(tags)-1)
	for _, tag := range tags {
		n += utf8.RuneCountInString(tag)
		if strings.Contains(tag, " ") {
			n += len(`""`)
		}
	}
	return n
}

// checkStatus checks who may see a video, and fills in what was left out.
func checkStatus(s *videoStatus, now time.Time) *problem {
	switch {
	case !slices.Contains([]string{"", "public", "unlisted", "private"}, s.PrivacyStatus):
		return badVideo("invalidVideoMetadata", "The request metadata is invalid: status.privacyStatus is not public, unlisted or private.")
	case !slices.Contains([]string{"", "youtube", "creativeCommon"}, s.License):
		return badVideo("invalidVideoMetadata", "The request metadata is invalid: status.license is not youtube or creativeCommon.")
	}
	if s.PublishAt != "" {
		at, err := time.Parse(time.RFC3339, s.PublishAt)
		if err != nil || s.PrivacyStatus != "private" {
			return badVideo("invalidPublishAt", "The request metadata specifies an invalid scheduled publishing time.")
		}
		if !at.After(now) {
			s.PrivacyStatus, s.PublishAt = "public", ""
		}
	}
	if s.PrivacyStatus == "" {
		s.PrivacyStatus = "public"
	}
	if s.License == "" {
		s.License = "youtube"
	}
	return nil
}
