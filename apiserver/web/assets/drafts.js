// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Work in progress is not lost: form[data-keep], see README.md. The browser stores the text until the server has it, and
// the server saves it as a draft while the user writes. compose.js imports this module.

const prefix = "herald-writing:", here = `herald-slot:${location.pathname}${location.search}`, leaving = "herald-leaving";
const second = 1000, day = 24 * 60 * 60 * second;
const form = document.querySelector("form[data-keep]");

const read = (storage, name) => JSON.parse(storage.getItem(name) ?? "null");
const write = (storage, name, value) => storage.setItem(name, JSON.stringify(value));
const forget = (slot) => localStorage.removeItem(prefix + slot);

// The page after a form or a decision reports the result in the parameter said.
const left = read(sessionStorage, leaving);
if (left?.words.includes(new URLSearchParams(location.search).get("said"))) {
  forget(left.slot);
  sessionStorage.removeItem(leaving);
}

for (const name of Object.keys(localStorage).filter((one) => one.startsWith(prefix))) {
  const { at, dirty } = read(localStorage, name);
  if (Date.now() - at > (dirty ? 7 : 1) * day) localStorage.removeItem(name);
}

const announce = (text) => (document.getElementById("status").textContent = text);
const field = (name) => form.elements.namedItem(name);
const value = (name) => new FormData(form).get(name) ?? "";

function setHidden(name, to) {
  const input = form.querySelector(`input[type=hidden][name="${name}"]`) ?? Object.assign(document.createElement("input"), { type: "hidden", name });
  input.value = to;
  if (!input.isConnected) form.append(input);
}

// --- The parts of a thread are added and removed without reloading the page.

const parts = form?.querySelector(".parts ol");

function addPart() {
  const template = form.querySelector("template[data-part]"), made = document.createElement("template"), index = parts.children.length;
  if (index >= 100) return;
  made.innerHTML = template.innerHTML.replaceAll("{index}", index).replaceAll("{number}", index + 1);
  parts.append(made.content);
  countParts();
}

function countParts() {
  setHidden("cards", parts.children.length);
  form.querySelector("button[value=drop]").hidden = parts.children.length <= 2;
}

function changeParts({ value }) {
  if (value === "add") addPart();
  else parts.lastElementChild.remove();
  countParts();
  parts.lastElementChild.querySelector("textarea").focus();
  form.dispatchEvent(new Event("change", { bubbles: true }));
}

// --- The form's content.

const aside = new Set(["key", "version", "zone", "cards"]);
const contentOf = (fields) => new URLSearchParams(fields.filter(([name]) => !aside.has(name))).toString();
const content = () => contentOf([...new FormData(form)]);
const written = () => [...form.querySelectorAll("textarea")].some((text) => text.value.trim()) || form.querySelector("[data-files] input[type=hidden]");
const typed = () => [...form.querySelectorAll("textarea, select, input:not([type=hidden], [type=file])")].filter(({ id }) => id);

const focusOf = (item) => [...item.querySelectorAll("[data-of^=focus]")];

function files(area) {
  const named = (item) => ({
    id: item.querySelector("input[type=hidden]")?.value, name: item.querySelector("[data-file]")?.textContent,
    alt: item.querySelector("textarea")?.value, focus: focusOf(item).map((field) => field.value),
  });
  return [...area.querySelectorAll("[data-files] > *")].map(named).filter(({ id }) => id);
}

function listFiles(area, wanted) {
  const list = area.querySelector("[data-files]");
  for (const { id, name, alt, focus = [] } of wanted) {
    let item = [...list.children].find((one) => one.querySelector("input[type=hidden]")?.value === id);
    if (!item) {
      item = area.querySelector("template").content.firstElementChild.cloneNode(true);
      item.draggable = true;
      item.querySelector("[data-file]").textContent = name;
      for (const button of item.querySelectorAll("button")) button.setAttribute("aria-label", `${button.textContent.trim()} ${name}`);
      item.append(Object.assign(document.createElement("input"), { type: "hidden", name: area.dataset.name, value: id }));
      for (const one of item.querySelectorAll("[data-of]")) {
        one.ariaLabel += ` ${name}`;
        one.name = `${one.dataset.of}-${area.dataset.name}-${id}`;
      }
    }
    if (alt !== undefined) item.querySelector("textarea").value = alt;
    focusOf(item).forEach((field, i) => (field.value = focus[i] ?? field.value));
    if (focus.some(Boolean)) focusOf(item)[0]?.closest("details").setAttribute("open", "");
    list.append(item);
  }
  while (list.children.length > wanted.length) list.firstElementChild.remove();
}

// --- The browser's copy: one for each form, which a tab finds again under the page's address.

let saved, draft, leave = false;

const dirty = () => content() !== saved;

function keep() {
  const fields = typed().map(({ id, value, checked }) => [id, value, checked]);
  const areas = [...form.querySelectorAll("[data-upload]")].map((area) => [area.dataset.name, files(area)]);
  const hidden = ["version", "cards"].map((name) => [name, value(name)]);
  write(localStorage, prefix + value("key"), { of: form.dataset.keep, at: Date.now(), dirty: dirty(), path: location.pathname, draft, hidden, fields, areas });
  write(sessionStorage, here, value("key"));
}

function restore(slot, kept) {
  setHidden("key", slot);
  for (const [name, to] of kept.hidden) setHidden(name, to);
  for (let count = Number(value("cards")); parts.children.length < count; ) addPart();
  for (const [id, to, checked] of kept.fields) {
    const one = document.getElementById(id);
    if (!one) continue;
    if (one.type === "radio" || one.type === "checkbox") one.checked = checked;
    else one.value = to;
    const details = one.matches("textarea") && to && one.closest("details");
    if (details) details.open = true;
  }
  for (const area of form.querySelectorAll("[data-upload]")) listFiles(area, kept.areas.find(([name]) => name === area.dataset.name)?.[1] ?? []);
  draft = kept.draft;
  field("at").dispatchEvent(new Event("input", { bubbles: true }));
  announce("What you wrote before is here again");
}

// resume continues with what this tab has kept of the form. A copy that the server has newer is of no use.
function resume() {
  const slot = read(sessionStorage, here), kept = slot && read(localStorage, prefix + slot);
  if ("again" in form.dataset || kept?.of !== form.dataset.keep) return offer();
  const version = Object.fromEntries(kept.hidden).version;
  if (value("version") && value("version") !== version && !kept.dirty) return forget(slot);
  restore(slot, kept);
  if (!kept.dirty) saved = content();
}

// offer shows text that another tab has left behind without saving it.
function offer() {
  if (value("version") || "again" in form.dataset) return;
  const left = Object.keys(localStorage).filter((name) => name.startsWith(prefix)).map((name) => [name.slice(prefix.length), read(localStorage, name)])
    .filter(([, { of, at, dirty, path }]) => of === form.dataset.keep && dirty && path === location.pathname && Date.now() - at > 10 * second);
  if (left.length === 0) return;
  const [slot, { at, fields }] = left.sort(([, a], [, b]) => b.at - a.at)[0];
  const text = fields.find(([id, to]) => /^(caption|card-|own-)/.test(id) && to.trim())?.[1].trim().slice(0, 60);
  if (!text) return;
  const time = Object.assign(document.createElement("time"), { dateTime: new Date(at).toISOString() });
  time.dataset.show = "both";
  const note = element("div", { className: "note info", role: "status" }, element("div", {},
    element("p", {}, "This browser has text that was not saved, from ", time, `: “${text}”`),
    element("p", { className: "actions" },
      button("Continue with it", () => {
        write(sessionStorage, here, slot);
        location.reload();
      }),
      button("Delete it", () => {
        forget(slot);
        note.remove();
      }))));
  document.getElementById("conflict").before(note);
}

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

const button = (text, onclick) => element("button", { type: "button", className: "button small", textContent: text, onclick });

// --- The server's copy: a draft, saved two seconds after the last key.

let saving, timer, first, paused = 0, stopped = false;

function show(...what) {
  const before = document.getElementById("saved").textContent;
  document.getElementById("saved").replaceChildren(...what);
  const now = document.getElementById("saved").textContent;
  if (before !== now && !now.startsWith("Saved") && now !== "Saving…") announce(now);
}

// later waits for a pause, but not forever.
function later(wait = 2 * second) {
  clearTimeout(timer);
  first ??= Date.now();
  timer = setTimeout(save, Math.max(Math.min(wait, first + 10 * second - Date.now()), 0, paused - Date.now()));
}

function save() {
  clearTimeout(timer);
  first = undefined;
  if (saving || stopped || leave || !dirty() || !(draft || written())) return saving;
  const sent = content();
  show("Saving…");
  return (saving = send(sent).catch(() => problem("the server cannot be reached", 10 * second)).finally(() => {
    saving = undefined;
    form.toggleAttribute("data-dirty", dirty());
    if (!leave) keep();
    if (content() !== sent) later();
  }));
}

async function send(sent) {
  const headers = { Accept: "application/json" }, body = new URLSearchParams(new FormData(form));
  const answer = await fetch(form.dataset.save, { method: "POST", headers, body, keepalive: body.toString().length < 60000 });
  const made = await answer.json().catch(() => ({}));
  if (made.reason) return problem(made.reason);
  if (answer.ok) {
    setHidden("key", made.key);
    setHidden("version", made.version);
    draft = { id: made.id };
    saved = sent;
    const time = Object.assign(document.createElement("time"), { dateTime: made.saved_at });
    time.dataset.show = "time";
    return show("Saved ", time);
  }
  if (made.versions) return conflict(made.versions);
  if (answer.status === 401) return signedOut();
  const again = answer.status === 429 ? Number(answer.headers.get("Retry-After") || 1) * second : answer.status >= 500 && 10 * second;
  stopped = [403, 404, 409].includes(answer.status);
  problem(made.error?.message ?? `the server answered ${answer.status}`, again);
}

function problem(message, again) {
  show(`Not saved: ${message.replace(/\.$/, "")}. This browser keeps it.`);
  if (!again) return;
  paused = Date.now() + again;
  setTimeout(later, 0, again);
}

function signedOut() {
  const href = `/signin?return_to=${encodeURIComponent(location.pathname + location.search)}`;
  const link = element("a", { href, textContent: "Sign in", onclick: () => (leave = true) });
  show("You are signed out. This browser keeps what you wrote. ", link);
}

// conflict leaves the focus to a person who is typing. Screen readers announce the choice.
function conflict(versions) {
  stopped = true;
  document.getElementById("conflict").innerHTML = versions;
  show("Not saved: there are two versions. ", element("a", { href: "#versions-title", textContent: "Choose one" }));
  if (!document.activeElement?.matches("textarea, input")) document.getElementById("versions-title").focus();
}

// --- Choices and leaving.

function goTo(words) {
  write(sessionStorage, leaving, { slot: value("key"), words });
  leave = true;
}

const choices = {
  "button[name=do]:is([value=add], [value=drop])": (button) => changeParts(button),
  // A form that is not saved by itself is sent with the choice.
  "form[data-save] button[name=over]": (button) => {
    setHidden("version", button.value);
    document.getElementById("conflict").replaceChildren();
    stopped = false;
    saved = undefined;
    save();
    [...form.querySelectorAll("textarea")].find((text) => text.checkVisibility())?.focus();
  },
  "a[data-theirs]": (link) => {
    forget(value("key"));
    leave = true;
    location.assign(link.href);
  },
  "a[data-discard]": discard,
};

const editing = form?.getAttribute("action").endsWith("/edit");

// discard cancels the draft of a new post, and restores a draft that existed before.
async function discard({ href }) {
  await saving;
  goTo(["discarded", "cancelled"]);
  if (draft && editing) {
    const opened = new URLSearchParams(form.opened);
    opened.set("version", value("version"));
    await fetch(form.dataset.save, { method: "POST", headers: { Accept: "application/json" }, body: opened });
  }
  if (!draft || editing) return location.assign(href);
  leave = false;
  const cancel = element("form", { method: "post", action: `${form.getAttribute("action").replace(/new$/, draft.id)}/cancel`, hidden: true }, element("button", { textContent: "Discard" }));
  cancel.dataset.confirm = "Discard this draft? What you wrote is not kept.";
  cancel.addEventListener("submit", () => (leave = true));
  document.body.append(cancel);
  cancel.requestSubmit(cancel.firstElementChild);
}

function start() {
  saved = contentOf(form.opened);
  if (form.dataset.draft) draft = { id: form.dataset.draft };
  resume();
  // A rejected form, or one with an added part, differs from the stored text.
  if ("again" in form.dataset) saved = undefined;
  let pause;
  const changed = () => {
    form.toggleAttribute("data-dirty", dirty());
    clearTimeout(pause);
    pause = setTimeout(keep, 400);
    if (form.dataset.save && dirty()) later();
    else if (!form.dataset.save) show(dirty() ? "Not saved yet. This browser keeps your changes until you send them." : "");
  };
  for (const type of ["input", "change"]) form.addEventListener(type, changed);
  form.addEventListener("click", (event) => {
    const found = Object.keys(choices).find((selector) => event.target.closest(selector));
    if (!found) return;
    event.preventDefault();
    choices[found](event.target.closest(found));
  });
  if (dirty()) changed();
  addEventListener("herald-leave", () => {
    leave = true;
    forget(value("key"));
  });
  addEventListener("visibilitychange", () => form.dataset.save && save());
  addEventListener("beforeunload", (event) => {
    if (leave || !dirty() || !written()) return;
    keep();
    if (form.dataset.save) save();
    event.preventDefault();
  });
  // It runs before all other listeners: the form is sent when its draft is saved, so that there is only one version.
  addEventListener("submit", (event) => {
    if (event.target !== form || !saving) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    saving.finally(() => form.requestSubmit(event.submitter));
  }, true);
  addEventListener("submit", (event) => {
    if (event.target !== form || event.defaultPrevented) return;
    keep();
    goTo(["created", "scheduled", "saved", "soon"]);
    setTimeout(() => (leave = false), 10 * second);
  });
}

// A form that was sent before this module was loaded has nothing to keep.
if (form && !form.sent) start();
