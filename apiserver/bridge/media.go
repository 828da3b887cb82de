// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/store"
)

// upload is what the contract says of one kind of file.
type upload struct {
	kind       string
	maxBytes   int64
	extensions []string
}

var (
	videoUpload = upload{"a video", v1alpha1.MaxVideoBytes, []string{".mp4", ".mov"}}
	imageUpload = upload{"an image", v1alpha1.MaxImageBytes, []string{".jpg", ".jpeg", ".png", ".webp"}}
)

// uploads are the types that may be uploaded.
var uploads = map[v1alpha1.MimeType]upload{
	v1alpha1.MimeMP4: videoUpload, v1alpha1.MimeQuickTime: videoUpload,
	v1alpha1.MimeJPEG: imageUpload, v1alpha1.MimePNG: imageUpload, v1alpha1.MimeWebP: imageUpload,
}

// CreateMediaUpload registers a file and returns where to upload it to. Under an
// Idempotency-Key that has been used, the address is a fresh one for the same
// file.
func (s *Service) CreateMediaUpload(ctx context.Context, caller Caller, in CreateMediaUpload) (MediaUpload, error) {
	if err := s.RequireSubscription(caller); err != nil {
		return MediaUpload{}, err
	}
	if err := require(caller, ScopeDraft); err != nil {
		return MediaUpload{}, err
	}
	if problems := uploadProblems(&in.Spec); len(problems) > 0 {
		return MediaUpload{}, &Error{Code: CodeValidation, Message: JoinProblems(problems)}
	}
	if s.Files == nil {
		return MediaUpload{}, errorf(CodeValidation, "this installation keeps no media files: post text, or ask the people who run it for a store")
	}
	media, err := newMedia(caller, &in)
	if err != nil {
		return MediaUpload{}, err
	}
	made, again, err := s.register(ctx, media)
	if err != nil {
		return MediaUpload{}, err
	}
	if !again {
		s.Acted(ctx, caller, ActUploadBegun, made)
	}
	address, until, err := s.Files.PresignPut(ctx, store.UIDKey(made), string(in.Spec.MimeType), in.Spec.SizeBytes)
	if err != nil {
		return MediaUpload{}, fmt.Errorf("sign an upload address: %w", err)
	}
	// The manager waits for the file as long as an address to upload it to is
	// good; it knows of the first one by the age of the Media.
	if again {
		if err := s.Media.SetUploadDeadline(ctx, made.Namespace, made.Name, until); err != nil {
			return MediaUpload{}, fmt.Errorf("record how long an upload is awaited: %w", err)
		}
	}
	return MediaUpload{ID: made.Name, UploadURL: address, Name: in.Spec.FileName, Replayed: again}, nil
}

// RefuseUpload words what is wrong with a request to register a file of which a part could not be read. unread says what, with
// paths, and more how much else; what is wrong with the rest is named with it.
func RefuseUpload(in *v1alpha1.MediaSpec, unread []string, more int) error {
	problems := slices.Clone(unread)
	for _, problem := range uploadProblems(in) {
		name, _, _ := strings.Cut(problem, ": ")
		if !slices.ContainsFunc(unread, func(p string) bool { return strings.HasPrefix(p, name+": ") }) {
			problems = append(problems, problem)
		}
	}
	return &Error{Code: CodeValidation, Message: JoinFirst(problems, more)}
}

// uploadProblems say why a file could not be posted anywhere.
func uploadProblems(in *v1alpha1.MediaSpec) (problems []string) {
	rule, ok := uploads[in.MimeType]
	if !ok {
		return []string{fmt.Sprintf("mime_type: %q is not taken; use video/mp4, video/quicktime, image/jpeg, image/png or image/webp", in.MimeType)}
	}
	if in.SizeBytes < 1 || in.SizeBytes > rule.maxBytes {
		problems = append(problems, fmt.Sprintf("size_bytes: %s has 1 to %d bytes, not %d; upload a smaller file", rule.kind, rule.maxBytes, in.SizeBytes))
	}
	if extension := strings.ToLower(path.Ext(in.FileName)); !slices.Contains(rule.extensions, extension) {
		problems = append(problems, fmt.Sprintf("name: the name of %s ends in %s; rename the file", rule.kind, either(rule.extensions)))
	}
	return problems
}

// either joins alternatives for people.
func either(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// newMedia is the resource for a request. Whoever asked has the address to upload to: by its
// origin the manager knows that the status must offer none, which others could read.
func newMedia(caller Caller, in *CreateMediaUpload) (*v1alpha1.Media, error) {
	media := &v1alpha1.Media{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:  caller.Namespace,
			Labels:     map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginAPI},
			Finalizers: []string{v1alpha1.MediaFileFinalizer},
		},
		Spec: in.Spec,
	}
	for annotation, name := range map[string]string{v1alpha1.AuthorAnnotation: caller.Author, v1alpha1.AgentAnnotation: caller.Agent} {
		if name != "" {
			metav1.SetMetaDataAnnotation(&media.ObjectMeta, annotation, name)
		}
	}
	return media, identify(&media.ObjectMeta, &caller, "m", in.IdempotencyKey, &media.Spec)
}

// register creates the resource; again says that it was there before, under the
// same key, and that an upload of it still makes sense.
func (s *Service) register(ctx context.Context, media *v1alpha1.Media) (made *v1alpha1.Media, again bool, err error) {
	if err := s.refuseOtherFile(ctx, media); err != nil {
		return nil, false, err
	}
	done, full := s.admitFile(media)
	if full != nil {
		return s.registered(ctx, media, full)
	}
	defer func() { done(err == nil && !again) }()
	made, err = createOnce(ctx,
		func() (*v1alpha1.Media, error) { return s.Media.Create(ctx, media) },
		func() (*v1alpha1.Media, error) {
			again = true
			return s.Media.Get(ctx, media.Namespace, media.Name)
		})
	switch refused := s.refused(media.Namespace, err); {
	case refused != nil && refused.Code == CodeSubscriptionRequired: // Kubernetes counts before it looks at the name
		return s.registered(ctx, media, refused)
	case refused != nil:
		return nil, false, refused
	case err != nil:
		return nil, false, fmt.Errorf("register a media file: %w", err)
	case again:
		return made, true, requireSameUpload(made, media)
	}
	return made, false, nil
}

// registered returns what a request under the same key registered before; full if nothing
// was, or if the request has no key.
func (s *Service) registered(ctx context.Context, media *v1alpha1.Media, full *Error) (made *v1alpha1.Media, again bool, err error) {
	if media.Annotations[v1alpha1.RequestAnnotation] == "" {
		return nil, false, full
	}
	switch made, err = s.Media.Get(ctx, media.Namespace, media.Name); {
	case apierrors.IsNotFound(err):
		return nil, false, full
	case err != nil:
		return nil, false, fmt.Errorf("read a media file: %w", err)
	default:
		return made, true, requireSameUpload(made, media)
	}
}

// requireSameUpload refuses another address for a file that is not the one of the request, or that
// nobody waits for any more.
func requireSameUpload(made, media *v1alpha1.Media) error {
	switch {
	case !sameRequest(made, media):
		return errorf(CodeConflict, "this Idempotency-Key was used for another file, media %s; use a new key for a new file", made.Name)
	case !made.DeletionTimestamp.IsZero() || made.Status.Phase == v1alpha1.MediaExpired || made.Status.Phase == v1alpha1.MediaRejected:
		return errorf(CodeConflict, "the file of this Idempotency-Key, media %s, never came or was refused; use a new key to upload it again", made.Name)
	default:
		return nil
	}
}
