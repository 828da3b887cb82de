// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Updates the open page, and marks new posts.
(() => {
  const period = 2000;
  const posts = (root) => new Set([...root.querySelectorAll("article")].map((a) => a.id));

  const page = document.getElementById("page");
  let shown = page.innerHTML;

  async function update() {
    if (document.hidden) return;
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("page");
    if (!fresh || fresh.innerHTML === shown) return;
    shown = fresh.innerHTML;
    const known = posts(page);
    for (const article of fresh.querySelectorAll("article")) {
      if (!known.has(article.id)) article.classList.add("fresh");
    }
    page.replaceChildren(...fresh.childNodes);
  }

  setInterval(() => update().catch(() => {}), period);
})();
