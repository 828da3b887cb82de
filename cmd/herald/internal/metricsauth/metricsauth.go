// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metricsauth restricts the metrics endpoint to accounts that have permission in Kubernetes. It resolves the
// token (TokenReview) and checks the account's access to the path (SubjectAccessReview), as kube-rbac-proxy does.
//
// Every client in the cluster can reach the port, and each review is a request with the process's own account. Unknown
// clients are therefore limited before any review: by the format of the token, by address, and by the number of
// concurrent reviews. Previously allowed accounts do not wait behind unknown clients.
//
// controller-runtime provides the same in metrics/filters. That package links k8s.io/apiserver with its templates: 31
// MB of code in the memory of both processes (docs/adr/0008). The required permissions are in config/rbac/metrics.yaml.
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

	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/request"
)

const (
	// allowedTTL and deniedTTL are the TTLs of results, as in kube-apiserver's own webhook authorizers.
	allowedTTL = time.Minute
	deniedTTL  = 10 * time.Second
	// knownTTL is how long an allowed token takes precedence over unknown ones. Kubernetes rotates pods' tokens within an
	// hour.
	knownTTL = time.Hour
	// rememberedAllowed and rememberedDenied are the sizes of the caches. Legitimate clients are few. Forged tokens may
	// be many, and evict only one another.
	rememberedAllowed = 128
	rememberedDenied  = 1024
	// reviewsPerMinute is the rate limit for unknown tokens from one address.
	reviewsPerMinute = 30
	// maxConcurrentReviews limits the concurrent reviews of unknown tokens. Known tokens have a separate limit of the
	// same size.
	maxConcurrentReviews = 4
	// logAgain is the minimum interval between log lines with the same cause. rememberedCauses is the number of causes
	// remembered.
	logAgain         = time.Minute
	rememberedCauses = 16
	// reviewTimeout is the timeout of both reviews together, including the wait for a slot.
	reviewTimeout = 10 * time.Second
	// longestToken is far above the size of Kubernetes tokens: a ServiceAccount's token is about 1,200 bytes long.
	longestToken = 4 << 10
)

// Filter serves requests whose token belongs to an account with access to the path. It responds with 401 to an invalid
// token, 403 to an account without access, 429 to an address with too many unknown tokens, 503 while too many reviews
// are running, and 500 if the Kubernetes API is unavailable. It is a FilterProvider for controller-runtime's metrics
// server.
func Filter(config *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
	tokens, err := typedauthenticationv1.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("cannot review a token: %w", err)
	}
	rights, err := typedauthorizationv1.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("cannot review an account's access: %w", err)
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
	// allowed and denied cache results. known holds the tokens that were recently allowed.
	allowed, denied, known *cache.LRUExpireCache
	// addresses limits the rate of reviews of unknown tokens.
	addresses *limits.RateLimiter
	// unknownSlots and knownSlots hold one element for each running review of an unknown or known token, respectively.
	unknownSlots, knownSlots chan struct{}
	// causes holds the recently logged errors.
	causes *cache.LRUExpireCache
}

func newGuard(tokens typedauthenticationv1.TokenReviewInterface, rights typedauthorizationv1.SubjectAccessReviewInterface, c clock.PassiveClock) *guard {
	return &guard{
		tokens: tokens, rights: rights,
		allowed: cache.NewLRUExpireCacheWithClock(rememberedAllowed, c), denied: cache.NewLRUExpireCacheWithClock(rememberedDenied, c),
		known: cache.NewLRUExpireCacheWithClock(rememberedAllowed, c), addresses: limits.NewRateLimiter(reviewsPerMinute, c),
		causes:       cache.NewLRUExpireCacheWithClock(rememberedCauses, c),
		unknownSlots: make(chan struct{}, maxConcurrentReviews), knownSlots: make(chan struct{}, maxConcurrentReviews),
	}
}

// reviewKey identifies a review. It contains only the hash of the token.
type reviewKey struct {
	token      [sha256.Size]byte
	verb, path string
}

// errBusy is the cause of a 503.
var errBusy = errors.New("too many tokens are being reviewed")

// authorize returns the response's status: 200 if the request may pass. The error explains why the review failed.
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

// isToken reports whether text has the format of a JSON Web Token (RFC 7519, section 7.2), as used by ServiceAccounts
// and OpenID Connect.
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

func (g *guard) log(log logr.Logger, err error) {
	if err == nil {
		return
	}
	if _, logged := g.causes.Get(err.Error()); logged {
		return
	}
	g.causes.Add(err.Error(), true, logAgain)
	log.Error(err, "Metrics are refused to callers whose access could not be reviewed", "repeatedAfter", logAgain.String())
}

func (g *guard) review(ctx context.Context, token string, q reviewKey) (int, error) {
	review, err := g.tokens.Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return 0, fmt.Errorf("cannot review a token: %w", err)
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
		return 0, fmt.Errorf("cannot review an account's access: %w", err)
	}
	if !access.Status.Allowed {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}
