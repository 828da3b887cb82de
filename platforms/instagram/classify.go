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

// Classifications of errors that only Instagram returns. The messages do not vary between calls.
var (
	notTaken  = platforms.Error{Class: platforms.ClassTransient, Problem: "Instagram failed to process {about}"}
	tooSlow   = platforms.Error{Class: platforms.ClassTransient, Problem: "Instagram took too long to fetch {about} from the media store"}
	forgotten = platforms.Error{Class: platforms.ClassTransient, Problem: "Instagram no longer has the container prepared for {about}"}
	notReady  = platforms.Error{Class: platforms.ClassTransient, Problem: "Instagram has not finished preparing {about}"}
	// Instagram sometimes fails to fetch a file that it can reach: one of six images on the same host
	// (gitroomhq/postiz-app#1900), or all files for days (inovector/mixpost#197, May 2026). If the store really is
	// unreachable, the post fails at its starting deadline, with the same message.
	notFetched = platforms.NewError(platforms.ClassTransient, platforms.SubjectInstallation,
		"Instagram could not fetch {about} from the media store", "make the store's public address reachable from the internet, without a login")
	badVideo = file("Instagram refused {about}: a reel must be an MP4 or QuickTime video in H.264 or HEVC, 3 seconds to 15 minutes long, "+
		"at most 1920 pixels wide, with 23 to 60 frames per second and at most 25 Mbit/s", "change the video")
	badThumbnail = file("Instagram refused {about}: its thumbnail offset is outside the video", "choose an earlier one")
	badImageSize = file("Instagram refused {about}: an image must not exceed 8 MiB", "make it smaller")
	badImageType = file("Instagram refused {about}: an image must be a JPEG", "convert it")
	badAspect    = file("Instagram refused {about}: an image must have an aspect ratio between 4:5 and 1.91:1", "crop it")
	badType      = file("Instagram refused {about}: it is not in a supported image or video format (code {error})", "change the file")
	badCaption   = platforms.NewError(platforms.ClassPermanent, platforms.SubjectText,
		"Instagram refused the caption of {about}: it is too long, or has too many hashtags or mentions", "shorten it")
	badCarousel = platforms.Error{Class: platforms.ClassPermanent, Problem: "Instagram refused {about}: a carousel must have 2 to 10 images, and Instagram must have received each of them", Remedy: "change the images"}
	badTags     = platforms.Error{Class: platforms.ClassPermanent, Problem: "Instagram refused the tags of {about}", Remedy: "change them"}
	noTrial     = platforms.NewError(platforms.ClassPermanent, platforms.SubjectAccount,
		"Instagram refused {about}: trial reels are not available to this account (code {error})", "ask the account's owner")
)

func file(problem, remedy string) platforms.Error {
	return platforms.Error{Class: platforms.ClassPermanent, Subject: platforms.SubjectFile, Problem: problem, Remedy: remedy}
}

// fetchPause is the pause before another attempt to fetch an image. Other clients use it successfully.
const fetchPause = 5 * time.Second

const (
	codes = "Instagram Platform, \"Error Codes\""
	seen  = "undocumented; observed by two clients"
)

// errorRows is Instagram's error table. For media that is not found (2207008), the page "Error Codes" recommends a
// retry, and then a new container.
var errorRows = meta.With(
	meta.Row{Code: -1, Subcode: 2207001, Kind: meta.KindMedia, Meaning: "internal Instagram error", Error: &notTaken, Retryable: true, Source: codes},
	meta.Row{Code: -2, Subcode: 2207003, Kind: meta.KindMedia, Meaning: "fetching the file took too long", Error: &tooSlow, Retryable: true, Source: codes},
	meta.Row{Code: 36000, Subcode: 2207004, Kind: meta.KindFile, Meaning: "the image is too large", Error: &badImageSize, Source: codes},
	meta.Row{Code: 36001, Subcode: 2207005, Kind: meta.KindFile, Meaning: "the image is not a JPEG", Error: &badImageType, Source: codes},
	meta.Row{Code: 24, Subcode: 2207006, Kind: meta.KindLost, Meaning: "the container, or a part of it, no longer exists", Error: &forgotten, Retryable: true, Source: codes},
	meta.Row{Code: 24, Subcode: 2207008, Kind: meta.KindNotReady, Meaning: "the container is not available yet", Error: &notReady, Source: codes},
	meta.Row{Code: 36003, Subcode: 2207009, Kind: meta.KindFile, Meaning: "the image is too wide or too tall", Error: &badAspect, Source: codes},
	meta.Row{Code: 36004, Subcode: 2207010, Kind: meta.KindText, Meaning: "the caption is too long", Error: &badCaption, Source: codes},
	meta.Row{Code: -2, Subcode: 2207020, Kind: meta.KindLost, Meaning: "the container has expired", Error: &forgotten, Retryable: true, Source: codes},
	meta.Row{Code: 100, Subcode: 2207023, Kind: meta.KindFile, Meaning: "the media type is unknown", Error: &badType, Source: codes},
	meta.Row{Code: 352, Subcode: 2207026, Kind: meta.KindFile, Meaning: "the video is in an unsupported format", Error: &badVideo, Source: codes},
	meta.Row{Code: 9007, Subcode: 2207027, Kind: meta.KindNotReady, Meaning: "the container is not ready", Error: &notReady, Source: codes},
	// Herald never sends a carousel with an invalid number of parts, so the parts themselves may be at fault.
	meta.Row{Code: 100, Subcode: 2207028, Kind: meta.KindLost, Meaning: "the carousel is invalid", Error: &badCarousel, Retryable: true, Source: codes},
	meta.Row{Code: -1, Subcode: 2207032, Kind: meta.KindMedia, Meaning: "creating the container failed", Error: &notTaken, Retryable: true, Source: codes},
	meta.Row{Code: 100, Subcode: 2207035, Kind: meta.KindContent, Meaning: "a video has product tags with positions", Error: &badTags, Source: codes},
	meta.Row{Code: 100, Subcode: 2207036, Kind: meta.KindContent, Meaning: "a photo has product tags without positions", Error: &badTags, Source: codes},
	meta.Row{Code: 100, Subcode: 2207037, Kind: meta.KindContent, Meaning: "a product tag is invalid or not permitted", Error: &badTags, Source: codes},
	meta.Row{Code: 100, Subcode: 2207040, Kind: meta.KindContent, Meaning: "the post has too many tags", Error: &badTags, Source: codes},
	meta.Row{Code: 9, Subcode: 2207042, Kind: meta.KindQuota, Source: codes},
	meta.Row{Code: 9004, Subcode: 2207052, Kind: meta.KindMedia, Meaning: "the file could not be fetched", Error: &notFetched, Retryable: true, Pause: fetchPause, Source: codes},
	meta.Row{Code: -1, Subcode: 2207053, Kind: meta.KindMedia, Meaning: "the upload failed", Error: &notTaken, Retryable: true, Source: codes},
	meta.Row{Code: 1, Subcode: 2207057, Kind: meta.KindFile, Meaning: "the thumbnail offset is outside the video", Error: &badThumbnail, Source: codes},
	meta.Row{Subcode: 2207077, Kind: meta.KindMedia, Meaning: "the video could not be fetched", Error: &notTaken, Retryable: true, Source: seen},
	meta.Row{Subcode: 2207081, Kind: meta.KindFile, Meaning: "trial reels are not available to this account", Error: &noTrial, Source: seen},
	meta.Row{Subcode: 2207082, Kind: meta.KindMedia, Meaning: "the video could not be uploaded", Error: &notTaken, Retryable: true, Source: seen},
)

// failureSubcode matches the subcode in a failed container's status text, which is a sentence written for users.
var failureSubcode = regexp.MustCompile(`\b22\d{5}\b`)

// containerFailure returns the failure for a container that cannot be published, based on its state and its status
// text.
func containerFailure(g *meta.Graph, found meta.ContainerState, status, about string) *meta.Failure {
	if found != meta.StateError {
		return g.Render(meta.Classification{Error: forgotten, Retryable: true}, new(meta.Error), about)
	}
	// Refusals without a specific code are listed under code 100.
	graphErr := &meta.Error{Status: http.StatusBadRequest, Code: 100}
	graphErr.Subcode, _ = strconv.Atoi(failureSubcode.FindString(status))
	bad := g.Explain(graphErr, about)
	if bad.Unlisted || graphErr.Subcode == 0 {
		bad.Retryable = true
	}
	return bad
}
