// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition

import (
	"bytes"
	"errors"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/herald-social/herald/test/must"
)

// drawn returns a picture with the given size, as a JPEG or PNG.
func drawn(tb testing.TB, width, height int, mimeType string) []byte {
	tb.Helper()
	var out bytes.Buffer
	picture := image.NewRGBA(image.Rect(0, 0, width, height))
	err := png.Encode(&out, picture)
	if mimeType == jpegType {
		out.Reset()
		err = jpeg.Encode(&out, picture, nil)
	}
	must.Succeed(tb, err)
	return out.Bytes()
}

func answered(tb testing.TB, a answer, data []byte) []byte {
	tb.Helper()
	var out bytes.Buffer
	must.Succeed(tb, writeMessage(&out, a))
	return append(out.Bytes(), data...)
}

// A file may have taken over the process, so its answer is untrusted.
func TestResponseIsUntrusted(t *testing.T) {
	j := job{MIMEType: pngType, Width: 40, Height: 30, Target: Target{Types: []string{jpegType}, MaxBytes: 4 << 10, MaxWidth: 20}}
	good := answer{Outcome: outcomeMade, MIMEType: jpegType, Width: 20, Height: 15}
	other := func(change func(*answer)) answer {
		a := good
		change(&a)
		return a
	}
	small := drawn(t, 20, 15, jpegType)
	for name, tc := range map[string]struct {
		output []byte
		says   string
	}{
		"a rendition":                     {answered(t, good, small), ""},
		"empty":                           {nil, "damaged"},
		"half a message":                  {[]byte{0, 0, 0, 9, '{'}, "damaged"},
		"a message of gigabytes":          {[]byte{0xff, 0xff, 0xff, 0xff}, "damaged"},
		"no JSON":                         {[]byte{0, 0, 0, 1, 'x'}, "damaged"},
		"an unknown outcome":              {answered(t, answer{Outcome: "fine"}, small), "damaged"},
		"no rendition":                    {answered(t, good, nil), "damaged"},
		"no picture":                      {answered(t, good, []byte("<script>")), "damaged"},
		"another size than declared":      {answered(t, good, drawn(t, 19, 15, jpegType)), "damaged"},
		"a larger size than requested":    {answered(t, other(func(a *answer) { a.Width, a.Height = 40, 30 }), drawn(t, 40, 30, jpegType)), "damaged"},
		"more bytes than requested":       {answered(t, good, append(bytes.Clone(small), make([]byte, 4<<10)...)), "damaged"},
		"a format that was not requested": {answered(t, other(func(a *answer) { a.MIMEType = pngType }), drawn(t, 20, 15, pngType)), "damaged"},
		"a page":                          {answered(t, other(func(a *answer) { a.MIMEType = "text/html" }), small), "damaged"},
		"another format than declared":    {answered(t, good, drawn(t, 20, 15, pngType)), "damaged"},
		"an arbitrary text":               {answered(t, answer{Outcome: outcomeDamaged, Cause: "call this number"}, nil), "damaged"},
		"too many passes":                 {answered(t, answer{Outcome: outcomeScans}, nil), "passes"},
		"too long":                        {answered(t, answer{Outcome: outcomeTooLong}, nil), "small enough"},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := j.validate(tc.output)
			if tc.says == "" {
				if err != nil || result.Width != 20 || result.Height != 15 || !bytes.Equal(result.Data, small) {
					t.Errorf("got %d × %d, %v", result.Width, result.Height, err)
				}
				return
			}
			if problem := new(ConversionError); !errors.As(err, &problem) || !strings.Contains(problem.Message, tc.says) || strings.Contains(problem.Message, "number") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The process rejects any input other than a job.
func FuzzJob(f *testing.F) {
	picture, err := os.ReadFile("../probe/testdata/picture.png")
	if err != nil {
		f.Fatal(err)
	}
	var good bytes.Buffer
	if err := writeMessage(&good, job{MIMEType: pngType, Width: 64, Height: 48, Orientation: 6, Target: Target{MaxBytes: 4 << 10}}); err != nil {
		f.Fatal(err)
	}
	good.Write(picture)
	f.Add(good.Bytes())
	f.Add([]byte{0, 0, 0, 2, '{', '}'})
	f.Fuzz(func(t *testing.T, input []byte) {
		var out bytes.Buffer
		if err := serve(bytes.NewReader(input), &out); err != nil {
			return
		}
		var a answer
		if err := readMessage(&out, longestAnswer, &a); err != nil || a.Outcome == "" || len(a.Cause) > longestCause {
			t.Errorf("got %+v, %v", a, err)
		}
	})
}

// An answer that is accepted is always a valid rendition.
func FuzzAnswer(f *testing.F) {
	j := job{MIMEType: pngType, Width: 40, Height: 30, Target: Target{Types: []string{jpegType, pngType}, MaxBytes: 4 << 10, MaxWidth: 20}}
	f.Add(answered(f, answer{Outcome: outcomeMade, MIMEType: jpegType, Width: 20, Height: 15}, drawn(f, 20, 15, jpegType)))
	f.Add(answered(f, answer{Outcome: outcomeMade, MIMEType: pngType, Width: 20, Height: 15}, drawn(f, 20, 15, pngType)))
	f.Add(answered(f, answer{Outcome: outcomeDamaged, Cause: "cut off"}, nil))
	f.Fuzz(func(t *testing.T, output []byte) {
		result, err := j.validate(output)
		if problem := new(ConversionError); errors.As(err, &problem) {
			return
		}
		if err != nil || result.Width > 20 || result.Height > 15 || len(result.Data) > 4<<10 || len(result.Data) == 0 || !j.Target.allows(result.MIMEType) {
			t.Errorf("believed %+v, %v", result, err)
		}
	})
}

func TestMessageIsBounded(t *testing.T) {
	var a answer
	if err := readMessage(io.MultiReader(bytes.NewReader([]byte{0, 0x20, 0, 1}), zeros{}), longestJob, &a); err == nil {
		t.Error("the oversized message was read")
	}
}

// zeros never ends.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
