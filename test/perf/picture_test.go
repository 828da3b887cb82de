// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"image/jpeg"
	"testing"
)

func TestDrawPicture(t *testing.T) {
	one, err := drawPicture(1)
	if err != nil {
		t.Fatal(err)
	}
	config, err := jpeg.DecodeConfig(one.read())
	if err != nil || config.Width != pictureSide || config.Height != pictureSide {
		t.Errorf("the picture is %+v (%v), want %d pixels each way", config, err, pictureSide)
	}
	if one.size() != pictureBytes {
		t.Errorf("the picture has %d bytes, want %d", one.size(), pictureBytes)
	}
	other, err := drawPicture(2)
	if err != nil || bytes.Equal(one, other) {
		t.Errorf("two pictures are the same, or there is no other: %v", err)
	}
}

// TestPadded adds as many bytes as do and do not fit into one comment.
func TestPadded(t *testing.T) {
	bare := []byte{0xff, 0xd8, 0xff, 0xd9}
	for _, fill := range []int{0, 4, 5, 65536, 65537, 65538, 65541, 131074, 131076, 200000} {
		got, err := padded(bare, len(bare)+fill)
		if err != nil || len(got) != len(bare)+fill {
			t.Errorf("%d bytes more: got %d bytes more, %v", fill, len(got)-len(bare), err)
			continue
		}
		for at := 2; at < len(got)-2; {
			if got[at] != 0xff || got[at+1] != 0xfe {
				t.Errorf("%d bytes more: no comment begins at %d", fill, at)
				break
			}
			at += 2 + int(got[at+2])<<8 + int(got[at+3])
		}
	}
	for _, fill := range []int{-1, 3} {
		if got, err := padded(bare, len(bare)+fill); err == nil {
			t.Errorf("%d bytes more: got %d bytes, want an error", fill, len(got))
		}
	}
}
