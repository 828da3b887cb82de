// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// A new post is sent once: Back, a second tab or a second click do not send it again. README.md lists the stores. If a
// user enters the same text again, the server asks for confirmation.

// --- drafts.js is loaded once the user has entered text, or if the browser has stored some before.

const source = document.querySelector("script[data-drafts]")?.dataset.drafts, writing = document.querySelector("form[data-keep]");
let loading;

// load tries again with the next key if the server cannot be reached.
const load = () => (loading ??= import(source).catch((problem) => {
  loading = undefined;
  throw problem;
}));

function awaitText() {
  writing.opened = [...new FormData(writing)];
  for (const type of ["input", "change"]) writing.addEventListener(type, load);
  writing.addEventListener("click", (event) => {
    const button = event.target.closest("button[name=do]:is([value=add], [value=drop])");
    if (!button || loading) return;
    event.preventDefault();
    load().then(() => button.click());
  });
  addEventListener("submit", (event) => (writing.sent ||= event.target === writing && !event.defaultPrevented));
}

if (source) {
  if (writing) awaitText();
  const names = [...Object.keys(localStorage), ...Object.keys(sessionStorage)];
  if (names.some((name) => /^herald-(writing:|slot:|leaving$)/.test(name)) || writing?.matches("[data-again]")) load();
}

// announce shows a message, also to screen readers.
const announce = (text) => (document.getElementById("status").textContent = text);

// The page after a form identifies the form's effect by its word.
const stored = ["created", "scheduled", "saved", "soon"], word = new URLSearchParams(location.search).get("said");

const form = document.querySelector("form[data-once]");
const list = "herald-sent", pending = "herald-sending";
const most = 20, day = 24 * 60 * 60 * 1000, underWay = 30 * 1000, again = 10 * 1000;

const read = () => JSON.parse(localStorage.getItem(list) ?? "[]").filter(({ at }) => Date.now() - at < day);
const keep = (all) => localStorage.setItem(list, JSON.stringify(all.slice(-most)));
const key = () => form.elements.namedItem("key").value;

// The fields that do not distinguish one post from another.
const aside = new Set(["key", "version", "zone", "cards", "when", "at", "scheduled_at"]);

// digest distinguishes the content of forms without storing it.
function digest() {
  const text = form.dataset.once + JSON.stringify([...new FormData(form)].filter(([name]) => !aside.has(name)));
  let a = 0xdeadbeef, b = 0x41c6ce57;
  for (let i = 0; i < text.length; i++) {
    a = Math.imul(a ^ text.charCodeAt(i), 0x9e3779b1);
    b = Math.imul(b ^ text.charCodeAt(i), 0x5f356495);
  }
  return `${a >>> 0}.${b >>> 0}`;
}

// sentElsewhere finds a form with the same content that another tab has just sent.
const sentElsewhere = (stored) =>
  read().find((one) => one.key !== key() && Boolean(one.id) === stored && Date.now() - one.at < underWay && one.digest === digest());

// This page is the result of the form sent in this tab: the post's page, or one that explains why there is none.
function noteOutcome() {
  const sent = sessionStorage.getItem(pending);
  sessionStorage.removeItem(pending);
  const from = document.referrer && new URL(document.referrer).pathname;
  if (!sent || !from.endsWith("/posts/new")) return;
  const id = stored.includes(word) && location.pathname.split("/").pop();
  keep(read().filter((one) => id || one.key !== sent).map((one) => (one.key === sent ? { ...one, id } : one)));
}

let sending = false;

function setSending(is) {
  sending = is;
  for (const button of form.querySelectorAll(".send button")) button.disabled = is;
}

const isSend = ({ target, submitter }) => target === form && submitter?.name !== "do";

// It runs before all other listeners, since some of them act on the form.
addEventListener("submit", (event) => {
  if (!isSend(event) || (!sending && !sentElsewhere(false))) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  announce(sending ? "It is being sent" : "Another tab is sending this. Wait a moment");
}, true);

// It runs after them: forms that they stop are not sent.
addEventListener("submit", (event) => {
  if (!isSend(event) || event.defaultPrevented) return;
  keep([...read().filter((one) => one.key !== key()), { key: key(), digest: digest(), at: Date.now() }]);
  sessionStorage.setItem(pending, key());
  history.replaceState({ ...history.state, sent: key() }, "");
  sending = true;
  setTimeout(() => setSending(true)); // a button that is off now would not be sent
  setTimeout(() => setSending(false), again); // the key is the same: what arrived is not published again
});

// leaveFor replaces a form that was sent with an empty one that names the post.
function leaveFor({ id }) {
  dispatchEvent(new Event("herald-leave"));
  location.replace(`${form.getAttribute("action")}?sent=${encodeURIComponent(id)}`);
}

// arrive handles the return to a form that was already sent.
function arrive() {
  const sent = read().find((one) => one.key === history.state?.sent);
  if (sent?.id) leaveFor(sent);
}

noteOutcome();
if (form) {
  arrive();
  addEventListener("pageshow", ({ persisted }) => {
    if (!persisted) return;
    setSending(false);
    arrive();
  });
  addEventListener("storage", (event) => {
    const sent = event.key === list && !sending && sentElsewhere(true);
    if (sent) leaveFor(sent);
  });
}
