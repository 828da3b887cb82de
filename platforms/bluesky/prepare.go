// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

const uploadBlob = "/xrpc/com.atproto.repo.uploadBlob"

// blob is a reference to an uploaded file (AT Protocol, "Data Model").
type blob struct {
	Type string  `json:"$type"`
	Ref  blobRef `json:"ref"`
	MIME string  `json:"mimeType"`
	Size int64   `json:"size"`
}

type blobRef struct {
	Link string `json:"$link"`
}

// id returns the blob's entry in a checkpoint.
func (b *blob) id() string { return fmt.Sprintf("%s;%d;%s", b.Ref.Link, b.Size, b.MIME) }

// parseBlob parses an entry of a checkpoint.
func parseBlob(id string) (blob, bool) {
	cid, rest, _ := strings.Cut(id, ";")
	length, mime, _ := strings.Cut(rest, ";")
	size, err := strconv.ParseInt(length, 10, 64)
	if err != nil || size <= 0 || !text.Consists(cid, 1, 128, text.Letters+text.Digits) || !text.Consists(mime, 3, 64, text.Letters+text.Digits+"/.+-") {
		return blob{}, false
	}
	return blob{Type: "blob", Ref: blobRef{cid}, MIME: mime, Size: size}, true
}

func isBlob(id string) bool {
	_, ok := parseBlob(id)
	return ok
}

// Prepares reports whether the content has files, which are uploaded before the post, or an address for a link card.
func (p *Platform) Prepares(content platforms.Content) bool {
	return len(content.Media) > 0 || p.pages != nil && linked(content.Text) != ""
}

// Prepare uploads the files as blobs. A blob's id is a hash of its bytes, so uploading a file again only extends its
// lifetime. There is no way to find out whether the server still has a blob.
func (p *Platform) Prepare(ctx context.Context, job platforms.Job) (string, *platforms.Error) {
	if len(job.Content.Media) == 0 {
		return p.prepareCard(ctx, job.Account.Token, linked(job.Content.Text))
	}
	ids := make([]string, len(job.Content.Media))
	for i := range job.Content.Media {
		uploaded, failure := p.upload(ctx, &job, &job.Content.Media[i])
		if failure != nil {
			return "", failure
		}
		ids[i] = uploaded.id()
	}
	return platforms.JoinFileIDs(ids), nil
}

func (p *Platform) upload(ctx context.Context, job *platforms.Job, file *platforms.File) (blob, *platforms.Error) {
	var unread *platforms.Error
	resp, failure, err := p.authorized(ctx, job.Account.Token, func(c *caller) (*transport.Response, error) {
		resp, failed := c.upload(ctx, client.Upload{
			Call: client.Call{Action: "upload", Path: uploadBlob, Timeout: uploadTimeout},
			File: file, Length: file.Size,
		})
		if unread = failed; failed != nil {
			return nil, failed
		}
		return resp, nil
	})
	switch {
	case failure != nil:
		return blob{}, failure
	case err != nil:
		return blob{}, unread
	}
	return p.uploaded(resp, fmt.Sprintf("file %q", file.Name))
}

// uploaded returns the blob from the response to an upload. what describes it in messages.
func (p *Platform) uploaded(resp *transport.Response, what string) (blob, *platforms.Error) {
	if resp.Status != http.StatusOK {
		failure, _ := p.classify(resp)
		if failure.Class == platforms.ClassUnknown {
			failure.Class = platforms.ClassTransient
		}
		return blob{}, failure
	}
	said, _ := jsondoc.Decode[struct {
		Blob struct {
			Ref struct {
				Link jsondoc.Text `json:"$link"`
			} `json:"ref"`
			MIME jsondoc.Text `json:"mimeType"`
			Size jsondoc.Text `json:"size"`
		} `json:"blob"`
	}](resp.Body)
	made := blob{Ref: blobRef{said.Blob.Ref.Link.String()}, MIME: said.Blob.MIME.String(), Size: int64(said.Blob.Size.Int())}
	uploaded, ok := parseBlob(made.id())
	if !ok {
		return blob{}, platforms.Errorf(platforms.ClassTransient, "Bluesky accepted the %s without returning its id", what)
	}
	return uploaded, nil
}
