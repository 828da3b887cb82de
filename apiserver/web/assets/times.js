// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Times in the zone of the team, or else of the viewer. The page waits for this script, so that no time is seen in another zone first.
// README.md lists the attributes.

(() => {
  "use strict";

  const { timeZone: own, locale } = Intl.DateTimeFormat().resolvedOptions();
  const day = 24 * 60 * 60 * 1000, minute = 60 * 1000;
  const date = { dateStyle: "medium" }, time = { timeStyle: "short" };
  const styles = { date, time, both: { ...date, ...time }, full: { dateStyle: "full", timeStyle: "long" } };
  styles.near = { month: "short", day: "numeric" };
  styles.day = { month: "long", day: "numeric" };
  styles.month = { month: "long", year: "numeric" };
  styles.weekday = { weekday: "short" };
  styles.long = { dateStyle: "long" };
  styles.fullday = { dateStyle: "full" };

  // firstDay is the first day of the viewer's week, from 1 for Monday to 7. Older browsers do not know it.
  const of = new Intl.Locale(locale), firstDay = String((of.getWeekInfo?.() ?? of.weekInfo)?.firstDay ?? 1);
  const remember = (name, value) => { document.cookie = `${name}=${encodeURIComponent(value)}; path=/; max-age=31536000; samesite=lax`; };
  remember("zone", own);
  remember("week", firstDay);

  const shown = () => document.body.dataset.teamZone ?? own;
  const place = (zone) => zone.split("/").pop().replaceAll("_", " ");
  const format = (at, zone, style) => at.toLocaleString(locale, { ...styles[style], timeZone: zone });

  // forViewer is the time on the viewer's clock, with the day if it differs.
  function forViewer(at, zone) {
    if (format(at, own, "both") === format(at, zone, "both")) return "";
    const day = format(at, own, "date") === format(at, zone, "date") ? "" : `${format(at, own, "near")}, `;
    return ` (${day}${format(at, own, "time")} for you)`;
  }

  function showTime(element) {
    // A date is the same day in every zone.
    const dateOnly = element.dateTime.length <= 10, zone = dateOnly ? "UTC" : shown();
    const at = new Date(element.dateTime), { show } = element.dataset;
    if (isNaN(at)) return;
    const text = format(at, zone, show) + (show === "both" ? ` ${place(zone)}${forViewer(at, zone)}` : "");
    if (element.textContent === text) return;
    element.lang = locale;
    element.textContent = text;
    element.title = format(at, zone, dateOnly ? "fullday" : "full");
  }

  // --- Times that are entered.

  // wall is the wall-clock time in the page's zone, as if it were UTC.
  function wall(at) {
    const clock = Intl.DateTimeFormat("en", {
      timeZone: shown(), hourCycle: "h23", year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric",
    });
    const of = Object.fromEntries(clock.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
    return Date.UTC(of.year, of.month - 1, of.day, of.hour, of.minute, of.second);
  }

  // instants are when clocks show a time: never in an hour that they skip, twice in one that they repeat.
  function instants(local) {
    const asked = Date.parse(`${local}Z`);
    if (isNaN(asked)) return [];
    const found = [-day, day].map((beside) => asked - (wall(asked + beside) - (asked + beside)));
    return [...new Set(found)].filter((at) => wall(at) === asked);
  }

  const utcField = (input) => input.form.elements.namedItem(input.dataset.utc);

  // toUTC fills in the hidden field of an entered time. It keeps the seconds of a time that did not change, which inputs do not show.
  function toUTC(input) {
    let field = utcField(input);
    if (!field) {
      field = Object.assign(document.createElement("input"), { type: "hidden", name: input.dataset.utc });
      input.after(field);
    }
    const zone = input.form.elements.namedItem("zone");
    if (zone) zone.value = shown();
    const found = instants(input.value), before = Date.parse(field.value), chosen = input.form.querySelector("[name=fold]:checked")?.value;
    const same = (at) => Math.floor(at / minute) === Math.floor(before / minute);
    const at = chosen ? found.at(chosen === "second" ? -1 : 0) : (found.find(same) ?? found[0]);
    field.value = at === undefined ? "" : new Date(same(at) ? before : at).toISOString();
  }

  function fromUTC(input) {
    const at = Date.parse(utcField(input)?.value);
    if (!isNaN(at)) input.value = new Date(wall(at)).toISOString().slice(0, 16);
  }

  const on = (type, act) => document.addEventListener(type, act, true);
  for (const type of ["input", "change"]) {
    on(type, ({ target }) => {
      if (target.matches("input[data-utc]")) toUTC(target);
      if (target.name === "fold") target.form.querySelectorAll("input[data-utc]").forEach(toUTC);
    });
  }
  on("submit", ({ target }) => target.querySelectorAll("input[data-utc]").forEach(toUTC));

  // A post that is dragged to another day keeps its time of day, to the millisecond.
  on("onday", ({ detail }) => {
    const before = Date.parse(detail.dateTime);
    detail.local = detail.day + new Date(wall(before)).toISOString().slice(10, 16);
    detail.zone = shown();
    const [at] = instants(detail.local);
    detail.at = at === undefined ? "" : new Date(at + (before % minute)).toISOString();
  });

  // The page is reloaded, now with the cookies.
  function drawnElsewhere({ dataset: { inZone, week } }) {
    const drawn = `${own} ${firstDay}`;
    if (inZone === shown() && (week ?? firstDay) === firstDay || sessionStorage.getItem("drawn") === drawn) return;
    sessionStorage.setItem("drawn", drawn);
    location.reload();
  }

  const parts = {
    "time[data-show]": showTime,
    "input[data-utc]": fromUTC,
    "[data-zone]": (named) => named.textContent === shown() || (named.textContent = shown()),
    "[data-in-zone]": drawnElsewhere,
  };

  function prepare(root) {
    for (const [selector, act] of Object.entries(parts)) {
      if (root.matches?.(selector)) act(root);
      root.querySelectorAll(selector).forEach(act);
    }
  }

  new MutationObserver((changes) => {
    for (const { target, addedNodes } of changes) {
      if (target.matches?.("time[data-show]")) showTime(target); // its text came after itself
      for (const node of addedNodes) if (node.nodeType === Node.ELEMENT_NODE) prepare(node);
    }
  }).observe(document, { childList: true, subtree: true });
  document.addEventListener("DOMContentLoaded", () => prepare(document));
})();
