// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Transfers a file directly to the store: upload.js dispatches "transfer" with {file, to, accept, signal, report}, and gets the promise
// of {id, remark} in result. An error with the property final is one that no other try mends. See README.md.

document.addEventListener("transfer", ({ detail }) => (detail.result = transfer(detail)));

const refusal = (text) => Object.assign(new Error(text), { final: true });

// suits reports whether a field takes pictures or videos, as the file is. Of which format is for the server to say.
const suits = (accept, type) => !accept || accept.includes(/^video/.test(type) ? "video" : "image");

async function transfer(job) {
  job.type = await typeOf(job.file);
  if (!suits(job.accept, job.type)) throw refusal(`${/^video/.test(job.type) ? "A video" : "A picture"} does not fit here`);
  const made = await announce(job);
  job.signal.throwIfAborted();
  await put(made.upload_url, job);
  return { id: made.id, remark: await remark(job) };
}

// typeOf detects a file's type by its first bytes. Browsers use the name, which may be wrong. Either video type is right for every
// video; HEIC and AVIF pictures have the same boxes.
async function typeOf(file) {
  const head = String.fromCharCode(...new Uint8Array(await file.slice(0, 12).arrayBuffer()));
  const box = head.slice(4, 8), brand = head.slice(8);
  if (head.startsWith("\xff\xd8\xff")) return "image/jpeg";
  if (head.startsWith("\x89PNG")) return "image/png";
  if (head.startsWith("RIFF") && brand === "WEBP") return "image/webp";
  if (!/^(ftyp|styp|moov|moof|mdat|sidx|free|skip|wide|pnot|uuid)$/.test(box)) return file.type;
  if (box === "ftyp" && /^(hei|hev|mif|msf|avi|jp)/.test(brand) || /^video\/(mp4|quicktime)$/.test(file.type)) return file.type;
  return brand === "qt  " ? "video/quicktime" : "video/mp4";
}

// remark warns about a white picture on a transparent background, which is invisible as a JPEG.
async function remark({ file, type }) {
  const side = 64, picture = /png|webp/.test(type) && (await createImageBitmap(file).catch(() => null));
  if (!picture) return "";
  const context = Object.assign(document.createElement("canvas"), { width: side, height: side }).getContext("2d");
  context.drawImage(picture, 0, 0, side, side);
  const { data } = context.getImageData(0, 0, side, side);
  let clear = false;
  for (let at = 0; at < data.length; at += 4) {
    const seen = (255 - Math.min(data[at], data[at + 1], data[at + 2])) * data[at + 3] / 255; // on white
    if (seen > 15) return "";
    clear ||= data[at + 3] < 255;
  }
  return clear ? "It is white on a transparent background: platforms without transparency show nothing of it" : "";
}

// announce requests the id and upload URL of a file from the server.
async function announce({ to, file, type, signal }) {
  const answer = await fetch(to, {
    method: "POST",
    signal,
    headers: { "Content-Type": "application/json", Accept: "application/json" },
    body: JSON.stringify({ name: file.name, mime_type: type, size_bytes: file.size }),
  });
  const made = await answer.json().catch(() => ({}));
  if (answer.ok && made.upload_url) return made;
  const signedOut = answer.redirected || answer.status === 401;
  const text = made.error?.message ?? (signedOut ? "Sign in again in another tab, then try again" : `The server answered ${answer.status}`);
  throw answer.status === 400 ? refusal(text) : new Error(text);
}

// stalled is how long a connection may transfer nothing, in milliseconds.
const stalled = 60_000;

// put uses XMLHttpRequest, because fetch does not report upload progress.
function put(address, { file, type, signal, report }) {
  return new Promise((done, failed) => {
    const request = new XMLHttpRequest();
    let timer;
    const wait = () => {
      clearTimeout(timer);
      timer = setTimeout(() => request.abort(), stalled);
    };
    const end = (problem) => {
      clearTimeout(timer);
      problem ? failed(new Error(problem)) : done();
    };
    request.upload.onprogress = ({ loaded }) => {
      wait();
      report(loaded);
    };
    request.onload = () => end(request.status < 300 ? "" : refused(request.status, { file, type }));
    request.onerror = request.onabort = () => end("The connection broke");
    signal.addEventListener("abort", () => request.abort());
    request.open("PUT", address);
    request.setRequestHeader("Content-Type", type);
    request.send(file);
    wait();
  });
}

// refused describes the store's rejection. The store reports to pages only that an upload is not the announced one.
function refused(status, { file, type }) {
  if (status !== 403) return `The store answered ${status}`;
  return `The store takes exactly what was announced (403): ${file.size} bytes of ${type}, within 15 minutes. If the file has changed since, choose it anew`;
}
