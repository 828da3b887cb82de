// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// ControllerLogConstructor returns a controller's log constructor, whose lines do not repeat names.
// controller-runtime's default loggers name an object three times (name, namespace, Post.name), and log at info when
// each of a controller's sources starts. With this one, a reconciliation's lines carry the object's name and any
// namespace. controller-runtime's lines about the controller starting and stopping are at debug; its errors remain
// errors.
func ControllerLogConstructor(log logr.Logger, controller string) func(*reconcile.Request) logr.Logger {
	log = log.WithValues("controller", controller)
	return func(r *reconcile.Request) logr.Logger {
		if r == nil {
			return log.V(1)
		}
		return named(log, r.Namespace, r.Name)
	}
}

// WebhookLogger is the log constructor of a webhook. Lines about a request carry the object's name and the request's
// id, which is also in the API server's audit log.
func WebhookLogger(log logr.Logger, r *admission.Request) logr.Logger {
	if r == nil {
		return log
	}
	return named(log, r.Namespace, r.Name).WithValues("requestID", r.UID)
}

func named(log logr.Logger, namespace, name string) logr.Logger {
	if namespace != "" {
		log = log.WithValues("namespace", namespace)
	}
	return log.WithValues("name", name)
}
