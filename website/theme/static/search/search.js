// The search field, on every page: results while one types, loaded when the reader first goes there.
(() => {
  const HERE = document.currentScript.src;
  const STATUS_DELAY = 400; // a screen reader hears the count when the typing rests
  let loading = null;

  function load(name) {
    return new Promise((done, failed) => {
      const script = document.createElement("script");
      script.src = new URL(name, HERE);
      script.addEventListener("load", done);
      script.addEventListener("error", failed);
      document.head.append(script);
    });
  }

  function prepare() {
    if (!loading) {
      const style = document.createElement("link");
      style.rel = "stylesheet";
      style.href = new URL("search.css", HERE);
      document.head.append(style);
      loading = load("index.js").then(() => load("engine.js"));
    }
    return loading;
  }

  function make(tag, class_, ...content) {
    const made = document.createElement(tag);
    if (class_) made.className = class_;
    made.append(...content);
    return made;
  }

  // Words with their letters' indices and powers: W_Q, D^2.
  function typeset(words) {
    return words
      .split(/((?<=(?<!\w)\p{L})_\w(?!\w)|\^\w)/u)
      .map((part, at) =>
        at % 2 ? make(part[0] === "_" ? "sub" : "sup", "", part.slice(1)) : part
      );
  }

  function item(hit) {
    const link = make("a", "", ...typeset(hit.heading));
    link.href = new URL(`../../${hit.address.replace("#", "?found#")}`, HERE); // what was found is open (predict.js)
    const kind = { claim: "Claim: ", notation: "Notation: ", api: "Package: " }[hit.kind];
    if (kind) link.prepend(make("span", "search-kind", kind));
    const shown = hit.shown.flatMap(([word, found]) => [
      ...(found ? [make("mark", "", ...typeset(word))] : typeset(word)),
      " "
    ]);
    return make(
      "li",
      "",
      link,
      make("span", "search-above", ...typeset(hit.above)),
      make("p", "", ...shown)
    );
  }

  // Where the best hit is the page on which one is, its sections come first and its top last.
  function seenFromHere(items) {
    const rank = (one) => {
      const { hash, pathname } = one.querySelector("a");
      return pathname !== location.pathname ? 1 : hash ? 0 : 2;
    };
    return items.length && rank(items[0]) === 2
      ? items.toSorted((a, b) => rank(a) - rank(b))
      : items;
  }

  function told({ found, hits, unknown }, query) {
    const instead = unknown.map(({ word, instead }) =>
      instead
        ? `“${word}” is not in the book; this is for “${instead}”.`
        : `“${word}” is not in the book.`
    );
    const more = found > hits.length ? `; the best ${hits.length} are shown` : "";
    const count = found
      ? `${found} ${found === 1 ? "place" : "places"}${more}.`
      : `Nothing found for “${query}”.`;
    return [count, ...instead].join(" ");
  }

  function serve(form) {
    const input = form.querySelector("input");
    const dialog = form.closest("dialog");
    const list = make("ol", "search-hits");
    const status = make("p", "search-status");
    status.setAttribute("role", "status");
    const all = make("a", "search-all", "All places");
    all.hidden = true;
    const box = make("div", "search-results", status, list, all);
    form.after(box);
    let timer, asked;

    async function answer() {
      const query = input.value.trim();
      if (query === asked) return;
      asked = query;
      clearTimeout(timer);
      try {
        await prepare();
      } catch {
        status.textContent = "The index of the search could not be loaded.";
        return;
      }
      if (query !== asked) return; // more was typed meanwhile
      const result = query && window.bookSearch.search(query, dialog ? 8 : 30);
      list.replaceChildren(...(result ? seenFromHere(result.hits.map(item)) : []));
      all.href = `${form.action}?q=${encodeURIComponent(query)}`;
      all.hidden = !(dialog && result && result.found > result.hits.length);
      box.classList.toggle("search-asked", Boolean(query));
      timer = setTimeout(() => {
        status.textContent = result ? told(result, query) : "";
      }, STATUS_DELAY);
    }

    form.addEventListener("focusin", prepare, { once: true });
    input.addEventListener("input", answer);
    form.addEventListener("submit", (event) => {
      const first = dialog && list.querySelector("a");
      if (dialog && !first) return; // on to the page of the search
      event.preventDefault();
      if (first) first.click();
      else answer();
    });
    const outer = dialog || form.parentElement;
    outer.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      const stops = [input, ...box.querySelectorAll("a:not([hidden])")];
      const at = stops.indexOf(document.activeElement);
      if (!step || at < 0 || !stops[at + step]) return;
      event.preventDefault();
      stops[at + step].focus();
    });
    list.addEventListener("click", (event) => {
      if (event.target.closest("a")) dialog?.close(); // the place may be on this page
    });
    if (!dialog) {
      input.value = new URLSearchParams(location.search).get("q") || "";
      input.focus();
      answer();
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("form.bd-search").forEach(serve);
  });
})();
