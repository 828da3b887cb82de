// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/kube"
	"github.com/herald-social/herald/apiserver/postindex"
)

const team = "team-a"

// request is a request to the Kubernetes API that is waiting for its response. The feed sends one at a time: when the
// next one arrives, the previous response has been processed.
type request struct {
	query  url.Values
	answer chan<- any
}

// expired is the Kubernetes API's status for a version that has expired.
var expired = metav1.Status{
	TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
	Status:   metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Code: http.StatusGone, Message: "too old resource version",
}

// event is an event of a watch.
type event struct {
	Type   string `json:"type"`
	Object any    `json:"object"`
}

// feed starts a PostFeed with a Kubernetes API that the test implements.
func feed(t *testing.T) (index *postindex.Index, requests <-chan request, synced <-chan struct{}) {
	t.Helper()
	incoming := make(chan request)
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answers := make(chan any)
		select {
		case incoming <- request{r.URL.Query(), answers}:
		case <-ctx.Done():
			return
		}
		w.Header().Set("Content-Type", "application/json")
		answer := <-answers
		events, isWatch := answer.([]event)
		if !isWatch {
			if status, ok := answer.(metav1.Status); ok {
				w.WriteHeader(int(status.Code))
			}
			events = []event{{Object: answer}}
		}
		for _, e := range events {
			var body any = e
			if !isWatch {
				body = e.Object
			}
			if err := json.NewEncoder(w).Encode(body); err != nil {
				t.Error(err)
			}
		}
	}))
	client, err := kube.NewClient(&rest.Config{Host: server.URL}, "test")
	if err != nil {
		t.Fatal(err)
	}
	index = postindex.New()
	f := kube.NewPostFeed(client, nil, index, func(post *v1alpha1.Post) postindex.Summary {
		return postindex.Summary{ID: post.Name, Title: post.Spec.Targets[0].Caption, DisplayAt: post.CreationTimestamp.Time}
	})
	var running sync.WaitGroup
	running.Go(func() { f.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		server.Close()
	})
	return index, incoming, f.Synced()
}

func post(name, version, caption string) *v1alpha1.Post {
	return &v1alpha1.Post{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Post"},
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name, ResourceVersion: version},
		Spec:       v1alpha1.PostSpec{Targets: []v1alpha1.PostTarget{{Caption: caption}}},
	}
}

func bookmark(version string) *v1alpha1.Post {
	return &v1alpha1.Post{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Post"}, ObjectMeta: metav1.ObjectMeta{ResourceVersion: version},
	}
}

func page(version, next string, posts ...*v1alpha1.Post) *v1alpha1.PostList {
	list := &v1alpha1.PostList{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "PostList"},
		ListMeta: metav1.ListMeta{ResourceVersion: version, Continue: next},
	}
	for _, p := range posts {
		list.Items = append(list.Items, *p)
	}
	return list
}

// TestPostFeed implements the Kubernetes API, request by request.
func TestPostFeed(t *testing.T) {
	t.Parallel()
	type step struct {
		// query is the request's expected query, and lists the index's expected content at that time: captions by name.
		query  map[string]string
		lists  map[string]string
		answer any
	}
	first := step{query: map[string]string{"limit": "50"}, lists: map[string]string{}, answer: page("10", "", post("a", "3", "one"), post("b", "4", "two"))}
	two := map[string]string{"a": "one", "b": "two"}
	tests := map[string]struct {
		reason string
		steps  []step
	}{
		"ListComesByPages": {
			reason: "a complete list of a hundred thousand posts would not fit into memory",
			steps: []step{
				{map[string]string{"limit": "50"}, map[string]string{}, page("10", "more", post("a", "3", "one"))},
				{map[string]string{"continue": "more"}, map[string]string{"a": "one"}, page("10", "", post("b", "4", "two"))},
				{map[string]string{"watch": "true", "resourceVersion": "10"}, two, expired},
			},
		},
		"BrokenListBeginsAnew": {
			reason: "an incomplete list does not describe the rest",
			steps: []step{
				first,
				{map[string]string{"watch": "true", "resourceVersion": "10"}, two, expired},
				{map[string]string{"limit": "50"}, two, page("20", "more", post("b", "4", "two"))},
				{map[string]string{"continue": "more"}, two, expired},
				{map[string]string{"limit": "50"}, two, page("21", "", post("b", "4", "two"))},
				{map[string]string{"watch": "true", "resourceVersion": "21"}, map[string]string{"b": "two"}, expired},
			},
		},
		"WatchGoesOnWhereItWas": {
			reason: "the API server ends each watch after some minutes",
			steps: []step{
				first,
				{map[string]string{"watch": "true", "resourceVersion": "10"}, two, []event{
					{"ADDED", post("c", "11", "three")}, {"MODIFIED", post("a", "12", "changed")}, {"DELETED", post("b", "13", "two")},
				}},
				{map[string]string{"watch": "true", "resourceVersion": "13"}, map[string]string{"a": "changed", "c": "three"}, []event{
					{"BOOKMARK", bookmark("17")},
				}},
				{map[string]string{"watch": "true", "resourceVersion": "17"}, map[string]string{"a": "changed", "c": "three"}, expired},
			},
		},
		"ForgottenVersionIsListed": {
			reason: "events are missing after an interruption: a was deleted, b changed, c is new",
			steps: []step{
				first,
				{map[string]string{"watch": "true", "resourceVersion": "10"}, two, []event{{"ERROR", expired}}},
				{map[string]string{"limit": "50", "resourceVersion": ""}, two, page("30", "", post("b", "25", "changed"), post("c", "26", "three"))},
				{map[string]string{"watch": "true", "resourceVersion": "30"}, map[string]string{"b": "changed", "c": "three"}, expired},
			},
		},
		"RestoredStoreIsListed": {
			reason: "versions restart, and writes after the backup are lost",
			steps: []step{
				first,
				{map[string]string{"watch": "true", "resourceVersion": "10"}, two, expired},
				{map[string]string{"limit": "50"}, two, page("5", "", post("b", "4", "two"))},
				{map[string]string{"watch": "true", "resourceVersion": "5"}, map[string]string{"b": "two"}, []event{{"ADDED", post("c", "6", "three")}}},
				{map[string]string{"watch": "true", "resourceVersion": "6"}, map[string]string{"b": "two", "c": "three"}, expired},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			index, requests, synced := feed(t)
			for i, step := range tc.steps {
				r := <-requests
				for parameter, want := range step.query {
					if got := r.query.Get(parameter); got != want {
						t.Errorf("%s: request %d has %s=%q, want %q", tc.reason, i, parameter, got, want)
					}
				}
				lists := map[string]string{}
				posts, _ := index.List(team, postindex.Query{Page: 1, Limit: 10})
				for _, p := range posts {
					lists[p.ID] = p.Title
				}
				if diff := cmp.Diff(step.lists, lists); diff != "" {
					t.Errorf("%s: before request %d the index -want +got:\n%s", tc.reason, i, diff)
				}
				r.answer <- step.answer
			}
			<-synced
		})
	}
}
