// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metricsauth lets only those read the metrics whom the Kubernetes API lets: it asks who owns a token
// (TokenReview) and whether that account may get the path (SubjectAccessReview), as kube-rbac-proxy does.
//
// Anybody in the cluster may reach the port, and each question is put to the Kubernetes API with the account of the
// process. So a stranger is bounded before anything is asked for them: by the form of the token, by address, and by
// how many questions are under way. An account that was let in before waits behind no stranger.
//
// controller-runtime has the same as metrics/filters. That one links k8s.io/apiserver with its templates, 31 MB of
// program that both processes would hold in memory (docs/adr/0008). The rights that it takes are in
// config/rbac/metrics.yaml.
package metricsauth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	typedauthenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	typedauthorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/herald-social/herald/apiserver/ratelimit"
	"github.com/herald-social/herald/apiserver/request"
)

const (
	// allowedTTL and deniedTTL are how long an answer of the Kubernetes API holds; kube-apiserver's own webhooks take
	// these times for granted.
	allowedTTL = time.Minute
	deniedTTL  = 10 * time.Second
	// knownTTL is how long a token that was let in is asked about before any stranger's. Kubernetes replaces the tokens
	// of pods within an hour.
	knownTTL = time.Hour
	// rememberedAllowed and rememberedDenied bound how many answers are kept. Readers of metrics are few; made-up tokens
	// are as many as somebody likes, and push out one another alone.
	rememberedAllowed = 128
	rememberedDenied  = 1024
	// reviewsPerMinute bounds what one address has asked about tokens that are not known.
	reviewsPerMinute = 30
	// maxConcurrentReviews bounds the questions about strangers, and again those about known tokens.
	maxConcurrentReviews = 4
	// logAgain is after how long a cause is logged once more, and rememberedCauses how many are told apart.
	logAgain         = time.Minute
	rememberedCauses = 16
	// reviewTimeout bounds both questions together, and the wait before them.
	reviewTimeout = 10 * time.Second
	// longestToken is what a token of Kubernetes stays far below: that of a ServiceAccount has some 1,200 bytes.
	longestToken = 4 << 10
)

// Filter answers requests that carry the token of an account that may get the path, and refuses others: 401 without a
// valid token, 403 without the right, 429 to an address that shows too many unknown tokens, 503 while too many are asked
// about, 500 if the Kubernetes API cannot be asked. It is a FilterProvider for controller-runtime's metrics server.
func Filter(config *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
	tokens, err := typedauthenticationv1.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("cannot ask who owns a token: %w", err)
	}
	rights, err := typedauthorizationv1.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("cannot ask what an account may do: %w", err)
	}
	g := newGuard(tokens.TokenReviews(), rights.SubjectAccessReviews(), clock.RealClock{})
	return func(log logr.Logger, next http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			status, err := g.authorize(w, r)
			g.log(log, err)
			if status != http.StatusOK {
				http.Error(w, http.StatusText(status), status)
				return
			}
			next.ServeHTTP(w, r)
		}), nil
	}, nil
}

type guard struct {
	tokens typedauthenticationv1.TokenReviewInterface
	rights typedauthorizationv1.SubjectAccessReviewInterface
	// allowed and denied hold answers. known holds the tokens that were let in of late.
	allowed, denied, known *cache.LRUExpireCache
	// addresses counts the questions for strangers.
	addresses *ratelimit.Limiter
	// unknownSlots and familiar hold a place for each question under way, about unknown and about known tokens.
	unknownSlots, knownSlots chan struct{}
	// causes holds the errors that the log has of late.
	causes *cache.LRUExpireCache
}

func newGuard(tokens typedauthenticationv1.TokenReviewInterface, rights typedauthorizationv1.SubjectAccessReviewInterface, c clock.PassiveClock) *guard {
	return &guard{
		tokens: tokens, rights: rights,
		allowed: cache.NewLRUExpireCacheWithClock(rememberedAllowed, c), denied: cache.NewLRUExpireCacheWithClock(rememberedDenied, c),
		known: cache.NewLRUExpireCacheWithClock(rememberedAllowed, c), addresses: ratelimit.New(reviewsPerMinute, c),
		causes:       cache.NewLRUExpireCacheWithClock(rememberedCauses, c),
		unknownSlots: make(chan struct{}, maxConcurrentReviews), knownSlots: make(chan struct{}, maxConcurrentReviews),
	}
}

// reviewKey is what is asked; the token only as its hash.
type reviewKey struct {
	token      [sha256.Size]byte
	verb, path string
}

// errBusy is the cause of a 503.
var errBusy = errors.New("too many tokens are being asked about")

// authorize returns the status of the answer; 200 if the request may pass. The error says why the Kubernetes API could not
// be asked.
func (g *guard) authorize(w http.ResponseWriter, r *http.Request) (int, error) {
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !bearer || !isToken(token) {
		return http.StatusUnauthorized, nil
	}
	q := reviewKey{token: sha256.Sum256([]byte(token)), verb: strings.ToLower(r.Method), path: r.URL.Path}
	if _, ok := g.allowed.Get(q); ok {
		return http.StatusOK, nil
	}
	if status, ok := g.denied.Get(q); ok {
		return status.(int), nil //nolint:forcetypeassert // nothing else is stored
	}
	places := g.knownSlots
	if _, ok := g.known.Get(q.token); !ok {
		places = g.unknownSlots
		if allowed, _ := g.addresses.Allow(request.Address(r), w.Header()); !allowed {
			return http.StatusTooManyRequests, nil
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), reviewTimeout)
	defer cancel()
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	case <-ctx.Done():
		return http.StatusServiceUnavailable, errBusy
	}
	return g.reviewAndCache(ctx, token, q)
}

// reviewAndCache puts a question to the Kubernetes API and remembers the answer.
func (g *guard) reviewAndCache(ctx context.Context, token string, q reviewKey) (int, error) {
	status, err := g.review(ctx, token, q)
	switch {
	case err != nil:
		return http.StatusInternalServerError, err
	case status == http.StatusOK:
		g.allowed.Add(q, status, allowedTTL)
		g.known.Add(q.token, status, knownTTL)
	default:
		g.denied.Add(q, status, deniedTTL)
	}
	return status, nil
}

// isToken reports whether a text has the form of a JSON Web Token, as those of ServiceAccounts and of OpenID Connect
// have (RFC 7519, section 7.2).
func isToken(text string) bool {
	if len(text) > longestToken {
		return false
	}
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return false
	}
	header, err := base64.RawURLEncoding.DecodeString(parts[0])
	if err != nil {
		return false
	}
	var fields map[string]any
	return json.Unmarshal(header, &fields) == nil && fields["alg"] != nil
}

// log writes a cause once in logAgain, however many requests meet it.
func (g *guard) log(log logr.Logger, err error) {
	if err == nil {
		return
	}
	if _, logged := g.causes.Get(err.Error()); logged {
		return
	}
	g.causes.Add(err.Error(), true, logAgain)
	log.Error(err, "Metrics are refused to callers that could not be judged", "repeatedAfter", logAgain.String())
}

// review asks who owns a token, and whether that account may do what is asked.
func (g *guard) review(ctx context.Context, token string, q reviewKey) (int, error) {
	review, err := g.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("cannot ask who owns a token: %w", err)
	}
	if !review.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := review.Status.User
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	access, err := g.rights.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: q.verb, Path: q.path},
	}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("cannot ask what an account may do: %w", err)
	}
	if !access.Status.Allowed {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}
