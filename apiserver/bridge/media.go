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

// upload describes one kind of file, according to the contract.
type upload struct {
	kind       string
	maxBytes   int64
	extensions []string
}

var (
	videoUpload = upload{"a video", v1alpha1.MaxVideoBytes, []string{".mp4", ".mov"}}
	imageUpload = upload{"an image", v1alpha1.MaxImageBytes, []string{".jpg", ".jpeg", ".png", ".webp"}}
)

var uploads = map[v1alpha1.MimeType]upload{
	v1alpha1.MimeMP4: videoUpload, v1alpha1.MimeQuickTime: videoUpload,
	v1alpha1.MimeJPEG: imageUpload, v1alpha1.MimePNG: imageUpload, v1alpha1.MimeWebP: imageUpload,
}

// CreateMediaUpload registers a file and returns its upload URL. If the Idempotency-Key was used before, the URL is a
// new one for the same file.
func (s *Service) CreateMediaUpload(ctx context.Context, caller Caller, in CreateMediaUpload) (MediaUpload, error) {
	made, again, err := s.registerUpload(ctx, caller, &in)
	if err != nil {
		return MediaUpload{}, err
	}
	address, until, err := s.Files.PresignPut(ctx, store.UIDKey(made), string(in.Spec.MimeType), in.Spec.SizeBytes)
	if err != nil {
		return MediaUpload{}, fmt.Errorf("sign an upload URL: %w", err)
	}
	// The manager waits for the file while an upload URL is valid. It derives the first URL's expiry from the Media's age.
	if again {
		if err := s.Media.SetUploadDeadline(ctx, made.Namespace, made.Name, until); err != nil {
			return MediaUpload{}, fmt.Errorf("record the upload deadline: %w", err)
		}
	}
	return MediaUpload{ID: made.Name, UploadURL: address, Name: in.Spec.FileName, AltText: made.Spec.AltText, Replayed: again}, nil
}

// registerUpload checks a request and registers its file. again is true if an earlier request with the same key has
// already registered it.
func (s *Service) registerUpload(ctx context.Context, caller Caller, in *CreateMediaUpload) (made *v1alpha1.Media, again bool, err error) {
	if err := s.RequireSubscription(caller); err != nil {
		return nil, false, err
	}
	if err := require(caller, ScopeDraft); err != nil {
		return nil, false, err
	}
	if problems := uploadProblems(&in.Spec); len(problems) > 0 {
		return nil, false, &Error{Code: CodeValidation, Message: JoinProblems(problems)}
	}
	if s.Files == nil {
		return nil, false, errorf(CodeValidation, "this installation has no media store: post text only, or ask the administrators to configure a store")
	}
	media, err := newMedia(caller, in)
	if err != nil {
		return nil, false, err
	}
	made, again, err = s.register(ctx, media)
	if err == nil && !again {
		s.Acted(ctx, caller, ActUploadBegun, made)
	}
	return made, again, err
}

// RefuseUpload returns the error for a request to register a file that could not be parsed completely. unread lists the
// invalid parts with their paths, and more is the number of others. Problems in the rest are included.
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

// uploadProblems returns the reasons why no platform could publish a file.
func uploadProblems(in *v1alpha1.MediaSpec) (problems []string) {
	rule, ok := uploads[in.MimeType]
	if !ok {
		return []string{fmt.Sprintf("mime_type: %q is not supported; use video/mp4, video/quicktime, image/jpeg, image/png or image/webp", in.MimeType)}
	}
	if in.SizeBytes < 1 || in.SizeBytes > rule.maxBytes {
		problems = append(problems, fmt.Sprintf("size_bytes: %s has 1 to %d bytes, not %d; upload a smaller file", rule.kind, rule.maxBytes, in.SizeBytes))
	}
	if extension := strings.ToLower(path.Ext(in.FileName)); !slices.Contains(rule.extensions, extension) {
		problems = append(problems, fmt.Sprintf("name: the name of %s ends in %s; rename the file", rule.kind, either(rule.extensions)))
	}
	if strings.ContainsRune(in.AltText, 0) {
		problems = append(problems, `alt_text: must not contain the NUL character (\u0000)`)
	}
	return problems
}

func either(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// newMedia returns the resource for a request. The client receives the upload URL in the response; because of the
// origin label, the manager keeps it out of the status, which others can read.
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

// register creates the resource. again is true if an earlier request with the same key created it.
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
	case refused != nil && refused.Code == CodeSubscriptionRequired: // Kubernetes checks the quota before the name
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

// registered returns the resource that an earlier request with the same key created. If there is none, or the request
// has no key, it returns the error full.
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

// requireSameUpload rejects a new URL for a file from another request, or for a file that is no longer expected.
func requireSameUpload(made, media *v1alpha1.Media) error {
	switch {
	case !sameRequest(made, media):
		return errorf(CodeConflict, "this Idempotency-Key was used for another file, media %s; use a new key for a new file", made.Name)
	case !made.DeletionTimestamp.IsZero() || made.Status.Phase == v1alpha1.MediaExpired || made.Status.Phase == v1alpha1.MediaRejected:
		return errorf(CodeConflict, "the file of this Idempotency-Key, media %s, was not uploaded in time or was rejected; use a new key to upload it again", made.Name)
	default:
		return nil
	}
}
