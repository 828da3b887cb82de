// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// What lists and the calendar do beyond links and forms: dragging a post to another day, and choosing several. README.md lists the
// attributes.

const on = (type, act) => document.addEventListener(type, act);

// --- The calendar: a post dragged to another day keeps its time of day. The form #drag is
// filled in and sent; a person with a keyboard opens the post and enters a time.

let post;

for (const item of document.querySelectorAll("[data-post]")) [item.draggable, item.querySelector("a").draggable] = [true, false];

// dayUnder returns the day under the pointer, unless it is past.
const dayUnder = ({ target }) => (post && target.closest("[data-day]:not([data-past])")) || undefined;

on("dragstart", ({ target, dataTransfer }) => {
  post = target.closest?.("[data-post]");
  if (post) dataTransfer.setData("text/plain", ""); // without data, Firefox does not drag
});

on("dragover", (event) => {
  const day = dayUnder(event);
  if (day) event.preventDefault();
  if (post) mark(day);
});

on("drop", (event) => {
  const day = dayUnder(event)?.dataset.day;
  if (!day) return;
  event.preventDefault();
  if (post.closest("[data-day]").dataset.day === day) return;
  const form = document.getElementById("drag"), { dateTime } = post.querySelector("time"), to = { dateTime, day };
  document.dispatchEvent(new CustomEvent("onday", { detail: to })); // times.js
  form.action = `${post.querySelector("a").pathname}/reschedule`;
  form.elements.from.value = dateTime;
  form.elements.scheduled_at.value = to.at;
  for (const [name, value] of [["at", to.local], ["zone", to.zone]]) if (form.elements[name]) form.elements[name].value = value;
  form.requestSubmit();
});

on("dragend", () => mark((post = undefined)));

// mark sets the attribute data-over on the day under the pointer, for styles.
function mark(day) {
  for (const old of document.querySelectorAll("[data-day][data-over]")) if (old !== day) delete old.dataset.over;
  if (day) day.dataset.over = "";
}

// --- Choosing several posts.

const boxesOf = (form) => [...form.querySelectorAll("[name=post]")];

on("click", (event) => {
  const form = event.target.closest("[data-select-all]")?.closest("form");
  if (!form) return;
  event.preventDefault();
  const boxes = boxesOf(form), checked = boxes.some((box) => !box.checked);
  for (const box of boxes) box.checked = checked;
  count(form);
});

on("change", ({ target }) => target.name === "post" && count(target.form));

function count(form) {
  form.querySelector("output").textContent = `${boxesOf(form).filter((box) => box.checked).length} selected`;
}
