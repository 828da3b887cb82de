// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mastodon

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

const (
	// mostServers is the number of servers whose limits are kept in memory, and limitsLast is how long they are
	// kept. Administrators rarely change them.
	mostServers = 1024
	limitsLast  = time.Hour
	// mostFiles is the maximum number of files on a card in a Post.
	mostFiles = 20
)

// limits are a server's limits (entities/Instance, "configuration").
type limits struct {
	characters, perURL, media int
	imageBytes, videoBytes    int64
	imagePixels, videoPixels  int64
	frameRate                 int
	// altText is zero if the server accepts every alt text that Herald allows. types is empty if it accepts all of
	// Herald's file types.
	altText int
	types   []v1alpha1.MimeType
}

// defaults are the limits of a server with default settings (entities/Instance; user/posting). altText is not set:
// Mastodon accepts alt texts of 1,500 characters, more than Herald allows. Other servers with Mastodon's API have their
// own limits.
var defaults = limits{
	characters: 500, perURL: 23, media: 4, imageBytes: 16 << 20, videoBytes: 99 << 20, imagePixels: 33_177_600, videoPixels: 8_294_400, frameRate: 120,
}

var (
	imageTypes = []v1alpha1.MimeType{v1alpha1.MimeJPEG, v1alpha1.MimePNG, v1alpha1.MimeWebP}
	videoTypes = []v1alpha1.MimeType{v1alpha1.MimeMP4, v1alpha1.MimeQuickTime}
)

// apply returns the rules with these limits.
func (l *limits) apply(rules platforms.Capabilities) platforms.Capabilities {
	perURL := l.perURL
	rules.MaxCaption = l.characters
	rules.CaptionLength = func(text string) int { return length(text, perURL) }
	rules.MaxImages, rules.MaxVideoBytes, rules.MaxAltText = l.media, l.videoBytes, l.altText
	rules.Card = platforms.CardLimits{MaxItems: l.media, MaxVideos: 1, MaxImageBytes: l.imageBytes, MaxVideoBytes: l.videoBytes}
	rules.Images = platforms.ImageLimits{Types: imageTypes, MaxBytes: l.imageBytes, MaxPixels: l.imagePixels}
	rules.Videos = platforms.VideoLimits{MaxPixels: l.videoPixels, MaxFrameRate: float64(l.frameRate)}
	if len(l.types) == 0 {
		return rules
	}
	rules.Images.Types, rules.Videos.Types = among(imageTypes, l.types), among(videoTypes, l.types)
	if len(rules.Videos.Types) == 0 {
		rules.Card.MaxVideos = 0
		rules.Categories = slices.DeleteFunc(slices.Clone(rules.Categories), func(c v1alpha1.Category) bool { return c == v1alpha1.CategoryVideo })
	}
	return rules
}

// among returns the types that are in the list.
func among(types, list []v1alpha1.MimeType) []v1alpha1.MimeType {
	return slices.DeleteFunc(slices.Clone(types), func(name v1alpha1.MimeType) bool { return !slices.Contains(list, name) })
}

// limitsOf returns the limits from a connection's status. Missing values are replaced with the defaults.
func limitsOf(s *v1alpha1.MastodonServer) *limits {
	return &limits{
		characters: cmp.Or(int(s.MaxCharacters), defaults.characters), perURL: cmp.Or(int(s.CharactersPerURL), defaults.perURL),
		media: cmp.Or(int(s.MaxMedia), defaults.media), imageBytes: cmp.Or(s.MaxImageBytes, defaults.imageBytes), videoBytes: cmp.Or(s.MaxVideoBytes, defaults.videoBytes),
		imagePixels: cmp.Or(s.MaxImagePixels, defaults.imagePixels), videoPixels: cmp.Or(s.MaxVideoPixels, defaults.videoPixels),
		frameRate: cmp.Or(int(s.MaxVideoFrameRate), defaults.frameRate), altText: int(s.MaxAltText), types: s.MediaTypes,
	}
}

// document is the part of GET /api/v2/instance that Herald reads.
type document struct {
	Configuration struct {
		Statuses struct {
			Characters jsondoc.Text `json:"max_characters"`
			Media      jsondoc.Text `json:"max_media_attachments"`
			PerURL     jsondoc.Text `json:"characters_reserved_per_url"`
		} `json:"statuses"`
		Media struct {
			ImageBytes  jsondoc.Text   `json:"image_size_limit"`
			VideoBytes  jsondoc.Text   `json:"video_size_limit"`
			ImagePixels jsondoc.Text   `json:"image_matrix_limit"`
			VideoPixels jsondoc.Text   `json:"video_matrix_limit"`
			FrameRate   jsondoc.Text   `json:"video_frame_rate_limit"`
			AltText     jsondoc.Text   `json:"description_limit"`
			Types       []jsondoc.Text `json:"supported_mime_types"`
		} `json:"media_attachments"`
	} `json:"configuration"`
}

// limits returns the limits of an account's server, from memory if they were read within the last limitsLast. It
// returns nil if the server does not report them; the account can still publish, within the defaults.
func (p *Platform) limits(ctx context.Context, token platforms.Token) *v1alpha1.MastodonServer {
	if known, ok := p.servers.Get(token.Server); ok {
		found, _ := known.(*v1alpha1.MastodonServer)
		return found.DeepCopy()
	}
	resp, failure := p.read(ctx, "inspect", "/api/v2/instance", token)
	if failure != nil {
		return nil
	}
	found := parseLimits(resp.Body)
	if found == nil {
		return nil
	}
	p.servers.Add(token.Server, found, limitsLast)
	return found.DeepCopy()
}

// parseLimits parses a server's limits. It returns nil if the document has none.
func parseLimits(body []byte) *v1alpha1.MastodonServer {
	doc, _ := jsondoc.Decode[document](body)
	at := &doc.Configuration
	if at.Statuses.Characters.Int() <= 0 {
		return nil
	}
	return &v1alpha1.MastodonServer{
		MaxCharacters: bounded(at.Statuses.Characters), CharactersPerURL: bounded(at.Statuses.PerURL),
		MaxMedia:      min(bounded(at.Statuses.Media), mostFiles),
		MaxImageBytes: int64(max(at.Media.ImageBytes.Int(), 0)), MaxVideoBytes: int64(max(at.Media.VideoBytes.Int(), 0)),
		MaxImagePixels: stricter(at.Media.ImagePixels, defaults.imagePixels), MaxVideoPixels: stricter(at.Media.VideoPixels, defaults.videoPixels),
		MaxVideoFrameRate: int32(stricter(at.Media.FrameRate, int64(defaults.frameRate))), //nolint:gosec // it is lower than the default
		MaxAltText:        int32(stricter(at.Media.AltText, v1alpha1.MaxAltText)),         //nolint:gosec // it is lower than Herald's
		MediaTypes:        accepted(at.Media.Types),
	}
}

// stricter returns the number if it is positive and lower than what Herald allows, and zero otherwise: a higher limit
// has no effect.
func stricter(number jsondoc.Text, allowed int64) int64 {
	if n := int64(number.Int()); n > 0 && n < allowed {
		return n
	}
	return 0
}

// accepted returns the types that a server accepts, or nil if it accepts all of Herald's. Every server accepts JPEG, so
// a list without it is not a list of accepted types and is ignored.
func accepted(types []jsondoc.Text) []v1alpha1.MimeType {
	var list []v1alpha1.MimeType
	for _, name := range types {
		list = append(list, v1alpha1.MimeType(name.String()))
	}
	known := slices.Concat(imageTypes, videoTypes)
	found := among(known, list)
	if len(found) == len(known) || !slices.Contains(found, v1alpha1.MimeJPEG) {
		return nil
	}
	return found
}

// bounded returns the number, clamped to the nonnegative values of an int32.
func bounded(number jsondoc.Text) int32 {
	return int32(min(max(number.Int(), 0), math.MaxInt32))
}
