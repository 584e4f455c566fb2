// "Report a mistake" in the foot of the page takes along what is marked, and the heading above it
// (website/theme/report.py). What was marked last is kept until another sentence is, or until
// the reader leaves it out: on a phone each tap unmarks the text, also the tap on the link.
(function () {
  "use strict";
  const LONGEST = { section: 100, sentence: 400 }; // characters; a server takes 8,000 bytes, and a character may be 12
  const box = document.querySelector(".report");
  const article = document.querySelector(".bd-article");
  if (!box || !article) return;
  const part = (name) => box.querySelector(`.report-${name}`);
  const [link, text, copy, forget, marked] = ["link", "text", "copy", "forget", "marked"].map(part);
  const address = link && link.href;
  const lines = text && text.textContent;

  // Words of a copy of some nodes: a formula is its TeX, once; the signs that link to headings are no words.
  function words(nodes) {
    nodes
      .querySelectorAll(".headerlink, .katex-html, script, style")
      .forEach((node) => node.remove());
    nodes.querySelectorAll(".katex").forEach((math) => {
      const tex = math.querySelector("annotation");
      if (tex) math.replaceWith(`$${tex.textContent}$`);
    });
    return nodes.textContent.replace(/\s+/g, " ").trim();
  }
  const shortened = (said, most) => {
    const signs = Array.from(said);
    return signs.length > most ? `${signs.slice(0, most - 1).join("")}…` : said;
  };

  function found(range) {
    // {section, sentence} of what is marked
    const whole = range.cloneRange();
    const formula = (node) => (node.closest ? node : node.parentElement).closest(".katex");
    const [first, last] = [formula(range.startContainer), formula(range.endContainer)];
    if (first) whole.setStartBefore(first);
    if (last) whole.setEndAfter(last);
    const start = whole.startContainer;
    const section = (start.closest ? start : start.parentElement).closest("section[id]");
    const heading = section && section.querySelector(":scope > :is(h1, h2, h3, h4, h5, h6)");
    const named = heading
      ? `${shortened(words(heading.cloneNode(true)), LONGEST.section)} (#${section.id})`
      : "";
    return { section: named, sentence: shortened(words(whole.cloneContents()), LONGEST.sentence) };
  }

  function fill({ section, sentence }) {
    if (link) {
      const url = new URL(address);
      if (section) url.searchParams.set("section", section);
      if (sentence) url.searchParams.set("sentence", sentence);
      link.href = url.href;
    } else {
      text.textContent =
        lines + (section && `Section: ${section}\n`) + (sentence && `Sentence: ${sentence}\n`);
      copy.textContent = "Copy";
    }
    marked.textContent = sentence && `: “${shortened(sentence, 60)}”`;
    forget.hidden = !sentence;
  }

  let waiting;
  document.addEventListener("selectionchange", () => {
    const selection = document.getSelection();
    if (selection.isCollapsed || !selection.rangeCount) return;
    const range = selection.getRangeAt(0).cloneRange();
    if (!article.contains(range.commonAncestorContainer)) return;
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const what = found(range);
      if (what.sentence) fill(what);
    }, 100);
  });
  forget.addEventListener("click", () => {
    fill({ section: "", sentence: "" });
    (link || copy).focus();
  });
  if (!copy) return;
  copy.hidden = false;
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text.textContent);
      copy.textContent = "Copied";
    } catch {
      // a page from a disk, or one without https: the keys of the reader copy it
      document.getSelection().selectAllChildren(text);
      copy.textContent = "Marked: copy it now";
    }
  });
})();
