// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
)

// noon is the time of these tests.
var noon = recorder.Noon

const (
	container = "17900000000000001"
	mediaID   = "17900000000000777"
)

var (
	says   = recorder.Respond
	hangUp = recorder.HangUp
	inTurn = recorder.Sequence
	class  = recorder.ClassOf

	identifies, renews  = platformtest.Identified, platformtest.Renewed
	refuses, leavesOpen = platformtest.Refused, platformtest.Unknown
)

type answers = []http.HandlerFunc

// newInstagram returns the platform with all of its hosts on one server. All hosts except Instagram's own have a path
// prefix.
func newInstagram(t *testing.T, answer http.HandlerFunc) (*Platform, *recorder.Server) {
	t.Helper()
	server := recorder.Start(t, answer)
	return New(Config{
		Config:      platforms.Config{APIURL: server.URL + "/", Clock: recorder.Clock{FakeClock: clocktesting.NewFakeClock(noon)}},
		FacebookURL: server.URL + "/facebook/", UploadURL: server.URL + "/rupload/",
	}, transport.New(transport.Options{})), server
}

func problem(status, code, subcode int) http.HandlerFunc {
	return says(status, fmt.Sprintf(`{"error":{"message":"token access","type":"OAuthException","code":%d,"error_subcode":%d}}`, code, subcode))
}

// made responds that a container was created.
func made(id string) http.HandlerFunc { return says(200, `{"id":"`+id+`"}`) }

// holds responds with a container's state.
func holds(state string) http.HandlerFunc {
	return says(200, `{"status_code":"`+state+`","status":"In words","id":"`+container+`"}`)
}

// broke responds with the state of a container whose processing has failed.
func broke(subcode string) http.HandlerFunc {
	return says(200, `{"status_code":"ERROR","status":"Error: Media upload has failed with error code `+subcode+`"}`)
}

// bytes is the content of a test file.
type bytes struct {
	content string
	err     error
}

func (b bytes) Open(_ context.Context, offset, length int64) (io.ReadCloser, error) {
	if b.err != nil {
		return nil, b.err
	}
	return io.NopCloser(strings.NewReader(b.content[offset : offset+length])), nil
}

func (b bytes) Address(context.Context, time.Duration) (string, error) {
	return "https://store.example/" + b.content, b.err
}

func picture(name string) platforms.File {
	return platforms.File{Name: name, MIMEType: v1alpha1.MimeJPEG, Size: int64(len(name)), Bytes: bytes{content: name}}
}

func film(name string) platforms.File {
	return platforms.File{Name: name, MIMEType: v1alpha1.MimeMP4, Size: int64(len(name)), Duration: 10 * time.Second, Bytes: bytes{content: name}}
}

// linked are the scopes of Facebook's login.
const linked = "pages_show_list instagram_basic,instagram_content_publish"

// jobFor returns a post with files, for an account that was connected through the login with the given scopes.
func jobFor(text, scopes string, files ...platforms.File) platforms.Job {
	job := platforms.Job{
		Account: platforms.Account{ID: "42", Username: "acme", Token: platforms.Token{Access: "access", Scopes: scopes}},
		Content: platforms.Content{Category: v1alpha1.CategoryImage, Text: text, Media: files}, SearchFrom: noon,
	}
	if files[0].IsVideo() {
		job.Content.Category = v1alpha1.CategoryVideo
	}
	return job
}

// diary records the checkpoints of a preparation.
type diary struct {
	mu    sync.Mutex
	notes []string
}

func (d *diary) keep(_ context.Context, checkpoint, secret string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notes = append(d.notes, checkpoint+secret)
	return nil
}

func TestLimits(t *testing.T) {
	limits := New(Config{}, nil).Capabilities()
	if len(limits.Categories) != 2 || len(limits.Delivers) != 2 || limits.RefreshLead != 30*24*time.Hour || limits.PreparedTTL != 24*time.Hour {
		t.Errorf("got %+v", limits)
	}
	if got := limits.CaptionLength("日本"); got != 2 || limits.MaxCaption != 2200 {
		t.Errorf("2200 characters are allowed; two of them counted %d", got)
	}
	want := platforms.ImageLimits{Types: []v1alpha1.MimeType{v1alpha1.MimeJPEG}, MaxBytes: 8388608, MinAspect: 0.8, MaxAspect: 1.91, OnePicture: true}
	if diff := cmp.Diff(want, limits.Images); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
}

func TestHostOf(t *testing.T) {
	tests := map[string]struct {
		reason, scopes  string
		otherwise, want Login
	}{
		"Instagram's":          {"its permissions have a name of their own", "instagram_business_basic instagram_business_content_publish", FacebookLogin, InstagramLogin},
		"Facebook's":           {"its permissions as well", "instagram_basic instagram_content_publish", InstagramLogin, FacebookLogin},
		"Facebook's, later":    {"whichever comes first", "pages_show_list,instagram_basic", InstagramLogin, FacebookLogin},
		"unknown":              {"Instagram's own login is the usual one", "", "", InstagramLogin},
		"unknown, as was said": {"whoever runs Herald may know", "", FacebookLogin, FacebookLogin},
		"neither":              {"permissions of Pages tell nothing", "pages_show_list", "", InstagramLogin},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := New(Config{Login: tc.otherwise}, nil).hostOf(platforms.Token{Scopes: tc.scopes}).login; got != tc.want {
				t.Errorf("%s: got %s", tc.reason, got)
			}
		})
	}
}
