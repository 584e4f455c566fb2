// Where the reader is: the section in sight and the minutes left in the header, ticks in the list of
// pages, and what the front page says to who comes back (kept.js keeps it).

"use strict"; // so that what is in the block stays in it

{
  const header = document.querySelector(".book-header");
  const list = document.getElementById("book-pages");
  const article = document.querySelector(".bd-article, .bd-search-container");
  const links = [...list.querySelectorAll(".pages-sections a")];
  const places = links.map((link) =>
    document.getElementById(decodeURIComponent(link.hash.slice(1)))
  );
  const minutes = [list.querySelector(".pages-sections"), ...links].map((one) =>
    Number(one?.dataset.minutes ?? 0)
  );
  const { page } = header.dataset;
  const whole = Number(header.dataset.minutes ?? 0);
  const shown = {
    minutes: header.querySelector(".header-minutes"),
    section: header.querySelector(".header-section")
  };
  const SCREENS = 1.5; // a longer way at once is a jump, and reads nothing
  const MINUTE = 60_000; // ms: who does nothing for longer is not reading
  const FAST = 3; // times as fast as the minutes say is still reading

  let at = -1; // the section in sight; 0 is what stands before the first
  let reached = kept.load().seen[page] ?? 0; // read so far, one after the other
  let before = scrollY;
  let spent = kept.load().spent[page] ?? 0; // ms with this page, all visits together
  let then = performance.now();
  let done = false;

  function spend() {
    const now = performance.now();
    spent += Math.min(now - then, MINUTE);
    then = now;
  }

  // Sections are those of a page: each ends where the next begins, the last with the text.
  function tops() {
    return [article, ...places].map((one) => one.getBoundingClientRect().top);
  }
  // The line up to which one has read moves from the top of the window to its bottom.
  function minutesLeft(edges, foot) {
    const under = header.offsetHeight,
      far = document.documentElement.scrollHeight - innerHeight;
    const line = under + (innerHeight - under) * Math.min(1, far > 0 ? scrollY / far : 1);
    return minutes.reduce((sum, each, i) => {
      const [top, end] = [edges[i], edges[i + 1] ?? foot];
      return sum + each * Math.min(1, Math.max(0, (end - line) / Math.max(1, end - top)));
    }, 0);
  }
  function inSight(edges, foot) {
    if (foot < innerHeight) return edges.length - 1;
    const line = header.offsetHeight + innerHeight / 4;
    return edges.findLastIndex((top, i) => i === 0 || top <= line);
  }

  function look() {
    const edges = tops(),
      foot = article.getBoundingClientRect().bottom;
    const now = inSight(edges, foot),
      last = edges.length - 1;
    const left = minutesLeft(edges, foot);
    if (
      page &&
      at >= 0 &&
      at <= reached &&
      now > reached &&
      Math.abs(scrollY - before) < SCREENS * innerHeight
    ) {
      reached = now;
    }
    before = scrollY;
    // read is what was gone through in its order, and not only scrolled through
    if (page && last && reached === last && !done && spent * FAST > whole * MINUTE)
      kept.change((state) => {
        state.done = { ...state.done, [page]: true };
      });
    if (now !== at) mark(now);
    header.classList.toggle("is-past", titleFoot() < header.offsetHeight);
    if (!whole) return;
    header.style.setProperty("--read", 1 - left / whole);
    const words = left < 0.3 ? "" : `${Math.max(1, Math.round(left))} min`;
    const tick = done ? "✓ read" : "";
    const exercises = links[now - 1]?.dataset.do; // apart: the minutes left are of reading
    shown.minutes.replaceChildren(
      ...(exercises
        ? [kept.make("i", {}, "exercises "), `${exercises} min`]
        : [words || tick, words && kept.make("i", {}, " left")])
    );
    shown.minutes.classList.toggle("is-done", !exercises && !words && done);
  }
  const titleFoot = () => article.querySelector("h1")?.getBoundingClientRect().bottom ?? 0;

  function mark(now) {
    at = now;
    links.forEach((link, i) => {
      if (i === at - 1) link.setAttribute("aria-current", "location");
      else link.removeAttribute("aria-current");
    });
    const words = at ? [...links[at - 1].cloneNode(true).childNodes] : [];
    shown.section?.replaceChildren(...words);
    showEntry();
  }

  // Wherever the list appears, beside the text or over it, this page's entry and the section in sight
  // can be seen.
  function showEntry() {
    const here = list.querySelector("[aria-current=page]");
    if (!here || !list.clientHeight) return;
    const frame = list.getBoundingClientRect();
    const bottom = Math.min(frame.bottom, innerHeight);
    const seen = ({ top, bottom: end }) => top >= frame.top && end <= bottom;
    const entry = here.parentElement.getBoundingClientRect(),
      part = links[at - 1] ?? here;
    if (!seen(entry) && (at < 1 || !seen(part.getBoundingClientRect())))
      list.scrollTop += entry.top - frame.top - list.clientHeight / 8;
    const box = part.getBoundingClientRect();
    if (!seen(box)) list.scrollTop += box.top - frame.top - list.clientHeight / 2;
  }

  // Where the reader was last: the last heading above the middle of the window.
  function remember() {
    if (!page) return;
    const heading = [...article.querySelectorAll("section section[id] > :is(h2, h3)")].findLast(
      (one) => one.getBoundingClientRect().top < innerHeight / 2
    );
    const words = heading?.cloneNode(true);
    words
      ?.querySelectorAll(".headerlink, [aria-hidden=true], annotation")
      .forEach((part) => part.remove());
    const last = {
      page,
      title: list.querySelector("[aria-current=page] .pages-title").textContent,
      anchor: heading?.parentElement.id ?? "",
      section: words?.textContent.trim() ?? "",
      at,
      of: links.length,
      left: Math.round(minutesLeft(tops(), article.getBoundingClientRect().bottom)),
      when: Date.now()
    };
    spend();
    kept.keep((state) =>
      Object.assign(state, {
        last,
        seen: { ...state.seen, [page]: reached },
        spent: { ...state.spent, [page]: Math.round(spent) }
      })
    );
  }

  function drawTicks() {
    const state = kept.load();
    list.querySelectorAll("[data-page]").forEach((item) => {
      item.classList.toggle("is-done", Boolean(state.done[item.dataset.page]));
    });
    if (done && !state.done[page]) spent = 0; // the reader says that it is not read
    done = Boolean(state.done[page]);
    look();
  }

  let waiting = false;
  function later() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      spend();
      look();
    });
  }
  if (places.every(Boolean)) {
    drawTicks();
    addEventListener("scroll", later, { passive: true });
    new ResizeObserver(later).observe(article);
    new ResizeObserver(showEntry).observe(list);
    document.addEventListener("kept-changed", drawTicks);
    addEventListener("storage", drawTicks); // another window of the book
    addEventListener("pageshow", drawTicks);
    addEventListener("pagehide", remember);
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "hidden") remember();
      else then = performance.now();
    });
  }
}
