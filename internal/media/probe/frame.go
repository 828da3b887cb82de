// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/herald-social/herald/internal/media/store"
)

// jpegFrame is the frame of a JPEG, which describes its pixels (ITU-T T.81, section B.2.2).
type jpegFrame struct {
	kind          byte
	precision     int
	width, height int
	components    []jpegComponent
}

// jpegComponent is a channel. across and down are the numbers of its values in each unit of the picture.
type jpegComponent struct {
	id           byte
	across, down int
}

// maxComponents is the maximum number of channels in a readable JPEG: the four inks.
const maxComponents = 4

// readFrame reads the frame of a JPEG. It returns false if there is none.
func readFrame(file *store.BlockReader, parts *imageParts) (f jpegFrame, ok bool) {
	const head, entry = 6, 3
	data := make([]byte, min(parts.frame.end-parts.frame.start, head+(maxComponents+1)*entry))
	if _, err := file.ReadAt(data, parts.frame.start); err != nil || len(data) < head {
		return jpegFrame{}, false
	}
	f = jpegFrame{
		kind: parts.frameKind, precision: int(data[0]),
		height: int(binary.BigEndian.Uint16(data[1:])), width: int(binary.BigEndian.Uint16(data[3:])),
	}
	for at := head; at+entry <= len(data); at += entry {
		f.components = append(f.components, jpegComponent{data[at], int(data[at+1] >> 4), int(data[at+1] & 0xf)})
	}
	return f, true
}

const arithmetic, hierarchical = "arithmetic coding", "hierarchical coding"

var codings = map[byte]string{
	0xc3: "lossless coding", 0xc5: hierarchical, 0xc6: hierarchical, 0xc7: hierarchical,
	0xc9: arithmetic, 0xca: arithmetic, 0xcb: arithmetic, 0xcd: arithmetic, 0xce: arithmetic, 0xcf: arithmetic,
	0xf7: "the lossless coding of JPEG-LS",
}

// unreadable returns the reason package image/jpeg cannot decode a JPEG, which may well be valid, or "" if it can.
func (f *jpegFrame) unreadable(adobe bool) string {
	const channel = 8
	switch coding, other := codings[f.kind]; {
	case other:
		return coding
	case f.precision != channel:
		return fmt.Sprintf("%d bits a channel", f.precision)
	case len(f.components) == 2 || len(f.components) > maxComponents:
		return "this number of channels"
	case f.height == 0:
		return "a height that only follows the picture"
	case len(f.components) == maxComponents && !adobe:
		return "four channels of unknown colours"
	case !f.sampled():
		var factors []string
		for _, c := range f.components {
			factors = append(factors, fmt.Sprintf("%dx%d", c.across, c.down))
		}
		return fmt.Sprintf("colours sampled as %s", strings.Join(factors, ","))
	default:
		return ""
	}
}

func (f *jpegFrame) sampled() bool {
	for _, c := range f.components {
		if c.across < 1 || c.across > 4 || c.down < 1 || c.down > 4 {
			return true // damage, which is reported elsewhere
		}
		if c.across == 3 || c.down == 3 {
			return false
		}
	}
	c := f.components
	switch len(c) {
	case 3:
		return c[0].down != 4 && c[0].across%c[1].across == 0 && c[0].down%c[1].down == 0 && c[1].across == c[2].across && c[1].down == c[2].down
	case maxComponents:
		plain := func(c jpegComponent) bool { return c.across == 1 && c.down == 1 }
		return c[0].across == c[0].down && c[0].across <= 2 && plain(c[1]) && plain(c[2]) && c[3].across == c[0].across && c[3].down == c[0].down
	default:
		return true
	}
}

// memory estimates the memory for decoding: colors are often stored for fewer pixels than brightness, and a progressive
// picture takes four more bytes for each value. unchanged means that the channels are displayed without conversion.
func (f *jpegFrame) memory(pixels int64, unchanged bool) int64 {
	const progressive = 0xc2
	var values, most int64
	var ids []byte
	for _, c := range f.components[:min(len(f.components), maxComponents)] {
		share := int64(c.across) * int64(c.down)
		values, most = values+share, max(most, share)
		ids = append(ids, c.id)
	}
	total := pixels * values / max(most, 1)
	if f.kind == progressive {
		total *= 5
	}
	if len(f.components) >= maxComponents || string(ids) == "RGB" || unchanged {
		// Channels other than the usual ones are converted into a copy.
		total += pixels * 4
	}
	return total
}
