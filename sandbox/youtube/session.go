// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

const (
	// processing is the default processing time of a video. YouTube takes minutes.
	processing = 300 * time.Millisecond
	// sessionLife is the lifetime of a session. YouTube does not document it; other Google APIs keep sessions for a
	// week.
	sessionLife = 7 * 24 * time.Hour
	// maxVideo is the maximum size of a video, in bytes.
	maxVideo = 256 << 30
	// The kinds of uploads: in a session, or metadata and video in one request.
	resumable        = "resumable"
	multipartRelated = "multipart"
)

// detail is the stored data of a session or a video.
type detail struct {
	Video described `json:"video"`
	// Parts are the parts that the client wants in the response.
	Parts []string `json:"parts,omitempty"`
	// Size is in bytes. It is unknown until the client announces it.
	Size int64  `json:"size"`
	Type string `json:"type"`
	// ReadyAt is when YouTube's processing is finished. It is zero for a session.
	ReadyAt time.Time `json:"ready_at,omitzero"`
	// Failure is the error that processing will report, if any. For a session, it is the reason why the video was not
	// published.
	Failure string `json:"failure,omitempty"`
	// Seconds is the duration of the video.
	Seconds   int64        `json:"seconds,omitempty"`
	Thumbnail *state.Media `json:"thumbnail,omitempty"`
}

// detailOf decodes the detail of a session or a video.
func detailOf(content json.RawMessage) detail {
	var out detail
	_ = json.Unmarshal(content, &out) // this package encoded it; if decoding fails, the video is only shown incompletely
	return out
}

// newID returns the id of a video: 11 letters, digits, minus signs and underscores that look random.
func newID(at state.Stamp) string {
	const scatter = 0x9E3779B97F4A7C15 // odd, so that no two products are equal
	var id [8]byte
	binary.BigEndian.PutUint64(id[:], uint64(at.Milli<<20|at.Serial)*scatter) //nolint:gosec // only the bits matter
	return base64.RawURLEncoding.EncodeToString(id[:])
}

// newSession returns a random session id, which is all that a client needs to use the session.
func newSession(state.Stamp) string { return rand.Text() + rand.Text() }

// start handles POST /upload/youtube/v3/videos. It starts a session and does not change the channel yet.
func (p *Platform) start(w http.ResponseWriter, r *faults.Request) {
	account, refused := p.authorized(r, scopeUpload, scopeAll, scopeSSL)
	var kept detail
	if refused == nil {
		kept, refused = p.readStart(r, account)
	}
	if refused != nil {
		fail(w, refused)
		return
	}
	content, err := json.Marshal(kept)
	var session state.Container
	if err == nil {
		session, err = p.Store.CreateContainer(account.Key, state.Container{Detail: content}, 0, newSession)
	}
	if err == nil {
		err = p.Blobs.Begin(session.ID)
	}
	if err != nil {
		fail(w, p.broken("begin a session", err))
		return
	}
	address := url.Values{"uploadType": {resumable}, "upload_id": {session.ID}}
	w.Header().Set("X-GUploader-UploadID", session.ID)
	w.Header().Set("Location", p.APIURL(r.Request)+uploadPath+"?"+address.Encode())
	w.WriteHeader(http.StatusOK)
}

// broken logs an internal sandbox failure and returns the problem to respond with.
func (p *Platform) broken(doing string, err error) *problem {
	p.Logger.Error("the sandbox failed", "platform", Name, "doing", doing, "error", err)
	return problemFor(http.StatusInternalServerError)
}

// described is the simulated part of a video's metadata.
type described struct {
	Snippet struct {
		Title       string `json:"title"`
		Description string `json:"description"`
	} `json:"snippet"`
	Status struct {
		Privacy string `json:"privacyStatus"`
	} `json:"status"`
}

// readStart reads the metadata of a video and the declared size.
func (p *Platform) readStart(r *faults.Request, account state.Account) (detail, *problem) {
	out, refused := p.readParts(r, resumable)
	if refused != nil {
		return out, refused
	}
	if media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" ||
		params["charset"] != "" && !strings.EqualFold(params["charset"], "utf-8") {
		return out, refuse(http.StatusBadRequest, "INVALID_ARGUMENT", "global", "parseError", "The Content-Type must be application/json; charset=UTF-8.")
	}
	if refused := readMedia(r, &out); refused != nil {
		return out, refused
	}
	refused = p.readVideo(r.Content, account, &out)
	return out, refused
}

// insertParts are the parts of a video's metadata.
var insertParts = []string{"snippet", "status"}

// moreParts and moreParameters are documented for videos.insert but have no effect here.
var (
	moreParts = []string{
		"contentDetails", "fileDetails", "id", "liveStreamingDetails", "localizations", "paidProductPlacementDetails", "player",
		"processingDetails", "recordingDetails", "statistics", "suggestions", "topicDetails",
	}
	moreParameters = []string{"autoLevels", "notifySubscribers", "onBehalfOfContentOwner", "onBehalfOfContentOwnerChannel", "stabilize"}
)

// readParts reads the parameters of an upload of the given kind. A lenient sandbox ignores documented parameters that
// are not simulated.
func (p *Platform) readParts(r *faults.Request, kind string) (detail, *problem) {
	query, known, parts := r.URL.Query(), []string{"part", "uploadType"}, insertParts
	if p.Lenient {
		known, parts = slices.Concat(known, moreParameters), slices.Concat(parts, moreParts)
	}
	if refused := checkParameters(query, known, parts); refused != nil {
		return detail{}, refused
	}
	if query.Get("uploadType") != kind {
		return detail{}, badParameter("invalidParameter", "uploadType", "The sandbox simulates resumable and multipart uploads only.")
	}
	return detail{Parts: requestedParts(query)}, nil
}

// readVideo reads the metadata of a video. A lenient sandbox ignores fields that are not simulated.
func (p *Platform) readVideo(content []byte, account state.Account, into *detail) *problem {
	decode := simulator.Decode
	if p.Lenient {
		decode = json.Unmarshal
	}
	if err := decode(content, &into.Video); err != nil {
		return refuse(http.StatusBadRequest, "INVALID_ARGUMENT", "global", "badRequest", "Invalid JSON payload received. "+err.Error())
	}
	if refused := checkVideo(&into.Video); refused != nil {
		return refused
	}
	if quota := account.Settings.Quota; quota != nil && p.Store.QuotaUsed(account.Key) >= *quota {
		return uploadLimit()
	}
	return nil
}

const (
	// maxTitle is the maximum length of a title. YouTube does not document the unit; UTF-16 is the stricter reading.
	maxTitle = 100
	// maxDescription is the maximum length of a description, in bytes.
	maxDescription = 5000
)

// checkVideo validates a video's metadata. A video without a privacy status is public.
func checkVideo(v *described) *problem {
	bad := func(why, message string) *problem {
		return refuse(http.StatusBadRequest, "INVALID_ARGUMENT", "youtube.video", why, message)
	}
	title, description := v.Snippet.Title, v.Snippet.Description
	v.Status.Privacy = cmp.Or(v.Status.Privacy, "public")
	switch {
	case strings.TrimSpace(title) == "", len(utf16.Encode([]rune(title))) > maxTitle, strings.ContainsAny(title, "<>"):
		return bad("invalidTitle", "The request metadata specifies an invalid or empty video title.")
	case len(description) > maxDescription, strings.ContainsAny(description, "<>"):
		return bad("invalidDescription", "The request metadata specifies an invalid video description.")
	case !slices.Contains([]string{"public", "unlisted", "private"}, v.Status.Privacy):
		return bad("invalidVideoMetadata", "The request metadata is invalid: status.privacyStatus is not public, unlisted or private.")
	default:
		return nil
	}
}

// readMedia reads the file's declared type and length. The length is optional: Google's own Go client omits it.
func readMedia(r *faults.Request, into *detail) *problem {
	media, _, err := mime.ParseMediaType(r.Header.Get("X-Upload-Content-Type"))
	if err != nil || !isVideoType(media) {
		return refuse(http.StatusBadRequest, "INVALID_ARGUMENT", "global", "badContent",
			"X-Upload-Content-Type is not supported. Valid media types: [video/*, application/octet-stream]")
	}
	into.Type, into.Size = media, unknown
	length := r.Header.Get("X-Upload-Content-Length")
	if length == "" {
		return nil
	}
	size, err := strconv.ParseInt(length, 10, 64)
	if err != nil || size < 1 || size > maxVideo {
		return refuse(http.StatusBadRequest, "INVALID_ARGUMENT", "youtube.video", "mediaBodyRequired",
			"X-Upload-Content-Length must be the number of bytes of the video.")
	}
	into.Size = size
	return nil
}

func isVideoType(media string) bool {
	return strings.HasPrefix(media, "video/") || media == "application/octet-stream"
}

// uploadLimit returns the error for a channel that has used up its daily uploads.
func uploadLimit() *problem {
	return refuse(http.StatusBadRequest, "FAILED_PRECONDITION", "youtube.video", uploadLimitExceeded,
		"The user has exceeded the number of videos they may upload.")
}

const uploadLimitExceeded = "uploadLimitExceeded"
