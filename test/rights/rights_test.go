// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rights_test checks the permissions that Herald's service accounts have in a cluster with config/rbac as
// shipped. An attacker who controls one of the processes has the same permissions.
package rights_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/test/envtest"
)

func TestRights(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "rights of the two accounts")
}

// The suite's namespaces: a team's, another team's with a misused RoleBinding, and one without a team.
const (
	ofTeam  = "team-acme"
	misused = "team-misused"
	foreign = "shop"
)

var (
	admin client.Client
	// adminConfig is the client configuration of an administrator.
	adminConfig *rest.Config
	// manager and apiserver have the permissions of an installation. powerful acts as the manager but with all
	// permissions for the kinds that the policies cover, so only the policies restrict it. broken is its equivalent for
	// the apiserver.
	manager, powerful, apiserver, broken client.Client
)

var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(GinkgoLogr)
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	env, err := envtest.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	admin, adminConfig = env.Client, env.Config
	Expect(cluster.ApplyFolders(ctx, admin, filepath.Join("..", "..", "config", "rbac"))).To(Succeed())
	grantAll(ctx)
	manager, powerful = as("herald-manager"), as("herald-manager", "powerful")
	apiserver, broken = as("herald-apiserver"), as("herald-apiserver", "powerful")

	for name, labels := range map[string]map[string]string{
		ofTeam: {v1alpha1.TeamLabel: "acme"}, misused: {v1alpha1.TeamLabel: "misused"}, foreign: nil,
	} {
		Expect(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})).To(Succeed())
	}
	theirs := func(b *rbacv1.RoleBinding) { b.Name, b.Subjects[0].Name = "theirs", "default" }
	for _, b := range []*rbacv1.RoleBinding{
		binding("kube-system", theirs),
		binding(misused, theirs),
		binding(misused, func(b *rbacv1.RoleBinding) { b.RoleRef.Name = "view" }),
	} {
		Expect(admin.Create(ctx, b)).To(Succeed())
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ofTeam, Name: "herald-team-secrets"}}
	Expect(admin.Create(ctx, role)).To(Succeed())
	Expect(admin.Create(ctx, key())).To(Succeed())
	Expect(admin.Create(ctx, keyOf("k-ada", "ada"))).To(Succeed())
	for _, o := range []client.Object{
		applied(), withLastAuthor(ofTeam), withLastAuthor(foreign), acme(), draft(), database(), account(), copied("1"),
		copied("1", func(s *corev1.Secret) { s.Name = "herald-credentials" }), uploads(),
	} {
		Expect(admin.Create(ctx, o)).To(Succeed())
	}
	Expect(storeMedia(ctx)).To(Succeed())
	waitForPolicies(ctx)
})

// as acts as one of the installation's accounts, with the given groups.
func as(account string, groups ...string) client.Client {
	GinkgoHelper()
	config := rest.CopyConfig(adminConfig)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:herald-system:" + account, Groups: groups}
	c, err := client.New(config, client.Options{Scheme: admin.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// grantAll grants the group "powerful" all the permissions that RBAC would otherwise deny.
func grantAll(ctx context.Context) {
	GinkgoHelper()
	Expect(admin.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "powerful"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"", rbacv1.GroupName}, Verbs: []string{"*"},
		Resources: []string{"namespaces", "secrets", "rolebindings", "clusterroles", "roles"},
	}, {
		APIGroups: []string{v1alpha1.GroupVersion.Group, eventsv1.GroupName}, Verbs: []string{"*"}, Resources: []string{"*"},
	}}})).To(Succeed())
	Expect(admin.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "powerful"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "powerful"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "powerful"}},
	})).To(Succeed())
}

// waitForPolicies waits until the API server enforces every policy, which happens shortly after they are stored.
func waitForPolicies(ctx context.Context) {
	GinkgoHelper()
	for policy, attempt := range map[string]func() error{
		"herald-manager-role-bindings": func() error { return powerful.Create(ctx, binding("kube-system"), client.DryRunAll) },
		"herald-manager-namespaces":    func() error { return powerful.Create(ctx, namespace("probe", ""), client.DryRunAll) },
		"herald-manager-secrets": func() error {
			return powerful.Create(ctx, secret(ofTeam, corev1.SecretTypeServiceAccountToken), client.DryRunAll)
		},
		"herald-apiserver-secrets": func() error { return broken.Create(ctx, secret(foreign, corev1.SecretTypeOpaque), client.DryRunAll) },
		"herald-apiserver-connections": func() error {
			return broken.Create(ctx, connected(foreign), client.DryRunAll)
		},
		"herald-apiserver-keys":      func() error { return patchKey(ctx, `{"status":{"observedGeneration":7}}`, client.DryRunAll) },
		"herald-manager-posts":       func() error { return powerful.Delete(ctx, draft(), client.DryRunAll) },
		"herald-manager-teams":       func() error { return powerful.Delete(ctx, acme(), client.DryRunAll) },
		"herald-manager-media":       func() error { return powerful.Delete(ctx, pending(), client.DryRunAll) },
		"herald-manager-connections": func() error { return powerful.Delete(ctx, applied(), client.DryRunAll) },
		"herald-apiserver-posts":     func() error { return broken.Delete(ctx, draft(), client.DryRunAll) },
		"herald-apiserver-media":     func() error { return broken.Delete(ctx, pending(), client.DryRunAll) },
		"herald-apiserver-schedules": func() error { return broken.Create(ctx, recurring("probe"), client.DryRunAll) },
		"herald-apiserver-notifiers": func() error { return broken.Create(ctx, reporting(), client.DryRunAll) },
		"herald-usages":              func() error { return broken.Create(ctx, usage(foreign), client.DryRunAll) },
		"herald-manager-budgets":     func() error { return manager.Create(ctx, bounding(foreign), client.DryRunAll) },
		"herald-apiserver-grants":    func() error { return broken.Create(ctx, grant(foreign), client.DryRunAll) },
		"herald-events":              func() error { return broken.Create(ctx, forged(), client.DryRunAll) },
	} {
		Eventually(attempt).Should(MatchError(ContainSubstring(policy)))
	}
}

// binding returns the RoleBinding that the manager creates in a namespace, with the edits.
func binding(namespace string, edits ...func(*rbacv1.RoleBinding)) *rbacv1.RoleBinding {
	b := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "herald-manager-secrets"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "herald-team-secrets"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "herald-system", Name: "herald-manager"}},
	}
	for _, edit := range edits {
		edit(b)
	}
	return b
}

// credentials returns the RoleBinding that the manager creates for the apiserver, with the edits.
func credentials(namespace string, edits ...func(*rbacv1.RoleBinding)) *rbacv1.RoleBinding {
	return binding(namespace, append([]func(*rbacv1.RoleBinding){func(b *rbacv1.RoleBinding) {
		b.Name, b.RoleRef.Name, b.Subjects[0].Name = "herald-apiserver-credentials", "herald-team-credentials", "herald-apiserver"
	}}, edits...)...)
}

func namespace(name, team string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if team != "" {
		n.Labels = map[string]string{v1alpha1.TeamLabel: team}
	}
	return n
}

func secret(namespace string, kind corev1.SecretType) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, GenerateName: "s-", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"},
		},
		Type: kind,
	}
}

// ofAccount returns the Secret that the apiserver creates when a user connects an account, with the edits.
func ofAccount(namespace string, edits ...func(*corev1.Secret)) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "x-" + strings.Repeat("a", 16) + "-" + strings.Repeat("b", 10),
			Labels:          map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginWeb},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Connection", Name: "x", UID: "1"}},
		},
		Type: corev1.SecretTypeOpaque,
	}
	for _, edit := range edits {
		edit(s)
	}
	return s
}

// key returns the APIKey that the apiserver reads.
func key() *v1alpha1.APIKey {
	return &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Namespace: ofTeam, Name: "ci"}}
}

// newKey is a name like those that the apiserver generates.
var newKey = "k-" + strings.Repeat("a", 16)

// keyOf returns an APIKey that a user created in the web application.
func keyOf(name, author string) *v1alpha1.APIKey {
	return &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{
		Namespace: ofTeam, Name: name,
		Labels: map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginWeb}, Annotations: map[string]string{v1alpha1.AuthorAnnotation: author},
	}}
}

// made is a Connection's name as the apiserver generates it, and ofMade is the prefix of its Secrets.
const (
	made   = "x-aaaaaaaaaaaaaaaa"
	ofMade = made + "-"
)

// connected returns the Connection that the apiserver creates when a user connects an account, with the edits.
func connected(namespace string, edits ...func(*v1alpha1.Connection)) *v1alpha1.Connection {
	secret := ofMade + strings.Repeat("b", 10)
	c := &v1alpha1.Connection{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: made, Labels: map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginWeb},
			Annotations: map[string]string{v1alpha1.AuthorAnnotation: "ada", v1alpha1.MadeSecretPrefix + secret: "2026-12-01T09:00:00Z"},
		},
		Spec: v1alpha1.ConnectionSpec{
			Platform: v1alpha1.PlatformX, AccountID: "1", CredentialsSecretRef: v1alpha1.LocalReference{Name: secret},
		},
	}
	for _, edit := range edits {
		edit(c)
	}
	return c
}

// useSecret makes a Connection refer to another Secret, with the required annotation.
func useSecret(name string) func(*v1alpha1.Connection) {
	return func(c *v1alpha1.Connection) {
		c.Spec.CredentialsSecretRef.Name = name
		c.Annotations[v1alpha1.MadeSecretPrefix+name] = "2026-12-01T09:00:00Z"
	}
}

// applied returns a Connection that a user applied.
func applied() *v1alpha1.Connection {
	return connected(ofTeam, func(c *v1alpha1.Connection) {
		c.Name, c.Labels, c.Spec.CredentialsSecretRef.Name = "acme-x", map[string]string{"app": "a"}, "acme-x"
		c.Annotations, c.Finalizers = map[string]string{"note": "ours"}, []string{"example.com/kept"}
	})
}

// withLastAuthor returns a Connection annotated with its last author, as the apiserver does before disconnecting.
func withLastAuthor(namespace string) *v1alpha1.Connection {
	return connected(namespace, func(c *v1alpha1.Connection) {
		c.Name, c.Annotations[v1alpha1.LastAuthorAnnotation] = "x-dddddddddddddddd", "ada"
	})
}

// patchConnection patches the applied Connection as the apiserver, regardless of its roles.
func patchConnection(ctx context.Context, patch string) error {
	return broken.Patch(ctx, applied(), client.RawPatch(types.MergePatchType, []byte(patch)), client.DryRunAll)
}

// planted is a patch that adds a token to a key.
var planted = `{"spec":{"tokens":[{"name":"mine","sha256":"` + strings.Repeat("a", 64) + `"}]}}`

// event returns an event about the key.
func event() *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: ofTeam, Name: "e"}, EventTime: metav1.NewMicroTime(time.Unix(0, 0)), Type: corev1.EventTypeNormal,
		ReportingController: "herald-apiserver", ReportingInstance: "a", Action: "PersonActed", Reason: "KeyRevokedByPerson",
		Regarding: corev1.ObjectReference{Kind: "APIKey", Namespace: ofTeam, Name: "ci"},
	}
}

// web returns the Secret that the apiserver's replicas share.
func web() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "herald-system", Name: "herald-web"}}
}

// patchKey patches the key's status with the apiserver's permissions.
func patchKey(ctx context.Context, patch string, options ...client.SubResourcePatchOption) error {
	return apiserver.Status().Patch(ctx, key(), client.RawPatch(types.MergePatchType, []byte(patch)), options...)
}

// The expected rejection of a request: none, by the account's roles, or by a policy.
const (
	nobody = ""
	roles  = "cannot"
	grants = "is attempting to grant RBAC permissions not currently held"
	policy = "ValidatingAdmissionPolicy"
)

// outcomeIs checks that a request was rejected with all of the given words, or accepted if the first is nobody.
func outcomeIs(err error, words ...string) {
	GinkgoHelper()
	if words[0] == nobody {
		Expect(err).NotTo(HaveOccurred())
		return
	}
	Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
	for _, word := range words {
		Expect(err).To(MatchError(ContainSubstring(word)))
	}
}

var _ = DescribeTable("The manager creates a RoleBinding", func(ctx SpecContext, b *rbacv1.RoleBinding, words ...string) {
	outcomeIs(manager.Create(ctx, b, client.DryRunAll), words...)
},
	Entry("in a team's namespace, as its controller does", binding(ofTeam), nobody),
	Entry("for the apiserver in a team's namespace, as its controller does", credentials(ofTeam), nobody),
	Entry("for the apiserver outside team namespaces, where it could plant Secrets", credentials(foreign), policy, "team namespaces"),
	Entry("for the apiserver to the manager's role, which can read every token", credentials(ofTeam, func(b *rbacv1.RoleBinding) {
		b.RoleRef.Name = "herald-team-secrets"
	}), policy, "can only bind the ClusterRole"),
	Entry("for the apiserver in the manager's binding, which has the same effect", binding(ofTeam, func(b *rbacv1.RoleBinding) {
		b.Subjects[0].Name = "herald-apiserver"
	}), policy, "can only bind roles to"),
	Entry("for a user in the apiserver's binding, who could plant Secrets", credentials(ofTeam, func(b *rbacv1.RoleBinding) {
		b.Subjects[0] = rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "mallory"}
	}), policy, "can only bind roles to"),
	Entry("in kube-system, to read Kubernetes' own Secrets", binding("kube-system"), policy, "team namespaces"),
	Entry("outside team namespaces, to read the Secrets there", binding(foreign), policy, "team namespaces"),
	Entry("in its own namespace", binding("herald-system"), policy, "team namespaces"),
	Entry("with another name, under which it would never be removed", binding(ofTeam, func(b *rbacv1.RoleBinding) { b.Name = "mine" }), policy, "can only write the RoleBindings"),
	Entry("with a generated name, which is another name", binding(ofTeam, func(b *rbacv1.RoleBinding) {
		b.Name, b.GenerateName = "", "herald-manager-secrets"
	}), policy, "can only write the RoleBindings"),
	Entry("for a user, who could read the team's Secrets", binding(ofTeam, func(b *rbacv1.RoleBinding) {
		b.Subjects[0] = rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "mallory"}
	}), policy, "can only bind roles to"),
	Entry("for another service account, which could read them too", binding(ofTeam, func(b *rbacv1.RoleBinding) { b.Subjects[0].Name = "herald-apiserver" }), policy, "can only bind roles to"),
	Entry("for a service account of that name in another namespace", binding(ofTeam, func(b *rbacv1.RoleBinding) {
		b.Subjects[0].Namespace = foreign
	}), policy, "can only bind roles to"),
	Entry("for an additional subject", binding(ofTeam, func(b *rbacv1.RoleBinding) {
		b.Subjects = append(b.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"})
	}), policy, "can only bind roles to"),
	Entry("without subjects, which has no purpose", binding(ofTeam, func(b *rbacv1.RoleBinding) { b.Subjects = nil }), policy, "can only bind roles to"),
	Entry("to another role, which it may not bind", binding(ofTeam, func(b *rbacv1.RoleBinding) { b.RoleRef.Name = "cluster-admin" }), grants),
)

var _ = DescribeTable("With any roles, the manager is restricted by policies: it", func(ctx SpecContext, attempt func(context.Context) error, words ...string) {
	outcomeIs(attempt(ctx), words...)
},
	Entry("binds another role", func(ctx context.Context) error {
		return powerful.Create(ctx, binding(ofTeam, func(b *rbacv1.RoleBinding) { b.RoleRef.Name = "cluster-admin" }), client.DryRunAll)
	}, policy, "can only bind the ClusterRole"),
	Entry("binds a Role with the ClusterRole's name", func(ctx context.Context) error {
		return powerful.Create(ctx, binding(ofTeam, func(b *rbacv1.RoleBinding) { b.RoleRef.Kind = "Role" }), client.DryRunAll)
	}, policy, "can only bind the ClusterRole"),
	Entry("deletes another program's binding in kube-system", func(ctx context.Context) error {
		return powerful.Delete(ctx, binding("kube-system", func(b *rbacv1.RoleBinding) { b.Name = "theirs" }), client.DryRunAll)
	}, policy, "can only write the RoleBindings"),
	Entry("deletes another program's binding in a team's namespace", func(ctx context.Context) error {
		return powerful.Delete(ctx, binding(misused, func(b *rbacv1.RoleBinding) { b.Name = "theirs" }), client.DryRunAll)
	}, policy, "can only write the RoleBindings"),
	Entry("assigns another namespace to a team", func(ctx context.Context) error {
		return powerful.Patch(ctx, namespace(foreign, ""), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"social.herald.dev/team":"x"}}}`)), client.DryRunAll)
	}, policy, "not change or delete"),
	Entry("deletes a namespace", func(ctx context.Context) error {
		return powerful.Delete(ctx, namespace(ofTeam, ""), client.DryRunAll)
	}, policy, "not change or delete"),
)

var _ = DescribeTable("With its installed roles, the manager", func(ctx SpecContext, attempt func(context.Context) error, words ...string) {
	outcomeIs(attempt(ctx), words...)
},
	Entry("deletes its binding if it refers to another role, to correct it", func(ctx context.Context) error {
		return manager.Delete(ctx, binding(misused), client.DryRunAll)
	}, nobody),
	Entry("deletes another program's binding", func(ctx context.Context) error {
		return manager.Delete(ctx, binding(misused, func(b *rbacv1.RoleBinding) { b.Name = "theirs" }), client.DryRunAll)
	}, roles),
	Entry("reads another program's binding", func(ctx context.Context) error {
		return manager.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "theirs"}, &rbacv1.RoleBinding{})
	}, roles),
	Entry("lists its bindings, for its cache", func(ctx context.Context) error {
		return manager.List(ctx, &rbacv1.RoleBindingList{}, client.MatchingFields{"metadata.name": "herald-manager-secrets"})
	}, nobody),
	Entry("lists all bindings", func(ctx context.Context) error { return manager.List(ctx, &rbacv1.RoleBindingList{}) }, roles),
	Entry("creates a namespace for a team", func(ctx context.Context) error {
		return manager.Create(ctx, namespace("team-new", "new"), client.DryRunAll)
	}, nobody),
	Entry("creates a namespace without the label", func(ctx context.Context) error {
		return manager.Create(ctx, namespace("new", ""), client.DryRunAll)
	}, policy, "team namespaces"),
	Entry("creates a namespace with a name of Kubernetes' own", func(ctx context.Context) error {
		return manager.Create(ctx, namespace("kube-new", "new"), client.DryRunAll)
	}, policy, "team namespaces"),
	Entry("assigns another namespace to a team", func(ctx context.Context) error {
		return manager.Patch(ctx, namespace(foreign, ""), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"social.herald.dev/team":"x"}}}`)), client.DryRunAll)
	}, roles),
	Entry("reads a Secret of kube-system", func(ctx context.Context) error {
		return manager.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "crown"}, &corev1.Secret{})
	}, roles),
)

var _ = Describe("In a team's namespace the manager", func() {
	It("writes Secrets after binding the role, but no service account token Secrets", func(ctx SpecContext) {
		Expect(manager.Create(ctx, binding(ofTeam))).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, binding(ofTeam))).To(Succeed()) })
		Eventually(func() error { return manager.Create(ctx, ownedBy("APIKey", "ci-token"), client.DryRunAll) }).Should(Succeed())
		outcomeIs(manager.Create(ctx, secret(ofTeam, corev1.SecretTypeServiceAccountToken), client.DryRunAll), policy, "ServiceAccount's token")
	})
})

var _ = DescribeTable("The apiserver", func(ctx SpecContext, attempt func(context.Context) error, words ...string) {
	outcomeIs(attempt(ctx), words...)
},
	Entry("records when a key was last used", func(ctx context.Context) error {
		return patchKey(ctx, `{"status":{"lastUsedAt":"2026-12-01T09:00:00Z"}}`)
	}, nobody),
	Entry("plants the hash of a token", func(ctx context.Context) error {
		return patchKey(ctx, `{"status":{"tokens":[{"name":"token","createdAt":"2026-12-01T09:00:00Z","sha256":"`+strings.Repeat("a", 64)+`"}]}}`)
	}, policy, "can only change lastUsedAt"),
	Entry("resets the manager's conditions", func(ctx context.Context) error {
		return patchKey(ctx, `{"status":{"conditions":[],"observedGeneration":9}}`)
	}, policy, "can only change lastUsedAt"),
	Entry("creates a key for a user", func(ctx context.Context) error { return apiserver.Create(ctx, keyOf(newKey, "ada"), client.DryRunAll) }, nobody),
	Entry("creates a key without an author", func(ctx context.Context) error { return apiserver.Create(ctx, keyOf(newKey, ""), client.DryRunAll) }, policy, "for a user named in"),
	Entry("creates a key without its label", func(ctx context.Context) error {
		k := keyOf(newKey, "ada")
		k.Labels = nil
		return apiserver.Create(ctx, k, client.DryRunAll)
	}, policy, "for a user named in"),
	Entry("creates a key outside team namespaces", func(ctx context.Context) error {
		k := keyOf(newKey, "ada")
		k.Namespace = foreign
		return apiserver.Create(ctx, k, client.DryRunAll)
	}, policy, "team namespaces"),
	Entry("creates a key with a name that users choose", func(ctx context.Context) error {
		return apiserver.Create(ctx, keyOf("ci-too", "ada"), client.DryRunAll)
	}, policy, "a generated name"),
	Entry("creates a key that cannot be deleted", func(ctx context.Context) error {
		k := keyOf(newKey, "ada")
		k.Finalizers = []string{"example.com/kept"}
		return apiserver.Create(ctx, k, client.DryRunAll)
	}, policy, "without owners and finalizers"),
	Entry("adds a token to a user's key", func(ctx context.Context) error {
		return change(ctx, apiserver, keyOf("k-ada", "ada"), `{`+signature+`,`+planted[1:])
	}, nobody),
	Entry("adds a token to a user's key without a last author", func(ctx context.Context) error {
		return change(ctx, apiserver, keyOf("k-ada", "ada"), planted)
	}, policy, "for a user named in"),
	Entry("revokes a key without a last author", func(ctx context.Context) error {
		return change(ctx, apiserver, key(), `{"spec":{"revoked":true}}`)
	}, policy, "for a user named in"),
	Entry("adds an owner to a key, so that Kubernetes deletes it", func(ctx context.Context) error {
		return change(ctx, apiserver, key(), `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"a","uid":"1"}]}}`)
	}, policy, "in the metadata of"),
	Entry("changes the author of a key", func(ctx context.Context) error {
		return change(ctx, apiserver, keyOf("k-ada", "ada"), `{"metadata":{"annotations":{"social.herald.dev/author":"grace"}}}`)
	}, policy, "in the metadata of"),
	Entry("plants a token in an applied key", func(ctx context.Context) error {
		return apiserver.Patch(ctx, key(), client.RawPatch(types.MergePatchType, []byte(planted)), client.DryRunAll)
	}, policy, "can only revoke an APIKey"),
	Entry("extends the expiry of an applied key", func(ctx context.Context) error {
		return apiserver.Patch(ctx, key(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"expiresAt":"2900-01-01T00:00:00Z"}}`)), client.DryRunAll)
	}, policy, "can only revoke an APIKey"),
	Entry("changes a key", func(ctx context.Context) error {
		return apiserver.Patch(ctx, key(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"description":"x"}}`)), client.DryRunAll)
	}, policy, "can only revoke an APIKey"),
	Entry("labels an applied key as a user's", func(ctx context.Context) error {
		return apiserver.Patch(ctx, key(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"social.herald.dev/origin":"web"}}}`)), client.DryRunAll)
	}, policy, "cannot change the label"),
	Entry("removes the origin of a user's key", func(ctx context.Context) error {
		return apiserver.Patch(ctx, keyOf("k-ada", "ada"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"social.herald.dev/origin":null}}}`)), client.DryRunAll)
	}, policy, "cannot change the label"),
	Entry("revokes an applied key for a user", func(ctx context.Context) error {
		return apiserver.Patch(ctx, key(), client.RawPatch(types.MergePatchType, []byte(`{`+signature+`,"spec":{"revoked":true}}`)), client.DryRunAll)
	}, nobody),
	Entry("deletes a key, whose author and last use would be lost", func(ctx context.Context) error { return apiserver.Delete(ctx, key(), client.DryRunAll) }, roles),
	Entry("writes an event about a user's action", func(ctx context.Context) error { return apiserver.Create(ctx, eventFrom(), client.DryRunAll) }, nobody),
	Entry("reads events", func(ctx context.Context) error { return apiserver.List(ctx, &eventsv1.EventList{}) }, roles),
	Entry("deletes an event", func(ctx context.Context) error { return apiserver.Delete(ctx, event(), client.DryRunAll) }, roles),
	Entry("reads a Secret", func(ctx context.Context) error {
		return apiserver.Get(ctx, client.ObjectKey{Namespace: ofTeam, Name: "ci-token"}, &corev1.Secret{})
	}, roles),
	Entry("reads the Secret that its replicas share", func(ctx context.Context) error {
		return apiserver.Get(ctx, client.ObjectKeyFromObject(web()), &corev1.Secret{})
	}, nobody),
	Entry("writes that Secret", func(ctx context.Context) error {
		return change(ctx, apiserver, web(), `{"data":{"a":"YQ=="}}`)
	}, nobody),
	Entry("adds a finalizer to that Secret", func(ctx context.Context) error {
		return change(ctx, apiserver, web(), `{"metadata":{"finalizers":["example.com/kept"]}}`)
	}, policy, "can only change the data of"),
	Entry("lists that Secret, for its watch", func(ctx context.Context) error {
		return apiserver.List(ctx, &corev1.SecretList{}, client.InNamespace("herald-system"), client.MatchingFields{"metadata.name": "herald-web"})
	}, nobody),
	Entry("reads another Secret in its namespace", func(ctx context.Context) error {
		return apiserver.Get(ctx, client.ObjectKey{Namespace: "herald-system", Name: "herald-webhook-certificate"}, &corev1.Secret{})
	}, roles),
	Entry("lists the Secrets in its namespace", func(ctx context.Context) error {
		return apiserver.List(ctx, &corev1.SecretList{}, client.InNamespace("herald-system"))
	}, roles),
	Entry("creates a Secret in its own namespace", func(ctx context.Context) error {
		return apiserver.Create(ctx, secret("herald-system", corev1.SecretTypeOpaque), client.DryRunAll)
	}, roles),
	Entry("creates a Secret outside team namespaces", func(ctx context.Context) error {
		return apiserver.Create(ctx, secret(foreign, corev1.SecretTypeOpaque), client.DryRunAll)
	}, roles),
	Entry("binds a role", func(ctx context.Context) error { return apiserver.Create(ctx, credentials(ofTeam), client.DryRunAll) }, roles),
	Entry("reviews a user's permissions", func(ctx context.Context) error {
		return apiserver.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "herald:link", ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: ofTeam, Verb: "list", Resource: "posts"},
		}})
	}, nobody),
)

var _ = Describe("In a team's namespace the apiserver", func() {
	It("stores tokens after the manager has bound the role, and reads none", func(ctx SpecContext) {
		Expect(manager.Create(ctx, credentials(ofTeam))).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, credentials(ofTeam))).To(Succeed()) })
		stored := ofAccount(ofTeam)
		Eventually(func() error { return apiserver.Create(ctx, stored) }).Should(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(admin.Delete(ctx, stored)).To(Succeed()) })
		outcomeIs(apiserver.Get(ctx, client.ObjectKeyFromObject(stored), &corev1.Secret{}), roles)
		outcomeIs(apiserver.List(ctx, &corev1.SecretList{}, client.InNamespace(ofTeam)), roles)
		outcomeIs(apiserver.Patch(ctx, stored, client.RawPatch(types.MergePatchType, []byte(`{"data":{}}`))), roles)
		outcomeIs(apiserver.Delete(ctx, stored, client.DryRunAll), roles)
		outcomeIs(apiserver.Create(ctx, secret(ofTeam, corev1.SecretTypeServiceAccountToken), client.DryRunAll), policy, "ServiceAccount's token")
	})
})

var _ = DescribeTable("With any roles, the apiserver is restricted by policies: it creates a Secret", func(ctx SpecContext, s *corev1.Secret, words ...string) {
	outcomeIs(broken.Create(ctx, s, client.DryRunAll), words...)
},
	Entry("of an account that a user connects", ofAccount(ofTeam), nobody),
	Entry("outside team namespaces, for another tool", ofAccount(foreign), policy, "team namespaces"),
	Entry("in kube-system, for Kubernetes", ofAccount("kube-system"), policy, "team namespaces"),
	Entry("in its own namespace, for the manager", ofAccount("herald-system"), policy, "team namespaces"),
	Entry("that Kubernetes fills with a token", ofAccount(ofTeam, func(s *corev1.Secret) {
		s.Type, s.Annotations = corev1.SecretTypeServiceAccountToken, map[string]string{corev1.ServiceAccountNameKey: "default"}
	}), policy, "ServiceAccount's token"),
	Entry("with a certificate, which an Ingress may wait for", ofAccount(ofTeam, func(s *corev1.Secret) {
		s.Type, s.Data = corev1.SecretTypeTLS, map[string][]byte{corev1.TLSCertKey: {}, corev1.TLSPrivateKeyKey: {}}
	}), policy, "of type Opaque"),
	Entry("with another program's type", ofAccount(ofTeam, func(s *corev1.Secret) { s.Type = "helm.sh/release.v1" }), policy, "of type Opaque"),
	Entry("without its label", ofAccount(ofTeam, func(s *corev1.Secret) { s.Labels = nil }), policy, "the label social.herald.dev/origin=web"),
	Entry("with another origin", ofAccount(ofTeam, func(s *corev1.Secret) { s.Labels[v1alpha1.OriginLabel] = v1alpha1.OriginAPI }), policy, "the label"),
	Entry("without an owner, so it is never deleted", ofAccount(ofTeam, func(s *corev1.Secret) { s.OwnerReferences = nil }), policy, "the Connection or Notifier as their owner"),
	Entry("with an owner of its choice", ofAccount(ofTeam, func(s *corev1.Secret) { s.OwnerReferences[0].Kind = "Post" }), policy, "the Connection or Notifier as their owner"),
	Entry("with the name of an upload's Secret", ofAccount(ofTeam, func(s *corev1.Secret) {
		s.Name = "herald-uploads-0b7f6a1e-9d34-4c5a-8f7e-1a2b3c4d5e6f"
	}), policy, "a generated name"),
	Entry("with the name of a key's Secret", ofAccount(ofTeam, func(s *corev1.Secret) { s.Name = "demo-token" }), policy, "a generated name"),
)

var _ = DescribeTable("With any roles, the apiserver is restricted by policies: it creates a Connection", func(ctx SpecContext, c *v1alpha1.Connection, words ...string) {
	outcomeIs(broken.Create(ctx, c, client.DryRunAll), words...)
},
	Entry("of an account that a user connects", connected(ofTeam), nobody),
	Entry("outside team namespaces", connected(foreign), policy, "team namespaces"),
	Entry("without an author", connected(ofTeam, func(c *v1alpha1.Connection) { delete(c.Annotations, v1alpha1.AuthorAnnotation) }), policy, "for a user named in"),
	Entry("without its label", connected(ofTeam, func(c *v1alpha1.Connection) { c.Labels = nil }), policy, "for a user named in"),
	Entry("with a name that users choose", connected(ofTeam, func(c *v1alpha1.Connection) { c.Name = "acme-x-too" }), policy, "a generated name"),
	Entry("with another Secret of the team, which the manager would send to a platform", connected(ofTeam, useSecret("database")), policy, "a Secret whose name extends it"),
	Entry("with the Secret of another account", connected(ofTeam, useSecret("x-cccccccccccccccc-bbbbbbbbbb")), policy, "a Secret whose name extends it"),
	Entry("with a Secret whose name only has the same prefix", connected(ofTeam, useSecret(ofMade+"database")), policy, "a Secret with a generated name"),
	Entry("with a Secret that is not recorded, so it is never deleted", connected(ofTeam, func(c *v1alpha1.Connection) {
		c.Annotations = map[string]string{v1alpha1.AuthorAnnotation: "ada"}
	}), policy, "an annotation credentials.social.herald.dev/NAME"),
	Entry("with another program's Secret recorded as its own, which the manager would delete", connected(ofTeam, func(c *v1alpha1.Connection) {
		c.Annotations[v1alpha1.MadeSecretPrefix+"database"] = "2026-12-01T09:00:00Z"
	}), policy, "can only set those annotations"),
	Entry("that cannot be deleted", connected(ofTeam, func(c *v1alpha1.Connection) { c.Finalizers = []string{"example.com/kept"} }), policy, "a generated name"),
	Entry("with an owner of its choice", connected(ofTeam, func(c *v1alpha1.Connection) {
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "a", UID: "1"}}
	}), policy, "a generated name"),
)

var _ = DescribeTable("With any roles, the apiserver is restricted by policies: in an applied Connection it", func(ctx SpecContext, attempt func(context.Context) error, words ...string) {
	outcomeIs(attempt(ctx), words...)
},
	Entry("requests a check", func(ctx context.Context) error {
		return patchConnection(ctx, `{"metadata":{"annotations":{"social.herald.dev/probe-requested":"a"}}}`)
	}, nobody),
	Entry("records the Secret that it is about to create", func(ctx context.Context) error {
		return patchConnection(ctx, `{"metadata":{"annotations":{"credentials.social.herald.dev/`+ofMade+`bbbbbbbbbb":"2026-12-01T09:00:00Z"}}}`)
	}, nobody),
	Entry("switches to the new credentials, and records who connected it", func(ctx context.Context) error {
		return patchConnection(ctx, `{"metadata":{"annotations":{"social.herald.dev/author":"ada","social.herald.dev/probe-requested":"a",
			"credentials.social.herald.dev/`+ofMade+`bbbbbbbbbb":"2026-12-01T09:00:00Z"}},"spec":{"credentialsSecretRef":{"name":"`+ofMade+`bbbbbbbbbb"}}}`)
	}, nobody),
	Entry("records the user who is about to disconnect it", func(ctx context.Context) error { return patchConnection(ctx, `{`+signature+`}`) }, nobody),
	Entry("disconnects it for a user", func(ctx context.Context) error { return broken.Delete(ctx, withLastAuthor(ofTeam), client.DryRunAll) }, nobody),
	Entry("disconnects it without a last author", func(ctx context.Context) error {
		return broken.Delete(ctx, applied(), client.DryRunAll)
	}, policy, "can only delete Connections for a user named in"),
	Entry("disconnects many connections at once without their last author", func(ctx context.Context) error {
		return broken.DeleteAllOf(ctx, &v1alpha1.Connection{}, client.InNamespace(ofTeam), client.DryRunAll)
	}, policy, "can only delete Connections for a user named in"),
	Entry("disconnects one outside team namespaces", func(ctx context.Context) error {
		return broken.Delete(ctx, withLastAuthor(foreign), client.DryRunAll)
	}, policy, "team namespaces"),
	Entry("requests a check outside team namespaces", func(ctx context.Context) error {
		return broken.Patch(ctx, withLastAuthor(foreign), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"social.herald.dev/probe-requested":"a"}}}`)), client.DryRunAll)
	}, policy, "team namespaces"),
	Entry("uses a Secret that is not recorded", func(ctx context.Context) error {
		return patchConnection(ctx, `{"spec":{"credentialsSecretRef":{"name":"`+ofMade+`bbbbbbbbbb"}}}`)
	}, policy, "an annotation credentials.social.herald.dev/NAME"),
	Entry("uses another Secret of the team", func(ctx context.Context) error {
		return patchConnection(ctx, `{"spec":{"credentialsSecretRef":{"name":"database"}}}`)
	}, policy, "a Secret with a generated name"),
	Entry("switches to the new credentials without an author", func(ctx context.Context) error {
		return patchConnection(ctx, `{"metadata":{"annotations":{"credentials.social.herald.dev/`+ofMade+`bbbbbbbbbb":"2026-12-01T09:00:00Z"}},
			"spec":{"credentialsSecretRef":{"name":"`+ofMade+`bbbbbbbbbb"}}}`)
	}, policy, "for a user named in"),
	Entry("disables it", func(ctx context.Context) error { return patchConnection(ctx, `{"spec":{"disabled":true}}`) }, policy, "in the spec of a Connection"),
	Entry("records another program's Secret, so that the manager deletes it", func(ctx context.Context) error {
		return patchConnection(ctx, `{"metadata":{"annotations":{"credentials.social.herald.dev/database":"2026-12-01T09:00:00Z"}}}`)
	}, policy, "can only set those annotations"),
	Entry("sets another annotation", func(ctx context.Context) error {
		return patchConnection(ctx, `{"metadata":{"annotations":{"note":"mine"}}}`)
	}, policy, "can only set those annotations"),
	Entry("removes an annotation", func(ctx context.Context) error {
		return patchConnection(ctx, `{"metadata":{"annotations":{"note":null}}}`)
	}, policy, "only add and change annotations"),
	Entry("labels it as a user's", func(ctx context.Context) error {
		return patchConnection(ctx, `{"metadata":{"labels":{"social.herald.dev/origin":"web"}}}`)
	}, policy, "in the metadata of"),
	Entry("removes a finalizer", func(ctx context.Context) error {
		return patchConnection(ctx, `{"metadata":{"finalizers":null}}`)
	}, policy, "in the metadata of"),
	Entry("adds an owner", func(ctx context.Context) error {
		return patchConnection(ctx, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"a","uid":"1"}]}}`)
	}, policy, "in the metadata of"),
	Entry("writes its status", func(ctx context.Context) error {
		return broken.Status().Patch(ctx, applied(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"accountName":"other"}}`)), &client.SubResourcePatchOptions{
			PatchOptions: client.PatchOptions{DryRun: []string{metav1.DryRunAll}},
		})
	}, policy, "write the status"),
)

var _ = DescribeTable("With its installed roles, the apiserver", func(ctx SpecContext, attempt func(context.Context) error, words ...string) {
	outcomeIs(attempt(ctx), words...)
},
	Entry("connects an account", func(ctx context.Context) error { return apiserver.Create(ctx, connected(ofTeam), client.DryRunAll) }, nobody),
	Entry("disconnects one for a user", func(ctx context.Context) error {
		return apiserver.Delete(ctx, withLastAuthor(ofTeam), client.DryRunAll)
	}, nobody),
	Entry("disconnects one without a last author", func(ctx context.Context) error { return apiserver.Delete(ctx, applied(), client.DryRunAll) }, policy, "for a user named in"),
	Entry("writes an account's status", func(ctx context.Context) error {
		return apiserver.Status().Patch(ctx, applied(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"accountName":"other"}}`)))
	}, roles),
)

var _ = Describe("The hash of a token created by Herald", func() {
	tokenStatus := func(name, hash string) string {
		return `{"name":"` + name + `","createdAt":"2026-12-01T09:00:00Z","sha256":"` + strings.Repeat(hash, 64) + `"}`
	}
	It("is immutable, also for the manager, while the key lists the token", func(ctx SpecContext) {
		k := &v1alpha1.APIKey{
			ObjectMeta: metav1.ObjectMeta{Namespace: ofTeam, Name: "minted"},
			Spec:       v1alpha1.APIKeySpec{Tokens: []v1alpha1.APIKeyToken{{Name: "a"}, {Name: "b", SHA256: strings.Repeat("b", 64)}}},
		}
		Expect(admin.Create(ctx, k)).To(Succeed())
		write := func(patch string) error {
			return manager.Status().Patch(ctx, k, client.RawPatch(types.MergePatchType, []byte(patch)))
		}
		both := func(hash string) string {
			return `{"status":{"tokens":[` + tokenStatus("a", hash) + `,{"name":"b","createdAt":"2026-12-01T09:00:00Z"}]}}`
		}
		Expect(write(both("a"))).To(Succeed(), "the manager created it")
		for why, patch := range map[string]string{
			"another hash":              both("c"),
			"no hash, and another next": `{"status":{"tokens":[{"name":"a","createdAt":"2026-12-01T09:00:00Z"}]}}`,
			"no token, and it next":     `{"status":{"tokens":null}}`,
			"no status":                 `{"status":null}`,
		} {
			Expect(write(patch)).To(MatchError(ContainSubstring("never changes")), why)
		}
		Expect(write(`{"status":{"tokens":[`+tokenStatus("a", "a")+`],"lastUsedAt":"2026-12-01T09:00:00Z"}}`)).To(Succeed(), "the Secret created by users is no longer listed")
		Expect(admin.Patch(ctx, k, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"tokens":[{"name":"n"}]}}`)))).To(Succeed())
		Expect(write(`{"status":{"tokens":[`+tokenStatus("n", "d")+`]}}`)).To(Succeed(), "the key wants another token")
		Expect(admin.Patch(ctx, k, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"revoked":true}}`)))).To(Succeed())
		Expect(write(`{"status":{"tokens":null}}`)).To(Succeed(), "the key was revoked")
	})

	It("is also protected for the default token", func(ctx SpecContext) {
		k := &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Namespace: ofTeam, Name: "plain"}}
		Expect(admin.Create(ctx, k)).To(Succeed())
		write := func(hash string) error {
			return admin.Status().Patch(ctx, k, client.RawPatch(types.MergePatchType, []byte(`{"status":{"tokens":[`+tokenStatus("token", hash)+`]}}`)))
		}
		Expect(write("a")).To(Succeed())
		Expect(write("b")).To(MatchError(ContainSubstring("never changes")))
	})
})
