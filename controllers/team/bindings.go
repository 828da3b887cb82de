// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package team

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/kubeclient"
)

// RoleBindings returns the cache options for role bindings: the manager may list and watch only its RoleBinding.
func (n Names) RoleBindings() cache.ByObject { return named(n.RoleBinding) }

// named selects objects by name in all namespaces. With RBAC's resourceNames, only a single name can be listed or
// watched.
func named(name string) cache.ByObject {
	return cache.ByObject{Field: fields.OneTermEqualSelector(metav1.ObjectNameField, name)}
}

// watchCredentials watches the apiserver's role bindings, and their cluster role, which exists only with the web
// application. The manager's cache selects one name per kind, so these have a separate cache.
func (r *Reconciler) watchCredentials(mgr ctrl.Manager, ctl *builder.Builder, byNamespace func(func(client.Object) string) handler.EventHandler) error {
	credentials, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), DefaultNamespaces: kubeclient.CacheByNamespace(r.Namespaces),
		ByObject: map[client.Object]cache.ByObject{
			&rbacv1.RoleBinding{}: named(r.Names.CredentialsBinding), &rbacv1.ClusterRole{}: named(r.Names.CredentialsRole),
		},
	})
	if err != nil {
		return fmt.Errorf("cannot watch the apiserver's role bindings: %w", err)
	}
	if err := mgr.Add(credentials); err != nil {
		return fmt.Errorf("cannot watch the apiserver's role bindings: %w", err)
	}
	metadata := func(kind string) client.Object {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind))
		return object
	}
	ctl.WatchesRawSource(source.Kind(credentials, metadata("RoleBinding"), byNamespace(client.Object.GetNamespace)))
	ctl.WatchesRawSource(source.Kind(credentials, metadata("ClusterRole"), handler.EnqueueRequestsFromMapFunc(r.allTeams)))
	return nil
}

func (r *Reconciler) allTeams(ctx context.Context, _ client.Object) []reconcile.Request {
	var teams v1alpha1.TeamList
	if err := r.Client.List(ctx, &teams, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot list the teams whose apiserver's rights changed")
		return nil
	}
	requests := make([]reconcile.Request, len(teams.Items))
	for i := range teams.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&teams.Items[i])
	}
	r.syncs.recordChange(requests)
	return requests
}

func (r *Reconciler) bindAccounts(ctx context.Context, namespace string) error {
	owners, err := r.owners(ctx, r.Names.ClusterRole)
	if err != nil {
		return err
	}
	if err := r.bind(ctx, binding(namespace, r.Names.RoleBinding, r.Names.ClusterRole, r.Manager, owners)); err != nil {
		return err
	}
	if owners, err = r.owners(ctx, r.Names.CredentialsRole); err != nil {
		return err
	}
	if owners == nil {
		// There is no web application. Earlier bindings were deleted with their role.
		return nil
	}
	return r.bind(ctx, binding(namespace, r.Names.CredentialsBinding, r.Names.CredentialsRole, r.APIServer, owners))
}

// bind creates or corrects a role binding. Its roleRef is immutable, so a binding with another role is replaced.
func (r *Reconciler) bind(ctx context.Context, wanted *rbacv1.RoleBinding) error {
	var found rbacv1.RoleBinding
	err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(wanted), &found)
	switch {
	case apierrors.IsNotFound(err):
		err = r.Client.Create(ctx, wanted)
	case err != nil:
	case found.RoleRef != wanted.RoleRef:
		if err = r.Client.Delete(ctx, &found, client.Preconditions{UID: &found.UID}); err == nil {
			err = r.Client.Create(ctx, wanted)
		}
	case !equality.Semantic.DeepEqual(found.Subjects, wanted.Subjects) || !equality.Semantic.DeepEqual(found.OwnerReferences, wanted.OwnerReferences):
		found.Subjects, found.OwnerReferences = wanted.Subjects, wanted.OwnerReferences
		err = r.Client.Update(ctx, &found)
	}
	if err != nil {
		return fmt.Errorf("cannot give %s the rights of %s in namespace %q: %w", wanted.Subjects[0].Name, wanted.RoleRef.Name, wanted.Namespace, err)
	}
	return nil
}

func binding(namespace, name, role string, account rbacv1.Subject, owners []metav1.OwnerReference) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{managedBy: managedByHerald}, OwnerReferences: owners,
		},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{account},
	}
}

// owners returns the owner references of a role binding: the release's cluster role. Uninstalling the release therefore
// deletes the bindings, so that another account of the same name has no permissions. For a missing role, it returns no
// references.
func (r *Reconciler) owners(ctx context.Context, name string) ([]metav1.OwnerReference, error) {
	var role rbacv1.ClusterRole
	err := r.APIReader.Get(ctx, types.NamespacedName{Name: name}, &role)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read ClusterRole %s, to which role bindings belong: %w", name, err)
	}
	return []metav1.OwnerReference{{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole", Name: role.Name, UID: role.UID}}, nil
}
