// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Starts the Bluesky server (PDS) with a directory of identities (PLC), both on loopback, and creates accounts:
//
//   node server.mjs [--port=PORT] [--limits] [--site=HOST] FOLDER HANDLE...
//
// It prints one line of JSON, {url, directory, accounts: [{did, handle, password, appPassword}]}, whose accounts are also in
// FOLDER/state.json, and runs until its standard input ends; with a port, until it is terminated. A run in the folder of an earlier
// one has the same accounts and posts. Only with --limits does the server limit calls and posts, as bsky.social does. It finds the
// host --site on this machine.

import { randomBytes, randomInt } from 'node:crypto'
import dns from 'node:dns'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { AtpAgent } from '@atproto/api'
import { PDS, envToCfg, envToSecrets } from '@atproto/pds'
import { Database, PlcServer } from '@did-plc/server'

const { values: options, positionals } = parseArgs({ options: { port: { type: 'string' }, limits: { type: 'boolean' }, site: { type: 'string' } }, allowPositionals: true })
const [folder, ...handles] = positionals
const blobs = join(folder, 'blobs')
mkdirSync(blobs, { recursive: true })

if (options.site) {
  const { lookup } = dns
  dns.lookup = (host, ...rest) => lookup(host === options.site ? '127.0.0.1' : host, ...rest)
}

// A server must know its own address before it listens. The port is below the ephemeral ranges of operating systems
// (Linux: 32768 and up, macOS: 49152 and up): a client of another process would be given one of those meanwhile.
function freePort() {
  return new Promise((resolve) => {
    const probe = createServer().on('error', () => resolve(freePort())).listen(randomInt(20_000, 30_000), '127.0.0.1', () => {
      const { port } = probe.address()
      probe.close(() => resolve(port))
    })
  })
}

const file = join(folder, 'state.json')
const secret = (bytes) => randomBytes(bytes).toString('hex')
const state = existsSync(file)
  ? JSON.parse(readFileSync(file))
  : { jwtSecret: secret(16), adminPassword: secret(16), plcRotationKeyK256PrivateKeyHex: secret(32), accounts: [], operations: {} }

// The directory forgets everything when it ends, so it gets the operations of earlier runs again.
const plcPort = await freePort()
const plc = PlcServer.create({ db: Database.mock(), port: plcPort })
await plc.start()
const directory = `http://127.0.0.1:${plcPort}`
for (const [did, operations] of Object.entries(state.operations)) {
  for (const operation of operations) {
    const response = await fetch(`${directory}/${did}`, {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(operation),
    })
    if (!response.ok) {
      throw new Error(`the directory refuses ${did}: ${await response.text()}`)
    }
  }
}

const port = options.port ? Number(options.port) : await freePort()
const env = {
  devMode: true,
  hostname: 'localhost',
  port,
  dataDirectory: folder,
  blobstoreDiskLocation: blobs,
  blobstoreDiskTmpLocation: join(folder, 'temporary'),
  blobUploadLimit: 300_000_000,
  didPlcUrl: directory,
  serviceHandleDomains: ['.test'],
  inviteRequired: false,
  rateLimitsEnabled: options.limits,
  disableSsrfProtection: true,
  jwtSecret: state.jwtSecret,
  adminPassword: state.adminPassword,
  plcRotationKeyK256PrivateKeyHex: state.plcRotationKeyK256PrivateKeyHex,
}
const pds = await PDS.create(envToCfg(env), envToSecrets(env))
await pds.start()

const url = `http://localhost:${port}`
for (const handle of handles.filter((handle) => !state.accounts.some((known) => known.handle === handle))) {
  const agent = new AtpAgent({ service: url })
  const password = secret(16)
  await agent.createAccount({ handle, email: `${handle.split('.')[0]}@example.com`, password })
  const { data } = await agent.com.atproto.server.createAppPassword({ name: 'herald' })
  const did = agent.assertDid
  state.accounts.push({ did, handle, password, appPassword: data.password })
  state.operations[did] = await (await fetch(`${directory}/${did}/log`)).json()
  writeFileSync(file, JSON.stringify(state), { mode: 0o600 })
}
process.stdout.write(JSON.stringify({ url, directory, accounts: state.accounts }) + '\n')

async function stop() {
  await pds.destroy()
  await plc.destroy()
  process.exit(0)
}
process.on('SIGTERM', stop)
if (!options.port) {
  process.stdin.resume().on('end', stop)
}
