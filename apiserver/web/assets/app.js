// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// The pages' behaviour beyond links and forms. Each part finds its elements by attributes, which README.md lists. Without this file,
// pages still work, less conveniently. It is a module: strict, with its own scope, and run once the page is parsed.

const on = (type, act, options) => document.addEventListener(type, act, options);

// announce shows a message, also to screen readers.
function announce(text) {
  const region = document.getElementById("status");
  if (region) region.textContent = text;
}

// --- Dialogs, and confirmations for irreversible actions.

on("click", ({ target }) => {
  const opener = target.closest("[data-dialog]");
  if (opener) document.getElementById(opener.dataset.dialog).showModal();
});

function create(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

let confirmed;

function ask(form, submitter) {
  const question = create("p", { id: "question", textContent: form.dataset.confirm });
  const no = create("button", { value: "", autofocus: true, textContent: "Cancel" });
  const yes = create("button", { value: "yes", className: "danger", textContent: submitter?.textContent ?? "Yes" });
  const dialog = create("dialog", {}, create("form", { method: "dialog" }, question, create("div", { className: "actions" }, no, yes)));
  dialog.setAttribute("aria-labelledby", "question");
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (dialog.returnValue !== "yes") return;
    if (!form.isConnected) { // an update of the page has replaced the form since
      form.hidden = true;
      document.body.append(form);
    }
    confirmed = form;
    form.requestSubmit(submitter);
    confirmed = undefined;
  });
  document.body.append(dialog);
  dialog.showModal();
}

// It runs before listeners on the form itself, such as htmx, and hides a form from them that must not be submitted yet.
on("submit", (event) => {
  const form = event.target;
  if (!form.dataset.confirm || confirmed === form) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  ask(form, event.submitter);
}, true);

// --- Copying to the clipboard, for example a key that is shown once.

on("click", async ({ target }) => {
  const button = target.closest("[data-copy]");
  if (!button) return;
  const source = document.querySelector(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(source.value ?? source.textContent);
    announce("Copied");
  } catch {
    // Browsers reject this over plain http, except on this machine.
    getSelection().selectAllChildren(source);
    announce("Selected: copy it with your keyboard");
  }
});

// --- Server-sent events: HTML from our own server. An event named stop ends them.

const listening = new WeakSet();

// follow shows the server's messages in an area. A hidden page closes its connection: without HTTP/2, a browser has six for all of its
// tabs. The first message of each connection has the current state, so nothing is missed.
function follow(area) {
  let source, timer, shown, pause = 1000, over = false;
  const wait = (time) => (timer = setTimeout(open, time));

  function close() {
    clearTimeout(timer);
    source?.close();
  }

  function end() {
    over = true;
    close();
  }

  function open() {
    close();
    if (over || document.hidden) return;
    if (!area.isConnected) return end();
    source = new EventSource(area.dataset.events);
    source.onopen = () => (pause = 1000);
    source.onmessage = ({ data }) => (area.isConnected ? show(data) : end());
    source.addEventListener("stop", end);
    source.addEventListener("later", ({ data }) => {
      close();
      wait(Number(data) || 60000);
    });
    // A browser reconnects when a connection breaks, but not after a response such as 503.
    source.onerror = ({ target }) => {
      if (target !== source || source.readyState !== EventSource.CLOSED) return;
      wait(pause);
      pause = Math.min(pause * 2, 60000);
    };
  }

  // onTab returns the prefix of the page's title, as the server chooses it: the post's, or the number next to the overview.
  const needing = document.querySelector(".needing")?.firstChild.textContent;
  function onTab() {
    return area.querySelector("[data-tab]")?.dataset.tab || (needing ? `(${needing}) ` : "");
  }

  function show(data) {
    const focus = document.activeElement;
    // An update would discard the user's input, even after the field loses the focus.
    const typed = [...area.querySelectorAll("input:not([type=hidden])")].some((field) => field.value !== field.defaultValue);
    if (data === shown || typed) return;
    shown = data;
    const focused = area.contains(focus) && focus.id;
    const opened = [...area.querySelectorAll("details[open][id]")].map(({ id }) => id);
    const before = onTab();
    area.innerHTML = data;
    for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
    document.title = onTab() + document.title.slice(before.length);
    if (area.querySelector("[data-settled]")) document.querySelector("[data-until-settled]")?.remove();
    prepare(area);
    globalThis.htmx?.process(area);
    if (focused) document.getElementById(focused)?.focus();
  }

  on("visibilitychange", () => (document.hidden ? close() : open()));
  open();
}

// The next user who signs in on this computer must not find the text that drafts.js and compose.js have stored.
on("submit", ({ target }) => {
  if (target.getAttribute("action") !== "/signout") return;
  for (const name of Object.keys(localStorage)) if (/^herald-(writing|sent|uploads)/.test(name)) localStorage.removeItem(name);
});

// --- The page's elements, and those that htmx and events add later.

const all = (root, selector) => [...(root.matches?.(selector) ? [root] : []), ...root.querySelectorAll(selector)];

// countDown shows how many seconds are left.
function countDown(element) {
  const end = performance.now() + element.dataset.countdown * 1000;
  const tick = () => {
    const left = Math.max(Math.ceil((end - performance.now()) / 1000), 0);
    element.textContent = left === 1 ? "1 second" : `${left} seconds`;
    if (left > 0 && element.isConnected) setTimeout(tick, 200);
  };
  tick();
}

function prepare(root) {
  all(root, "[data-countdown]").forEach(countDown);
  for (const area of all(root, "[data-events]")) {
    if (listening.has(area)) continue;
    listening.add(area);
    follow(area);
  }
}

prepare(document);
on("htmx:load", ({ detail }) => detail.elt !== document.body && prepare(detail.elt));
