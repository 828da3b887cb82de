// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package instagram publishes to professional Instagram accounts: images, carousels of images, and videos, which are
// always reels.
//
// A post is created in two steps. The first creates a container, which is invisible and expires after a day; it can be
// repeated. The second, POST /{account}/media_publish, makes it visible and is the one irrevocable call. Afterwards the
// container's state shows whether that call took effect; see Lookup.
//
// An account is connected through Instagram's own login, or through Facebook's login and the Page that the account is
// linked to. The two logins have separate hosts, permissions and tokens, but the same calls. The granted scopes show
// which login a token belongs to.
package instagram

import (
	"cmp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/meta"
	"github.com/herald-social/herald/platforms/internal/oauth2"
)

const (
	// DefaultAPIURL is the address of the graph of Instagram's own login.
	DefaultAPIURL = "https://graph.instagram.com"
	// DefaultFacebookURL is the address of the graph for Facebook Login.
	DefaultFacebookURL = "https://graph.facebook.com"
	// DefaultTokenURL is the host that exchanges codes of Instagram's own login.
	DefaultTokenURL = "https://api.instagram.com"
	// DefaultAuthorizeURL is the address of the consent page of Instagram's own login.
	DefaultAuthorizeURL = "https://www.instagram.com"
	// DefaultFacebookAuthorizeURL is the address of the consent page of Facebook's login.
	DefaultFacebookAuthorizeURL = "https://www.facebook.com"
	// DefaultUploadURL is the upload host for videos with Facebook's login.
	DefaultUploadURL = "https://rupload.facebook.com"
	// DefaultVersion is the Graph API version that this package was written for.
	DefaultVersion = "v25.0"

	// DefaultListingLag is how long a container's state may lag behind its publication, and how long a post may be
	// missing from its account's listing. Instagram does not document a lag; the value is the same as for Threads.
	DefaultListingLag = 30 * time.Second

	// maxCaption is the maximum caption length in characters (Content Publishing, "Limitations").
	maxCaption = 2200

	// maxHashtags and maxMentions are the maximum numbers in a caption (Content Publishing, "Limitations").
	maxHashtags = 30
	maxMentions = 20
	// maxImages is the maximum number of images in a carousel (Content Publishing, "Carousel posts").
	maxImages = 10
	// maxImageBytes, minAspect and maxAspect bound an image ("Image specifications"). Instagram scales images, so the
	// width is not limited.
	maxImageBytes = 8 << 20
	minAspect     = 4.0 / 5
	maxAspect     = 1.91
	// maxVideoBytes bounds a reel's file ("Reel specifications").
	maxVideoBytes = 300 << 20

	// containerLife is how long Instagram keeps an unpublished container (Content Publishing, "Create a
	// container").
	containerLife = 24 * time.Hour

	// callTimeout bounds media_publish, which usually takes a few seconds, including reading the permalink.
	callTimeout = 30 * time.Second

	// createTimeout bounds the creation of a container: Instagram fetches an image before it responds.
	createTimeout = 30 * time.Second

	// refreshLead is how long before expiry an access token is renewed: after half of its 60 days. An expired token
	// cannot be renewed.
	refreshLead = 30 * 24 * time.Hour
)

// videos are Instagram's documented video limits ("Reel specifications").
var videos = platforms.VideoLimits{
	MinDuration: 3 * time.Second, MaxDuration: 15 * time.Minute, MaxWidth: 1920,
	MinAspect: 0.01, MaxAspect: 10, MinFrameRate: 23, MaxFrameRate: 60, MaxBitRate: 25_000_000,
	Codecs: []string{"h264", "hevc"}, AudioCodecs: []string{"aac"},
}

// Login is a way to connect an account.
type Login string

const (
	// InstagramLogin is Instagram's own login.
	InstagramLogin Login = "instagram"
	// FacebookLogin is Facebook's login, through the Page that the account is linked to.
	FacebookLogin Login = "facebook"
)

// Config configures access to Instagram. APIURL also replaces DefaultTokenURL, and AuthorizeURL defaults to the login's
// consent page.
type Config struct {
	platforms.Config

	// FacebookURL, UploadURL and Version default to DefaultFacebookURL, DefaultUploadURL and DefaultVersion.
	FacebookURL, UploadURL, Version string
	// LoginConfigID is the id of the app's configuration for Facebook Login for Business; empty for none. Instagram
	// Login does not use one.
	LoginConfigID string
	// Login is the login for new connections, and for tokens whose scopes do not identify one. The app must belong
	// to it. It defaults to InstagramLogin.
	Login Login
}

// Platform is Instagram.
type Platform struct {
	oauth2.Dialog

	config Config
	// own and linked are the hosts of the two logins.
	own, linked host
	uploads     client.Client
	// codes is the host that exchanges codes of Instagram's own login.
	codes client.Client
}

type host struct {
	meta.Containers

	login Login
}

// New returns the platform.
func New(c Config, transport *transport.Client) *Platform {
	c.Login = cmp.Or(c.Login, InstagramLogin)
	c.SetDefaults(DefaultListingLag)
	at := func(configured, otherwise string) client.Client {
		return client.Client{Platform: "instagram", Name: "Instagram", BaseURL: client.Address(configured, otherwise), Transport: transport}
	}
	c.Version = cmp.Or(c.Version, DefaultVersion)
	containers := func(at client.Client) meta.Containers {
		return meta.Containers{
			Graph:      meta.Graph{Client: at, Version: c.Version, Clock: c.Clock, Errors: errorRows},
			CreateEdge: "media", PublishEdge: "media_publish", CreateTimeout: createTimeout, PublishTimeout: callTimeout,
			StatusFields: "id,status_code,status", ExplainFailure: containerFailure, Cache: meta.NewContainerCache(),
		}
	}
	return &Platform{
		config:  c,
		own:     host{containers(at(c.APIURL, DefaultAPIURL)), InstagramLogin},
		linked:  host{containers(at(c.FacebookURL, DefaultFacebookURL)), FacebookLogin},
		uploads: at(c.UploadURL, DefaultUploadURL),
		codes:   at(c.APIURL, DefaultTokenURL),
		Dialog:  c.dialog(),
	}
}

// hostOf returns the host that a token is valid for. Scope names differ between the two logins.
func (p *Platform) hostOf(token platforms.Token) *host {
	login := p.config.Login
	for _, scope := range oauth2.Scopes(token.Scopes) {
		if strings.HasPrefix(scope, "instagram_business_") {
			login = InstagramLogin
			break
		}
		if strings.HasPrefix(scope, "instagram_") {
			login = FacebookLogin
			break
		}
	}
	if login == FacebookLogin {
		return &p.linked
	}
	return &p.own
}

// Capabilities declares Instagram's rules. Posts without media are not supported. The listing does not prove absence;
// the containers do.
func (p *Platform) Capabilities() platforms.Capabilities {
	return platforms.Capabilities{
		Categories:     []v1alpha1.Category{v1alpha1.CategoryImage, v1alpha1.CategoryVideo},
		Delivers:       []v1alpha1.Category{v1alpha1.CategoryImage, v1alpha1.CategoryVideo},
		MaxCaption:     maxCaption,
		CaptionUnit:    "characters",
		CaptionLength:  utf8.RuneCountInString,
		CaptionProblem: captionProblem,
		Display:        platforms.Display{Links: links, FoldAfter: foldAfter, FoldLines: foldLines},
		MaxImages:      maxImages,
		MaxVideoBytes:  maxVideoBytes,
		Images: platforms.ImageLimits{
			Types: []v1alpha1.MimeType{v1alpha1.MimeJPEG}, MaxBytes: maxImageBytes, MinAspect: minAspect, MaxAspect: maxAspect,
			OnePicture: true, // The endpoint's reference: "JPEG (no MPO/JPS)".
		},
		Videos:       videos,
		PreparedTTL:  containerLife,
		CallTimeout:  callTimeout,
		ListingLag:   p.config.ListingLag,
		Hosts:        hosts,
		RefreshLead:  refreshLead,
		RenewsItself: true,
	}
}
