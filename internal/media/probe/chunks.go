// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"
)

// Chunks copies a PNG without the chunks that its picture does not need. The reference decoder and browsers ignore
// damage in these, and everything after the pixels, while package image/png rejects the file.
type Chunks struct {
	From io.Reader

	// ready contains the bytes to return next. The left bytes of the current chunk follow.
	ready []byte
	left  int64
	// signed is true once the signature has been copied, and pixels once some pixels have.
	signed, pixels bool
	// color is the color type from the header; known is true if a palette or transparency has been copied.
	color byte
	known struct{ palette, transparency bool }
	err   error
}

// The color types of a PNG (third edition, section 11.2.1) that may have a tRNS chunk.
const pngGray, pngTrueColor, pngPalette = 0, 2, 3

// Read implements io.Reader.
func (c *Chunks) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		switch {
		case len(c.ready) > 0:
			n := copy(p, c.ready)
			c.ready = c.ready[n:]
			return n, nil
		case c.left > 0:
			n, err := c.From.Read(p[:min(int64(len(p)), c.left)])
			if c.left -= int64(n); c.left > 0 && errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return n, c.fail(err)
		case c.err != nil:
			return 0, c.err
		default:
			c.next()
		}
	}
}

// fail stores an error. It is not an error if the file ends together with a chunk.
func (c *Chunks) fail(err error) error {
	if err != nil && !errors.Is(err, io.EOF) {
		c.err, c.left = err, 0
		return err
	}
	return nil
}

// next reads a chunk's head and decides whether to copy the chunk.
func (c *Chunks) next() {
	head := make([]byte, pngHead)
	if _, err := io.ReadFull(c.From, head); err != nil {
		c.finish(err)
		return
	}
	if !c.signed {
		c.signed, c.ready = true, head
		return
	}
	length := int64(binary.BigEndian.Uint32(head))
	switch kind := string(head[4:]); {
	case kind == pngEnd:
		c.finish(io.EOF)
	case kind == pngHeader || kind == pngPixels:
		c.pixels = c.pixels || kind == pngPixels
		c.ready, c.left = head, length+pngSum
		if kind == pngHeader {
			c.header(length)
		}
	case kind == "PLTE" && c.color == pngPalette && !c.pixels:
		c.known.palette = true
		c.ready, c.left = head, length+pngSum
	case kind == "tRNS" && c.allowsTransparency(length):
		c.transparency(head, length)
	default:
		if _, err := io.CopyN(io.Discard, c.From, length+pngSum); err != nil {
			c.finish(err)
		}
	}
}

// finish ends the file. If the pixels were copied, it writes a valid end, regardless of what follows them.
func (c *Chunks) finish(err error) {
	switch {
	case c.pixels && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
		c.ready, c.err = []byte("\x00\x00\x00\x00IEND\xae\x42\x60\x82"), io.EOF
	case errors.Is(err, io.EOF):
		c.err = io.ErrUnexpectedEOF
	default:
		c.err = err
	}
}

// header reads the color type, and copies the header.
func (c *Chunks) header(length int64) {
	const colorAt, read = 9, 10
	if length < read {
		return
	}
	start := make([]byte, read)
	n, err := io.ReadFull(c.From, start)
	c.ready, c.left = append(c.ready, start[:n]...), c.left-int64(n)
	if c.fail(err) == nil {
		c.color = start[colorAt]
	}
}

// allowsTransparency reports whether a transparency chunk is valid here. The reference decoder ignores invalid ones.
func (c *Chunks) allowsTransparency(length int64) bool {
	const longest = 256
	if c.pixels || c.known.transparency {
		return false
	}
	switch c.color {
	case pngGray:
		return length == 2
	case pngTrueColor:
		return length == 6
	case pngPalette:
		return c.known.palette && length <= longest
	default:
		return false
	}
}

// transparency copies a transparency chunk if its checksum is correct.
func (c *Chunks) transparency(head []byte, length int64) {
	rest := make([]byte, length+pngSum)
	if _, err := io.ReadFull(c.From, rest); err != nil {
		c.finish(err)
		return
	}
	sum := crc32.Update(crc32.ChecksumIEEE(head[4:]), crc32.IEEETable, rest[:length])
	if c.known.transparency = sum == binary.BigEndian.Uint32(rest[length:]); c.known.transparency {
		c.ready = slices.Concat(head, rest)
	}
}
