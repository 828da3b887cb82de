// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/platforms/bluesky"
)

// longestCall is the longest timeout of a call to a platform; a test compares it with the platforms.
const longestCall = time.Minute

// identity matches a namespace's UID in Kubernetes' format.
var identity = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

type validator struct {
	*decoder
}

// report records a mistake at the line of a field, or of the nearest enclosing section. It skips fields whose value is
// already known to be wrong.
func (j *validator) report(path, problem, remedy string) {
	if j.wrong[path] {
		return
	}
	at := path
	for at != "" && j.lines[at] == 0 {
		at = at[:max(0, strings.LastIndexByte(at, '.'))]
	}
	j.mistake(j.lines[at], path, problem, remedy)
}

func (j *validator) manager(c *configv1alpha1.ManagerConfiguration) {
	j.common(&c.Common)
	j.blueskyClient(&c.Platforms, c.SiteURL, true)
	// The longest derived name ends in -webhook-certificate, and a Service's name cannot be longer than 63 characters.
	if len(validation.IsDNS1035Label(c.ReleaseName)) > 0 || len(c.ReleaseName) > longestRelease {
		j.report("releaseName", "the names of objects cannot start with it",
			fmt.Sprintf("write lower-case letters, digits and dashes, starting with a letter, at most %d characters", longestRelease))
	}
	j.atLeast(1, map[string]int{
		"concurrency.posts": c.Concurrency.Posts, "concurrency.uploads": c.Concurrency.Uploads, "concurrency.media": c.Concurrency.Media,
		"concurrency.fetches": c.Concurrency.Fetches, "concurrency.connections": c.Concurrency.Connections,
		"concurrency.teams": c.Concurrency.Teams, "concurrency.apiKeys": c.Concurrency.APIKeys,
	})
	if c.Concurrency.Fetches > c.Concurrency.Media {
		j.report("concurrency.fetches", fmt.Sprintf("there are only %d workers for media files", c.Concurrency.Media), "write fewer, or raise concurrency.media")
	}
	j.atLeast(0, map[string]int{"kubernetes.burst": c.Kubernetes.Burst, "replicas": c.Replicas})
	j.shards(&c.Delivery)
	j.retention(&c.Retention)
	if !(c.Kubernetes.QPS > 0) && c.Kubernetes.QPS != -1 { // this excludes NaN too
		j.report("kubernetes.qps", "requests could never be sent", "write a positive number, or -1 for no pacing")
	}
	if c.SiteURL != "" {
		j.webAddress("siteURL", c.SiteURL, "https://herald.example.com")
	}
	j.times(c)
	j.smtp(c.Notifications.SMTP)
	j.unsaved(c.Credentials.Unsaved)
	j.listens(&c.Common, "webhook.bindAddress", c.Webhook.BindAddress)
	for i, host := range c.Webhook.Hosts {
		if host == "" {
			j.report(fmt.Sprintf("webhook.hosts[%d]", i), "it is empty", "write a name or an address, or remove it")
		}
	}
}

// unsaved validates the settings for unsaved tokens, which are both a folder and a key, or neither.
func (j *validator) unsaved(u configv1alpha1.Unsaved) {
	const section = "credentials.unsaved"
	switch {
	case u.Directory != "" && u.KeyFile == "":
		j.report(section+".keyFile", "it is missing", "name a file with 32 characters or more that are hard to guess, or remove directory")
	case u.KeyFile != "" && u.Directory == "":
		j.report(section+".directory", "it is missing", "name a folder that outlives the process, such as an emptyDir, or remove keyFile")
	}
}

// smtp validates the mail server.
func (j *validator) smtp(s *configv1alpha1.SMTP) {
	const section = "notifications.smtp"
	if s == nil {
		return
	}
	j.required(section+".host", s.Host, "write the name of the mail server, or remove the section")
	if _, err := mail.ParseAddress(s.From); err != nil {
		j.report(section+".from", "it is not the address of a sender", "write one like Herald <herald@example.com>")
	}
	if s.Port < 0 || s.Port > 65535 {
		j.report(section+".port", "it is not a port", "write 587, or the port of your server")
	}
	if !slices.Contains([]configv1alpha1.SMTPTLS{"", configv1alpha1.SMTPTLSRequired, configv1alpha1.SMTPTLSImplicit, configv1alpha1.SMTPTLSNone}, s.TLS) {
		j.report(section+".tls", fmt.Sprintf("%q is not a mode of TLS", s.TLS), "write required, implicit or none")
	}
	switch {
	case s.Username != "" && s.PasswordFile == "":
		j.report(section+".passwordFile", "it is missing", "name a file with the password, or remove username")
	case s.Username == "" && s.PasswordFile != "":
		j.report(section+".username", "it is missing", "write the name of Herald's account, or remove passwordFile")
	case s.Username != "" && s.TLS == configv1alpha1.SMTPTLSNone:
		j.report(section+".tls", "the password would be readable on the way", "write required or implicit")
	}
}

// longestRelease leaves room for the longest suffix of a derived name.
const longestRelease = 63 - len("-webhook-certificate")

func (j *validator) times(c *configv1alpha1.ManagerConfiguration) {
	j.positive(map[string]time.Duration{
		"leaderElection.leaseDuration": c.LeaderElection.LeaseDuration.Duration,
		"leaderElection.renewDeadline": c.LeaderElection.RenewDeadline.Duration,
		"leaderElection.retryPeriod":   c.LeaderElection.RetryPeriod.Duration,
		"delivery.startingDeadline":    c.Delivery.StartingDeadline.Duration,
		"delivery.prepareAhead":        c.Delivery.PrepareAhead.Duration,
		"delivery.sendWindow":          c.Delivery.SendWindow.Duration,
		"delivery.clockMargin":         c.Delivery.ClockMargin.Duration,
		"delivery.recordFor":           c.Delivery.RecordFor.Duration,
		"retention.unusedMedia":        c.Retention.UnusedMedia.Duration,
		"shutdownTimeout":              c.ShutdownTimeout.Duration,
	})
	lease := c.LeaderElection
	if lease.LeaseDuration.Duration <= lease.RenewDeadline.Duration {
		j.report("leaderElection.leaseDuration", "another process could take the lease while this one still works",
			fmt.Sprintf("write more than renewDeadline, which is %s", lease.RenewDeadline.Duration))
	}
	// client-go would reject such a deadline: it lengthens each pause by up to a fifth.
	if 5*lease.RenewDeadline.Duration <= 6*lease.RetryPeriod.Duration {
		j.report("leaderElection.renewDeadline", "it leaves no time for a second try", fmt.Sprintf("write more than 1.2 times retryPeriod, which is %s", lease.RetryPeriod.Duration))
	}
	if need := c.Delivery.SendWindow.Duration + longestCall + c.Delivery.RecordFor.Duration; c.ShutdownTimeout.Duration <= need {
		j.report("shutdownTimeout", "a call under way and the record of its result could take longer",
			fmt.Sprintf("write more than %s: delivery.sendWindow, %s for a call, and delivery.recordFor", need, longestCall))
	}
}

func (j *validator) retention(r *configv1alpha1.Retention) {
	j.atLeast(1, map[string]int{"retention.postsPerSecond": r.PostsPerSecond})
	for path, d := range map[string]time.Duration{
		"retention.inCluster": r.InCluster.Duration, "retention.archived": r.Archived.Duration, "retention.leastInCluster": r.LeastInCluster.Duration,
	} {
		if d < 0 {
			j.report(path, "it is negative", "write 0s or more")
		}
	}
	if r.InCluster.Duration < r.LeastInCluster.Duration {
		j.report("retention.inCluster", "it is less than any team can have",
			fmt.Sprintf("write %s or more, or lower retention.leastInCluster", r.LeastInCluster.Duration))
	}
	if r.Archived.Duration < r.InCluster.Duration {
		j.report("retention.archived", "a post is archived at least as long as it is in the cluster",
			fmt.Sprintf("write %s or more; both times begin when it is finished", r.InCluster.Duration))
	}
}

func (j *validator) apiserver(c *configv1alpha1.APIServerConfiguration) {
	j.common(&c.Common)
	j.blueskyClient(&c.Platforms, c.SiteURL, c.Web.Enabled)
	if (configv1alpha1.Endpoint{BindAddress: c.BindAddress}).Off() {
		j.report("bindAddress", "the API would be served nowhere", "write HOST:PORT or :PORT")
	}
	j.listens(&c.Common, "bindAddress", c.BindAddress)
	if c.TLS != nil {
		j.required("tls.certFile", c.TLS.CertFile, "name the PEM file of the certificate")
		j.required("tls.keyFile", c.TLS.KeyFile, "name the PEM file of its key")
	}
	if c.SiteURL != "" {
		j.webAddress("siteURL", c.SiteURL, "https://herald.example.com")
	}
	for path, d := range map[string]time.Duration{"shutdown.delay": c.Shutdown.Delay.Duration, "shutdown.timeout": c.Shutdown.Timeout.Duration} {
		if d < 0 {
			j.report(path, "it is negative", "write 0s or more")
		}
	}
	j.atLeast(0, map[string]int{
		"requestsPerMinute": c.RequestsPerMinute, "maxConnections": c.MaxConnections, "maxConnectionsPerAddress": c.MaxConnectionsPerAddress,
	})
	for i, network := range c.TrustedProxies {
		if prefix, err := netip.ParsePrefix(network); err != nil || prefix.Masked() != prefix {
			j.report(fmt.Sprintf("trustedProxies[%d]", i), fmt.Sprintf("%q is not a network", network), "write one like 10.0.0.0/8, or 10.0.0.7/32 for one address")
		} else if prefix.Bits() == 0 {
			j.report(fmt.Sprintf("trustedProxies[%d]", i), "every client could forge its address", "list only the networks of the proxies")
		}
	}
	if c.Web.Enabled {
		j.web(c)
	}
}

// listens validates each listen address, the common ones and the process's own, and checks that no port is used twice.
func (j *validator) listens(c *configv1alpha1.Common, own, address string) {
	addresses := map[string]string{
		"health.bindAddress": c.Health.BindAddress, "metrics.bindAddress": c.Metrics.BindAddress,
		"profiling.bindAddress": c.Profiling.BindAddress, own: address,
	}
	paths := slices.Sorted(maps.Keys(addresses))
	for i, path := range paths {
		j.endpoint(path, addresses[path])
		host, port, err := net.SplitHostPort(addresses[path])
		if err != nil || port == "0" {
			continue
		}
		for _, other := range paths[:i] {
			otherHost, otherPort, err := net.SplitHostPort(addresses[other])
			if err == nil && port == otherPort && (host == otherHost || host == "" || otherHost == "") {
				j.report(path, fmt.Sprintf("%s already listens on port %s", other, port), "write another port")
			}
		}
	}
}

func (j *validator) common(c *configv1alpha1.Common) {
	for i, namespace := range c.Namespaces {
		if slices.Contains(c.Namespaces[:i], namespace) {
			j.report(fmt.Sprintf("namespaces[%d]", i), fmt.Sprintf("%q is listed twice", namespace), "remove one of them")
		}
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			j.report(fmt.Sprintf("namespaces[%d]", i), fmt.Sprintf("%q is not the name of a namespace", namespace), "write lower-case letters, digits and dashes")
		}
	}
	if level, known := c.Log.Level, configv1alpha1.LogLevels(); level != "" && !slices.Contains(known, level) {
		j.report("log.level", fmt.Sprintf("%q is not a log level", level), "write "+strings.Join(known, ", ")+", or leave it empty to use --log-level")
	}
	j.tracing(&c.Tracing)
	if c.Metrics.Plain && c.Metrics.CertDir != "" {
		j.report("metrics.certDir", "plain metrics have no certificate", "remove it, or plain")
	}
	if m := c.Media; m != nil {
		j.required("media.endpoint", m.Endpoint, "write the address of the store, or remove the media section if the installation is for text only")
		j.required("media.bucket", m.Bucket, "write the name of the bucket")
		for path, address := range map[string]string{"media.endpoint": m.Endpoint, "media.publicEndpoint": m.PublicEndpoint} {
			if address != "" {
				j.store(path, address)
			}
		}
		if m.TakeOverFrom != "" && !identity.MatchString(m.TakeOverFrom) {
			j.report("media.takeOverFrom", fmt.Sprintf("%q is not the identity of a cluster", m.TakeOverFrom), "write the UID from the manager's log or the marker in the bucket")
		}
	}
	for name, platform := range c.Platforms.Sections() {
		if *platform != nil {
			j.platform("platforms."+name, *platform)
		}
	}
	j.sandbox(&c.Platforms.Sandbox)
}

func (j *validator) sandbox(s *configv1alpha1.Sandbox) {
	for path, address := range map[string]string{sandboxURL: s.URL, "platforms.sandbox.publicURL": s.PublicURL} {
		if address != "" {
			j.webAddress(path, address, "http://127.0.0.1:9100")
		}
	}
	if s.PublicURL != "" && s.URL == "" {
		j.report(sandboxURL, "it is missing", "write the address of the sandbox for Herald, or remove publicURL")
	}
}

func (j *validator) tracing(t *configv1alpha1.Tracing) {
	if t.Endpoint != "" {
		j.webAddress("tracing.endpoint", t.Endpoint, "http://collector.observability:4318")
	}
	if r := t.SamplingRatio; r != nil && !(*r >= 0 && *r <= 1) { // this excludes NaN too
		j.report("tracing.samplingRatio", "it is not a fraction", "write a number from 0 to 1, such as 0.1 for a tenth")
	}
}

func (j *validator) loginConfig(path string, p *configv1alpha1.Platform) {
	if path != "platforms.facebook" && (path != "platforms.instagram" || p.Login != "facebook") {
		j.report(path+".loginConfigID", "only Facebook's login has such configurations", "remove it")
	}
	if strings.Trim(p.LoginConfigID, "0123456789") != "" {
		j.report(path+".loginConfigID", "it is not the ID of a configuration", "write the ID of the configuration from the app's settings")
	}
}

func (j *validator) platform(path string, p *configv1alpha1.Platform) {
	if path == "platforms.instagram" && p.Login != "" && p.Login != "instagram" && p.Login != "facebook" {
		j.report(path+".login", "it is not a way to connect an account", "write instagram or facebook")
	}
	if p.LoginConfigID != "" {
		j.loginConfig(path, p)
	}
	if p.TwoSteps && path != "platforms.facebook" {
		j.report(path+".twoSteps", "only posts to Facebook Pages are published in one step or in two", "remove it")
	}
	j.server(path, "server", p.Server, "https://pds.example.com")
	j.server(path, "directory", p.Directory, "https://plc.example.com")
	if p.ClientSecretFile != "" && p.ClientID == "" {
		j.report(path+".clientSecretFile", "the app of the secret is missing", "write clientID too")
	}
	if p.ListingLag.Duration < 0 {
		j.report(path+".listingLag", "it is negative", "write 0s or more")
	}
}

func (j *validator) server(path, field, address, example string) {
	switch field = path + "." + field; {
	case address == "":
	case path != "platforms.bluesky":
		j.report(field, "only accounts of Bluesky are on servers of others too", "remove it")
	default:
		j.webAddress(field, address, example)
	}
}

// blueskyClient validates the address of the document that identifies the installation to servers, which read it over
// HTTPS, and requires its key if needsKey is true. site is the site's address, or "".
func (j *validator) blueskyClient(c *configv1alpha1.Platforms, site string, needsKey bool) {
	const section = "platforms.bluesky"
	if c.Bluesky == nil || c.Bluesky.ClientID == "" || c.Sandbox.URL != "" {
		return
	}
	base, found := strings.CutSuffix(c.Bluesky.ClientID, bluesky.ClientDocumentPath)
	switch site = strings.TrimSuffix(site, "/"); {
	case !found || !strings.HasPrefix(base, "https://"):
		j.report(section+".clientID", "it is not the address of Herald's document, which servers read over HTTPS", "write siteURL"+bluesky.ClientDocumentPath)
	case site != "" && base != site:
		j.report(section+".clientID", "the document is not at that site", "write "+site+bluesky.ClientDocumentPath)
	case needsKey && c.Bluesky.ClientSecretFile == "":
		j.report(section+".clientSecretFile", "it is missing", "name a file with the key of the document, or remove clientID")
	}
}

func (j *validator) required(path, value, remedy string) {
	if value == "" {
		j.report(path, "it is missing", remedy)
	}
}

func (j *validator) atLeast(least int, fields map[string]int) {
	for path, n := range fields {
		if n < least {
			j.report(path, fmt.Sprintf("%d is too small", n), fmt.Sprintf("write %d or more", least))
		}
	}
}

func (j *validator) positive(fields map[string]time.Duration) {
	for path, d := range fields {
		if d <= 0 {
			j.report(path, fmt.Sprintf("%s is too short", d), "write more than zero")
		}
	}
}

func (j *validator) endpoint(path, address string) {
	if (configv1alpha1.Endpoint{BindAddress: address}).Off() {
		return
	}
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		j.report(path, fmt.Sprintf("%q is not an address to listen on", address), `write HOST:PORT or :PORT with a port up to 65535, or "0" for none`)
	}
}

func (j *validator) webAddress(path, address, example string) (u *url.URL, ok bool) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.RawQuery != "" || u.User != nil {
		j.report(path, "it is not an address", "write one like "+example)
		return nil, false
	}
	return u, true
}

// store validates the URL of a store, which has no path.
func (j *validator) store(path, address string) {
	const example = "https://s3.example.com"
	if u, ok := j.webAddress(path, address, example); ok && u.Path != "" && u.Path != "/" {
		j.report(path, "it has a path", "write one like "+example+"; the bucket has its own field, media.bucket")
	}
}
