// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Reads a JSON array of texts from its input, and prints their lengths as Bluesky's own client counts them, in graphemes
// and in bytes.

import { RichText } from '@atproto/api'
import { readFileSync } from 'node:fs'

const lengths = []
for (const text of JSON.parse(readFileSync(0, 'utf8'))) {
  const counted = new RichText({ text })
  lengths.push({ graphemes: counted.graphemeLength, bytes: counted.length })
}
console.log(JSON.stringify(lengths))
