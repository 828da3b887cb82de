// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"net/url"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/rest/oas"
)

// ListConnections serves listConnections.
func (d *door) ListConnections(ctx context.Context, params oas.ListConnectionsParams) (oas.ListConnectionsRes, error) {
	found := d.service.ListConnections(caller(ctx), v1alpha1.Platform(params.Platform.Or("")))
	out := &oas.ConnectionList{Data: make([]oas.Connection, len(found))}
	for i := range found {
		out.Data[i] = wireConnection(&found[i])
	}
	return out, nil
}

// listing is what a list of posts is made of.
type listing struct {
	page      []postindex.Summary
	platforms []oas.PlatformSummary
	out       oas.PostList
}

// ListPosts serves listPosts.
func (d *door) ListPosts(ctx context.Context, params oas.ListPostsParams) (oas.ListPostsRes, error) {
	l, ok := d.listings.Get().(*listing)
	if !ok {
		l = &listing{}
	}
	request.From(ctx).Answered = func() { d.listings.Put(l) }
	page := d.service.ListPosts(caller(ctx), bridge.ListPosts{
		Status:   v1alpha1.PostPhase(params.Status.Or("")),
		Platform: v1alpha1.Platform(params.Platform.Or("")),
		Page:     params.Page.Or(1),
		Limit:    params.Limit.Or(bridge.DefaultLimit),
		Into:     l.page,
	})
	if len(page.Posts) > 0 {
		l.page = page.Posts
	}
	l.wire(page.Posts)
	l.out.Pagination = oas.Pagination{Total: page.Total, Page: page.Page, Limit: page.Limit, HasNext: page.HasNext}
	return &l.out, nil
}

// CreatePost serves createPost.
func (d *door) CreatePost(ctx context.Context, req oas.CreatePostRequest, params oas.CreatePostParams) (oas.CreatePostRes, error) {
	in, err := createPost(&req)
	if err != nil {
		return nil, err
	}
	in.IdempotencyKey = params.IdempotencyKey.Or("")
	post, err := d.service.CreatePost(ctx, caller(ctx), in)
	if err != nil {
		return nil, err
	}
	return &oas.PostResponse{Data: wireDetail(&post)}, nil
}

// CreateMediaUploadUrl serves createMediaUploadUrl.
//
//nolint:revive // the name is generated from the operationId of the contract
func (d *door) CreateMediaUploadUrl(
	ctx context.Context, req *oas.CreateMediaUploadRequest, params oas.CreateMediaUploadUrlParams,
) (oas.CreateMediaUploadUrlRes, error) {
	upload, err := d.service.CreateMediaUpload(ctx, caller(ctx), bridge.CreateMediaUpload{
		MIMEType: string(req.MimeType), Name: req.Name, SizeBytes: req.SizeBytes,
		IdempotencyKey: params.IdempotencyKey.Or(""),
	})
	if err != nil {
		return nil, err
	}
	address, err := url.Parse(upload.UploadURL)
	if err != nil {
		return nil, errors.New("the address that was signed for an upload is none") // err would tell it
	}
	return &oas.MediaUploadResponse{Data: oas.MediaUpload{MediaID: upload.ID, UploadURL: *address, Name: upload.Name}}, nil
}

// GetPost serves getPost.
func (d *door) GetPost(ctx context.Context, params oas.GetPostParams) (oas.GetPostRes, error) {
	post, err := d.service.GetPost(ctx, caller(ctx), params.ID)
	if err != nil {
		return nil, err
	}
	return &oas.PostResponse{Data: wireDetail(&post)}, nil
}

// CancelPost serves cancelPost.
func (d *door) CancelPost(ctx context.Context, params oas.CancelPostParams) (oas.CancelPostRes, error) {
	if err := d.service.CancelPost(ctx, caller(ctx), params.ID); err != nil {
		return nil, err
	}
	return &oas.CancelResponse{Data: oas.CancelledPost{ID: params.ID, Status: oas.CancelledPostStatusCancelled}}, nil
}
