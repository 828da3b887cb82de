// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Transfers a file directly to the store: upload.js dispatches "transfer" with {file, to, accept, signal, report}, and gets the promise
// of {id, remark} in result. An error with the property final is one that no other try mends. See README.md.

document.addEventListener("transfer", ({ detail }) => (detail.result = transfer(detail)));

const refusal = (text) => Object.assign(new Error(text), { final: true });

// suits reports whether a field accepts the file's type, picture or video. The server checks the format.
const suits = (accept, type) => !accept || accept.includes(/^video/.test(type) ? "video" : "image");

async function transfer(job) {
  const { file, signal } = job;
  job.type = await typeOf(file);
  if (!suits(job.accept, job.type)) throw refusal(`${/^video/.test(job.type) ? "A video" : "A picture"} does not fit here`);
  const made = (await resumed(job)) ?? (await post(job, "", { name: file.name, mime_type: job.type, size_bytes: file.size }));
  signal.throwIfAborted();
  if (made.upload_url) await put(made.upload_url, file, job, 0);
  else await putParts(made, job);
  return { id: made.id, remark: await remark(job) };
}

// --- A large file is uploaded in parts. After an interruption only the missing ones are sent, even if the user has left the page and
// selects the same file again. Cancelling an upload removes its parts.

const stored = "herald-uploads";
const uploads = () => JSON.parse(localStorage.getItem(stored) ?? "{}");
const nameOf = ({ to, file }) => [to, file.name, file.size, file.lastModified].join(" ");

// remember stores an unfinished upload, or removes it.
function remember(job, made) {
  const all = Object.entries(uploads()).filter(([name]) => name !== nameOf(job)).slice(-9);
  localStorage.setItem(stored, JSON.stringify(Object.fromEntries(made ? [...all, [nameOf(job), { id: made.id, upload: made.upload }]] : all)));
}

// resumed returns the file's unfinished upload, with the URLs of its missing parts.
async function resumed(job) {
  const known = uploads()[nameOf(job)];
  if (!known) return undefined;
  try {
    return await post(job, `/${known.id}/parts`, { upload: known.upload });
  } catch (problem) {
    if (problem.status !== 404) throw problem;
    remember(job); // the upload no longer exists: restart it
    return undefined;
  }
}

// abort is sent also while the page is left.
function abort(job, { id, upload }) {
  remember(job);
  post({ to: job.to, keepalive: true }, `/${id}/abort`, { upload }).catch(() => {}); // the parts are removed when the file has expired
}

// pauses are how long to wait before another try, in seconds; renewAfter is the age of addresses, which are valid for 15 minutes, at
// which they are replaced, in milliseconds.
const pauses = [1, 3, 9, 27], renewAfter = 600_000;

async function putParts(made, job) {
  const { file, signal } = job;
  let signed = Date.now();
  const renew = async () => {
    made = await post(job, `/${made.id}/parts`, { upload: made.upload });
    signed = Date.now();
  };
  remember(job, made);
  signal.addEventListener("abort", () => abort(job, made));
  for (let tries = 0; ; ) {
    try {
      if (tries) await renew();
      for (let i; (i = made.parts.findIndex(Boolean)) >= 0; ) {
        if (Date.now() - signed > renewAfter) await renew();
        const from = i * made.part_bytes;
        if (made.parts[i]) await put(made.parts[i], file.slice(from, from + made.part_bytes), job, from);
        made.parts[i] = "";
        tries = 0;
      }
      await post(job, `/${made.id}/finish`, { upload: made.upload });
      return remember(job);
    } catch (problem) {
      signal.throwIfAborted();
      await file.slice(0, 1).arrayBuffer().catch(() => {
        throw refusal("The file has changed since it was selected. Remove it, and select it again");
      });
      if (problem.status < 500 || tries === pauses.length) throw problem;
      job.report(made.parts.filter((address) => !address).length * made.part_bytes, problem.message + ". Trying again");
      await patience(pauses[tries++], signal);
    }
  }
}

// patience waits for some seconds, and then for the browser to have a network.
async function patience(seconds, signal) {
  await new Promise((done) => setTimeout(done, seconds * 1000));
  if (!navigator.onLine) await new Promise((done) => addEventListener("online", done, { once: true, signal }));
  signal.throwIfAborted();
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

// post sends a request about a file to the server. An error that the server sent has its status.
async function post({ to, signal, keepalive }, path, body) {
  const answer = await fetch(to + path, {
    method: "POST",
    signal,
    keepalive,
    headers: { "Content-Type": "application/json", Accept: "application/json" },
    body: JSON.stringify(body),
  }).catch((problem) => {
    throw signal?.aborted ? problem : new Error("The connection was lost");
  });
  const made = await answer.json().catch(() => ({}));
  if (answer.ok && made.id) return made;
  const signedOut = answer.redirected || answer.status === 401;
  const text = made.error?.message ?? (signedOut ? "Sign in again in another tab, then try again" : `The server answered ${answer.status}`);
  throw Object.assign(new Error(text), { status: signedOut ? 401 : answer.status, final: answer.status === 400 });
}

// stalled is how long a connection may transfer nothing, in milliseconds.
const stalled = 60_000;

// put sends a file, or the part that starts at an offset. It uses XMLHttpRequest, because fetch does not report progress.
function put(address, body, { file, type, signal, report }, offset) {
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
      report(offset + loaded);
    };
    request.onload = () => end(request.status < 300 ? "" : refused(request.status, { file, type }));
    request.onerror = request.onabort = () => end("The connection was lost");
    signal.addEventListener("abort", () => request.abort());
    request.open("PUT", address);
    if (body === file) request.setRequestHeader("Content-Type", type); // parts have none
    request.send(body);
    wait();
  });
}

// refused describes the store's rejection. The store reports to pages only that an upload is not the announced one.
function refused(status, { file, type }) {
  if (status !== 403) return `The store answered ${status}`;
  return `The store accepts only the declared file (403): ${file.size} bytes of ${type}, within 15 minutes. If the file has changed, select it again`;
}
