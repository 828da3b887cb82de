// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/herald-social/herald/test/must"
)

const checkout = "../.."

// row is a test case for an alert.
type row struct {
	reason string
	alert  string
	// series are in promtool's notation, with one value per minute.
	series []string
	// at is the time at which the rules are evaluated, and fires the number of alerts that fire at that time.
	at    string
	fires int
	// labels are the alert's labels, and value replaces the value in its annotations; both are empty if only the number
	// of alerts matters.
	labels, value string
}

var rows = []row{
	{"a week remains", "HeraldConnectionEndsSoon", []string{`herald_connection_reconnect_seconds{namespace="acme",connection="a",platform="x"} 604799x120`}, "70m", 1, "namespace=acme,connection=a,platform=x", "6d 23h 59m 59s"},
	{"the state is recent: a renewal may be in progress", "HeraldConnectionEndsSoon", []string{`herald_connection_reconnect_seconds{namespace="acme",connection="a",platform="x"} 604799x120`}, "59m", 0, "", ""},
	{"more than a week remains", "HeraldConnectionEndsSoon", []string{`herald_connection_reconnect_seconds{namespace="acme",connection="a",platform="x"} 604801x120`}, "70m", 0, "", ""},
	{"two accounts are two alerts", "HeraldConnectionEndsSoon", []string{
		`herald_connection_reconnect_seconds{namespace="acme",connection="a",platform="x"} 604799x120`,
		`herald_connection_reconnect_seconds{namespace="beta",connection="a",platform="x"} 604799x120`,
	}, "70m", 2, "", ""},
	{"a day remains", "HeraldConnectionEndsNow", []string{`herald_connection_reconnect_seconds{namespace="acme",connection="a",platform="x"} 86400x60`}, "11m", 1, "namespace=acme,connection=a,platform=x", ""},
	{"the connection has ended", "HeraldConnectionEndsNow", []string{`herald_connection_reconnect_seconds{namespace="acme",connection="a",platform="x"} -1x60`}, "11m", 1, "", ""},
	{"three days remain", "HeraldConnectionEndsNow", []string{`herald_connection_reconnect_seconds{namespace="acme",connection="a",platform="x"} 259200x60`}, "11m", 0, "", ""},
	{"the token expired and was not renewed", "HeraldTokenNotRenewed", []string{`herald_connection_token_expiry_seconds{namespace="acme",connection="a",platform="x"} 60-60x60`}, "20m", 1, "namespace=acme,connection=a,platform=x", ""},
	{"the token was renewed a little late", "HeraldTokenNotRenewed", []string{`herald_connection_token_expiry_seconds{namespace="acme",connection="a",platform="x"} 60-60x10 7200-60x30`}, "20m", 0, "", ""},
	{"the connection has not been publishable for an hour", "HeraldConnectionNotReady", []string{`herald_connection_ready{namespace="acme",connection="a",platform="x"} 0x90`}, "61m", 1, "namespace=acme,connection=a,platform=x", ""},
	{"the connection recovered in between", "HeraldConnectionNotReady", []string{`herald_connection_ready{namespace="acme",connection="a",platform="x"} 0x30 1 0x60`}, "61m", 0, "", ""},
	{"the app is limited", "HeraldAppHeld", []string{`herald_app_held{platform="x"} 1x60`}, "11m", 1, "platform=x", ""},
	{"another platform's app is not limited", "HeraldAppHeld", []string{`herald_app_held{platform="x"} 1x60`, `herald_app_held{platform="threads"} 0x60`}, "11m", 1, "platform=x", ""},
	{"a limit of some minutes needs no action", "HeraldAppHeld", []string{`herald_app_held{platform="x"} 1x4 0x60`}, "11m", 0, "", ""},
	{"one post per hour probes the limit", "HeraldAppHeld", []string{`herald_app_held{platform="x"} 1x59 0 1x59`}, "62m", 1, "platform=x", ""},
	{"the alert's cause has ended", "HeraldAppHeld", []string{`herald_app_held{platform="x"} 1x59 0x60`}, "70m", 0, "", ""},
	{"the connection is disabled, which ends its series", "HeraldConnectionNotReady", []string{`herald_connection_ready{namespace="acme",connection="a",platform="x"} 0x30 _x60`}, "61m", 0, "", ""},

	{"no pod serves the webhook", "HeraldWebhookNotServed", []string{`herald_webhook_served{namespace="herald-system",pod="m-1"} 0x30`}, "11m", 1, "namespace=herald-system,pod=m-1", ""},
	{"a pod that starts needs a moment", "HeraldWebhookNotServed", []string{`herald_webhook_served{namespace="herald-system",pod="m-1"} 0x5 1x30`}, "11m", 0, "", ""},
	{"one of two pods does not serve the webhook", "HeraldWebhookNotServed", []string{
		`herald_webhook_served{namespace="herald-system",pod="m-1"} 1x30`, `herald_webhook_served{namespace="herald-system",pod="m-2"} 0x30`,
	}, "11m", 1, "namespace=herald-system,pod=m-2", ""},
	{"the webhook is disabled, and has no series", "HeraldWebhookNotServed", nil, "11m", 0, "", ""},

	{"the certificate has expired", "HeraldWebhookNotTrusted", []string{
		`herald_webhook_served{namespace="herald-system",pod="m-1"} 1x30`, `herald_webhook_trusted{namespace="herald-system",pod="m-1"} 0x30`,
	}, "11m", 1, "namespace=herald-system,pod=m-1", ""},
	{"the certificate is replaced in time", "HeraldWebhookNotTrusted", []string{
		`herald_webhook_served{namespace="herald-system",pod="m-1"} 1x30`, `herald_webhook_trusted{namespace="herald-system",pod="m-1"} 0x2 1x30`,
	}, "11m", 0, "", ""},
	{"the webhook does not respond, which another alert reports", "HeraldWebhookNotTrusted", []string{
		`herald_webhook_served{namespace="herald-system",pod="m-1"} 0x30`, `herald_webhook_trusted{namespace="herald-system",pod="m-1"} 0x30`,
	}, "11m", 0, "", ""},
	{"the Kubernetes API is unavailable", "HeraldWebhookNotTrusted", []string{`herald_webhook_served{namespace="herald-system",pod="m-1"} 1x30`}, "11m", 0, "", ""},

	{"one of two managers leads", "HeraldNoLeader", []string{
		`herald_leader{namespace="herald-system",pod="m-1"} 1x30`, `herald_leader{namespace="herald-system",pod="m-2"} 0x30`,
	}, "20m", 0, "", ""},
	{"neither of two managers leads", "HeraldNoLeader", []string{
		`herald_leader{namespace="herald-system",pod="m-1"} 0x30`, `herald_leader{namespace="herald-system",pod="m-2"} 0x30`,
	}, "20m", 1, "namespace=herald-system", ""},
	{"a handover takes less than three scrapes", "HeraldNoLeader", []string{
		`herald_leader{namespace="herald-system",pod="m-1"} 1x9 _x30`, `herald_leader{namespace="herald-system",pod="m-2"} 0x11 1x30`,
	}, "12m", 0, "", ""},
	{"no manager is running", "HeraldNoLeader", []string{`herald_leader{namespace="herald-system",pod="m-1"} 1x5 _x30`}, "20m", 1, "", ""},
	{"one of two installations has no leader", "HeraldNoLeader", []string{
		`herald_leader{namespace="one",pod="m-1"} 1x30`, `herald_leader{namespace="two",pod="m-1"} 0x30`,
	}, "20m", 1, "", ""},

	{"two managers share two shards", "HeraldShardNotHeld", []string{
		`herald_shard_held{namespace="herald-system",pod="m-1",shard="00"} 1x30`, `herald_shard_held{namespace="herald-system",pod="m-1",shard="01"} 0x30`,
		`herald_shard_held{namespace="herald-system",pod="m-2",shard="00"} 0x30`, `herald_shard_held{namespace="herald-system",pod="m-2",shard="01"} 1x30`,
	}, "20m", 0, "", ""},
	{"the other manager does not take over the shard of a killed one", "HeraldShardNotHeld", []string{
		`herald_shard_held{namespace="herald-system",pod="m-1",shard="00"} 1x30`, `herald_shard_held{namespace="herald-system",pod="m-1",shard="01"} 0x30`,
		`herald_shard_held{namespace="herald-system",pod="m-2",shard="00"} 0x5 _x30`, `herald_shard_held{namespace="herald-system",pod="m-2",shard="01"} 1x5 _x30`,
	}, "20m", 1, "namespace=herald-system,shard=01", ""},
	{"the other manager takes over within three scrapes", "HeraldShardNotHeld", []string{
		`herald_shard_held{namespace="herald-system",pod="m-1",shard="01"} 0x8 1x30`, `herald_shard_held{namespace="herald-system",pod="m-2",shard="01"} 1x5 _x30`,
	}, "20m", 0, "", ""},
	{"no manager can write the Leases", "HeraldShardNotHeld", []string{
		`herald_shard_held{namespace="herald-system",pod="m-1",shard="00"} 0x30`, `herald_shard_held{namespace="herald-system",pod="m-1",shard="01"} 0x30`,
	}, "20m", 2, "", ""},
	{"another installation holds a shard of the same name", "HeraldShardNotHeld", []string{
		`herald_shard_held{namespace="one",pod="m-1",shard="00"} 1x30`, `herald_shard_held{namespace="two",pod="m-1",shard="00"} 0x30`,
	}, "20m", 1, "namespace=two,shard=00", ""},
	{"the managers were configured with one shard, which ends the series", "HeraldShardNotHeld", []string{
		`herald_shard_held{namespace="herald-system",pod="m-1",shard="00"} 1x5 0x2 _x30`,
	}, "20m", 0, "", ""},

	{"no apiserver is running", "HeraldNoAPIServer", []string{`herald_post_index_posts{namespace="herald-system",pod="a-1"} 5x5 _x30`}, "20m", 1, "severity=critical", ""},
	{"one of two replicas remains", "HeraldNoAPIServer", []string{
		`herald_post_index_posts{namespace="herald-system",pod="a-1"} 5x5 _x30`, `herald_post_index_posts{namespace="herald-system",pod="a-2"} 5x40`,
	}, "20m", 0, "", ""},
	{"an empty cluster has a replica, too", "HeraldNoAPIServer", []string{`herald_post_index_posts{namespace="herald-system",pod="a-1"} 0x40`}, "20m", 0, "", ""},
	{"all replicas are replaced within minutes", "HeraldNoAPIServer", []string{
		`herald_post_index_posts{namespace="herald-system",pod="a-1"} 5x5 _x30`, `herald_post_index_posts{namespace="herald-system",pod="a-2"} _x10 5x30`,
	}, "20m", 0, "", ""},

	{"the sweep ran an hour ago", "HeraldSweepOverdue", []string{`herald_media_last_sweep_timestamp_seconds{namespace="herald-system",pod="m-1"} 0x300`}, "60m", 0, "", ""},
	{"the sweep ran more than three hours ago", "HeraldSweepOverdue", []string{`herald_media_last_sweep_timestamp_seconds{namespace="herald-system",pod="m-1"} 60x300`}, "215m", 1, "namespace=herald-system", ""},
	{"another replica has swept since", "HeraldSweepOverdue", []string{
		`herald_media_last_sweep_timestamp_seconds{namespace="herald-system",pod="m-1"} 60x300`,
		`herald_media_last_sweep_timestamp_seconds{namespace="herald-system",pod="m-2"} 7200x300`,
	}, "215m", 0, "", ""},

	{"the store is unavailable", "HeraldWaitsForStore", []string{
		`herald_posts_waiting_for_store{namespace="acme",for="lookup"} 2x30`, `herald_posts_waiting_for_store{namespace="acme",for="record"} 0x30`,
	}, "11m", 1, "namespace=acme,for=lookup", "2"},
	{"the store is back after some minutes", "HeraldWaitsForStore", []string{`herald_posts_waiting_for_store{namespace="acme",for="record"} 9x5 0x30`}, "11m", 0, "", ""},
	{"the alert reports both causes", "HeraldWaitsForStore", []string{
		`herald_posts_waiting_for_store{namespace="acme",for="lookup"} 2x30`, `herald_posts_waiting_for_store{namespace="acme",for="record"} 1x30`,
	}, "11m", 2, "", ""},
	{"a post was released without a record", "HeraldRecordAbandoned", []string{`herald_records_abandoned_total{namespace="acme"} 0x10 1x120`}, "60m", 1, "", ""},
	{"the release was a day ago", "HeraldRecordAbandoned", []string{`herald_records_abandoned_total{namespace="acme"} 0x10 1x2000`}, "1400m", 0, "", ""},
	{"no post was released", "HeraldRecordAbandoned", []string{`herald_records_abandoned_total{namespace="acme"} 0x120`}, "60m", 0, "", ""},
	{"a user stored a wrong token", "HeraldCredentialsRefused", []string{`herald_connections_ignoring_credentials{namespace="acme",why="refused"} 1x90`}, "61m", 1, "namespace=acme", "1"},
	{"a tool put an old token back", "HeraldCredentialsRefused", []string{
		`herald_connections_ignoring_credentials{namespace="acme",why="superseded"} 1x90`, `herald_connections_ignoring_credentials{namespace="acme",why="refused"} 0x90`,
	}, "61m", 0, "", ""},
	{"the Secret was corrected within the hour", "HeraldCredentialsRefused", []string{`herald_connections_ignoring_credentials{namespace="acme",why="refused"} 1x50 0x60`}, "61m", 0, "", ""},

	{"the leader sees another cluster's marker", "HeraldBucketForeign", []string{
		`herald_bucket_foreign{namespace="herald-system",pod="m-1"} 1x60`, `herald_bucket_foreign{namespace="herald-system",pod="m-2"} 0x60`,
	}, "16m", 1, "namespace=herald-system", ""},
	{"an administrator took over the bucket within a quarter of an hour", "HeraldBucketForeign", []string{`herald_bucket_foreign{namespace="herald-system",pod="m-1"} 1x10 0x50`}, "16m", 0, "", ""},
	{"the bucket belongs to this cluster", "HeraldBucketForeign", []string{`herald_bucket_foreign{namespace="herald-system",pod="m-1"} 0x60`}, "40m", 0, "", ""},
	{"the cluster was restored to an earlier state", "HeraldClusterRewound", []string{
		`herald_cluster_rewound_timestamp_seconds{namespace="herald-system",pod="m-1"} 0x10 600x60`, `herald_cluster_rewound_timestamp_seconds{namespace="herald-system",pod="m-2"} 0x70`,
	}, "12m", 1, "namespace=herald-system", ""},
	{"the rollback was a day ago", "HeraldClusterRewound", []string{`herald_cluster_rewound_timestamp_seconds{namespace="herald-system",pod="m-1"} 600x1500`}, "1451m", 0, "", ""},
	{"the cluster was never rolled back", "HeraldClusterRewound", []string{`herald_cluster_rewound_timestamp_seconds{namespace="herald-system",pod="m-1"} 0x60`}, "30m", 0, "", ""},
	{"due posts are archived", "HeraldRetentionOverdue", []string{`herald_retention_lag_seconds{namespace="herald-system",pod="m-1"} 30x120`}, "100m", 0, "", ""},
	{"a backlog is worked off", "HeraldRetentionOverdue", []string{`herald_retention_lag_seconds{namespace="herald-system",pod="m-1"} 0+60x80 0x60`}, "109m", 0, "", ""},
	{"no post leaves the cluster", "HeraldRetentionOverdue", []string{
		`herald_retention_lag_seconds{namespace="herald-system",pod="m-1"} 0+60x200`, `herald_retention_lag_seconds{namespace="herald-system",pod="m-2"} 0x200`,
	}, "92m", 1, "namespace=herald-system", "1h 32m 0s"},

	{"the sweep runs every half minute", "HeraldRetentionNotSwept", []string{`herald_retention_last_sweep_timestamp_seconds{namespace="herald-system",pod="m-1"} 0+60x200`}, "150m", 0, "", ""},
	{"posts cannot be listed, so due posts are unknown", "HeraldRetentionNotSwept", []string{
		`herald_retention_last_sweep_timestamp_seconds{namespace="herald-system",pod="m-1"} 60x200`, `herald_retention_last_sweep_timestamp_seconds{namespace="herald-system",pod="m-2"} 0x200`,
		`herald_retention_lag_seconds{namespace="herald-system",pod="m-1"} 0x200`,
	}, "93m", 1, "namespace=herald-system", "1h 32m 0s"},
	{"a new leader has not completed a sweep", "HeraldRetentionNotSwept", []string{
		`herald_retention_last_sweep_timestamp_seconds{namespace="herald-system",pod="m-2"} 0x200`,
	}, "93m", 1, "namespace=herald-system", "1h 33m 0s"},
	{"another replica has swept since", "HeraldRetentionNotSwept", []string{
		`herald_retention_last_sweep_timestamp_seconds{namespace="herald-system",pod="m-1"} 60x200`, `herald_retention_last_sweep_timestamp_seconds{namespace="herald-system",pod="m-2"} 3600x200`,
	}, "93m", 0, "", ""},
	{"a long sweep takes 50 minutes", "HeraldRetentionNotSwept", []string{
		`herald_retention_last_sweep_timestamp_seconds{namespace="herald-system",pod="m-1"} 60x50 3060x50 6060x100`,
	}, "150m", 0, "", ""},

	{"a receiver is gone, and a manager that is not the leader does not report it", "HeraldNotifierFailing", []string{
		`herald_notifiers_failing{namespace="herald-system",pod="m-1"} 1x400`, `herald_notifiers_failing{namespace="herald-system",pod="m-2"} 0x400`,
	}, "361m", 1, "namespace=herald-system", "1"},
	{"the next leader continues", "HeraldNotifierFailing", []string{
		`herald_notifiers_failing{namespace="herald-system",pod="m-1"} 2x100 0x300`, `herald_notifiers_failing{namespace="herald-system",pod="m-2"} 0x100 2x300`,
	}, "361m", 1, "namespace=herald-system", "2"},
	{"a receiver was unavailable for an hour", "HeraldNotifierFailing", []string{`herald_notifiers_failing{namespace="herald-system",pod="m-1"} 1x60 0x400`}, "361m", 0, "", ""},
	{"the notifier accepts some notifications", "HeraldNotifierFailing", []string{`herald_notifiers_failing{namespace="herald-system",pod="m-1"} 1x200 0 1x200`}, "361m", 0, "", ""},

	{"one notification was given up", "HeraldNotificationsGivenUp", []string{
		`herald_notifications_total{namespace="herald-system",pod="m-1",format="slack",outcome="expired"} 0x10 1x200`,
	}, "30m", 1, "namespace=herald-system", ""},
	{"the notifications have two formats", "HeraldNotificationsGivenUp", []string{
		`herald_notifications_total{namespace="herald-system",pod="m-1",format="slack",outcome="expired"} 0x10 1x200`,
		`herald_notifications_total{namespace="herald-system",pod="m-1",format="email",outcome="expired"} 0x10 3x200`,
	}, "30m", 1, "namespace=herald-system", ""},
	{"the failure was hours ago", "HeraldNotificationsGivenUp", []string{
		`herald_notifications_total{namespace="herald-system",pod="m-1",format="slack",outcome="expired"} 0x10 1x200`,
	}, "90m", 0, "", ""},
	{"failed attempts are repeated", "HeraldNotificationsGivenUp", []string{
		`herald_notifications_total{namespace="herald-system",pod="m-1",format="slack",outcome="failed"} 0+1x200`,
		`herald_notifications_total{namespace="herald-system",pod="m-1",format="slack",outcome="expired"} 0x200`,
	}, "90m", 0, "", ""},

	{"the cluster has more objects than the sizes are for", "HeraldTooManyPosts", []string{`herald_post_index_posts{namespace="herald-system",pod="a-1"} 100001x90`}, "61m", 1, "namespace=herald-system", "100k"},
	{"two replicas cache the same posts", "HeraldTooManyPosts", []string{
		`herald_post_index_posts{namespace="herald-system",pod="a-1"} 60000x90`, `herald_post_index_posts{namespace="herald-system",pod="a-2"} 60000x90`,
	}, "61m", 0, "", ""},

	{"a team is near its limit, and a manager that is not the leader does not report it", "HeraldBudgetNearlyUsed", []string{
		`herald_teams_near_budget{namespace="herald-system",pod="m-1",budget="unfinishedPosts"} 2x90`, `herald_teams_near_budget{namespace="herald-system",pod="m-2",budget="unfinishedPosts"} 0x90`,
		`herald_teams_near_budget{namespace="herald-system",pod="m-1",budget="posts"} 0x90`,
	}, "61m", 1, "budget=unfinishedPosts,namespace=herald-system", "2"},
	{"a burst ends within the hour", "HeraldBudgetNearlyUsed", []string{
		`herald_teams_near_budget{namespace="herald-system",pod="m-1",budget="pendingFiles"} 1x50 0x40`,
	}, "61m", 0, "", ""},

	{"one node is slow, and another is up to date", "HeraldClockOff", []string{
		`herald_clock_skew_seconds{namespace="herald-system",pod="m-1"} -61x90`, `herald_clock_skew_seconds{namespace="herald-system",pod="a-1"} 0x90`,
	}, "6m", 1, "namespace=herald-system,pod=m-1", "61"},
	{"the clock was corrected", "HeraldClockOff", []string{`herald_clock_skew_seconds{namespace="herald-system",pod="m-1"} 61x3 0x90`}, "6m", 0, "", ""},
	{"a second is within the tolerance", "HeraldClockOff", []string{`herald_clock_skew_seconds{namespace="herald-system",pod="m-1"} 1.2x90`}, "6m", 0, "", ""},

	{"an administrator forgot a suspension", "HeraldSuspended", []string{
		`herald_suspended_posts{namespace="acme",pod="m-1"} 3x180`, `herald_suspended_posts{namespace="beta",pod="m-1"} 0x180`,
	}, "121m", 1, "namespace=acme", "3"},
	{"the suspension ended", "HeraldSuspended", []string{`herald_suspended_posts{namespace="acme",pod="m-1"} 3x100 _x90`}, "121m", 0, "", ""},

	{"one request in ten fails", "HeraldAPIErrors", []string{
		`herald_http_requests_total{namespace="herald-system",operation="createPost",code="503"} 0+10x60`,
		`herald_http_requests_total{namespace="herald-system",operation="createPost",code="201"} 0+90x60`,
	}, "25m", 1, "namespace=herald-system", "10%"},
	{"client errors do not count", "HeraldAPIErrors", []string{
		`herald_http_requests_total{namespace="herald-system",operation="createPost",code="400"} 0+90x60`,
		`herald_http_requests_total{namespace="herald-system",operation="createPost",code="500"} 0+1x60`,
	}, "25m", 0, "", ""},
	{"the process gets no requests", "HeraldAPIErrors", []string{`herald_http_requests_total{namespace="herald-system",operation="createPost",code="500"} 1x60`}, "25m", 0, "", ""},

	{"the provider or its keys are unavailable", "HeraldWebNotReady", []string{`herald_web_ready{namespace="herald-system",pod="a-1"} 0x30`}, "11m", 1, "namespace=herald-system,pod=a-1", ""},
	{"a pod that starts needs a moment", "HeraldWebNotReady", []string{`herald_web_ready{namespace="herald-system",pod="a-1"} 0x2 1x30`}, "11m", 0, "", ""},
	{"one of two pods cannot reach the provider", "HeraldWebNotReady", []string{
		`herald_web_ready{namespace="herald-system",pod="a-1"} 1x30`, `herald_web_ready{namespace="herald-system",pod="a-2"} 0x30`,
	}, "11m", 1, "namespace=herald-system,pod=a-2", ""},
	{"the web application is disabled, and has no series", "HeraldWebNotReady", nil, "11m", 0, "", ""},

	{"the client's secret is wrong", "HeraldSignInsFail", []string{
		`herald_web_sign_ins_total{namespace="herald-system",pod="a-1",method="oidc",outcome="failed"} 0x5 1 2 3x60`,
	}, "15m", 1, "namespace=herald-system,method=oidc", "3"},
	{"two replicas have one failure each, and one is within the tolerance", "HeraldSignInsFail", []string{
		`herald_web_sign_ins_total{namespace="herald-system",pod="a-1",method="oidc",outcome="failed"} 0x5 1x60`,
		`herald_web_sign_ins_total{namespace="herald-system",pod="a-2",method="oidc",outcome="failed"} 0x5 1x60`,
	}, "40m", 0, "", ""},
	{"the links were used before", "HeraldSignInsFail", []string{
		`herald_web_sign_ins_total{namespace="herald-system",pod="a-1",method="link",outcome="refused"} 0+5x60`,
		`herald_web_sign_ins_total{namespace="herald-system",pod="a-1",method="link",outcome="failed"} 0x60`,
	}, "40m", 0, "", ""},
	{"the configuration was corrected an hour ago", "HeraldSignInsFail", []string{
		`herald_web_sign_ins_total{namespace="herald-system",pod="a-1",method="oidc",outcome="failed"} 0x5 5x90`,
	}, "80m", 0, "", ""},

	{"one post needs a user's answer", "HeraldOutcomeUnknown", []string{`herald_undecided_targets{namespace="acme",platform="threads"} 1x10`}, "2m", 1, "namespace=acme,platform=threads", "1"},
	{"the user answered", "HeraldOutcomeUnknown", []string{`herald_undecided_targets{namespace="acme",platform="threads"} 1x2 _x10`}, "9m", 0, "", ""},

	{"lookups do not settle the outcome", "HeraldAttemptNotSettled", []string{`herald_open_attempts{namespace="acme",platform="x",window="past"} 2x30`}, "11m", 1, "namespace=acme,platform=x", "2"},
	{"lookups finish quickly", "HeraldAttemptNotSettled", []string{`herald_open_attempts{namespace="acme",platform="x",window="past"} 1x8 0x30`}, "11m", 0, "", ""},
	{"calls in progress do not count", "HeraldAttemptNotSettled", []string{
		`herald_open_attempts{namespace="acme",platform="x",window="past"} 0x30`, `herald_open_attempts{namespace="acme",platform="x",window="within"} 9x30`,
	}, "11m", 0, "", ""},

	{"a tenth is published half a minute late", "HeraldPostsLate", []string{
		`herald_schedule_lateness_seconds_bucket{le="10"} 0+90x60`, `herald_schedule_lateness_seconds_bucket{le="30"} 0+100x60`, `herald_schedule_lateness_seconds_bucket{le="+Inf"} 0+100x60`,
	}, "30m", 1, "", "28s"},
	{"one post in a thousand is late", "HeraldPostsLate", []string{
		`herald_schedule_lateness_seconds_bucket{le="10"} 0+999x60`, `herald_schedule_lateness_seconds_bucket{le="30"} 0+1000x60`, `herald_schedule_lateness_seconds_bucket{le="+Inf"} 0+1000x60`,
	}, "30m", 0, "", ""},
	{"one post was late once", "HeraldPostsLate", []string{
		`herald_schedule_lateness_seconds_bucket{le="10"} 0x60`, `herald_schedule_lateness_seconds_bucket{le="30"} 0x10 1x50`, `herald_schedule_lateness_seconds_bucket{le="+Inf"} 0x10 1x50`,
	}, "27m", 0, "", ""},

	{"a post waits", "HeraldPostsStuck", []string{`herald_oldest_due_post_age_seconds{namespace="acme"} 0+60x60`}, "22m", 1, "namespace=acme", "22m 0s"},
	{"each post is published after some minutes", "HeraldPostsStuck", []string{`herald_oldest_due_post_age_seconds{namespace="acme"} 0+60x10 0+60x10 0+60x10`}, "30m", 0, "", ""},
	{"the present leader reports it", "HeraldPostsStuck", []string{
		`herald_oldest_due_post_age_seconds{namespace="acme",pod="m-1"} 0+60x10 _x30`, `herald_oldest_due_post_age_seconds{namespace="acme",pod="m-2"} _x10 600+60x30`,
	}, "25m", 1, "", ""},

	{"the platform rejects all ten posts", "HeraldPlatformRefuses", []string{
		`herald_publishes_total{platform="x",outcome="refused"} 0+1x60`, `herald_publishes_total{platform="x",outcome="posted"} 5x60`,
	}, "41m", 1, "platform=x", "100%"},
	{"the platform rejects a third of the posts", "HeraldPlatformRefuses", []string{
		`herald_publishes_total{platform="x",outcome="refused"} 0+1x60`, `herald_publishes_total{platform="x",outcome="posted"} 0+2x60`,
	}, "41m", 0, "", ""},
	{"three errors of one team do not indicate a platform's fault", "HeraldPlatformRefuses", []string{`herald_publishes_total{platform="x",outcome="refused"} 0x20 1 2 3x60`}, "41m", 0, "", ""},

	{"the error code is new", "HeraldPlatformErrorUnlisted", []string{
		`herald_platform_unlisted_errors_total{platform="x",operation="publish",code="999"} _x30 1x60`,
	}, "35m", 1, "platform=x,code=999", "1"},
	{"the error was known before, and has not occurred since", "HeraldPlatformErrorUnlisted", []string{
		`herald_platform_unlisted_errors_total{platform="x",operation="publish",code="999"} 1x3000`,
	}, "26h", 0, "", ""},
	{"the error occurs again", "HeraldPlatformErrorUnlisted", []string{
		`herald_platform_unlisted_errors_total{platform="x",operation="publish",code="999"} 1x2000 2x1000`,
	}, "36h", 1, "platform=x,code=999", ""},
	{"two codes are two alerts, however often each occurs", "HeraldPlatformErrorUnlisted", []string{
		`herald_platform_unlisted_errors_total{platform="x",operation="publish",code="999"} _x30 1+1x60`,
		`herald_platform_unlisted_errors_total{platform="x",operation="lookup",code="999"} _x30 1+1x60`,
		`herald_platform_unlisted_errors_total{platform="x",operation="publish",code="998"} _x30 1+1x60`,
	}, "35m", 2, "", ""},

	{"two videos will be late", "HeraldUploadsLate", []string{`herald_late_uploads{namespace="acme",platform="youtube"} 2x20`}, "6m", 1, "namespace=acme,platform=youtube", "2"},
	{"all videos are expected in time", "HeraldUploadsLate", []string{`herald_late_uploads{namespace="acme",platform="youtube"} 0x20`}, "6m", 0, "", ""},
	{"the rate was low for a moment", "HeraldUploadsLate", []string{`herald_late_uploads{namespace="acme",platform="youtube"} 1x3 0x20`}, "6m", 0, "", ""},
}

// TestAlerts runs each case against the rules with promtool.
func TestAlerts(t *testing.T) {
	promtool := program(t, "promtool")
	groups, err := Groups(checkout)
	must.Succeed(t, err)
	folder := t.TempDir()
	write(t, filepath.Join(folder, "rules.yaml"), map[string]any{"groups": groups})
	run(t, promtool, "check", "rules", filepath.Join(folder, "rules.yaml"))

	rules := map[string]*Alert{}
	for _, group := range groups {
		for i := range group.Rules {
			rules[group.Rules[i].Alert] = &group.Rules[i]
		}
	}
	var tests []any
	fires, quiet := map[string]bool{}, map[string]bool{}
	for i := range rows {
		r := &rows[i]
		if rules[r.alert] == nil {
			t.Fatalf("the alert %s does not exist", r.alert)
		}
		if r.fires > 0 {
			fires[r.alert] = true
		} else {
			quiet[r.alert] = true
		}
		tests = append(tests, r.test(rules[r.alert]))
	}
	for alert := range rules {
		if !fires[alert] || !quiet[alert] {
			t.Errorf("%s needs a row that fires and one that does not", alert)
		}
	}
	file := filepath.Join(folder, "tests.yaml")
	write(t, file, map[string]any{"rule_files": []string{"rules.yaml"}, "evaluation_interval": "1m", "tests": tests})
	run(t, promtool, "test", "rules", file)
}

// test returns the row in promtool's format. ALERTS is Prometheus's series for alerts.
func (r *row) test(rule *Alert) any {
	series := []any{}
	for _, s := range r.series {
		name, values, _ := strings.Cut(s, "} ")
		series = append(series, map[string]any{"series": name + "}", "values": values})
	}
	query := fmt.Sprintf(`count(ALERTS{alertname=%q,alertstate="firing"}) or vector(0)`, r.alert)
	test := map[string]any{
		"name": r.alert + ": " + r.reason, "interval": "1m", "input_series": series,
		"promql_expr_test": []any{map[string]any{
			"expr": query, "eval_time": r.at, "exp_samples": []any{map[string]any{"labels": "{}", "value": r.fires}},
		}},
	}
	if r.labels != "" || r.value != "" {
		test["alert_rule_test"] = []any{map[string]any{"alertname": r.alert, "eval_time": r.at, "exp_alerts": []any{r.alertOf(rule)}}}
	}
	return test
}

// inWords matches the value in an annotation, plain or formatted.
var inWords = regexp.MustCompile(`\{\{ \$value( \| \w+)? \}\}`)

// alertOf returns the expected alert with its expanded annotations.
func (r *row) alertOf(rule *Alert) any {
	labels := maps.Clone(rule.Labels)
	annotations := map[string]string{}
	for name, text := range rule.Annotations {
		text = inWords.ReplaceAllString(text, r.value)
		for pair := range strings.SplitSeq(r.labels, ",") {
			label, value, _ := strings.Cut(pair, "=")
			if label != "" {
				labels[label] = value
				text = strings.ReplaceAll(text, "{{ $labels."+label+" }}", value)
			}
		}
		annotations[name] = text
	}
	return map[string]any{"exp_labels": labels, "exp_annotations": annotations}
}

// program finds one of Prometheus's programs, or skips the test.
func program(t *testing.T, name string) string {
	t.Helper()
	if path := filepath.Join(checkout, "bin", "prometheus", "usr", "bin", name); exists(path) {
		return path
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is missing: `make test-monitoring` finds it, or downloads Debian's package prometheus", name)
	}
	return path
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func run(t *testing.T, program string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", strings.Join(args[:2], " "), err, out)
	}
}

func write(t *testing.T, file string, content any) {
	t.Helper()
	text, err := yaml.Marshal(content)
	must.Succeed(t, err)
	must.Succeed(t, os.WriteFile(file, text, 0o600))
}
