// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/strictjson"
	"github.com/herald-social/herald/apiserver/wire"
)

// Prefix and PrefixV2 are the path prefixes of the API's versions.
const (
	Prefix   = "/api/v1"
	PrefixV2 = "/api/v2"
)

// version is a version of the API. Versions share the caller, the limits, the order of the checks and the handlers of
// their common operations.
type version struct {
	prefix string
	// label precedes an operation's id in metrics, logs and traces.
	label string
	// laterPlatforms is true if the version has the platforms missing from the contract of version 1.
	laterPlatforms bool
	operations     []operation
	// readPost and readUpload decode the bodies of createPost and createMediaUploadUrl.
	readPost   func(body strictjson.Value) (bridge.CreatePost, error)
	readUpload func(body strictjson.Value) (bridge.CreateMediaUpload, error)
	// post writes the response for a post, and upload appends the response for an upload.
	post   func(out *answer, post *bridge.PostDetail)
	upload func(b []byte, upload *bridge.MediaUpload) []byte
}

// operation is one of the OpenAPI document's operations. Call takes its parameters by their JSON names.
type operation struct {
	id     string
	method string
	// path is relative to the version's prefix; {id} is a post's id, or the name of a schedule or notifier.
	path string
	// status is the status of a successful response.
	status int
	// creates is true for an operation with a body, which needs a subscription, acts for one that also has an id, and edits
	// for one that also has an id and a version; lists is true for an operation with a query, which reads from memory. scans
	// is true for a list whose work depends on its query, and is charged.
	creates, acts, edits, lists, scans bool
	// words and numbers are the names of the query parameters, by type.
	words, numbers []string
	// serve sets the body of out, which is reused and may have old content.
	serve func(h *Handler, ctx context.Context, c *call, out *answer) error
}

// noun names the objects of an operation on posts, schedules or notifiers.
func (o *operation) noun() string {
	switch {
	case strings.HasPrefix(o.path, "/"+collectionSchedules):
		return "schedule"
	case strings.HasPrefix(o.path, "/"+collectionNotifiers):
		return "notifier"
	default:
		return "post"
	}
}

// collections are the paths whose objects have paths of their own.
const (
	collectionPosts     = "posts"
	collectionSchedules = "schedules"
	collectionNotifiers = "notifiers"
)

// keyed reports whether an operation takes an Idempotency-Key, as those that create something do. Repeating any other
// operation has no further effect.
func (o *operation) keyed() bool { return o.status == http.StatusCreated }

// Operations with the same handlers in both versions. Operations that only version 2 has are in v2.
var (
	listConnections = operation{
		id: "listConnections", method: http.MethodGet, path: "/connections", status: http.StatusOK, lists: true, words: []string{paramPlatform},
		serve: (*Handler).listConnections,
	}
	createMediaUpload = operation{
		id: "createMediaUploadUrl", method: http.MethodPost, path: "/media/upload-url", status: http.StatusCreated, creates: true,
		serve: (*Handler).createMediaUpload,
	}
	createPost = operation{id: "createPost", method: http.MethodPost, path: "/posts", status: http.StatusCreated, creates: true, serve: (*Handler).createPost}
	cancelPost = operation{id: "cancelPost", method: http.MethodDelete, path: "/posts/{id}", status: http.StatusOK, serve: (*Handler).cancelPost}
	getPost    = operation{id: "getPost", method: http.MethodGet, path: "/posts/{id}", status: http.StatusOK, serve: (*Handler).getPost}
)

// The operations of each version are in the order of the methods in Allow.
var (
	v1 = version{
		prefix: Prefix,
		operations: []operation{
			listConnections, createMediaUpload,
			{
				id: "listPosts", method: http.MethodGet, path: "/posts", status: http.StatusOK, lists: true,
				words: []string{paramStatus, paramPlatform}, numbers: []string{paramPage, paramLimit}, serve: (*Handler).listPosts,
			},
			createPost, cancelPost, getPost,
		},
		readPost: wire.CreatePost, readUpload: wire.CreateMediaUpload, upload: wire.AppendMediaUpload,
		post: func(out *answer, post *bridge.PostDetail) { out.body = wire.AppendPost(out.body, post) },
	}
	v2 = version{
		prefix: PrefixV2, label: "v2 ", laterPlatforms: true,
		operations: []operation{
			listConnections, createMediaUpload,
			{
				id: "listPosts", method: http.MethodGet, path: "/posts", status: http.StatusOK, lists: true, scans: true,
				words:   []string{paramStatus, paramPlatform, paramCategory, paramConnection, paramFrom, paramTo, paramWords, paramSort, paramCursor},
				numbers: []string{paramPage, paramLimit}, serve: (*Handler).findPosts,
			},
			createPost,
			{id: "validatePost", method: http.MethodPost, path: "/posts/validate", status: http.StatusOK, creates: true, serve: (*Handler).validatePost},
			cancelPost, getPost,
			{id: "retryPost", method: http.MethodPost, path: "/posts/{id}/retry", status: http.StatusCreated, serve: (*Handler).retryPost},
			{id: "updatePost", method: http.MethodPatch, path: "/posts/{id}", status: http.StatusOK, edits: true, serve: (*Handler).updatePost},
			{id: "listSchedules", method: http.MethodGet, path: "/schedules", status: http.StatusOK, lists: true, scans: true, serve: (*Handler).listSchedules},
			{id: "createSchedule", method: http.MethodPost, path: "/schedules", status: http.StatusCreated, creates: true, serve: (*Handler).createSchedule},
			{id: "deleteSchedule", method: http.MethodDelete, path: "/schedules/{id}", status: http.StatusOK, serve: (*Handler).deleteSchedule},
			{id: "getSchedule", method: http.MethodGet, path: "/schedules/{id}", status: http.StatusOK, serve: (*Handler).getSchedule},
			{id: "updateSchedule", method: http.MethodPatch, path: "/schedules/{id}", status: http.StatusOK, edits: true, serve: (*Handler).updateSchedule},
			{id: "listNotifiers", method: http.MethodGet, path: "/notifiers", status: http.StatusOK, lists: true, scans: true, serve: (*Handler).listNotifiers},
			{id: "createNotifier", method: http.MethodPost, path: "/notifiers", status: http.StatusCreated, creates: true, serve: (*Handler).createNotifier},
			{id: "deleteNotifier", method: http.MethodDelete, path: "/notifiers/{id}", status: http.StatusOK, serve: (*Handler).deleteNotifier},
			{id: "getNotifier", method: http.MethodGet, path: "/notifiers/{id}", status: http.StatusOK, serve: (*Handler).getNotifier},
			{id: "updateNotifier", method: http.MethodPatch, path: "/notifiers/{id}", status: http.StatusOK, edits: true, serve: (*Handler).updateNotifier},
			{id: "listDeliveries", method: http.MethodGet, path: "/notifiers/{id}/deliveries", status: http.StatusOK, serve: (*Handler).listDeliveries},
			{id: "resendDelivery", method: http.MethodPost, path: "/notifiers/{id}/resend", status: http.StatusOK, acts: true, serve: (*Handler).resendDelivery},
			{id: "replaceSecret", method: http.MethodPost, path: "/notifiers/{id}/secret", status: http.StatusOK, serve: (*Handler).replaceSecret},
		},
		readPost: wire.CreatePostV2, readUpload: wire.CreateMediaUploadV2, upload: wire.AppendMediaUploadV2,
		post: func(out *answer, post *bridge.PostDetail) {
			out.etag = etag(post.Version)
			out.body = wire.AppendPostV2(out.body, post)
		},
	}
)

// route returns a request's operation and the id in its path. If there is no operation, allowed are the path's methods.
// http.ServeMux would redirect unclean paths and respond with plain text.
func (v *version) route(r *http.Request) (found *operation, id string, allowed []string) {
	path := strings.TrimPrefix(r.URL.Path, v.prefix)
	if of, escaped := v.pathOfID(r); of != "" {
		unescaped, err := url.PathUnescape(escaped)
		if err != nil {
			return nil, "", nil
		}
		path, id = of, unescaped
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet // net/http omits the body
	}
	for i := range v.operations {
		o := &v.operations[i]
		if o.path != path {
			continue
		}
		if o.method == method {
			return o, id, nil
		}
		if allowed = append(allowed, o.method); o.method == http.MethodGet {
			allowed = append(allowed, http.MethodHead)
		}
	}
	return nil, "", allowed
}

// pathOfID returns the path of an operation with {id} in place of the request's id, and the escaped id. An escaped slash
// is part of the id. It returns "" if the request's path has no id. The path of an operation takes precedence over an id
// of the same name.
func (v *version) pathOfID(r *http.Request) (path, escaped string) {
	for _, collection := range []string{collectionPosts, collectionSchedules, collectionNotifiers} {
		rest, ok := strings.CutPrefix(r.URL.EscapedPath(), v.prefix+"/"+collection+"/")
		if !ok {
			continue
		}
		escaped, action, nested := strings.Cut(rest, "/")
		path := "/" + collection + "/{id}"
		if nested {
			path += "/" + action
		}
		if escaped != "" && v.serves(path) && (nested || !v.has(r.Method, "/"+collection+"/"+escaped)) {
			return path, escaped
		}
	}
	return "", ""
}

// has reports whether a version has an operation at a path without an id.
func (v *version) has(method, path string) bool {
	return slices.ContainsFunc(v.operations, func(o operation) bool { return o.method == method && o.path == path })
}

// serves reports whether a version has an operation at a path.
func (v *version) serves(path string) bool {
	return slices.ContainsFunc(v.operations, func(o operation) bool { return o.path == path })
}

// etag returns the entity tag of a post's version.
func etag(version string) string { return `"` + version + `"` }
