// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// The composer's previews and its tiles of accounts.

const on = (type, act, options) => document.addEventListener(type, act, options);

// --- An account that cannot take the kind of post, or its content, cannot be chosen. One that was chosen before can be given up.

const refusal = (box) => [...document.getElementById(box.getAttribute("aria-describedby").split(" ")[0]).children].find((one) => one.checkVisibility());

function markTiles() {
  for (const box of document.querySelectorAll(".picked")) {
    if (refusal(box) && !box.checked) box.setAttribute("aria-disabled", "true");
    else box.removeAttribute("aria-disabled");
  }
}

on("click", (event) => {
  const { target } = event;
  if (!target.matches(".picked") || !target.checked || !refusal(target)) return;
  event.preventDefault(); // it is unchecked again
  document.getElementById("status").textContent = refusal(target).textContent;
});

on("change", ({ target }) => (target.name === "category" || target.matches(".picked")) && markTiles());
addEventListener("pageshow", markTiles); // fields may be restored until then
markTiles();

// --- Files side by side: buttons for a mouse turn to the next one.

const gentle = matchMedia("(prefers-reduced-motion: no-preference)");

on("click", ({ target }) => {
  const way = target.closest("[data-turn]")?.dataset.turn;
  if (!way) return;
  const row = target.closest(".media").querySelector("ul");
  const step = (way === "on" ? 1 : -1) * (row.firstElementChild.offsetWidth + 8) * (getComputedStyle(row).direction === "rtl" ? -1 : 1);
  row.scrollBy({ left: step, behavior: gentle.matches ? "smooth" : "instant" });
});

// --- The preview is replaced whenever the user pauses. Unfolded parts and scroll positions are restored.

const seen = new Map();
const parts = (check) => [...check.querySelectorAll(".mock")].map((mock) => [mock.id, mock.querySelectorAll("details"), mock.querySelectorAll(".media ul")]);

on("htmx:beforeSwap", ({ detail }) => {
  if (detail.target.id !== "check") return;
  for (const [id, folds, rows] of parts(detail.target)) seen.set(id, { open: [...folds].map((fold) => fold.open), left: [...rows].map((row) => row.scrollLeft) });
});

on("htmx:afterSwap", ({ detail }) => {
  if (detail.target.id !== "check") return;
  markTiles(); // the answer has replaced their reasons
  for (const [id, folds, rows] of parts(detail.target)) {
    folds.forEach((fold, i) => (fold.open = seen.get(id)?.open[i] ?? false));
    rows.forEach((row, i) => row.scrollTo({ left: seen.get(id)?.left[i] ?? 0, behavior: "instant" }));
  }
});
