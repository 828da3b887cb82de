// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Starts the Bluesky server (PDS) with a directory of identities (PLC), both on loopback, and creates accounts:
//
//   node server.mjs FOLDER HANDLE...
//
// It prints one line of JSON, {url, accounts: [{did, handle, appPassword}]}, and runs until its standard input ends. Each run in a new
// folder starts with an empty server.

import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { AtpAgent } from '@atproto/api'
import { PDS, envToCfg, envToSecrets } from '@atproto/pds'
import { Database, PlcServer } from '@did-plc/server'

const [folder, ...handles] = process.argv.slice(2)

// A server must know its own address before it listens.
function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer().on('error', reject).listen(0, '127.0.0.1', () => {
      const { port } = probe.address()
      probe.close(() => resolve(port))
    })
  })
}

const plcPort = await freePort()
const plc = PlcServer.create({ db: Database.mock(), port: plcPort })
await plc.start()

const port = await freePort()
const blobs = join(folder, 'blobs')
mkdirSync(blobs, { recursive: true })
const env = {
  devMode: true,
  hostname: 'localhost',
  port,
  dataDirectory: folder,
  blobstoreDiskLocation: blobs,
  blobstoreDiskTmpLocation: join(folder, 'temporary'),
  blobUploadLimit: 300_000_000,
  didPlcUrl: `http://127.0.0.1:${plcPort}`,
  serviceHandleDomains: ['.test'],
  inviteRequired: false,
  disableSsrfProtection: true,
  jwtSecret: randomBytes(16).toString('hex'),
  adminPassword: randomBytes(16).toString('hex'),
  plcRotationKeyK256PrivateKeyHex: randomBytes(32).toString('hex'),
}
const pds = await PDS.create(envToCfg(env), envToSecrets(env))
await pds.start()

const url = `http://localhost:${port}`
const accounts = []
for (const handle of handles) {
  const agent = new AtpAgent({ service: url })
  await agent.createAccount({ handle, email: `${handle.split('.')[0]}@example.com`, password: randomBytes(16).toString('hex') })
  const { data } = await agent.com.atproto.server.createAppPassword({ name: 'herald' })
  accounts.push({ did: agent.assertDid, handle, appPassword: data.password })
}
process.stdout.write(JSON.stringify({ url, accounts }) + '\n')

process.stdin.resume().on('end', async () => {
  await pds.destroy()
  await plc.destroy()
  process.exit(0)
})
