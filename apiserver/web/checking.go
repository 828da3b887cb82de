// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
)

// storing is how long a new account may exist without its Secret. The apiserver creates the Connection first, because
// it owns the Secret, so the manager may check it before the Secret exists.
const storing = 15 * time.Second

func beingChecked(c *v1alpha1.Connection, now time.Time) bool {
	ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady)
	return ready == nil || ready.Reason == v1alpha1.ReasonCredentialsNotFound && now.Sub(c.CreationTimestamp.Time) < storing
}

// watch reloads a list of accounts while one of them is being checked.
func (s *Site) watch(v *visit, accounts []*v1alpha1.Connection) g.Node {
	waits := slices.ContainsFunc(accounts, func(c *v1alpha1.Connection) bool { return !c.Spec.Disabled && beingChecked(c, v.now) })
	return g.If(waits, g.Group{
		h.ID("accounts"), g.Attr("hx-get", v.path("connections")), g.Attr("hx-trigger", "load delay:1s"), g.Attr("hx-select", "ul.accounts"),
		g.Attr("hx-swap", "outerHTML"),
	})
}
