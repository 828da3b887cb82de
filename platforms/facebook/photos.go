// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/meta"
)

// uploadTimeout bounds the upload of one photo.
const uploadTimeout = 2 * time.Minute

const (
	msgNoPhoto      = "Facebook accepted the photo %q without returning its id"
	msgPhotoRefused = "Facebook refused the photo %q (code %s): Facebook does not support its format or size"
	msgPhotoLost    = "Facebook no longer has a photo that was uploaded for the post"
	msgUnprepared   = "the post is not prepared yet"
)

// Prepares reports whether the content has photos, which are first uploaded unpublished. With TwoSteps, every post is
// prepared.
func (p *Platform) Prepares(content platforms.Content) bool {
	return p.twoSteps || len(content.Media) > 0
}

// Prepare uploads a post's photos unpublished and, with TwoSteps, creates the post. It reuses an earlier preparation
// while Facebook still has it. An unpublished post is checked even if TwoSteps has since been switched off: it may have
// been published in the meantime.
func (p *Platform) Prepare(ctx context.Context, job platforms.Job) (string, *platforms.Error) {
	if id := draftOf(job.Checkpoint); id != "" {
		found, there, err := p.readDraft(ctx, &job, id)
		switch {
		case err != nil:
			return "", err
		case there && bool(*found.Published):
			return job.Checkpoint, platforms.Errorf(platforms.ClassDuplicate, "Facebook already shows the post, published by a call whose response was lost")
		case there && p.twoSteps:
			return job.Checkpoint, nil
		}
	}
	if p.twoSteps {
		return p.prepareDraft(ctx, job)
	}
	ids, err := p.photos(ctx, job)
	if err != nil {
		return "", err
	}
	return platforms.JoinFileIDs(ids), nil
}

// photos returns the ids of the post's photos, including earlier uploads that Facebook still has.
func (p *Platform) photos(ctx context.Context, job platforms.Job) ([]string, *platforms.Error) {
	if ids := job.FileIDs(meta.ValidID); ids != nil {
		there, err := p.photosExist(ctx, job, ids)
		if err != nil || there {
			return ids, err
		}
	}
	return p.uploadAll(ctx, job)
}

func (p *Platform) uploadAll(ctx context.Context, job platforms.Job) ([]string, *platforms.Error) {
	ids := make([]string, len(job.Content.Media))
	for i := range job.Content.Media {
		var err *platforms.Error
		if ids[i], err = p.upload(ctx, job, &job.Content.Media[i]); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// photosExist reports whether Facebook still has every photo.
func (p *Platform) photosExist(ctx context.Context, job platforms.Job, ids []string) (bool, *platforms.Error) {
	for _, id := range ids {
		_, bad := meta.Get[entry](ctx, &p.graph, "status", "/"+url.PathEscape(id)+"?fields=id", job.Account.Token)
		switch {
		case bad != nil && bad.GraphError.Kind().OfRequest():
			return false, nil
		case bad != nil:
			return false, bad.Error
		}
	}
	return true, nil
}

func (p *Platform) upload(ctx context.Context, job platforms.Job, file *platforms.File) (string, *platforms.Error) {
	values := map[string]string{"published": "false"}
	if file.AltText != "" {
		values["alt_text_custom"] = file.AltText
	}
	resp, _, failure := p.graph.Upload(ctx, client.Upload{
		Call: client.Call{Action: "upload", Path: p.graph.AccountPath(&job.Account, "photos"), Token: job.Account.Token.Access, Timeout: uploadTimeout},
		File: file, Length: file.Size,
		Form: &client.Form{Field: "source", Name: file.Name, Values: values},
	})
	switch {
	case failure != nil:
		return "", failure
	case resp.Status != http.StatusOK:
		bad := p.graph.ClassifyForAccount(resp, meta.TheFile(file))
		return "", aboutPhoto(bad, file)
	}
	id := meta.CreatedID(resp.Body)
	if id == "" {
		return "", platforms.Errorf(platforms.ClassUnknown, msgNoPhoto, file.Name)
	}
	return id, nil
}

func aboutPhoto(bad *meta.Failure, file *platforms.File) *platforms.Error {
	if bad.Subject == platforms.SubjectFile {
		bad.Problem = fmt.Sprintf(msgPhotoRefused, file.Name, bad.Code)
	}
	return bad.Error
}

// checkPhotos finds out, after a refusal with a nonspecific code, whether Facebook still has the post's photos. If one
// is missing, the refusal becomes transient, and the next preparation uploads the photos again.
func (p *Platform) checkPhotos(ctx context.Context, job platforms.Job, ids []string, refused *platforms.Result) {
	graphErr, ok := errors.AsType[*meta.Error](refused.Err.Err)
	if len(ids) == 0 || !ok || graphErr.Kind() != meta.KindOther {
		return
	}
	if there, err := p.photosExist(ctx, job, ids); err == nil && !there {
		e := refused.Err
		e.Class, e.Subject, e.Problem, e.Remedy = platforms.ClassTransient, "", msgPhotoLost, ""
	}
}
