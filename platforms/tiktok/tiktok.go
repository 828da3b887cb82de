// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tiktok publishes to TikTok through its API v2.
//
// A video is uploaded in chunks, and the last chunk publishes it: that is the one irrevocable call. The steps before it
// can be repeated, and resume after an interruption: creating the ticket, which TikTok calls a publish id, and sending
// the other chunks. Afterwards the ticket's status shows the outcome of the call.
//
// TikTok fetches photos itself, and the call with their URLs is the irrevocable one. It is preceded by a query for the
// account's options. If the response to the call is lost, so is the ticket, and only the account's public posts can be
// searched.
package tiktok

import (
	"context"
	"net/http"
	"time"
	"unicode/utf16"

	"k8s.io/utils/lru"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/internal/oauth2"
)

const (
	// DefaultAPIURL is the address of TikTok's API.
	DefaultAPIURL = "https://open.tiktokapis.com"
	// DefaultWebURL is the address of the website that shows posts.
	DefaultWebURL = "https://www.tiktok.com"
	// DefaultAuthorizeURL is the address of the consent page.
	DefaultAuthorizeURL = "https://www.tiktok.com"

	// DefaultListingLag is how long a published post may be missing from the account's listing. TikTok lists a post
	// after its moderation, which usually takes less than a minute.
	DefaultListingLag = time.Minute

	// callTimeout bounds the publishing call together with its status calls. A lost call is not repeated before it has
	// passed.
	callTimeout = time.Minute
	// publishTimeout bounds the publishing call by itself: ten megabytes at 256 KiB per second take 40 seconds.
	publishTimeout = 45 * time.Second

	// preparedLasts is how long a prepared upload can still be completed. TikTok's URLs are valid for an hour
	// (Content Posting API, "Media Transfer Guide"), and the preparation itself takes part of that.
	preparedLasts = addressLife - 15*time.Minute

	// maxCaption is the maximum length of a video's title in UTF-16 code units (Content Posting API, "Direct Post").
	maxCaption = 2200

	// maxImages is the maximum number of photos in a post (Content Posting API, "Photo post").
	maxImages = 35

	// maxPhotoBytes, photoWidth and photoHeight bound photos (Content Posting API, "Media Transfer Guide": 20 MB, and
	// 1080p).
	maxPhotoBytes = 20_000_000
	photoWidth    = 1080
	photoHeight   = 1920

	// readTimeout bounds read-only calls.
	readTimeout = 10 * time.Second

	// maxLost is the capacity of the cache of lost uploads.
	maxLost = 1000

	// refreshLead is how long before expiry an access token is renewed. TikTok's tokens have been valid for two hours
	// since November 2026.
	refreshLead = 15 * time.Minute
)

// videos are TikTok's documented video limits (Content Posting API, "Media transfer guide"). The maximum duration
// depends on the account; no account may post videos longer than ten minutes.
var videos = platforms.VideoLimits{
	MaxDuration: 10 * time.Minute, MinSide: 360, MaxSide: 4096, MinFrameRate: 23, MaxFrameRate: 60,
	Codecs: []string{"h264", "hevc", "vp8", "vp9"},
}

// doubtfulVideos contains the minimum duration in TikTok's own app. The API does not document a minimum.
var doubtfulVideos = platforms.VideoLimits{MinDuration: 3 * time.Second}

// maxVideoDuration returns the maximum duration of an account's videos, according to TikTok's creator info.
func maxVideoDuration(account *v1alpha1.ConnectionStatus) time.Duration {
	if account.TikTok == nil {
		return 0
	}
	return time.Duration(account.TikTok.MaxVideoPostDurationSeconds) * time.Second
}

// Config configures access to TikTok and its app, whose client key is ClientID.
type Config = platforms.Config

// Platform is TikTok.
type Platform struct {
	oauth2.Base

	// lost contains the tickets of uploads that TikTok did not allow to be completed. It is kept in memory only:
	// after a restart, the next call detects them again.
	lost *lru.Cache
}

var site = oauth2.Site{
	Platform: "tiktok", Name: "TikTok", APIURL: DefaultAPIURL, WebURL: DefaultWebURL, ListingLag: DefaultListingLag, Hosts: hosts.Named,
}

// New returns the platform.
func New(c Config, way *transport.Client) *Platform {
	p := &Platform{Base: oauth2.NewBase(&c, &site, way), lost: lru.New(maxLost)}
	p.Connector = oauth2.Connector{
		Accounts: p, Dialog: dialog(&c), Required: requiredScopes,
		Tokens: oauth2.Endpoint{
			Client: p.API, Path: "/v2/oauth/token/", App: oauth2.FormApp(&c, "client_key"),
			Timeout: readTimeout, Clock: p.Clock, Dead: refreshDead, AnyStatus: true,
			Refused: func(resp *transport.Response, code string) *platforms.Error {
				return p.classify(apiError{status: resp.Status, code: code}).Error
			},
		},
	}
	return p
}

// Capabilities declares TikTok's rules. Posts without media are not supported. The listing does not prove absence; the
// ticket of a video does.
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
		Display:          platforms.Display{Links: links, FoldAfter: foldAfter, FoldLines: foldLines},
		PublishFetches:   true,
		PreparedTTL:      preparedLasts,
		SecretUploads:    true,
		CallTimeout:      callTimeout,
		ListingLag:       p.ListingLag,
		Hosts:            hosts,
		RefreshLead:      refreshLead,
	}
}

type answer[T any] struct {
	status int
	Data   T `json:"data"`
	Error  struct {
		// Code is "ok" for a success, and empty in a response without an error object.
		Code    jsondoc.Text `json:"code"`
		Message jsondoc.Text `json:"message"`
		LogID   jsondoc.Text `json:"log_id"`
	} `json:"error"`
}

const codeOK = "ok"

func (a *answer[T]) apiError() apiError {
	return apiError{status: a.status, code: a.Error.Code.String(), message: a.Error.Message.String(), signed: a.Error.LogID != ""}
}

// ok reports whether the call succeeded. The API sends some errors with status 200.
func (a *answer[T]) ok() bool { return a.status == http.StatusOK && a.Error.Code == codeOK }

func decode[T any](resp *transport.Response) answer[T] {
	a, _ := jsondoc.Decode[answer[T]](resp.Body)
	a.status = resp.Status
	return a
}

// postJSON makes an API call with a JSON body, as nearly all of TikTok's calls require. Errors are *transport.Error.
func postJSON[T any](ctx context.Context, p *Platform, action, path string, token platforms.Token, body any, timeout time.Duration) (answer[T], error) {
	resp, err := p.API.Do(ctx, client.Call{
		Action: action, Path: path, Token: token.Access, Body: client.JSON("application/json; charset=UTF-8", body), Timeout: timeout,
	})
	if err != nil {
		return answer[T]{}, err
	}
	return decode[T](resp), nil
}

func callAPI[T any](ctx context.Context, p *Platform, action, path string, token platforms.Token, body any) (data T, bad *refusal) {
	said, err := postJSON[T](ctx, p, action, path, token, body, readTimeout)
	switch {
	case err != nil:
		return data, &refusal{Error: p.API.Unanswered(err)}
	case !said.ok():
		return data, p.classify(said.apiError())
	default:
		return said.Data, nil
	}
}
