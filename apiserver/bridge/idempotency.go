// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/herald-social/herald/api/v1alpha1"
)

// keyedName is the name of what a team creates under an Idempotency-Key. It
// follows from the two alone, so that the Kubernetes API itself refuses a second
// one, whichever replica it comes through and whatever was restarted between.
func keyedName(prefix, namespace, key string) string {
	sum := sha256.Sum256([]byte(prefix + "\x00" + namespace + "\x00" + key))
	name := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:])
	return prefix + strings.ToLower(name[:idLength])
}

// fingerprint distinguishes requests under the same key by what they ask for.
func fingerprint(spec any) (string, error) {
	data, err := json.Marshal(spec)
	if err != nil {
		return "", fmt.Errorf("fingerprint a request: %w", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// earlier answers with the post that the request has created before, if it
// carries a key and has: as it reads now, without checking anew what was right
// then. found is false for a request that is to create a post.
func (s *Service) earlier(ctx context.Context, post *v1alpha1.Post) (detail PostDetail, found bool, err error) {
	if post.Annotations[v1alpha1.RequestAnnotation] == "" {
		return PostDetail{}, false, nil
	}
	made, err := s.Posts.Get(ctx, post.Namespace, post.Name)
	switch {
	case apierrors.IsNotFound(err):
		return PostDetail{}, false, nil
	case err != nil:
		return PostDetail{}, false, fmt.Errorf("read what was created under an Idempotency-Key: %w", err)
	}
	if err := sameRequest(made, post); err != nil {
		return PostDetail{}, true, err
	}
	return s.detail(made, s.inMemory(made.Namespace)), true, nil
}

// sameRequest refuses a post that was created under the same key for another
// request.
func sameRequest(made, asked *v1alpha1.Post) error {
	if made.Annotations[v1alpha1.RequestAnnotation] == asked.Annotations[v1alpha1.RequestAnnotation] {
		return nil
	}
	return errorf(CodeConflict, "this Idempotency-Key was used for another request, which created post %s; nothing was posted. Use a new key for a new post.", made.Name)
}
