// What is needed of the theme's own two scripts, without their layouts while the page comes: light
// and dark, the field of the search, and code that the keyboard can move sideways.
(function () {
  "use strict";
  const root = document.documentElement;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const MAC = /^(Mac|iPhone)/.test(navigator.platform);
  const all = (selector) => document.querySelectorAll(selector);

  // --- light and dark; "auto" follows the system ---
  const seen = () =>
    root.dataset.mode === "auto" ? (prefersDark.matches ? "dark" : "light") : root.dataset.mode;

  const show = () => {
    root.dataset.theme = seen();
  };
  prefersDark.addEventListener("change", show);
  show(); // the system may have changed while the page came

  function setMode(mode) {
    root.dataset.mode = mode;
    show();
    try {
      localStorage.setItem("mode", mode);
    } catch {
      /* then it lasts as long as the page */
    }
  }
  function nextMode() {
    // the first click always changes what is seen
    const modes = prefersDark.matches ? ["auto", "light", "dark"] : ["auto", "dark", "light"];
    setMode(modes[(modes.indexOf(root.dataset.mode) + 1) % 3]);
  }

  // On paper every page is light, its drawn figures too.
  addEventListener("beforeprint", () => {
    root.dataset.theme = "light";
  });
  addEventListener("afterprint", show);

  // --- the search ---
  function openSearch() {
    const field = document.querySelector(":not(#pst-search-dialog) > form.bd-search input");
    const dialog = document.getElementById("pst-search-dialog");
    if (field) field.focus();
    else if (dialog.open) dialog.close();
    else dialog.showModal();
  }
  function closeOutside(event) {
    // a click on what is behind a dialog hits the dialog itself
    const { left, right, top, bottom } = event.currentTarget.getBoundingClientRect();
    const inside =
      left <= event.clientX &&
      event.clientX <= right &&
      top <= event.clientY &&
      event.clientY <= bottom;
    if (!inside) event.currentTarget.close();
  }

  // Tab passes by what fits into its box; what is too wide can be moved by the arrow keys.
  const boxes = new ResizeObserver((changed) => {
    const wide = changed.map(
      ({ target: box }) =>
        box.scrollWidth > box.clientWidth ||
        (box.scrollHeight > box.clientHeight && !box.matches(".katex-display"))
    ); // TeX's boxes are too high
    changed.forEach(({ target }, i) => {
      if (wide[i]) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    });
  });

  document.addEventListener("DOMContentLoaded", () => {
    all(".theme-switch-button").forEach((button) => button.addEventListener("click", nextMode));
    all(".search-button__button").forEach((button) => button.addEventListener("click", openSearch));
    document.getElementById("pst-search-dialog").addEventListener("click", closeOutside);
    if (MAC)
      all(".search-button__kbd-shortcut > :first-child").forEach((key) => {
        key.textContent = "⌘";
      });
    addEventListener(
      "keydown",
      (event) => {
        const held = MAC ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey;
        if (!held || event.shiftKey || event.altKey || event.key.toLowerCase() !== "k") return;
        event.preventDefault();
        openSearch();
      },
      true
    );
    all(
      "pre, .katex-display, .cell_output > .output, div.vitbook-table, .pst-scrollable-table-container"
    ).forEach((box) => boxes.observe(box));
  });
})();
