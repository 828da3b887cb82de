// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tweettext

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/unicode/norm"
)

// urlRows were verified with twitter-text 3.1.0.
var urlRows = []struct {
	reason, text string
	want         []string
}{
	{"no dot, no URL", "http://localhost/a", nil},
	{"a protocol and a domain", "see http://example.com now", []string{"http://example.com"}},
	{"the protocol's case does not matter", "HTTPS://example.com", []string{"HTTPS://example.com"}},
	{"an unknown protocol leaves the domain, which a slash may not precede", "ftp://example.com", nil},
	{"a protocol inside a word hides the domain after its slash", "xhttp://example.com", nil},
	{"a bare domain", "see example.com now", []string{"example.com"}},
	{"the top-level domain's case does not matter", "EXAMPLE.CoM", []string{"EXAMPLE.CoM"}},
	{"a country-code domain makes a bare URL, with or without a path", "a.at b.at/c", []string{"a.at", "b.at/c"}},
	{"an unknown top-level domain", "http://example.invalidtld example.txtx", nil},
	{"the longest top-level domain counts", "example.community", []string{"example.community"}},
	{"the last top-level domain in the labels counts", "a.com.invalid.org", []string{"a.com.invalid.org"}},
	{"labels after the last top-level domain remain", "a.com.invalid", []string{"a.com"}},
	{"a full stop after a domain is not part of the domain", "I like example.com.", []string{"example.com"}},
	{"a digit after the top-level domain", "example.com1", nil},
	{"a hyphen after the top-level domain", "example.com-", nil},
	{"an underscore after the top-level domain ends it", "example.com_a", []string{"example.com"}},

	{"an e-mail address is not a URL", "write to me@example.com", nil},
	{"an e-mail address's local part is not a URL", "first.com@example.com", nil},
	{"an e-mail address with a subdomain is not a URL", "me@mail.example.com", nil},
	{"a domain after a mention sign", "@example.com", nil},
	{"a URL after a full-width mention sign", "＠http://example.com", nil},
	{"a full-width @ does not belong to a bare domain", "＠example.com", []string{"example.com"}},
	{"a domain after a hashtag sign", "#example.com", nil},
	{"a URL after a full-width hashtag sign", "＃http://example.com", nil},
	{"a domain after a cashtag sign", "$example.com", nil},
	{"a URL after a cashtag sign", "$http://example.com", nil},
	{"a URL after a bracket", "(http://example.com)", []string{"http://example.com"}},
	{"a URL after a dash", "-http://example.com", []string{"http://example.com"}},
	{"a bare domain after a dash, an underscore, a dot or a slash", " -a.com _a.com .a.com /a.com", nil},
	{"a directional mark before and after", "\u202ahttp://example.com\u202c", []string{"http://example.com"}},
	{"a byte order mark before", "\ufeffexample.com", nil},

	{"an underscore in a subdomain", "http://a_b.example.com", []string{"http://a_b.example.com"}},
	{"an underscore in the domain", "http://a_b.com", nil},
	{"a bare domain starts after a subdomain's underscore", "a_b.example.com", []string{"b.example.com"}},
	{"a label that starts with a hyphen", "http://-a.com", nil},
	{"a label that ends with one", "http://a-.com", nil},
	{"an empty label", "http://a..com", nil},
	{"a hyphen before the first of several labels does not hide the labels", "-.a.b.com", nil},
	{"a space is not part of the domain", "- a.b.com", []string{"a.b.com"}},
	{"a label of 63 characters", "http://" + strings.Repeat("a", 63) + ".com", []string{"http://" + strings.Repeat("a", 63) + ".com"}},
	{"a label of 64 characters", "http://" + strings.Repeat("a", 64) + ".com", nil},
	{"64 characters in a bare domain", strings.Repeat("a", 64) + ".com", nil},
	{"more than 253 characters of domain", "http://" + strings.Repeat("aaaaaaaaa.", 30) + "com", []string{"http://" + strings.Repeat("aaaaaaaaa.", 30) + "com"}},

	{"a domain in another script with a protocol", "http://日本語.jp", []string{"http://日本語.jp"}},
	{"without one", "日本語.jp", nil},
	{"accented Latin without one", "x bücher.de", []string{"bücher.de"}},
	{"at the very beginning an accented letter counts as a preceding character", "üa.de", []string{"a.de"}},
	{"a single label keeps its non-ASCII letters", "ü.de", []string{"ü.de"}},
	{"an iota, whose capital is an accent in JavaScript", "x aι.gr", []string{"aι.gr"}},
	{"a top-level domain in another script", "http://例子.中国 x.рф", []string{"http://例子.中国", "x.рф"}},
	{"its case does not matter", "x.РФ", []string{"x.РФ"}},
	{"the longer of two names with the same start", "http://a.嘉里大酒店 http://a.嘉里大", []string{"http://a.嘉里大酒店", "http://a.嘉里"}},
	{"Punycode as the top-level domain", "http://a.xn--p1ai a.xn--p1ai", []string{"http://a.xn--p1ai", "a.xn--p1ai"}},
	{"Punycode and another script in one domain", "http://xn--ü中.com", nil},
	{"an ASCII domain between Japanese words", "これはexample.comです", []string{"example.com"}},
	{"with its path", "これはexample.com/aです", []string{"example.com/a"}},
	{"a URL after Japanese", "これhttp://example.com/これ", []string{"http://example.com/"}},
	{"two domains with Chinese between them", "a.com中b.com", []string{"a.com", "b.com"}},
	{"a domain after an emoji", "😀example.com", []string{"example.com"}},
	{"an emoji as a domain, with a protocol", "http://😀.com", []string{"http://😀.com"}},
	{
		"the ASCII part of a domain, and a later part that is not: the range reaches to the path's end", "a.com.中.com/p",
		[]string{"a.com.中.com/p"},
	},
	{"the part's text is searched from the left", " x.comb中x.com", []string{"x.com"}},

	{"a port", "http://example.com:8080", []string{"http://example.com:8080"}},
	{"a port and a path", "http://example.com:8080/a", []string{"http://example.com:8080/a"}},
	{"a colon without a port", "http://example.com:", []string{"http://example.com"}},
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
	{"parentheses after trailing punctuation", "http://example.com/a.(b)", []string{"http://example.com/a"}},
	{"parentheses after more trailing punctuation", "http://example.com/a.(b)c", []string{"http://example.com/a.(b)c"}},
	{"a query", "http://example.com/?a=b&c[]=d", []string{"http://example.com/?a=b&c[]=d"}},
	{"a query without a path", "http://example.com?a=b", []string{"http://example.com?a=b"}},
	{"on a bare domain", "example.com?a=b", []string{"example.com"}},
	{"a query's trailing punctuation", "http://example.com/?a=b.!", []string{"http://example.com/?a=b"}},
	{"a question mark without a query", "http://example.com/?", []string{"http://example.com/"}},
	{"a query stops at an accent", "http://example.com/?a=é", []string{"http://example.com/?a="}},
	{"a fragment", "http://example.com/#a", []string{"http://example.com/#a"}},
	{"a fragment without a path", "http://example.com#a", []string{"http://example.com"}},

	{"one of X's own URLs", "https://t.co/aB1", []string{"https://t.co/aB1"}},
	{"text after the slug does not belong to it", "https://t.co/aB1-x/y", []string{"https://t.co/aB1"}},
	{"the query belongs to it", "https://t.co/aB1?a=b.", []string{"https://t.co/aB1?a=b"}},
	{"a slug of 40 characters", "http://t.co/" + strings.Repeat("a", 40), []string{"http://t.co/" + strings.Repeat("a", 40)}},
	{"a slug of 41", "http://t.co/" + strings.Repeat("a", 41), nil},
	{"without a slug, or with a port, it is an ordinary URL", "http://t.co/ http://t.co:80/a-b", []string{"http://t.co/", "http://t.co:80/a-b"}},
	{"without a protocol too", "t.co/a-b", []string{"t.co/a-b"}},
	{"4088 characters and the assumed protocol", "a.com/" + strings.Repeat("a", 4082), []string{"a.com/" + strings.Repeat("a", 4082)}},
	{"one character too many", "a.com/" + strings.Repeat("a", 4083), nil},
	{"the protocol counts twice", "http://a.com/" + strings.Repeat("a", 4077), nil},
	{"one less", "http://a.com/" + strings.Repeat("a", 4076), []string{"http://a.com/" + strings.Repeat("a", 4076)}},
	{"the text is not normalized, so that offsets are correct", "e\u0301 a.com", []string{"a.com"}},
}

// urlsIn returns the URLs in text.
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
	// Offsets count bytes, regardless of which characters precede them. If a part's text also occurs earlier,
	// twitter-text's range is at that place.
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

func TestNormalize(t *testing.T) {
	many := strings.Repeat("\u0316", 40) // of class 220
	for _, row := range []struct{ reason, text, want string }{
		{"ASCII stays", "a.com", "a.com"},
		{"accented Latin stays", "é", "é"},
		{"an accent joins its letter", "e\u0301", "é"},
		{"a compatibility code point is replaced", "\u212b", "Å"},
		{"composition exclusions are decomposed", "\u0958", "\u0915\u093c"},
		{"invalid bytes are replaced one by one", "e\u0301\xff\xfe", "é\ufffd\ufffd"},
		{"invalid bytes do not block decomposition", "\xf5\u0344", "\ufffd\u0308\u0301"},
		{"an author's joiner stays", "e\u034f\u0301", "e\u034f\u0301"},
		{"an accent joins past any number of marks of a lower class", "e" + many + "\u0301", "é" + many},
		{"many marks are sorted", "x" + strings.Repeat("\u0301", 40) + "\u0316", "x\u0316" + strings.Repeat("\u0301", 40)},
		{"only the first of two accents of one class joins", "e" + many + "\u0301\u0308", "é" + many + "\u0308"},
		{"two marks of different classes compose in order", "a\u0323\u0302" + strings.Repeat("\u0308", 40), "ậ" + strings.Repeat("\u0308", 40)},
		{"syllables next to many marks compose", "\u1112\u1161\u11ab" + many, "한" + many},
		{"composed syllables remain", "한" + many, "한" + many},
		{"marks of Unicode 16 are put in order", "x\u0897\u0316\U0001612f", "x\U0001612f\u0316\u0897"},
		{"marks of Unicode 16 do not block composition", "e\u1add\u0301", "é\u1add"},
		{"a mark of the same class blocks composition", "e\u0897\u0301", "e\u0897\u0301"},
		{"two of three signs of Unicode 16 join, and then the third", "\U0001611e\U0001611e\U0001611f", "\U00016126"},
		{"a pair and a third do so too", "\U00016121\U0001611f", "\U00016126"},
		{"composed signs remain", "\U00016126\U00016d6a", "\U00016126\U00016d6a"},
		{"an accent blocks the composition of signs", "\U000113c2\u0301\U000113c2", "\U000113c2\u0301\U000113c2"},
		{"new marks and many old ones", "e\u1add" + many + "\u0301", "é\u1add" + many},
		{"a starter that follows marks starts over", "e" + many + "e\u0301", "e" + many + "é"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			if got := normalize(row.text); got != row.want {
				t.Errorf("normalize(%+q) = %+q, want %+q", row.text, got, row.want)
			}
		})
	}
}

// TestComposeAgrees compares the composition of long sequences of marks with package norm's composition of short ones,
// for each code point that decomposes or may compose with another, alone and between a letter and an accent.
func TestComposeAgrees(t *testing.T) {
	compared := 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		p := norm.NFC.PropertiesString(string(r))
		if !utf8.ValidRune(r) || p.BoundaryBefore() && p.Decomposition() == nil {
			continue
		}
		compared++
		for _, text := range []string{string(r), "a" + string(r) + "\u0301"} {
			if got, want := compose(decompose(text)), norm.NFC.String(text); got != want {
				t.Errorf("compose(decompose(%+q)) = %+q, want %+q", text, got, want)
			}
		}
	}
	if compared < 2000 {
		t.Errorf("only %d code points were compared", compared)
	}
}

// TestNewerAgrees compares the additions of Unicode 16 and 17 with package norm, which has either the same data for a
// character or, in an older version, none.
func TestNewerAgrees(t *testing.T) {
	marks := 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		class, p := newClass(r), norm.NFC.PropertiesString(string(r))
		if class != 0 {
			marks++
			if p.CCC() != 0 && p.CCC() != class {
				t.Errorf("%U has class %d, not %d", r, p.CCC(), class)
			}
		}
		pair, ok := newPairs[r]
		if whole := string(pair[:]); ok && p.Decomposition() != nil && norm.NFC.String(whole) != string(r) {
			t.Errorf("%+q does not make %U", whole, r)
		}
		if (ok || class != 0) && !newer(r) {
			t.Errorf("%U is passed over", r)
		}
		if newer(r) && class == 0 && unicode.Is(unicode.M, r) && p.CCC() != 0 {
			t.Errorf("%U is a mark of class %d, not a letter that starts a pair", r, p.CCC())
		}
	}
	if marks != 46 || len(newPairs) != 20 {
		t.Errorf("got %d marks and %d pairs; Unicode 16 and 17 added 46 and 20", marks, len(newPairs))
	}
}
