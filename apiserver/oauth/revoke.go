// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/limits"
)

// revoke serves token revocation (RFC 7009). An invalid token is not an error, because there is nothing to revoke.
func (s *Server) revoke(w http.ResponseWriter, r *http.Request) {
	form, wrong := readForm(w, r)
	switch {
	case wrong != nil:
		s.fail(w, r, wrong)
		return
	case form.Get("token") == "":
		s.fail(w, r, refusef(http.StatusBadRequest, invalidRequest, "token is missing"))
		return
	case s.Keys.Ready() != nil: // without keys a valid token cannot be recognized, and would remain valid
		s.fail(w, r, errNoKeys)
		return
	}
	if err := s.revokeToken(r.Context(), form.Get("token"), form.Get("client_id")); err != nil {
		s.fail(w, r, err)
		return
	}
	if wrong := s.stranger(r, limits.SurfaceOAuth); wrong != nil {
		wrong.write(w)
		return
	}
	w.WriteHeader(http.StatusOK)
}

// revokeToken revokes a token's grant, and with it all of the grant's tokens (RFC 7009, section 2.1).
func (s *Server) revokeToken(ctx context.Context, token, client string) error {
	var ref grantRef
	hash := ""
	if sealed, ok := strings.CutPrefix(token, TokenPrefix); ok {
		var access accessContent
		if s.Keys.Open(purposeAccess, sealed, &access) != nil {
			return nil //nolint:nilerr // an invalid token needs no revocation
		}
		ref = access.grantRef
	} else {
		hash = hashOf(token)
		named, ok := s.readRefresh(token)
		switch {
		case !ok:
			return nil
		case named.genuine, s.remembered(named, hash):
		case !s.Grants.HasSynced():
			return errStarting
		default:
			return nil
		}
		ref = grantRef{Namespace: named.namespace, Name: named.name}
	}
	if wrong := s.admit(ctx, toRevoke, ref); wrong != nil {
		return wrong
	}
	grant, err := s.live(ctx, ref)
	if _, gone := errors.AsType[*problem](err); gone {
		return nil
	}
	switch {
	case err != nil:
		return err
	case client != "" && grant.Spec.Client.ID != keyOfClient(client):
		return refusef(http.StatusBadRequest, invalidClient, "the token was issued to another client")
	case grant.Revoked():
		return nil
	case hash != "" && (grant.Status.Refresh == nil || !sameHash(grant.Status.Refresh.SHA256, hash)):
		return nil // the token was replaced
	}
	return s.revokeCompromised(ctx, grant, v1alpha1.GrantSignedOff, "The agent revoked its grant")
}

// List returns a team's grants, newest first, without those whose code was never redeemed.
func (s *Server) List(ctx context.Context, namespace string) ([]v1alpha1.OAuthGrant, error) {
	grants, err := s.Grants.ListLive(ctx, namespace)
	if err != nil {
		return nil, fmt.Errorf("list the agents' grants: %w", err)
	}
	grants = slices.DeleteFunc(grants, func(g v1alpha1.OAuthGrant) bool { return g.Status.RedeemedAt == nil })
	slices.SortFunc(grants, func(a, b v1alpha1.OAuthGrant) int {
		if c := b.CreationTimestamp.Compare(a.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return grants, nil
}

// State returns the reason for a grant's end, phrased as the end of a sentence, or "" while it is valid.
func (s *Server) State(grant *v1alpha1.OAuthGrant) string { return s.endReason(grant) }

// RevokeGrant revokes a grant on behalf of a user. Revoking a revoked grant is not an error. allowed returns an error
// unless the user may revoke the grant. Users may revoke their own grants, and any grant in a team whose grants they
// may update.
func (s *Server) RevokeGrant(ctx context.Context, caller bridge.Caller, name string, allowed func(*v1alpha1.OAuthGrant) error) error {
	unknown := &bridge.Error{Code: bridge.CodeNotFound, Message: "this team has no agent of that name"}
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return unknown
	}
	for range tries {
		grant, err := s.Grants.Live(ctx, caller.Namespace, name)
		switch {
		case apierrors.IsNotFound(err):
			return unknown
		case err != nil:
			return err
		}
		if err := allowed(grant); err != nil {
			return err
		}
		if grant.Revoked() {
			return nil
		}
		wanted := grant.DeepCopy()
		wanted.Spec.Revoked = true
		metav1.SetMetaDataAnnotation(&wanted.ObjectMeta, v1alpha1.LastAuthorAnnotation, caller.Author)
		written, err := s.Grants.Update(ctx, grant, wanted)
		if apierrors.IsConflict(err) {
			continue
		}
		if err == nil {
			s.AuditLog.Acted(ctx, caller, bridge.ActAgentRevoked, written)
		}
		return err
	}
	return errOvertaken
}
