// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package instagram publishes to professional accounts of Instagram: images,
// carousels of them, and videos, which are always reels.
//
// A post is made in two steps. The first makes a container, which is not
// visible and which Instagram forgets after a day; it may be repeated. The second,
// POST /{account}/media_publish, makes it visible and is the one irrevocable
// call. Afterwards the container tells whether that call took effect; see
// Lookup.
//
// An account is connected in one of two ways, which have hosts, permissions and
// tokens of their own and the same calls: Instagram's own login, or that of
// Facebook, through the Page that the account is linked to. What a token was
// granted tells them apart.
package instagram

import (
	"cmp"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/meta"
	"github.com/herald-social/herald/platforms/internal/oauth2"
)

const (
	// DefaultAPIURL is where the graph of Instagram's own login is served.
	DefaultAPIURL = "https://graph.instagram.com"
	// DefaultFacebookURL is where accounts are reached that were connected by
	// Facebook's login.
	DefaultFacebookURL = "https://graph.facebook.com"
	// DefaultTokenURL is where codes of Instagram's own login are exchanged.
	DefaultTokenURL = "https://api.instagram.com"
	// DefaultAuthorizeURL is where people let apps into their accounts by Instagram's
	// own login.
	DefaultAuthorizeURL = "https://www.instagram.com"
	// DefaultFacebookAuthorizeURL is where they do by Facebook's login.
	DefaultFacebookAuthorizeURL = "https://www.facebook.com"
	// DefaultUploadURL is where the videos of those accounts go.
	DefaultUploadURL = "https://rupload.facebook.com"
	// DefaultVersion is the version of the graphs that this package was written
	// against.
	DefaultVersion = "v25.0"

	// DefaultListingLag is how long a container may be behind its publication,
	// and a post missing from its account's list. Instagram promises nothing; it
	// is what holds for its sister Threads.
	DefaultListingLag = 30 * time.Second

	// maxCaption is the greatest length of a caption in characters (Content
	// Publishing, "Limitations").
	maxCaption = 2200

	// maxHashtags and maxMentions are how many of them a caption holds (Content
	// Publishing, "Limitations").
	maxHashtags = 30
	maxMentions = 20
	// maxImages is how many images a carousel shows (Content Publishing,
	// "Carousel posts").
	maxImages = 10
	// maxImageBytes, minAspect and maxAspect bound an image ("Image
	// specifications"). Its width is no bound: Instagram scales it.
	maxImageBytes = 8 << 20
	minAspect     = 4.0 / 5
	maxAspect     = 1.91
	// maxVideoBytes bounds the file of a reel ("Reel specifications").
	maxVideoBytes = 300 << 20

	// containerLife is how long Instagram keeps a container that is not
	// published (Content Publishing, "Create a container").
	containerLife = 24 * time.Hour

	// callTimeout bounds media_publish, which usually takes some seconds,
	// together with reading the address of the post.
	callTimeout = 30 * time.Second

	// createTimeout bounds making a container: Instagram fetches an image
	// before it answers.
	createTimeout = 30 * time.Second

	// refreshLead is how long before its end an access token is renewed: at
	// half of its 60 days. One that has ended cannot be renewed.
	refreshLead = 30 * 24 * time.Hour
)

// videos is what Instagram says of videos ("Reel specifications").
var videos = platforms.VideoLimits{
	MinDuration: 3 * time.Second, MaxDuration: 15 * time.Minute, MaxWidth: 1920,
	MinAspect: 0.01, MaxAspect: 10, MinFrameRate: 23, MaxFrameRate: 60, MaxBitRate: 25_000_000,
	Codecs: []string{"h264", "hevc"}, AudioCodecs: []string{"aac"},
}

// Login is a way to connect an account.
type Login string

// The logins.
const (
	// InstagramLogin is Instagram's own.
	InstagramLogin Login = "instagram"
	// FacebookLogin leads through the Page that the account is linked to.
	FacebookLogin Login = "facebook"
)

// Config says how to reach Instagram.
type Config struct {
	// APIURL, FacebookURL, UploadURL and Version default to DefaultAPIURL,
	// DefaultFacebookURL, DefaultUploadURL and DefaultVersion. APIURL stands for
	// DefaultTokenURL as well.
	APIURL, FacebookURL, UploadURL, Version string
	// AuthorizeURL defaults to that of the login.
	AuthorizeURL string
	// ClientID and ClientSecret are those of the app that the login knows, to connect
	// accounts with.
	ClientID string
	// ClientSecret is asked for each of those calls; nil for none.
	ClientSecret func() string
	// LoginConfigID names the app's configuration of Facebook Login for Business; empty for
	// none. Instagram's own login has none.
	LoginConfigID string
	// Login is how accounts are connected, and that of accounts whose scopes do not
	// tell. Defaults to InstagramLogin.
	Login Login
	// ListingLag defaults to DefaultListingLag.
	ListingLag time.Duration
	// Clock tells when a token or a limit ends, and waits for containers.
	// Defaults to the real one.
	Clock clock.Clock
}

// Platform is Instagram.
type Platform struct {
	config Config
	// own and linked are the hosts of the two logins.
	own, linked host
	uploads     client.Client
	// codes is where codes of Instagram's own login are exchanged.
	codes  client.Client
	dialog oauth2.Dialog
	secret func() string
}

// host is the graph of one login.
type host struct {
	meta.Containers

	login Login
}

var (
	_ platforms.Publisher = (*Platform)(nil)
	_ platforms.Preparer  = (*Platform)(nil)
)

// New makes the platform.
func New(c Config, transport *transport.Client) *Platform {
	c.Login = cmp.Or(c.Login, InstagramLogin)
	c.ListingLag = cmp.Or(max(c.ListingLag, 0), DefaultListingLag)
	c.Clock = cmp.Or[clock.Clock](c.Clock, clock.RealClock{})
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
		dialog:  c.dialog(),
		secret:  oauth2.Secret(c.ClientSecret),
	}
}

// hostOf is where a token is good: the permissions of the two logins have other
// names.
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

// Capabilities declares Instagram's rules. It takes no posts of text alone. Its list
// of posts proves no absence; its containers do.
func (p *Platform) Capabilities() platforms.Capabilities {
	return platforms.Capabilities{
		Categories:     []v1alpha1.Category{v1alpha1.CategoryImage, v1alpha1.CategoryVideo},
		Delivers:       []v1alpha1.Category{v1alpha1.CategoryImage, v1alpha1.CategoryVideo},
		MaxCaption:     maxCaption,
		CaptionUnit:    "characters",
		CaptionLength:  utf8.RuneCountInString,
		CaptionProblem: captionProblem,
		MaxImages:      maxImages,
		MaxVideoBytes:  maxVideoBytes,
		Images: platforms.ImageLimits{
			Types: []v1alpha1.MimeType{v1alpha1.MimeJPEG}, MaxBytes: maxImageBytes, MinAspect: minAspect, MaxAspect: maxAspect,
			OnePicture: true, // The reference of the endpoint: "JPEG (no MPO/JPS)".
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
