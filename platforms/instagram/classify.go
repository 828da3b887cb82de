// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/meta"
)

// What people are told of Instagram's own errors. None of it changes from one
// call to the next.
var (
	notTaken  = platforms.Error{Class: platforms.ClassTransient, Problem: "Instagram failed to take {about}"}
	tooSlow   = platforms.Error{Class: platforms.ClassTransient, Problem: "Instagram took too long to fetch {about} from the media store"}
	forgotten = platforms.Error{Class: platforms.ClassTransient, Problem: "Instagram no longer has what was prepared of {about}"}
	notReady  = platforms.Error{Class: platforms.ClassTransient, Problem: "Instagram is not done with preparing {about}"}
	// Instagram fails at times to fetch what it can reach: one of six images of a
	// host (gitroomhq/postiz-app#1900), or all for days (inovector/mixpost#197, May
	// 2026). A store that it really cannot reach fails the post at its starting
	// deadline, with the same words.
	notFetched = platforms.Error{
		Class:   platforms.ClassTransient,
		Problem: "Instagram could not fetch {about} from the media store",
		Remedy:  "make the store's public address reachable from the internet, without a login",
	}
	badVideo = platforms.Error{
		Class:   platforms.ClassPermanent,
		Problem: "Instagram refused {about}: a reel is an MP4 or QuickTime film in H.264 or HEVC, 3 seconds to 15 minutes long, at most 1920 pixels wide, with 23 to 60 frames and at most 25 Mbit a second",
		Remedy:  "change the video",
	}
	badThumbnail = platforms.Error{
		Class:   platforms.ClassPermanent,
		Problem: "Instagram refused {about}: the moment of its thumbnail does not lie within the video",
		Remedy:  "choose an earlier one",
	}
	badImageSize = platforms.Error{Class: platforms.ClassPermanent, Problem: "Instagram refused {about}: an image may have 8 MiB at most", Remedy: "make it smaller"}
	badImageType = platforms.Error{Class: platforms.ClassPermanent, Problem: "Instagram refused {about}: an image must be a JPEG", Remedy: "convert it"}
	badAspect    = platforms.Error{Class: platforms.ClassPermanent, Problem: "Instagram refused {about}: an image must be between 4:5 and 1.91:1 in shape", Remedy: "crop it"}
	badCaption   = platforms.Error{
		Class:   platforms.ClassPermanent,
		Problem: "Instagram refused the caption of {about}: it is too long, or has too many hashtags or mentions",
		Remedy:  "shorten it",
	}
	badCarousel = platforms.Error{Class: platforms.ClassPermanent, Problem: "Instagram refused {about}: a carousel shows 2 to 10 images"}
	badTags     = platforms.Error{Class: platforms.ClassPermanent, Problem: "Instagram refused the tags of {about}", Remedy: "change them"}
)

// fetchPause is how long to wait before an image that was not fetched is tried
// again, as clients do with success.
const fetchPause = 5 * time.Second

// subcodeNotFound is what Instagram says when it does not find a container that it
// has made. Its page "Error codes" advises to try again, and to make another one if
// that happens twice.
const subcodeNotFound = 2207008

func isNotFound(said *meta.Error) bool { return said.Subcode == subcodeNotFound }

// subcodes is the table of Instagram's subcodes (Graph API reference, "Error
// codes" of Content Publishing); those that two clients have seen and no page
// names are 2207077, 2207081 and 2207082. Those that a Kind tells are not in it.
var subcodes = map[int]meta.Meaning{
	2207001:         {Error: notTaken, Again: true},
	2207003:         {Error: tooSlow, Again: true},
	2207004:         {Error: badImageSize},
	2207005:         {Error: badImageType},
	2207006:         {Error: forgotten, Again: true},
	subcodeNotFound: {Error: notReady},
	2207009:         {Error: badAspect},
	2207010:         {Error: badCaption},
	2207020:         {Error: forgotten, Again: true},
	2207026:         {Error: badVideo},
	2207027:         {Error: notReady},
	2207028:         {Error: badCarousel},
	2207032:         {Error: notTaken, Again: true},
	2207035:         {Error: badTags},
	2207036:         {Error: badTags},
	2207037:         {Error: badTags},
	2207040:         {Error: badTags},
	2207052:         {Error: notFetched, Again: true, Pause: fetchPause},
	2207053:         {Error: notTaken, Again: true},
	2207057:         {Error: badThumbnail},
	2207077:         {Error: notTaken, Again: true},
	2207082:         {Error: notTaken, Again: true},
}

// failureSubcode is how the status of a container that failed names its error,
// in a sentence for people.
var failureSubcode = regexp.MustCompile(`\b22\d{5}\b`)

// ended says what became of a container that cannot be published: its state,
// and what its status tells of that.
func ended(g *meta.Graph, found meta.State, status, about string) *meta.Failure {
	if found != meta.StateError {
		return g.Mean(meta.Meaning{Error: forgotten, Again: true}, new(meta.Error), about)
	}
	// Refusals without a code of their own are listed under this one.
	said := &meta.Error{Status: http.StatusBadRequest, Code: 100}
	said.Subcode, _ = strconv.Atoi(failureSubcode.FindString(status))
	bad := g.Explain(said, about)
	if _, known := subcodes[said.Subcode]; !known {
		bad.Again = bad.Class == platforms.ClassPermanent && said.Kind() == meta.KindOther
	}
	return bad
}
