// What the theme's own scripts leave to do.

// On a phone the list of pages lies over the text: it closes when a place in it is chosen.
document.addEventListener("click", (event) => {
  if (event.target.closest("#book-pages a[href]"))
    document.getElementById("book-pages").hidePopover();
});

// The way back to the top is offered, in the header, to a reader who scrolls up; by a few pixels a
// page moves by itself, when something above the reader gets its true height.
{
  const LEAST = 60;
  const button = document.querySelector(".header-top");
  button.addEventListener("click", () => scrollTo(0, 0));
  let low = 0; // how far down the reader was
  addEventListener(
    "scroll",
    () => {
      const up = scrollY < low - LEAST;
      if (scrollY <= innerHeight || scrollY > low) button.hidden = true;
      else if (up) button.hidden = false;
      low = up ? scrollY + LEAST : Math.max(low, scrollY);
    },
    { passive: true }
  );
}

// A link to something folded opens the fold, also where the browser does not do so by itself. And
// what a link has led to stays in its place while figures above it grow, until the reader moves.
let stay = new AbortController(),
  revealed = false; // by the browser, which aims before all is open
addEventListener(
  "beforematch",
  () => {
    revealed = true;
  },
  true
);
function arrive(aims) {
  stay.abort();
  const target =
    location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  const closed = target.closest(".ask-rest[hidden]") ? [target] : [];
  target.dispatchEvent(new Event("arrive", { bubbles: true })); // predict.js opens what is folded
  for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) {
    if (!fold.open) closed.push(fold);
  }
  closed.forEach((fold) => {
    fold.open = true;
  });
  if (aims || revealed || closed.length) target.scrollIntoView();
  revealed = false;
  keep(target);
}
function keep(target) {
  const top = () => Math.round(target.getBoundingClientRect().top),
    height = () => document.documentElement.scrollHeight;
  let [place, high] = [top(), height()];
  if (place < 0 || place > innerHeight) return; // somebody came back to another place
  stay = new AbortController();
  const { signal } = stay,
    grown = new ResizeObserver(() => {
      target.scrollIntoView();
      [place, high] = [top(), height()];
    });
  grown.observe(document.querySelector(".bd-article"));
  signal.addEventListener("abort", () => grown.disconnect());
  const move = () => stay.abort();
  for (const name of ["wheel", "touchstart", "pointerdown", "keydown"])
    addEventListener(name, move, { signal, capture: true, passive: true });
  // By the scroll bar: nothing has grown, and yet the target is elsewhere.
  addEventListener("scroll", () => height() === high && top() !== place && move(), { signal });
}
addEventListener("hashchange", () => arrive(false));
addEventListener("DOMContentLoaded", () =>
  arrive(performance.getEntriesByType("navigation")[0].type === "navigate")
);

// A link to another place of its page offers the way back: to the link, where it stood, and with the
// focus. The browser's own Back does the same. What is kept of an entry of the history: the link by
// which one left it, `left`, and the one that led to it, `came`.
{
  const back = document.querySelector(".header-back");
  const links = []; // those that were followed, with where each stood
  const isSeen = ({ bottom, top }) => bottom > back.parentElement.offsetHeight && top < innerHeight;
  const note = (values) => history.replaceState({ ...history.state, ...values }, "");
  let far = 0; // where one has read on so far that nobody wants to go back

  function offer() {
    const one = links[history.state?.came];
    back.hidden = !one || isSeen(one.link.getBoundingClientRect()) || scrollY > far;
  }
  function focus(place) {
    place.setAttribute("tabindex", "-1");
    place.focus({ preventScroll: true });
    place.addEventListener("blur", () => place.removeAttribute("tabindex"), { once: true });
  }
  document.addEventListener(
    "click",
    (event) => {
      const link = event.target.closest(".bd-article a[href*='#']:not(.headerlink)");
      const here = location.href.replace(/#.*/, "");
      const place =
        link?.href.startsWith(`${here}#`) &&
        document.getElementById(decodeURIComponent(link.hash.slice(1)));
      if (!place || event.metaKey || event.ctrlKey || event.shiftKey) return;
      const came = links.push({ link, top: link.getBoundingClientRect().top }) - 1;
      note({ left: came });
      // what sets a figure leads there by a script, and a second time to a place is no entry
      if (link.matches(".live-set") || link.hash === location.hash)
        history.pushState(null, "", link.hash);
      setTimeout(() => {
        note({ came, left: undefined });
        focus(place);
        far = Infinity;
        setTimeout(() => {
          far = scrollY + 3 * innerHeight;
          offer();
        }, 700); // after a glide
      });
    },
    true
  );
  addEventListener("popstate", () => {
    const one = links[history.state?.left];
    far = Infinity;
    offer();
    if (!one) return;
    const stand = () => {
      stay.abort();
      one.link.focus({ preventScroll: true });
      scrollBy(0, one.link.getBoundingClientRect().top - one.top);
      offer();
    };
    requestAnimationFrame(() => requestAnimationFrame(stand)); // the browser goes where it thinks
  });
  addEventListener("scroll", offer, { passive: true });
  back.addEventListener("click", () => history.back());
}

// Paper has no folds: solutions and boxes are printed open. Short code stays on one page.
addEventListener("beforeprint", () => {
  document.querySelectorAll(".bd-article pre").forEach((code) => {
    code.classList.toggle("whole", code.textContent.trim().split("\n").length <= 20);
  });
  document.querySelectorAll("details:not([open]):not(.code-fold)").forEach((fold) => {
    fold.open = true;
    fold.dataset.printed = "";
  });
});
addEventListener("afterprint", () => {
  document.querySelectorAll("details[data-printed]").forEach((fold) => {
    fold.open = false;
    delete fold.dataset.printed;
  });
});
