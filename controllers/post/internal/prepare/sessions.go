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

// sessions keeps what carries authority over uploads, such as the addresses of
// upload sessions, in a Secret that belongs to the post and goes with it.
//
// Whoever may write Secrets in the team's namespace may write this one, too. So the
// status of the post, which nobody but Herald writes, remembers a hash of what it
// holds, and what does not fit is not used: it is as good as lost.
type sessions struct {
	client client.Client
	live   client.Reader
}

// Session is what the Secret says of one target's upload.
type Session struct {
	ContentHash string `json:"contentHash"`
	Checkpoint  string `json:"checkpoint"`
	Secret      string `json:"secret"`
}

// hash identifies a session; empty for one without a secret.
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

// hashOf identifies what is kept of an upload for a content.
func hashOf(contentHash string, part Prepared) string {
	return (&Session{ContentHash: contentHash, Checkpoint: part.Checkpoint, Secret: part.Secret}).hash()
}

// sessionOwner is whose upload it is.
type sessionOwner struct {
	post *v1alpha1.Post
	// target is the index in spec.targets, and hash that of its content.
	target int
	hash   string
	// recordedHash is the hash of the session that the post's status remembers; empty if
	// there is none.
	recordedHash string
	// foundCheckpoint is the checkpoint that was found in the Secret; what another
	// process has put there since is not replaced.
	foundCheckpoint string
}

func ownerOf(post *v1alpha1.Post, target int, hash string) sessionOwner {
	owner := sessionOwner{
		post:   &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: post.Namespace, Name: post.Name, UID: post.UID}},
		target: target, hash: hash,
	}
	if t := posting.Target(post, target); t != nil && t.Prepared != nil {
		owner.recordedHash = t.Prepared.SecretHash
	}
	return owner
}

// Session reads what is kept of a target's upload; nothing if there is nothing, or
// nothing that the post's status remembers.
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

// matches reports whether a session is the one that the post's status remembers.
func (o *sessionOwner) matches(kept *Session) bool {
	return o.recordedHash != "" && kept.hash() == o.recordedHash
}

// keyOf is the key of a target's upload in the Secret. replacedKeyOf is that of the upload
// whose place it took: a claim that remembers that one may be on its way while another
// process, which does not see the claim yet, begins an upload of its own.
func keyOf(target int) string         { return strconv.Itoa(target) }
func replacedKeyOf(target int) string { return strconv.Itoa(target) + "-replaced" }

// sessionsName is the name of the Secret of a post's uploads.
func sessionsName(post types.UID) string { return "herald-uploads-" + string(post) }

// errOtherSession is returned where another process has begun an upload of the
// same target meanwhile.
var errOtherSession = errors.New("another manager has begun this upload; going on with that one")

// load reads what is kept of an upload; nothing if there is nothing. Anyone who may
// write Secrets in the team's namespace may have written it.
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
		return nil, nil //nolint:nilnil // there is none, and that is no error
	case err != nil:
		return nil, fmt.Errorf("cannot read the Secret of the post's uploads: %w", err)
	}
	return &secret, nil
}

// store keeps what is there of an upload. Nothing of another process is replaced
// that this one has not seen.
func (s sessions) store(ctx context.Context, owner sessionOwner, now Prepared) error {
	data, err := json.Marshal(Session{ContentHash: owner.hash, Checkpoint: now.Checkpoint, Secret: now.Secret}) //nolint:gosec // it goes into a Secret
	if err != nil {
		return fmt.Errorf("cannot write down the upload: %w", err)
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
		// Another target's upload may have been written down in between.
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

// remove forgets the uploads of a post of which nothing is left to do.
func (s sessions) remove(ctx context.Context, post *v1alpha1.Post) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: post.Namespace, Name: sessionsName(post.UID)}}
	if err := client.IgnoreNotFound(s.client.Delete(ctx, secret)); err != nil {
		return fmt.Errorf("cannot remove the Secret of the post's uploads: %w", err)
	}
	return nil
}

// Discard stops what is being prepared for a post that needs nothing more, and
// removes what was kept of it. What cannot be removed now goes with the post, which
// owns the Secret.
func (p *Preparer) Discard(ctx context.Context, m *Preparations, post *v1alpha1.Post, secretKept bool) error {
	kept := secretKept || m.HasSecret()
	m.DropAll()
	if !kept {
		return nil
	}
	return p.sessions.remove(ctx, post)
}

// HasUploadSecret reports whether a Secret of uploads is known to exist.
func HasUploadSecret(status *v1alpha1.PostStatus) bool {
	for i := range status.Targets {
		if p := status.Targets[i].Prepared; p != nil && p.Secret {
			return true
		}
	}
	return false
}
