// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
)

// The demo team and its objects.
const (
	DemoTeam      = "demo"
	DemoNamespace = "herald-demo"
	demoKey       = "demo"
)

// Account is a sandbox account to connect: its id and its tokens.
type Account struct {
	ID           string   `json:"id"`
	AccessToken  string   `json:"access_token"`
	RefreshToken string   `json:"refresh_token"`
	Scopes       []string `json:"scopes"`
	// ExpiresAt is the access token's expiry in RFC 3339, or "" if it does not expire.
	ExpiresAt string `json:"expires_at"`
}

// Grant returns a platform's demo account with its tokens.
type Grant func(context.Context, v1alpha1.Platform) (Account, error)

// ConnectionName returns the name of the demo team's connection on the platform.
func ConnectionName(platform v1alpha1.Platform) string { return DemoTeam + "-" + string(platform) }

// Demo creates the demo team, its connections, its API key and the RoleBinding for the user of the one-time link. It
// waits until all of them are ready and returns the key's token. Existing objects are left unchanged: the manager may
// have renewed tokens, and users may have made changes. Only connections whose tokens the platform rejects get new
// ones.
func Demo(ctx context.Context, c client.Client, platforms []v1alpha1.Platform, grant Grant) (token string, err error) {
	team := &v1alpha1.Team{
		ObjectMeta: metav1.ObjectMeta{Name: DemoTeam},
		Spec: v1alpha1.TeamSpec{
			Namespace:    DemoNamespace,
			DisplayName:  "Demo",
			Subscription: v1alpha1.Subscription{Plan: v1alpha1.PlanUnlimited, State: v1alpha1.SubscriptionActive},
			Budget:       LargeBudget(),
		},
	}
	if err := createMissing(ctx, c, team); err != nil {
		return "", err
	}
	if err := WaitReady(ctx, c, team, &team.Status.Conditions); err != nil {
		return "", err
	}
	if err := createMissing(ctx, c, linkBinding()); err != nil {
		return "", err
	}
	group, inner := errgroup.WithContext(ctx)
	for _, platform := range platforms {
		group.Go(func() error { return connect(inner, c, platform, grant) })
	}
	group.Go(func() error {
		var err error
		token, err = demoToken(inner, c)
		return err
	})
	err = group.Wait()
	return token, err
}

// LargeBudget returns a budget that no trial or benchmark on one machine exhausts: benchmark B4 lists 100,000 posts,
// and many posts are due at once.
func LargeBudget() v1alpha1.TeamBudget {
	return v1alpha1.TeamBudget{
		Posts: new(int32(1_000_000)), PostBytes: new(resource.MustParse("4Gi")), UnfinishedPosts: new(int32(1_000_000)),
		PendingFiles: new(int32(100_000)), PendingFileBytes: new(resource.MustParse("10Ti")), Keys: new(int32(10_000)),
	}
}

// linkBinding gives the user of the one-time link all permissions in the demo team.
func linkBinding() *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: DemoNamespace, Name: "herald-link"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "herald-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: access.LinkPerson}},
	}
}

// demoToken creates the demo API key and returns the token that the manager generated for it.
func demoToken(ctx context.Context, c client.Client) (string, error) {
	key := &v1alpha1.APIKey{
		ObjectMeta: metav1.ObjectMeta{Namespace: DemoNamespace, Name: demoKey},
		Spec:       v1alpha1.APIKeySpec{Description: "Made by the local run; its token is in .local/env"},
	}
	if err := createMissing(ctx, c, key); err != nil {
		return "", err
	}
	if err := WaitReady(ctx, c, key, &key.Status.Conditions); err != nil {
		return "", err
	}
	created := key.Status.Token(v1alpha1.DefaultTokenName)
	if created == nil || created.SecretRef == nil {
		return "", fmt.Errorf("the APIKey %s/%s has no Secret with a token; delete it and start again", DemoNamespace, demoKey)
	}
	var secret corev1.Secret
	if err := c.Get(ctx, client.ObjectKey{Namespace: DemoNamespace, Name: created.SecretRef.Name}, &secret); err != nil {
		return "", err
	}
	token := string(secret.Data[v1alpha1.APIKeyTokenKey])
	if token == "" {
		return "", fmt.Errorf("the Secret %s/%s of the demo API key has no %q; delete the APIKey %s and start again",
			DemoNamespace, secret.Name, v1alpha1.APIKeyTokenKey, demoKey)
	}
	return token, nil
}

// createMissing creates the object unless there is already one with its name.
func createMissing(ctx context.Context, c client.Client, object client.Object) error {
	err := c.Create(ctx, object, client.FieldOwner(fieldOwner))
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create the %s: %w", describe(object), err)
	}
	return nil
}

// WaitReady waits until the object's Ready condition is True for its current generation. Its error contains the
// condition's reason and message. conditions points into the object.
func WaitReady(ctx context.Context, c client.Client, object client.Object, conditions *[]metav1.Condition) error {
	return Until(ctx, describe(object)+" to be ready", func() (bool, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return false, err
		}
		return isReady(object, *conditions)
	})
}

// isReady reports whether the Ready condition is True for the current generation. The error contains the condition's
// reason and message.
func isReady(object client.Object, conditions []metav1.Condition) (bool, error) {
	ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil || ready.ObservedGeneration != object.GetGeneration():
		return false, errors.New("the manager has not looked at it yet")
	case ready.Status == metav1.ConditionTrue:
		return true, nil
	default:
		return false, fmt.Errorf("%s: %s", ready.Reason, ready.Message)
	}
}

// describe names an object in messages, such as "Connection herald-demo/demo-x".
func describe(object client.Object) string {
	kind := fmt.Sprintf("%T", object)
	kind = kind[strings.LastIndexByte(kind, '.')+1:]
	if object.GetNamespace() == "" {
		return kind + " " + object.GetName()
	}
	return kind + " " + object.GetNamespace() + "/" + object.GetName()
}
