// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package location

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// xmpName is the prefix of XMP in a JPEG, and extendedName the prefix of the parts that did not fit into the first
// segment (XMP, part 3, section 1.1.3).
const (
	xmpName      = "http://ns.adobe.com/xap/1.0/\x00"
	extendedName = "http://ns.adobe.com/xmp/extension/\x00"
)

// XMP namespaces whose properties name the place where a picture was taken.
const (
	nsPhotoshop = "http://ns.adobe.com/photoshop/1.0/"
	nsIPTC      = "http://iptc.org/std/Iptc4xmpCore/1.0/xmlns/"
	nsGeo       = "http://www.w3.org/2003/01/geo/wgs84_pos#"
)

// signs are lower-case substrings of XMP with a location, and of much other XMP, in any single-byte encoding.
var signs = [][]byte{
	[]byte(":gps"), []byte("<gps"), []byte("latitude"), []byte("longitude"), []byte("longtitude"), []byte("wgs84_pos"),
	[]byte("locationcreated"), []byte("locationshown"), []byte("shotlocation"),
	[]byte(":location"), []byte(":city"), []byte(":state"), []byte(":country"),
}

const longestSign = 16

func mayNamePlace(data []byte) bool {
	data = bytes.ToLower(data)
	for _, sign := range signs {
		if bytes.Contains(data, sign) {
			return true
		}
	}
	return false
}

// isPlace reports whether a property describes where a picture was taken. Drone and phone vendors store coordinates in
// proprietary namespaces.
func isPlace(name xml.Name) bool {
	local := strings.ToLower(name.Local)
	switch {
	case namesCoordinates(local), local == "locationcreated", local == "locationshown", local == "shotlocation":
		return true
	case name.Space == nsPhotoshop:
		return local == "city" || local == "state" || local == "country"
	case name.Space == nsIPTC:
		return local == "location" || local == "countrycode"
	default:
		return name.Space == nsGeo
	}
}

func namesCoordinates(name string) bool {
	return strings.HasPrefix(name, "gps") || strings.Contains(name, "latitude") || strings.Contains(name, "longitude") || strings.Contains(name, "longtitude")
}

// cleanXMP overwrites the properties that contain the location with blanks. If XMP may contain a location but cannot be
// parsed, all of it is blanked.
func cleanXMP(data []byte) {
	data = bytes.TrimRight(data, "\x00")
	switch wide := bytes.IndexByte(data, 0) >= 0; {
	case wide && mayNamePlace(bytes.ReplaceAll(data, []byte{0}, nil)):
		blank(data) // XMP with 16 or 32 bits per letter is very rare.
	case wide, !mayNamePlace(data):
	default:
		places, err := placesOf(data)
		if err != nil {
			blank(data)
		}
		for _, s := range places {
			blank(data[s.start:s.end])
		}
	}
}

func blank(data []byte) {
	for i := range data {
		data[i] = ' '
	}
}

func placesOf(data []byte) (found []span, err error) {
	decoder := xml.NewDecoder(bytes.NewReader(data))
	// depth is the number of open elements, counted from a location element, and start is that element's offset.
	depth, start := 0, int64(0)
	for {
		from := decoder.InputOffset()
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the XMP cannot be read: %w", err)
		}
		to := decoder.InputOffset()
		element, begins := token.(xml.StartElement)
		_, ends := token.(xml.EndElement)
		switch {
		case begins && depth == 0 && isPlace(element.Name):
			depth, start = 1, from
		case begins && depth == 0:
			spans, err := placesAmong(data[from:to], element.Attr, from)
			if err != nil {
				return nil, err
			}
			found = append(found, spans...)
		case begins:
			depth++
		case ends && depth == 1:
			depth = 0
			found = append(found, span{start, to})
		case ends && depth > 0:
			depth--
		}
	}
}

// placesAmong returns the positions of a tag's attributes that contain a location; at is the tag's offset.
func placesAmong(tag []byte, all []xml.Attr, at int64) (found []span, err error) {
	spans, ok := attributes(tag, len(all))
	if !ok {
		return nil, errors.New("the XMP has an element that is not understood")
	}
	for i, attribute := range all {
		if isPlace(attribute.Name) {
			found = append(found, span{at + spans[i].start, at + spans[i].end})
		}
	}
	return found, nil
}

// attributes returns the positions of a tag's attributes. count is the number that an XML parser found.
func attributes(tag []byte, count int) (found []span, ok bool) {
	const blanks, ends = " \t\r\n", " \t\r\n/>"
	at := bytes.IndexAny(tag, ends)
	for at >= 0 && at < len(tag) {
		rest := bytes.TrimLeft(tag[at:], blanks)
		at = len(tag) - len(rest)
		if len(rest) == 0 || rest[0] == '/' || rest[0] == '>' {
			break
		}
		_, value, _ := bytes.Cut(rest, []byte("="))
		value = bytes.TrimLeft(value, blanks)
		if len(value) == 0 {
			return nil, false
		}
		end := bytes.IndexByte(value[1:], value[0])
		if end < 0 {
			return nil, false
		}
		next := len(tag) - len(value) + 1 + end + 1
		found = append(found, span{int64(at), int64(next)})
		at = next
	}
	return found, len(found) == count
}

// xmp cleans XMP. XMP that is too long for memory is blanked completely if it may contain a location: some programs
// store depth maps in it, or a video's whole history.
func (c *cleaner) xmp(p part) {
	if p.length() <= longestPart {
		c.edit(p, cleanXMP)
		return
	}
	if c.longSigned(p) {
		c.fill(p, ' ')
	}
}

// longSigned is like mayNamePlace, but reads the XMP piece by piece.
func (c *cleaner) longSigned(p part) bool {
	const step = 64 << 10
	window := make([]byte, 0, longestSign+step)
	for _, s := range p {
		for at := s.start; at < s.end; at += step {
			n := min(step, s.end-at)
			kept := len(window)
			window = window[:kept+int(n)]
			if !c.read(window[kept:], at) {
				return false
			}
			if mayNamePlace(bytes.ReplaceAll(window, []byte{0}, nil)) {
				return true
			}
			if over := len(window) - longestSign; over > 0 {
				window = window[:copy(window, window[over:])]
			}
		}
	}
	return false
}
