// What a script adds to pages that are whole without it: copying, times that stay fresh, a live list, progress.
"use strict";
(() => {
  const all = (selector, from = document) => from.querySelectorAll(selector);

  // Times, as the server says them.
  const said = (at) => {
    const s = Math.trunc((Date.now() - at) / 1000), a = Math.abs(s);
    if (a < 5) return "just now";
    const text = a < 90 ? a + " s" : a < 5400 ? Math.trunc(a / 60) + " min"
      : a < 129600 ? Math.trunc(a / 3600) + " h" : Math.trunc(a / 86400) + " d";
    return s > 0 ? text + " ago" : "in " + text;
  };
  const freshen = () => {
    for (const el of all("time[data-relative]")) {
      const at = Date.parse(el.dateTime);
      if (!Number.isNaN(at)) { const text = said(at); if (el.textContent !== text) el.textContent = text; }
    }
  };
  setInterval(freshen, 5000);

  // Copying. Buttons are hidden where nobody could use them.
  const offer = (from) => { if (navigator.clipboard) for (const el of all("button.copy", from)) el.hidden = false; };
  offer(document);
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-copy]");
    if (!button) return;
    navigator.clipboard.writeText(button.dataset.copy).then(() => {
      button.textContent = "copied";
      setTimeout(() => { button.textContent = "copy"; }, 1500);
    }, () => { button.textContent = "no"; });
  });

  // A form is sent once, and its button says so.
  document.addEventListener("submit", (event) => {
    if (event.target.dataset.sent) { event.preventDefault(); return; }
    if (event.target.method === "post") event.target.dataset.sent = "1";
  });
  addEventListener("pageshow", () => { for (const form of all("form[data-sent]")) delete form.dataset.sent; });

  // The colours of states, as the server has them.
  const kinds = { completed: "good", dead: "bad", needs_review: "warn", in_progress: "busy" };

  // Live rows: <table data-live="/events/stream?..."> with a <template data-row>.
  for (const table of all("table[data-live]")) {
    const rows = table.tBodies[0], row = document.getElementById(table.dataset.row);
    const button = document.getElementById(table.dataset.switch);
    if (!row || !button || !window.EventSource) continue;
    button.hidden = false;
    let source = null;
    const fill = (event) => {
      const made = row.content.cloneNode(true);
      for (const el of all("[data-field]", made)) {
        const value = event[el.dataset.field];
        if (el.tagName === "TIME") { el.dateTime = value; el.title = value; }
        const text = value === null || value === undefined ? "–" : String(value);
        el.textContent = el.dataset.field === "status" ? text.replaceAll("_", " ") : text;
        if (el.dataset.field === "status") el.classList.add(kinds[value] ?? "calm");
      }
      for (const el of all("a[data-href]", made)) el.href = el.dataset.href + encodeURIComponent(event.id);
      const copy = made.querySelector("[data-copy-field]");
      if (copy) { copy.dataset.copy = event[copy.dataset.copyField]; copy.hidden = false; }
      rows.prepend(made);
      const box = table.closest("[hidden]");
      if (box) box.hidden = false;
      while (rows.rows.length > 200) rows.lastElementChild.remove();
      freshen();
    };
    const stop = () => { source.close(); source = null; button.textContent = "Follow live"; button.setAttribute("aria-pressed", "false"); };
    button.addEventListener("click", () => {
      if (source) { stop(); return; }
      source = new EventSource(table.dataset.live);
      source.onmessage = (message) => fill(JSON.parse(message.data));
      button.textContent = "Stop following";
      button.setAttribute("aria-pressed", "true");
    });
  }

  // Progress: <section data-progress="/replays/x/progress"> is replaced until it says that it is through.
  const follow = (section) => {
    setTimeout(async () => {
      try {
        const answer = await fetch(section.dataset.progress, { headers: { accept: "text/html" } });
        if (!answer.ok || answer.redirected) return;
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const fresh = page.querySelector("[data-progress], [data-through]");
        if (!fresh) return;
        section.replaceWith(fresh);
        offer(fresh);
        if (fresh.dataset.progress) follow(fresh);
      } catch { follow(section); }
    }, 1000);
  };
  for (const section of all("[data-progress]")) follow(section);
})();
