// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Verifies signatures with the library of Standard Webhooks: one JSON request per line on standard input, and per line of standard output
// its body as the library returns it, or the library's error.

import { createInterface } from 'node:readline'
import { Webhook } from 'standardwebhooks'

for await (const line of createInterface({ input: process.stdin })) {
  const { secret, body, headers } = JSON.parse(line)
  try {
    console.log(JSON.stringify(new Webhook(secret).verify(body, headers)))
  } catch (error) {
    console.log(error.message)
  }
}
