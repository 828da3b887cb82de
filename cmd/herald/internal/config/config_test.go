// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/test/must"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "herald.yaml")
	must.Succeed(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const managerHead = "apiVersion: config.herald.dev/v1alpha1\nkind: ManagerConfiguration\n"

const (
	apiserverHead = "apiVersion: config.herald.dev/v1alpha1\nkind: APIServerConfiguration\n"
	oidcHead      = apiserverHead + "siteURL: https://herald.example.com\nweb: {oidc: {"
)

// TestErrorsAreLimited checks a file with twenty mistakes. Each wrong line ends in a comment with part of the expected
// error, and no other line must have an error.
func TestErrorsAreLimited(t *testing.T) {
	path := filepath.Join("testdata", "twenty.yaml")
	data, err := os.ReadFile(path)
	must.Succeed(t, err)
	_, err = Check(path)
	var mistakes *Mistakes
	if !errors.As(err, &mistakes) {
		t.Fatalf("got %v", err)
	}
	if len(mistakes.List) != 20 {
		t.Errorf("got %d mistakes, want 20:\n%v", len(mistakes.List), err)
	}
	messages := map[int]string{}
	for _, m := range mistakes.List {
		if m.Path == "" || m.Problem == "" || m.Remedy == "" {
			t.Errorf("a mistake has a place, a problem and a remedy: %+v", m)
		}
		messages[m.Line] += m.Path + ": " + m.Problem + "; " + m.Remedy
	}
	for i, line := range strings.Split(string(data), "\n") {
		_, want, wrong := strings.Cut(line, "# ")
		switch got := messages[i+1]; {
		case wrong && !strings.Contains(got, want):
			t.Errorf("line %d: got %q, want %q", i+1, got, want)
		case !wrong && got != "":
			t.Errorf("line %d is right, but got %q", i+1, got)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a value may be a secret in the wrong place: %v", err)
	}
}

func TestInvalidConfigurations(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text, want string
	}{
		"empty":                         {"the file was not written", "", ":1: the file contains no fields"},
		"comments":                      {"no more than empty", "# nothing\n", ":1: the file contains no fields"},
		"a list":                        {"a list is not a configuration", "[]", ":1: the file contains no fields"},
		"two documents":                 {"the second would be ignored", managerHead + "---\na: b\n", ":3: a second document"},
		"no YAML":                       {"the rest of the file cannot be parsed", managerHead + "platforms: {x: {}\nwebhook: [", "this is not YAML"},
		"no kind":                       {"the kind determines the fields", "apiVersion: config.herald.dev/v1alpha1\n", ":1: kind: "},
		"another kind":                  {"a Pod is not a configuration", "apiVersion: v1\nkind: Pod\n", ":2: kind: "},
		"another version":               {"its meaning is unknown", "apiVersion: config.herald.dev/v9\nkind: ManagerConfiguration\n", ":1: apiVersion: "},
		"capitals":                      {"the error names the intended field", managerHead + "Webhook: {}\n", "write webhook"},
		"old platforms":                 {"a section of the file that had no version", managerHead + "x: {}\n", ":3: x: there is no such field"},
		"alias":                         {"aliases would lose line numbers", managerHead + "platforms: {x: &a {}, threads: *a}\n", "aliases are not supported"},
		"server of its own":             {"the address of other platforms never varies", managerHead + "platforms: {x: {server: \"https://x.example.com\"}}\n", "platforms.x.server: only accounts of Bluesky"},
		"server, no address":            {"app passwords are sent there", managerHead + "platforms: {bluesky: {server: pds.example.com}}\n", "platforms.bluesky.server"},
		"a directory of its own":        {"other platforms have no directory", managerHead + "platforms: {x: {directory: \"https://plc.example.com\"}}\n", "platforms.x.directory: only accounts of Bluesky"},
		"directory, no address":         {"accounts are looked up there", managerHead + "platforms: {bluesky: {directory: plc.example.com}}\n", "platforms.bluesky.directory"},
		"no document":                   {"servers could not identify Herald", managerHead + "platforms: {bluesky: {clientID: herald}}\n", "platforms.bluesky.clientID: it is not the address of Herald's document"},
		"document in the clear":         {"servers read it over HTTPS only", managerHead + "platforms: {bluesky: {clientID: \"http://herald.example.com/oauth/bluesky/client-metadata.json\"}}\n", "platforms.bluesky.clientID: it is not the address"},
		"document elsewhere":            {"the redirect would not belong to it", apiserverHead + "siteURL: https://herald.example.com\nplatforms: {bluesky: {clientID: \"https://other.example.com/oauth/bluesky/client-metadata.json\"}}\n", "write https://herald.example.com/oauth/bluesky/client-metadata.json"},
		"document without key":          {"tokens could not be renewed", managerHead + "platforms: {bluesky: {clientID: \"https://herald.example.com/oauth/bluesky/client-metadata.json\"}}\n", "platforms.bluesky.clientSecretFile: it is missing"},
		"key without document":          {"the key would not be used", managerHead + "platforms: {bluesky: {clientSecretFile: /key}}\n", "platforms.bluesky.clientSecretFile: the app of the secret is missing"},
		"number as text":                {"an id of digits is text", managerHead + "platforms: {tiktok: {clientID: 123}}\n", "put it into quotes"},
		"section as text":               {"the section needs fields", managerHead + "platforms: hunter2\n", "platforms: it is text; write a section"},
		"unlocked lease":                {"another leader while this one works", managerHead + "leaderElection: {leaseDuration: 9s}\n", "leaseDuration: another process"},
		"one try":                       {"a single lost request would end the process", managerHead + "leaderElection: {retryPeriod: 9s}\n", "renewDeadline: it leaves no time"},
		"no key":                        {"tokens are never written as they are", managerHead + "credentials: {unsaved: {directory: /data}}\n", "credentials.unsaved.keyFile: it is missing"},
		"no folder":                     {"the key would not be used", managerHead + "credentials: {unsaved: {keyFile: /key}}\n", "credentials.unsaved.directory: it is missing"},
		"no pace":                       {"posts would never leave the cluster", managerHead + "retention: {postsPerSecond: 0}\n", "retention.postsPerSecond: 0 is too small"},
		"kept for less":                 {"a duration cannot be negative", managerHead + "retention: {archived: 168h, inCluster: 168h, leastInCluster: -1h}\n", "retention.leastInCluster: it is negative"},
		"below the floor":               {"no team could have the default", managerHead + "retention: {inCluster: 30m}\n", "retention.inCluster: it is less than any team can have; write 1h0m0s or more"},
		"archived for less":             {"both retentions start at the same time", managerHead + "retention: {archived: 24h}\n", "retention.archived: a post is archived at least as long"},
		"no shards":                     {"posts would not be delivered", managerHead + "delivery: {shards: 0}\n", "delivery.shards: 0 is too small; write 1 or more"},
		"too many shards":               {"the role names 16 Leases", managerHead + "delivery: {shards: 17}\n", "delivery.shards: 17 is too large; write 16 or less"},
		"shards and shared uploads":     {"a manager sees only the posts of its shards", managerHead + "delivery: {shards: 2, shareUploads: true}\n", "delivery.shareUploads: with several shards"},
		"short shutdown":                {"results would be lost", managerHead + "shutdownTimeout: 2m\n", "write more than 2m5s"},
		"one port twice":                {"the default of health was that of the metrics once", managerHead + "metrics: {bindAddress: \":8081\"}\n", "metrics.bindAddress: health.bindAddress already listens on port 8081"},
		"no level":                      {"a wrong level would only be noticed when the logs are needed", managerHead + "log: {level: verbose}\n", "log.level: \"verbose\" is not a log level; write debug, info, warn, error"},
		"collector":                     {"traces would not arrive", managerHead + "tracing: {endpoint: \"collector:4317\"}\n", "tracing.endpoint: it is not an address"},
		"token in address":              {"a password in a URL would be in the ConfigMap", managerHead + "tracing: {endpoint: \"https://u:hunter2@collector\"}\n", "tracing.endpoint: it is not an address"},
		"percent":                       {"ratios are at most 1", managerHead + "tracing: {samplingRatio: 10}\n", "tracing.samplingRatio: it is not a fraction"},
		"no share":                      {"NaN could mean no traces or all", managerHead + "tracing: {samplingRatio: .nan}\n", "tracing.samplingRatio: it is not a fraction"},
		"no number":                     {"requests could never be sent", managerHead + "kubernetes: {qps: .nan}\n", "kubernetes.qps"},
		"no namespace":                  {"no team would be served", managerHead + "namespaces: [team-acme, Team-B]\n", "namespaces[1]: \"Team-B\" is not the name"},
		"more fetches":                  {"uploads would wait for the fetches", managerHead + "concurrency: {fetches: 17}\n", "only 16 workers"},
		"long release":                  {"Service names have at most 63 characters", managerHead + "releaseName: " + strings.Repeat("a", 44) + "\n", "at most 43 characters"},
		"no namespace served":           {"the apiserver would be idle", "apiVersion: config.herald.dev/v1alpha1\nkind: APIServerConfiguration\nbindAddress: \"0\"\n", "served nowhere"},
		"half of a pair":                {"TLS needs both", "apiVersion: config.herald.dev/v1alpha1\nkind: APIServerConfiguration\ntls: {certFile: a}\n", "tls.keyFile: it is missing"},
		"negative shutdown":             {"a duration cannot be negative", "apiVersion: config.herald.dev/v1alpha1\nkind: APIServerConfiguration\nshutdown: {delay: -1s}\n", "it is negative"},
		"site address":                  {"links would not work", "apiVersion: config.herald.dev/v1alpha1\nkind: APIServerConfiguration\nsiteURL: herald.example.com\n", "https://herald.example.com"},
		"the manager's site":            {"links in notifications would not work", managerHead + "siteURL: herald.example.com\n", "siteURL: it is not an address"},
		"mail without server":           {"no email could be sent", managerHead + "notifications: {smtp: {from: a@example.com}}\n", "notifications.smtp.host: it is missing"},
		"no sender":                     {"mail servers reject messages without a sender", managerHead + "notifications: {smtp: {host: a, from: herald}}\n", "notifications.smtp.from: it is not the address"},
		"no mode of TLS":                {"the error would only appear with the first email", managerHead + "notifications: {smtp: {host: a, from: a@example.com, tls: starttls}}\n", "notifications.smtp.tls: \"starttls\" is not"},
		"mail without secret":           {"the server would refuse the mail", managerHead + "notifications: {smtp: {host: a, from: a@example.com, username: a}}\n", "notifications.smtp.passwordFile: it is missing"},
		"open password":                 {"other users could read the password", managerHead + "notifications: {smtp: {host: a, from: a@example.com, tls: none, username: a, passwordFile: b}}\n", "notifications.smtp.tls: the password"},
		"no port of mail":               {"the highest port is 65,535", managerHead + "notifications: {smtp: {host: a, from: a@example.com, port: 70000}}\n", "notifications.smtp.port"},
		"a password without a username": {"the password would not be used", managerHead + "notifications: {smtp: {host: a, from: a@example.com, passwordFile: b}}\n", "notifications.smtp.username: it is missing"},
		"store with path":               {"the bucket has its own field", managerHead + "media: {endpoint: \"https://s3.example.com/bucket\"}\n", "media.bucket"},
		"the previous bucket's name":    {"clusters are identified by a UID", managerHead + "media: {endpoint: \"https://s3.example.com\", takeOverFrom: production}\n", "media.takeOverFrom"},
		"other scheme":                  {"S3 speaks HTTP", managerHead + "media: {endpoint: \"s3://bucket\"}\n", "write one like"},
		"no store":                      {"a section without its address", managerHead + "media: {}\n", "remove the media section"},
		"unknown login":                 {"no such login exists", managerHead + "platforms: {instagram: {login: google}}\n", "write instagram or facebook"},
		"site below a path":             {"cookies and links would miss the path", apiserverHead + "siteURL: https://example.com/herald\n", "siteURL: it has a path"},
		"no name of a Secret":           {"no user could sign in", apiserverHead + "web: {signInSecret: Herald_Web}\n", "web.signInSecret: \"Herald_Web\" is not the name"},
		"a Secret of no name":           {"no user could sign in", apiserverHead + "web: {signInSecret: \"\"}\n", "web.signInSecret"},
		"login configuration":           {"X has no login configuration", managerHead + "platforms: {x: {loginConfigID: \"1\"}}\n", "platforms.x.loginConfigID: only Facebook's login"},
		"own login":                     {"Instagram Login has no configuration", managerHead + "platforms: {instagram: {loginConfigID: \"1\"}}\n", "platforms.instagram.loginConfigID: only Facebook's login"},
		"two steps":                     {"Threads has them anyway", managerHead + "platforms: {threads: {twoSteps: true}}\n", "platforms.threads.twoSteps: only posts to Facebook"},
		"a platform's address":          {"the sandbox replaces all addresses", managerHead + "platforms: {x: {apiURL: \"http://127.0.0.1:9100/x\"}}\n", ":3: platforms.x.apiURL: this field was removed; remove it, or for simulated platforms write the address of the sandbox once, as platforms.sandbox.url"},
		"a site's address":              {"the old setting had no section", apiserverHead + "platforms: {tiktok: {webURL: hunter2}}\n", "platforms.tiktok.webURL: this field was removed"},
		"a consent page":                {"the sandbox replaces this one as well", apiserverHead + "platforms: {x: {authorizeURL: null}}\n", "platforms.x.authorizeURL: this field was removed"},
		"two of Instagram":              {"the sandbox replaces this one as well", managerHead + "platforms: {instagram: {facebookURL: \"http://a\"}}\n", "platforms.instagram.facebookURL: this field was removed"},
		"its uploads":                   {"the sandbox replaces this one as well", managerHead + "platforms: {instagram: {uploadURL: \"http://a\"}}\n", "platforms.instagram.uploadURL: this field was removed"},
		"no sandbox":                    {"a URL needs a scheme", managerHead + "platforms: {sandbox: {url: \"127.0.0.1:9100\"}}\n", "platforms.sandbox.url: it is not an address; write one like http://127.0.0.1:9100"},
		"sandbox to look at":            {"Herald would publish to real platforms", managerHead + "platforms: {sandbox: {publicURL: \"http://127.0.0.1:9100\"}}\n", "platforms.sandbox.url: it is missing"},
		"no configuration":              {"the ID is a number", managerHead + "platforms: {facebook: {loginConfigID: pages}}\n", "platforms.facebook.loginConfigID: it is not the ID"},
		"roles of no name":              {"users could not request a role without a name", apiserverHead + "web: {rolePrefix: Herald_}\n", "web.rolePrefix: no role's name can start with"},
		"no network":                    {"a name is not a network", apiserverHead + "trustedProxies: [10.0.0.0/8, ingress]\n", "trustedProxies[1]: \"ingress\" is not a network; write one like 10.0.0.0/8"},
		"an address":                    {"the prefix length is missing", apiserverHead + "trustedProxies: [10.0.0.7]\n", "10.0.0.7/32 for one address"},
		"half a network":                {"the network's address has bits outside its prefix", apiserverHead + "trustedProxies: [10.0.0.7/8]\n", "is not a network"},
		"everybody":                     {"clients could forge their addresses", apiserverHead + "trustedProxies: [\"::/0\"]\n", "trustedProxies[0]: every client could forge its address"},
		"OIDC without a site":           {"users could not be redirected back", apiserverHead + "web: {oidc: {issuerURL: \"https://id.example.com\", clientID: a}}\n", "web.oidc: the provider could not send people back"},
		"OIDC without issuer":           {"no provider is configured", oidcHead + "clientID: a}}\n", "web.oidc.issuerURL: it is missing"},
		"OIDC without client":           {"the provider could not identify Herald", oidcHead + "issuerURL: \"https://id.example.com\"}}\n", "web.oidc.clientID: it is missing"},
		"OIDC in the clear":             {"sign-ins could be forged", oidcHead + "clientID: a, issuerURL: \"http://id.example.com\"}}\n", "it is not HTTPS"},
		"OIDC as Kubernetes":            {"the provider's groups would be the cluster's", oidcHead + "clientID: a, issuerURL: \"https://id.example.com\", groupsPrefix: \"system:\"}}\n", "web.oidc.groupsPrefix: names with this prefix"},
		"OIDC as the link":              {"such a user could have the name of the one-time link", oidcHead + "clientID: a, issuerURL: \"https://id.example.com\", usernamePrefix: \"herald:\"}}\n", "web.oidc.usernamePrefix: names with this prefix"},
		"OIDC without a name":           {"users would not have a name", oidcHead + "clientID: a, issuerURL: \"https://id.example.com\", usernameClaim: \"\"}}\n", "web.oidc.usernameClaim: it is missing"},
		"OIDC, an empty scope":          {"providers reject it", oidcHead + "clientID: a, issuerURL: \"https://id.example.com\", scopes: [email, \"\"]}}\n", "web.oidc.scopes: one of them is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Check(write(t, tc.text))
			var mistakes *Mistakes
			if !errors.As(err, &mistakes) || !strings.Contains(err.Error(), tc.want) || len(mistakes.List) != 1 {
				t.Errorf("%s: got %v, want one mistake with %q", tc.reason, err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("a value may be a secret: %v", err)
			}
		})
	}
}

func TestOtherProcess(t *testing.T) {
	_, err := APIServer(write(t, managerHead))
	if err == nil || !strings.Contains(err.Error(), "name a file of kind APIServerConfiguration") {
		t.Errorf("the apiserver accepted the manager's file: %v", err)
	}
	if _, err := Manager(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file returned %v", err)
	}
}

func TestDefaults(t *testing.T) {
	got, err := Manager(write(t, managerHead))
	must.Succeed(t, err)
	if diff := cmp.Diff(configv1alpha1.DefaultManager(), got); diff != "" {
		t.Errorf("an empty file changed the defaults: %s", diff)
	}
	server, err := APIServer(write(t, "apiVersion: config.herald.dev/v1alpha1\nkind: APIServerConfiguration\nrequestsPerMinute: 0\ntls: null\n"))
	must.Succeed(t, err)
	want := configv1alpha1.DefaultAPIServer()
	want.RequestsPerMinute = 0
	if diff := cmp.Diff(want, server); diff != "" {
		t.Errorf("zero must be set, and null must keep the default: %s", diff)
	}
}

func TestValues(t *testing.T) {
	got, err := Manager(write(t, managerHead+`
webhook: {hosts: [a, b]}
concurrency:
  posts: 0x10
delivery: {startingDeadline: 1h30m}
metrics: {bindAddress: "127.0.0.1:9000", plain: True}
kubernetes: {qps: 12.5, burst: 20}
thumbnails: {ffmpeg: ""}
media: {endpoint: "http://127.0.0.1:9000", pathStyle: true}
log: {level: debug}
tracing: {endpoint: "http://127.0.0.1:4318", samplingRatio: 0}
platforms: {x: {clientID: "1"}, facebook: {}, bluesky: {server: "https://pds.example.com"}, sandbox: {url: "http://127.0.0.1:9100", publicURL: "https://sandbox.example.com"}}
`))
	must.Succeed(t, err)
	want := configv1alpha1.DefaultManager()
	want.Webhook.Hosts = []string{"a", "b"}
	want.Concurrency.Posts = 16
	want.Delivery.StartingDeadline.Duration = 90 * time.Minute
	want.Metrics.BindAddress, want.Metrics.Plain = "127.0.0.1:9000", true
	want.Kubernetes = configv1alpha1.Kubernetes{QPS: 12.5, Burst: 20}
	want.Thumbnails.FFmpeg = ""
	want.Log.Level = "debug"
	want.Tracing = configv1alpha1.Tracing{Endpoint: "http://127.0.0.1:4318", SamplingRatio: new(float64)}
	want.Media = &configv1alpha1.Media{Endpoint: "http://127.0.0.1:9000", Region: "us-east-1", Bucket: "herald-media", PathStyle: true}
	want.Platforms = configv1alpha1.Platforms{
		X: &configv1alpha1.Platform{ClientID: "1"}, Facebook: &configv1alpha1.Platform{},
		Bluesky: &configv1alpha1.Platform{Server: "https://pds.example.com"},
		Sandbox: configv1alpha1.Sandbox{URL: "http://127.0.0.1:9100", PublicURL: "https://sandbox.example.com"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestOIDC(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text string
		want         configv1alpha1.OIDC
	}{
		"the least": {
			"omitted fields have defaults", `clientID: herald, issuerURL: "https://id.example.com"}}`,
			configv1alpha1.OIDC{
				IssuerURL: "https://id.example.com", ClientID: "herald", UsernameClaim: "email", UsernamePrefix: "oidc:",
				GroupsClaim: "groups", GroupsPrefix: "oidc:", Scopes: []string{"profile", "email"},
			},
		},
		"everything": {
			"an empty prefix is valid, and so is an empty groups claim",
			`clientID: herald, issuerURL: "http://127.0.0.1:5556", clientSecretFile: /a, usernameClaim: sub, usernamePrefix: "", groupsClaim: "", groupsPrefix: "g:", scopes: [groups], caFile: /b}}`,
			configv1alpha1.OIDC{
				IssuerURL: "http://127.0.0.1:5556", ClientID: "herald", ClientSecretFile: "/a", UsernameClaim: "sub",
				GroupsPrefix: "g:", Scopes: []string{"groups"}, CAFile: "/b",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := APIServer(write(t, oidcHead+tc.text+"\n"))
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(&tc.want, got.Web.OIDC); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}

func TestWithoutTheWeb(t *testing.T) {
	got, err := APIServer(write(t, apiserverHead+`
siteURL: https://example.com/herald
web: {enabled: false}
platforms: {bluesky: {clientID: "https://example.com/herald/oauth/bluesky/client-metadata.json"}} # the key is the manager's
`))
	if err != nil || got.Web.Enabled {
		t.Errorf("an installation for programs may lie below a path: %v, %v", got, err)
	}
}
