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

// identify names what a request creates: at random, or after its Idempotency-Key. In
// that case the name follows from the team and the key alone, so that the Kubernetes
// API itself refuses a second one, whichever replica it comes through and whatever
// was restarted between; and an annotation tells requests under the same key apart by
// what they ask for. The agents that people allowed have keys of their own: one that may
// write drafts alone must not take those under which an integration publishes.
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
		hashed = "grant\x00" + grant + "\x00" + hashed // no prefix is that word, whatever a key holds
	}
	sum := sha256.Sum256([]byte(hashed))
	name := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:])
	created.Name = prefix + strings.ToLower(name[:idLength])
	return nil
}

// postName matches the names that identify gives to posts.
var postName = regexp.MustCompile(fmt.Sprintf("^%s[a-z2-7]{%d}$", postPrefix, idLength))

// IsCreated reports whether the name of a post is one that the HTTP API or the web application
// gives. The policy herald-marks refuses such names, and annotations that name an author, to
// everybody else.
func IsCreated(name string) bool { return postName.MatchString(name) }

// fingerprintVersion names the form in which a request is hashed: the JSON of the spec
// that it asks for. A change of that form takes another version.
const fingerprintVersion = "v1"

// fingerprintVersions are the forms that this program and earlier ones have written.
var fingerprintVersions = []string{fingerprintVersion}

// fingerprint identifies what a request asks for, as "version:hash".
func fingerprint(spec any) (string, error) {
	asked, err := json.Marshal(spec)
	if err != nil {
		return "", fmt.Errorf("fingerprint a request: %w", err)
	}
	sum := sha256.Sum256(asked)
	return fingerprintVersion + ":" + hex.EncodeToString(sum[:]), nil
}

// sameFingerprint reports whether two fingerprints may be of the same request. Those of
// different versions that this program has written cannot be compared: they are taken for
// the same, so that a request that is sent again across an upgrade is answered with what
// it has created. A version that no program has written proves nothing.
func sameFingerprint(a, b string) bool {
	versionA, hashA := splitFingerprint(a)
	versionB, hashB := splitFingerprint(b)
	if versionA == versionB {
		return hashA == hashB
	}
	return slices.Contains(fingerprintVersions, versionA) && slices.Contains(fingerprintVersions, versionB)
}

// splitFingerprint reads a fingerprint. The first ones bore no version and were of v1.
func splitFingerprint(f string) (version, hash string) {
	if version, hash, ok := strings.Cut(f, ":"); ok {
		return version, hash
	}
	return "v1", f
}

// earlier answers with the post that the request has created before, if it
// carries a key and has: as it reads now, without checking anew what was right
// then. found is false for a request that is to create a post.
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
		return PostDetail{}, false, fmt.Errorf("read what was created under an Idempotency-Key: %w", err)
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

// sameRequest reports whether Herald created a resource for the same request: what others
// made under the name of a key answers for nothing.
func sameRequest(made, asked metav1.Object) bool {
	switch made.GetLabels()[v1alpha1.OriginLabel] {
	case v1alpha1.OriginAPI, v1alpha1.OriginWeb:
	default:
		return false
	}
	return sameFingerprint(made.GetAnnotations()[v1alpha1.RequestAnnotation], asked.GetAnnotations()[v1alpha1.RequestAnnotation])
}

// requireSame refuses a post that was created under the same key for another
// request.
func requireSame(made, asked *v1alpha1.Post) error {
	if sameRequest(made, asked) {
		return nil
	}
	return usedForAnother(asked, made.Name)
}

// usedForAnother is the refusal of a post whose key another request was sent under.
func usedForAnother(asked *v1alpha1.Post, made string) *Error {
	if asked.Labels[v1alpha1.OriginLabel] == v1alpha1.OriginWeb {
		return errorf(CodeConflict, "this form has created post %s already, with other content; nothing more was posted. Open that post to change it, or begin a new one.", made)
	}
	return errorf(CodeConflict, "this Idempotency-Key was used for another request, which created post %s; nothing was posted. Use a new key for a new post.", made)
}
