// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mastodon

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

const (
	// mostServers is how many servers' limits are kept in memory, and limitsLast how long. An administrator changes them
	// once in years.
	mostServers = 1024
	limitsLast  = time.Hour
	// mostFiles is how many files a card can have in a Post.
	mostFiles = 20
)

// limits are a server's limits (entities/Instance, "configuration").
type limits struct {
	characters, perURL, media int
	imageBytes, videoBytes    int64
}

// defaults are the limits of a server with default settings (entities/Instance; user/posting).
var defaults = limits{characters: 500, perURL: 23, media: 4, imageBytes: 16 << 20, videoBytes: 99 << 20}

const (
	// longSide and shortSide bound an image or video that has the pixels a server accepts, 33,177,600 and 8,294,400
	// (entities/Instance, image_matrix_limit and video_matrix_limit).
	longSide, shortSide = 7680, 4320
	videoSide           = 3840
	maxFrameRate        = 120
)

// apply returns the rules with these limits.
func (l limits) apply(rules platforms.Capabilities) platforms.Capabilities {
	rules.MaxCaption = l.characters
	rules.CaptionLength = func(text string) int { return length(text, l.perURL) }
	rules.MaxImages, rules.MaxVideoBytes = l.media, l.videoBytes
	rules.Card = platforms.CardLimits{MaxItems: l.media, MaxVideos: 1, MaxImageBytes: l.imageBytes, MaxVideoBytes: l.videoBytes}
	return rules
}

// limitsOf returns the limits in a connection's status. A missing value is the default.
func limitsOf(s *v1alpha1.MastodonServer) limits {
	return limits{
		characters: cmp.Or(int(s.MaxCharacters), defaults.characters), perURL: cmp.Or(int(s.CharactersPerURL), defaults.perURL),
		media: cmp.Or(int(s.MaxMedia), defaults.media), imageBytes: cmp.Or(s.MaxImageBytes, defaults.imageBytes), videoBytes: cmp.Or(s.MaxVideoBytes, defaults.videoBytes),
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
			ImageBytes jsondoc.Text `json:"image_size_limit"`
			VideoBytes jsondoc.Text `json:"video_size_limit"`
		} `json:"media_attachments"`
	} `json:"configuration"`
}

// limits returns the limits of an account's server, from memory if they were read within limitsLast. It returns nil if
// the server does not report them: the account can publish nevertheless, within the defaults.
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

// parseLimits parses the limits of a server, or returns nil if there are none.
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
	}
}

// bounded returns a positive number, or zero.
func bounded(number jsondoc.Text) int32 {
	return int32(min(max(number.Int(), 0), math.MaxInt32))
}
