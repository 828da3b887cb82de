// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Reads an account's posts with Bluesky's own client, and prints one JSON line each, oldest first:
//
//   node read.mjs URL DID
//
// It checks each record against the lexicon, and downloads each blob. Facets are printed as the client displays them.

import { AppBskyFeedPost, AtpAgent, RichText } from '@atproto/api'

const [service, repo] = process.argv.slice(2)
const agent = new AtpAgent({ service })

async function download(blob) {
  const { data } = await agent.com.atproto.sync.getBlob({ did: repo, cid: blob.ref.toString() })
  return { mime: blob.mimeType, size: blob.size, downloaded: data.length }
}

function segments(record) {
  const shown = []
  for (const segment of new RichText({ text: record.text, facets: record.facets }).segments()) {
    if (segment.facet) {
      shown.push({ text: segment.text, link: segment.link?.uri, mention: segment.mention?.did, tag: segment.tag?.tag })
    }
  }
  return shown
}

const posts = []
let cursor
do {
  const { data } = await agent.com.atproto.repo.listRecords({ repo, collection: 'app.bsky.feed.post', limit: 100, cursor })
  for (const { uri, cid, value } of data.records) {
    const valid = AppBskyFeedPost.validateRecord(value)
    const images = []
    for (const { image, alt, aspectRatio } of value.embed?.images ?? []) {
      images.push({ ...(await download(image)), alt, width: aspectRatio?.width, height: aspectRatio?.height })
    }
    const video = value.embed?.video && { ...(await download(value.embed.video)), alt: value.embed.alt, width: value.embed.aspectRatio?.width }
    const external = value.embed?.external
    const card = external && { ...external, thumb: external.thumb && (await download(external.thumb)) }
    posts.push({
      uri, cid, text: value.text, problem: valid.success ? '' : String(valid.error), facets: segments(value), images, video, card,
      root: value.reply?.root, parent: value.reply?.parent, at: value.createdAt, languages: value.langs,
    })
  }
  cursor = data.cursor
} while (cursor)
// Posts of the same millisecond are in the order of their keys.
posts.sort((a, b) => a.at.localeCompare(b.at) || a.uri.localeCompare(b.uri))
for (const post of posts) {
  process.stdout.write(JSON.stringify(post) + '\n')
}
