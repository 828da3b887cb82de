// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"fmt"
	"strings"

	"github.com/herald-social/herald/platforms"
)

// rejectionRows are the results of YouTube's processing that prevent a video from becoming visible. YouTube has the
// whole file, so another call with the same file would not help.
var rejectionRows = []errorRow{
	rejected("claim", "someone claims rights to its content", "dispute the claim in YouTube Studio, or change the video"),
	rejected("copyright", "it infringes a copyright", "dispute that in YouTube Studio, or change the video"),
	rejected("duplicate", "the channel already has the same video", "delete the other one in YouTube Studio first, or change the video"),
	rejected("inappropriate", "YouTube considers it inappropriate", "appeal in YouTube Studio, or change the video"),
	rejected("legal", "of a legal complaint", "check the complaint in YouTube Studio"),
	rejected("length", "it is longer than the channel may upload", "verify the channel by phone at youtube.com/verify, or make the video shorter"),
	rejected("termsOfUse", "it violates YouTube's terms of use", "appeal in YouTube Studio, or change the video"),
	rejected("trademark", "it infringes a trademark", "dispute that in YouTube Studio, or change the video"),
	{code: "rejected/uploaderAccountClosed", kind: "the channel is closed", err: closed, source: sourceRejection},
	{code: "rejected/uploaderAccountSuspended", kind: "the channel is suspended", err: closed, source: sourceRejection},
	failed("codec", sourceFailure, "the codec is not supported", "convert the video to H.264 and AAC in an MP4 file"),
	failed("conversion", sourceFailure, "the conversion failed", "convert the video to H.264 and AAC in an MP4 file"),
	failed("emptyFile", sourceFailure, "the file is empty", "upload the file again"),
	failed("invalidFile", sourceFailure, "the file is not in a supported format", "convert the video to H.264 and AAC in an MP4 file"),
	failed("tooSmall", sourceFailure, "the file is too small", "change the video"),
	failed("uploadAborted", sourceFailure, "the upload was aborted", "post it again"),
	failed("streamingFailed", sourceWork, "it could not be prepared for streaming", "post it again"),
	failed("transcodeFailed", sourceWork, "transcoding failed", "convert the video to H.264 and AAC in an MP4 file"),
	failed("uploadFailed", sourceWork, "YouTube could not receive it", "post it again"),
	failed("other", sourceWork, "of an unspecified reason", "check the video in YouTube Studio"),
	{code: codeDeleted, kind: "the video was deleted", source: `YouTube Data API, "Videos", status.uploadStatus`, err: platforms.Error{
		Class: platforms.ClassPermanent, Problem: "the video was deleted on YouTube before YouTube had processed it", Remedy: "post it again if that was a mistake",
	}},
}

func rejected(reason, because, remedy string) errorRow {
	return errorRow{code: "rejected/" + reason, kind: "the video was rejected because " + because, source: sourceRejection, err: platforms.Error{
		Class: platforms.ClassPermanent, Subject: platforms.SubjectFile, Problem: "YouTube rejected the video because " + because, Remedy: remedy,
	}}
}

func failed(reason, source, because, remedy string) errorRow {
	about := platforms.SubjectFile
	if reason == "other" {
		about = ""
	}
	return errorRow{code: "failed/" + reason, kind: "the video was not processed because " + because, source: source, err: platforms.Error{
		Class: platforms.ClassPermanent, Subject: about, Problem: "YouTube could not process the video because " + because, Remedy: remedy,
	}}
}

// droppedFor returns the error for a dropped video. A code that is not in the table does not identify the cause.
func droppedFor(code string) *platforms.Error {
	failure, ok := lookupError(code)
	if !ok {
		end, reason, _ := strings.Cut(code, "/")
		failure = platforms.Error{
			Class: platforms.ClassPermanent, Code: end + "/" + sanitizeWord(reason), Unlisted: true,
			Problem: fmt.Sprintf("YouTube %s the video after the upload (reason %s)", verbs[end], sanitizeWord(reason)),
			Remedy:  "check the video in YouTube Studio",
		}
	}
	return failure.Because(fmt.Errorf("the video ended as %.64q", code))
}

var verbs = map[string]string{"rejected": "rejected", "failed": "could not process"}
