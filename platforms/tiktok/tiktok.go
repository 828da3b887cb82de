// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tiktok publishes to TikTok by its API v2.
//
// A video is uploaded in chunks, and the last of them makes it a post: that is
// the one irrevocable call. What precedes it, the ticket that TikTok calls a
// publish id and the other chunks, may be repeated and goes on where it was cut
// off. The ticket tells afterwards what became of the call.
//
// Photos are fetched by TikTok, and the call that names their addresses is the
// one that cannot be taken back. It is preceded by the question for what the
// account may post. If its answer is lost, so is the ticket, and
// only the list of the account's public posts is left to look at.
package tiktok

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"time"
	"unicode/utf16"

	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/internal/oauth2"
)

const (
	// DefaultAPIURL is where TikTok's API is served.
	DefaultAPIURL = "https://open.tiktokapis.com"
	// DefaultWebURL is where people see posts.
	DefaultWebURL = "https://www.tiktok.com"
	// DefaultAuthorizeURL is where people let apps into their accounts.
	DefaultAuthorizeURL = "https://www.tiktok.com"

	// DefaultListingLag is how long a published post may be missing from the
	// list of an account's posts. TikTok lists what its moderation has passed,
	// which usually takes less than a minute.
	DefaultListingLag = time.Minute

	// callTimeout bounds the call that publishes, and asking what became of it.
	// A call that was lost is not repeated for as long.
	callTimeout = time.Minute
	// publishTimeout bounds the call alone: ten megabytes at 256 KiB a second
	// take 40 seconds.
	publishTimeout = 45 * time.Second

	// preparedLasts is how long an upload can be completed after it was
	// prepared: TikTok's addresses work for an hour (Content Posting API, "Media
	// Transfer Guide"), and the preparation itself takes a part of it.
	preparedLasts = addressLife - 15*time.Minute

	// maxCaption is the greatest length of a video's title in UTF-16 code
	// units (Content Posting API, "Direct Post").
	maxCaption = 2200

	// maxImages is how many photos a post shows (Content Posting API, "Photo
	// post").
	maxImages = 35

	// maxPhotoBytes, photoWidth and photoHeight bound photos (Content Posting
	// API, "Media Transfer Guide": 20 MB, and 1080p).
	maxPhotoBytes = 20_000_000
	photoWidth    = 1080
	photoHeight   = 1920

	// readTimeout bounds the calls that only ask.
	readTimeout = 10 * time.Second

	// mostLost is how many lost uploads are remembered.
	mostLost = 1000

	// refreshLead is how long before its end an access token is renewed;
	// TikTok's live for two hours since November 2026.
	refreshLead = 15 * time.Minute
)

// videos is what TikTok says of videos (Content Posting API, "Media transfer guide"). How
// long one may play depends on the account; no account may post more than ten minutes.
var videos = platforms.VideoLimits{
	MaxDuration: 10 * time.Minute, MinSide: 360, MaxSide: 4096, MinFrameRate: 23, MaxFrameRate: 60,
	Codecs: []string{"h264", "hevc", "vp8", "vp9"},
}

// doubtfulVideos has the shortest video that TikTok's own program posts. The API has no
// such bound.
var doubtfulVideos = platforms.VideoLimits{MinDuration: 3 * time.Second}

// maxVideoDuration is how long the videos of an account may play, by TikTok's query of the
// creator.
func maxVideoDuration(account *v1alpha1.ConnectionStatus) time.Duration {
	if account.TikTok == nil {
		return 0
	}
	return time.Duration(account.TikTok.MaxVideoPostDurationSeconds) * time.Second
}

// Config says how to reach TikTok, and as which app.
type Config struct {
	// APIURL, WebURL and AuthorizeURL default to DefaultAPIURL, DefaultWebURL and
	// DefaultAuthorizeURL.
	APIURL, WebURL, AuthorizeURL string
	// ClientKey and ClientSecret are the app's, to connect accounts and renew tokens
	// with.
	ClientKey string
	// ClientSecret is asked for each of those calls; nil for none.
	ClientSecret func() string
	// ListingLag defaults to DefaultListingLag.
	ListingLag time.Duration
	// Clock tells when tokens and the addresses of uploads end, and waits for
	// TikTok to be done with posts. Defaults to the real one.
	Clock clock.Clock
}

// Platform is TikTok.
type Platform struct {
	api        client.Client
	tokens     oauth2.Endpoint
	dialog     oauth2.Dialog
	webURL     string
	listingLag time.Duration
	clock      clock.Clock
	// lost has the tickets whose upload TikTok did not let end. It ends with the
	// process: then the next call finds out again.
	lost *lru.Cache
}

var (
	_ platforms.Publisher = (*Platform)(nil)
	_ platforms.Preparer  = (*Platform)(nil)
)

// New makes the platform.
func New(c Config, way *transport.Client) *Platform {
	p := &Platform{
		dialog: c.dialog(),
		api: client.Client{
			Platform: "tiktok", Name: "TikTok", BaseURL: client.Address(c.APIURL, DefaultAPIURL),
			Addresses: client.AddressPolicy{Hosts: hosts.Named, Configured: []string{c.APIURL}}, Transport: way,
		},
		webURL: client.Address(c.WebURL, DefaultWebURL), listingLag: cmp.Or(max(c.ListingLag, 0), DefaultListingLag),
		clock: cmp.Or[clock.Clock](c.Clock, clock.RealClock{}), lost: lru.New(mostLost),
	}
	p.tokens = oauth2.Endpoint{
		Client: p.api, Path: "/v2/oauth/token/", App: c.app,
		Timeout: readTimeout, Clock: p.clock, Dead: refreshDead, AnyStatus: true,
		Refused: func(resp *transport.Response, code string) *platforms.Error {
			return p.classify(apiError{status: resp.Status, code: code}).Error
		},
	}
	return p
}

// app names the app, which shows its secret in the form.
func (c *Config) app() oauth2.App {
	form := url.Values{"client_key": {c.ClientKey}}
	if c.ClientSecret != nil {
		form.Set("client_secret", c.ClientSecret())
	}
	return oauth2.App{Form: form}
}

// Capabilities declares TikTok's rules. It takes no posts of text alone. Its list of
// posts proves no absence; the ticket of a video does.
func (p *Platform) Capabilities() platforms.Capabilities {
	return platforms.Capabilities{
		Categories: []v1alpha1.Category{v1alpha1.CategoryImage, v1alpha1.CategoryVideo},
		Delivers:   []v1alpha1.Category{v1alpha1.CategoryImage, v1alpha1.CategoryVideo},
		MaxImages:  maxImages,
		Images: platforms.ImageLimits{
			Types:    []v1alpha1.MimeType{v1alpha1.MimeJPEG, v1alpha1.MimeWebP},
			MaxBytes: maxPhotoBytes, MaxWidth: photoWidth, MaxHeight: photoHeight, EitherWay: true,
		},
		Videos:           videos,
		DoubtfulVideos:   doubtfulVideos,
		VideoDoubt:       "TikTok's program does not post such a video, and its API does not say that it would refuse it.",
		MaxVideoDuration: maxVideoDuration,
		MaxCaption:       maxCaption,
		CaptionUnit:      "UTF-16 code units",
		CaptionLength:    func(text string) int { return len(utf16.Encode([]rune(text))) },
		ValidateOptions:  validateOptions,
		PublishFetches:   true,
		PreparedTTL:      preparedLasts,
		SecretUploads:    true,
		CallTimeout:      callTimeout,
		ListingLag:       p.listingLag,
		Hosts:            hosts,
		RefreshLead:      refreshLead,
	}
}

// answer is what the API said.
type answer[T any] struct {
	status int
	Data   T `json:"data"`
	Error  struct {
		// Code is "ok" if the API did what it was asked, and empty if it did
		// not say.
		Code    jsondoc.Text `json:"code"`
		Message jsondoc.Text `json:"message"`
		LogID   jsondoc.Text `json:"log_id"`
	} `json:"error"`
}

// codeOK is the code of a success.
const codeOK = "ok"

// apiError is what the answer says of an error.
func (a *answer[T]) apiError() apiError {
	return apiError{status: a.status, code: a.Error.Code.String(), message: a.Error.Message.String(), signed: a.Error.LogID != ""}
}

// ok reports whether the API did what it was asked. It sends some errors with
// the status of a success.
func (a *answer[T]) ok() bool { return a.status == http.StatusOK && a.Error.Code == codeOK }

func decode[T any](resp *transport.Response) answer[T] {
	a, _ := jsondoc.Decode[answer[T]](resp.Body)
	a.status = resp.Status
	return a
}

// postJSON makes a call of the API, nearly all of which are POSTs of JSON. Errors
// are the transport's.
func postJSON[T any](ctx context.Context, p *Platform, action, path string, token platforms.Token, body any, timeout time.Duration) (answer[T], error) {
	resp, err := p.api.Do(ctx, client.Call{
		Action: action, Path: path, Token: token.Access, Body: client.JSON("application/json; charset=UTF-8", body), Timeout: timeout,
	})
	if err != nil {
		return answer[T]{}, err
	}
	return decode[T](resp), nil
}

// callAPI makes a call that may be repeated.
func callAPI[T any](ctx context.Context, p *Platform, action, path string, token platforms.Token, body any) (data T, bad *refusal) {
	said, err := postJSON[T](ctx, p, action, path, token, body, readTimeout)
	switch {
	case err != nil:
		return data, &refusal{Error: p.api.Unanswered(err)}
	case !said.ok():
		return data, p.classify(said.apiError())
	default:
		return said.Data, nil
	}
}
