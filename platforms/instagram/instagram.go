// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package instagram knows accounts of Instagram that were connected with
// Instagram's own login: professional accounts, at graph.instagram.com.
package instagram

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/graph"
	"github.com/herald-social/herald/internal/jsondoc"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
)

const (
	// DefaultAPIURL is where Instagram's graph is served.
	DefaultAPIURL = "https://graph.instagram.com"
	// DefaultVersion is the version of the graph that this package was written
	// against.
	DefaultVersion = "v25.0"

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
	// maxVideoBytes bounds the file of a reel ("Reel specifications").
	maxVideoBytes = 300 << 20

	// readTimeout bounds the calls that only ask.
	readTimeout = 10 * time.Second

	// refreshLead is how long before its end an access token is renewed: at
	// half of its 60 days. One that has ended cannot be renewed.
	refreshLead = 30 * 24 * time.Hour
)

// What people are told. None of it changes from one call to the next.
const (
	msgToken      = "Instagram no longer accepts the access token: it has ended or was revoked; connect the account again"
	msgPermission = "Instagram refuses Herald's access to this account, because a permission is missing; connect the account again and allow publishing"
	msgPerson     = "Instagram has restricted this account; open Instagram, do what it asks for, and then connect the account again"
	msgLimit      = "Instagram limits how often this account may be used, and the limit is reached; Herald tries again when Instagram allows it"
	msgBlocked    = "Instagram has blocked the activity of this account for a while, because it suspects spam; wait"
	msgQuota      = "this account has reached Instagram's limit of posts for 24 hours; wait"
	msgBusy       = "Instagram has trouble and did not do what it was asked; try again later"
	msgNonsense   = "Instagram gave an answer that Herald does not understand (HTTP status %d)"
	msgNotSent    = "Instagram could not be reached; check the network between Herald and Instagram"
	msgLost       = "the connection to Instagram broke before the answer came"
	msgNoIdentity = "Instagram did not say whose account this is"
	msgNoToken    = "Instagram said that it renewed the access token, but gave none"
	msgNotRenewed = "Instagram did not renew the access token; Herald tries again"
)

// Config says how to reach Instagram.
type Config struct {
	// APIURL and Version default to DefaultAPIURL and DefaultVersion.
	APIURL, Version string
	// Clock tells when a token that was just handed out ends. Defaults to the
	// real one.
	Clock clock.PassiveClock
}

// Platform is Instagram.
type Platform struct {
	config Config
	graph  graph.Client
}

var _ platforms.Platform = (*Platform)(nil)

// New makes the platform.
func New(c Config, client *transport.Client) *Platform {
	if c.APIURL == "" {
		c.APIURL = DefaultAPIURL
	}
	if c.Version == "" {
		c.Version = DefaultVersion
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	c.APIURL = strings.TrimRight(c.APIURL, "/")
	return &Platform{config: c, graph: graph.Client{Platform: "instagram", BaseURL: c.APIURL, Transport: client}}
}

// Limits declares Instagram's rules. It takes no posts of text alone.
func (p *Platform) Limits() platforms.Limits {
	return platforms.Limits{
		Categories:     []v1alpha1.Category{v1alpha1.CategoryImage, v1alpha1.CategoryVideo},
		MaxCaption:     maxCaption,
		CaptionUnit:    "characters",
		CaptionLength:  utf8.RuneCountInString,
		CaptionProblem: captionProblem,
		MaxImages:      maxImages,
		MaxVideoBytes:  maxVideoBytes,
		RefreshLead:    refreshLead,
		RenewsItself:   true,
	}
}

// Identify asks Instagram whose token this is. The id is that of the
// professional account, which paths are made with, and not the id that
// Instagram gives the account for this app alone.
func (p *Platform) Identify(ctx context.Context, token platforms.Token) (platforms.Identity, error) {
	resp, err := p.ask(ctx, graph.Call{
		Action: "identify", Token: token.Access, Timeout: readTimeout,
		Path: "/" + p.config.Version + "/me?fields=user_id,username,name,profile_picture_url,account_type",
	}, msgNoIdentity, platforms.ClassUnknown)
	if err != nil {
		return platforms.Identity{}, err
	}
	doc, _ := jsondoc.Parse(resp.Body)
	if wrapped, ok := doc.List("data"); ok && len(wrapped) == 1 {
		// Some of Instagram's pages show the account in a list.
		doc = wrapped[0]
	}
	identity := platforms.Identity{
		AccountID:   doc.Text("user_id"),
		DisplayName: doc.Text("name"),
		Username:    doc.Text("username"),
		IconURL:     doc.Text("profile_picture_url"),
	}
	if !graph.ValidID(identity.AccountID) {
		return platforms.Identity{}, platforms.Errorf(platforms.ClassUnknown, msgNoIdentity)
	}
	if identity.DisplayName == "" {
		identity.DisplayName = identity.Username
	}
	return identity, nil
}

// Refresh exchanges an access token that has not ended, and is a day old at
// least, for one that lives 60 days more. Instagram has no refresh token: an
// access token renews itself.
func (p *Platform) Refresh(ctx context.Context, token platforms.Token) (platforms.Token, error) {
	query := url.Values{"grant_type": {"ig_refresh_token"}, "access_token": {token.Access}}
	// A refusal that is not about the token says nothing about it; it may well
	// be too young.
	resp, err := p.ask(ctx, graph.Call{
		Action: "refresh_token", Path: "/refresh_access_token?" + query.Encode(), Timeout: readTimeout,
	}, msgNotRenewed, platforms.ClassTransient)
	if err != nil {
		return platforms.Token{}, err
	}
	doc, _ := jsondoc.Parse(resp.Body)
	access := doc.Text("access_token")
	if access == "" {
		return platforms.Token{}, platforms.Errorf(platforms.ClassUnknown, msgNoToken)
	}
	renewed := platforms.Token{Access: access, Refresh: token.Refresh, Scopes: token.Scopes}
	if life := doc.Seconds("expires_in"); life > 0 {
		renewed.ExpiresAt = p.config.Clock.Now().Add(life).UTC()
	}
	return renewed, nil
}

// ask makes a call that may be repeated and returns the answer if it is a
// success. A refusal of the request itself has the given message and class.
func (p *Platform) ask(ctx context.Context, call graph.Call, refused string, class platforms.Class) (*transport.Response, error) {
	resp, err := p.graph.Do(ctx, call)
	if err != nil {
		return nil, unanswered(err)
	}
	if resp.Status == http.StatusOK {
		return resp, nil
	}
	said := graph.ParseError(resp)
	failure := &platforms.Error{Class: class, Message: refused, Err: said}
	if c, message := classOf(said); message != "" {
		failure.Class, failure.Message = c, message
	}
	failure.RetryAt = graph.RetryAt(resp.Header, said.Kind(), p.config.Clock.Now())
	failure.AppWide = said.AppWide()
	return nil, failure
}

// classOf is the table of Instagram's errors; without a message, the request
// itself was refused.
func classOf(said *graph.Error) (platforms.Class, string) {
	switch said.Kind() {
	case graph.KindToken:
		return platforms.ClassReconnect, msgToken
	case graph.KindPermission:
		return platforms.ClassReconnect, msgPermission
	case graph.KindPerson:
		return platforms.ClassPermanent, msgPerson
	case graph.KindLimit:
		return platforms.ClassRateLimited, msgLimit
	case graph.KindBlocked:
		return platforms.ClassQuota, msgBlocked
	case graph.KindQuota:
		return platforms.ClassQuota, msgQuota
	case graph.KindUnavailable:
		return platforms.ClassTransient, msgBusy
	case graph.KindNonsense:
		return platforms.ClassUnknown, fmt.Sprintf(msgNonsense, said.Status)
	case graph.KindDuplicate, graph.KindOther:
		return platforms.ClassUnknown, ""
	default:
		return platforms.ClassUnknown, ""
	}
}

// unanswered says what the absence of an answer means for a call that may be
// repeated.
func unanswered(err error) *platforms.Error {
	message := msgLost
	if failure, ok := errors.AsType[*transport.Error](err); ok && !failure.Sent {
		message = msgNotSent
	}
	return &platforms.Error{Class: platforms.ClassTransient, Message: message, Err: err}
}
