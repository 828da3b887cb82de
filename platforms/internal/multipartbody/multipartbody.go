// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package multipartbody makes the body of a form with one file (RFC 7578) that
// is read while it is sent: mime/multipart writes one to somewhere, which for a
// file that is larger than memory would be a pipe and a goroutine. Its length is
// known, as platforms want it.
package multipartbody

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/textproto"
)

// Field is a value of the form.
type Field struct{ Name, Value string }

// File is the file of the form.
type File struct {
	// Field is the name of its field, Name that of the file, Type its media
	// type.
	Field, Name, Type string
	// Content holds Size bytes.
	Content io.Reader
	Size    int64
}

// Form is the body. It is read once.
type Form struct {
	io.Reader
	length      int64
	contentType string
}

// New makes a form of a file, behind its fields.
func New(file File, fields ...Field) (*Form, error) {
	var around bytes.Buffer
	w := multipart.NewWriter(&around)
	for _, f := range fields {
		if err := w.WriteField(f.Name, f.Value); err != nil {
			return nil, fmt.Errorf("write the field %s of a form: %w", f.Name, err)
		}
	}
	header := textproto.MIMEHeader{}
	header.Set("Content-Disposition", multipart.FileContentDisposition(file.Field, file.Name))
	header.Set("Content-Type", file.Type)
	if _, err := w.CreatePart(header); err != nil {
		return nil, fmt.Errorf("write the file of a form: %w", err)
	}
	before := around.Len()
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("close a form: %w", err)
	}
	all := around.Bytes()
	return &Form{
		Reader:      io.MultiReader(bytes.NewReader(all[:before]), &exactly{file.Content, file.Size}, bytes.NewReader(all[before:])),
		length:      int64(len(all)) + file.Size,
		contentType: w.FormDataContentType(),
	}, nil
}

// Len is how long the body is, in bytes.
func (f *Form) Len() int64 { return f.length }

// ContentType is what the body is sent as.
func (f *Form) ContentType() string { return f.contentType }

// exactly reads as many bytes as were promised: fewer must not end a form as if
// they were all.
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
	if err == io.EOF && e.left > 0 { //nolint:errorlint // io.Reader promises the bare value
		err = fmt.Errorf("the file ends %d bytes early: %w", e.left, io.ErrUnexpectedEOF)
	}
	return n, err
}
