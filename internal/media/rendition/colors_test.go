// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"math"
	"os/exec"
	"slices"
	"testing"

	"github.com/kovidgoyal/imaging/prism/meta/icc"

	"github.com/herald-social/herald/internal/media/probe"
	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/test/must"
)

// withChunk puts a chunk after the header of a PNG.
func withChunk(data []byte, kind string, content []byte) []byte {
	const header = 8 + 25
	chunk := binary.BigEndian.AppendUint32(nil, uint32(len(content)))
	chunk = append(append(chunk, kind...), content...)
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk[4:]))
	return bytes.Join([][]byte{data[:header], chunk, data[header:]}, nil)
}

// gamma returns the content of gAMA.
func gamma(value float64) []byte {
	return binary.BigEndian.AppendUint32(nil, uint32(math.Round(value*100_000)))
}

// flat returns a picture with one color in the color model of another picture.
func flat[P interface {
	image.Image
	Set(x, y int, c color.Color)
}](picture P, c color.Color) P {
	for y := range picture.Bounds().Dy() {
		for x := range picture.Bounds().Dx() {
			picture.Set(x, y, c)
		}
	}
	return picture
}

// TestGamma renders pictures whose values encode light differently from sRGB.
func TestGamma(t *testing.T) {
	area := image.Rect(0, 0, 16, 16)
	gray := func(v uint8) color.NRGBA { return color.NRGBA{v, v, v, 255} }
	// A value of 55 with gamma 1 is 0.2157 of the light, which sRGB writes as 128.
	const linear, shown = 55, 128
	for name, tc := range map[string]struct {
		reason string
		data   []byte
		want   uint8
	}{
		"none":           {"the default is sRGB", asPNG(t, flat(image.NewNRGBA(area), gray(linear))), linear},
		"colours":        {"each of the three is light", withChunk(asPNG(t, flat(image.NewNRGBA(area), gray(linear))), "gAMA", gamma(1)), shown},
		"gray":           {"a gray picture becomes light too", withChunk(asPNG(t, flat(image.NewGray(area), gray(linear))), "gAMA", gamma(1)), shown},
		"palette":        {"colours of a palette are", withChunk(asPNG(t, flat(image.NewPaletted(area, color.Palette{gray(linear), gray(0)}), gray(linear))), "gAMA", gamma(1)), shown},
		"deep":           {"16 bits per channel", withChunk(asPNG(t, flat(image.NewNRGBA64(area), gray(linear))), "gAMA", gamma(1)), shown},
		"deep gray":      {"16 bits", withChunk(asPNG(t, flat(image.NewGray16(area), gray(linear))), "gAMA", gamma(1)), shown},
		"screen":         {"programs write it for sRGB", withChunk(asPNG(t, flat(image.NewNRGBA(area), gray(linear))), "gAMA", gamma(0.45455)), linear},
		"Macintosh":      {"screens of the past were brighter", withChunk(asPNG(t, flat(image.NewNRGBA(area), gray(linear))), "gAMA", gamma(0.55556)), 71},
		"sRGB":           {"sRGB takes precedence over gAMA", withChunk(withChunk(asPNG(t, flat(image.NewNRGBA(area), gray(linear))), "gAMA", gamma(1)), "sRGB", []byte{0}), linear},
		"sRGB behind":    {"chunks may have any order", withChunk(withChunk(asPNG(t, flat(image.NewNRGBA(area), gray(linear))), "sRGB", []byte{0}), "gAMA", gamma(1)), linear},
		"named by cICP":  {"cICP takes precedence over gAMA", withChunk(withChunk(asPNG(t, flat(image.NewNRGBA(area), gray(linear))), "gAMA", gamma(1)), "cICP", []byte{1, 13, 0, 1}), linear},
		"nonsense":       {"decoders ignore it", withChunk(asPNG(t, flat(image.NewNRGBA(area), gray(linear))), "gAMA", gamma(0)), linear},
		"more nonsense":  {"decoders ignore it", withChunk(asPNG(t, flat(image.NewNRGBA(area), gray(linear))), "gAMA", gamma(40_000)), linear},
		"ended too soon": {"decoders ignore it", withChunk(asPNG(t, flat(image.NewNRGBA(area), gray(linear))), "gAMA", nil), linear},
	} {
		t.Run(name, func(t *testing.T) {
			c := color.NRGBAModel.Convert(picture(t, tc.data)).(color.NRGBA)
			if difference := math.Abs(float64(c.R) - float64(tc.want)); difference > 2 {
				t.Errorf("%s: %v, want %d", tc.reason, c, tc.want)
			}
		})
	}
}

// picture returns the color in the middle of a PNG's rendition.
func picture(t *testing.T, data []byte) color.Color {
	t.Helper()
	p := shown(t, data, pngType, rendition.Target{Types: []string{jpegType}})
	return p.At(p.Bounds().Dx()/2, p.Bounds().Dy()/2)
}

// TestGammaPreservesTransparency checks that colors are converted, but not their transparency.
func TestGammaPreservesTransparency(t *testing.T) {
	for name, model := range map[string]interface {
		image.Image
		Set(x, y int, c color.Color)
	}{"narrow": image.NewNRGBA(image.Rect(0, 0, 16, 16)), "wide": image.NewNRGBA64(image.Rect(0, 0, 16, 16))} {
		data := withChunk(asPNG(t, flat(model, color.NRGBA{55, 55, 55, 100})), "gAMA", gamma(1))
		p := shown(t, data, pngType, rendition.Target{Types: []string{jpegType, pngType}})
		c := color.NRGBAModel.Convert(p.At(8, 8)).(color.NRGBA)
		if c.A != 100 || math.Abs(float64(c.R)-128) > 2 {
			t.Errorf("%s: %v", name, c)
		}
	}
}

// rainbow returns a smooth picture with every hue, black, white and the colors between them. If veiled, it has a
// transparent end.
func rainbow(veiled bool) *image.NRGBA {
	const width, height = 192, 128
	picture := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			light, hue := float64(y)/(height-1), 2*math.Pi*float64(x)/width
			channel := func(phase float64) uint8 {
				value := light + math.Sqrt(light*(1-light))*math.Cos(hue+phase)
				return uint8(math.Round(math.MaxUint8 * min(max(value, 0), 1)))
			}
			c := color.NRGBA{channel(0), channel(2 * math.Pi / 3), channel(4 * math.Pi / 3), math.MaxUint8}
			if veiled {
				c.A = uint8(math.MaxUint8 * (width - x) / width)
			}
			picture.SetNRGBA(x, y, c)
		}
	}
	return picture
}

// painted returns the middle row of the rainbow in palette colors. The lower half is veiled, and the left edge is
// transparent.
func painted() *image.Paletted {
	from := rainbow(false)
	width, height := from.Rect.Dx(), from.Rect.Dy()
	colors := color.Palette{color.NRGBA{}}
	for x := 0; x < width; x += 2 {
		c := from.NRGBAAt(x, height/2)
		colors = append(colors, c)
		c.A = 100
		colors = append(colors, c)
	}
	picture := image.NewPaletted(from.Rect, colors)
	for y := range height {
		for x := 16; x < width; x++ {
			picture.SetColorIndex(x, y, uint8(1+x/2*2+2*y/height))
		}
	}
	return picture
}

// TestDisplayP3 checks that a PNG that identifies its colors with cICP is shown in these colors.
func TestDisplayP3(t *testing.T) {
	// From Display P3 to sRGB, both as light (CSS Color 4, section 10.7).
	m := [3][3]float64{{1.2249402, -0.2249402, 0}, {-0.0420569, 1.0420569, 0}, {-0.0196376, -0.0786361, 1.0982735}}
	light := func(v float64) float64 {
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	value := func(light float64) float64 {
		if light <= 0.0031308 {
			return 12.92 * max(light, 0)
		}
		return min(1.055*math.Pow(light, 1/2.4)-0.055, 1)
	}
	for _, c := range []color.NRGBA{{200, 100, 50, 255}, {60, 160, 90, 255}, {90, 90, 200, 255}, {128, 128, 128, 255}, {255, 255, 255, 255}} {
		data := withChunk(asPNG(t, flat(image.NewNRGBA(image.Rect(0, 0, 16, 16)), c)), "cICP", []byte{12, 13, 0, 1})
		files := newMemory()
		r, err := rendition.NewRenderer(files).Make(t.Context(), files.source(t, data, pngType), rendition.Target{Types: []string{jpegType}})
		must.Succeed(t, err)
		output := files.files[r.Key].data
		h, err := probe.ReadHeader(bytes.NewReader(output), r.Size, r.MIMEType)
		must.Succeed(t, err)
		profile, err := icc.DecodeProfile(bytes.NewReader(h.Profile))
		if err != nil {
			t.Fatalf("the profile: %v", err)
		}
		convert, err := profile.CreateTransformerToSRGB(icc.RelativeColorimetricRenderingIntent, false, 3, true, false, true)
		must.Succeed(t, err)
		picture, _, err := image.Decode(bytes.NewReader(output))
		must.Succeed(t, err)
		got := color.NRGBAModel.Convert(picture.At(8, 8)).(color.NRGBA)
		red, green, blue := convert.Transform(float64(got.R)/255, float64(got.G)/255, float64(got.B)/255)
		from := [3]float64{light(float64(c.R) / 255), light(float64(c.G) / 255), light(float64(c.B) / 255)}
		for i, shown := range []float64{red, green, blue} {
			want := value(m[i][0]*from[0] + m[i][1]*from[1] + m[i][2]*from[2])
			if difference := 255 * math.Abs(shown-want); difference > 2 {
				t.Errorf("channel %d of %v is shown as %.1f in place of %.1f", i, c, 255*shown, 255*want)
			}
		}
	}
}

// TestColorsAgree compares renditions with the output of another decoder, ffmpeg's.
func TestColorsAgree(t *testing.T) {
	path, err := exec.LookPath("ffmpeg")
	if err != nil {
		t.Skip("this test needs ffmpeg in PATH; install it (apt-get install ffmpeg)")
	}
	ffmpeg := func(t *testing.T, data []byte, arguments ...string) []byte {
		t.Helper()
		command := exec.CommandContext(t.Context(), path, slices.Concat([]string{"-v", "error", "-i", "pipe:0"}, arguments, []string{"pipe:1"})...)
		command.Stdin = bytes.NewReader(data)
		out, err := command.Output()
		must.Succeed(t, err)
		return out
	}
	const most = 2 // of 255, on average
	plain, veiled := asPNG(t, rainbow(false)), asPNG(t, rainbow(true))
	asPNGOf := func(format string, more ...string) []string {
		return slices.Concat([]string{"-pix_fmt", format}, more, []string{"-c:v", "png", "-f", "image2pipe"})
	}
	for name, tc := range map[string]struct {
		reason   string
		from     []byte
		as       []string
		mimeType string
	}{
		"PNG":                   {"PNG stores red, green and blue", plain, nil, pngType},
		"veiled PNG":            {"the picture is transparent", veiled, nil, pngType},
		"deep PNG":              {"16 bits per channel", plain, asPNGOf("rgb48be"), pngType},
		"deep veiled PNG":       {"16 bits per channel", veiled, asPNGOf("rgba64be"), pngType},
		"gray PNG":              {"the picture has no colours", plain, asPNGOf("gray"), pngType},
		"deep gray PNG":         {"the picture has no colours", plain, asPNGOf("gray16be"), pngType},
		"veiled gray PNG":       {"the picture has no colours, and is transparent", veiled, asPNGOf("ya8"), pngType},
		"deep veiled gray PNG":  {"16 bits per channel", veiled, asPNGOf("ya16be"), pngType},
		"black and white PNG":   {"a bit for each point", plain, asPNGOf("monob"), pngType},
		"PNG with a palette":    {"colours by number, some of them transparent", asPNG(t, painted()), nil, pngType},
		"interlaced PNG":        {"seven pictures after one another", plain, asPNGOf("rgb24", "-flags", "+ildct"), pngType},
		"interlaced veiled PNG": {"with transparency", veiled, asPNGOf("rgba", "-flags", "+ildct"), pngType},
		"lossy WebP":            {"lossy WebP stores a limited range", plain, []string{"-c:v", "libwebp", "-quality", "95", "-pix_fmt", "yuv420p", "-f", "webp"}, webpType},
		"veiled lossy WebP":     {"a transparent one stores a limited range too", veiled, []string{"-c:v", "libwebp", "-quality", "95", "-pix_fmt", "yuva420p", "-f", "webp"}, webpType},
		"lossless WebP":         {"lossless WebP stores red, green and blue", plain, []string{"-c:v", "libwebp", "-lossless", "1", "-f", "webp"}, webpType},
		"veiled lossless WebP":  {"the picture is transparent", veiled, []string{"-c:v", "libwebp", "-lossless", "1", "-f", "webp"}, webpType},
		"JPEG":                  {"JPEG stores the full range", plain, []string{"-c:v", "mjpeg", "-q:v", "2", "-pix_fmt", "yuvj420p", "-f", "image2pipe"}, jpegType},
		"JPEG with all colours": {"colours for each point", plain, []string{"-c:v", "mjpeg", "-q:v", "2", "-pix_fmt", "yuvj444p", "-f", "image2pipe"}, jpegType},
		"gray JPEG":             {"the picture has no colours", plain, []string{"-c:v", "mjpeg", "-q:v", "2", "-pix_fmt", "gray", "-f", "image2pipe"}, jpegType},
		"JPEG in rows":          {"colours for every second row (cjpeg -sample 1x2)", sample(t, "440.jpg"), nil, jpegType},
		"JPEG with a quarter":   {"colours for every fourth point (cjpeg -sample 4x1)", sample(t, "411.jpg"), nil, jpegType},
		"JPEG of RGB":           {"red, green and blue (cjpeg -rgb)", sample(t, "rgb.jpg"), nil, jpegType},
		"JPEG of YCCK":          {"inks, as Photoshop stores them", sample(t, "ycck.jpg"), nil, jpegType},
		"JPEG of CMYK":          {"inks as they are", plainInks(t, sample(t, "ycck.jpg")), nil, jpegType},
		"JPEG with half":        {"colours for every second point", plain, []string{"-c:v", "mjpeg", "-q:v", "2", "-pix_fmt", "yuvj422p", "-f", "image2pipe"}, jpegType},
	} {
		for to, target := range map[string]rendition.Target{
			"JPEG": {Types: []string{jpegType}, MaxBytes: 8 << 20}, "PNG where transparent": {Types: []string{jpegType, pngType}, MaxBytes: 8 << 20},
		} {
			t.Run(name+" to "+to, func(t *testing.T) {
				data := tc.from
				if tc.as != nil {
					data = ffmpeg(t, data, tc.as...)
				}
				files := newMemory()
				r, err := rendition.NewRenderer(files).Make(t.Context(), files.source(t, data, tc.mimeType), target)
				must.Succeed(t, err)
				points := func(data []byte) []byte {
					return ffmpeg(t, data, "-sws_flags", "neighbor", "-f", "rawvideo", "-pix_fmt", "rgba")
				}
				if difference := distance(points(files.files[r.Key].data), points(data)); difference > most {
					t.Errorf("%s: the mean difference is %.2f", tc.reason, difference)
				}
			})
		}
	}
}

// distance returns the mean difference per channel between two pictures on white.
func distance(got, want []byte) float64 {
	if len(got) != len(want) || len(got) == 0 {
		return math.MaxUint8
	}
	total, on := 0.0, func(pixel []byte, channel int) float64 {
		alpha := float64(pixel[3]) / math.MaxUint8
		return alpha*float64(pixel[channel]) + (1-alpha)*math.MaxUint8
	}
	for at := 0; at < len(got); at += 4 {
		for channel := range 3 {
			total += math.Abs(on(got[at:], channel) - on(want[at:], channel))
		}
	}
	return total / float64(len(got)/4*3)
}
