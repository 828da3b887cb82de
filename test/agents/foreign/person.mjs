// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// What every client here needs of the world: a person with a browser, whom the test plays, and an address of this machine to which the
// browser comes back. What is told to the test is one line of JSON each.

import { createServer } from "node:http";
import { once } from "node:events";
import { createInterface } from "node:readline";

export const tell = (said) => console.log(JSON.stringify(said));

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

// told waits until the test says that it has done something.
export async function told(what) {
  tell({ wait: what });
  await lines.next();
}

// callback listens on a free port of loopback. answer resolves with what the browser brings.
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
