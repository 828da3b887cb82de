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

// Code says what kind of error it is, for programs.
type Code string

// The codes of the contract.
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

// CodeInsufficientScope is that an agent may not do what it asks for. API keys have no
// scopes: the contract does not know the code, and the REST API never answers it.
const CodeInsufficientScope Code = "INSUFFICIENT_SCOPE"

// Error is an answer that a client can do something about. Every other error
// of this package is the service's own trouble and is for the log only.
type Error struct {
	Code Code
	// Message says what is wrong and what to do, for people.
	Message string
	// Problems are those of the post that Message tells of, one by one and with the
	// fields that they concern, the first maxFieldProblems; empty for what concerns no
	// field.
	Problems []Problem
}

// NoIndex is the Target or the Card of a Problem that concerns none.
const NoIndex = -1

// Problem is one thing that is wrong with a post, for people.
type Problem struct {
	// Target is the index of the target that it concerns, and Card that of the card of
	// a tree; NoIndex for none.
	Target, Card int
	// Field is the path of the field in the resource: within the target or the card if
	// it concerns one, else within spec. It is empty for the whole.
	Field string
	// Message says what is wrong and what to do.
	Message string
}

// fieldPaths tells the parts of a path of a Post.
var fieldPaths = regexp.MustCompile(`^spec(?:\.targets\[(\d+)\]|\.tree\.cards\[(\d+)\])?\.?(.*)$`)

// problemOf says for people what is wrong with a field.
func problemOf(err *field.Error) Problem {
	p := Problem{Target: NoIndex, Card: NoIndex, Field: err.Field, Message: problem(err)}
	if parts := fieldPaths.FindStringSubmatch(err.Field); parts != nil {
		p.Target, p.Card, p.Field = indexOr(parts[1]), indexOr(parts[2]), parts[3]
	}
	return p
}

func indexOr(digits string) int {
	if i, err := strconv.Atoi(digits); err == nil {
		return i
	}
	return NoIndex
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// ErrUncertain is the service's own trouble after which a post may have been
// created all the same: a client that sends it again could post twice.
var ErrUncertain = errors.New("create a post, which may exist nevertheless")

func errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

const (
	// maxProblems is how many problems one message names: those of a request that a person or a model wrote, all at once.
	maxProblems = strictjson.ShownProblems
	// maxMissing is how many things that are not there are asked for at the Kubernetes API before the others are taken to be
	// missing, or there, as well: the request is refused in any case.
	maxMissing = 5
	// maxFieldProblems is how many problems Error.Problems has at most: as many as a
	// page of a form shows beside its fields. A tree can have 10,000, and what nobody
	// reads is not worded.
	maxFieldProblems = 100
)

// invalid words what is wrong with a post, with the paths of the wire, behind
// problems that are worded already.
func invalid(errs field.ErrorList, problems ...string) *Error {
	refused := &Error{Code: CodeValidation}
	more := 0
	for i, err := range errs {
		if len(problems) < maxProblems {
			problems = append(problems, WirePath(err.Field)+": "+problem(err))
		} else {
			more++
		}
		if i < maxFieldProblems {
			refused.Problems = append(refused.Problems, problemOf(err))
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

// refusedByKubernetes words what the Kubernetes API refused about a post; nil
// if it did not refuse the content.
func refusedByKubernetes(err error) *Error {
	if apierrors.IsRequestEntityTooLargeError(err) || posting.TooLarge(err) {
		return errorf(CodeValidation, "the post is too large to be stored: it may take at most %d bytes; shorten its captions, or make several posts with fewer targets each", posting.MaxPost)
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

// isOfWhole reports whether a field of Kubernetes is no field of a request: a rule about a whole object names its spec, or, in
// earlier versions, nothing.
func isOfWhole(field string) bool {
	return field == "" || field == "<nil>" || field == "spec"
}

// JoinProblems makes one message of several problems.
func JoinProblems(problems []string) string { return JoinFirst(problems, 0) }

// JoinFirst makes one message of the first of several problems; more are those that
// nobody put into words.
func JoinFirst(problems []string, more int) string {
	if beyond := len(problems) - maxProblems; beyond > 0 {
		problems, more = problems[:maxProblems], more+beyond
	}
	message := strings.Join(problems, "; ")
	if more > 0 {
		return fmt.Sprintf("%s; and %d more", message, more)
	}
	return message
}

// wireNames are the names that REST has for what is called otherwise in the
// resource, longest first where one begins another.
var wireNames = strings.NewReplacer(
	"connectionRef.name", "connection_id", "connectionRef", "connection_id",
	"video.thumbnailOffsetMillis", "thumbnail_time",
	"video.mediaRef.name", "media_id", "video.mediaRef", "media_id", "image.mediaRefs", "media_ids",
	"tree.cards", "tree_cards", "mediaRefs", "media_ids",
	"youtube.title", "youtube_title", "youtube", "youtube_title",
	"tiktok.isAIGenerated", "is_ai_generated", "tiktok.", "tiktok_",
)

// WirePath spells the path of a field of the resource as REST clients know it.
func WirePath(path string) string {
	path = wireNames.Replace(strings.TrimPrefix(path, "spec."))
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
