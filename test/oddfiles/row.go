// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oddfiles has media files that are odd and not wrong, as phones, cameras and tools write them, and what becomes of
// each on each platform. Programs make the files: code of this package from the small samples of the repository, and ffmpeg.
// The tests send them through the whole stack, and decode what arrives by another decoder than Herald's.
package oddfiles

import (
	"fmt"
	"maps"
	"slices"
)

// Platform is one that Herald posts to, as the API names it.
type Platform string

// The platforms.
const (
	X         Platform = "x"
	Instagram Platform = "instagram"
	Threads   Platform = "threads"
	TikTok    Platform = "tiktok"
	Facebook  Platform = "facebook"
	YouTube   Platform = "youtube"
)

// ImagePlatforms take images, and VideoPlatforms videos, in the order of the columns of the table.
var (
	ImagePlatforms = []Platform{X, Instagram, Threads, TikTok, Facebook}
	VideoPlatforms = []Platform{X, Instagram, Threads, TikTok, YouTube}
)

// Kind is what becomes of a file.
type Kind string

// The kinds.
const (
	// AsSent is a file that arrives byte by byte.
	AsSent Kind = "as sent"
	// WithoutPlace is one that arrives without the place where it was taken, and else as sent: the length, the pixels and
	// the frames are the same.
	WithoutPlace Kind = "without the place"
	// Rendered is an image that arrives as a rendition.
	Rendered Kind = "rendition"
	// Refused is a file that a post to the platform is refused for when it is made.
	Refused Kind = "refused"
)

// Outcome is what becomes of a file on a platform.
type Outcome struct {
	Kind Kind
	// Says is what the refusal must say.
	Says string
}

// String returns the outcome as the table has it.
func (o Outcome) String() string {
	if o.Kind == Refused {
		return fmt.Sprintf("refused: %q", o.Says)
	}
	return string(o.Kind)
}

func refused(says string) Outcome { return Outcome{Kind: Refused, Says: says} }

// Want says what becomes of a file on each platform.
type Want struct {
	// All is for the platforms that Except does not name. A file that All refuses is refused whatever the platform, since
	// it was found to be unusable.
	All    Outcome
	Except map[Platform]Outcome
}

// On returns what becomes of the file on a platform.
func (w Want) On(p Platform) Outcome {
	if o, ok := w.Except[p]; ok {
		return o
	}
	return w.All
}

// but returns the same with another outcome on some platforms.
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

// unusable is a file that no post may have.
func unusable(says string) Want { return Want{All: refused(says)} }

// Row is one file.
type Row struct {
	// Name is the name of the file, and tells what is odd about it.
	Name string
	// Reason says who writes such files, or where they were reported.
	Reason string
	// Make makes the file.
	Make Maker
	// Needs are what the file needs beside Go: "ffmpeg", or an encoder of it. The simulated platforms read what the headers
	// of a film do not say by ffprobe, which comes with it.
	Needs []string
	// Want is what becomes of it.
	Want Want
	// Short is set for the files of the short form.
	Short bool
	// Type is what the upload declares; "" for what the name says.
	Type string
	// Turn is how the picture of the file is to be turned to be shown (EXIF 2.32, section 4.6.4); zero for not at all.
	Turn int
	// Shows makes an image that shows what this one shows, for other decoders that ignore what is odd about it; nil for the
	// file itself.
	Shows Maker
	// Profile says that the file has a profile of its colours, which its renditions must have as well.
	Profile bool
	// Place says that the file tells the place where it was taken.
	Place bool
}

// Maker makes a file.
type Maker func(k *Kit) ([]byte, error)

// Declares returns the type that the upload of the file declares.
func (r *Row) Declares() string {
	if r.Type != "" {
		return r.Type
	}
	return typeOf(r.Name)
}

// IsVideo reports whether it is uploaded as a video.
func (r *Row) IsVideo() bool { return r.Declares() == mp4 || r.Declares() == quickTime }

// Platforms returns those that take what the file is declared to be.
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
