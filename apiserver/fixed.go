// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"

	"github.com/herald-social/herald/apiserver/request"
)

func fixed(operation, contentType string, body []byte, policy string) page {
	return page{operation: operation, contentType: contentType, body: request.NewFixed(body), policy: policy}
}

func (p *page) serve(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Type", p.contentType)
	header.Set("Content-Security-Policy", p.policy)
	header.Set("Referrer-Policy", "no-referrer")
	p.body.Write(w, r)
}
