// What this browser keeps of its reader. One entry of localStorage holds all:
//   answers  id -> {said, sure, mark}; mark is 1 (right) or 0 (wrong), none where only the reader
//            could tell, and sure none where it was not said. Earlier versions kept more: a mark of
//            0.5 (partly), 90 % sure, and concept checks
//   read     true of who wants to read without guessing
//   done     page -> true: read to its end, or marked so by the reader
//   spent    page -> milliseconds that the reader was with it
//   seen     page -> the section that the reader has come to, counted from 1
//   last     where the reader was last: {page, title, anchor, section, at, of, left, when}
// Where the browser lets no page keep anything, it lasts as long as the page.

"use strict"; // so that what is in the block stays in it

globalThis.kept ??= {
  KEY: "attention-patch-by-patch.predictions.v1",
  memory: {},
  works: true,

  load() {
    try {
      if (kept.works) kept.memory = JSON.parse(localStorage.getItem(kept.KEY)) ?? {};
    } catch (error) {
      kept.works = error instanceof SyntaxError; // what is not ours is written over
    }
    return { answers: {}, done: {}, seen: {}, spent: {}, ...kept.memory };
  },

  // Without a word to the page (`change` has one): for what nothing on the page shows.
  keep(edit) {
    kept.memory = kept.load();
    edit(kept.memory);
    try {
      localStorage.setItem(kept.KEY, JSON.stringify(kept.memory));
    } catch {
      kept.works = false;
    }
  },

  change(edit) {
    kept.keep(edit);
    document.dispatchEvent(new Event("kept-changed"));
  },

  make(name, attributes, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }
};
