// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/textproto"
	"slices"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
)

// Upload is a call that sends a file or a part of one.
type Upload struct {
	// Call is the request without its body. The media type of the body, or of the file within a form, defaults to the
	// file's type.
	Call
	File *platforms.File
	// Offset and Length select the part, in bytes.
	Offset, Length int64
	// Form wraps the part in a form; nil if the part is the whole body.
	Form *Form
}

// Form is a multipart form with a file (RFC 7578).
type Form struct {
	// Field is the name of the file's field, and Name the file name in the form.
	Field, Name string
	// Values are the other fields, which precede the file.
	Values map[string]string
}

// Upload makes the call once. sent is false if nothing can have reached the platform. failure is classified as for a
// call that can be repeated.
func (c *Client) Upload(ctx context.Context, u Upload) (resp *transport.Response, sent bool, failure *platforms.Error) {
	content, err := u.File.Bytes.Open(ctx, u.Offset, u.Length)
	if err != nil {
		return nil, false, u.File.Unreadable(err)
	}
	defer content.Close()
	body := Body{Content: content, Length: u.Length, Type: u.Body.Type}
	if body.Type == "" {
		body.Type = string(u.File.MIMEType)
	}
	if u.Form != nil {
		body = u.Form.around(body)
	}
	u.Body = body
	if resp, err = c.Do(ctx, u.Call); err != nil {
		return nil, !NotSent(err), c.uploadUnanswered(u.File, err, u.URL != "")
	}
	return resp, true, nil
}

// around returns the form's body, which streams the file. It does not use mime/multipart for the file, because that
// writes to an io.Writer and would need a pipe and a goroutine. The body's length is known in advance, as platforms
// require.
func (f *Form) around(file Body) Body {
	var text bytes.Buffer
	w := multipart.NewWriter(&text)
	header := textproto.MIMEHeader{}
	header.Set("Content-Disposition", multipart.FileContentDisposition(f.Field, f.Name))
	header.Set("Content-Type", file.Type)
	var err error
	for _, name := range slices.Sorted(maps.Keys(f.Values)) {
		err = errors.Join(err, w.WriteField(name, f.Values[name]))
	}
	_, failed := w.CreatePart(header)
	before := text.Len()
	err = errors.Join(err, failed, w.Close())
	all := text.Bytes()
	return Body{
		Content: io.MultiReader(bytes.NewReader(all[:before]), &exactly{file.Content, file.Length}, bytes.NewReader(all[before:])),
		Length:  int64(len(all)) + file.Length, Type: w.FormDataContentType(), err: err,
	}
}

// exactly reads the declared number of bytes and fails if the file is shorter, because the form would otherwise end as
// if it were complete.
type exactly struct {
	from io.Reader
	left int64
}

func (e *exactly) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n, err := e.from.Read(p[:min(int64(len(p)), e.left)])
	e.left -= int64(n)
	if err == io.EOF && e.left > 0 { //nolint:errorlint // io.Reader requires the bare value
		err = fmt.Errorf("the file ends %d bytes early: %w", e.left, io.ErrUnexpectedEOF)
	}
	return n, err
}
