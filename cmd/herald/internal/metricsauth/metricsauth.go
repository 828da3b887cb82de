// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metricsauth lets only those read the metrics whom the Kubernetes API lets: it asks who owns a token
// (TokenReview) and whether that account may get the path (SubjectAccessReview), as kube-rbac-proxy does.
//
// controller-runtime has the same as metrics/filters. That one links k8s.io/apiserver with its templates, 31 MB of
// program that both processes would hold in memory (docs/adr/0008). The rights that it takes are in
// config/rbac/metrics.yaml.
package metricsauth

import (
	"context"
	"crypto/sha256"
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
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// allowedFor and deniedFor are how long an answer of the Kubernetes API holds; kube-apiserver's own webhooks take
	// these times for granted. remembered bounds how many answers are kept.
	allowedFor = time.Minute
	deniedFor  = 10 * time.Second
	remembered = 128
	// askWithin bounds both questions together.
	askWithin = 10 * time.Second
)

// Filter answers requests that carry the token of an account that may get the path, and refuses others: 401 without a
// valid token, 403 without the right, 500 if the Kubernetes API cannot be asked. It is a FilterProvider for
// controller-runtime's metrics server.
func Filter(config *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
	tokens, err := typedauthenticationv1.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("cannot ask who owns a token: %w", err)
	}
	rights, err := typedauthorizationv1.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("cannot ask what an account may do: %w", err)
	}
	g := &guard{tokens: tokens.TokenReviews(), rights: rights.SubjectAccessReviews(), answers: cache.NewLRUExpireCache(remembered)}
	return func(log logr.Logger, next http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			status, err := g.judge(r)
			if err != nil {
				log.Error(err, "the metrics are not shown: the Kubernetes API cannot be asked for the caller's rights")
			}
			if status != http.StatusOK {
				http.Error(w, http.StatusText(status), status)
				return
			}
			next.ServeHTTP(w, r)
		}), nil
	}, nil
}

type guard struct {
	tokens  typedauthenticationv1.TokenReviewInterface
	rights  typedauthorizationv1.SubjectAccessReviewInterface
	answers *cache.LRUExpireCache
}

// question is what is asked; the token only as its hash.
type question struct {
	token      [sha256.Size]byte
	verb, path string
}

// judge returns the status of the answer; 200 if the request may pass.
func (g *guard) judge(r *http.Request) (int, error) {
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !bearer || token == "" {
		return http.StatusUnauthorized, nil
	}
	q := question{token: sha256.Sum256([]byte(token)), verb: strings.ToLower(r.Method), path: r.URL.Path}
	if status, known := g.answers.Get(q); known {
		return status.(int), nil //nolint:forcetypeassert // nothing else is stored
	}
	ctx, cancel := context.WithTimeout(r.Context(), askWithin)
	defer cancel()
	status, err := g.ask(ctx, token, q)
	if err != nil {
		return http.StatusInternalServerError, err
	}
	lasts := deniedFor
	if status == http.StatusOK {
		lasts = allowedFor
	}
	g.answers.Add(q, status, lasts)
	return status, nil
}

func (g *guard) ask(ctx context.Context, token string, q question) (int, error) {
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
