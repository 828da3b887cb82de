// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// agent.ts creates a draft for review, over MCP with OAuth. It needs no API key; grant it draft access only.
// Node.js 22.18 or newer runs it directly:
//
//   npm install @modelcontextprotocol/client@2
//   HERALD_MCP_URL=https://herald.example.com/mcp node agent.ts x "Is this how we say it?"

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";
import type { OAuthClientProvider } from "@modelcontextprotocol/client";

const [platform, caption] = process.argv.slice(2);
const address = new URL(process.env.HERALD_MCP_URL!);
const port = Number(process.env.CALLBACK_PORT ?? 8976);
const callback = `http://127.0.0.1:${port}/callback`;

// OAuth state. A long-lived agent would persist the client and tokens in a file readable only by its user.
const memory: Record<string, any> = {};
const authProvider: OAuthClientProvider = {
  redirectUrl: callback,
  clientMetadata: {
    client_name: "Draft writer",
    redirect_uris: [callback],
    grant_types: ["authorization_code", "refresh_token"],
    token_endpoint_auth_method: "none",
  },
  state: () => (memory.state = randomUUID()),
  clientInformation: () => memory.client,
  saveClientInformation: (client) => void (memory.client = client),
  tokens: () => memory.tokens,
  saveTokens: (tokens) => void (memory.tokens = tokens),
  codeVerifier: () => memory.verifier,
  saveCodeVerifier: (verifier) => void (memory.verifier = verifier),
  redirectToAuthorization: (url) => console.log(`Open this URL and choose "Read and write drafts":\n${url}`),
};

// The browser is redirected here after the user has decided.
function decision(): Promise<URLSearchParams> {
  return new Promise((resolve) => {
    const server = createServer((request, response) => {
      const url = new URL(request.url!, callback);
      response.setHeader("Content-Type", "text/plain");
      response.end("You may close this window.");
      if (url.pathname !== "/callback" || url.searchParams.get("state") !== memory.state) return;
      server.close();
      resolve(url.searchParams);
    }).listen(port, "127.0.0.1");
  });
}

async function connect(): Promise<Client> {
  const decided = decision();
  for (;;) {
    const client = new Client({ name: "agent-ts", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });
    const transport = new StreamableHTTPClientTransport(address, { authProvider });
    try {
      await client.connect(transport);
      return client;
    } catch (error) {
      if (!(error instanceof UnauthorizedError)) throw error;
      await transport.finishAuth(await decided);
    }
  }
}

const client = await connect();

// call calls a tool and returns the result's data. A rejected call throws Herald's error message.
async function call(name: string, args: Record<string, unknown>): Promise<any> {
  const { isError, structuredContent } = await client.callTool({ name, arguments: args });
  const answer = structuredContent as any;
  if (isError) throw new Error(`${name}: ${answer.error.code}: ${answer.error.message}`);
  return answer.data;
}

const accounts = await call("list_connections", { platform });
const post = await call("create_post", {
  category: "text",
  draft: true,
  targets: [{ connection_id: accounts[0].id, caption }],
});
console.log(`Created draft ${post.id}. Review and publish it at ${address.origin}`);
process.exit(0);
