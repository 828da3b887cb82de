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
	// maxImage and maxVideo are how many bytes a file may have.
	maxImage = 8 << 20
	maxVideo = 1 << 30
	// maxVideoTime is how long a video may play.
	maxVideoTime = 300 * time.Second
	// maxColumns is how wide a video's picture may be, in pixels. Images that are wider are scaled.
	maxColumns = 1920
	// minFrameRate and maxFrameRate are how many frames a video shows in a second, with what its clock may be off.
	minFrameRate, maxFrameRate = 22, 63
	// A carousel has so many files.
	minChildren = 2
	maxChildren = 20
)

// What a container that has failed names as the reason.
const (
	failedDownload   = "FAILED_DOWNLOADING_VIDEO"
	failedProcessing = "FAILED_PROCESSING_VIDEO"
	badAspect        = "INVALID_ASPEC_RATIO" // as the platform spells it
	badDuration      = "INVALID_DURATION"
	badFrameRate     = "INVALID_FRAME_RATE"
	failedAudio      = "FAILED_PROCESSING_AUDIO"
	unknownFailure   = "UNKNOWN"
)

// child is what a carousel keeps of one of its items.
type child struct {
	Container string `json:"container"`
	Kind      string `json:"kind"`
}

// places are the parameters that go with some kinds of containers only. Those of the kinds in needs are required there.
var places = []struct {
	name         string
	kinds, needs []string
}{
	{"image_url", []string{kindImage}, []string{kindImage}},
	{"video_url", []string{kindVideo}, []string{kindVideo}},
	{"children", []string{kindCarousel}, []string{kindCarousel}},
	{"is_carousel_item", []string{kindImage, kindVideo}, nil},
}

// checkKind refuses parameters that do not go with a kind of container, and asks for those that it needs.
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

// addMedia gives a container its files, or what leads to them. An image is fetched while the client waits, and a video
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

// unfetched is the answer to an address that leads to no file.
func unfetched() *graph.Error {
	return graph.Refusal(9004, "The media could not be fetched from this URI.").Because(2207052, "Media download has failed",
		"The media could not be fetched from this URI. Make sure that it is public and leads to the file itself.")
}

// addImage fetches an image. One that is fetched and no good lets the container fail.
func (p *Platform) addImage(c *graph.Call, address string, out *state.Container) *graph.Error {
	// The platform goes on when the client has gone.
	blob, err := p.Blobs.Pull(context.WithoutCancel(c.Context()), address, maxImage, blobs.Follow)
	_, unreachable := errors.AsType[*blobs.PullError](err)
	switch {
	case unreachable:
		return unfetched()
	case errors.Is(err, blobs.ErrTooLarge):
		out.Failure = unknownFailure
	case err != nil:
		return c.Broken("fetch an image", err)
	default:
		out.Media, out.Failure = []state.Media{simulator.MediaOf(blob)}, imageFailure(blob)
	}
	return nil
}

// fetch gets the video of a container and judges it, while the container is in progress.
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

// The types of files that are taken. Apple's brand of MP4 is MP4.
var (
	imageTypes = []string{"image/jpeg", "image/png"}
	videoTypes = []string{"video/mp4", "video/quicktime", "video/x-m4v"}
)

// imageFailure is how the work on an image ends; empty when it ends well.
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

// videoFailure is how the work on a video ends; empty when it ends well. What cannot be told of it does not fail it.
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

// partsInvalid is the subcode of a carousel whose items are invalid or have expired, as clients report it
// (exileum/meta-mcp, pull request 4).
const partsInvalid = 4279004

// addChildren makes a carousel of the containers in a list of ids.
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

// childIDs is how far a published item's id is from that of its container: farther than ids will be for a long time.
const childIDs = 40_000_000_000_000_000

// id is the item's own, once the carousel is public.
func (ch child) id() string {
	n, err := strconv.ParseInt(ch.Container, 10, 64)
	if err != nil {
		return ch.Container // containers have numbers
	}
	return strconv.FormatInt(n+childIDs, 10)
}
