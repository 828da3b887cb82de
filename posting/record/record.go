// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package record defines a post's record: a small document that contains the outcome of each target and outlives the
// object. Records are stored in the bucket by team and name. They prevent a deleted post from being published twice
// when it is created again under its name, and they keep the post readable. The package is pure: it creates records
// from posts, merges them, and adopts them into posts.
package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

// Version is the format's version. Decode rejects newer ones: ignoring unknown fields could publish a post twice.
const Version = 1

// Record is the record of a post.
type Record struct {
	// Version is the version of this record's format.
	Version int `json:"version"`
	// Namespace, Team and Name identify the record.
	Namespace string `json:"namespace"`
	Team      string `json:"team"`
	Name      string `json:"name"`
	// UID and Generation are those of the post's last object.
	UID        types.UID `json:"uid"`
	Generation int64     `json:"generation,omitempty"`
	// CreatedAt is when that object was created.
	CreatedAt v1alpha1.Time `json:"createdAt"`
	// FinishedAt is when the post was finished. It is nil if the post was deleted before that.
	FinishedAt *v1alpha1.Time `json:"finishedAt,omitempty"`
	// Underway means that the post was in delivery at the time of writing. Pending targets may have been sent since.
	Underway bool `json:"underway,omitempty"`
	// Phase is the phase of the post.
	Phase v1alpha1.PostPhase `json:"phase"`
	// Labels and Annotations are those that Herald reads.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Spec is the spec of the post.
	Spec v1alpha1.PostSpec `json:"spec"`
	// Targets are the outcomes of Spec's targets in order, or none if the post has no entries for them.
	Targets []Target `json:"targets,omitempty"`
	// Before holds the outcomes of targets of earlier posts with the same name that are not in Spec.
	Before []Target `json:"before,omitempty"`
	// Earlier lists the UIDs of earlier objects with the same name, oldest first.
	Earlier []types.UID `json:"earlier,omitempty"`
}

// Target is the outcome of a target: its status entry without the fields that only delivery needs.
type Target struct {
	v1alpha1.TargetStatus
	// Connection is the name of the target's Connection.
	Connection string `json:"connection,omitempty"`
	// AccountID is the platform's ID of the account, or empty if the account is unknown.
	AccountID string `json:"accountID,omitempty"`
}

const maxEarlier = 20

// annotations lists the annotations to record: those that the API returns or derives fields from.
var annotations = []string{
	v1alpha1.BornAnnotation, v1alpha1.RequestAnnotation, v1alpha1.AuthorAnnotation, v1alpha1.LastAuthorAnnotation,
	v1alpha1.AgentAnnotation, v1alpha1.WantedAtAnnotation,
}

// Account returns a Connection's platform and account ID. It returns false if the Connection does not exist.
type Account func(connection string) (platform v1alpha1.Platform, id string, ok bool)

// New returns the record of a post in its current state. account fills in accounts that attempts lack.
func New(post *v1alpha1.Post, team string, account Account) *Record {
	r := &Record{
		Version: Version, Namespace: post.Namespace, Team: team, Name: post.Name, UID: post.UID, Generation: post.Generation,
		CreatedAt: v1alpha1.NewTime(post.CreationTimestamp.Time), FinishedAt: post.Status.FinishedAt, Underway: Underway(post), Phase: posting.Of(post).Phase(),
		Labels: map[string]string{}, Annotations: map[string]string{}, Spec: *post.Spec.DeepCopy(),
	}
	if origin := post.Labels[v1alpha1.OriginLabel]; origin != "" {
		r.Labels[v1alpha1.OriginLabel] = origin
	}
	for _, key := range annotations {
		if value := post.Annotations[key]; value != "" {
			r.Annotations[key] = value
		}
	}
	for _, i := range places(post) {
		r.Targets = append(r.Targets, targetOf(post, i, account))
	}
	for i := range r.Targets {
		r.fillAccount(&r.Targets[i])
	}
	return r
}

// WriteTimeout is the minimum time for which a deleted post waits for its record to be written. If the store is
// unavailable all that time, the post is released without a record.
const WriteTimeout = time.Hour

// Required reports whether a post needs a record: a call may have been made, or it is undecided or finished.
func Required(post *v1alpha1.Post) bool {
	return posting.Of(post).Started() || post.Status.Finished || slices.ContainsFunc(post.Status.Targets, func(t v1alpha1.TargetStatus) bool {
		return attempt.Undecided(&t)
	})
}

// Underway reports whether some of a post's targets have yet to be sent although others may have been sent.
func Underway(post *v1alpha1.Post) bool {
	return post.DeletionTimestamp.IsZero() && !post.Status.Finished && Required(post) && !posting.Of(post).AllSettled()
}

// places returns the indexes of the targets to record: none if there are no entries, otherwise those of the spec in
// order, followed by those that an edit has removed. The order matters because it decides how targets of one account
// match, and entries are in creation order, with adopted ones first.
func places(post *v1alpha1.Post) []int {
	var all []int
	if len(post.Status.Targets) == 0 {
		return nil
	}
	for i := range post.Spec.Targets {
		all = append(all, i)
	}
	for i := range post.Status.Targets {
		if index := int(post.Status.Targets[i].Index); index >= len(post.Spec.Targets) {
			all = append(all, index)
		}
	}
	return all
}

func targetOf(post *v1alpha1.Post, i int, account Account) Target {
	kept := Target{TargetStatus: v1alpha1.TargetStatus{Index: int32(i)}} //nolint:gosec // a post has at most 100 targets
	if t := posting.Of(post).Target(i); t != nil {
		kept.TargetStatus = *t.DeepCopy()
	}
	t := &kept.TargetStatus
	kept.State = posting.StateOf(t)
	kept.Prepared, kept.NextTryAt, kept.TryUntil = nil, nil, nil
	kept.Candidates, kept.AnswerProblem = nil, ""
	if i < len(post.Spec.Targets) {
		kept.Connection = post.Spec.Targets[i].ConnectionRef.Name
	}
	if kept.Attempt != nil {
		// Checkpoint and ContentHash are needed only for the call.
		kept.Attempt.Checkpoint, kept.Attempt.ContentHash = "", ""
		kept.AccountID = kept.Attempt.AccountID
	}
	// A target that a user has resolved has an attempt, but no account unless the platform confirmed it.
	if platform, id, ok := account(kept.Connection); ok && kept.AccountID == "" {
		kept.Platform, kept.AccountID = platform, id
	}
	return kept
}

// fillAccount copies a missing account from another target of the same deleted Connection.
func (r *Record) fillAccount(t *Target) {
	for i := range r.Targets {
		if other := &r.Targets[i]; t.AccountID == "" && other.AccountID != "" && other.Connection == t.Connection {
			t.Platform, t.AccountID = other.Platform, other.AccountID
		}
	}
}

// Post returns the post as it was recorded, for code that reads posts.
func (r *Record) Post() *v1alpha1.Post {
	post := &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.Namespace, Name: r.Name, UID: r.UID, Generation: r.Generation,
			CreationTimestamp: metav1.NewTime(r.CreatedAt.Time), Labels: maps.Clone(r.Labels), Annotations: maps.Clone(r.Annotations),
		},
		Spec: *r.Spec.DeepCopy(),
		Status: v1alpha1.PostStatus{
			ObservedGeneration: r.Generation, Phase: r.Phase, Finished: r.FinishedAt != nil, FinishedAt: r.FinishedAt,
		},
	}
	if r.FinishedAt != nil {
		post.Status.FinishedOn = r.FinishedAt.UTC().Format("2006-01-02")
	}
	if r.Phase == v1alpha1.PhaseCancelled {
		post.Status.CancelledAt = r.FinishedAt
	}
	var platforms []string
	for i := range r.Targets {
		t := r.Targets[i].DeepCopy()
		post.Status.Targets = append(post.Status.Targets, *t)
		if name := string(t.Platform); name != "" && !slices.Contains(platforms, name) {
			platforms = append(platforms, name)
		}
	}
	post.Status.Platforms = strings.Join(platforms, ",")
	return post
}

// Encode returns the record as JSON. The encoding is deterministic.
func (r *Record) Encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return nil, fmt.Errorf("cannot write the record of post %q: %w", r.Name, err)
	}
	return b.Bytes(), nil
}

// Decode parses a record. It returns an error if the format is newer, or if the record has no owner.
func Decode(data []byte) (*Record, error) {
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("it is not the record of a post: %w", err)
	}
	switch {
	case r.Version > Version:
		return nil, fmt.Errorf("its format is %d, but this version of Herald supports only formats up to %d: use a newer version", r.Version, Version)
	case r.Version < 1 || r.Name == "" || r.Namespace == "" || r.UID == "":
		return nil, fmt.Errorf("it does not name its post")
	}
	return &r, nil
}
