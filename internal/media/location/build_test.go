// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package location_test

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"os"
	"testing"

	"github.com/herald-social/herald/test/mediatest"
	"github.com/herald-social/herald/test/must"
)

// Functions that build files.
var (
	join  = mediatest.Join
	words = mediatest.Words
	box   = mediatest.Box
	chunk = mediatest.Chunk
)

// latitude is the value that a cleaned file must not contain: 47 degrees, 22 minutes, 6.789 seconds.
func latitude(order binary.ByteOrder) []byte {
	var out []byte
	for _, value := range []uint32{47, 1, 22, 1, 6789, 1000} {
		out = number(out, order, value)
	}
	return out
}

// number appends a number.
func number(to []byte, order binary.ByteOrder, value any) []byte {
	out, err := binary.Append(to, order, value)
	if err != nil {
		panic(err)
	}
	return out
}

// The tags of the metadata that exif makes.
const (
	tagMake, tagOrientation, tagTitle, tagMakerNote = 0x010f, 0x0112, 0x9c9b, 0x927c
	camera, note, title                             = "A camera of Herald\x00", "a note of its maker", "T\x00i\x00t\x00l\x00e\x00\x00\x00"
)

// field is an entry in a directory.
type field struct {
	tag, kind uint16
	count     uint32
	value     []byte
}

// directory returns a directory at the given offset, followed by its entries' values.
func directory(order binary.ByteOrder, at, next uint32, fields ...field) []byte {
	head := number(nil, order, uint16(len(fields)))
	behind := at + uint32(2+12*len(fields)+4)
	var values []byte
	for _, f := range fields {
		head = number(head, order, f.tag)
		head = number(head, order, f.kind)
		head = number(head, order, f.count)
		if len(f.value) <= 4 {
			head = append(head, append(f.value, 0, 0, 0, 0)[:4]...)
			continue
		}
		head = number(head, order, behind+uint32(len(values)))
		values = append(values, f.value...)
	}
	return append(number(head, order, next), values...)
}

// exif returns metadata as a camera writes it: with a location in the middle of the first directory and of the data
// after it.
func exif(order binary.ByteOrder, fields ...field) []byte {
	const first, places, exif, second = 8, 200, 400, 500
	long := func(value uint32) []byte { return number(nil, order, value) }
	short := func(value uint16) []byte { return number(nil, order, value) }
	data := make([]byte, 600)
	copy(data, "MM\x00*")
	if order == binary.ByteOrder(binary.LittleEndian) {
		copy(data, "II*\x00")
	}
	copy(data[4:], long(first))
	copy(data[first:], directory(order, first, second, append([]field{
		{tagMake, 2, uint32(len(camera)), []byte(camera)},
		{tagOrientation, 3, 1, short(6)},
		{0x8769, 4, 1, long(exif)},
		{0x8825, 4, 1, long(places)},
		{tagTitle, 1, uint32(len(title)), []byte(title)},
	}, fields...)...))
	copy(data[places:], directory(order, places, 0,
		field{0, 1, 4, []byte{2, 3, 0, 0}}, field{1, 2, 2, []byte("N\x00")}, field{2, 5, 3, latitude(order)},
		field{0x1b, 7, 11, []byte("by the moon")}))
	copy(data[exif:], directory(order, exif, 0, field{tagMakerNote, 7, uint32(len(note)), []byte(note)}))
	copy(data[second:], directory(order, second, 0, field{0x0103, 3, 1, short(6)}))
	return data
}

// entries reads the values in the metadata's first directory and in the directories that it refers to.
func entries(tb testing.TB, data []byte) map[uint16]string {
	tb.Helper()
	var order binary.ByteOrder = binary.BigEndian
	if data[0] == 'I' {
		order = binary.LittleEndian
	}
	found := map[uint16]string{}
	for waiting := []uint32{order.Uint32(data[4:])}; len(waiting) > 0; waiting = waiting[1:] {
		at := waiting[0]
		if at == 0 {
			continue
		}
		count := uint32(order.Uint16(data[at:]))
		for i := range count {
			e := data[at+2+12*i:]
			tag, kind, length, value := order.Uint16(e), order.Uint16(e[2:]), order.Uint32(e[4:]), order.Uint32(e[8:])
			switch {
			case tag == 0x8769:
				waiting = append(waiting, value)
			case kind == 3:
				found[tag] = fmt.Sprint(order.Uint16(e[8:]))
			case length > 4:
				found[tag] = string(data[value : value+length])
			default:
				found[tag] = fmt.Sprint(value)
			}
		}
		waiting = append(waiting, order.Uint32(data[at+2+12*count:]))
	}
	return found
}

// packet returns XMP with properties as attributes and as elements.
func packet(attributes, elements string) string {
	return `<?xpacket begin="` + "\ufeff" + `" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description rdf:about="" xmlns:exif="http://ns.adobe.com/exif/1.0/" xmlns:photoshop="http://ns.adobe.com/photoshop/1.0/" xmlns:xmp="http://ns.adobe.com/xap/1.0/"
 xmlns:e="http://iptc.org/std/Iptc4xmpExt/2008-02-29/" xmlns:c="http://iptc.org/std/Iptc4xmpCore/1.0/xmlns/" xmp:CreatorTool="Herald 1 > 0" ` + attributes + `>
` + elements + `<xmp:Label>kept</xmp:Label></rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end="w"?>`
}

// placedXMP returns XMP with a location in every form.
func placedXMP() string {
	return packet(`exif:GPSLatitude="47,22.1" photoshop:City = 'Zurich'`,
		`<exif:GPSLongitude>8,32.5</exif:GPSLongitude><e:LocationCreated><rdf:Bag><rdf:li e:City="Oerlikon"/></rdf:Bag></e:LocationCreated><c:Location>Bellevue</c:Location><photoshop:State/>`)
}

// told are the locations in placedXMP.
var told = []string{"47,22.1", "Zurich", "8,32.5", "Oerlikon", "Bellevue"}

// iptc returns IPTC metadata in Photoshop resources: a city and a headline.
func iptc() []byte {
	set := func(number byte, value string) []byte {
		return join([]byte{0x1c, 2, number, 0, byte(len(value))}, value)
	}
	data := join(set(90, "Zurich"), set(105, "A headline"), set(101, "Switzerland"))
	return join("8BIM", []byte{4, 4, 0, 0}, words(uint32(len(data))), data, make([]byte, len(data)%2), "8BIM", []byte{4, 0x25, 0, 0}, words(2), "ok")
}

// segment returns a part of a JPEG.
func segment(marker byte, parts ...any) []byte {
	data := join(parts...)
	return join([]byte{0xff, marker}, binary.BigEndian.AppendUint16(nil, uint16(len(data)+2)), data)
}

func picture() image.Image {
	img := image.NewNRGBA(image.Rect(0, 0, 24, 16))
	for i := range img.Pix {
		img.Pix[i] = byte(7 * i)
	}
	for y := range 16 {
		img.Set(3, y, color.White)
	}
	return img
}

// photo returns a JPEG with segments.
func photo(tb testing.TB, segments ...[]byte) []byte {
	tb.Helper()
	var out bytes.Buffer
	must.Succeed(tb, jpeg.Encode(&out, picture(), nil))
	return join(out.Bytes()[:2], bytes.Join(segments, nil), out.Bytes()[2:])
}

// placed returns a JPEG with a location in EXIF.
func placed(tb testing.TB) []byte {
	tb.Helper()
	return photo(tb, segment(0xe1, "Exif\x00\x00", exif(binary.BigEndian)))
}

// drawing returns a PNG with chunks before and after its pixels.
func drawing(tb testing.TB, before, behind []byte) []byte {
	tb.Helper()
	var out bytes.Buffer
	must.Succeed(tb, png.Encode(&out, picture()))
	const header, end = 33, 12
	data := out.Bytes()
	return join(data[:header], before, data[header:len(data)-end], behind, data[len(data)-end:])
}

// raw returns metadata as ImageMagick writes it into a PNG.
func raw(name string, data []byte) []byte {
	digits := hex.EncodeToString(data)
	text := fmt.Sprintf("\n%s\n%8d\n", name, len(data))
	for len(digits) > 72 {
		text, digits = text+digits[:72]+"\n", digits[72:]
	}
	return []byte(text + digits + "\n")
}

func compressed(data []byte) []byte {
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	_, _ = w.Write(data)
	_ = w.Close()
	return out.Bytes()
}

// web returns a WebP with chunks after its pixels.
func web(tb testing.TB, chunks ...[]byte) []byte {
	tb.Helper()
	plain, err := os.ReadFile("../probe/testdata/picture.webp")
	must.Succeed(tb, err)
	const fileHeader = 12
	body := join(plain[fileHeader:], bytes.Join(chunks, nil))
	return join("RIFF", binary.LittleEndian.AppendUint32(nil, uint32(len(body)+4)), "WEBP", body)
}

// webChunk returns a part of a WebP.
func webChunk(kind string, parts ...any) []byte {
	data := join(parts...)
	return join(kind, binary.LittleEndian.AppendUint32(nil, uint32(len(data))), data, make([]byte, len(data)%2))
}

// samples describes a track's samples: their format, and the positions and sizes of their chunks.
type samples struct {
	format  []byte
	offsets []uint32
	sizes   []uint32
	// handler is the kind of the track.
	handler string
	id      uint32
}

// trak returns a track with one sample per chunk.
func trak(s samples, more ...any) []byte {
	return box("trak",
		box("tkhd", words(0, 0, 0, s.id, 0, 0, 0, 0, 0, 0, 0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000, 64<<16, 48<<16)),
		box("mdia",
			box("mdhd", words(0, 0, 0, 1000, 10_000, 0)), box("hdlr", words(0, 0), s.handler, words(0, 0, 0), "\x00"),
			box("minf", box("stbl",
				box("stsd", words(0, 1), s.format), box("stts", words(0, 1, 1, 1000)), box("stsc", words(0, 1, 1, 1, 1)),
				box("stsz", words(0, 0, uint32(len(s.sizes))), words(s.sizes...)),
				box("stco", words(0, uint32(len(s.offsets))), words(s.offsets...))))),
		join(more...))
}

// movie returns a video: the media first, so that offsets are known, and then the description.
func movie(media []byte, parts ...any) []byte {
	return join(box("ftyp", "isom", words(0), "isom"), box("mdat", media),
		box("moov", box("mvhd", words(0, 0, 0, 1000, 10_000), make([]byte, 80)), trak(samples{handler: "vide", id: 1, format: box("avc1", make([]byte, 78))}), join(parts...)))
}

// mediaAt is the offset of a movie's media.
const mediaAt = 20 + 8
