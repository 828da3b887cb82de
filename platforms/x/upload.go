// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

const (
	// chunk is the number of bytes per append. X accepts at most 5 MB.
	chunk = 4 << 20
	// maxSegments is the maximum number of appends per upload.
	maxSegments = 1000
	// noteEvery is the number of chunks between two checkpoints: after an interruption, at most this many are sent
	// again.
	noteEvery = 2
	// appendTries is the maximum number of attempts for one chunk. X accepts the same chunk number again.
	appendTries = 3
	// mediaLasts is how long X keeps an upload ("expires_after_secs" in its responses is 86,400), and minLeft how
	// much of that time must remain for an image to be reused.
	mediaLasts = 24 * time.Hour
	minLeft    = time.Hour
	// uploadTimeout bounds one upload request.
	uploadTimeout = 2 * time.Minute
	// minPause and longestPause bound the pauses between status calls for a video, regardless of what X recommends.
	minPause     = 500 * time.Millisecond
	longestPause = 30 * time.Second
)

const (
	msgNoMediaID   = "X accepted the file %q without returning its id"
	msgFileRefused = "X refused the file %q: X does not support its format, size or length"
	msgUnlisted    = "X refused the upload of the file %q with the error %s, which Herald does not recognize"
	msgFileFailed  = "X could not process the file %q"
	msgFileGone    = "X no longer has the file %q"
	msgAltRefused  = "X refused the alt text of the file %q"
	msgFileBusy    = "X has not finished processing the file %q"
	msgUnprepared  = "the files of the post are not uploaded yet"
)

// unprocessed returns the error for a file that X could not process, with the reason if the file exceeds a known limit.
func unprocessed(file *platforms.File) *platforms.Error {
	var known []string
	if file.IsVideo() {
		known = append(videos.Problems(file, "X"), doubtfulVideos.Problems(file, "X, from an ordinary account,")...)
	}
	if len(known) == 0 {
		return platforms.Errorf(platforms.ClassPermanent, msgFileFailed, file.Name).Advise("export it again as recommended in X's media guide, or try again later")
	}
	return platforms.Errorf(platforms.ClassPermanent, msgFileFailed+": it %s", file.Name, strings.Join(known, "; it ")).Advise("change the file")
}

// Prepares reports whether the content has files, which are uploaded before the post.
func (*Platform) Prepares(content platforms.Content) bool { return len(content.Media) > 0 }

// Prepare uploads a post's files and waits until X has processed them. It reuses earlier uploads, including parts of a
// video, while X has them. Files that X reported as unknown to the publishing call are uploaded again: there is no
// other way to detect that an image no longer exists.
func (p *Platform) Prepare(ctx context.Context, job platforms.Job) (string, *platforms.Error) {
	if ids := job.FileIDs(validID); ids != nil && !p.isLost(job.Checkpoint) {
		failure := p.allReady(ctx, job, ids)
		if failure == nil || !isUploadLost(failure) {
			return job.Checkpoint, failure
		}
	}
	ids := make([]string, 0, len(job.Content.Media))
	for i := range job.Content.Media {
		file := &job.Content.Media[i]
		id, err := p.upload(ctx, job, file)
		if err == nil {
			err = p.describe(ctx, job, file, id)
		}
		if err != nil {
			return "", err
		}
		ids = append(ids, id)
	}
	return platforms.JoinFileIDs(ids), nil
}

// isLost reports whether X reported the files of a checkpoint as unknown to a publishing call.
func (p *Platform) isLost(checkpoint string) bool {
	_, lost := p.lost.Get(checkpoint)
	return lost
}

// allReady waits until X has processed the earlier uploads, and fails if X no longer has them.
//
// Images are not checked. X has a state only for files that it processes: those with processing_info in the response to
// their upload (guide to media uploads, "Check status"). For an image, the status call returns 404 "no such page"
// (PLhery/node-twitter-api-v2#336, tweepy/tweepy#1851). An image's age is calculated from its id.
func (p *Platform) allReady(ctx context.Context, job platforms.Job, ids []string) *platforms.Error {
	for i, id := range ids {
		file := &job.Content.Media[i]
		if !file.IsVideo() {
			if at, ok := snowflakeTime(id); !ok || p.Clock.Since(at) > mediaLasts-minLeft {
				return platforms.Errorf(platforms.ClassTransient, msgFileGone, file.Name).Because(errNotFound)
			}
			continue
		}
		if err := p.waitProcessed(ctx, job, file, id); err != nil {
			return err
		}
		// The checkpoint of a video is stored before its alt text.
		if err := p.describe(ctx, job, file, id); err != nil {
			return err
		}
	}
	return nil
}

// isUploadLost reports whether an error means that an upload is unusable: X keeps uploads for only a day, so it may no
// longer have it. Rate limits, outages and expired tokens do not affect the upload, and sending every file again would
// not fix them.
func isUploadLost(failure *platforms.Error) bool {
	return failure.Class == platforms.ClassPermanent || errors.Is(failure, errNotFound)
}

func (p *Platform) upload(ctx context.Context, job platforms.Job, file *platforms.File) (string, *platforms.Error) {
	if file.IsVideo() {
		return p.uploadVideo(ctx, job, file)
	}
	return p.uploadImage(ctx, job, file)
}

func (p *Platform) uploadImage(ctx context.Context, job platforms.Job, file *platforms.File) (string, *platforms.Error) {
	resp, err := p.sendBytes(ctx, job, file, "/2/media/upload", 0, file.Size, "media_category", "tweet_image")
	if err != nil {
		return "", err
	}
	return mediaID(resp, file)
}

// describe sets an upload's alt text, which is only possible before the post is created. It can be repeated.
func (p *Platform) describe(ctx context.Context, job platforms.Job, file *platforms.File, id string) *platforms.Error {
	if file.AltText == "" {
		return nil
	}
	resp, err := p.API.Do(ctx, client.Call{
		Action: "metadata", Path: "/2/media/metadata", Timeout: readTimeout, Token: job.Account.Token.Access,
		Body: asJSON(map[string]any{"id": id, "metadata": map[string]any{"alt_text": map[string]any{"text": file.AltText}}}),
	})
	if err != nil {
		return p.API.Unanswered(err)
	}
	if resp.Status >= http.StatusOK && resp.Status < http.StatusMultipleChoices {
		return nil
	}
	failure, _ := p.classify(resp)
	if failure.Class == platforms.ClassPermanent && !failure.Unlisted {
		failure.Problem, failure.Remedy = fmt.Sprintf(msgAltRefused, file.Name), "change or remove it"
	}
	return failure
}

// uploadVideo uploads a video in chunks and waits until X has processed it. It resumes an earlier upload after the
// chunks that are known to have arrived.
func (p *Platform) uploadVideo(ctx context.Context, job platforms.Job, file *platforms.File) (string, *platforms.Error) {
	if started, ok := partOf(job.Checkpoint); ok {
		failure := p.finishVideo(ctx, job, file, started)
		if failure == nil || !isUploadLost(failure) {
			return started.id, failure
		}
	}
	resp, failure := p.callMedia(ctx, job, file, client.Call{
		Action: "initialize", Path: "/2/media/upload/initialize", Timeout: readTimeout,
		Body: asJSON(map[string]any{"media_type": file.MIMEType, "total_bytes": file.Size, "media_category": "tweet_video"}),
	})
	if failure != nil {
		return "", failure
	}
	id, failure := mediaID(resp, file)
	if failure != nil {
		return "", failure
	}
	return id, p.finishVideo(ctx, job, file, part{id: id})
}

// finishVideo sends the remaining chunks of an upload.
func (p *Platform) finishVideo(ctx context.Context, job platforms.Job, file *platforms.File, started part) *platforms.Error {
	path := "/2/media/upload/" + url.PathEscape(started.id)
	size := max(int64(chunk), (file.Size+maxSegments-1)/maxSegments)
	for segment := started.segments; int64(segment)*size < file.Size; segment++ {
		offset := int64(segment) * size
		if segment > started.segments && segment%noteEvery == 0 {
			if failure := job.SaveCheckpoint(ctx, part{started.id, segment}.checkpoint(), ""); failure != nil {
				return failure
			}
		}
		if failure := p.appendChunk(ctx, job, file, path, segment, offset, min(size, file.Size-offset)); failure != nil {
			return failure
		}
	}
	finalize := client.Call{Action: "finalize", Path: path + "/finalize", Method: http.MethodPost, Timeout: readTimeout}
	resp, failure := p.callMedia(ctx, job, file, finalize)
	if failure != nil {
		return failure
	}
	if len(job.Content.Media) == 1 {
		// The whole file has arrived, but processing may take longer than one preparation.
		if failure := job.SaveCheckpoint(ctx, started.id, ""); failure != nil {
			return failure
		}
	}
	if createdID(resp.Body) != "" && readProcessing(resp).State == "" {
		// X does not process the video, so it is ready ("Chunked Media Upload"). STATUS would return 404, as
		// for images.
		return nil
	}
	return p.waitProcessed(ctx, job, file, started.id)
}

// part is an upload whose first segments have arrived. Without the account's token, its id does not grant access.
type part struct {
	id       string
	segments int
}

// partPrefix distinguishes the checkpoint of a part from a list of file ids.
const partPrefix = "part:"

func (u part) checkpoint() string { return partPrefix + u.id + ":" + strconv.Itoa(u.segments) }

// partOf parses the checkpoint of a part. It returns false for any other checkpoint.
func partOf(checkpoint string) (part, bool) {
	rest, isPart := strings.CutPrefix(checkpoint, partPrefix)
	id, segments, _ := strings.Cut(rest, ":")
	n, err := strconv.Atoi(segments)
	return part{id, n}, isPart && validID(id) && err == nil && n > 0 && n <= maxSegments
}

// appendChunk sends one chunk, with retries for transient errors.
func (p *Platform) appendChunk(ctx context.Context, job platforms.Job, file *platforms.File, path string, segment int, offset, length int64) *platforms.Error {
	for try := 1; ; try++ {
		_, failure := p.sendBytes(ctx, job, file, path+"/append", offset, length, "segment_index", strconv.Itoa(segment))
		if failure == nil || failure.Class != platforms.ClassTransient || try == appendTries || ctx.Err() != nil {
			return failure
		}
	}
}

func (p *Platform) sendBytes(
	ctx context.Context, job platforms.Job, file *platforms.File, path string, offset, length int64, field, value string,
) (*transport.Response, *platforms.Error) {
	resp, _, failure := p.API.Upload(ctx, client.Upload{
		Call: client.Call{Action: "upload", Path: path, Token: job.Account.Token.Access, Timeout: uploadTimeout},
		File: file, Offset: offset, Length: length,
		Form: &client.Form{Field: "media", Name: "media", Values: map[string]string{field: value}},
	})
	if failure != nil {
		return nil, failure
	}
	return p.checkMedia(resp, file)
}

// waitProcessed waits until X has processed a file or the context ends.
func (p *Platform) waitProcessed(ctx context.Context, job platforms.Job, file *platforms.File, id string) *platforms.Error {
	for {
		resp, failure := p.read(ctx, "status", "/2/media/upload?command=STATUS&media_id="+url.QueryEscape(id), job.Account.Token)
		if failure != nil {
			return aboutFile(file, failure)
		}
		processing := readProcessing(resp)
		switch processing.State {
		case "failed":
			return unprocessed(file)
		case "pending", "in_progress":
		default: // X returns no state for files that need no processing
			return nil
		}
		pause := min(max(time.Duration(processing.CheckAfter.Int())*time.Second, minPause), longestPause)
		if err := client.Wait(ctx, p.Clock, pause); err != nil {
			return platforms.Errorf(platforms.ClassTransient, msgFileBusy, file.Name).Because(err)
		}
	}
}

// processing is X's processing state for a file. It is empty if X does not process the file.
type processing struct {
	State      jsondoc.Text `json:"state"`
	CheckAfter jsondoc.Text `json:"check_after_secs"`
}

// readProcessing returns the processing state from the response to FINALIZE or STATUS.
func readProcessing(resp *transport.Response) processing {
	doc, _ := jsondoc.Decode[struct {
		Data struct {
			Processing processing `json:"processing_info"`
		} `json:"data"`
	}](resp.Body)
	return doc.Data.Processing
}

func (p *Platform) callMedia(ctx context.Context, job platforms.Job, file *platforms.File, call client.Call) (*transport.Response, *platforms.Error) {
	call.Token = job.Account.Token.Access
	resp, err := p.API.Do(ctx, call)
	if err != nil {
		return nil, p.API.Unanswered(err)
	}
	return p.checkMedia(resp, file)
}

// checkMedia returns the response to a call about a file, or the error if the call did not succeed.
func (p *Platform) checkMedia(resp *transport.Response, file *platforms.File) (*transport.Response, *platforms.Error) {
	if resp.Status < http.StatusOK || resp.Status >= http.StatusMultipleChoices {
		failure, _ := p.classify(resp)
		return nil, aboutFile(file, failure)
	}
	return resp, nil
}

func mediaID(resp *transport.Response, file *platforms.File) (string, *platforms.Error) {
	id := createdID(resp.Body)
	if id == "" {
		return "", platforms.Errorf(platforms.ClassUnknown, msgNoMediaID, file.Name)
	}
	return id, nil
}

// aboutFile makes a refusal's message refer to the file: the messages in the table refer to a post. An unlisted code is
// not treated as a problem with the file.
func aboutFile(file *platforms.File, failure *platforms.Error) *platforms.Error {
	if failure.Class != platforms.ClassPermanent && failure.Class != platforms.ClassDuplicate {
		return failure
	}
	if failure.Unlisted {
		failure.Problem = fmt.Sprintf(msgUnlisted, file.Name, failure.Code)
		return failure
	}
	refused := platforms.Errorf(platforms.ClassPermanent, msgFileRefused, file.Name).Advise("change the file").Because(failure.Err)
	refused.Code, refused.Subject = failure.Code, platforms.SubjectFile
	return refused
}
