// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package counting compares Herald's caption lengths with other implementations: twitter-text, which is X's library;
// ICU's segmenter and emoji data, as in Node.js; and Autolinker, which finds hashtags and mentions as Instagram shows
// them.
package counting

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/must"
	"github.com/herald-social/herald/test/realplatforms"
)

// few is the number of strings in a full test run. COUNTING_TEXTS overrides it.
const few = 2_000

// answer is count.mjs's output for a string.
type answer struct {
	X        int  `json:"x"`
	Valid    bool `json:"valid"`
	Hashtags int  `json:"hashtags"`
	Mentions int  `json:"mentions"`
	// Threads is -1 for text with emoji that Unicode does not recommend, because Threads does not document how it
	// counts them.
	Threads int `json:"threads"`
	UTF16   int `json:"utf16"`
	UTF8    int `json:"utf8"`
}

func TestCounts(t *testing.T) {
	if _, err := os.Stat("node_modules/twitter-text"); err != nil {
		t.Skip("twitter-text and Autolinker are not installed: make test-counting")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not in PATH: install Node.js 20 or later")
	}
	count := few
	if wanted, err := strconv.Atoi(os.Getenv("COUNTING_TEXTS")); err == nil {
		count = wanted
	}
	seed := rand.Uint64()
	if given, err := strconv.ParseUint(os.Getenv("COUNTING_SEED"), 10, 64); err == nil {
		seed = given
	}
	t.Logf("%d texts of COUNTING_SEED=%d", count, seed)
	texts := append(known(), make([]string, count)...)
	random := rand.New(rand.NewPCG(seed, 0))
	for i := len(texts) - count; i < len(texts); i++ {
		texts[i] = text(random)
	}
	limits := declared()
	wrong := map[string]int{}
	differ := func(what, text string, got, want any) {
		wrong[what]++
		if wrong[what] <= 5 {
			t.Errorf("%s: %q: %v, the library returns %v", what, text, got, want)
		}
	}
	for i, theirs := range runReference(t, node, texts) {
		text := texts[i]
		for what, pair := range map[string][2]int{
			"length on X":             {limits[v1alpha1.PlatformX].CaptionLength(text), theirs.X},
			"length on Threads":       {limits[v1alpha1.PlatformThreads].CaptionLength(text), theirs.Threads},
			"length on TikTok":        {limits[v1alpha1.PlatformTikTok].CaptionLength(text), theirs.UTF16},
			"title on YouTube":        {limits[v1alpha1.PlatformYouTube].TitleLength(text), theirs.UTF16},
			"description on YouTube":  {limits[v1alpha1.PlatformYouTube].CaptionLength(text), theirs.UTF8},
			"length on Instagram":     {limits[v1alpha1.PlatformInstagram].CaptionLength(text), utf8.RuneCountInString(text)},
			"hashtags on Instagram":   {inCaption(limits, text, 30, " #a", hashtags), theirs.Hashtags},
			"mentions on Instagram":   {inCaption(limits, text, 20, " @a", mentions), theirs.Mentions},
			"accepted by X by length": {whole(limits[v1alpha1.PlatformX].CaptionLength(text) <= 280), whole(theirs.Valid || theirs.X <= 280)},
		} {
			if pair[0] != pair[1] && !readDifferently(what, text, pair[0], pair[1]) {
				differ(what, text, pair[0], pair[1])
			}
		}
	}
	for what, n := range wrong {
		t.Logf("%s: %d of %d texts are counted differently", what, n, len(texts))
	}
}

func whole(is bool) int {
	if is {
		return 1
	}
	return 0
}

// declared returns the counts by the platforms' capabilities.
func declared() map[v1alpha1.Platform]platforms.Capabilities {
	limits := map[v1alpha1.Platform]platforms.Capabilities{}
	for name, platform := range realplatforms.All() {
		limits[name] = platform.Capabilities()
	}
	return limits
}

var (
	hashtags = regexp.MustCompile(`has (\d+) hashtags`)
	mentions = regexp.MustCompile(`mentions (\d+) accounts`)
)

// inCaption returns the number of hashtags or mentions that Herald counts in text. Only the error for too many of them
// contains the number, so inCaption appends as many as are allowed.
func inCaption(limits map[v1alpha1.Platform]platforms.Capabilities, text string, most int, one string, problem *regexp.Regexp) int {
	found := problem.FindStringSubmatch(limits[v1alpha1.PlatformInstagram].CaptionProblem(text + strings.Repeat(one, most)))
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(found[1])
	return n - most
}

// runReference runs the other implementations on the strings.
func runReference(t *testing.T, node string, texts []string) []answer {
	t.Helper()
	var asked strings.Builder
	encoder := json.NewEncoder(&asked)
	for _, text := range texts {
		must.Succeed(t, encoder.Encode(text))
	}
	command := exec.CommandContext(t.Context(), node, "count.mjs")
	command.Stdin, command.Stderr = strings.NewReader(asked.String()), os.Stderr
	output, err := command.Output()
	must.Succeed(t, err)
	answers := make([]answer, 0, len(texts))
	lines := bufio.NewScanner(strings.NewReader(string(output)))
	for lines.Scan() {
		var a answer
		must.Succeed(t, json.Unmarshal(lines.Bytes(), &a))
		answers = append(answers, a)
	}
	if len(answers) != len(texts) {
		t.Fatalf("%d texts have %d results", len(texts), len(answers))
	}
	return answers
}

// readDifferently reports whether a difference is known and accepted.
func readDifferently(what, text string, ours, theirs int) bool {
	switch what {
	case "length on Threads":
		return theirs < 0 || ours > theirs && conjunct.MatchString(text)
	case "hashtags on Instagram", "mentions on Instagram":
		return !words.MatchString(text)
	default:
		return false
	}
}

var (
	// conjunct matches Indic letters that are joined by a virama. Since Unicode 15.1 they are a single grapheme cluster
	// (UAX #29, rule GB9c). Herald's segmenter does not implement that rule and counts more.
	conjunct = regexp.MustCompile(`\x{094D}`)
	// words matches realistic captions: pieces from inCaptions separated by spaces. Autolinker is wrong about unusual
	// strings: it mistakes keycaps and escaped character numbers for hashtags, and misses the full-width sign, emoji in
	// hashtags, adjacent hashtags, and names with a dot or a trailing emoji.
	words = func() *regexp.Regexp {
		var quoted []string
		for _, piece := range inCaptions {
			quoted = append(quoted, regexp.QuoteMeta(piece))
		}
		return regexp.MustCompile(`^(?:(?:` + strings.Join(quoted, "|") + `)[ \n])+$`)
	}()
)

// pieces are the parts of generated captions, including unusual ones.
var pieces = []string{
	"a", "Z", "7", "_", "-", ".", ",", "!", "(", ")", "'", "\"", "&", ";", ":", "/", "?", "=", "%", "~", "+", "$", "|", "*",
	" ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\u2028", "\u200b", "\u200d", "\u200c", "\u2060", "\u00ad",
	"é", "e\u0301", "ß", "ı", "Ω", "ж", "日本", "カ", "がか\u3099", "한", "\u1112\u1161\u11ab", "हिन्दी", "ไทย", "العربية", "עברית", "\u202e", "\u200f", "\u2067", "\u2069",
	"🎉", "👍🏽", "\U0001F468\u200D\U0001F469\u200D\U0001F467\u200D\U0001F466", "🇮🇸", "🇮🇸🇯🇵", "❤️", "☀", "1️⃣", "#️⃣", "*️⃣", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "🫠", "🧑🏻‍🤝‍🧑🏿", "©", "™️", "🏳️‍🌈",
	"#a", "#日本", "＃日本", "#123", "##a", "# ", "#a#b", "a#b", "#_", "#é", "#हिन्दी", "&#39;", "&#x27;", "&amp;",
	"@a", "@a.b", "＠a", "@", "@@a", "me@example.com", "x@y", "@a_b", ".@c", "(@a)",
	"http://a.co", "https://example.com/faq#price", "https://a.co/@b", "https://bücher.example/ä?ö=#ü", "http://xn--bcher-kva.example", "example.com", "example.com/#a", "example.com/@a",
	"www.example.com", "HTTPS://EXAMPLE.COM", "a.notatld", "example.music", "日本.jp", "http://日本語.jp/パス", "https://t.co/abc", "https://a.co:8080/(b)_c", "1.2.3.4", "http://1.2.3.4/#x",
	"https://a.co、https://b.co", "https://a.coと", "a.co,b.co", "$TSLA", "\ufffd", "\U000e0041", "𝒜", "\U0010fffd", "\x7f", "\u0001",
}

// inCaptions are parts of Instagram captions, including lookalikes of hashtags and names.
var inCaptions = []string{
	"Hello", "日本", "हिन्दी", "🎉", "\U0001F468\u200D\U0001F469\u200D\U0001F467\u200D\U0001F466", "#a", "#日本", "#é", "#e\u0301", "#हिन्दी", "#a_b", "#a,", "a#b", "C#", "#", "@a", "@a_b", "(@a)", "@", "me@example.com",
	"https://shop.example.com/faq#price", "https://example.com/#/start", "https://www.tiktok.com/@name", "www.example.com/@name", "example.com/page#part", "https://example.com/?q=#x",
}

// known returns strings from bug reports, and edge cases.
func known() []string {
	return []string{
		"", " ", strings.Repeat("a", 280), strings.Repeat("a", 281), strings.Repeat("漢", 140), strings.Repeat("🎉", 125), strings.Repeat("\U0001F468\u200D\U0001F469\u200D\U0001F467\u200D\U0001F466", 140),
		"https://shop.example/faq#price https://shop.example/faq#time", "&#39;&#39;", strings.Repeat("e\u0301", 280), "a\r\nb", "line\n", "#️⃣",
	}
}

// text returns a string of random pieces, in a form delivered by one of Herald's interfaces.
func text(random *rand.Rand) string {
	var b strings.Builder
	if random.IntN(3) == 0 {
		for range 1 + random.IntN(40) {
			b.WriteString(inCaptions[random.IntN(len(inCaptions))] + []string{" ", "\n"}[random.IntN(2)])
		}
		return b.String()
	}
	for range 1 + random.IntN(12) {
		piece := pieces[random.IntN(len(pieces))]
		if random.IntN(20) == 0 {
			piece = strings.Repeat(piece, random.IntN(60))
		}
		b.WriteString(piece)
		if random.IntN(3) == 0 {
			b.WriteByte(' ')
		}
	}
	switch text := b.String(); random.IntN(8) {
	case 0:
		return norm.NFD.String(text)
	case 1:
		return norm.NFC.String(text)
	case 2:
		return strings.ReplaceAll(text, "\n", "\r\n")
	case 3:
		return text + "\n" // a YAML block scalar ends like this
	default:
		return text
	}
}

// Example shows one comparison: the length on X.
func Example() {
	fmt.Println(declared()[v1alpha1.PlatformX].CaptionLength("https://example.com/a/long/path 🎉"))
	// Output: 26
}

// page is the documentation of caption length counting.
const page = "../../docs/captions.md"

// rows returns the page's limits, by heading and first column.
func rows(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(page)
	must.Succeed(t, err)
	found, heading := map[string]string{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "## "); ok {
			heading = name
		}
		if cells := strings.Split(line, " | "); len(cells) == 4 {
			found[heading+": "+strings.TrimPrefix(cells[0], "| ")] = cells[1]
		}
	}
	return found
}

// TestPage compares the page's tables with the platforms' capabilities: text at the documented limit is accepted, and a
// longer one is rejected.
func TestPage(t *testing.T) {
	numbers := rows(t)
	limits := declared()
	caption := func(platform v1alpha1.Platform, one string) func(n int) bool {
		l := limits[platform]
		return func(n int) bool {
			return accepts(l.MaxCaption, l.CaptionLength, l.CaptionProblem, strings.Repeat(one, n))
		}
	}
	youtube := limits[v1alpha1.PlatformYouTube]
	for row, tc := range map[string]struct {
		reason string
		takes  func(n int) bool
		// of is the length of one piece of the text, in units.
		of int
	}{
		"X: text":                      {"kanji weigh two", caption(v1alpha1.PlatformX, "漢"), 2},
		"X: U+FEFF, U+FFFE, U+FFFF":    {"X rejects each of them", func(n int) bool { return caption(v1alpha1.PlatformX, "\ufeff")(n) }, 1},
		"Threads: text":                {"a letter and its combining mark count as one", caption(v1alpha1.PlatformThreads, "e\u0301"), 1},
		"Threads: links":               {"different URLs count", func(n int) bool { return caption(v1alpha1.PlatformThreads, addresses(n))(1) }, 1},
		"Instagram: text":              {"an emoji of one code point counts one", caption(v1alpha1.PlatformInstagram, "🎉"), 1},
		"Instagram: hashtags":          {"each hashtag counts", caption(v1alpha1.PlatformInstagram, "#a "), 1},
		"Instagram: mentions":          {"each name counts", caption(v1alpha1.PlatformInstagram, "@a "), 1},
		"TikTok: text":                 {"an emoji counts two", caption(v1alpha1.PlatformTikTok, "🎉"), 2},
		"YouTube: description":         {"kanji have three bytes, and these two have one each", caption(v1alpha1.PlatformYouTube, "ab"), 2},
		"YouTube: title":               {"an emoji counts two", title(&youtube, "🎉"), 2},
		"YouTube: `<` and `>`":         {"YouTube rejects each of them", caption(v1alpha1.PlatformYouTube, "<"), 1},
		"Bluesky: text":                {"a flag is one grapheme", caption(v1alpha1.PlatformBluesky, "\U0001F1E9\U0001F1EA"), 1},
		"Bluesky: size":                {"a family of four has 25 bytes", caption(v1alpha1.PlatformBluesky, "\U0001F468\u200D\U0001F469\u200D\U0001F467\u200D\U0001F466"), 25},
		"Mastodon: text, with warning": {"a flag is one grapheme", caption(v1alpha1.PlatformMastodon, "\U0001F1E9\U0001F1EA"), 1},
	} {
		most, err := strconv.Atoi(strings.ReplaceAll(numbers[row], ",", ""))
		if err != nil {
			t.Errorf("%s: the page has no number: %q", row, numbers[row])
			continue
		}
		if n := most / tc.of; !tc.takes(n) || tc.takes(n+1) {
			t.Errorf("%s: the page has %d (%s), but the platform accepts %d pieces: %t, and one more: %t", row, most, tc.reason, n, tc.takes(n), tc.takes(n+1))
		}
		delete(numbers, row)
	}
	for _, unlimited := range []string{"Facebook: text", "Mastodon: URLs", "Mastodon: mentions"} {
		delete(numbers, unlimited)
	}
	for row := range numbers {
		if numbers[row] != "at most" && numbers[row] != "---" {
			t.Errorf("no test covers the page's row: %s, %s", row, numbers[row])
		}
	}
}

// accepts reports whether text is within the limit and otherwise valid.
func accepts(most int, length func(string) int, problem func(string) string, text string) bool {
	return length(text) <= most && (problem == nil || problem(text) == "")
}

func title(limits *platforms.Capabilities, one string) func(n int) bool {
	return func(n int) bool {
		return accepts(limits.MaxTitle, limits.TitleLength, limits.TitleProblem, strings.Repeat(one, n))
	}
}

// addresses returns n different URLs.
func addresses(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("https://example.com/" + strconv.Itoa(i) + " ")
	}
	return b.String()
}
