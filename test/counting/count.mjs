// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Counts strings with third-party implementations: one JSON string per line on standard input, one JSON result per line on standard output.

import { createInterface } from 'node:readline'
import autolinker from 'autolinker'
import twitter from 'twitter-text'

const characters = new Intl.Segmenter('en', { granularity: 'grapheme' })
const emoji = /^\p{RGI_Emoji}$/v

// Threads counts an emoji by its bytes in UTF-8, and everything else by what a reader sees as one character.
function threads(text) {
  let count = 0
  let plain = true // whether every emoji is one that Unicode recommends for general interchange
  for (const { segment } of characters.segment(text)) {
    if (emoji.test(segment)) {
      count += Buffer.byteLength(segment)
    } else {
      count++
      plain &&= !/[\p{Extended_Pictographic}\p{Regional_Indicator}\u{FE0F}\u{20E3}\u{E0020}-\u{E007F}]/u.test(segment)
    }
  }
  return plain ? count : -1
}

function instagram(text) {
  const matches = autolinker.Autolinker.parse(text, { urls: true, email: true, phone: false, hashtag: 'instagram', mention: 'instagram' })
  const of = (type) => matches.filter((match) => match.type === type).length
  return { hashtags: of('hashtag'), mentions: of('mention') }
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const text = JSON.parse(line)
  const { weightedLength, valid } = twitter.parseTweet(text)
  process.stdout.write(JSON.stringify({
    x: weightedLength, valid, threads: threads(text), ...instagram(text), utf16: text.length, utf8: Buffer.byteLength(text),
  }) + '\n')
}
