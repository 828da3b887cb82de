// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/apitoken"
)

const (
	// keyNameLength and tokenNameLength are the numbers of base32 characters after "k-" and "t-": 80 and 40 bits. The
	// names are not secret, only unique.
	keyNameLength, tokenNameLength = 16, 8
	// maxDescription and maxTokens are the schema's limits.
	maxDescription, maxTokens = 500, 2
)

// Keys reads and writes API keys in the Kubernetes API.
type Keys interface {
	List(ctx context.Context, namespace string) ([]v1alpha1.APIKey, error)
	Get(ctx context.Context, namespace, name string) (*v1alpha1.APIKey, error)
	Create(ctx context.Context, key *v1alpha1.APIKey) (*v1alpha1.APIKey, error)
	// Update stores the difference between two states of a key, with optimistic concurrency.
	Update(ctx context.Context, before, after *v1alpha1.APIKey) (*v1alpha1.APIKey, error)
}

// KeyState is a key's validity.
type KeyState string

// The states of a key.
const (
	KeyActive  KeyState = "active"
	KeyExpired KeyState = "expired"
	KeyRevoked KeyState = "revoked"
)

// APIKey is an API key for display.
type APIKey struct {
	ID, Description string
	State           KeyState
	CreatedAt       time.Time
	// ExpiresAt and LastUsedAt are zero for never. LastUsedAt is accurate to within an hour.
	ExpiresAt, LastUsedAt time.Time
	// Author is the user who created the key in the web application; empty for other keys.
	Author string
	// Permissions are what the key may do beyond posts.
	Permissions []v1alpha1.KeyPermission
	// Tokens are the key's one or two tokens, oldest first.
	Tokens []KeyToken
}

// KeyToken is one of a key's tokens.
type KeyToken struct {
	Name string
	// Shown is the token's prefix, for recognition; empty if unknown.
	Shown string
	// CreatedAt and ExpiresAt are zero if unknown, or for never.
	CreatedAt, ExpiresAt time.Time
	// Secret is the name of the Secret that contains the token; empty if there is none.
	Secret string
}

// NewToken is a newly generated token. It is shown once and never stored.
type NewToken struct {
	// Key is the id of the token's key, and Name the token's name within it.
	Key, Name string
	// Token is the secret. It must not be logged.
	Token string
}

// ListKeys returns the API keys of the caller's team, newest first.
func (s *Service) ListKeys(ctx context.Context, caller Caller) ([]APIKey, error) {
	found, err := s.Keys.List(ctx, caller.Namespace)
	if err != nil {
		return nil, fmt.Errorf("list the API keys: %w", err)
	}
	now := s.Clock.Now()
	keys := make([]APIKey, len(found))
	for i := range found {
		keys[i] = viewKey(&found[i], now)
	}
	slices.SortFunc(keys, func(a, b APIKey) int {
		if c := b.CreatedAt.Compare(a.CreatedAt); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return keys, nil
}

// CreateKey creates an API key with one token. A zero expiresAt means no expiry.
func (s *Service) CreateKey(ctx context.Context, caller Caller, description string, expiresAt time.Time, permissions ...v1alpha1.KeyPermission) (NewToken, error) {
	key := &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{
		Namespace: caller.Namespace, Name: "k-" + randomName(keyNameLength),
		Labels: map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginWeb}, Annotations: map[string]string{v1alpha1.AuthorAnnotation: caller.Author},
	}}
	key.Spec.Description, key.Spec.Permissions = strings.TrimSpace(description), permissions
	if !expiresAt.IsZero() {
		key.Spec.ExpiresAt = v1alpha1.NewTimePtr(expiresAt)
	}
	if errs := checkKey(key, s.Clock.Now()); len(errs) > 0 {
		return NewToken{}, invalid(errs)
	}
	if err := s.requireRoomForKey(ctx, caller.Namespace); err != nil {
		return NewToken{}, err
	}
	made := newToken(key)
	addToken(key, &made)
	created, err := createOnce(ctx,
		func() (*v1alpha1.APIKey, error) { return s.Keys.Create(ctx, key) },
		func() (*v1alpha1.APIKey, error) { return s.Keys.Get(ctx, key.Namespace, key.Name) })
	if refused := s.refused(key.Namespace, err); refused != nil {
		return NewToken{}, refused
	}
	if err != nil {
		return NewToken{}, fmt.Errorf("create an API key: %w", err)
	}
	s.Acted(ctx, caller, ActKeyCreated, created)
	return made, nil
}

// ofWeb reports whether a key was created in the web application. The tokens of other keys are declared by another
// tool, which would revert a change, and the apiserver has no permission to change them (config/rbac/policies.yaml).
func ofWeb(key *v1alpha1.APIKey) bool { return key.Labels[v1alpha1.OriginLabel] == v1alpha1.OriginWeb }

func notOfWeb(id string) *Error {
	return errorf(CodeConflict, "API key %s was not created in the web application; replace its token where it is declared, or revoke it and create a new one", id)
}

// RollKey adds a second token to one of the web application's keys. Both work until RemoveToken.
func (s *Service) RollKey(ctx context.Context, caller Caller, id string) (NewToken, error) {
	// All attempts write the same token, because an earlier write may take effect late.
	made := newToken(&v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Namespace: caller.Namespace, Name: id}})
	err := s.changeKey(ctx, caller, id, ActTokenAdded, func(key *v1alpha1.APIKey) error {
		switch state := stateOfKey(key, s.Clock.Now()); {
		case hasToken(key, made.Name):
			return nil // the response to the write was lost
		case !ofWeb(key):
			return notOfWeb(id)
		case state != KeyActive:
			return errorf(CodeConflict, "API key %s is %s; create a new one", id, state)
		case len(key.WantedTokens()) >= maxTokens:
			return errorf(CodeConflict, "API key %s already has two tokens; first remove the one that is no longer used", id)
		}
		key.Spec.Tokens = slices.Clone(key.WantedTokens())
		addToken(key, &made)
		return nil
	})
	if err != nil {
		return NewToken{}, err
	}
	return made, nil
}

// RemoveToken removes one of two tokens from a key that was created in the web application. The token stops working
// immediately. A missing token is not an error.
func (s *Service) RemoveToken(ctx context.Context, caller Caller, id, token string) error {
	return s.changeKey(ctx, caller, id, ActTokenRemoved, func(key *v1alpha1.APIKey) error {
		switch {
		case !hasToken(key, token):
			return nil
		case !ofWeb(key):
			return notOfWeb(id)
		case len(key.WantedTokens()) == 1:
			return errorf(CodeConflict, "this is the only token of API key %s; revoke the key instead", id)
		}
		isIt := func(t v1alpha1.APIKeyToken) bool { return t.Name == token }
		key.Spec.Tokens = slices.DeleteFunc(slices.Clone(key.WantedTokens()), isIt)
		setShownTokens(key, shownTokens(key))
		return nil
	})
}

// RevokeKey revokes an API key immediately and permanently. Revoking a revoked key is not an error.
func (s *Service) RevokeKey(ctx context.Context, caller Caller, id string) error {
	return s.changeKey(ctx, caller, id, ActKeyRevoked, func(key *v1alpha1.APIKey) error {
		key.Spec.Revoked = true
		return nil
	})
}

// changeKey applies change to a copy of a key's current state, writes any difference, and retries conflicts.
func (s *Service) changeKey(ctx context.Context, caller Caller, id string, act Act, change func(*v1alpha1.APIKey) error) error {
	lost := false
	var last error
	for range changeTries {
		key, err := s.readKey(ctx, caller, id)
		if err != nil {
			return err
		}
		wanted := key.DeepCopy()
		if refused := change(wanted); refused != nil {
			return refused
		}
		if v1alpha1.SemanticEqual(key.Spec, wanted.Spec) {
			if lost {
				s.Acted(ctx, caller, act, key)
			}
			return nil
		}
		signed(&wanted.ObjectMeta, caller)
		written, err := s.Keys.Update(ctx, key, wanted)
		switch {
		case err == nil:
			s.Acted(ctx, caller, act, written)
			return nil
		case apierrors.IsConflict(err):
			last = errorf(CodeConflict, "API key %s is being changed at the same time; try again", id)
		case answerLost(err) && ctx.Err() == nil:
			lost, last = true, fmt.Errorf("change an API key; the change may have been stored: %w", err)
		default:
			return fmt.Errorf("change an API key: %w", err)
		}
	}
	return last
}

func (s *Service) readKey(ctx context.Context, caller Caller, id string) (*v1alpha1.APIKey, error) {
	unknown := errorf(CodeNotFound, "this team has no API key %q", truncateID(id))
	if !validName(id) {
		return nil, unknown
	}
	key, err := s.Keys.Get(ctx, caller.Namespace, id)
	switch {
	case apierrors.IsNotFound(err):
		return nil, unknown
	case err != nil:
		return nil, fmt.Errorf("read an API key: %w", err)
	}
	return key, nil
}

func checkKey(key *v1alpha1.APIKey, now time.Time) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if n := utf8.RuneCountInString(key.Spec.Description); n > maxDescription {
		errs = append(errs, field.Invalid(spec.Child("description"), field.OmitValueType{},
			fmt.Sprintf("has %d characters and may have at most %d; shorten it", n, maxDescription)))
	}
	switch end := key.Spec.ExpiresAt; {
	case end == nil:
	case !end.After(now):
		errs = append(errs, field.Forbidden(spec.Child("expiresAt"), "must be in the future; leave it out for a key that never expires"))
	case end.Year() > lastYear:
		errs = append(errs, field.Forbidden(spec.Child("expiresAt"), fmt.Sprintf("must not be after the year %d", lastYear)))
	}
	return errs
}

func newToken(key *v1alpha1.APIKey) NewToken {
	return NewToken{Key: key.Name, Name: "t-" + randomName(tokenNameLength), Token: apitoken.New(key.Namespace, key.Name)}
}

func addToken(key *v1alpha1.APIKey, made *NewToken) {
	key.Spec.Tokens = append(key.Spec.Tokens, v1alpha1.APIKeyToken{Name: made.Name, SHA256: apitoken.Hash(key.Namespace, key.Name, made.Token)})
	shown := shownTokens(key)
	shown[made.Name] = apitoken.Shown(made.Token)
	setShownTokens(key, shown)
}

func randomName(length int) string { return strings.ToLower(rand.Text()[:length]) }

func hasToken(key *v1alpha1.APIKey, name string) bool {
	return slices.ContainsFunc(key.WantedTokens(), func(t v1alpha1.APIKeyToken) bool { return t.Name == name })
}

func shownTokens(key *v1alpha1.APIKey) map[string]string {
	shown := map[string]string{}
	for entry := range strings.SplitSeq(key.Annotations[v1alpha1.ShownTokensAnnotation], ",") {
		if name, beginning, ok := strings.Cut(entry, "="); ok {
			shown[name] = beginning
		}
	}
	return shown
}

func setShownTokens(key *v1alpha1.APIKey, shown map[string]string) {
	var entries []string
	for _, token := range key.WantedTokens() {
		if beginning := shown[token.Name]; beginning != "" {
			entries = append(entries, token.Name+"="+beginning)
		}
	}
	metav1.SetMetaDataAnnotation(&key.ObjectMeta, v1alpha1.ShownTokensAnnotation, strings.Join(entries, ","))
}

func viewKey(key *v1alpha1.APIKey, now time.Time) APIKey {
	view := APIKey{
		ID: key.Name, Description: key.Spec.Description, State: stateOfKey(key, now), CreatedAt: key.CreationTimestamp.Time,
		ExpiresAt: timeOf(key.Spec.ExpiresAt), LastUsedAt: timeOf(key.Status.LastUsedAt), Author: key.Annotations[v1alpha1.AuthorAnnotation], Permissions: key.Spec.Permissions,
	}
	shown := shownTokens(key)
	for _, wanted := range key.WantedTokens() {
		token := KeyToken{Name: wanted.Name, Shown: shown[wanted.Name], ExpiresAt: timeOf(key.EndOf(wanted))}
		if found := key.Status.Token(wanted.Name); found != nil {
			token.CreatedAt = found.CreatedAt.Time
			if found.Prefix != "" {
				token.Shown = found.Prefix
			}
			if found.SecretRef != nil {
				token.Secret = found.SecretRef.Name
			}
		}
		view.Tokens = append(view.Tokens, token)
	}
	return view
}

// stateOfKey returns a key's state. A key is active while one of its tokens is valid.
func stateOfKey(key *v1alpha1.APIKey, now time.Time) KeyState {
	if key.Spec.Revoked || key.DeletionTimestamp != nil {
		return KeyRevoked
	}
	good := slices.ContainsFunc(key.WantedTokens(), func(t v1alpha1.APIKeyToken) bool {
		end := key.EndOf(t)
		return end == nil || now.Before(end.Time)
	})
	if !good {
		return KeyExpired
	}
	return KeyActive
}

func timeOf(t *v1alpha1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}
