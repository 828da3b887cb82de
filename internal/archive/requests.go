// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/internal/media/store"
)

const requestVersion = 1

// maxRequest is the maximum size of a stored Request in bytes. It is normally a few hundred bytes.
const maxRequest = 4 << 10

// Request records a request with an Idempotency-Key whose object is gone. The object's name is derived from the key.
type Request struct {
	Version int `json:"version"`
	// UID is the UID of the object.
	UID types.UID `json:"uid"`
	// Fingerprint distinguishes requests that have the same key but different content.
	Fingerprint string `json:"fingerprint"`
}

func (t Team) requests() string { return t.Prefix() + "requests/" }

func (t Team) request(name string) string { return t.requests() + fileOf(name) }

// PutRequest stores the request that created the named object.
func (a *Archive) PutRequest(ctx context.Context, team Team, name string, r Request) error {
	r.Version = requestVersion
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("cannot encode the request of %s/%s: %w", team.Namespace, name, err)
	}
	if err := a.write(ctx, team.request(name), data, store.Any); err != nil {
		return explain(fmt.Sprintf("cannot store the request of %s/%s", team.Namespace, name), err)
	}
	return nil
}

// Request returns the request that created the named object, which no longer exists, or ErrNotFound.
func (a *Archive) Request(ctx context.Context, team Team, name string) (Request, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	data, _, err := a.store.ReadDocument(ctx, team.request(name), "", maxRequest)
	if err != nil {
		return Request{}, explain(fmt.Sprintf("cannot read the request of %s/%s", team.Namespace, name), err)
	}
	var r Request
	if err := json.Unmarshal(data, &r); err != nil {
		return Request{}, fmt.Errorf("cannot read the request of %s/%s: %w", team.Namespace, name, err)
	}
	if r.Version != requestVersion {
		return Request{}, fmt.Errorf("the request of %s/%s has the form %d, and this version of Herald knows form %d: use a newer version",
			team.Namespace, name, r.Version, requestVersion)
	}
	return r, nil
}

// ExpireRequests removes a team's requests that were stored before the given time, and returns their number.
func (a *Archive) ExpireRequests(ctx context.Context, team Team, before time.Time) (removed int, err error) {
	if a.Absent() {
		return 0, nil
	}
	var failed faults
	for object, err := range a.store.List(ctx, team.requests()) {
		switch {
		case err != nil:
			return removed, explain("cannot list the requests of team "+team.Name, err)
		case !object.ModifiedAt.Before(before):
			continue
		}
		if err := a.store.Delete(ctx, object.Key); err != nil {
			failed.add(err)
		} else {
			removed++
		}
		if failed.many() {
			break
		}
	}
	if err := failed.err(); err != nil {
		return removed, explain("cannot remove requests of team "+team.Name, err)
	}
	return removed, nil
}
