// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Uploads directly to the store, with progress: [data-upload], see README.md. A module, like app.js.

const on = (type, act, options) => document.addEventListener(type, act, options);

// The running and failed uploads, by list item: {file, busy, failed, request}. Finished uploads are removed.
const uploads = new Map();

const areaOf = (element) => element.closest("[data-upload]");
const chooser = (area) => area.querySelector("input[type=file]");

// say announces a message about an area, also to screen readers.
function say(area, text) {
  area.querySelector("[role=status]").textContent = text;
}

// changed notifies the form's listeners, such as previews, that its files have changed.
const changed = (area) => area.dispatchEvent(new Event("change", { bubbles: true }));

function add(area, file) {
  const list = area.querySelector("[data-files]");
  if (!chooser(area).multiple) [...list.children].forEach(remove);
  const item = area.querySelector("template").content.firstElementChild.cloneNode(true);
  item.draggable = true;
  item.querySelector("[data-file]").textContent = file.name;
  for (const button of item.querySelectorAll("button")) button.setAttribute("aria-label", `${button.textContent.trim()} ${file.name}`);
  item.querySelector("progress").setAttribute("aria-label", `Upload of ${file.name}`);
  preview(item, file);
  list.append(item);
  uploads.set(item, { file });
  send(item);
}

function preview(item, file) {
  const [, kind] = /^(image|video)\//.exec(file.type) ?? [];
  if (!kind) return;
  const picture = document.createElement(kind === "image" ? "img" : kind);
  if (kind === "image") picture.alt = "";
  picture.src = URL.createObjectURL(file);
  item.querySelector("[data-preview]").append(picture);
}

async function send(item) {
  const upload = uploads.get(item), area = areaOf(item), { file } = upload;
  const progress = item.querySelector("progress"), retry = item.querySelector("[data-retry]");
  progress.removeAttribute("value");
  show({ busy: true });
  say(area, `Uploading ${file.name}`);
  try {
    upload.type = await typeOf(file);
    const made = await announce(area, upload);
    if (!uploads.has(item)) return; // removed meanwhile
    await put(made.upload_url, upload, progress);
    const field = { type: "hidden", name: area.dataset.name ?? "media", value: made.id };
    item.append(Object.assign(document.createElement("input"), field));
    uploads.delete(item);
    show({});
    say(area, `${file.name} is uploaded${await remark(upload)}`);
    changed(area);
  } catch (problem) {
    if (!uploads.has(item)) return;
    show({ failed: true });
    say(area, `${file.name} was not uploaded: ${problem.message}`);
  }

  function show({ busy = false, failed = false }) {
    Object.assign(upload, { busy, failed });
    progress.hidden = !busy;
    retry.hidden = !failed;
  }
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
  return clear ? ". It is white on a transparent ground: platforms that take no transparency show nothing of it" : "";
}

// announce requests the id and upload URL of a file from the server.
async function announce(area, { file, type }) {
  const answer = await fetch(area.dataset.upload, {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "application/json" },
    body: JSON.stringify({ name: file.name, mime_type: type, size_bytes: file.size }),
  });
  const made = await answer.json().catch(() => ({}));
  if (answer.ok && made.upload_url) return made;
  const signedOut = answer.redirected || answer.status === 401;
  throw new Error(made.error?.message ?? (signedOut ? "sign in again" : `the server answered ${answer.status}`));
}

// put uses XMLHttpRequest, because fetch does not report upload progress.
function put(address, upload, progress) {
  return new Promise((done, failed) => {
    const request = (upload.request = new XMLHttpRequest());
    request.upload.onprogress = ({ loaded, total }) => (progress.value = loaded / total);
    request.onload = () => (request.status < 300 ? done() : failed(new Error(refusal(request.status, upload))));
    request.onerror = request.onabort = () => failed(new Error("the connection broke"));
    request.open("PUT", address);
    request.setRequestHeader("Content-Type", upload.type);
    request.send(upload.file);
  });
}

// refusal describes the store's rejection. The store reports to pages only that an upload is not the announced one.
function refusal(status, { file, type }) {
  if (status !== 403) return `the store answered ${status}`;
  return `the store takes exactly what was announced (403): ${file.size} bytes of ${type}, within 15 minutes. Try again; if the file has changed since, choose it anew`;
}

function remove(item) {
  const area = areaOf(item), upload = uploads.get(item), source = item.querySelector("[data-preview] > *")?.src;
  uploads.delete(item);
  upload?.request?.abort();
  if (source?.startsWith("blob:")) URL.revokeObjectURL(source);
  item.remove();
  changed(area);
}

// move moves an item one place forward or back, without changing the focus.
function move(item, way, button) {
  const other = way === "up" ? item.previousElementSibling : item.nextElementSibling;
  if (!other) return;
  other[way === "up" ? "before" : "after"](item);
  button.focus();
  say(areaOf(item), `Now number ${[...item.parentElement.children].indexOf(item) + 1}`);
  changed(areaOf(item));
}

on("change", (event) => {
  const { target } = event, area = target.type === "file" && areaOf(target);
  if (!area) return;
  event.stopPropagation(); // what counts is when they are uploaded
  for (const file of target.files) add(area, file);
  target.value = ""; // the same file can be chosen again
}, true);

on("click", ({ target }) => {
  const button = target.closest("[data-upload] [data-files] button"), item = target.closest("[data-files] > *");
  if (!button) return;
  const { dataset } = button, area = areaOf(item);
  if (dataset.move) move(item, dataset.move, button);
  if ("retry" in dataset) {
    item.querySelector("[data-remove]").focus(); // the button that was pressed disappears
    send(item);
  }
  if (!("remove" in dataset)) return;
  remove(item);
  chooser(area).focus();
  say(area, "Removed");
});

// --- Drag and drop, for files from outside and for reordering items.

let dragged;

on("dragstart", ({ target, dataTransfer }) => {
  dragged = target.closest?.("[data-files] > *");
  if (dragged) dataTransfer.setData("text/plain", ""); // without data, Firefox does not drag
});

// under is the area under the pointer, if it accepts the dragged item.
function under({ target, dataTransfer }) {
  const area = areaOf(target);
  return (dragged ? area?.contains(dragged) : dataTransfer.types.includes("Files")) ? area : null;
}

on("dragover", (event) => {
  const area = under(event), other = dragged && event.target.closest("[data-files] > *");
  mark(area);
  if (!area) return;
  event.preventDefault();
  if (!other || other === dragged) return;
  const isLater = dragged.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING;
  other[isLater ? "after" : "before"](dragged);
});

on("drop", (event) => {
  const area = under(event);
  mark();
  if (!area) return;
  event.preventDefault();
  if (dragged) return changed(area);
  const { files } = event.dataTransfer;
  for (const file of chooser(area).multiple ? files : [...files].slice(0, 1)) add(area, file);
});

on("dragend", () => mark((dragged = undefined)));
on("dragleave", ({ relatedTarget }) => relatedTarget || mark());

// mark sets the attribute data-over on the area under the pointer, for styles.
function mark(area) {
  for (const old of document.querySelectorAll("[data-upload][data-over]")) if (old !== area) delete old.dataset.over;
  if (area) area.dataset.over = "";
}

// --- A form is not sent, and a page not left, before the chosen files are uploaded.

on("submit", (event) => {
  for (const [item, { file, busy }] of uploads) {
    if (!event.target.contains(item)) continue;
    event.preventDefault();
    event.stopImmediatePropagation();
    say(areaOf(item), busy ? `${file.name} is still being uploaded` : `${file.name} is not uploaded: try again, or remove it`);
    return item.scrollIntoView({ block: "nearest" });
  }
}, true);

addEventListener("beforeunload", (event) => [...uploads.values()].some(({ busy }) => busy) && event.preventDefault());

for (const item of document.querySelectorAll("[data-upload] [data-files] > *")) item.draggable = true;
