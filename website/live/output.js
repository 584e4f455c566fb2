// A live figure in the output of a notebook. The output's script (src/vitbook/book/live.py) is this
// one, the kit, the figure and its data, all in one function whose `vitbook` is nobody else's: so
// figures in several outputs, or one that runs twice, know nothing of each other. What the output
// holds is the still, for readers that run no script; a shadow root with the figure hides it.
(function (output) {
  "use strict";

  const DARK = {
    "data-theme": "dark", // Jupyter Book and other pages
    theme: "dark", // Colab
    "data-jp-theme-light": "false", // JupyterLab
    class: /^(?!.*vscode-high-contrast-light).*\bvscode-(dark|high-contrast)\b/ // VS Code
  };
  // A notebook that is shown twice holds its outputs twice: each run of this takes the next.
  const hosts = [...document.querySelectorAll(`[data-live-output="${output.id}"]`)];
  const host = hosts.find((one) => !one.shadowRoot) ?? document.createElement("div");
  const { css, name, sets } = output;

  function element(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  }
  const below = element("div", { class: "live-still" });
  below.innerHTML = host.innerHTML;
  const about = { "data-live": name, "data-scripts": "[]" };
  if (output.source) about["data-source"] = output.source;
  if (output.asks) about["data-predict"] = output.asks;
  const figure = element(
    "div",
    { class: "live", id: `live-${name}`, role: "group", "aria-label": output.title, ...about },
    below
  );
  const buttons = Object.entries(sets).map(([words, values]) =>
    element(
      "button",
      {
        type: "button",
        class: "live-button live-set",
        value: `#live-${name}`,
        "data-set": JSON.stringify(values)
      },
      words
    )
  );
  const page = element("div", {}, figure);
  if (buttons.length)
    page.append(
      element("div", { class: "live live-sets" }, element("span", {}, "From the text:"), ...buttons)
    );
  const home = host.attachShadow({ mode: "open" });
  home.append(element("style", {}, css), page);

  // The theme of whatever reader this is; light where it says nothing.
  const marked = [document.documentElement, document.body];
  const isDark = (node) =>
    Object.entries(DARK).some(([key, dark]) => {
      const value = node.getAttribute(key) ?? "";
      return typeof dark === "string" ? value === dark : dark.test(value);
    });
  const follow = () => {
    page.dataset.theme = marked.some(isDark) ? "dark" : "light";
  };
  for (const node of marked)
    new MutationObserver(follow).observe(node, { attributeFilter: Object.keys(DARK) });
  follow();
  Object.assign(vitbook, { home, page });
})(vitbook.output);
