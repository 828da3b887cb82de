// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tweettext

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// urlRows were verified with twitter-text 3.1.0.
var urlRows = []struct {
	reason, text string
	want         []string
}{
	{"no dot, no URL", "http://localhost/a", nil},
	{"a protocol and a domain", "see http://example.com now", []string{"http://example.com"}},
	{"the protocol's case does not matter", "HTTPS://example.com", []string{"HTTPS://example.com"}},
	{"of an unknown protocol only the domain is left, and a slash may not precede it", "ftp://example.com", nil},
	{"a protocol inside a word hides the domain behind its slash", "xhttp://example.com", nil},
	{"a bare domain", "see example.com now", []string{"example.com"}},
	{"the top-level domain's case does not matter", "EXAMPLE.CoM", []string{"EXAMPLE.CoM"}},
	{"any known country's domain makes a bare URL, with or without a path", "a.at b.at/c", []string{"a.at", "b.at/c"}},
	{"an unknown top-level domain", "http://example.invalidtld example.txtx", nil},
	{"the longest top-level domain counts", "example.community", []string{"example.community"}},
	{"the last top-level domain in the labels counts", "a.com.invalid.org", []string{"a.com.invalid.org"}},
	{"labels behind the last top-level domain are left", "a.com.invalid", []string{"a.com"}},
	{"a full stop behind a domain is none of it", "I like example.com.", []string{"example.com"}},
	{"a digit behind the top-level domain", "example.com1", nil},
	{"a hyphen behind the top-level domain", "example.com-", nil},
	{"an underscore behind it ends it", "example.com_a", []string{"example.com"}},

	{"an e-mail address is none", "write to me@example.com", nil},
	{"nor is its local part", "first.com@example.com", nil},
	{"nor with a label more", "me@mail.example.com", nil},
	{"a domain behind a mention sign", "@example.com", nil},
	{"a URL behind a full-width one", "＠http://example.com", nil},
	{"which as a part of a bare domain is passed over", "＠example.com", []string{"example.com"}},
	{"a domain behind a hashtag sign", "#example.com", nil},
	{"a URL behind a full-width one of these", "＃http://example.com", nil},
	{"a domain behind a cashtag sign", "$example.com", nil},
	{"a URL behind one", "$http://example.com", nil},
	{"a URL behind a bracket", "(http://example.com)", []string{"http://example.com"}},
	{"a URL behind a dash", "-http://example.com", []string{"http://example.com"}},
	{"a bare domain behind a dash, an underscore, a dot or a slash", " -a.com _a.com .a.com /a.com", nil},
	{"a directional mark before and behind", "\u202ahttp://example.com\u202c", []string{"http://example.com"}},
	{"a byte order mark before", "\ufeffexample.com", nil},

	{"an underscore in a subdomain", "http://a_b.example.com", []string{"http://a_b.example.com"}},
	{"an underscore in the domain", "http://a_b.com", nil},
	{"a bare domain begins behind a subdomain's underscore", "a_b.example.com", []string{"b.example.com"}},
	{"a label that begins with a hyphen", "http://-a.com", nil},
	{"a label that ends with one", "http://a-.com", nil},
	{"an empty label", "http://a..com", nil},
	{"a hyphen before the first of several labels does not hide them", "-.a.b.com", nil},
	{"but a space does not", "- a.b.com", []string{"a.b.com"}},
	{"a label of 63 characters", "http://" + strings.Repeat("a", 63) + ".com", []string{"http://" + strings.Repeat("a", 63) + ".com"}},
	{"of 64", "http://" + strings.Repeat("a", 64) + ".com", nil},
	{"64 characters in a bare domain", strings.Repeat("a", 64) + ".com", nil},
	{"more than 253 characters of domain", "http://" + strings.Repeat("aaaaaaaaa.", 30) + "com", []string{"http://" + strings.Repeat("aaaaaaaaa.", 30) + "com"}},

	{"a domain in another script with a protocol", "http://日本語.jp", []string{"http://日本語.jp"}},
	{"without one", "日本語.jp", nil},
	{"accented Latin without one", "x bücher.de", []string{"bücher.de"}},
	{"at the very beginning an accented letter counts as what precedes", "üa.de", []string{"a.de"}},
	{"but not where nothing is left without it", "ü.de", []string{"ü.de"}},
	{"an iota, which is an accent's capital to JavaScript", "x aι.gr", []string{"aι.gr"}},
	{"a top-level domain in another script", "http://例子.中国 x.рф", []string{"http://例子.中国", "x.рф"}},
	{"its case does not matter", "x.РФ", []string{"x.РФ"}},
	{"the longer of two names that begin alike", "http://a.嘉里大酒店 http://a.嘉里大", []string{"http://a.嘉里大酒店", "http://a.嘉里"}},
	{"Punycode as the top-level domain", "http://a.xn--p1ai a.xn--p1ai", []string{"http://a.xn--p1ai", "a.xn--p1ai"}},
	{"Punycode and another script in one domain", "http://xn--ü中.com", nil},
	{"an ASCII domain between Japanese words", "これはexample.comです", []string{"example.com"}},
	{"with its path", "これはexample.com/aです", []string{"example.com/a"}},
	{"a URL behind Japanese", "これhttp://example.com/これ", []string{"http://example.com/"}},
	{"two domains with Chinese between them", "a.com中b.com", []string{"a.com", "b.com"}},
	{"a domain behind an emoji", "😀example.com", []string{"example.com"}},
	{"an emoji as a domain, with a protocol", "http://😀.com", []string{"http://😀.com"}},
	{
		"a part of the domain in ASCII and a later one that is not: the range reaches to the path's end", "a.com.中.com/p",
		[]string{"a.com.中.com/p"},
	},
	{"the part's text is looked for from the left", " x.comb中x.com", []string{"x.com"}},

	{"a port", "http://example.com:8080", []string{"http://example.com:8080"}},
	{"a port and a path", "http://example.com:8080/a", []string{"http://example.com:8080/a"}},
	{"a colon alone", "http://example.com:", []string{"http://example.com"}},
	{"a bare domain leaves its port", "example.com:80", []string{"example.com"}},
	{"except with a path", "example.com:80/a", []string{"example.com:80/a"}},
	{"a path", "http://example.com/a/b-c_d.e~f", []string{"http://example.com/a/b-c_d.e~f"}},
	{"trailing punctuation", "http://example.com/a., http://example.com/a!", []string{"http://example.com/a", "http://example.com/a"}},
	{"a path of punctuation only", "http://example.com/...", []string{"http://example.com/"}},
	{"a path in Cyrillic", "http://example.com/привет.", []string{"http://example.com/привет"}},
	{"a path stops at Japanese", "http://example.com/aあ", []string{"http://example.com/a"}},
	{"an en dash in a path", "http://example.com/a–b", []string{"http://example.com/a–b"}},
	{"a mention sign in a path", "http://example.com/@user/1", []string{"http://example.com/@user/1"}},
	{"parentheses", "http://example.com/a_(b)", []string{"http://example.com/a_(b)"}},
	{"nested parentheses", "http://example.com/a_(b_(c))_d", []string{"http://example.com/a_(b_(c))_d"}},
	{"nested too deep", "http://example.com/a(b(c(d)))", []string{"http://example.com/a"}},
	{"empty parentheses", "http://example.com/a()", []string{"http://example.com/a"}},
	{"an open one", "http://example.com/a(b", []string{"http://example.com/a"}},
	{"a URL in parentheses", "(http://example.com/a(b))", []string{"http://example.com/a(b)"}},
	{"parentheses behind trailing punctuation", "http://example.com/a.(b)", []string{"http://example.com/a"}},
	{"the same with more behind them", "http://example.com/a.(b)c", []string{"http://example.com/a.(b)c"}},
	{"a query", "http://example.com/?a=b&c[]=d", []string{"http://example.com/?a=b&c[]=d"}},
	{"a query without a path", "http://example.com?a=b", []string{"http://example.com?a=b"}},
	{"on a bare domain", "example.com?a=b", []string{"example.com"}},
	{"a query's trailing punctuation", "http://example.com/?a=b.!", []string{"http://example.com/?a=b"}},
	{"a question mark alone", "http://example.com/?", []string{"http://example.com/"}},
	{"a query stops at an accent", "http://example.com/?a=é", []string{"http://example.com/?a="}},
	{"a fragment", "http://example.com/#a", []string{"http://example.com/#a"}},
	{"a fragment without a path", "http://example.com#a", []string{"http://example.com"}},

	{"one of X's own URLs", "https://t.co/aB1", []string{"https://t.co/aB1"}},
	{"what follows its slug is none of it", "https://t.co/aB1-x/y", []string{"https://t.co/aB1"}},
	{"but a query is", "https://t.co/aB1?a=b.", []string{"https://t.co/aB1?a=b"}},
	{"a slug of 40 characters", "http://t.co/" + strings.Repeat("a", 40), []string{"http://t.co/" + strings.Repeat("a", 40)}},
	{"a slug of 41", "http://t.co/" + strings.Repeat("a", 41), nil},
	{"without a slug, or with a port, it is as any other", "http://t.co/ http://t.co:80/a-b", []string{"http://t.co/", "http://t.co:80/a-b"}},
	{"without a protocol too", "t.co/a-b", []string{"t.co/a-b"}},
	{"4088 characters and the assumed protocol", "a.com/" + strings.Repeat("a", 4082), []string{"a.com/" + strings.Repeat("a", 4082)}},
	{"one more", "a.com/" + strings.Repeat("a", 4083), nil},
	{"the protocol counts twice", "http://a.com/" + strings.Repeat("a", 4077), nil},
	{"one less", "http://a.com/" + strings.Repeat("a", 4076), []string{"http://a.com/" + strings.Repeat("a", 4076)}},
	{"the text is not normalised, so that offsets hold", "e\u0301 a.com", []string{"a.com"}},
}

// urlsIn returns the URLs in a text.
func urlsIn(text string) (ranges []Range) {
	for _, u := range findURLs(text, nil) {
		ranges = append(ranges, u.Range)
	}
	return ranges
}

func TestURLs(t *testing.T) {
	for _, row := range urlRows {
		t.Run(row.reason, func(t *testing.T) {
			var got []string
			for _, u := range urlsIn(row.text) {
				got = append(got, row.text[u.Start:u.End])
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("urlsIn(%+q) (-want +got):\n%s", row.text, diff)
			}
		})
	}
}

func TestURLOffsets(t *testing.T) {
	// Offsets count bytes, whatever precedes them; if a part's text occurs earlier, twitter-text's range is there.
	for _, row := range []struct {
		reason, text string
		want         []Range
	}{
		{"characters of several bytes before", "é😀 a.com", []Range{{7, 12}}},
		{"an earlier occurrence that is no URL", " x.comb中x.com", []Range{{1, 6}}},
		{"two URLs", "http://a.com,b.com", []Range{{0, 12}, {13, 18}}},
	} {
		t.Run(row.reason, func(t *testing.T) {
			if diff := cmp.Diff(row.want, urlsIn(row.text)); diff != "" {
				t.Errorf("urlsIn(%+q) (-want +got):\n%s", row.text, diff)
			}
		})
	}
}
