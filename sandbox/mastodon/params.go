// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mastodon

import (
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/herald-social/herald/sandbox/faults"
)

// params are a request's parameters, from its query and from its body: a form or JSON (client/intro, "How to use
// parameters").
type params struct {
	values url.Values
	read   []string
}

// maxForm is the maximum size of a form in memory, in bytes. It does not apply to uploads.
const maxForm = 1 << 20

// readParams reads the parameters of a request. It returns false for a body in another format.
func readParams(r *faults.Request) (*params, bool) {
	q := &params{values: r.URL.Query()}
	if len(r.Content) == 0 {
		return q, true
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return q, false
	}
	switch media {
	case "application/x-www-form-urlencoded":
		form, err := url.ParseQuery(string(r.Content))
		q.add(form)
		return q, err == nil
	case "multipart/form-data":
		return q, q.addMultipart(r) == nil
	case "application/json":
		var body map[string]any
		decoder := json.NewDecoder(strings.NewReader(string(r.Content)))
		decoder.UseNumber()
		if err := decoder.Decode(&body); err != nil {
			return q, false
		}
		for name, value := range body {
			q.addJSON(name, value)
		}
		return q, true
	default:
		return q, false
	}
}

func (q *params) add(form url.Values) {
	for name, values := range form {
		q.values[name] = append(q.values[name], values...)
	}
}

func (q *params) addMultipart(r *faults.Request) error {
	clone := r.Clone(r.Context())
	clone.Body = readCloser{strings.NewReader(string(r.Content))}
	if err := clone.ParseMultipartForm(maxForm); err != nil {
		return err
	}
	q.add(url.Values(clone.MultipartForm.Value))
	return nil
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

// addJSON adds a field of a JSON body under the name that it would have in a form.
func (q *params) addJSON(name string, value any) {
	switch v := value.(type) {
	case nil:
	case string:
		q.values.Add(name, v)
	case json.Number:
		q.values.Add(name, v.String())
	case bool:
		q.values.Add(name, strconv.FormatBool(v))
	case []any:
		for _, item := range v {
			q.addJSON(name+"[]", item)
		}
	case map[string]any:
		for field, item := range v {
			q.addJSON(name+"["+field+"]", item)
		}
	}
}

func (q *params) text(name string) string {
	q.read = append(q.read, name)
	return q.values.Get(name)
}

// flag reads a boolean: Rails casts everything to true except for these (client/intro).
func (q *params) flag(name string) bool {
	return !slices.Contains([]string{"", "0", "f", "F", "false", "FALSE", "off", "OFF"}, q.text(name))
}

// list reads an array, whose name has brackets, with or without an index.
func (q *params) list(name string) []string {
	q.read = append(q.read, name+"[]")
	items := slices.Clone(q.values[name+"[]"])
	for i := 0; ; i++ {
		indexed := name + "[" + string(rune('0'+i)) + "]"
		value, found := q.values[indexed]
		if !found || i > 9 {
			return items
		}
		q.read = append(q.read, indexed)
		items = append(items, value...)
	}
}

// unknown returns a parameter that has not been read, or "".
func (q *params) unknown() string {
	for name := range q.values {
		if !slices.Contains(q.read, name) {
			return name
		}
	}
	return ""
}

// checked returns an error for a parameter that the platform ignores, unless the sandbox is lenient.
func (p *Platform) checked(q *params) *problem {
	if name := q.unknown(); name != "" && !p.Lenient {
		return &problem{http.StatusBadRequest, "the parameter " + name + " has no effect, or is not simulated"}
	}
	return nil
}

func badBody() *problem {
	return &problem{http.StatusBadRequest, "the body is neither a form nor JSON"}
}
