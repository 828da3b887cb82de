// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"errors"
	"net/http"
	"strings"
	"testing"
)

func TestThreatRedirectAddresses(t *testing.T) {
	t.Parallel()
	for address, tc := range map[string]struct {
		good   bool
		reason string
	}{
		"https://claude.ai/api/mcp/auth_callback":           {true, "a site"},
		"https://agent.example:8443/cb?kind=mcp":            {true, "a port and a query are its own"},
		"http://127.0.0.1:6276/oauth/callback":              {true, "a program on this machine"},
		"http://[::1]:6276/cb":                              {true, "the same by version 6"},
		"http://localhost/cb":                               {true, "the same by name"},
		"cursor://anysphere.cursor-retrieval/oauth/cb":      {true, "a known application"},
		"vscode://vscode.github-authentication/did-auth":    {true, "another"},
		"com.example.agent:/oauth":                          {true, "a domain name backwards"},
		"http://agent.example/cb":                           {false, "in the clear, to elsewhere"},
		"http://127.0.0.1.evil.example/cb":                  {false, "a prefix of a loopback address"},
		"http://127.0.0.1:80@evil.example/cb":               {false, "a user name before another host"},
		"http://localhost.evil.example/":                    {false, "a prefix of localhost"},
		"http://127.1/cb":                                   {false, "a loopback address in a form that programs parse differently"},
		"http://0.0.0.0/cb":                                 {false, "every address of the machine"},
		"https://user@agent.example/cb":                     {false, "a user name"},
		"https://agent.example/cb#":                         {false, "a fragment, though empty"},
		"https://agent.example/cb#token":                    {false, "a fragment (RFC 6749, section 3.1.2)"},
		`https://agent.example\@evil.example/`:              {false, "browsers read a backslash as a slash"},
		"https:agent.example":                               {false, "no host"},
		"https:///cb":                                       {false, "no host"},
		"//agent.example/cb":                                {false, "no scheme"},
		"/cb":                                               {false, "a relative URL"},
		"":                                                  {false, "an empty URL"},
		"javascript:alert(1)":                               {false, "a script"},
		"JaVaScRiPt:alert(1)":                               {false, "a script"},
		"data:text/html,<script>alert(1)</script>":          {false, "a page"},
		"file:///etc/passwd":                                {false, "a file"},
		"blob:https://agent.example/1":                      {false, "a page"},
		"about:blank":                                       {false, "a page without a server"},
		"mailto:eve@evil.example":                           {false, "no application of an agent"},
		"ms-word:ofe|u|https://evil.example":                {false, "an application that is no agent"},
		"unknown://cb":                                      {false, "a scheme that anyone can register"},
		"https://agent.example/c b":                         {false, "a blank"},
		"https://agent.example/\tcb":                        {false, "browsers drop it"},
		"https://agent.example/\r\nSet-Cookie:a=b":          {false, "a header"},
		"https://ägent.example/":                            {false, "letters that look alike"},
		"https://cl%D0%B0ude.ai/cb":                         {false, "a Cyrillic letter that looks like an a, encoded"},
		"https://claude%E2%80%8B.ai/cb":                     {false, "a blank that cannot be seen (U+200B), encoded"},
		"https://x%E2%80%AEia.edualc/cb":                    {false, "a mark that turns the direction of reading (U+202E), encoded"},
		"https://claude.ai%EF%BC%8F.evil.example/cb":        {false, "a wide slash that seems to end the host (U+FF0F), encoded"},
		"https://claude.ai%E3%80%82evil.example/cb":         {false, "an ideographic full stop, which browsers read as a dot (U+3002), encoded"},
		"http://localhost%E2%80%8B/cb":                      {false, "only seems to be this machine"},
		"cursor://%D0%B0nysphere.cursor-retrieval/cb":       {false, "an application is shown by its host too"},
		"https://claude.ai,evil.example/cb":                 {false, "a comma, as if there were two hosts"},
		"https://claude.ai;.evil.example/cb":                {false, "a semicolon, which ends a policy directive"},
		"https://claude.ai%2fevil.example/cb":               {false, "a slash, encoded"},
		"https://xn--clude-3ve.ai/cb":                       {true, "an internationalized name in ASCII form"},
		"https://[2001:db8::1]:8443/cb":                     {true, "an address of version 6"},
		"com.example.agent://oauth_callback":                {true, "an underscore in a scheme is unambiguous"},
		"https://agent.example/" + strings.Repeat("a", 500): {false, "too long"},
	} {
		if err := checkRedirect(address); (err == nil) != tc.good {
			t.Errorf("%q, %s: %v", address, tc.reason, err)
		}
	}
}

func TestThreatRedirectMatches(t *testing.T) {
	t.Parallel()
	registered := []string{"https://agent.example/cb", "http://127.0.0.1:1234/callback", "http://localhost/cb?a=b", "cursor://agent/cb"}
	for asked, tc := range map[string]struct {
		same   bool
		reason string
	}{
		"https://agent.example/cb":         {true, "letter by letter"},
		"http://127.0.0.1:1234/callback":   {true, "letter by letter"},
		"http://127.0.0.1:9/callback":      {true, "an application learns its port when it starts"},
		"http://127.0.0.1/callback":        {true, "a loopback URL may use the default port"},
		"http://localhost:8/cb?a=b":        {true, "the queries are equal"},
		"cursor://agent/cb":                {true, "letter by letter"},
		"https://agent.example/cb/":        {false, "one letter more"},
		"https://agent.example/cb?x=1":     {false, "a query more"},
		"https://agent.example:443/cb":     {false, "another spelling"},
		"https://Agent.example/cb":         {false, "another spelling"},
		"https://agent.example/cb/../evil": {false, "path segments are not resolved"},
		"https://agent.example.evil/cb":    {false, "another host"},
		"https://evil.example/cb":          {false, "another host"},
		"http://localhost:1234/callback":   {false, "a name can lead elsewhere than the address"},
		"http://127.0.0.1:1234/other":      {false, "another path"},
		"http://127.0.0.1:1/callback?x=1":  {false, "another query"},
		"https://127.0.0.1:1234/callback":  {false, "another scheme"},
		"http://[::1]:1234/callback":       {false, "another address"},
		"cursor://agent/cb2":               {false, "another path"},
		"javascript:alert(1)":              {false, "a script"},
	} {
		if got := redirectMatches(registered, asked); got != tc.same {
			t.Errorf("%q matches: %v, %s", asked, got, tc.reason)
		}
	}
	if redirectMatches([]string{"javascript:alert(1)"}, "javascript:alert(1)") {
		t.Error("an address that cannot be registered matches itself")
	}
}

// TestThreatOpenRedirector verifies that an unverified client gets no redirect.
func TestThreatOpenRedirector(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client := w.registerClient(loopURI)
	other := newWorld(t)
	other.keys.lasting = "the key of another installation"
	for name, query := range map[string]map[string][]string{
		"other address":      question(client, set("redirect_uri", "https://evil.example/cb")),
		"no address":         question(client, set("redirect_uri")),
		"two addresses":      question(client, set("redirect_uri", loopURI, "https://evil.example/")),
		"two clients":        question(client, set("client_id", client, "https://evil.example/client")),
		"no client":          question(client, set("client_id")),
		"unknown client":     question("dcr_made-up.signature"),
		"other installation": question(other.registerClient(loopURI)),
		"changed":            question(spoiled(client)),
		"changed inside":     question(strings.Replace(client, "dcr_", "dcr_e", 1)),
		"long":               question(client + strings.Repeat("A", maxClientID)),
		"a word":             question("inspector"),
		"a site":             question("https://agent.example"),
		"in the clear":       question("http://agent.example/client.json"),
	} {
		// Additional errors change nothing: there is still no redirect.
		for _, broken := range []bool{false, true} {
			if broken {
				query["response_type"], query["scope"] = []string{"token"}, []string{"everything"}
			}
			_, err := w.Read(t.Context(), query, ada.Person)
			if _, ok := errors.AsType[*PageError](err); !ok {
				t.Errorf("%s: %v, want a page", name, err)
			}
		}
	}
}

// TestThreatErrorRedirect verifies that a link to Herald does not redirect to an attacker's site through an error that
// precedes the consent page (RFC 9700, section 4.11.2).
func TestThreatErrorRedirect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	registered := func(redirect string) Client { return Client{ID: "dcr_of.someone", Redirects: []string{redirect}} }
	document := func(redirect string) Client {
		return Client{ID: "https://agent.example/client.json", Redirects: []string{redirect}, Verified: true}
	}
	for name, tc := range map[string]struct {
		client  func(redirect string) Client
		address string
		follow  bool
		reason  string
	}{
		"registered, a site":              {registered, "https://evil.example/signin", false, "anyone can register any address"},
		"registered, an application":      {registered, "cursor://anysphere.cursor-deeplink/mcp/install?name=x", false, "its URL identifies it"},
		"registered, this machine":        {registered, loopURI, true, "a program on this machine is not a site"},
		"registered, this machine by TLS": {registered, "https://localhost/cb", false, "the name may belong to a site"},
		"document, its own site":          {document, "https://agent.example/cb", false, "anyone with a site can serve a document"},
		"document, another site":          {document, "https://evil.example/cb", false, "the document can name any URL"},
		"document, a site below":          {document, "https://pages.agent.example/cb", false, "a subdomain may belong to others"},
		"document, another port":          {document, "https://agent.example:8443/cb", false, "another server"},
		"document, an application":        {document, "cursor://agent.example/cb", false, "its host is not a site"},
		"document, this machine":          {document, "http://localhost:8/cb", true, "a program on this machine is not a site"},
	} {
		asked := &Request{Client: tc.client(tc.address), Redirect: tc.address, State: "s"}
		refused := w.refused(asked, refusef(http.StatusBadRequest, invalidScope, "no"))
		if refused.AutoRedirect != tc.follow || !strings.HasPrefix(refused.Location, tc.address) {
			t.Errorf("%s: %+v, %s", name, refused, tc.reason)
		}
		if refused.Host != hostOf(tc.address) || refused.Client != &asked.Client || refused.What() != "no" {
			t.Errorf("%s: the page shows %+v", name, refused)
		}
	}
	// The page does not repeat text from the address.
	_, err := w.Read(t.Context(), question(w.registerClient(loopURI), set("your account is locked", "a", "b")), ada.Person)
	if refused, ok := errors.AsType[*Refused](err); !ok || strings.Contains(refused.What(), "locked") {
		t.Errorf("an unknown parameter that is repeated: %v", err)
	}
	if _, err = w.Read(t.Context(), question(w.registerClient(loopURI), set("scope", "a", "b")), ada.Person); err == nil || !strings.Contains(err.Error(), "scope") {
		t.Errorf("a known parameter that is repeated: %v", err)
	}
}

func TestFormAction(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://agent.example/cb": "https:", "http://127.0.0.1:33418/cb": "http://127.0.0.1:33418 https:", "http://localhost/cb": "http://localhost https:",
		"http://[::1]:80/cb": "http: https:", "cursor://agent/cb": "cursor:", "com.example.agent:/cb": "com.example.agent:",
	} {
		if got := FormAction(address); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}
