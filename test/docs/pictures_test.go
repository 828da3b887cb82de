// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"bytes"
	"flag"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/herald-social/herald/test/browser/chrome"
	"github.com/herald-social/herald/test/browser/stack"
	"github.com/herald-social/herald/test/browser/web"
	"github.com/herald-social/herald/test/must"
)

var pictures = flag.String("pictures", "", "folder that takes the pictures of the pages")

// TestPictures takes the documentation's screenshots from the whole stack. Only `make pictures` runs it.
func TestPictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("run make pictures")
	}
	site := signedIn(t)
	// One per day, so the calendar has space for all.
	plans := map[int]string{1: "The new menu", 2: "Meet the bakers", 4: "Friday: live music", 5: "We open at ten", 8: "A look behind the counter"}
	for days, text := range plans {
		must.Succeed(t, site.Compose(web.Draft{Kind: web.Text, Targets: accounts("X", "Threads"), Text: text}))
		must.Succeed(t, site.Schedule(time.Now().AddDate(0, 0, days)))
	}
	must.Succeed(t, site.Compose(web.Draft{
		Kind: web.Image, Targets: accounts("X", "Instagram"), Files: []string{seaside(t)},
		Text: "From Saturday on we are open again. Come by for a coffee with a view! #reopening",
	}))
	must.Succeed(t, site.Page.WaitFor("the previews are there", `document.querySelectorAll("#check img").length >= 2`))
	screenshot(t, site.Page, "composer")
	must.Succeed(t, site.Publish())
	must.Succeed(t, site.Page.WaitText("Posted"))
	screenshot(t, site.Page, "post")
	must.Succeed(t, site.Calendar())
	screenshot(t, site.Page, "calendar")
}

// signedIn starts Herald and a browser, and signs in.
func signedIn(t *testing.T) web.Site {
	t.Helper()
	checkout, err := filepath.Abs(root)
	must.Succeed(t, err)
	herald, err := stack.Start(t.Context(), stack.Options{
		Checkout: checkout, Assets: os.Getenv("KUBEBUILDER_ASSETS"), Dir: t.TempDir(), Out: t.Output(),
	})
	must.Succeed(t, err)
	t.Cleanup(func() {
		if err := herald.Stop(); err != nil {
			t.Error(err)
		}
	})
	browser, err := chrome.Start(t.Context())
	must.Succeed(t, err)
	t.Cleanup(browser.Close)
	page, err := browser.NewPage(chrome.Options{})
	must.Succeed(t, err)
	t.Cleanup(page.Close)
	zone, err := time.LoadLocation("Europe/Berlin")
	must.Succeed(t, err)
	site := web.Site{Page: page, URL: herald.Site(), Zone: zone}
	must.Succeed(t, site.SignIn(herald.Variable("HERALD_SIGNIN_URL")))
	return site
}

// accounts returns the demo team's accounts on platforms.
func accounts(titles ...string) []web.Target {
	out := make([]web.Target, 0, len(titles))
	for _, title := range titles {
		out = append(out, web.Target{Account: title + ", @"})
	}
	return out
}

// seaside draws the post's photo in flat colors, which compress well.
func seaside(t *testing.T) string {
	t.Helper()
	photo := image.NewRGBA(image.Rect(0, 0, 1200, 900))
	fill := func(area image.Rectangle, of color.Color) {
		draw.Draw(photo, area, image.NewUniform(of), image.Point{}, draw.Src)
	}
	fill(photo.Bounds(), color.RGBA{R: 253, G: 224, B: 178, A: 255})
	sun := image.Pt(840, 330)
	for y := range 900 {
		for x := range 1200 {
			if d := image.Pt(x, y).Sub(sun); d.X*d.X+d.Y*d.Y < 130*130 {
				photo.Set(x, y, color.RGBA{R: 250, G: 140, B: 90, A: 255})
			}
		}
	}
	fill(image.Rect(0, 430, 1200, 700), color.RGBA{R: 45, G: 110, B: 150, A: 255})
	fill(image.Rect(0, 640, 1200, 700), color.RGBA{R: 90, G: 160, B: 185, A: 255})
	fill(image.Rect(0, 700, 1200, 900), color.RGBA{R: 226, G: 196, B: 150, A: 255})
	var encoded bytes.Buffer
	must.Succeed(t, png.Encode(&encoded, photo))
	file := filepath.Join(t.TempDir(), "sea.png")
	must.Succeed(t, os.WriteFile(file, encoded.Bytes(), 0o600))
	return file
}

// screenshot takes a screenshot from the top of a page. It drops three bits of each color, which is hardly visible and halves the file size.
func screenshot(t *testing.T, page *chrome.Page, name string) {
	t.Helper()
	_, err := chrome.Eval[any](page, "scrollTo(0, 0)")
	must.Succeed(t, err)
	taken, err := page.Screenshot()
	must.Succeed(t, err)
	whole, err := png.Decode(bytes.NewReader(taken))
	must.Succeed(t, err)
	picture := image.NewNRGBA(whole.Bounds().Intersect(image.Rect(0, 0, int(chrome.Light.Width), whole.Bounds().Max.Y)))
	draw.Draw(picture, picture.Bounds(), whole, whole.Bounds().Min, draw.Src)
	for i, value := range picture.Pix {
		if i%4 != 3 && value != 0xff {
			picture.Pix[i] = value&^7 | 4
		}
	}
	var encoded bytes.Buffer
	must.Succeed(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&encoded, picture))
	if encoded.Len() > maxPicture {
		t.Errorf("the picture %s has %d bytes, more than %d", name, encoded.Len(), maxPicture)
	}
	must.Succeed(t, os.MkdirAll(*pictures, 0o755))
	must.Succeed(t, os.WriteFile(filepath.Join(*pictures, name+".png"), encoded.Bytes(), 0o644))
}
