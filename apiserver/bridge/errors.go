// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/apiserver/strictjson"
	"github.com/herald-social/herald/posting"
)

// Code is the machine-readable kind of an error.
type Code string

// The contract's codes.
const (
	CodeValidation           Code = "VALIDATION_ERROR"
	CodeTikTokPrivacy        Code = "TIKTOK_PRIVACY_LEVEL_UNAVAILABLE"
	CodeUnauthorized         Code = "UNAUTHORIZED"
	CodeSubscriptionRequired Code = "SUBSCRIPTION_REQUIRED"
	CodeNotFound             Code = "NOT_FOUND"
	CodeConflict             Code = "CONFLICT"
	CodeReconnectRequired    Code = "POSTING_READINESS_RECONNECT_REQUIRED"
	CodeReadinessUnavailable Code = "POSTING_READINESS_UNAVAILABLE"
	CodeRateLimited          Code = "RATE_LIMITED"
	CodeInternal             Code = "INTERNAL_ERROR"
)

// CodeInsufficientScope rejects an agent without the required scope, or an API key without a permission. Version 1 never
// returns it: the contract does not define this code, and none of its operations requires a permission.
const CodeInsufficientScope Code = "INSUFFICIENT_SCOPE"

// Codes of version 2 only: a change requires the version that the client read, and the post must still have it.
const (
	CodePreconditionRequired Code = "PRECONDITION_REQUIRED"
	CodePreconditionFailed   Code = "PRECONDITION_FAILED"
)

// Error is an error that the client can do something about. All other errors are internal.
type Error struct {
	Code Code
	// Message is a human-readable description of the problem and its remedy.
	Message string
	// Problems are the request's first maxFieldProblems problems, each with its field; empty if the error does not
	// concern a field. More is the number of others.
	Problems []Problem
	More     int
	// Stale is true if the post has changed since the client read it. Post is then its ID.
	Stale bool
	Post  string
	// ChangedBy is the user who last changed the post, if Message names that user after LastBy.
	ChangedBy string
}

// LastBy precedes Error.ChangedBy in Error.Message.
const LastBy = ", last by "

// NoIndex is the Target or Card of a Problem that has none.
const NoIndex = -1

// Problem is a human-readable problem with a post.
type Problem struct {
	// Target is the index of the target and Card the index of the tree's card; NoIndex for neither.
	Target, Card int
	// Field is the field's path in the resource, relative to the target or card if there is one and to spec otherwise.
	// It is empty for the whole object.
	Field string
	// Path is the field's path in REST; empty for the whole request.
	Path    string
	Message string
}

var fieldPaths = regexp.MustCompile(`^spec(?:\.targets\[(\d+)\]|\.tree\.cards\[(\d+)\])?\.?(.*)$`)

func problemOf(err *field.Error) Problem {
	p := Problem{Target: NoIndex, Card: NoIndex, Field: err.Field, Path: WirePath(err.Field), Message: problem(err)}
	if parts := fieldPaths.FindStringSubmatch(err.Field); parts != nil {
		p.Target, p.Card, p.Field = indexOr(parts[1]), indexOr(parts[2]), parts[3]
	}
	return p
}

// problemsIn returns the problems of a request that were formatted with their path in REST.
func problemsIn(formatted []string) []Problem {
	problems := make([]Problem, 0, len(formatted))
	for _, text := range formatted {
		path, message, found := strings.Cut(text, ": ")
		if !found {
			path, message = "", text
		}
		problems = append(problems, Problem{Target: NoIndex, Card: NoIndex, Path: path, Message: message})
	}
	return problems
}

func indexOr(digits string) int {
	if i, err := strconv.Atoi(digits); err == nil {
		return i
	}
	return NoIndex
}

func (e *Error) Error() string { return e.Message }

// ErrUncertain is an internal error that leaves open whether a post was created: resending it could post twice.
var ErrUncertain = errors.New("create a post; it may have been created")

func errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

const (
	// maxProblems limits the problems in one message. A message names several at once, for the user or model that
	// wrote the request.
	maxProblems = strictjson.ShownProblems
	// maxMissing limits how many missing objects are read from the Kubernetes API. The remaining ones then count as
	// missing, or as valid, because the request is rejected anyway.
	maxMissing = 5
	// maxFieldProblems limits Error.Problems to a number that a form can show. A tree can have 10,000 problems.
	maxFieldProblems = 100
)

// invalid returns the error for a post with field errors, with the wire format's paths. problems are already formatted
// and come first.
func invalid(errs field.ErrorList, problems ...string) *Error {
	refused := &Error{Code: CodeValidation, Problems: problemsIn(problems)}
	more := 0
	for _, err := range errs {
		if len(problems) < maxProblems {
			problems = append(problems, WirePath(err.Field)+": "+problem(err))
		} else {
			more++
		}
		if len(refused.Problems) < maxFieldProblems {
			refused.Problems = append(refused.Problems, problemOf(err))
		} else {
			refused.More++
		}
	}
	refused.Message = JoinFirst(problems, more)
	return refused
}

func problem(err *field.Error) string {
	switch {
	case err.Type == field.ErrorTypeNotFound:
		return fmt.Sprintf("%s %q in this team", err.Detail, err.BadValue)
	case err.Detail != "":
		return err.Detail
	default:
		return err.ErrorBody()
	}
}

// refusedByKubernetes returns the error for content that the Kubernetes API rejected, or nil for other errors.
func refusedByKubernetes(err error) *Error {
	if apierrors.IsRequestEntityTooLargeError(err) || posting.TooLarge(err) {
		return errorf(CodeValidation, "the post is too large: the maximum is %d bytes; shorten its captions, or create several posts with fewer targets each", posting.MaxPost)
	}
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var problems []string
	for _, cause := range status.Status().Details.Causes {
		if isOfWhole(cause.Field) {
			problems = append(problems, cause.Message)
		} else {
			problems = append(problems, WirePath(cause.Field)+": "+cause.Message)
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return &Error{Code: CodeValidation, Message: JoinProblems(problems)}
}

// isOfWhole reports whether the field in a Kubernetes error refers to a whole object: rules about the object report the
// field spec or, in earlier versions, no field.
func isOfWhole(field string) bool {
	return field == "" || field == "<nil>" || field == "spec"
}

// JoinProblems joins several problems into one message.
func JoinProblems(problems []string) string { return JoinFirst(problems, 0) }

// JoinFirst joins the first problems into one message. more is the number of problems that are not in the list.
func JoinFirst(problems []string, more int) string {
	shown := problems[:min(len(problems), maxProblems)]
	more += len(problems) - len(shown)
	message := strings.Join(shown, "; ")
	if more > 0 {
		return fmt.Sprintf("%s; and %d more", message, more)
	}
	return message
}

// wireNames maps the resource's field names to those in REST, longest first where one is a prefix of another.
var wireNames = strings.NewReplacer(
	"connectionRef.name", "connection_id", "connectionRef", "connection_id",
	"video.thumbnailOffsetMillis", "thumbnail_time",
	"video.mediaRef.altText", "alt_text", "video.mediaRef.name", "media_id", "video.mediaRef", "media_id", "image.mediaRefs", "media_ids",
	"tree.cards", "tree_cards", "mediaRefs", "media_ids",
	"youtube.title", "youtube_title", "youtube", "youtube_title",
	"tiktok.isAIGenerated", "is_ai_generated", "tiktok.", "tiktok_", "mastodon.", "",
)

// altTextPath matches the path of a file's alt text in a list of files.
var altTextPath = regexp.MustCompile(`(?:image\.)?mediaRefs\[(\d+)\]\.altText`)

// WirePath converts a field path in the resource to the path in REST. In REST, the content of a schedule's posts is at
// the same level as the schedule's own fields.
func WirePath(path string) string {
	path = strings.TrimPrefix(strings.TrimPrefix(path, "spec."), "template.")
	if strings.HasSuffix(path, ".altText") {
		path = altTextPath.ReplaceAllString(path, "altTexts[$1]")
	}
	path = wireNames.Replace(path)
	path = strings.ReplaceAll(path, "].name", "]")
	var b strings.Builder
	for _, r := range path {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}
