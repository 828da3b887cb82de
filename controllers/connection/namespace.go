// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/kubeclient"
)

// isNamespaceTerminating reports whether an error about a working copy only means that the namespace is gone or
// terminating. The deletion removes Herald's role binding first, so reading the Secrets is forbidden rather than not
// found.
func isNamespaceTerminating(ctx context.Context, reader client.Reader, namespace string, err error) (bool, error) {
	switch {
	case err == nil:
		return false, nil
	case credentials.ReasonOf(err) == credentials.NotFound, apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return true, nil
	case !apierrors.IsForbidden(err):
		return false, nil
	}
	return kubeclient.IsNamespaceTerminating(ctx, reader, namespace) //nolint:wrapcheck // the error has its context
}

// dropIfNamespaceGone drops a token that could not be stored if its account's namespace is gone, and reports whether it
// did. In a terminating namespace, Secrets may still exist, and the cause of the error is unknown.
func (s *tokenSaver) dropIfNamespaceGone(ctx context.Context, pending unsaved, problem error) bool {
	if !apierrors.IsForbidden(problem) {
		return false
	}
	namespace := pending.conn.Namespace
	if found, err := kubeclient.ReadNamespace(ctx, s.reader, namespace); err != nil || found != nil {
		return false
	}
	s.discard(ctx, workingKey(pending.conn), credentials.SpoolAccountOf(pending.conn))
	ctrl.LoggerFrom(ctx).Info("dropped a renewed token from before the restart: its account's namespace is gone",
		"namespace", namespace, "platform", pending.conn.Spec.Platform, "account", pending.conn.Spec.AccountID)
	return true
}
