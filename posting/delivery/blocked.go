// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

// blocked returns what prevents a target from being sent at the moment: a namespace without a team, its connection, its
// files or a rate limit. It returns nil if the target can be sent.
func (f *Facts) blocked(i int) *v1alpha1.Blocked {
	if f.Unowned {
		return new(noTeam(f.Post))
	}
	if b := f.connectionProblem(i); b != nil {
		return b
	}
	if problem := f.fileProblem(i); problem != "" {
		return &v1alpha1.Blocked{Reason: v1alpha1.ReasonMediaNotReady, Problem: problem}
	}
	if !f.blockedUntil(i).IsZero() {
		return new(f.rateLimitBlock(f.connection(i)))
	}
	return nil
}

// rateLimitBlock returns the block for a target whose connection is rate-limited. If the limit applies to the
// connection's own account, the problem contains the connection's message.
func (f *Facts) rateLimitBlock(conn *v1alpha1.Connection) v1alpha1.Blocked {
	status := &conn.Status
	if until := status.RateLimitedUntil; until == nil || !until.After(f.Now) || status.RateLimitedMessage == "" {
		return rateLimited(conn)
	}
	refused := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionPublishingRefused)
	if refused != nil && refused.Reason == v1alpha1.ReasonAccountRestricted && refused.Message == status.RateLimitedMessage {
		return restricted(conn, refused.Message)
	}
	return v1alpha1.Blocked{Reason: v1alpha1.ReasonRateLimited, Problem: fmt.Sprintf(
		"%s does not accept posts from connection %q at the moment; the connection's status shows when it will again: %s", conn.Spec.Platform, conn.Name, status.RateLimitedMessage)}
}

// restricted returns the block for an account that the platform has locked or suspended.
func restricted(conn *v1alpha1.Connection, why string) v1alpha1.Blocked {
	return v1alpha1.Blocked{
		Reason:  v1alpha1.ReasonAccountRestricted,
		Problem: fmt.Sprintf("%s restricts the account of connection %q: %s", conn.Spec.Platform, conn.Name, why),
	}
}

func rateLimited(conn *v1alpha1.Connection) v1alpha1.Blocked {
	return v1alpha1.Blocked{Reason: v1alpha1.ReasonRateLimited, Problem: fmt.Sprintf(
		"%s does not accept posts from connection %q at the moment; the connection's status shows the reason and the end, or that of another connection to %[1]s if the limit applies to the whole app",
		conn.Spec.Platform, conn.Name)}
}

// categoryProblem returns the reason why this version cannot publish a target, or "". Targets are never published in
// part.
func (f *Facts) categoryProblem(i int) string {
	conn := f.connection(i)
	if conn == nil {
		return ""
	}
	p, ok := f.Platforms[conn.Spec.Platform]
	if !ok || p.Capabilities().CanDeliver(f.Post.Spec.Category) &&
		(f.Post.Spec.Tree == nil || p.Capabilities().CanDeliver(v1alpha1.CategoryImage) || len(f.MediaNames()) == 0) {
		return ""
	}
	return fmt.Sprintf("not published: this version of Herald does not deliver posts of category %s to %s yet", f.Post.Spec.Category, conn.Spec.Platform)
}

// planProblem returns the plan limit named in the Ready condition, or "". Targets with published cards are exempt.
func (f *Facts) planProblem(i int) string {
	conn := f.connection(i)
	if conn == nil || len(f.Target(i).Cards) > 0 {
		return ""
	}
	if ready := meta.FindStatusCondition(conn.Status.Conditions, v1alpha1.ConditionReady); ready == nil || ready.Reason != v1alpha1.ReasonPlanLimit {
		return ""
	}
	return fmt.Sprintf("not published: connection %q exceeds what the team's plan allows; disable or delete another connection, or change the plan, and post again", conn.Name)
}

func (f *Facts) connectionProblem(i int) *v1alpha1.Blocked {
	name := f.Post.Spec.Targets[i].ConnectionRef.Name
	because := func(remedy, problem string, args ...any) *v1alpha1.Blocked {
		return &v1alpha1.Blocked{Reason: v1alpha1.ReasonConnectionNotReady, Problem: fmt.Sprintf(problem, args...), Remedy: remedy}
	}
	conn := f.connection(i)
	if conn == nil {
		return because("create it, or delete this post", "connection %q does not exist", name)
	}
	if _, ok := f.Timing(conn.Spec.Platform); !ok {
		return because("", "this installation cannot publish to %s", conn.Spec.Platform)
	}
	if conn.Spec.Disabled {
		return because("enable it to publish", "connection %q is disabled", name)
	}
	ready := meta.FindStatusCondition(conn.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil:
		return because("", "connection %q has not been checked yet", name)
	case ready.Status == metav1.ConditionTrue, ready.Reason == v1alpha1.ReasonPlatformUnavailable && conn.Status.Verified():
		// A platform that did not answer the last probe may accept a post now. The account must have been verified
		// before, because publishing does not verify it.
		return nil
	case ready.Reason == v1alpha1.ReasonPlatformUnavailable:
		return because("", "the account of the credentials of connection %q is not confirmed, because the platform does not respond: %s", name, ready.Message)
	case ready.Reason == v1alpha1.ReasonAccountRestricted:
		return new(restricted(conn, ready.Message))
	default:
		return because("", "connection %q is not ready: %s", name, ready.Message)
	}
}

// credentialsPause is the pause between reads of credentials. A change to the connection triggers an earlier retry.
const credentialsPause = 5 * time.Second

func (f *Facts) credentialsProblem(i int) string {
	name := f.Post.Spec.Targets[i].ConnectionRef.Name
	if err := f.CredentialsProblem(name); err != nil {
		return fmt.Sprintf("the credentials of connection %q cannot be used: %v", name, err)
	}
	return ""
}

func (f *Facts) fileProblem(i int) string { return FileProblem(f.Post, i, f.Media) }
