// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Posts a picture with the TypeScript SDK's client, of the release in the first argument: from a 401 to a published post, then with a
// refreshed token, and finally after a user has revoked it.
// Usage: node sdk.mjs 1|2 MCP-ADDRESS CONNECTION PICTURE

import { readFile } from "node:fs/promises";
import { randomUUID } from "node:crypto";
import { callback, check, tell, told } from "./person.mjs";

const [, , release, address, connection, picture] = process.argv;
const { Client, StreamableHTTPClientTransport, UnauthorizedError } =
  release === "1"
    ? {
        ...(await import("@modelcontextprotocol/sdk/client/index.js")),
        ...(await import("@modelcontextprotocol/sdk/client/streamableHttp.js")),
        ...(await import("@modelcontextprotocol/sdk/client/auth.js")),
      }
    : await import("@modelcontextprotocol/client");

const back = await callback();
const kept = { asked: 0 };
const authProvider = {
  redirectUrl: back.address,
  clientMetadata: {
    client_name: `TypeScript SDK ${release}`,
    redirect_uris: [back.address],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  },
  state: () => (kept.state = randomUUID()),
  clientInformation: () => kept.client,
  saveClientInformation: (client) => void (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => void (kept.tokens = tokens),
  codeVerifier: () => kept.verifier,
  saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
  saveDiscoveryState: (state) => void (kept.discovery = state),
  discoveryState: () => kept.discovery,
  invalidateCredentials: (scope) => {
    if (scope === "all" || scope === "tokens") delete kept.tokens;
    if (scope === "all" || scope === "client") delete kept.client;
  },
  redirectToAuthorization: (url) => {
    kept.asked++;
    if (kept.asked === 1) tell({ authorize: url.href });
  },
};

async function connect() {
  const client = new Client({ name: `typescript-sdk-${release}`, version: "1.0.0" }, release === "2" ? { versionNegotiation: { mode: "auto" } } : {});
  const transport = new StreamableHTTPClientTransport(new URL(address), { authProvider });
  try {
    await client.connect(transport);
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
    return { transport };
  }
  return { client, transport };
}

const refused = await connect();
check(refused.client === undefined && kept.asked === 1, "a client without a token is sent to a person");
const answer = (await back.answer).searchParams;
check(answer.get("state") === kept.state, "the state comes back");
await refused.transport.finishAuth(release === "1" ? answer.get("code") : answer);
check(kept.tokens.refresh_token, "there is a token to refresh by");

const { client } = await connect();
const { tools } = await client.listTools();
tell({ tools: tools.map((tool) => tool.name) });

async function call(name, args) {
  const result = await client.callTool({ name, arguments: args });
  if (result.isError) throw new Error(`${name}: ${JSON.stringify(result.structuredContent)}`);
  return result.structuredContent.data;
}

const bytes = await readFile(picture);
const media = await call("create_media_upload_url", { name: "launch.png", mime_type: "image/png", size_bytes: bytes.length });
const put = await fetch(media.upload_url, { method: "PUT", headers: { "Content-Type": "image/png" }, body: bytes });
check(put.ok, `the file is taken, but: ${put.status}`);
const made = await call("create_post", {
  category: "image",
  media_ids: [media.media_id],
  targets: [{ connection_id: connection, caption: `From the TypeScript SDK ${release}` }],
});

async function finished() {
  for (let tries = 0; tries < 100; tries++) {
    const post = await call("get_post", { id: made.id });
    if (post.status !== "processing") return post;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new Error("the post is not finished");
}
tell({ posted: await finished() });

const before = kept.tokens;
kept.tokens = { ...before, access_token: "hoa_over" };
await call("list_connections", {});
check(kept.tokens.access_token !== before.access_token && kept.tokens.refresh_token !== before.refresh_token, "both tokens are new");
check(kept.asked === 1, "nobody was asked for that");

const last = kept.tokens.access_token;
await told("revoke");
const raw = await fetch(address, { method: "POST", headers: { Authorization: `Bearer ${last}` } });
let error;
try {
  await call("list_connections", {});
} catch (caught) {
  error = caught;
}
tell({ status: raw.status, challenge: raw.headers.get("www-authenticate"), unauthorized: error instanceof UnauthorizedError, asked: kept.asked });
back.close();
process.exit(0);
