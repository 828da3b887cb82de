// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Keyboard shortcuts, which README.md lists. They do nothing while a person types, and can be switched off (WCAG 2.1.4).

const off = "herald-no-shortcuts";
const dialog = document.getElementById("shortcuts"), box = dialog?.querySelector("[data-shortcuts]");

const enabled = () => !localStorage.getItem(off);

const typing = ({ target }) => target.isContentEditable || target.matches("input:not([type=checkbox], [type=radio], [type=button], [type=submit]), textarea, select");

const acts = {
  "?": () => dialog.showModal(),
  "/": () => document.querySelector("input[type=search]")?.focus(),
  // Not where a person writes, who would lose it.
  n: () => document.querySelector("form:has(.send)") ?? document.querySelector("a[data-shortcut=n]")?.click(),
};

// A form shows one of its buttons.
function send(form) {
  const button = [...form.querySelectorAll(".send button")].find((one) => one.checkVisibility() && !one.disabled);
  if (button) form.requestSubmit(button);
}

document.addEventListener("keydown", (event) => {
  const { key, target, ctrlKey, metaKey, altKey, isComposing, repeat } = event;
  if (!enabled() || isComposing || repeat || event.defaultPrevented || document.querySelector("dialog[open]")) return;
  if (key === "Enter" && (ctrlKey || metaKey) && !altKey) {
    const form = target.closest("form:has(.send)") ?? document.querySelector("form:has(.send)");
    if (!form) return;
    event.preventDefault();
    send(form);
    return;
  }
  const act = Object.hasOwn(acts, key.toLowerCase()) && acts[key.toLowerCase()];
  if (!act || ctrlKey || metaKey || altKey || typing(event)) return;
  event.preventDefault();
  act();
});

if (box) {
  box.checked = enabled();
  box.addEventListener("change", () => (box.checked ? localStorage.removeItem(off) : localStorage.setItem(off, "1")));
}

for (const opener of document.querySelectorAll("[data-needs-script]")) opener.hidden = false;
