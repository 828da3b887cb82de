// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// The fields for files, [data-upload]: their items, uploads and order. See README.md. A module, like app.js.

const on = (type, act, options) => document.addEventListener(type, act, options);

// The running and failed uploads, by list item: {file, busy, final, cancel}. Finished uploads are removed.
const uploads = new Map();

const areaOf = (element) => element.closest("[data-upload]");
const chooser = (area) => area.querySelector("input[type=file]");

// announce shows a message about an area, also to screen readers.
function announce(area, text) {
  area.querySelector("[role=status]").textContent = text;
}

// changed notifies the form's listeners, such as previews, that its files have changed.
const changed = (area) => area.dispatchEvent(new Event("change", { bubbles: true }));

const note = (item, text) => (item.querySelector("[data-note]").textContent = text);

// name gives a button its text and the name of its file.
function name(button, text, file) {
  if (text) button.textContent = text;
  button.setAttribute("aria-label", `${button.textContent.trim()} ${file}`);
}

const altOf = (item) => item.querySelector("textarea");

// fieldsOf returns an item's fields for its file, such as its alt text. data-of is the prefix of their names.
const fieldsOf = (item) => [...item.querySelectorAll("[data-of]")];

// itemFor lists a file by its name. The only item of an area for one file makes room for it.
function itemFor(area, file) {
  const list = area.querySelector("[data-files]");
  if (!chooser(area).multiple) [...list.children].forEach(remove);
  const item = area.querySelector("template").content.firstElementChild.cloneNode(true);
  item.draggable = true;
  item.querySelector("[data-file]").textContent = item.querySelector("[data-file]").title = file;
  for (const button of item.querySelectorAll("button")) name(button, "", file);
  for (const field of fieldsOf(item)) field.ariaLabel += ` ${file}`;
  item.querySelector("progress").setAttribute("aria-label", `Upload of ${file}`);
  list.append(item);
  return item;
}

// add lists a file and uploads it. It takes the place of the item old.
function add(area, file, old) {
  const item = itemFor(area, file.name);
  preview(item, file);
  item.querySelector("[data-crop]")?.toggleAttribute("hidden", !file.type.startsWith("image/")); // crop.js
  if (old?.isConnected) {
    fieldsOf(item).forEach((field, i) => (field.value = fieldsOf(old)[i].value));
    old.before(item);
    remove(old);
  }
  uploads.set(item, { file });
  send(item);
}

function preview(item, file) {
  const [, kind] = /^(image|video)\//.exec(file.type) ?? [];
  if (!kind) return;
  const picture = document.createElement(kind === "image" ? "img" : kind);
  if (kind === "image") picture.alt = "";
  picture.onerror = () => picture.remove(); // the note describes the problem
  picture.src = URL.createObjectURL(file);
  item.querySelector("[data-preview]").append(picture);
}

// load runs the script that an element names, which the page does not need before. A failed one is requested under another
// address, because browsers remember that it failed.
async function load({ dataset: { script } }) {
  if (!script) return;
  const again = () => import(`${script}?${Date.now()}`);
  await import(script).catch(again).catch(() => {
    throw new Error("Herald cannot be reached. Try again");
  });
}

async function send(item) {
  const upload = uploads.get(item), area = areaOf(item), { file } = upload;
  upload.cancel = new AbortController();
  show({ busy: true });
  note(item, "Waiting");
  announce(area, `Uploading ${file.name}`);
  const job = { file, to: area.dataset.upload, accept: chooser(area).accept, signal: upload.cancel.signal, report: reporter(item, file.size) };
  try {
    await load(area); // transfer.js
    document.dispatchEvent(new CustomEvent("transfer", { detail: job }));
    const { id, remark } = await job.result;
    if (!uploads.has(item)) return; // removed meanwhile
    attach(item, id);
    uploads.delete(item);
    show({});
    note(item, remark);
    announce(area, `${file.name} is uploaded${remark && ". "}${remark}`);
    changed(area);
  } catch (problem) {
    if (!uploads.has(item)) return;
    show({ failed: true, final: problem.final });
    note(item, problem.message);
    announce(area, `${file.name} was not uploaded: ${problem.message}`);
  }

  function show({ busy = false, failed = false, final = false }) {
    Object.assign(upload, { busy, final });
    item.dataset.state = busy ? "busy" : failed ? "failed" : "";
    item.querySelector("progress").hidden = !busy;
    item.querySelector("progress").removeAttribute("value");
    item.querySelector("[data-retry]").hidden = !failed || final;
    name(item.querySelector("[data-remove]"), busy ? "Cancel" : "Remove", file.name);
  }
}

// attach gives an item the form field of its file, and names to the other fields of the file.
function attach(item, value) {
  const field = { type: "hidden", name: areaOf(item).dataset.name ?? "media", value };
  item.append(Object.assign(document.createElement("input"), field));
  for (const one of fieldsOf(item)) one.name = `${one.dataset.of}-${field.name}-${value}`;
}

// reporter shows how much of a file is uploaded and, after a second, how long the rest takes at the speed so far.
function reporter(item, size) {
  const progress = item.querySelector("progress");
  const begun = performance.now();
  let shown = 0, first;
  return (loaded, problem) => {
    const now = performance.now(), passed = now - begun;
    progress.value = loaded / size;
    first ??= loaded; // of a resumed upload, which did not take its time now
    if (problem) return note(item, problem);
    if (now - shown < 250) return;
    shown = now;
    const left = passed > 1000 && loaded > first ? `, ${inWords(((size - loaded) * passed) / (loaded - first) / 1000)} left` : "";
    note(item, `${Math.floor((100 * loaded) / size)} %${left}`);
  };
}

function inWords(seconds) {
  if (seconds < 60) return `${Math.ceil(seconds)} s`;
  return seconds < 3600 ? `${Math.ceil(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

function remove(item) {
  const area = areaOf(item), upload = uploads.get(item), source = item.querySelector("[data-preview] > *")?.src;
  uploads.delete(item);
  upload?.cancel.abort();
  if (source?.startsWith("blob:")) URL.revokeObjectURL(source);
  item.remove();
  changed(area);
}

// move puts an item before or after another one, without changing the focus.
function move(item, other, way, button) {
  if (!other || other === item) return;
  other[way](item);
  button.focus();
  const items = [...item.parentElement.children];
  announce(areaOf(item), `Now number ${items.indexOf(item) + 1} of ${items.length}`);
  changed(areaOf(item));
}

const moves = {
  up: (item, button) => move(item, item.previousElementSibling, "before", button),
  down: (item, button) => move(item, item.nextElementSibling, "after", button),
  Home: (item, button) => move(item, item.parentElement.firstElementChild, "before", button),
  End: (item, button) => move(item, item.parentElement.lastElementChild, "after", button),
};
[moves.ArrowLeft, moves.ArrowUp, moves.ArrowRight, moves.ArrowDown] = [moves.up, moves.up, moves.down, moves.down];

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
  if (dataset.move) moves[dataset.move](item, button);
  if ("retry" in dataset) {
    item.querySelector("[data-remove]").focus(); // the button that was pressed disappears
    send(item);
  }
  if (!("remove" in dataset)) return;
  const busy = uploads.get(item)?.busy;
  remove(item);
  chooser(area).focus();
  announce(area, busy ? "Cancelled" : "Removed");
});

on("click", async ({ target }) => {
  const button = target.closest("[data-crop]");
  if (!button) return;
  await load(document.getElementById("crop")).catch((problem) => note(button.closest("[data-files] > *"), problem.message)); // crop.js
  button.dispatchEvent(new CustomEvent("crop", { bubbles: true }));
});

on("keydown", (event) => {
  const button = event.target.closest?.("[data-files] [data-move]");
  if (!button || !(event.key in moves)) return;
  event.preventDefault();
  moves[event.key](button.closest("[data-files] > *"), button);
});

// files.js offers files that are dropped or pasted anywhere on the page, and those that the team has already.
on("files", ({ target, detail }) => add(target, detail.file, detail.replaces));

on("stored", ({ target, detail }) => {
  const item = itemFor(target, detail.name);
  item.querySelector("[data-preview]").append(detail.picture);
  attach(item, detail.id);
  if (detail.alt) {
    altOf(item).placeholder = detail.alt;
    altOf(item).previousElementSibling.remove(); // the reminder
  }
  announce(target, `${detail.name} is added`);
  changed(target);
});

// --- A form is not sent, and a page not left, before the chosen files are uploaded.

on("submit", (event) => {
  for (const [item, { file, busy, final }] of uploads) {
    if (!event.target.contains(item)) continue;
    event.preventDefault();
    event.stopImmediatePropagation();
    announce(areaOf(item), busy ? `${file.name} is still being uploaded` : `${file.name} is not uploaded: ${final ? "remove it" : "try again, or remove it"}`);
    return item.querySelector("[data-remove]").focus(); // its note is next to it
  }
}, true);

addEventListener("beforeunload", (event) => [...uploads.values()].some(({ busy }) => busy) && event.preventDefault());

for (const item of document.querySelectorAll("[data-upload] [data-files] > *")) item.draggable = true;
