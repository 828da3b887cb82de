// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"

	"github.com/herald-social/herald/sandbox/blobs"
	"github.com/herald-social/herald/sandbox/faults"
)

// maxText is the maximum form size without its file, in bytes.
const maxText = 1 << 20

// File is an uploaded file.
type File struct {
	Blob blobs.Blob
	// Err explains why the file was not stored: blobs.ErrTooLarge or another error.
	Err error
}

// fileKey is the context key of a request's File.
type fileKey struct{}

// File returns the call's file as received by ReadForm, or nil.
func (c *Call) File() *File {
	file, _ := c.Context().Value(fileKey{}).(*File) // nil without a file
	return file
}

// ReadForm reads a request body for a handler that selects the operation by parameters. In a multipart body, it stores the named part's
// file. The returned request is for the operation's Route.
func (a *API) ReadForm(r *http.Request, part string, limit int64) (*http.Request, *Params, *Error) {
	form, err := r.MultipartReader()
	if err != nil {
		return a.readPlainForm(r)
	}
	content, file, err := a.readParts(form, part, limit)
	if err != nil {
		return r, nil, BadParam("The form cannot be read.")
	}
	r = r.WithContext(context.WithValue(r.Context(), fileKey{}, file))
	r.Header = r.Header.Clone()
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(content)), int64(len(content))
	params, bad := a.readParams(&faults.Request{Request: r, Content: content})
	return r, params, bad
}

// readPlainForm is like ReadForm, for a body that is not multipart.
func (a *API) readPlainForm(r *http.Request) (*http.Request, *Params, *Error) {
	content, err := io.ReadAll(io.LimitReader(r.Body, maxText))
	if err != nil {
		return r, nil, BadParam("The form cannot be read.")
	}
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(content)), int64(len(content))
	params, bad := a.readParams(&faults.Request{Request: r, Content: content})
	return r, params, bad
}

// readParts returns a multipart form as an urlencoded one, and its file. It keeps only the names of other files, for their rejection.
func (a *API) readParts(form *multipart.Reader, name string, limit int64) (content []byte, file *File, err error) {
	values, left := url.Values{}, int64(maxText)
	for {
		part, err := form.NextPart()
		switch {
		case errors.Is(err, io.EOF):
			return []byte(values.Encode()), file, nil
		case err != nil:
			return nil, nil, err
		case part.FormName() == name && file == nil:
			file = &File{}
			if file.Blob, file.Err = a.Blobs.Receive(part, limit); errors.Is(file.Err, io.ErrUnexpectedEOF) {
				return nil, nil, file.Err // the form ends in the middle of the file
			}
			continue
		case part.FileName() != "":
			values.Add(part.FormName(), "")
			continue
		}
		var text strings.Builder
		n, err := io.Copy(&text, io.LimitReader(part, left+1))
		if left -= n; left < 0 && err == nil {
			err = blobs.ErrTooLarge
		}
		if err != nil {
			return nil, nil, err
		}
		values.Add(part.FormName(), text.String())
	}
}
