// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"github.com/abema/go-mp4"
)

// film is an MP4 video of any size that is never held in memory: a real video whose frame box (mdat) is extended after
// the last frame.
type film struct {
	head, tail []byte
	fill       int64
}

// stretch extends a small video to the given size. Frames keep their offsets, so the index remains valid.
func stretch(data []byte, size int64) (film, error) {
	var frames mp4.BoxInfo
	_, err := mp4.ReadBoxStructure(bytes.NewReader(data), func(h *mp4.ReadHandle) (any, error) {
		if h.BoxInfo.Type == mp4.BoxTypeMdat() {
			frames = h.BoxInfo
		}
		return nil, nil
	})
	if err != nil {
		return film{}, err
	}
	if frames.Size == 0 || frames.HeaderSize != mp4.SmallHeaderSize {
		return film{}, errors.New("the video has no frames in a box with a short header")
	}
	fill := size - int64(len(data))
	longer := frames.Size + uint64(max(fill, 0))
	if fill < 0 || longer > math.MaxUint32 {
		return film{}, fmt.Errorf("a video of %d bytes cannot be extended to %d", len(data), size)
	}
	end := frames.Offset + frames.Size
	head := bytes.Clone(data[:end])
	binary.BigEndian.PutUint32(head[frames.Offset:], uint32(longer))
	return film{head: head, tail: data[end:], fill: fill}, nil
}

func (f film) size() int64 { return int64(len(f.head)) + f.fill + int64(len(f.tail)) }

// read returns the video's content. The extension is noise, which does not compress.
func (f film) read() io.Reader {
	return io.MultiReader(bytes.NewReader(f.head), io.LimitReader(rand.NewChaCha8([32]byte{}), f.fill), bytes.NewReader(f.tail))
}
