// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedauthenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"

	"github.com/herald-social/herald/controllers/team"
)

// account returns the Kubernetes account of this process. The manager grants it access to the Secrets in teams'
// namespaces.
func account(ctx context.Context, config *rest.Config, client *http.Client) (rbacv1.Subject, error) {
	reviews, err := typedauthenticationv1.NewForConfigAndClient(config, client)
	if err != nil {
		return rbacv1.Subject{}, fmt.Errorf("cannot create the client that reads this process's account: %w", err)
	}
	review, err := reviews.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return rbacv1.Subject{}, fmt.Errorf("cannot read this process's account from the Kubernetes API: %w", err)
	}
	return subject(review.Status.UserInfo.Username), nil
}

func subject(username string) rbacv1.Subject {
	if rest, ok := strings.CutPrefix(username, "system:serviceaccount:"); ok {
		if namespace, name, ok := strings.Cut(rest, ":"); ok {
			return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
		}
	}
	return rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: username}
}

// namesOf returns the names of the objects that the team controller uses in a release.
func namesOf(release string) team.Names {
	return team.Names{
		RoleBinding: release + "-manager-secrets", ClusterRole: release + "-team-secrets",
		CredentialsBinding: release + "-apiserver-credentials", CredentialsRole: release + "-team-credentials",
	}
}

// leaseOf returns the name of the lease for a release's manager.
func leaseOf(release string) string { return release + "-manager" }

// apiserverOf returns the account of a release's apiserver in a namespace.
func apiserverOf(release, namespace string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: release + "-apiserver"}
}
