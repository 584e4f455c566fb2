// What the theme would ask Bootstrap for, which is forty times as large: menus that open, the
// section in sight, the way back to the top. A button's name is shown by the browser itself.
(function () {
  "use strict";
  const TOGGLE = '[data-bs-toggle="dropdown"]';
  const all = (selector, inside) => [...(inside || document).querySelectorAll(selector)];

  // --- menus ---
  const menuOf = (button) => button.parentElement.querySelector(".dropdown-menu");
  const isOpen = (button) => button.getAttribute("aria-expanded") === "true";

  function set(button, open) {
    const menu = menuOf(button);
    menu.dataset.bsPopper = "static"; // below the button
    menu.classList.toggle("show", open);
    button.setAttribute("aria-expanded", String(open));
    menu.style.left = menu.style.right = "";
    if (open && menu.getBoundingClientRect().right > document.documentElement.clientWidth) {
      menu.style.left = "auto";
      menu.style.right = "0";
    }
  }
  function closeBut(kept) {
    all(TOGGLE).forEach((button) => { if (button !== kept && isOpen(button)) set(button, false); });
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest(TOGGLE);
    closeBut(button);
    if (button) set(button, !isOpen(button));
  });
  document.addEventListener("focusin", (event) => {
    const around = event.target.closest(".dropdown");
    closeBut(around && around.querySelector(TOGGLE));
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      all(TOGGLE).filter(isOpen).forEach((button) => { set(button, false); button.focus(); });
    }
    const around = event.target.closest && event.target.closest(".dropdown");
    const button = around && around.querySelector(TOGGLE);
    if (!button) return;
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    if (!isOpen(button)) set(button, true);
    const items = all(".dropdown-item", menuOf(button));
    const at = items.indexOf(document.activeElement);
    const next = event.key === "ArrowDown" ? at + 1 : (at < 0 ? items.length : at) - 1;
    if (items[next]) items[next].focus();
  });

  // --- the section in sight, in the contents of the page ---
  function follow() {
    const links = all(".page-toc a.nav-link[href^='#']");
    const places = links.map((link) => document.getElementById(decodeURIComponent(link.hash.slice(1))));
    let last = null;
    function mark() {
      const line = 160; // just below the header
      const above = links.filter((_, i) => places[i] && places[i].getBoundingClientRect().top <= line);
      const link = above[above.length - 1] || null;
      if (link === last) return;
      last = link;
      links.forEach((one) => one.classList.remove("active"));
      for (let one = link; one; ) { // and those that it stands below
        one.classList.add("active");
        const list = one.closest("ul");
        one = list && list.previousElementSibling;
        if (one && !one.matches(".nav-link")) one = null;
      }
    }
    const watch = new IntersectionObserver(mark, { rootMargin: "0px 0px -60%" });
    places.forEach((place) => { if (place) watch.observe(place); });
  }

  // --- back to the top: offered to a reader who scrolls up ---
  function offerTop() {
    const button = document.getElementById("pst-back-to-top");
    if (!button) return;
    button.addEventListener("click", () => scrollTo(0, 0));
    let before = 0;
    addEventListener("scroll", () => {
      button.style.display = scrollY < before && scrollY > innerHeight ? "block" : "none";
      before = scrollY;
    }, { passive: true });
  }

  document.addEventListener("DOMContentLoaded", () => {
    all("[data-bs-title]:not([title])").forEach((button) => { button.title = button.dataset.bsTitle; });
    follow();
    offerTop();
  });
})();
