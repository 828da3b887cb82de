// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gitops checks that GitOps tools assess the health of posts as docs/post-status.md documents.
package gitops

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/cel"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/yaml"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/posting/ratelimit"
	"github.com/herald-social/herald/test/must"
)

var now = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)

// state is a row of the table in docs/post-status.md.
type state struct {
	name string
	spec func(*v1alpha1.PostSpec)
	// accepted is the reason of the Accepted condition.
	accepted string
	target   v1alpha1.TargetStatus
}

func draft(s *v1alpha1.PostSpec)     { s.Draft = true }
func scheduled(s *v1alpha1.PostSpec) { s.ScheduledAt = v1alpha1.NewTimePtr(now.Add(time.Hour)) }
func cancelled(s *v1alpha1.PostSpec) { scheduled(s); s.Cancelled = true }
func atOnce(*v1alpha1.PostSpec)      {}

// blocked returns a target that is due but blocked.
func blocked(reason string) v1alpha1.TargetStatus {
	return v1alpha1.TargetStatus{TryUntil: v1alpha1.NewTimePtr(now), Blocked: &v1alpha1.Blocked{Reason: reason, Problem: "it is unavailable"}}
}

func settled(state v1alpha1.TargetState, reason string) v1alpha1.TargetStatus {
	t := blocked(reason)
	t.State = state
	return t
}

var states = []state{
	{"a draft", draft, v1alpha1.ReasonAccepted, v1alpha1.TargetStatus{}},
	{"a draft, with a missing reference", draft, v1alpha1.ReasonConnectionNotFound, v1alpha1.TargetStatus{}},
	{"an invalid draft", draft, v1alpha1.ReasonInvalid, v1alpha1.TargetStatus{}},
	{"scheduled", scheduled, v1alpha1.ReasonAccepted, v1alpha1.TargetStatus{}},
	{"scheduled, with a missing reference", scheduled, v1alpha1.ReasonMediaNotFound, v1alpha1.TargetStatus{}},
	{"scheduled, but invalid", scheduled, v1alpha1.ReasonInvalid, v1alpha1.TargetStatus{}},
	{"due, with a missing reference", scheduled, v1alpha1.ReasonMediaNotReady, blocked(v1alpha1.ReasonMediaNotReady)},
	{"due, but invalid", atOnce, v1alpha1.ReasonInvalid, blocked(v1alpha1.ReasonInvalid)},
	{"due, but its account is disabled or not ready", scheduled, v1alpha1.ReasonAccepted, blocked(v1alpha1.ReasonConnectionNotReady)},
	{"being published", atOnce, v1alpha1.ReasonAccepted, v1alpha1.TargetStatus{Attempt: &v1alpha1.Attempt{ID: "a"}}},
	{"posted", atOnce, v1alpha1.ReasonAccepted, v1alpha1.TargetStatus{State: v1alpha1.TargetPosted}},
	{"failed", atOnce, v1alpha1.ReasonAccepted, settled(v1alpha1.TargetFailed, v1alpha1.ReasonRefused)},
	{"failed: not corrected in time", atOnce, v1alpha1.ReasonInvalid, settled(v1alpha1.TargetFailed, v1alpha1.ReasonInvalid)},
	{"failed: outcome unknown", atOnce, v1alpha1.ReasonAccepted, settled(v1alpha1.TargetUndecided, v1alpha1.ReasonOutcomeUnknown)},
	{"cancelled", cancelled, v1alpha1.ReasonAccepted, v1alpha1.TargetStatus{}},
}

// post returns the row's post, with the conditions that the manager sets.
func (s *state) post(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	p := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Name: "post", Namespace: "team", Generation: 1}}
	p.Spec = v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{{Caption: "hello"}}}
	s.spec(&p.Spec)
	status := metav1.ConditionFalse
	if s.accepted == v1alpha1.ReasonAccepted {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionAccepted, Status: status, Reason: s.accepted, ObservedGeneration: 1})
	target := s.target
	target.Platform = v1alpha1.PlatformX
	if target.State == "" {
		target.State = v1alpha1.TargetPending
	}
	p.Status.Targets = []v1alpha1.TargetStatus{target}
	delivery.Describe(p, now)
	p.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Post"))
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p)
	must.Succeed(t, err)
	return &unstructured.Unstructured{Object: content}
}

// row formats the table row of a post.
func row(t *testing.T, name string, p *unstructured.Unstructured) string {
	t.Helper()
	var typed v1alpha1.Post
	must.Succeed(t, runtime.DefaultUnstructuredConverter.FromUnstructured(p.Object, &typed))
	cells := []string{name, "`" + string(typed.Status.Phase) + "`"}
	if typed.Status.Phase == "" {
		cells[1] = "–"
	}
	for _, kind := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionPublished, v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
		c := meta.FindStatusCondition(typed.Status.Conditions, kind)
		switch {
		case c == nil:
			cells = append(cells, "–")
		case kind == v1alpha1.ConditionReconciling, kind == v1alpha1.ConditionStalled:
			cells = append(cells, string(c.Status))
		default:
			cells = append(cells, string(c.Status)+", `"+c.Reason+"`")
		}
	}
	judged, err := kstatus.Compute(p)
	must.Succeed(t, err)
	health, err := argo(p)
	must.Succeed(t, err)
	return "| " + strings.Join(append(cells, judged.Status.String(), health), " | ") + " |"
}

// TestStates compares the table in docs/post-status.md with the health of each state according to Argo CD and kstatus,
// which kubectl and Flux use.
func TestStates(t *testing.T) {
	page, err := os.ReadFile("../../docs/post-status.md")
	must.Succeed(t, err)
	var rows []string
	applied := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "social.herald.dev/v1alpha1", "kind": "Post", "metadata": map[string]any{"name": "post", "generation": int64(1)},
		"status": map[string]any{"observedGeneration": int64(-1)},
	}}
	if r := row(t, "not yet reconciled by a manager", applied); !strings.Contains(string(page), r+"\n") {
		t.Errorf("docs/post-status.md does not have the row %s", r)
	}
	for _, s := range states {
		r := row(t, s.name, s.post(t))
		rows = append(rows, r)
		if !strings.Contains(string(page), r+"\n") {
			t.Errorf("docs/post-status.md does not have the row of %q", s.name)
		}
	}
	if t.Failed() {
		t.Logf("the rows are:\n%s", strings.Join(rows, "\n"))
	}
}

// argo runs config/gitops's health script in Argo CD's Lua interpreter.
func argo(p *unstructured.Unstructured) (string, error) {
	script, err := os.ReadFile("../../config/gitops/argocd-health.lua")
	if err != nil {
		return "", err
	}
	l := lua.NewState()
	defer l.Close()
	l.SetGlobal("obj", table(l, p.Object))
	if err := l.DoString(string(script)); err != nil {
		return "", err
	}
	health, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		return "", fmt.Errorf("the script returned %v", l.Get(-1))
	}
	return health.RawGetString("status").String(), nil
}

// table converts a JSON value to Lua.
func table(l *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case map[string]any:
		out := l.NewTable()
		for name, field := range v {
			out.RawSetString(name, table(l, field))
		}
		return out
	case []any:
		out := l.NewTable()
		for _, item := range v {
			out.Append(table(l, item))
		}
		return out
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	default:
		return lua.LNil
	}
}

// TestFluxExpressions evaluates the CEL expressions in config/gitops in the same order as Flux (its RFC 0009): in
// progress, failed, current. A post that matches none is in progress.
func TestFluxExpressions(t *testing.T) {
	var file struct {
		HealthCheckExprs []struct{ APIVersion, Kind, Current, Failed, InProgress string }
	}
	content, err := os.ReadFile("../../config/gitops/flux-published.yaml")
	must.Succeed(t, err)
	if err := yaml.UnmarshalStrict(content, &file); err != nil || len(file.HealthCheckExprs) != 1 {
		t.Fatalf("%v, %d expressions", err, len(file.HealthCheckExprs))
	}
	expressions := file.HealthCheckExprs[0]
	for _, s := range states {
		p := s.post(t)
		got := "InProgress"
		switch {
		case expressions.InProgress != "" && evaluate(t, expressions.InProgress, p):
		case evaluate(t, expressions.Failed, p):
			got = "Failed"
		case evaluate(t, expressions.Current, p):
			got = "Current"
		}
		want := "InProgress"
		switch {
		case s.name == "posted":
			want = "Current"
		case strings.Contains(s.name, "failed"), strings.Contains(s.name, "invalid"):
			want = "Failed"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", s.name, got, want)
		}
	}
	applied := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{}}}
	for _, expression := range []string{expressions.Failed, expressions.Current} {
		if evaluate(t, expression, applied) {
			t.Errorf("%s holds for a new post without conditions", expression)
		}
	}
}

func evaluate(t *testing.T, expression string, p *unstructured.Unstructured) bool {
	t.Helper()
	env, err := cel.NewEnv(cel.Variable("status", cel.DynType))
	must.Succeed(t, err)
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	program, err := env.Program(ast)
	must.Succeed(t, err)
	value, _, err := program.Eval(map[string]any{"status": p.Object["status"]})
	must.Succeed(t, err)
	result, _ := value.Value().(bool)
	return result
}

// TestLimitedConnection checks the health of a rate-limited Connection: the limit is temporary, and not a mistake in
// the manifest.
func TestLimitedConnection(t *testing.T) {
	conn := &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Name: "acme", Namespace: "team", Generation: 1}}
	conn.Status.ObservedGeneration, conn.Status.RateLimitedUntil = 1, v1alpha1.NewTimePtr(now.Add(time.Hour))
	conditions.Apply(&conn.Status.Conditions, conditions.Summary{Ready: true, Reason: v1alpha1.ReasonConnected, Progress: conditions.Settled}, 1, now)
	ratelimit.Describe(conn, "", now)
	if !meta.IsStatusConditionTrue(conn.Status.Conditions, v1alpha1.ConditionRateLimited) {
		t.Fatal("the connection is not limited")
	}
	conn.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Connection"))
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(conn)
	must.Succeed(t, err)
	judged, err := kstatus.Compute(&unstructured.Unstructured{Object: content})
	if err != nil || judged.Status != kstatus.CurrentStatus {
		t.Errorf("kstatus returns %v, error %v", judged, err)
	}
}
