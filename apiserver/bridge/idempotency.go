// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

// identify sets a new object's name: random, or derived from its Idempotency-Key. A derived name depends only on the
// team and the key, so the Kubernetes API itself rejects a second object, across replicas and restarts. An annotation
// holds the fingerprint that distinguishes different requests with the same key. Each agent's grant has its own
// namespace of keys, because an agent that may only write drafts must not use up the keys of an integration that
// publishes.
func identify(created *metav1.ObjectMeta, caller *Caller, prefix, key string, spec any) error {
	if key == "" {
		created.Name = prefix + strings.ToLower(rand.Text()[:idLength])
		return nil
	}
	asked, err := fingerprint(spec)
	if err != nil {
		return err
	}
	metav1.SetMetaDataAnnotation(created, v1alpha1.RequestAnnotation, asked)
	hashed := prefix + "\x00" + created.Namespace + "\x00" + key
	if grant := caller.grant(); grant != "" {
		hashed = "grant\x00" + grant + "\x00" + hashed // no prefix is "grant", so the two forms never collide
	}
	sum := sha256.Sum256([]byte(hashed))
	name := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:])
	created.Name = prefix + strings.ToLower(name[:idLength])
	return nil
}

// postName matches the names that identify gives to posts.
var postName = regexp.MustCompile(fmt.Sprintf("^%s[a-z2-7]{%d}$", postPrefix, idLength))

// IsCreated reports whether a post's name is one that the HTTP API or the web application generates. The policy
// herald-marks rejects such names, and annotations that name an author, from all other clients.
func IsCreated(name string) bool { return postName.MatchString(name) }

// fingerprintVersion is the version of the hashed content: the JSON of the requested spec.
const fingerprintVersion = "v1"

// fingerprintVersions are the versions that this release and earlier ones have written.
var fingerprintVersions = []string{fingerprintVersion}

// fingerprint returns the identity of a request's content, as "version:hash".
func fingerprint(spec any) (string, error) {
	asked, err := json.Marshal(spec)
	if err != nil {
		return "", fmt.Errorf("fingerprint a request: %w", err)
	}
	sum := sha256.Sum256(asked)
	return fingerprintVersion + ":" + hex.EncodeToString(sum[:]), nil
}

// sameFingerprint reports whether two fingerprints may belong to the same request. Different known versions cannot be
// compared and count as equal, so that a retry across an upgrade returns the object that it created. An unknown version
// never matches another.
func sameFingerprint(a, b string) bool {
	versionA, hashA := splitFingerprint(a)
	versionB, hashB := splitFingerprint(b)
	if versionA == versionB {
		return hashA == hashB
	}
	return slices.Contains(fingerprintVersions, versionA) && slices.Contains(fingerprintVersions, versionB)
}

// splitFingerprint parses a fingerprint. The first fingerprints had no version and were v1.
func splitFingerprint(f string) (version, hash string) {
	if version, hash, ok := strings.Cut(f, ":"); ok {
		return version, hash
	}
	return "v1", f
}

// earlier returns the post that an earlier request with the same key created, in its current state and without
// validating it again. found is false if the request must create a post.
func (s *Service) earlier(ctx context.Context, post *v1alpha1.Post) (detail PostDetail, found bool, err error) {
	if post.Annotations[v1alpha1.RequestAnnotation] == "" {
		return PostDetail{}, false, nil
	}
	made, err := s.Posts.Get(ctx, post.Namespace, post.Name)
	gone := apierrors.IsNotFound(err)
	switch {
	case gone:
		if made = s.archivedPost(ctx, post); made == nil {
			return PostDetail{}, false, s.refuseDeleted(ctx, post)
		}
	case err != nil:
		return PostDetail{}, false, fmt.Errorf("read the object created with an Idempotency-Key: %w", err)
	}
	if err := requireSame(made, post); err != nil {
		return PostDetail{}, true, err
	}
	if gone && !made.Status.Finished {
		return PostDetail{}, true, refuseStopped(post)
	}
	detail = s.detail(made, s.inMemory(made.Namespace))
	detail.Replayed = true
	return detail, true, nil
}

// sameRequest reports whether Herald created a resource for the same request. Resources from other clients never match,
// even under the key's name.
func sameRequest(made, asked metav1.Object) bool {
	switch made.GetLabels()[v1alpha1.OriginLabel] {
	case v1alpha1.OriginAPI, v1alpha1.OriginWeb:
	default:
		return false
	}
	return sameFingerprint(made.GetAnnotations()[v1alpha1.RequestAnnotation], asked.GetAnnotations()[v1alpha1.RequestAnnotation])
}

func requireSame(made, asked *v1alpha1.Post) error {
	if sameRequest(made, asked) {
		return nil
	}
	return usedForAnother(asked, made.Name)
}

func usedForAnother(asked *v1alpha1.Post, made string) *Error {
	if asked.Labels[v1alpha1.OriginLabel] == v1alpha1.OriginWeb {
		return errorf(CodeConflict, "this form has already created post %s, with different content; nothing more was posted. Open that post to change it, or start a new one.", made)
	}
	return errorf(CodeConflict, "this Idempotency-Key was used for another request, which created post %s; nothing was posted. Use a new key for a new post.", made)
}
