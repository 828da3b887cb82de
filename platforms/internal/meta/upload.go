// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// Stream is a file that goes to Meta's host of uploads in one request.
type Stream struct {
	// Action, Path and Timeout are those of a client.Call.
	Action, Path string
	Timeout      time.Duration
	// Token is sent in the header, in the host's own way.
	Token string
	// Size is the length of the file in bytes.
	Size int64
	// Content are its bytes.
	Content io.Reader
}

// Send sends the file once, from its start. Errors are *transport.Error.
func Send(ctx context.Context, c *client.Client, s Stream) (*transport.Response, error) {
	return c.Do(ctx, client.Call{
		Action: s.Action, Path: s.Path, Timeout: s.Timeout,
		Header: http.Header{
			"Authorization": {"OAuth " + s.Token},
			// The host documents these names in small letters; HTTP makes no
			// difference.
			"Offset":    {"0"},
			"File_size": {strconv.FormatInt(s.Size, 10)},
		},
		Body: client.Body{Content: s.Content, Length: s.Size, Type: "application/octet-stream"},
	})
}

// UploadError is what the host of uploads says is wrong. It words its errors in
// another way than the graphs, beside theirs.
type UploadError struct {
	// Status is the HTTP status of the answer.
	Status int
	// Type names the error; empty if the host did not say.
	Type string
	// Retriable is what the host says itself: the same upload may succeed
	// later.
	Retriable bool
}

// Error names the type, for logs.
func (e *UploadError) Error() string {
	return "HTTP status " + strconv.Itoa(e.Status) + " of the host of uploads, type " + strconv.Quote(e.Type)
}

// maxType bounds what is believed to be the name of an error.
const maxType = 64

// ParseUpload reads the answer to a Stream: nil if the file was taken.
func ParseUpload(resp *transport.Response) *UploadError {
	doc, _ := jsondoc.Parse(resp.Body)
	if resp.Status == http.StatusOK && doc.Bool("success") {
		return nil
	}
	said := doc.Object("debug_info")
	e := &UploadError{Status: resp.Status, Type: said.Text("type"), Retriable: said.Bool("retriable")}
	if len(e.Type) > maxType {
		e.Type = e.Type[:maxType]
	}
	return e
}
