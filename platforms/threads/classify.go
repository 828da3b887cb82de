// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"time"

	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/meta"
)

// Classifications of errors that only Threads returns. The messages do not vary between calls.
var (
	// The store, or the connection to it, may be down temporarily. If Threads cannot reach it at all, the post
	// fails at its starting deadline, with the same message.
	notFetched = platforms.NewError(platforms.ClassTransient, platforms.SubjectInstallation,
		"Threads could not fetch {about} from the media store", "make the store's public address reachable from the internet, without a login")
	unprocessed = platforms.NewError(platforms.ClassPermanent, "",
		"Threads could not prepare {about} ({error})", "try again later, or change its files")
	badFile      = refused("it cannot be processed", "export it again, as an MP4 with H.264 and AAC")
	badShape     = refused("its aspect ratio is not between 0.01:1 and 10:1", "crop it")
	badBitRate   = refused("a video may have at most 100 Mbit/s", "export it at a lower bit rate")
	badDuration  = refused("a video may be at most 5 minutes long", "shorten it")
	badRate      = refused("a video must have 23 to 60 frames per second", "export it at 30 frames per second")
	badSound     = refused("its audio must be AAC with one or two channels", "export it with stereo audio")
	tooManyLinks = platforms.NewError(platforms.ClassPermanent, platforms.SubjectText,
		"Threads refused the text of {about}: it contains more than five different addresses", "remove some")
	partsLost = platforms.Error{Class: platforms.ClassTransient, Problem: "Threads no longer has the files of {about} (code {error})"}
)

func refused(because, remedy string) platforms.Error {
	return platforms.Error{
		Class: platforms.ClassPermanent, Subject: platforms.SubjectFile,
		Problem: "Threads could not prepare {about}: " + because + " ({error})", Remedy: remedy,
	}
}

// fetchPause is the pause before another attempt to fetch a file, as on Instagram.
const fetchPause = 5 * time.Second

const (
	troubleshooting = "Threads API, \"Troubleshooting\""
	changelog       = "Threads API changelog, 22 December 2025"
)

// errorRows is Threads' error table. The words without a code are the reasons in a failed container's status.
var errorRows = meta.With(
	// Threads returns this for a container that it cannot publish yet, for one that is already published, and
	// sometimes for one that is ready.
	meta.Row{Code: 24, Kind: meta.KindNotReady, Meaning: "the container is not available yet", Source: "observed by other clients (gitroomhq/postiz-app#2047, trypostit/trypost#280)"},
	meta.Row{Code: 24, Subcode: 4279009, Kind: meta.KindNotReady, Meaning: "the container is not available yet", Source: "observed by other clients (gitroomhq/postiz-app#2047, trypostit/trypost#280)"},
	meta.Row{Code: 100, Subcode: 4279004, Kind: meta.KindLost, Meaning: "parts of the carousel are invalid or have expired", Error: &partsLost, Retryable: true, Source: "exileum/meta-mcp, pull request 4"},
	meta.Row{Subcode: 4279013, Kind: meta.KindPerson, Meaning: "the account is restricted", Source: "observed by other clients (gitroomhq/postiz-app, Threads provider)"},
	meta.Row{Code: 9004, Subcode: 2207052, Kind: meta.KindMedia, Meaning: "the file could not be fetched", Error: &notFetched, Retryable: true, Pause: fetchPause, Source: "Instagram Platform, \"Error Codes\""},
	meta.Row{Code: 100, Word: "THREADS_API__LINK_LIMIT_EXCEEDED", Kind: meta.KindText, Meaning: "the text contains more than five different addresses", Error: &tooManyLinks, Source: changelog},
	meta.Row{Word: "FAILED_DOWNLOADING_VIDEO", Kind: meta.KindMedia, Meaning: "the file could not be fetched", Error: &notFetched, Retryable: true, Pause: fetchPause, Source: troubleshooting},
	meta.Row{Word: "FAILED_PROCESSING_AUDIO", Kind: meta.KindFile, Meaning: "the audio of the video cannot be processed", Error: &badFile, Source: troubleshooting},
	meta.Row{Word: "FAILED_PROCESSING_VIDEO", Kind: meta.KindFile, Meaning: "the video cannot be processed", Error: &badFile, Source: troubleshooting},
	meta.Row{Word: "INVALID_ASPEC_RATIO", Kind: meta.KindFile, Meaning: "the aspect ratio of the file is not supported", Error: &badShape, Source: troubleshooting},
	meta.Row{Word: "INVALID_BIT_RATE", Kind: meta.KindFile, Meaning: "the bit rate of the video is too high", Error: &badBitRate, Source: troubleshooting},
	meta.Row{Word: "INVALID_DURATION", Kind: meta.KindFile, Meaning: "the video is too long", Error: &badDuration, Source: troubleshooting},
	meta.Row{Word: "INVALID_FRAME_RATE", Kind: meta.KindFile, Meaning: "the frame rate of the video is too low or too high", Error: &badRate, Source: troubleshooting},
	meta.Row{Word: "INVALID_AUDIO_CHANNELS", Kind: meta.KindFile, Meaning: "the audio of the video has too many channels", Error: &badSound, Source: troubleshooting},
	meta.Row{Word: "INVALID_AUDIO_CHANNEL_LAYOUT", Kind: meta.KindFile, Meaning: "the audio channel layout of the video is not supported", Error: &badSound, Source: troubleshooting},
	meta.Row{Word: unknownFailure, Kind: meta.KindOther, Meaning: "the container failed for an unknown reason", Error: &unprocessed, Source: troubleshooting},
)

// isFailureWord reports whether a word has the same form as the documented reasons for a container's failure.
func isFailureWord(why string) bool {
	return text.Consists(why, 3, 41, text.Upper+"_") && why[0] != '_'
}

// unknownFailure is the failure for an unknown reason.
const unknownFailure = "UNKNOWN"

// containerFailure returns the failure for a failed container. It is retryable if the container is for the whole post,
// but not if it is for one of several files.
func containerFailure(g *meta.Graph, _ meta.ContainerState, why, about string) *meta.Failure {
	if !isFailureWord(why) {
		why = unknownFailure
	}
	bad := g.Explain(&meta.Error{Status: 400, Word: why}, about)
	if bad.Unlisted {
		bad = g.Render(meta.Classification{Error: unprocessed}, bad.GraphError, about)
		bad.Code, bad.Unlisted = why, true
	}
	bad.Retryable = bad.Retryable || about == meta.ThePost
	return bad
}
