// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oddfiles_test

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/herald-social/herald/sandbox"
	"github.com/herald-social/herald/test/browser/stack"
	"github.com/herald-social/herald/test/must"
	"github.com/herald-social/herald/test/oddfiles"
	"github.com/herald-social/herald/test/sandboxtest"
)

// TestOddFiles uploads each file, creates a draft and a post for each platform that accepts its kind, and compares the
// published files with the row's expectations. -short uses only some of the files.
func TestOddFiles(t *testing.T) {
	checkout, err := filepath.Abs(filepath.Join("..", ".."))
	must.Succeed(t, err)
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		assets = filepath.Join(checkout, "bin")
	}
	dir, err := os.MkdirTemp("", "oddfiles") //nolint:usetesting // socket paths must be short
	must.Succeed(t, err)
	kit, err := oddfiles.NewKit(t.Context(), checkout, t.TempDir())
	must.Succeed(t, err)
	log, err := os.Create(filepath.Join(t.ArtifactDir(), "log"))
	must.Succeed(t, err)
	running, err := stack.Start(t.Context(), stack.Options{Checkout: checkout, Assets: assets, Dir: dir, Out: log})
	must.Succeed(t, err)
	t.Cleanup(func() { must.Succeed(t, errors.Join(running.Stop(), log.Close(), os.RemoveAll(dir))) })
	for _, account := range sandbox.DemoAccounts() {
		// The platforms' default processing times would add up for all files.
		_, err := (sandboxtest.Client{URL: running.Sandbox()}).Account(t.Context(), account.Platform, account.ID, map[string]any{"processing_ms": 0, "listing_lag_ms": 0})
		must.Succeed(t, err)
	}
	api, err := newHerald(t.Context(), running)
	must.Succeed(t, err)
	rows := oddfiles.Rows()
	for i := range rows {
		if testing.Short() && !rows[i].Short {
			continue
		}
		t.Run(rows[i].Name, func(t *testing.T) {
			t.Parallel()
			if missing := kit.Lacks(rows[i].Needs); missing != "" {
				t.Skipf("the file cannot be generated without %s", missing)
			}
			(&trial{row: &rows[i], kit: kit, api: api}).run(t)
		})
	}
}

// trial tests a file.
type trial struct {
	row    *oddfiles.Row
	kit    *oddfiles.Kit
	api    *herald
	source []byte
	media  string
}

func (o *trial) run(t *testing.T) {
	var err error
	o.source, err = o.row.Make(o.kit)
	must.Succeed(t, err)
	if o.row.Place && !oddfiles.ContainsPlace(o.source) {
		t.Fatal("the file has no location, unlike its row")
	}
	o.media, err = o.api.upload(t.Context(), o.row, o.source)
	if answer := new(refusal); errors.As(err, &answer) && answer.status == http.StatusBadRequest {
		if want := o.row.Want.All; want.Kind != oddfiles.Refused || !strings.Contains(answer.message, want.Says) {
			t.Errorf("want %s, refused before the upload with %q", want, answer.message)
		}
		return
	}
	must.Succeed(t, err)
	_, drafted := o.create(t, true)
	created, refused := o.create(t, false)
	var to []oddfiles.Platform
	for _, p := range o.row.Platforms() {
		if drafted[p] != refused[p] {
			t.Errorf("%s: the draft got %q, and the post %q", p, drafted[p], refused[p])
		}
		want := o.row.Want.On(p)
		if (want.Kind == oddfiles.Refused) != (refused[p] != "") || !strings.Contains(refused[p], want.Says) {
			t.Errorf("%s: want %s, refused with %q", p, want, refused[p])
		}
		if refused[p] == "" {
			to = append(to, p)
		}
	}
	if created.ID == "" {
		return
	}
	created, err = o.api.delivered(t.Context(), created.ID)
	must.Succeed(t, err)
	for _, p := range created.Platforms {
		if p.Status != "posted" {
			t.Errorf("%s: %s: %s", p.Platform, p.Status, p.Error)
			to = slices.DeleteFunc(to, func(other oddfiles.Platform) bool { return other == p.Platform })
		}
	}
	o.compare(t, to)
}

// named matches a platform in an error about accepted files.
var named = regexp.MustCompile(`\b(x|instagram|threads|tiktok|facebook|youtube) (?:accepts|does not accept)`)

// create creates a post or a draft with the file, for the platforms that accept it. It returns the errors for the
// others. An error applies to the platforms that it names, or to all if it names none.
func (o *trial) create(t *testing.T, draft bool) (made delivery, refused map[oddfiles.Platform]string) {
	t.Helper()
	refused = map[oddfiles.Platform]string{}
	to := o.row.Platforms()
	for len(to) > 0 {
		created, err := o.api.create(t.Context(), o.row, o.media, to, draft)
		if err == nil {
			return created, refused
		}
		answer := new(refusal)
		if !errors.As(err, &answer) || answer.status != http.StatusBadRequest {
			t.Fatal(err)
		}
		// Each sentence is about one platform and follows the name of its field.
		for sentence := range strings.SplitSeq(answer.message, "; media_id") {
			if found := named.FindStringSubmatch(sentence); found != nil {
				refused[oddfiles.Platform(found[1])] += sentence
			}
		}
		left := slices.DeleteFunc(slices.Clone(to), func(p oddfiles.Platform) bool { return refused[p] != "" })
		if len(left) == len(to) {
			for _, p := range to {
				refused[p] = answer.message
			}
			break
		}
		to = left
	}
	return made, refused
}

// compare compares the published files with the uploaded one.
func (o *trial) compare(t *testing.T, on []oddfiles.Platform) {
	t.Helper()
	arrived, err := o.api.arrived(t.Context(), o.media)
	must.Succeed(t, err)
	for _, p := range on {
		want, got := o.row.Want.On(p), arrived[p]
		switch same := bytes.Equal(got, o.source); {
		case got == nil:
			t.Errorf("%s: the platform received no file", p)
		case oddfiles.ContainsPlace(got):
			t.Errorf("%s: the received file has a location", p)
		case want.Kind == oddfiles.AsSent && !same:
			t.Errorf("%s: want %s; the platform received another file of %d bytes", p, want, len(got))
		case want.Kind == oddfiles.WithoutPlace:
			if same || len(got) != len(o.source) {
				t.Errorf("%s: want %s; the platform received %d bytes of %d, unchanged: %t", p, want, len(got), len(o.source), same)
			}
			err = o.unchanged(t.Context(), got)
		case want.Kind == oddfiles.Rendered:
			if same {
				t.Errorf("%s: want %s; the platform received the original", p, want)
			}
			err = o.shown(t.Context(), p, got)
		}
		if err != nil {
			t.Errorf("%s: %v", p, err)
			err = nil
		}
	}
}
