// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Publishes posts with Bluesky's own client, and prints one line of JSON:
//
//   node write.mjs URL HANDLE APP-PASSWORD PICTURE
//
// A wrong password and a taken key are tried as well: the line has the names of their errors.

import { readFileSync } from 'node:fs'
import { AtpAgent, RichText } from '@atproto/api'

const [service, identifier, password, picture] = process.argv.slice(2)
const agent = new AtpAgent({ service })

async function nameOf(call) {
  try {
    await call()
    return ''
  } catch (error) {
    return error.error
  }
}

const refused = await nameOf(() => new AtpAgent({ service }).login({ identifier, password: 'aaaa-bbbb-cccc-dddd' }))
await agent.login({ identifier, password })
const { data: session } = await agent.com.atproto.server.getSession()

const rich = new RichText({ text: 'Größe 🎉 for @zoe.test, at https://example.com/a #launch' })
await rich.detectFacets(agent)
const text = await agent.post({ text: rich.text, facets: rich.facets, langs: ['en'] })
const { data: { blob } } = await agent.uploadBlob(readFileSync(picture), { encoding: 'image/jpeg' })
const reply = await agent.post({
  text: 'look',
  embed: { $type: 'app.bsky.embed.images', images: [{ image: blob, alt: 'a cat', aspectRatio: { width: 4, height: 3 } }] },
  reply: { root: text, parent: text },
})
const gone = await agent.post({ text: 'gone' })
await agent.deletePost(gone.uri)
const missing = await nameOf(() => agent.com.atproto.repo.getRecord({
  repo: session.did, collection: 'app.bsky.feed.post', rkey: gone.uri.split('/').pop(),
}))
const taken = await nameOf(() => agent.com.atproto.repo.putRecord({
  repo: session.did, collection: 'app.bsky.feed.post', rkey: text.uri.split('/').pop(), swapRecord: null,
  record: { $type: 'app.bsky.feed.post', text: 'another', createdAt: new Date().toISOString() },
}))
const { refreshJwt } = agent.session
await agent.sessionManager.refreshSession()
process.stdout.write(JSON.stringify({
  did: session.did, handle: session.handle, text: text.uri, reply: reply.uri, refused, missing, taken, renewed: agent.session.refreshJwt !== refreshJwt,
}) + '\n')
