// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
)

// sessions stores upload sessions, such as secret upload URLs, in a Secret that the post owns.
//
// Anyone who may write Secrets in the team's namespace may write this one too. The post's status, which only Herald
// writes, therefore contains a hash of each session. A session that does not match its hash is not used, and counts as
// lost.
type sessions struct {
	client client.Client
	live   client.Reader
}

// Session is the entry of one target's upload in the Secret.
type Session struct {
	ContentHash string `json:"contentHash"`
	Checkpoint  string `json:"checkpoint"`
	Secret      string `json:"secret"`
}

func (s *Session) hash() string {
	if s.Secret == "" {
		return ""
	}
	data, err := json.Marshal(s) //nolint:gosec // it is hashed
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func hashOf(contentHash string, part Prepared) string {
	return (&Session{ContentHash: contentHash, Checkpoint: part.Checkpoint, Secret: part.Secret}).hash()
}

type sessionOwner struct {
	post         *v1alpha1.Post
	target       int
	hash         string
	recordedHash string
	// foundCheckpoint is the checkpoint that this process found in the Secret. Another process's newer one is kept.
	foundCheckpoint string
}

func ownerOf(post *v1alpha1.Post, target int, hash string) sessionOwner {
	owner := sessionOwner{
		post:   &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: post.Namespace, Name: post.Name, UID: post.UID}},
		target: target, hash: hash,
	}
	if t := posting.Of(post).Target(target); t != nil && t.Prepared != nil {
		owner.recordedHash = t.Prepared.SecretHash
	}
	return owner
}

// Session returns the session of a target's upload, or an empty one if none matches the post's status.
func (p *Preparer) Session(ctx context.Context, post *v1alpha1.Post, target int) (Session, error) {
	owner := ownerOf(post, target, "")
	secret, err := p.sessions.read(ctx, owner.post)
	if err != nil || secret == nil {
		return Session{}, err
	}
	for _, key := range []string{keyOf(target), replacedKeyOf(target)} {
		if kept := decodeSession(secret, key); owner.matches(&kept) {
			return kept, nil
		}
	}
	return Session{}, nil
}

func (o *sessionOwner) matches(kept *Session) bool {
	return o.recordedHash != "" && kept.hash() == o.recordedHash
}

// keyOf returns the key of a target's session in the Secret, and replacedKeyOf the key of the session that it replaced:
// a claim with that session may be in flight while another process, which does not see the claim, starts an upload.
func keyOf(target int) string         { return strconv.Itoa(target) }
func replacedKeyOf(target int) string { return strconv.Itoa(target) + "-replaced" }

func sessionsName(post types.UID) string { return "herald-uploads-" + string(post) }

var errOtherSession = errors.New("another manager has started this upload; continuing with that one")

// load returns the stored session of an upload, or an empty one. Its content is untrusted: anyone who may write Secrets
// in the team's namespace may have written it.
func (s sessions) load(ctx context.Context, owner sessionOwner) (Session, error) {
	secret, err := s.read(ctx, owner.post)
	if err != nil || secret == nil {
		return Session{}, err
	}
	return decodeSession(secret, keyOf(owner.target)), nil
}

func decodeSession(secret *corev1.Secret, key string) (kept Session) {
	if json.Unmarshal(secret.Data[key], &kept) != nil {
		return Session{}
	}
	return kept
}

func (s sessions) read(ctx context.Context, post *v1alpha1.Post) (*corev1.Secret, error) {
	var secret corev1.Secret
	err := s.live.Get(ctx, types.NamespacedName{Namespace: post.Namespace, Name: sessionsName(post.UID)}, &secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // a missing Secret is not an error
	case err != nil:
		return nil, fmt.Errorf("cannot read the Secret of the post's uploads: %w", err)
	}
	return &secret, nil
}

// store writes a session to the Secret. It does not replace a session of another process that this one has not read.
func (s sessions) store(ctx context.Context, owner sessionOwner, now Prepared) error {
	data, err := json.Marshal(Session{ContentHash: owner.hash, Checkpoint: now.Checkpoint, Secret: now.Secret}) //nolint:gosec // it goes into a Secret
	if err != nil {
		return fmt.Errorf("cannot store the upload session: %w", err)
	}
	key := keyOf(owner.target)
	for {
		secret, err := s.read(ctx, owner.post)
		if err != nil {
			return err
		}
		if secret == nil {
			err = s.client.Create(ctx, secretOf(owner.post, key, data))
		} else {
			kept := decodeSession(secret, key)
			if kept.Checkpoint != owner.foundCheckpoint && kept.ContentHash == owner.hash {
				return errOtherSession
			}
			if secret.Data == nil {
				secret.Data = map[string][]byte{}
			}
			if kept.Secret != "" && kept.Checkpoint != now.Checkpoint {
				secret.Data[replacedKeyOf(owner.target)] = secret.Data[key]
			}
			secret.Data[key] = data
			if err = s.client.Update(ctx, secret); apierrors.IsNotFound(err) {
				continue
			}
		}
		// Another target's session may have been written in the meantime.
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
}

func secretOf(post *v1alpha1.Post, key string, data []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: post.Namespace, Name: sessionsName(post.UID),
			Labels: map[string]string{"app.kubernetes.io/managed-by": "herald", "app.kubernetes.io/component": "uploads"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: "Post", Name: post.Name, UID: post.UID,
			}},
		},
		Data: map[string][]byte{key: data},
	}
}

func (s sessions) remove(ctx context.Context, post *v1alpha1.Post) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: post.Namespace, Name: sessionsName(post.UID)}}
	if err := client.IgnoreNotFound(s.client.Delete(ctx, secret)); err != nil {
		return fmt.Errorf("cannot remove the Secret of the post's uploads: %w", err)
	}
	return nil
}

// Discard stops the preparations of a finished post and deletes their Secret. If that fails, the garbage collector
// deletes the Secret with the post, which owns it.
func (p *Preparer) Discard(ctx context.Context, m *Preparations, post *v1alpha1.Post, secretKept bool) error {
	kept := secretKept || m.HasSecret()
	m.DropAll()
	if !kept {
		return nil
	}
	return p.sessions.remove(ctx, post)
}

// HasUploadSecret reports whether the status refers to a Secret with upload sessions.
func HasUploadSecret(status *v1alpha1.PostStatus) bool {
	for i := range status.Targets {
		if p := status.Targets[i].Prepared; p != nil && p.Secret {
			return true
		}
	}
	return false
}
