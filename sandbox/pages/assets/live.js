// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Brings the open page up to date, and marks the posts that are new.
(() => {
  const period = 2000;
  const posts = (root) => new Set([...root.querySelectorAll("article")].map((a) => a.id));

  async function update() {
    if (document.hidden) return;
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("page");
    const page = document.getElementById("page");
    if (!fresh || fresh.innerHTML === page.dataset.source) return;
    const known = posts(page);
    const first = page.dataset.source === undefined;
    page.dataset.source = fresh.innerHTML;
    if (first) return;
    for (const article of fresh.querySelectorAll("article")) {
      if (!known.has(article.id)) article.classList.add("fresh");
    }
    page.replaceChildren(...fresh.childNodes);
  }

  setInterval(() => update().catch(() => {}), period);
})();
