// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import "github.com/herald-social/herald/sandbox/graph"

// Processing failures, as subcodes in the container status.
const (
	downloadFailed   = "2207052"
	downloadTooSlow  = "2207003"
	videoUnsupported = "2207026"
	offsetOutside    = "2207057"
	serverFailed     = "2207001"
)

func unfetchable() *graph.Error {
	return graph.Refusal(9004, "Only photo or video can be accepted as media type.").Because(2207052, "Media download has failed",
		"The media could not be fetched from this URI: it must be public, and its address must be written in ASCII.")
}

func tooSlow() *graph.Error {
	out := graph.Refusal(-2, "Fatal").Because(2207003, "Media download timed out", "It takes too long to download the media.")
	out.Transient = true
	return out
}

func imageTooLarge() *graph.Error {
	return graph.Refusal(36000, "The image size is too large.").Because(2207004, "Image too large",
		"An image may have 8 MiB at most.")
}

func imageUnsupported() *graph.Error {
	return graph.Refusal(36001, "The image format is not supported.").Because(2207005, "Unsupported image format",
		"An image must be a JPEG.")
}

func badAspect(width, height int) *graph.Error {
	return graph.Refusal(36003, "The aspect ratio is not supported.").Because(2207009, "Unsupported aspect ratio",
		"The submitted image with aspect ratio ("+ratio(width, height)+") cannot be published: it must be between 4:5 and 1.91:1.")
}

func badCaption(message string) *graph.Error {
	return graph.Refusal(36004, "The caption is too long.").Because(2207010, "Caption too long", message)
}

func unknownType(message string) *graph.Error {
	out := graph.BadParam("Unknown media type.").Because(2207023, "Unknown media type", message)
	return out
}

func badCarousel(message string) *graph.Error {
	return graph.BadParam("The carousel is invalid.").Because(2207028, "Carousel validation failed", message)
}

// mediaNotFound returns the error for an id without a publishable container.
func mediaNotFound(id string) *graph.Error {
	return graph.Refusal(24, "The requested resource does not exist").Because(2207006, "Media not found",
		"The media with id "+id+" cannot be found.")
}

// creationNotFound returns the error for an already published container, which no longer exists for publishing.
func creationNotFound(id string) *graph.Error {
	return graph.Refusal(24, "The requested resource does not exist").Because(2207008, "Media builder not found",
		"The media builder with creation id "+id+" does not exist, or has expired.")
}

// mediaExpired returns the error for a container that is older than a day.
func mediaExpired(id string) *graph.Error {
	out := graph.Refusal(-2, "Fatal").Because(2207020, "Media expired", "The media with id "+id+" has expired. Create it again.")
	out.Transient = true
	return out
}

// notReady returns the error for a container that is in progress or has failed.
func notReady(id string) *graph.Error {
	return graph.Refusal(9007, "Media ID is not available").Because(2207027, "The media is not ready",
		"The media with id "+id+" is not ready to be published.")
}
