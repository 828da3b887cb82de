// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Files that are dropped or pasted anywhere on the page, those that the team has already, and the order of items: README.md.
// upload.js lists them.

const on = (type, act) => document.addEventListener(type, act);

const chooser = (area) => area.querySelector("input[type=file]");
const suits = ({ accept }, type) => !accept || accept.includes(/^video/.test(type) ? "video" : "image");

// areaFor returns the area for a file: where it was dropped or the focus is, or else one that is shown and suits it.
// If none does, another kind of post is chosen that has such an area, unless this one has files already.
function areaFor(type, near) {
  const areas = [...document.querySelectorAll("[data-upload]")].filter((area) => !chooser(area).disabled);
  const shown = areas.filter((area) => area.checkVisibility());
  const own = shown.find((area) => area.contains(near)) ?? shown.find((area) => area.closest("li")?.contains(near));
  const found = own ?? shown.find((area) => suits(chooser(area), type));
  if (found || shown.some((area) => area.querySelector("[data-files] > *"))) return found ?? shown[0];
  const other = areas.find((area) => suits(chooser(area), type) && document.getElementById(area.dataset.kind));
  if (other) document.getElementById(other.dataset.kind).click();
  return other ?? shown[0];
}

function take(files, near) {
  const full = new Set(); // fields for one file have the first one
  for (const file of files) {
    const area = areaFor(file.type, near);
    if (full.has(area)) continue;
    if (area && !chooser(area).multiple) full.add(area);
    area?.dispatchEvent(new CustomEvent("files", { bubbles: true, detail: { file } }));
    area?.scrollIntoView({ block: "nearest" });
  }
}

const takesFiles = () => document.querySelector("[data-upload] input[type=file]:enabled");

on("paste", (event) => {
  const { files, types } = event.clipboardData;
  // Office programs copy text as a picture, too.
  if (!files.length || types.includes("text/plain") || !takesFiles()) return;
  event.preventDefault();
  take(files, event.target);
});

// Other files must not open in place of the page.
const fromOutside = ({ dataTransfer }) => dataTransfer.types.includes("Files") && !document.querySelector("[data-dragged]") && takesFiles();

on("dragover", (event) => {
  if (!fromOutside(event)) return;
  event.preventDefault();
  mark(event.target.closest("[data-upload]") ?? document.querySelector("form:has([data-upload])"));
});

on("drop", (event) => {
  if (!fromOutside(event)) return;
  event.preventDefault();
  mark();
  take(event.dataTransfer.files, event.target);
});

on("dragleave", ({ relatedTarget }) => relatedTarget || mark());

// mark sets the attribute data-over on the drop target, for styles.
function mark(place) {
  for (const old of document.querySelectorAll("[data-upload][data-over], form[data-over]")) if (old !== place) delete old.dataset.over;
  if (place) place.dataset.over = "";
}

// --- Dragging an item to another place.

let dragged;

const areaOf = (element) => element.closest("[data-upload]");
const within = ({ target }) => dragged && areaOf(target)?.contains(dragged);

on("dragstart", ({ target, dataTransfer }) => {
  dragged = target.matches?.("textarea, input") ? undefined : target.closest?.("[data-files] > *"); // text is dragged as text
  if (!dragged) return;
  dragged.dataset.dragged = "";
  dataTransfer.setData("text/plain", ""); // without data, Firefox does not drag
});

on("dragover", (event) => {
  if (!within(event)) return;
  event.preventDefault();
  const other = event.target.closest("[data-files] > *");
  if (!other || other === dragged) return;
  const isLater = dragged.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING;
  other[isLater ? "after" : "before"](dragged);
});

on("drop", (event) => {
  if (!within(event)) return;
  event.preventDefault();
  areaOf(dragged).dispatchEvent(new Event("change", { bubbles: true }));
});

on("dragend", () => {
  if (dragged) delete dragged.dataset.dragged;
  dragged = undefined;
});

// --- The team's files, in the dialog #library. Without scripts, the button shows them in the form.

const library = document.getElementById("library");
let into;

on("click", (event) => {
  const opener = event.target.closest("[data-library]");
  if (!opener) return;
  event.preventDefault();
  into = opener.closest("[data-upload]");
  const { accept, multiple } = chooser(into), search = library.querySelector("[type=search]");
  library.querySelector("[name=types]").value = accept;
  library.querySelector("[name=one]").value = multiple ? "" : "1";
  library.showModal();
  search.dispatchEvent(new Event("open")); // htmx loads the list
});

library?.addEventListener("close", () => {
  const boxes = library.returnValue === "add" ? library.querySelectorAll("#library-list input:checked") : [];
  for (const box of boxes) {
    const [label] = box.labels, picture = label.firstElementChild.cloneNode(true);
    const detail = { id: box.value, name: label.querySelector("[data-name]").textContent, picture, alt: box.dataset.alt };
    into.dispatchEvent(new CustomEvent("stored", { bubbles: true, detail }));
  }
  library.returnValue = "";
});
