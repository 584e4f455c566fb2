// The first seconds of the front page: a query wanders over the photograph, until somebody touches
// the figure or stops it; still for readers who asked for less motion. The explorer draws itself
// and tells when it has; this script waits for it in the head, so that nothing moves afterwards.
(function () {
  "use strict";
  const PATH = [30, 54, 78, 91, 80, 56, 32, 19, 40, 63];
  const STEP = 480; // milliseconds

  // Only the stage and its choices: all heads at once are shown in chapter 0.
  const SHEET = ".heads, .unit, .notes, .controls details, .controls fieldset:nth-of-type(n + 4) { display: none }" +
    " :host { margin: 0 } .card { grid-template: 'stage' auto 'controls' auto / minmax(0, 1fr) !important; gap: 1rem }" +
    " .title { min-height: 2rem; padding-right: 8rem } .sentence { min-height: 2.9em } .tokens { margin-bottom: 0.5rem }" +
    " .patch { transition: none } :host([data-moving]) :is(.sentence, .values) { visibility: hidden }" +
    " @container (min-width: 35rem) { .card { grid-template: 'stage controls' auto / minmax(0, 23.5rem) minmax(8.5rem, 1fr) !important; gap: 1.5rem } .controls { padding-top: 6rem } }";

  function begin(figure) {
    const shadow = figure.shadowRoot;
    const style = document.createElement("style");
    style.textContent = SHEET;
    shadow.append(style);
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const patches = shadow.querySelectorAll(".patch");
    const live = shadow.querySelector(".live");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "front-still";
    figure.before(button);
    let timer = 0;
    let at = 0;
    function stop() {
      clearInterval(timer);
      timer = 0;
      button.textContent = "Play motion";
      delete figure.dataset.moving;
      patches[PATH.at(at - 1)].click(); // now in words and numbers, too
      setTimeout(() => live.setAttribute("aria-live", "polite"), 400);
    }
    function step() {
      patches[PATH[at]].click();
      at = (at + 1) % PATH.length;
      if (at === 0) stop();
    }
    function play() {
      live.setAttribute("aria-live", "off"); // nobody asked to hear it
      button.textContent = "Stop motion";
      figure.dataset.moving = ""; // a step draws the map alone: no text, so no layout
      timer = setInterval(step, STEP);
    }
    button.addEventListener("click", () => (timer ? stop() : play()));
    ["pointerover", "keydown", "focusin"].forEach((name) => shadow.addEventListener(name, () => timer && stop()));
    play();
  }

  document.addEventListener("vitbook-drawn", (event) => begin(event.target), { once: true });
})();
