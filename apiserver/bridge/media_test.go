// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/platforms"
)

var mediaResource = schema.GroupResource{Group: "social.herald.dev", Resource: "media"}

// files is a fake Kubernetes API with media files, and a fake store that signs URLs.
type files struct {
	stored  map[string]*v1alpha1.Media
	creates []fault
	made    int
	// room, if set, is the number of files that a ResourceQuota allows. It is checked before the name.
	room int
	// reading, signing, updating and awaiting are the errors returned by these operations.
	reading, signing, updating, awaiting error
	// changed, if set, is called before a status is stored, to simulate a concurrent writer.
	changed func(f *files)
	// examined, if set, is called while a file is being checked, to simulate a concurrent writer.
	examined func(f *files)
	// awaited holds the names of the files whose upload deadline was recorded.
	awaited []string
}

func (f *files) Create(_ context.Context, m *v1alpha1.Media) (*v1alpha1.Media, error) {
	f.made++
	if f.room > 0 && len(f.stored) >= f.room {
		return nil, exceeded("media", f.room)
	}
	if f.stored[m.Name] != nil {
		return nil, apierrors.NewAlreadyExists(mediaResource, m.Name)
	}
	var trouble fault
	if len(f.creates) > 0 {
		trouble, f.creates = f.creates[0], f.creates[1:]
	}
	if trouble.err == nil || trouble.lands {
		f.stored[m.Name] = m.DeepCopy()
	}
	if trouble.err != nil {
		return nil, trouble.err
	}
	return f.stored[m.Name], nil
}

func (f *files) Get(_ context.Context, _, name string) (*v1alpha1.Media, error) {
	if f.reading != nil {
		return nil, f.reading
	}
	if m, ok := f.stored[name]; ok {
		return m.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(mediaResource, name)
}

func (f *files) UpdateStatus(_ context.Context, m *v1alpha1.Media) (*v1alpha1.Media, error) {
	if f.changed != nil {
		f.changed(f)
	}
	if f.updating != nil {
		return nil, f.updating
	}
	f.stored[m.Name] = m.DeepCopy()
	return f.stored[m.Name], nil
}

func (f *files) SetUploadDeadline(_ context.Context, _, name string, until time.Time) error {
	if until.Equal(now.Add(time.Hour)) {
		f.awaited = append(f.awaited, name)
	}
	return f.awaiting
}

func (f *files) PresignPut(_ context.Context, key, mimeType string, size int64) (string, time.Time, error) {
	return "https://store/" + key + "?type=" + mimeType + "&size=" + strconv.FormatInt(size, 10), now.Add(time.Hour), f.signing
}

func (f *files) PresignGet(_ context.Context, key string, valid time.Duration) (string, error) {
	return fmt.Sprintf("https://store/%s?valid=%s", key, valid), f.signing
}

func withFiles(f *files) *bridge.Service {
	s := service(&posts{stored: map[string]*v1alpha1.Post{}}, inMemory("acme"))
	s.Media, s.Files = f, f
	return s
}

func photo(change func(*v1alpha1.MediaSpec)) v1alpha1.MediaSpec {
	spec := v1alpha1.MediaSpec{FileName: "a.jpg", MimeType: v1alpha1.MimeJPEG, SizeBytes: 5}
	if change != nil {
		change(&spec)
	}
	return spec
}

func TestUploadWithoutStore(t *testing.T) {
	t.Parallel()
	f := &files{stored: map[string]*v1alpha1.Media{}}
	s := withFiles(f)
	s.Files = nil
	_, err := s.CreateMediaUpload(t.Context(), caller, bridge.CreateMediaUpload{Spec: photo(nil)})
	var refusal *bridge.Error
	if !errors.As(err, &refusal) || refusal.Code != bridge.CodeValidation || !strings.Contains(refusal.Message, "has no media store") || len(f.stored) != 0 {
		t.Errorf("want an error that media is unavailable, and no file: %v, %d files", err, len(f.stored))
	}
}

// TestAuthorOfUpload verifies that a user's upload has an author and is recorded as an action; a program's upload has
// neither.
func TestAuthorOfUpload(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason        string
		caller        bridge.Caller
		author, agent string
		events        []string
	}{
		"Person":  {"the file records its user", person, "herald:link", "", []string{"UploadBegunByPerson Media/M: by herald:link in the web application"}},
		"Program": {"requests with an API key are only in the access log", caller, "", "", nil},
		"Agent": {
			"an agent's upload is distinguished from the user's own",
			bridge.Caller{Namespace: caller.Namespace, Key: "agent-1", Author: "oidc:ada", Agent: "Claude"},
			"oidc:ada", "Claude",
			[]string{`UploadBegunByAgent Media/M: by the agent "Claude" for oidc:ada`},
		},
	} {
		f, trail := &files{stored: map[string]*v1alpha1.Media{}}, &events{}
		s := withFiles(f)
		s.Events = trail
		var id string
		for i := range 2 { // the request is sent twice
			made, err := s.CreateMediaUpload(t.Context(), tc.caller, bridge.CreateMediaUpload{Spec: photo(nil), IdempotencyKey: "form"})
			if err != nil {
				t.Fatal(err)
			}
			id = made.ID
			if made.Replayed != (i > 0) || len(trail.written) != len(tc.events) {
				t.Errorf("%s: only the first request is an action: request %d, %v", name, i, trail.written)
			}
		}
		media := f.stored[id]
		if media.Annotations[v1alpha1.AuthorAnnotation] != tc.author || media.Annotations[v1alpha1.AgentAnnotation] != tc.agent {
			t.Errorf("%s: %s: %v", name, tc.reason, media.Annotations)
		}
		if media.Labels[v1alpha1.OriginLabel] != v1alpha1.OriginAPI {
			t.Errorf("%s: with the labels %v the manager offers everybody who reads the status an upload URL", name, media.Labels)
		}
		for i := range trail.written {
			trail.written[i] = strings.ReplaceAll(trail.written[i], id, "M")
		}
		if !slices.Equal(trail.written, tc.events) {
			t.Errorf("%s: %s: %v", name, tc.reason, trail.written)
		}
	}
}

func TestCheckUpload(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		change func(*v1alpha1.MediaSpec)
		want   []string
	}{
		"Image":    {"an ordinary image", nil, nil},
		"Smallest": {"one byte suffices", func(s *v1alpha1.MediaSpec) { s.SizeBytes = 1 }, nil},
		"Largest":  {"the limit is inclusive", func(s *v1alpha1.MediaSpec) { s.SizeBytes = v1alpha1.MaxImageBytes }, nil},
		"Capitals": {"cameras use such names", func(s *v1alpha1.MediaSpec) { s.FileName = "A.JPG" }, nil},
		"Video": {"videos have their own rules", func(s *v1alpha1.MediaSpec) {
			*s = v1alpha1.MediaSpec{FileName: "a.mov", MimeType: v1alpha1.MimeMP4, SizeBytes: v1alpha1.MaxVideoBytes}
		}, nil},
		"Empty":    {"an empty file cannot be posted", func(s *v1alpha1.MediaSpec) { s.SizeBytes = 0 }, []string{"size_bytes: an image has 1 to"}},
		"TooLarge": {"no platform accepts it", func(s *v1alpha1.MediaSpec) { s.SizeBytes = v1alpha1.MaxImageBytes + 1 }, []string{"size_bytes: an image has 1 to"}},
		"Type":     {"its type is not supported", func(s *v1alpha1.MediaSpec) { s.MimeType = "image/gif" }, []string{`mime_type: "image/gif" is not supported`}},
		"Name":     {"the extension belongs to another type", func(s *v1alpha1.MediaSpec) { s.FileName = "a.mp4" }, []string{"name: the name of an image ends in .jpg, .jpeg, .png or .webp; rename the file"}},
		"Both":     {"all problems are reported together", func(s *v1alpha1.MediaSpec) { s.FileName, s.SizeBytes = "a", -1 }, []string{"size_bytes: ", "name: "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &files{stored: map[string]*v1alpha1.Media{}}
			got, err := withFiles(f).CreateMediaUpload(t.Context(), caller, bridge.CreateMediaUpload{Spec: photo(tc.change)})
			if tc.want == nil {
				if err != nil || len(f.stored) != 1 || f.stored[got.ID] == nil {
					t.Errorf("%s: error %v, %d files", tc.reason, err, len(f.stored))
				}
				return
			}
			if code(err) != "VALIDATION_ERROR" || len(f.stored) != 0 {
				t.Fatalf("%s: error %v, %d files", tc.reason, err, len(f.stored))
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %q does not contain %q", tc.reason, err, want)
				}
			}
		})
	}
}

func TestCreateMediaUpload(t *testing.T) {
	t.Parallel()
	lost := errors.New("read: connection reset by peer")
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Media"}, "m", field.ErrorList{field.Invalid(field.NewPath("spec", "fileName"), "x", "no")})
	down := apierrors.NewInternalError(lost)
	for name, tc := range map[string]struct {
		reason string
		files  files
		leave  bool
		want   string
		made   int
	}{
		"Created":    {"an ordinary request", files{}, false, "", 1},
		"Landed":     {"the response was lost, and the file exists", files{creates: []fault{{true, lost}}}, false, "", 2},
		"NotLanded":  {"the request was lost", files{creates: []fault{{false, lost}}}, false, "", 2},
		"StaysLost":  {"the Kubernetes API is unavailable", files{creates: []fault{{false, lost}, {false, down}, {false, lost}}}, false, "internal", 3},
		"Forbidden":  {"a definite rejection is not retried", files{creates: []fault{{false, apierrors.NewForbidden(mediaResource, "m", lost)}}}, false, "internal", 1},
		"Invalid":    {"the client can correct it", files{creates: []fault{{false, invalid}}}, false, "VALIDATION_ERROR", 1},
		"ClientLeft": {"the client has disconnected", files{creates: []fault{{false, lost}}}, true, "internal", 1},
		"NotSigned":  {"an upload needs a URL", files{signing: lost}, false, "internal", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			if tc.leave {
				leave()
			}
			f := &tc.files
			f.stored = map[string]*v1alpha1.Media{}
			got, err := withFiles(f).CreateMediaUpload(ctx, caller, bridge.CreateMediaUpload{Spec: photo(nil)})
			if code(err) != tc.want || f.made != tc.made {
				t.Fatalf("%s: error %v after %d creates, want %q after %d", tc.reason, err, f.made, tc.want, tc.made)
			}
			if err != nil {
				if got != (bridge.MediaUpload{}) {
					t.Errorf("%s: %+v with an error", tc.reason, got)
				}
				return
			}
			if got.Name != "a.jpg" || f.stored[got.ID] == nil || !strings.HasSuffix(got.UploadURL, "?type=image/jpeg&size=5") {
				t.Errorf("%s: %+v", tc.reason, got)
			}
			if m := f.stored[got.ID]; m.Namespace != caller.Namespace || len(m.Name) != 26 || m.Annotations[v1alpha1.RequestAnnotation] != "" {
				t.Errorf("%s: %+v", tc.reason, m.ObjectMeta)
			}
		})
	}
	t.Run("NoSubscription", func(t *testing.T) {
		t.Parallel()
		s := withFiles(&files{stored: map[string]*v1alpha1.Media{}})
		s.Owner = func(string) *v1alpha1.Team { return nil }
		if _, err := s.CreateMediaUpload(t.Context(), caller, bridge.CreateMediaUpload{Spec: photo(nil)}); code(err) != "SUBSCRIPTION_REQUIRED" {
			t.Errorf("error %v", err)
		}
	})
}

// TestUploadKey resends a request for an upload with its Idempotency-Key.
func TestUploadKey(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason  string
		between func(f *files, m *v1alpha1.Media)
		second  func(in *bridge.CreateMediaUpload)
		want    string
		same    bool
		awaited int
	}{
		"Again":       {"the same file gets a new URL and more time", nil, nil, "", true, 1},
		"Uploaded":    {"the file may be overwritten until a post uses it", func(_ *files, m *v1alpha1.Media) { m.Status.Phase = v1alpha1.MediaUploaded }, nil, "", true, 1},
		"AnotherKey":  {"the client uploads two files", nil, func(in *bridge.CreateMediaUpload) { in.IdempotencyKey = "l" }, "", false, 0},
		"NoKey":       {"each request without a key creates a file", nil, func(in *bridge.CreateMediaUpload) { in.IdempotencyKey = "" }, "", false, 0},
		"AnotherFile": {"a key belongs to one request", nil, func(in *bridge.CreateMediaUpload) { in.Spec.SizeBytes++ }, "CONFLICT", false, 0},
		"Full":        {"the same file does not need more room", func(f *files, _ *v1alpha1.Media) { f.room = 1 }, nil, "", true, 1},
		"FullForMore": {"another file needs more room", func(f *files, _ *v1alpha1.Media) { f.room = 1 }, func(in *bridge.CreateMediaUpload) { in.IdempotencyKey = "l" }, "SUBSCRIPTION_REQUIRED", false, 0},
		"Leaving":     {"the Media does not accept uploads", func(_ *files, m *v1alpha1.Media) { m.DeletionTimestamp = &metav1.Time{Time: now} }, nil, "CONFLICT", false, 0},
		"Expired":     {"the upload has expired", func(_ *files, m *v1alpha1.Media) { m.Status.Phase = v1alpha1.MediaExpired }, nil, "CONFLICT", false, 0},
		"Rejected":    {"the file is not an image", func(_ *files, m *v1alpha1.Media) { m.Status.Phase = v1alpha1.MediaRejected }, nil, "CONFLICT", false, 0},
		"Unreadable":  {"its state is unknown", func(f *files, _ *v1alpha1.Media) { f.reading = errors.New("boom") }, nil, "internal", false, 0},
		"NotAwaited":  {"the manager would stop waiting before the URL expires", func(f *files, _ *v1alpha1.Media) { f.awaiting = errors.New("boom") }, nil, "internal", false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &files{stored: map[string]*v1alpha1.Media{}}
			s, in := withFiles(f), bridge.CreateMediaUpload{Spec: photo(nil), IdempotencyKey: "k"}
			first, err := s.CreateMediaUpload(t.Context(), caller, in)
			if err != nil || len(f.awaited) > 0 {
				t.Fatalf("error %v, %v", err, f.awaited)
			}
			if tc.between != nil {
				tc.between(f, f.stored[first.ID])
			}
			if tc.second != nil {
				tc.second(&in)
			}
			second, err := s.CreateMediaUpload(t.Context(), caller, in)
			if code(err) != tc.want || len(f.awaited) != tc.awaited {
				t.Fatalf("%s: error %v, awaited %v; want %q, %d", tc.reason, err, f.awaited, tc.want, tc.awaited)
			}
			if err == nil && (first.ID == second.ID) != tc.same {
				t.Errorf("%s: files %s and %s", tc.reason, first.ID, second.ID)
			}
		})
	}
}

// TestPostWithMedia creates a post with a file. A new upload is checked immediately.
func TestPostWithMedia(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	found := v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded, SizeBytes: 5, Width: 600, Height: 600}
	conflict := apierrors.NewConflict(mediaResource, "m", boom)
	is := func(phase v1alpha1.MediaPhase) func(*v1alpha1.Media) {
		return func(m *v1alpha1.Media) {
			m.Status = found
			m.Status.Phase = phase
		}
	}
	becomes := func(phase v1alpha1.MediaPhase) func(*files) {
		return func(f *files) { is(phase)(f.stored["m"]) }
	}
	for name, tc := range map[string]struct {
		reason  string
		name    string
		file    func(m *v1alpha1.Media)
		files   files
		verify  error
		want    string
		message string
		// looked is whether the file was checked, and recorded is its phase afterwards.
		looked   bool
		recorded v1alpha1.MediaPhase
	}{
		"Known":         {"the manager has verified it", "m", is(v1alpha1.MediaUploaded), files{}, nil, "", "", false, v1alpha1.MediaUploaded},
		"JustUploaded":  {"the file is valid immediately, and recorded as verified", "m", nil, files{}, nil, "", "", true, v1alpha1.MediaUploaded},
		"Pending":       {"the manager waited for the file", "m", is(v1alpha1.MediaPending), files{}, nil, "", "", true, v1alpha1.MediaUploaded},
		"Rejected":      {"a rejection is permanent", "m", is(v1alpha1.MediaRejected), files{}, nil, "VALIDATION_ERROR", "was rejected", false, v1alpha1.MediaRejected},
		"Leaving":       {"the Media is being deleted", "m", func(m *v1alpha1.Media) { m.DeletionTimestamp = &metav1.Time{Time: now} }, files{}, nil, "VALIDATION_ERROR", "no such media file", false, ""},
		"Missing":       {"the Media does not exist", "n", nil, files{}, nil, "VALIDATION_ERROR", `media_ids[0]: no such media file "n" in this team`, false, ""},
		"Impossible":    {"no file can have this name, so none is requested", "../m", nil, files{reading: boom}, nil, "VALIDATION_ERROR", "no such media file", false, ""},
		"Unreadable":    {"the Kubernetes API is unavailable", "m", nil, files{reading: boom}, nil, "internal", "", false, ""},
		"NotUploaded":   {"the file was not uploaded", "m", nil, files{}, store.ErrNotFound, "VALIDATION_ERROR", "nothing has been uploaded yet", true, ""},
		"Refused":       {"the manager rejected and deleted it during the check", "m", nil, files{examined: becomes(v1alpha1.MediaRejected)}, store.ErrNotFound, "VALIDATION_ERROR", "was rejected", true, v1alpha1.MediaRejected},
		"GoneMeanwhile": {"its Media was deleted during the check", "m", nil, files{examined: func(f *files) { clear(f.stored) }}, store.ErrNotFound, "VALIDATION_ERROR", "no such media file", true, ""},
		"UnknownAgain":  {"the Kubernetes API fails during the check", "m", nil, files{examined: func(f *files) { f.reading = boom }}, store.ErrNotFound, "internal", "", true, ""},
		"Overwritten":   {"an upload is in progress", "m", nil, files{}, store.ErrChanged, "VALIDATION_ERROR", "overwritten while it is examined", true, ""},
		"StoreDown":     {"its state is unknown", "m", nil, files{}, boom, "internal", "", true, ""},
		"ManagerFirst":  {"the manager's result takes precedence", "m", nil, files{updating: conflict, changed: becomes(v1alpha1.MediaRejected)}, nil, "VALIDATION_ERROR", "was rejected", true, v1alpha1.MediaRejected},
		"ManagerWaits":  {"the manager wrote before the upload ended, so the present check counts", "m", nil, files{updating: conflict, changed: becomes(v1alpha1.MediaPending)}, nil, "", "", true, v1alpha1.MediaPending},
		"ManagerBegins": {"the manager has no result yet, so the present check counts", "m", nil, files{updating: conflict, changed: becomes("")}, nil, "", "", true, ""},
		"Deleted":       {"the Media was deleted", "m", nil, files{updating: conflict, changed: func(f *files) { clear(f.stored) }}, nil, "VALIDATION_ERROR", "no such media file", true, ""},
		"GoneBefore":    {"the Media was deleted", "m", nil, files{updating: apierrors.NewNotFound(mediaResource, "m"), changed: func(f *files) { clear(f.stored) }}, nil, "VALIDATION_ERROR", "no such media file", true, ""},
		"Settled":       {"the schema protects the manager's result", "m", nil, files{updating: apierrors.NewInvalid(schema.GroupKind{}, "m", nil), changed: becomes(v1alpha1.MediaExpired)}, nil, "VALIDATION_ERROR", "is gone", true, v1alpha1.MediaExpired},
		"Unsettled":     {"the conflicting object cannot be read, so the present check counts", "m", nil, files{updating: conflict, changed: func(f *files) { f.reading = boom }}, nil, "", "", true, ""},
		"NotRecorded":   {"the Kubernetes API is unavailable", "m", nil, files{updating: boom}, nil, "internal", "", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &tc.files
			m := &v1alpha1.Media{ObjectMeta: metav1.ObjectMeta{Namespace: caller.Namespace, Name: "m"}, Spec: photo(nil)}
			if tc.file != nil {
				tc.file(m)
			}
			f.stored = map[string]*v1alpha1.Media{"m": m}
			s, looked := withFiles(f), false
			s.Verify = func(context.Context, *v1alpha1.Media) (v1alpha1.MediaStatus, error) {
				looked = true
				if f.examined != nil {
					f.examined(f)
				}
				return found, tc.verify
			}
			s.Capabilities = func(v1alpha1.Platform) (platforms.Capabilities, bool) {
				return platforms.Capabilities{Categories: []v1alpha1.Category{v1alpha1.CategoryImage}, MaxImages: 4}, true
			}
			in := hello("acme")
			in.Spec.Category = v1alpha1.CategoryImage
			in.Spec.Image = &v1alpha1.ImageContent{MediaRefs: []v1alpha1.MediaReference{{Name: tc.name}}}
			got, err := s.CreatePost(t.Context(), caller, in)
			if code(err) != tc.want || err != nil && !strings.Contains(err.Error(), tc.message) || looked != tc.looked {
				t.Errorf("%s: error %v, examined %t; want %q with %q, %t", tc.reason, err, looked, tc.want, tc.message, tc.looked)
			}
			if m := f.stored["m"]; m != nil && m.Status.Phase != tc.recorded {
				t.Errorf("%s: recorded phase %q, want %q", tc.reason, m.Status.Phase, tc.recorded)
			}
			if err == nil && !slices.Equal(got.Media, in.Spec.Image.MediaRefs) {
				t.Errorf("%s: the post shows %v", tc.reason, got.Media)
			}
		})
	}
}

// TestChecksAtOnce verifies the limit on concurrent reads of a post's files.
func TestChecksAtOnce(t *testing.T) {
	t.Parallel()
	in := hello("acme")
	in.Spec.Category, in.Spec.Tree = v1alpha1.CategoryTree, &v1alpha1.TreeContent{}
	for i := range 20 {
		in.Spec.Tree.Cards = append(in.Spec.Tree.Cards, v1alpha1.TreeCard{MediaRefs: []v1alpha1.MediaReference{{Name: fmt.Sprint("m", i)}}})
	}
	synctest.Test(t, func(t *testing.T) {
		f := &slowFiles{}
		s := withFiles(&f.files)
		s.Media = f
		s.Capabilities = func(v1alpha1.Platform) (platforms.Capabilities, bool) {
			return platforms.Capabilities{Categories: []v1alpha1.Category{v1alpha1.CategoryTree}, Card: platforms.CardLimits{MaxItems: 1}}, true
		}
		begun := time.Now()
		if _, err := s.CreatePost(t.Context(), caller, in); err != nil {
			t.Errorf("error %v", err)
		}
		if took := time.Since(begun); took != 3*time.Second {
			t.Errorf("20 files, each read in a second, took %s; want 3 s with 8 concurrent reads", took)
		}
	})
}

// slowFiles has every file, and each read takes a second.
type slowFiles struct{ files }

func (*slowFiles) Get(_ context.Context, _, name string) (*v1alpha1.Media, error) {
	time.Sleep(time.Second) //nolint:forbidigo // fake clock
	return &v1alpha1.Media{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: photo(nil), Status: v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded}}, nil
}
