// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Every flow with oauth4webapi, which checks each response strictly against its RFC.
// Usage: node oauth.mjs MCP-ADDRESS

import * as oauth from "oauth4webapi";
import { callback, check, tell } from "./person.mjs";

const address = new URL(process.argv[2]);
// The site under test is on this machine, over plain HTTP.
const plain = { [oauth.allowInsecureRequests]: true };

// RFC 9728 and RFC 8414.
const resource = await oauth.processResourceDiscoveryResponse(address, await oauth.resourceDiscoveryRequest(address, plain));
const issuer = new URL(resource.authorization_servers[0]);
const server = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, { ...plain, algorithm: "oauth2" }));
check(server.authorization_response_iss_parameter_supported, "answers name the issuer");

// RFC 7591.
const back = await callback();
const client = await oauth.processDynamicClientRegistrationResponse(
  await oauth.dynamicClientRegistrationRequest(
    server,
    {
      client_name: "oauth4webapi",
      redirect_uris: [back.address],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
    },
    plain,
  ),
);

// RFC 6749, 7636, 8707 and 9207.
const verifier = oauth.generateRandomCodeVerifier();
const state = oauth.generateRandomState();
const authorize = new URL(server.authorization_endpoint);
authorize.search = new URLSearchParams({
  client_id: client.client_id,
  redirect_uri: back.address,
  response_type: "code",
  scope: "read draft publish",
  code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
  code_challenge_method: "S256",
  resource: resource.resource,
  state,
}).toString();
tell({ authorize: authorize.href });
const answer = oauth.validateAuthResponse(server, client, await back.answer, state);
const none = oauth.None();
const withResource = { ...plain, additionalParameters: { resource: resource.resource } };
const exchange = () => oauth.authorizationCodeGrantRequest(server, client, none, answer, back.address, verifier, withResource);
const first = await oauth.processAuthorizationCodeResponse(server, client, await exchange());
tell({ scope: first.scope, expires: first.expires_in });

const use = async (token) => {
  const headers = new Headers({ "Content-Type": "application/json", Accept: "application/json, text/event-stream" });
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
  try {
    return (await oauth.protectedResourceRequest(token, "POST", address, headers, body, plain)).status;
  } catch (error) {
    if (error instanceof oauth.WWWAuthenticateChallengeError) return error.status;
    throw error;
  }
};
check((await use(first.access_token)) === 200, "the token opens the resource");

// A refresh replaces both tokens.
const second = await oauth.processRefreshTokenResponse(
  server,
  client,
  await oauth.refreshTokenGrantRequest(server, client, none, first.refresh_token, withResource),
);
check(second.refresh_token !== first.refresh_token, "the token to refresh by is another one");
check((await use(second.access_token)) === 200, "the new token opens the resource");

// RFC 7009.
await oauth.processRevocationResponse(await oauth.revocationRequest(server, client, none, second.refresh_token, plain));
const end = Date.now() + 5000;
let status;
do {
  status = await use(second.access_token);
} while (status !== 401 && Date.now() < end);
tell({ revoked: status });

let refused;
try {
  await oauth.processRefreshTokenResponse(server, client, await oauth.refreshTokenGrantRequest(server, client, none, second.refresh_token, withResource));
} catch (error) {
  refused = error.error;
}
tell({ refused });
back.close();
process.exit(0);
