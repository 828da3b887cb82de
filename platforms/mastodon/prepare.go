// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mastodon

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

const (
	// firstPause and longestPause bound the pauses between two reads of a file that is being processed. Each read counts
	// towards the limit of 300 calls in 5 minutes (api/rate-limits).
	firstPause   = time.Second
	longestPause = 10 * time.Second
)

var alreadyPublished = platforms.NewError(platforms.ClassDuplicate, "", "Mastodon already has a post with a file of this one", "")

// Prepares reports whether the content has files, which are uploaded before the post.
func (p *Platform) Prepares(content platforms.Content) bool { return len(content.Media) > 0 }

// Prepare uploads the files and waits until the server has processed them. It reuses earlier uploads while the server
// has them. The server's response is the same for a file that belongs to a post and for one that it has deleted, so the
// account's posts are searched before any file is uploaded again.
func (p *Platform) Prepare(ctx context.Context, job platforms.Job) (string, *platforms.Error) {
	if ids := job.FileIDs(validID); ids != nil {
		gone, failure := p.awaitAll(ctx, &job, ids)
		if failure != nil {
			return "", failure
		}
		if !gone {
			return job.Checkpoint, nil
		}
		published, failure := p.withMedia(ctx, &job, ids)
		switch {
		case failure != nil:
			return "", failure
		case published != nil:
			found := alreadyPublished
			return job.Checkpoint, &found
		}
	}
	return p.uploadAll(ctx, &job)
}

// uploadAll uploads the files that an interrupted preparation has not uploaded yet. It repeats no upload unnecessarily,
// because each one counts towards a limit of 30 in 30 minutes (api/rate-limits).
func (p *Platform) uploadAll(ctx context.Context, job *platforms.Job) (string, *platforms.Error) {
	ids := job.PartIDs(validID)
	if gone, failure := p.awaitAll(ctx, job, ids); failure != nil {
		return "", failure
	} else if gone {
		ids = nil
	}
	for i := len(ids); i < len(job.Content.Media); i++ {
		id, failure := p.upload(ctx, job.Account.Token, &job.Content.Media[i])
		if failure != nil {
			return "", failure
		}
		ids = append(ids, id)
		checkpoint := platforms.JoinPartIDs(ids)
		if len(ids) == len(job.Content.Media) {
			// All files are uploaded, but processing may take longer than one preparation.
			checkpoint = platforms.JoinFileIDs(ids)
		}
		if failure := job.SaveCheckpoint(ctx, checkpoint, ""); failure != nil {
			return "", failure
		}
	}
	gone, failure := p.awaitAll(ctx, job, ids)
	switch {
	case failure != nil:
		return "", failure
	case gone:
		return "", platforms.Errorf(platforms.ClassTransient, "Mastodon no longer has the files that were just uploaded")
	}
	return platforms.JoinFileIDs(ids), nil
}

// upload uploads a file with its alt text and focal point. A server that is still processing the file responds with
// status 202.
func (p *Platform) upload(ctx context.Context, token platforms.Token, file *platforms.File) (string, *platforms.Error) {
	api, failure := p.at(token)
	if failure != nil {
		return "", failure
	}
	values := map[string]string{}
	if file.AltText != "" {
		values["description"] = file.AltText
	}
	if focus := file.FocalPoint; focus != nil {
		const percent = 100
		values["focus"] = fmt.Sprintf("%.2f,%.2f", float64(focus.X)/percent, float64(focus.Y)/percent)
	}
	resp, _, failure := api.Upload(ctx, client.Upload{
		Call: client.Call{Action: "upload", Path: "/api/v2/media", Token: token.Access, Header: english(), Timeout: uploadTimeout},
		File: file, Length: file.Size, Form: &client.Form{Field: "file", Name: "file", Values: values},
	})
	if failure != nil {
		return "", failure
	}
	return p.uploaded(resp, file)
}

func (p *Platform) uploaded(resp *transport.Response, file *platforms.File) (string, *platforms.Error) {
	switch resp.Status {
	case http.StatusOK, http.StatusAccepted:
	case http.StatusRequestEntityTooLarge:
		// The response comes from the proxy in front of the server, which has its own limit.
		return "", platforms.Errorf(platforms.ClassPermanent, "the server refused the file %q: it is too large", file.Name).Advise("use a smaller file")
	default:
		failure, _ := p.classify(resp)
		return "", aboutFile(file, failure)
	}
	made, _ := jsondoc.Decode[status](resp.Body)
	if !validID(made.ID.String()) {
		return "", platforms.Errorf(platforms.ClassTransient, "Mastodon accepted the file %q without returning its id", file.Name)
	}
	return made.ID.String(), nil
}

// aboutFile adds the file's name to a refusal's message.
func aboutFile(file *platforms.File, failure *platforms.Error) *platforms.Error {
	if failure.Class == platforms.ClassPermanent && !failure.Unlisted {
		failure.Problem = fmt.Sprintf("Mastodon refused the file %q, or its alt text", file.Name)
		failure.Remedy = "change the file, or its alt text"
	}
	return failure
}

// awaitAll waits until the server has processed the files. gone reports whether one of them no longer exists or belongs
// to a post.
func (p *Platform) awaitAll(ctx context.Context, job *platforms.Job, ids []string) (gone bool, failure *platforms.Error) {
	for i, id := range ids {
		if gone, failure = p.await(ctx, job.Account.Token, &job.Content.Media[i], id); gone || failure != nil {
			return gone, failure
		}
	}
	return false, nil
}

func (p *Platform) await(ctx context.Context, token platforms.Token, file *platforms.File, id string) (gone bool, failure *platforms.Error) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		state, failure := p.mediaState(ctx, token, id)
		switch {
		case failure != nil:
			return false, aboutFile(file, failure)
		case state == stateReady:
			return false, nil
		case state == stateGone:
			return true, nil
		}
		if err := client.Wait(ctx, p.config.Clock, pause); err != nil {
			return false, platforms.Errorf(platforms.ClassTransient, "Mastodon has not finished processing the file %q", file.Name).Because(err)
		}
	}
}

// mediaState is the state of an uploaded file.
type mediaState int

const (
	// stateGone means that the file does not exist or belongs to a post.
	stateGone mediaState = iota
	stateProcessing
	stateReady
)

// mediaState reads the state of a file that does not belong to a post (GET /api/v1/media/:id).
func (p *Platform) mediaState(ctx context.Context, token platforms.Token, id string) (mediaState, *platforms.Error) {
	api, failure := p.at(token)
	if failure != nil {
		return stateGone, failure
	}
	resp, err := api.Do(ctx, client.Call{Action: "status", Path: "/api/v1/media/" + url.PathEscape(id), Token: token.Access, Header: english(), Timeout: readTimeout})
	if err != nil {
		return stateGone, api.Unanswered(err)
	}
	made, _ := jsondoc.Decode[status](resp.Body)
	switch {
	case resp.Status == http.StatusPartialContent:
		return stateProcessing, nil
	case resp.Status == http.StatusNotFound && errorText(resp) != "":
		return stateGone, nil
	case resp.Status == http.StatusOK && made.ID.String() == id:
		return stateReady, nil
	}
	failure, _ = p.classify(resp)
	return stateGone, failure
}
