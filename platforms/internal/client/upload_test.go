// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"strings"
	"testing"
	"testing/iotest"
)

func TestForm(t *testing.T) {
	form := Form{Field: "media", Name: "a \"b\".png", Values: map[string]string{"category": "tweet_image"}}
	made := form.around(Body{Content: iotest.OneByteReader(strings.NewReader("bytes and more")), Length: 5, Type: "image/png"})
	body, err := io.ReadAll(made.Content)
	if err != nil || made.err != nil {
		t.Fatal(err, made.err)
	}
	if int64(len(body)) != made.Length {
		t.Errorf("%d bytes, promised were %d", len(body), made.Length)
	}
	_, options, err := mime.ParseMediaType(made.Type)
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
	if err != nil || string(data) != "bytes" || part.Filename != form.Name || part.Header.Get("Content-Type") != "image/png" {
		t.Errorf("the file is %q, %q, %v: %v", data, part.Filename, part.Header, err)
	}
}

// TestShortFile reads a file that is shorter than announced, and one whose reads fail. Neither may result in a complete
// form.
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
			form := Form{Field: "f", Name: "n"}
			made := form.around(Body{Content: tc.content, Length: 5, Type: "a/b"})
			if _, err := io.ReadAll(made.Content); !errors.Is(err, tc.want) {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}
