// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Program finds one of Prometheus's programs: the Debian package, unpacked into bin/prometheus of a checkout, or
// otherwise the one in PATH.
func Program(checkout, name string) (string, error) {
	if path, err := exec.LookPath(filepath.Join(checkout, "bin", "prometheus", "usr", "bin", name)); err == nil {
		return filepath.Abs(path)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("there is no %s: `make prometheus` takes it out of Debian's package: %w", name, err)
	}
	return path, nil
}

// Server is a running Prometheus.
type Server struct{ URL string }

// Result is one series of a response: its labels, and its points as pairs of a time and a quoted value.
type Result struct {
	Metric map[string]string `json:"metric"`
	Value  []any             `json:"value"`
	Values [][]any           `json:"values"`
}

// Ready returns an error until Prometheus answers queries.
func (s Server) Ready(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/-/ready", http.NoBody)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s", s.URL, answer.Status)
	}
	return firstOf(err, answer.Body.Close())
}

// Query evaluates an expression at one time.
func (s Server) Query(ctx context.Context, query string, at time.Time) ([]Result, error) {
	return s.query(ctx, "/api/v1/query", url.Values{"query": {query}, "time": {seconds(at)}})
}

// QueryRange evaluates an expression at every step.
func (s Server) QueryRange(ctx context.Context, query string, from, to time.Time, step time.Duration) ([]Result, error) {
	return s.query(ctx, "/api/v1/query_range", url.Values{
		"query": {query}, "start": {seconds(from)}, "end": {seconds(to)}, "step": {strconv.FormatFloat(step.Seconds(), 'f', -1, 64)},
	})
}

func seconds(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

func (s Server) query(ctx context.Context, path string, form url.Values) ([]Result, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Status string `json:"status"`
		Error  string `json:"error"`
		Data   struct {
			Result []Result `json:"result"`
		} `json:"data"`
	}
	err = firstOf(json.NewDecoder(response.Body).Decode(&answer), response.Body.Close())
	if err == nil && answer.Status != "success" {
		err = fmt.Errorf("%s: %s", form.Get("query"), answer.Error)
	}
	return answer.Data.Result, err
}

// firstOf returns the first error.
func firstOf(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// Numbers returns the points of a series, by Unix time.
func (r *Result) Numbers() (map[int64]float64, error) {
	points := r.Values
	if len(r.Value) > 0 {
		points = [][]any{r.Value}
	}
	numbers := map[int64]float64{}
	for _, point := range points {
		at, isTime := point[0].(float64)
		text, isText := point[1].(string)
		value, err := strconv.ParseFloat(text, 64)
		if !isTime || !isText || err != nil {
			return nil, fmt.Errorf("want a time and a number, got %v", point)
		}
		numbers[int64(at)] = value
	}
	return numbers, nil
}

// Name returns the series in Prometheus notation without the instance label: the pod already identifies the process.
func (r *Result) Name() string {
	var pairs []string
	for _, label := range slices.Sorted(maps.Keys(r.Metric)) {
		if label != "__name__" && label != "instance" {
			pairs = append(pairs, label+"="+strconv.Quote(r.Metric[label]))
		}
	}
	return r.Metric["__name__"] + "{" + strings.Join(pairs, ",") + "}"
}

// Record reads a query's results from a Prometheus.
func (s Server) Record(ctx context.Context, query string, from, to time.Time, step time.Duration) (*Recording, error) {
	results, err := s.QueryRange(ctx, query, from, to, step)
	if err != nil {
		return nil, err
	}
	r := &Recording{From: from, Step: step, Series: map[string][]float64{}, Absent: map[string]map[int]bool{}}
	for i := range results {
		numbers, err := results[i].Numbers()
		if err != nil {
			return nil, err
		}
		name := results[i].Name()
		r.Absent[name] = map[int]bool{}
		for at := from; !at.After(to); at = at.Add(step) {
			value, ok := numbers[at.Unix()]
			r.Absent[name][len(r.Series[name])] = !ok
			r.Series[name] = append(r.Series[name], value)
		}
	}
	return r, nil
}
