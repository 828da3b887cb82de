// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/herald-social/herald/sandbox/blobs"
	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

const (
	// maxImage and maxVideo are the maximum file sizes, in bytes.
	maxImage = 8 << 20
	maxVideo = 1 << 30
	// maxVideoTime is the maximum duration of a video.
	maxVideoTime = 300 * time.Second
	// maxColumns is the maximum width of a video, in pixels. Wider images are scaled.
	maxColumns = 1920
	// minFrameRate and maxFrameRate limit a video's frames per second, with some tolerance for inexact clocks.
	minFrameRate, maxFrameRate = 22, 63
	// minChildren and maxChildren limit the number of files in a carousel.
	minChildren = 2
	maxChildren = 20
)

// The reasons for a container's failure.
const (
	failedDownload   = "FAILED_DOWNLOADING_VIDEO"
	failedProcessing = "FAILED_PROCESSING_VIDEO"
	badAspect        = "INVALID_ASPEC_RATIO" // the platform's spelling
	badDuration      = "INVALID_DURATION"
	badFrameRate     = "INVALID_FRAME_RATE"
	failedAudio      = "FAILED_PROCESSING_AUDIO"
	unknownFailure   = "UNKNOWN"
)

// child is the stored data of one carousel item.
type child struct {
	Container string `json:"container"`
	Kind      string `json:"kind"`
}

// places are the parameters that only some kinds of containers accept. The kinds in needs require them.
var places = []struct {
	name         string
	kinds, needs []string
}{
	{"image_url", []string{kindImage}, []string{kindImage}},
	{"video_url", []string{kindVideo}, []string{kindVideo}},
	{"children", []string{kindCarousel}, []string{kindCarousel}},
	{"is_carousel_item", []string{kindImage, kindVideo}, nil},
	{"alt_text", []string{kindImage, kindVideo}, nil},
}

// checkKind rejects parameters that the kind of container does not accept, and reports required ones that are missing.
func checkKind(q *graph.Params, kind string) {
	for _, place := range places {
		value := q.Text(place.name)
		switch {
		case value != "" && !slices.Contains(place.kinds, kind):
			q.Rejectf("Param %s is not allowed for media_type %s.", place.name, kind)
		case value == "" && slices.Contains(place.needs, kind):
			q.Rejectf("The parameter %s is required for media_type %s.", place.name, kind)
		}
	}
}

// addMedia adds a container's files or their URLs. An image is fetched while the client waits; a video is fetched
// later.
func (p *Platform) addMedia(c *graph.Call, kind string, out *state.Container, kept *detail) *graph.Error {
	switch kind {
	case kindImage:
		address := c.Params.Text("image_url")
		if !simulator.IsAddress(address) {
			return unfetched()
		}
		return p.addImage(c, address, out)
	case kindVideo:
		out.Source = c.Params.Text("video_url")
		if !simulator.IsAddress(out.Source) {
			return unfetched()
		}
	case kindCarousel:
		return p.addChildren(c.Params.Text("children"), out, kept)
	}
	return nil
}

// unfetched returns the error for a URL that no file could be fetched from.
func unfetched() *graph.Error {
	return graph.Refusal(9004, "The media could not be fetched from this URI.").Because(2207052, "Media download has failed",
		"The media could not be fetched from this URI. Make sure that it is public and leads to the file itself.")
}

// addImage fetches an image. An invalid image fails the container.
func (p *Platform) addImage(c *graph.Call, address string, out *state.Container) *graph.Error {
	// Like the platform, carry on after the client has disconnected.
	blob, err := p.Blobs.Pull(context.WithoutCancel(c.Context()), address, maxImage, blobs.Follow)
	_, unreachable := errors.AsType[*blobs.PullError](err)
	switch {
	case unreachable:
		return unfetched()
	case errors.Is(err, blobs.ErrTooLarge):
		out.Failure = unknownFailure
	case err != nil:
		return c.InternalError("fetch an image", err)
	default:
		out.Media, out.Failure = []state.Media{simulator.MediaOf(blob).Described(out.AltText)}, imageFailure(blob)
	}
	return nil
}

// fetch downloads and checks a container's video while the container is in progress.
func (p *Platform) fetch(c state.Container) {
	p.Fetch(c, maxVideo, func(blob blobs.Blob, err error) string {
		_, unreachable := errors.AsType[*blobs.PullError](err)
		switch {
		case unreachable:
			return failedDownload
		case errors.Is(err, blobs.ErrTooLarge):
			return failedProcessing
		case err != nil:
			p.Logger.Error("a video could not be kept", "container", c.ID, "error", err)
			return unknownFailure
		default:
			return videoFailure(blob)
		}
	})
}

// The accepted file types. Apple's MP4 brand counts as MP4.
var (
	imageTypes = []string{"image/jpeg", "image/png"}
	videoTypes = []string{"video/mp4", "video/quicktime", "video/x-m4v"}
)

// imageFailure returns the reason for an image's failure, or "" if it is valid.
func imageFailure(blob blobs.Blob) string {
	switch {
	case !slices.Contains(imageTypes, blob.MIMEType), blob.Width == 0, blob.Height == 0:
		return unknownFailure
	case max(blob.Width, blob.Height) > 10*min(blob.Width, blob.Height):
		return badAspect
	default:
		return ""
	}
}

// videoFailure returns the reason for a video's failure, or "" if it is valid. Unknown properties count as valid.
func videoFailure(blob blobs.Blob) string {
	switch {
	case !slices.Contains(videoTypes, blob.MIMEType), blob.Width == 0, blob.Height == 0:
		return failedProcessing
	case blob.Duration > maxVideoTime:
		return badDuration
	case blob.Width > 10*blob.Height, blob.Height > 100*blob.Width:
		return badAspect
	case blob.Width > maxColumns, blob.VideoCodec != "" && !slices.Contains([]string{"h264", "hevc"}, blob.VideoCodec):
		return failedProcessing
	case blob.FrameRate > 0 && (blob.FrameRate < minFrameRate || blob.FrameRate > maxFrameRate):
		return badFrameRate
	case blob.AudioCodec != "" && blob.AudioCodec != "aac":
		return failedAudio
	default:
		return ""
	}
}

// partsInvalid is the subcode for a carousel with invalid or expired items, as reported by clients (exileum/meta-mcp,
// pull request 4).
const partsInvalid = 4279004

// addChildren builds a carousel from a list of container ids.
func (p *Platform) addChildren(list string, out *state.Container, kept *detail) *graph.Error {
	ids := strings.Split(list, ",")
	bad := graph.BadParam("Param children must be %d to %d ids of containers that are ready and carousel items, separated by commas.",
		minChildren, maxChildren)
	if len(ids) < minChildren || len(ids) > maxChildren {
		return bad
	}
	seen := map[string]bool{}
	for _, id := range ids {
		item, ok := p.Store.Container(Name, id)
		of := detailOf(item.Detail)
		if !ok || item.AccountID != out.AccountID || !of.Item || p.StatusOf(item, false) != graph.Finished {
			return bad.Because(partsInvalid, "Invalid carousel", "Some of the carousel's items are invalid or have expired.")
		}
		if seen[id] {
			return bad
		}
		seen[id] = true
		out.Media = append(out.Media, item.Media...)
		kept.Children = append(kept.Children, child{Container: id, Kind: of.Kind})
	}
	return nil
}

// childIDs is the distance from a container's id to the id of the published item. Regular ids will not reach that range
// for a long time.
const childIDs = 40_000_000_000_000_000

// id returns the id that the item has in a published carousel.
func (ch child) id() string {
	n, err := strconv.ParseInt(ch.Container, 10, 64)
	if err != nil {
		return ch.Container // container ids are numbers
	}
	return strconv.FormatInt(n+childIDs, 10)
}
