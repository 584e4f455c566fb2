// What the theme's own scripts leave to do.

// On a phone the contents lie over the page: they close when a place in them is chosen.
document.addEventListener("click", (event) => {
  const panel = event.target.closest("dialog.pst-sidebar-modal, dialog[id^=pst-][id$=-sidebar-modal]");
  if (panel && event.target.closest("a[href]")) panel.close();
});

// A link to something folded opens the fold, also where the browser does not do so by itself.
function unfold() {
  const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  const closed = [];
  for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) {
    if (!fold.open) closed.push(fold);
  }
  closed.forEach((fold) => { fold.open = true; });
  if (closed.length) target.scrollIntoView();
}
addEventListener("hashchange", unfold);
addEventListener("DOMContentLoaded", unfold);

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
