// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package multipartbody_test

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/herald-social/herald/platforms/internal/multipartbody"
)

func TestForm(t *testing.T) {
	file := multipartbody.File{Field: "media", Name: "a \"b\".png", Type: "image/png", Content: iotest.OneByteReader(strings.NewReader("bytes and more")), Size: 5}
	form, err := multipartbody.New(file, multipartbody.Field{Name: "category", Value: "tweet_image"})
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(form)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(body)) != form.Len() {
		t.Errorf("%d bytes, promised were %d", len(body), form.Len())
	}
	_, options, err := mime.ParseMediaType(form.ContentType())
	if err != nil {
		t.Fatal(err)
	}
	read, err := multipart.NewReader(strings.NewReader(string(body)), options["boundary"]).ReadForm(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if got := read.Value["category"]; len(got) != 1 || got[0] != "tweet_image" {
		t.Errorf("the field is %q", got)
	}
	part := read.File["media"][0]
	content, err := part.Open()
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(content)
	if err != nil || string(data) != "bytes" || part.Filename != file.Name || part.Header.Get("Content-Type") != "image/png" {
		t.Errorf("the file is %q, %q, %v: %v", data, part.Filename, part.Header, err)
	}
}

// TestShortFile reads a file that has fewer bytes than were promised, and one
// that fails: neither must look like a whole form.
func TestShortFile(t *testing.T) {
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		reason  string
		content io.Reader
		want    error
	}{
		"short":  {"the store gave less than it said", strings.NewReader("byt"), io.ErrUnexpectedEOF},
		"broken": {"the connection to the store broke", io.MultiReader(strings.NewReader("b"), iotest.ErrReader(broken)), broken},
	} {
		t.Run(name, func(t *testing.T) {
			form, err := multipartbody.New(multipartbody.File{Field: "f", Name: "n", Type: "a/b", Content: tc.content, Size: 5})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(form); !errors.Is(err, tc.want) {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}
