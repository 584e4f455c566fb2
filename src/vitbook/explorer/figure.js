// The interactive attention figure. Plain JavaScript, no library; everything it needs is in the
// element around it. It draws into a shadow tree, so that no style of the page reaches in or out.
(function () {
  "use strict";

  function bytes(text) {
    return Uint8Array.from(atob(text), function (c) { return c.charCodeAt(0); });
  }

  // The decoded maps: one row of weights at a time, for a head, the mean of heads, or the rollout.
  function readMaps(data) {
    var L = data.layers, h = data.heads, N = data.prefix + data.grid[0] * data.grid[1];
    var codes = bytes(data.weights), peaks = new Float32Array(bytes(data.peaks).buffer);
    var rollouts = {};

    function one(image, layer, head, query) {
      var at = ((image * L + layer) * h + head) * N + query;
      var peak = peaks[at] / 65025, row = new Float64Array(N);
      for (var k = 0; k < N; k++) row[k] = codes[at * N + k] * codes[at * N + k] * peak;
      return row;
    }
    function mean(image, layer, query) {
      var sum = new Float64Array(N);
      for (var head = 0; head < h; head++) {
        var row = one(image, layer, head, query);
        for (var k = 0; k < N; k++) sum[k] += row[k] / h;
      }
      return sum;
    }
    // Abnar & Zuidema 2020: half residual, half mean attention; later layers from the left.
    function rollout(image, layer) {
      var key = image + ":" + layer;
      if (rollouts[key]) return rollouts[key];
      var below = layer ? rollout(image, layer - 1) : null, out = [];
      for (var q = 0; q < N; q++) {
        var row = mean(image, layer, q), total = 1, k;
        for (k = 0; k < N; k++) total += row[k];
        row[q] += 1;
        for (k = 0; k < N; k++) row[k] /= total;
        if (below) {
          var mixed = new Float64Array(N);
          for (var j = 0; j < N; j++) {
            if (row[j]) for (k = 0; k < N; k++) mixed[k] += row[j] * below[j][k];
          }
          row = mixed;
        }
        out.push(row);
      }
      return (rollouts[key] = out);
    }
    return function (image, layer, head, query) {
      if (head === h) return mean(image, layer, query);
      if (head === h + 1) return rollout(image, layer)[query];
      return one(image, layer, head, query);
    };
  }

  // An element: el("p", {class: "x", onclick: f}, "text", child).
  function el(tag, attributes) {
    var node = document.createElement(tag);
    Object.keys(attributes || {}).forEach(function (name) {
      if (name.slice(0, 2) === "on") node.addEventListener(name.slice(2), attributes[name]);
      else if (name in node && typeof attributes[name] === "boolean") node[name] = attributes[name];
      else node.setAttribute(name, attributes[name]);
    });
    for (var i = 2; i < arguments.length; i++) node.append(arguments[i]);
    return node;
  }

  function percent(share) {
    var p = 100 * share;
    if (p > 0 && p < 0.1) return "<0.1\u202f%";
    return (p >= 9.95 || p === 0 ? Math.round(p) : p.toFixed(1)) + "\u202f%";
  }

  // One image: a photograph as it is, strokes as a mask; in the large view as dots of ink.
  function drawImage(data, pixels, index, dots) {
    var H = data.size[0], W = data.size[1], C = data.channels;
    var canvas = el("canvas"), side = C === 1 ? Math.max(4, Math.floor((dots ? 480 : 160) / Math.max(H, W))) : 1;
    canvas.width = W * side;
    canvas.height = H * side;
    var pen = canvas.getContext("2d"), from = index * H * W * C;
    for (var y = 0; y < H; y++) {
      for (var x = 0; x < W; x++) {
        var at = from + (y * W + x) * C;
        if (C === 3) {
          pen.fillStyle = "rgb(" + pixels[at] + "," + pixels[at + 1] + "," + pixels[at + 2] + ")";
          pen.fillRect(x, y, 1, 1);
          continue;
        }
        var ink = pixels[at] / 255, dot = dots ? side * 0.94 * (0.25 + 0.75 * ink) : side;
        if (ink < 0.04) continue;
        pen.globalAlpha = dots ? 0.35 + 0.65 * ink : ink;
        pen.beginPath();
        if (dots && pen.roundRect) pen.roundRect((x + 0.5) * side - dot / 2, (y + 0.5) * side - dot / 2, dot, dot, dot * 0.22);
        else pen.rect((x + 0.5) * side - dot / 2, (y + 0.5) * side - dot / 2, dot, dot);
        pen.fill();
      }
    }
    return canvas.toDataURL();
  }

  function start(root) {
    if (root.shadowRoot) return;
    var data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
    var shadow = root.attachShadow({ mode: "open" });
    var rows = data.grid[0], columns = data.grid[1], prefix = data.prefix, patches = rows * columns;
    var weights = readMaps(data), pixels = bytes(data.images);
    var marks = data.marks ? bytes(data.marks) : null;
    function draw(dots) { return data.labels.map(function (_, i) { return "url(" + drawImage(data, pixels, i, dots) + ")"; }); }
    var pictures = draw(true), small = data.channels === 3 ? pictures : draw(false);
    var headNames = [];
    for (var i = 0; i < data.heads; i++) headNames.push(String(i + 1));
    headNames.push("mean", "rollout");
    var state = Object.assign({ image: 0, query: prefix ? 0 : Math.floor(rows / 2) * columns + Math.floor(columns / 2) }, data.start);
    var hovered = -1, palette = [], timer = 0;

    function place(token) {
      var p = token - prefix;
      return "row " + (Math.floor(p / columns) + 1) + ", column " + ((p % columns) + 1);
    }
    function name(token) {
      if (token >= prefix) return place(token);
      return token === 0 ? "class token" : "prefix token " + (token + 1);
    }
    function theName(token) { return token < prefix ? "the " + name(token) : name(token); }
    function headName(head) { return head < data.heads ? "head " + headNames[head] : head === data.heads ? "mean of heads" : "rollout"; }

    // --- the elements ---
    var tokens = [];
    function tokenButton(token, className) {
      var button = el("button", {
        type: "button", role: "radio", class: className, "aria-label": name(token), "aria-checked": "false", tabindex: "-1",
        onclick: function () { hovered = -1; choose({ query: token }); },
        onpointerenter: function (event) { if (event.pointerType === "mouse") { hovered = token; paint(); } }
      });
      tokens[token] = button;
      return button;
    }
    var heading = el("span");
    var prefixRow = el("div", { class: "tokens" });
    for (i = 0; i < prefix; i++) {
      var pill = tokenButton(i, "token");
      pill.append(name(i));
      prefixRow.append(pill);
    }
    var board = el("div", { class: "board" }), ring = el("div", { class: "ring" });
    var across = data.size[1] / data.size[0];
    board.style.gridTemplate = "repeat(" + rows + ", 1fr) / repeat(" + columns + ", 1fr)";
    board.style.aspectRatio = String(across);
    ring.style.width = 100 / columns + "%";
    ring.style.height = 100 / rows + "%";
    if (across < 1) board.style.width = 100 * across + "%";
    for (i = 0; i < patches; i++) board.append(tokenButton(prefix + i, "patch"));
    var svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("class", "arcs");
    svg.setAttribute("viewBox", "0 0 " + columns + " " + rows);
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-hidden", "true");
    board.append(el("div", { class: "strokes" }), svg, ring);
    var field = el("div", {
      role: "radiogroup", "aria-label": "Query token: whose attention is shown", onkeydown: moveQuery,
      onpointerleave: function () { hovered = -1; paint(); }
    });
    if (prefix) field.append(prefixRow);
    field.append(board);
    var ramp = el("div", { class: "ramp" }), top = el("span"), sentence = el("p", { class: "sentence" });
    var live = el("p", { class: "live", "aria-live": "polite" });

    function radios(title, className, labels, key) {
      var bar = el("div", { class: "bar " + className });
      var group = key + Math.random().toString(36).slice(2);
      labels.forEach(function (label, index) {
        var input = el("input", {
          type: "radio", name: group, checked: state[key] === index,
          onchange: function () { var change = {}; change[key] = index; choose(change); }
        });
        bar.append(el("label", {}, input, label));
      });
      return el("fieldset", {}, el("legend", {}, title), bar);
    }
    function spans(words) { return words.map(function (word) { return el("span", {}, word); }); }
    var layerNames = [];
    for (i = 0; i < data.layers; i++) layerNames.push(String(i + 1));
    var imageChips = data.labels.map(function (label, index) {
      var chip = el("span", {}), picture = el("div", { class: "chip" });
      picture.style.cssText = "position:relative;width:2.75rem;aspect-ratio:" + across + ";--image:" + small[index];
      picture.append(el("div", { class: "strokes" }));
      chip.append(picture, el("em", {}, label));
      return chip;
    });
    var pickers = { layer: radios("Layer", "", spans(layerNames), "layer"), head: radios("Head", "", spans(headNames), "head") };
    var controls = el("div", {
      class: "controls", onkeydown: function (event) { if (event.key.startsWith("Arrow")) event.stopPropagation(); } // else the page turns
    });
    if (data.labels.length > 1) controls.append(radios("Image", "images", imageChips, "image"));
    controls.append(pickers.layer, pickers.head, el("details", {}, el("summary", {}, "How to use this figure"),
      el("p", {}, "Point at a patch to see where it looks, or click it to keep it. With the keyboard, move to the " +
        "patches with Tab and walk over them with the arrow keys" + (prefix ? "; Escape goes back to the class token" : "") +
        ". The small pictures choose layer and head; arrow keys walk over them as well. " +
        "Rollout follows the mean of the heads down to the patches, through all layers up to the chosen one.")));

    var table = el("div", { class: "table", role: "group", "aria-label": "Every layer and head", onkeydown: moveThumb });
    table.style.gridTemplateColumns = "auto repeat(" + headNames.length + ", minmax(2.75rem, 1fr))";
    table.append(el("span"));
    headNames.forEach(function (word, head) { table.append(el("span", {}, head < data.heads && data.heads < 7 ? "head " + word : word)); });
    var thumbs = [];
    layerNames.forEach(function (word, layer) {
      table.append(el("span", { class: "layer" }, el("span", {}, "layer "), word));
      headNames.forEach(function (_, head) {
        var canvas = el("canvas", { width: columns, height: rows }), frame = el("i", {}, canvas, el("div", { class: "strokes" }));
        frame.style.aspectRatio = String(across);
        var button = el("button", {
          type: "button", class: "thumb", "aria-pressed": "false", tabindex: "-1", "aria-label": "layer " + word + ", " + headName(head),
          onclick: function () { choose({ layer: layer, head: head }); }
        }, frame);
        thumbs.push({ button: button, canvas: canvas, layer: layer, head: head });
        table.append(button);
      });
    });
    var seenFrom = el("small");
    var style = el("style");
    style.textContent = data.css;
    var card = el("div", { class: "card" + (data.channels === 3 ? " photo" : "") + (data.heads > 6 ? " many" : "") },
      el("div", { class: "stage" }, el("p", { class: "title" }, heading), field,
        el("div", { class: "scale", "aria-hidden": "true" }, "0", ramp, top), sentence,
        marks ? el("p", { class: "note" }, el("span", { class: "key" }), data.marksLabel) : "", live),
      controls,
      el("div", { class: "heads" }, el("p", { class: "title" }, "Every head at once", seenFrom), el("div", { class: "scroll" }, table)));
    card.setAttribute("role", "group");
    card.setAttribute("aria-label", data.title);
    shadow.append(style, card);

    // --- choosing ---
    function choose(change) {
      Object.assign(state, change);
      paint();
      clearTimeout(timer); // spoken once the reader stops moving
      timer = setTimeout(function () { live.textContent = heading.textContent + ", layer " + (state.layer + 1) + ", " + headName(state.head) + ": " + sentence.textContent; }, 200);
    }
    function moveQuery(event) {
      var p = state.query - prefix, to = null;
      var row = Math.floor(p / columns), column = p % columns;
      if (state.query < prefix) {
        if (event.key === "ArrowLeft") to = Math.max(0, state.query - 1);
        else if (event.key === "ArrowRight") to = state.query + 1;
        else if (event.key === "ArrowDown") to = prefix + Math.floor(columns / 2);
      } else if (event.key === "ArrowLeft") to = state.query - (column ? 1 : 0);
      else if (event.key === "ArrowRight") to = state.query + (column < columns - 1 ? 1 : 0);
      else if (event.key === "ArrowUp") to = row ? state.query - columns : prefix ? 0 : state.query;
      else if (event.key === "ArrowDown") to = state.query + (row < rows - 1 ? columns : 0);
      if (event.key === "Home") to = prefix;
      if (event.key === "End") to = prefix + patches - 1;
      if (event.key === "Escape" && prefix) to = 0;
      if (to === null) return;
      event.preventDefault();
      event.stopPropagation(); // notebooks use the arrow keys too
      hovered = -1;
      choose({ query: to });
      tokens[to].focus({ preventScroll: false });
    }
    function moveThumb(event) {
      var step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
      if (!step) return;
      event.preventDefault();
      event.stopPropagation();
      choose({
        layer: Math.min(data.layers - 1, Math.max(0, state.layer + step[0])),
        head: Math.min(headNames.length - 1, Math.max(0, state.head + step[1]))
      });
      thumbs[state.layer * headNames.length + state.head].button.focus();
    }

    // --- painting ---
    function readPalette() {
      var stops = getComputedStyle(root).getPropertyValue("--vb-heat").trim().split(/\s+/).map(function (hex) {
        return [1, 3, 5].map(function (at) { return parseInt(hex.slice(at, at + 2), 16); });
      });
      palette = [];
      for (var i = 0; i < 256; i++) {
        var at = (i / 255) * (stops.length - 1), low = Math.min(stops.length - 2, Math.floor(at));
        palette.push([0, 1, 2].map(function (c) { return Math.round(stops[low][c] + (at - low) * (stops[low + 1][c] - stops[low][c])); }));
      }
      ramp.style.background = "linear-gradient(to right, " + stops.map(function (s) { return "rgb(" + s + ")"; }) + ")";
    }
    function color(share) { return palette[Math.round(255 * Math.min(1, share))]; }

    function paint() {
      var query = hovered >= 0 ? hovered : state.query;
      var row = weights(state.image, state.layer, state.head, query);
      var onPatches = row.slice(prefix), peak = Math.max.apply(null, onPatches) || 1;
      var others = [];
      onPatches.forEach(function (share, p) {
        tokens[prefix + p].style.backgroundColor = "rgb(" + color(share / peak) + ")";
        tokens[prefix + p].classList.toggle("marked", !!marks && marks[state.image * patches + p] === 1);
        if (prefix + p !== query) others.push(p);
      });
      others.sort(function (a, b) { return onPatches[b] - onPatches[a]; });
      for (var t = 0; t < prefix; t++) {
        var shade = color(Math.min(1, row[t] / peak));
        tokens[t].style.backgroundColor = "rgb(" + shade + ")";
        tokens[t].style.color = 0.299 * shade[0] + 0.587 * shade[1] + 0.114 * shade[2] > 115 ? "#11161f" : "#ffffff";
      }
      tokens.forEach(function (button, token) {
        button.setAttribute("aria-checked", String(token === state.query));
        button.tabIndex = token === state.query ? 0 : -1;
      });
      heading.textContent = "Where " + theName(query) + " looks";
      seenFrom.textContent = "seen from " + theName(query);
      top.textContent = percent(peak);
      sentence.replaceChildren();
      if (others.length) sentence.append(el("b", {}, percent(onPatches[others[0]])), " on " + place(prefix + others[0]) + ", ");
      sentence.append(el("b", {}, percent(row[query])), " on itself");
      if (prefix && query !== 0) sentence.append(", ", el("b", {}, percent(row[0])), " on the class token");
      sentence.append(".");
      ring.hidden = state.query < prefix;
      ring.style.left = 100 * ((state.query - prefix) % columns) / columns + "%";
      ring.style.top = 100 * Math.floor((state.query - prefix) / columns) / rows + "%";
      drawArcs(query, onPatches, others);
      board.style.setProperty("--image", pictures[state.image]);
      table.style.setProperty("--image", small[state.image]);
      Object.keys(pickers).forEach(function (key) {
        pickers[key].querySelectorAll("input").forEach(function (input, index) { input.checked = state[key] === index; });
      });
      thumbs.forEach(function (thumb) { paintThumb(thumb, query); });
    }
    function paintThumb(thumb, query) {
      var shares = weights(state.image, thumb.layer, thumb.head, query).slice(prefix);
      var peak = Math.max.apply(null, shares) || 1, pen = thumb.canvas.getContext("2d");
      var picture = pen.createImageData(columns, rows);
      shares.forEach(function (share, p) { picture.data.set(color(share / peak).concat(255), 4 * p); });
      pen.putImageData(picture, 0, 0);
      var chosen = thumb.layer === state.layer && thumb.head === state.head;
      thumb.button.setAttribute("aria-pressed", String(chosen));
      thumb.button.tabIndex = chosen ? 0 : -1;
    }
    // Up to five patches that get clearly more than an equal share.
    function drawArcs(query, shares, others) {
      svg.replaceChildren();
      board.querySelectorAll(".dot").forEach(function (dot) { dot.remove(); });
      var peak = others.length ? shares[others[0]] : 0, p = query - prefix;
      var x = p < 0 ? columns / 2 : (p % columns) + 0.5, y = p < 0 ? -0.1 : Math.floor(p / columns) + 0.5;
      var mean = shares.reduce(function (a, b) { return a + b; }, 0) / shares.length;
      others.slice(0, 5).forEach(function (to) {
        if (shares[to] < 0.25 * peak || shares[to] < 1.25 * mean) return;
        var tx = (to % columns) + 0.5, ty = Math.floor(to / columns) + 0.5;
        var bend = tx === x ? 0.12 : 0.16 * Math.sign(tx - x);
        var path = document.createElementNS("http://www.w3.org/2000/svg", "path");
        path.setAttribute("d", "M" + x + " " + y + "Q" + ((x + tx) / 2 - bend * (ty - y)) + " " + ((y + ty) / 2 + bend * (tx - x)) + " " + tx + " " + ty);
        path.setAttribute("stroke-width", String(1.5 + 2.5 * shares[to] / peak));
        path.setAttribute("stroke-opacity", String(0.55 + 0.4 * shares[to] / peak));
        svg.append(path);
        var dot = el("span", { class: "dot" });
        dot.style.left = 100 * tx / columns + "%";
        dot.style.top = 100 * ty / rows + "%";
        board.append(dot);
      });
    }

    function repaint() { readPalette(); paint(); }
    repaint();
    var watch = new MutationObserver(repaint); // the page's theme switch, then the system's
    [document.documentElement, document.body].forEach(function (node) { if (node) watch.observe(node, { attributes: true, attributeFilter: ["data-theme", "theme", "class", "data-jp-theme-light"] }); });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  }

  var script = document.currentScript, root = script && script.closest(".vitbook-explorer");
  if (root) start(root);
  else document.querySelectorAll(".vitbook-explorer").forEach(start);
})();
