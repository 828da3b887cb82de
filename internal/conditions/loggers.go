// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// ControllerLogConstructor returns the log constructor of a controller, whose lines name each thing once. The default
// loggers of controller-runtime name an object three times (name, namespace, Post.name), and report at info that each
// of a controller's sources starts. The lines of a reconciliation have the name of the object, and its namespace if it
// has one. controller-runtime's lines about the start and end of the controller are at debug; its errors stay errors.
func ControllerLogConstructor(log logr.Logger, controller string) func(*reconcile.Request) logr.Logger {
	log = log.WithValues("controller", controller)
	return func(r *reconcile.Request) logr.Logger {
		if r == nil {
			return log.V(1)
		}
		return named(log, r.Namespace, r.Name)
	}
}

// WebhookLogger is the log constructor of a webhook. The lines about a request have the name of the object and the id
// of the request, which the audit log of the API server also has.
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
