// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/mediatest"
	"github.com/herald-social/herald/test/perf/internal/stack"
	"github.com/herald-social/herald/test/sandboxtest"
)

// firstHostile is the first number of the hostile team's accounts.
const firstHostile = 1_900_000_000

// enemy is a hostile team with one key and some accounts.
type enemy struct {
	*session
	team      stack.Team
	threads   []stack.Connection
	budgetMiB float64
	web       *http.Client

	mu      sync.Mutex
	answers map[string]map[string]int
}

func (s *session) newEnemy(ctx context.Context) (*enemy, error) {
	team, budget, err := s.stack.MakeTeamWithin(ctx, "hostile")
	if err != nil {
		return nil, err
	}
	e := &enemy{
		session: s, team: team, budgetMiB: float64(budget.PostBytes) / (1 << 20), answers: map[string]map[string]int{},
		web: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
	}
	if e.team.Connections, err = s.stack.Connect(ctx, v1alpha1.PlatformX, e.team.Namespace, firstHostile, accountsOfEnemy); err != nil {
		return nil, err
	}
	if e.threads, err = s.stack.Connect(ctx, v1alpha1.PlatformThreads, e.team.Namespace, firstHostile, accountsOfEnemy); err != nil {
		return nil, err
	}
	if err := e.breakAccounts(ctx); err != nil {
		return nil, err
	}
	return e, nil
}

// breakAccounts makes X return errors for the hostile team's accounts only: for an app without credits, for revoked
// tokens or for a rate limit.
func (e *enemy) breakAccounts(ctx context.Context) error {
	for i, c := range e.team.Connections {
		fault := sandboxtest.Fault{Platform: string(v1alpha1.PlatformX), Account: c.AccountID, Operation: "*", Times: endless, Kind: "status", Status: http.StatusPaymentRequired}
		switch i % 3 {
		case 1:
			fault.Kind, fault.Status = "token_revoked", 0
		case 2:
			fault.Kind, fault.Status = "rate_limit", 0
		}
		if err := e.stack.Sandbox.Fault(ctx, fault); err != nil {
			return err
		}
	}
	return nil
}

const (
	// accountsOfEnemy is the number of accounts that the hostile team has on each platform.
	accountsOfEnemy = 9
	// endless is more than the number of calls in any run.
	endless = 1 << 30
	// atOnceOfEnemy is the number of concurrent requests in each attack.
	atOnceOfEnemy = 4
	// breath is the pause between two requests of a sender. Together the senders make hundreds of requests per second,
	// far above a team's limit, and still leave CPU time for the servers on the same machine.
	breath = 50 * time.Millisecond
)

// attack starts all attacks. They stop when ctx is done.
func (e *enemy) attack(ctx context.Context, all *sync.WaitGroup) {
	attacks := map[string]func(ctx context.Context, nth int) (int, error){
		"drafts of the largest size":     e.largeDraft,
		"bodies of a thousand empty":     e.body("/posts", emptyTargets),
		"bodies of a thousand numbers":   e.body("/posts", numbers),
		"bodies that nest":               e.body("/posts", nested),
		"messages of agents that nest":   e.body("../../mcp", nested),
		"posts with two thousand files":  e.body("/posts", manyFiles),
		"posts to broken accounts":       e.brokenAccount,
		"pictures that take a minute":    e.picture,
		"upload URLs":                    e.address,
		"strangers with a made-up token": e.stranger,
		"long addresses":                 e.longAddress,
	}
	for name, once := range attacks {
		for range atOnceOfEnemy {
			all.Go(func() {
				repeat(ctx, breath, func(nth int) {
					if status, err := once(ctx, nth); ctx.Err() == nil {
						e.record(name, status, err)
					}
				})
			})
		}
	}
}

func (e *enemy) record(name string, status int, err error) {
	word := fmt.Sprint(status)
	if err != nil {
		word = "no answer"
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.answers[name] == nil {
		e.answers[name] = map[string]int{}
	}
	e.answers[name][word]++
}

// send sends a body with a token and returns the status.
func (e *enemy) send(ctx context.Context, method, url, token string, body []byte, out any) (int, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	answer, err := e.web.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err == nil && out != nil && answer.StatusCode < http.StatusMultipleChoices {
		err = json.Unmarshal(text, out)
	}
	return answer.StatusCode, err
}

// largeDraft stores a draft of 240 KiB.
func (e *enemy) largeDraft(ctx context.Context, nth int) (int, error) {
	const cards, each = 48, 5000
	tree := make([]map[string]string, cards)
	for i := range tree {
		tree[i] = map[string]string{"caption": strings.Repeat("x", each-10) + fmt.Sprint(nth)}
	}
	body, err := json.Marshal(map[string]any{
		"category": v1alpha1.CategoryTree, "draft": true, "tree_cards": tree,
		"targets": []map[string]string{{"connection_id": e.threads[nth%len(e.threads)].Name}},
	})
	if err != nil {
		return 0, err
	}
	return e.send(ctx, http.MethodPost, e.stack.APIURL("/posts"), e.team.Token, body, nil)
}

// body returns an attack that always sends the same body.
func (e *enemy) body(path string, of func() string) func(context.Context, int) (int, error) {
	text := []byte(of())
	url := e.stack.APIURL(path)
	if strings.HasPrefix(path, "..") {
		url = e.stack.Setup.URL("site") + "/mcp"
	}
	return func(ctx context.Context, _ int) (int, error) {
		return e.send(ctx, http.MethodPost, url, e.team.Token, text, nil)
	}
}

// mebibyte is the size of the largest body.
const mebibyte = 1 << 20

// repeated returns one mebibyte of text.
func repeated(head, unit, tail string) string {
	return head + strings.Repeat(unit, (mebibyte-len(head)-len(tail)-len(unit))/len(unit)) + unit[:len(unit)-1] + tail
}

func emptyTargets() string {
	return repeated(`{"category":"tree","draft":true,"targets":[`, "{},", `]}`)
}

func numbers() string {
	return repeated(`{"category":"tree","draft":true,"tree_cards":[`, "1,", `]}`)
}

func nested() string {
	const depth = 60
	return repeated(`{"category":"text","targets":[`, strings.Repeat("[", depth)+strings.Repeat("]", depth)+",", `]}`)
}

func manyFiles() string {
	files := make([]string, 0, 2000)
	for i := range cap(files) {
		files = append(files, fmt.Sprintf(`"m-%d"`, i))
	}
	return `{"category":"image","targets":[{"connection_id":"none"}],"media_ids":[` + strings.Join(files, ",") + `]}`
}

// brokenAccount posts to an account that the platform rejects, for one of several reasons.
func (e *enemy) brokenAccount(ctx context.Context, nth int) (int, error) {
	to := e.team.Connections[nth%len(e.team.Connections)]
	body := fmt.Sprintf(`{"category":"text","targets":[{"connection_id":%q,"caption":"nothing good %d"}]}`, to.Name, nth)
	return e.send(ctx, http.MethodPost, e.stack.APIURL("/posts"), e.team.Token, []byte(body), nil)
}

// uploadOf is the response to an upload request.
type uploadOf struct {
	Data struct {
		MediaID   string `json:"media_id"`
		UploadURL string `json:"upload_url"`
	} `json:"data"`
}

// address requests an upload URL for a gigabyte and does not use it.
func (e *enemy) address(ctx context.Context, nth int) (int, error) {
	body := fmt.Sprintf(`{"name":"film-%d.mp4","mime_type":"video/mp4","size_bytes":%d}`, nth, v1alpha1.MaxVideoBytes)
	return e.send(ctx, http.MethodPost, e.stack.APIURL("/media/upload-url"), e.team.Token, []byte(body), nil)
}

// picture uploads a picture with the longest permitted decoding time, and posts it to a platform that requires a
// conversion.
func (e *enemy) picture(ctx context.Context, nth int) (int, error) {
	file := mediatest.Scans(5600, 5600, 60+nth%60)
	var created uploadOf
	body := fmt.Sprintf(`{"name":"p-%d.jpg","mime_type":"image/jpeg","size_bytes":%d}`, nth, len(file))
	status, err := e.send(ctx, http.MethodPost, e.stack.APIURL("/media/upload-url"), e.team.Token, []byte(body), &created)
	if err != nil || status >= http.StatusMultipleChoices {
		return status, err
	}
	if _, err := put(ctx, created.Data.UploadURL, v1alpha1.MimeJPEG, bytes.NewReader(file), int64(len(file))); err != nil {
		return 0, err
	}
	post := fmt.Sprintf(`{"category":"image","media_ids":[%q],"targets":[{"connection_id":%q,"caption":"p"}]}`, created.Data.MediaID, e.threads[nth%len(e.threads)].Name)
	return e.send(ctx, http.MethodPost, e.stack.APIURL("/posts"), e.team.Token, []byte(post), nil)
}

func (e *enemy) stranger(ctx context.Context, nth int) (int, error) {
	return e.send(ctx, http.MethodPost, e.stack.APIURL("/posts"), fmt.Sprintf("hrld_%d", nth), []byte(emptyTargets()), nil)
}

func (e *enemy) longAddress(ctx context.Context, _ int) (int, error) {
	const long = 60 << 10
	return e.send(ctx, http.MethodGet, e.stack.APIURL("/"+strings.Repeat("a", long)), "", nil, nil)
}

// tally formats the number of times each response was received.
func tally(answers map[string]int) string {
	words := slices.Sorted(maps.Keys(answers))
	for i, word := range words {
		words[i] = fmt.Sprintf("%d × %s", answers[word], word)
	}
	return strings.Join(words, ", ")
}
