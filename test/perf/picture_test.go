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
	config, err := jpeg.DecodeConfig(bytes.NewReader(one))
	if err != nil || config.Width != pictureSide || config.Height != pictureSide {
		t.Errorf("the picture is %+v (%v), want %d pixels each way", config, err, pictureSide)
	}
	if len(one) < 190<<10 || len(one) > 210<<10 {
		t.Errorf("the picture has %d bytes, want about 200 KiB", len(one))
	}
	other, err := drawPicture(2)
	if err != nil || bytes.Equal(one, other) {
		t.Errorf("two pictures are equal, or only one exists: %v", err)
	}
}
