// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/meta"
	"github.com/herald-social/herald/platforms/internal/multipartbody"
)

// uploadTimeout bounds one request that carries a photo.
const uploadTimeout = 2 * time.Minute

const (
	msgNoPhoto      = "Facebook took the photo %q without saying under which id"
	msgPhotoRefused = "Facebook refused the photo %q: its format or size is not one that Facebook takes"
	msgUnprepared   = "the photos of the post are not uploaded yet"
)

// Prepares reports whether the content has photos, which are uploaded first
// without anybody seeing them.
func (*Platform) Prepares(content platforms.Content) bool { return len(content.Media) > 0 }

// Prepare uploads the photos of a post, unpublished: Facebook keeps them for
// about a day. Those that were uploaded before are used again while Facebook has
// them.
func (p *Platform) Prepare(ctx context.Context, job platforms.Job) (string, *platforms.Error) {
	if ids := job.FileIDs(meta.ValidID); ids != nil {
		there, err := p.allThere(ctx, job, ids)
		if err != nil {
			return "", err
		}
		if there {
			return job.Checkpoint, nil
		}
	}
	ids := make([]string, len(job.Content.Media))
	for i := range job.Content.Media {
		var err *platforms.Error
		if ids[i], err = p.upload(ctx, job, &job.Content.Media[i]); err != nil {
			return "", err
		}
	}
	return platforms.JoinFileIDs(ids), nil
}

// allThere reports whether Facebook still has every photo.
func (p *Platform) allThere(ctx context.Context, job platforms.Job, ids []string) (bool, *platforms.Error) {
	for _, id := range ids {
		_, bad := meta.Read[entry](ctx, &p.graph, "status", "/"+url.PathEscape(id)+"?fields=id", job.Account.Token)
		switch {
		case bad != nil && bad.Said.Kind() == meta.KindOther && bad.Class == platforms.ClassPermanent:
			return false, nil
		case bad != nil:
			return false, bad.Error
		}
	}
	return true, nil
}

// upload sends one photo.
func (p *Platform) upload(ctx context.Context, job platforms.Job, file *platforms.File) (string, *platforms.Error) {
	content, err := file.Bytes.Open(ctx, 0, file.Size)
	if err != nil {
		return "", file.Unreadable(err)
	}
	defer content.Close()
	form, err := multipartbody.New(multipartbody.File{
		Field: "source", Name: file.Name, Type: string(file.MIMEType), Content: content, Size: file.Size,
	}, multipartbody.Field{Name: "published", Value: "false"})
	if err != nil {
		return "", file.Unreadable(err)
	}
	resp, err := p.graph.Do(ctx, client.Call{
		Action: "upload", Path: p.accountPath(&job.Account, "photos"), Token: job.Account.Token.Access,
		Body: client.Multipart(form), Timeout: uploadTimeout,
	})
	switch {
	case err != nil:
		return "", p.graph.UploadUnanswered(file, err)
	case resp.Status != http.StatusOK:
		bad := p.graph.Classify(resp, meta.ThePost)
		if bad.Class == platforms.ClassPermanent {
			return "", platforms.Errorf(platforms.ClassPermanent, msgPhotoRefused, file.Name).Advise("change the file").Because(bad.Err)
		}
		return "", bad.Error
	}
	id := meta.CreatedID(resp.Body)
	if id == "" {
		return "", platforms.Errorf(platforms.ClassUnknown, msgNoPhoto, file.Name)
	}
	return id, nil
}

// attach adds photos to the form of a post, in their order.
func attach(form url.Values, ids []string) {
	for i, id := range ids {
		form.Set(fmt.Sprintf("attached_media[%d]", i), fmt.Sprintf(`{"media_fbid":%q}`, id))
	}
}
