// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// The environment of every client here: a user with a browser, played by the test, and an address on this machine that the browser is
// redirected to. Each message to the test is one line of JSON.

import { createServer } from "node:http";
import { once } from "node:events";
import { createInterface } from "node:readline";

export const tell = (said) => console.log(JSON.stringify(said));

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

// told waits until the test reports that it has done something.
export async function told(what) {
  tell({ wait: what });
  await lines.next();
}

// callback listens on a free loopback port. answer resolves with the browser's request.
export async function callback() {
  let arrived;
  const answer = new Promise((resolve) => (arrived = resolve));
  const server = createServer((request, response) => {
    const url = new URL(request.url, "http://127.0.0.1");
    response.setHeader("Content-Type", "text/html; charset=utf-8");
    response.end("<!doctype html><html lang=en><link rel=icon href=data:,><title>Back</title><h1>You may close this window</h1>");
    if (url.pathname === "/callback") arrived(url);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { address: `http://127.0.0.1:${server.address().port}/callback`, answer, close: () => server.close() };
}

export function check(holds, what) {
  if (!holds) throw new Error(`it does not hold that ${what}`);
}
