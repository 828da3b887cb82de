// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/kube"
)

var _ = Describe("Disconnecting an account as the web application does", func() {
	It("is permitted to the apiserver, with the user's name on the removed objects", func(ctx SpecContext) {
		noon := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
		config := rest.CopyConfig(adminConfig)
		config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:herald-system:herald-apiserver"}
		api, err := kube.NewClient(config, "rights-test")
		Expect(err).NotTo(HaveOccurred())
		connections := kube.NewConnections(api, nil, clock.RealClock{})

		conn := connected(ofTeam, func(c *v1alpha1.Connection) {
			c.Name, c.Finalizers = "x-eeeeeeeeeeeeeeee", []string{"example.com/kept"}
		})
		Expect(admin.Create(ctx, conn)).To(Succeed())
		Expect(connections.DeleteFor(ctx, conn, "", noon)).To(MatchError(ContainSubstring("for a user named in")), "no name is allowed")
		changed := &v1alpha1.Connection{}
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(conn), changed)).To(Succeed())
		Expect(changed.DeletionTimestamp).To(BeNil())
		Expect(apierrors.IsConflict(connections.DeleteFor(ctx, conn, "ada", noon))).To(BeTrue(), "the object was written since")

		Expect(connections.DeleteFor(ctx, changed, "ada", noon)).To(Succeed())
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(conn), changed)).To(Succeed())
		Expect(changed.DeletionTimestamp).NotTo(BeNil())
		Expect(changed.Annotations).To(And(HaveKeyWithValue(v1alpha1.LastAuthorAnnotation, "ada"),
			HaveKeyWithValue(v1alpha1.DisconnectedAnnotation, "2026-12-01T12:00:00Z")))
		changed.Finalizers = nil
		Expect(admin.Update(ctx, changed)).To(Succeed())
	})
})
