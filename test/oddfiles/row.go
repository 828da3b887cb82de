// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oddfiles contains unusual but valid media files, as phones, cameras and tools write them, and the expected
// outcome on each platform. It generates the files from the repository's small samples and with ffmpeg. The tests send
// them through the whole stack, and decode the published files with a different decoder from Herald's.
package oddfiles

import (
	"fmt"
	"maps"
	"slices"
)

// Platform is the name of a platform in the API.
type Platform string

// The platforms' names.
const (
	X         Platform = "x"
	Instagram Platform = "instagram"
	Threads   Platform = "threads"
	TikTok    Platform = "tiktok"
	Facebook  Platform = "facebook"
	YouTube   Platform = "youtube"
)

// ImagePlatforms accept images and VideoPlatforms accept videos, in the order of the columns.
var (
	ImagePlatforms = []Platform{X, Instagram, Threads, TikTok, Facebook}
	VideoPlatforms = []Platform{X, Instagram, Threads, TikTok, YouTube}
)

// Kind is the kind of an outcome.
type Kind string

// The kinds of outcomes.
const (
	// AsSent files are published unchanged.
	AsSent Kind = "as sent"
	// WithoutPlace files are published without their location but are otherwise unchanged: the length, the pixels and
	// the frames are the same.
	WithoutPlace Kind = "without the location"
	// Rendered images are published as renditions.
	Rendered Kind = "rendition"
	// Refused files make Herald reject a post to the platform when it is created.
	Refused Kind = "refused"
)

// Outcome is the expected outcome for a file on a platform.
type Outcome struct {
	Kind Kind
	// Says is part of the expected error.
	Says string
}

// String returns the outcome in the table's format.
func (o Outcome) String() string {
	if o.Kind == Refused {
		return fmt.Sprintf("refused: %q", o.Says)
	}
	return string(o.Kind)
}

func refused(says string) Outcome { return Outcome{Kind: Refused, Says: says} }

// Want contains the expected outcomes for a file.
type Want struct {
	// All is the outcome on the platforms that are not in Except. If All is Refused, no platform can use the file.
	All    Outcome
	Except map[Platform]Outcome
}

// On returns the expected outcome on a platform.
func (w Want) On(p Platform) Outcome {
	if o, ok := w.Except[p]; ok {
		return o
	}
	return w.All
}

// but returns a copy with another outcome on some platforms.
func (w Want) but(o Outcome, on ...Platform) Want {
	except := map[Platform]Outcome{}
	maps.Copy(except, w.Except)
	for _, p := range on {
		except[p] = o
	}
	return Want{w.All, except}
}

var (
	asSent       = Want{All: Outcome{Kind: AsSent}}
	withoutPlace = Want{All: Outcome{Kind: WithoutPlace}}
	rendered     = Want{All: Outcome{Kind: Rendered}}
	rendition    = Outcome{Kind: Rendered}
)

// unusable returns the outcome of a file that causes every post to be rejected.
func unusable(says string) Want { return Want{All: refused(says)} }

// Row is one file.
type Row struct {
	// Name is the name of the file. It describes what is unusual about the file.
	Name string
	// Reason names something that writes such files, or a bug report.
	Reason string
	// Make generates the file.
	Make Maker
	// Needs is the required program, if any: "ffmpeg", or one of its encoders. The simulated platforms use ffprobe,
	// which is part of ffmpeg, for properties that a video's headers do not contain.
	Needs []string
	// Want has the expected outcomes.
	Want Want
	// Short marks the files that a short run uses.
	Short bool
	// Type is the declared type of the upload; if it is empty, the type follows from the name.
	Type string
	// Turn is the image's EXIF orientation (EXIF 2.32, section 4.6.4), or zero if it has none.
	Turn int
	// Shows makes an image that looks the same, for decoders that do not support this file; nil means the file itself.
	Shows Maker
	// Profile reports whether the file has a color profile, which its renditions must keep.
	Profile bool
	// Place reports whether the file contains the location.
	Place bool
}

// Maker generates a file.
type Maker func(k *Kit) ([]byte, error)

// Declares returns the declared type of the upload.
func (r *Row) Declares() string {
	if r.Type != "" {
		return r.Type
	}
	return typeOf(r.Name)
}

// IsVideo reports whether the file is uploaded as a video.
func (r *Row) IsVideo() bool { return r.Declares() == mp4 || r.Declares() == quickTime }

// Platforms returns the platforms that accept the declared type.
func (r *Row) Platforms() []Platform {
	if r.IsVideo() {
		return VideoPlatforms
	}
	return ImagePlatforms
}

// Rows returns all files.
func Rows() []Row {
	return slices.Concat(jpegs(), cameraJPEGs(), pngs(), webps(), labels(), containers(), trailers(), codecs(), shapes(), places())
}
