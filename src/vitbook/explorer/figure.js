// The interactive attention figure. Plain JavaScript, no library; everything it needs is in the
// element around it. It draws into a shadow tree, so that no style of the page reaches in or out.
(function () {
  "use strict";

  function bytes(text) {
    return Uint8Array.from(atob(text), function (c) {
      return c.charCodeAt(0);
    });
  }

  // What the page holds as zlib data, unpacked by the browser.
  function inflate(data) {
    var stream = new Blob([data]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).arrayBuffer().then(function (buffer) {
      return new Uint8Array(buffer);
    });
  }

  // The packed bytes (see pack.py): images, marks, and the maps, read one row of weights at a time:
  // for a head, the mean of heads, or the rollout.
  function readMaps(data, packed) {
    var L = data.layers,
      h = data.heads,
      rows = data.grid[0],
      columns = data.grid[1],
      prefix = data.prefix,
      pool = data.pool;
    var B = data.labels.length,
      patches = rows * columns,
      N = prefix + patches,
      heads = h + (pool > 1 ? 1 : 0),
      at = 0;
    function take(count) {
      return packed.slice(at, (at += count));
    }
    function maps(queries, keys, levels) {
      var count = B * L * heads * queries,
        peaks = new Float32Array(take(4 * count).buffer),
        codes = take(count * keys);
      return function (image, layer, head, query) {
        var from = ((image * L + layer) * heads + head) * queries + query,
          row = new Float64Array(keys);
        for (var k = 0; k < keys; k++)
          row[k] =
            codes[from * keys + k] * codes[from * keys + k] * (peaks[from] / (levels * levels));
        return row;
      };
    }
    var across = Math.ceil(columns / pool),
      M = Math.ceil(rows / pool) * across,
      block = [],
      sizes = new Float64Array(M);
    for (var p = 0; p < patches; p++) {
      block.push(
        Math.floor(Math.floor(p / columns) / pool) * across + Math.floor((p % columns) / pool)
      );
      sizes[block[p]]++;
    }
    var images = take(B * data.size[0] * data.size[1] * data.channels),
      marks = data.marks ? take(B * patches) : null;
    var first = maps(prefix, N, 255),
      rest = maps(M, prefix + M, data.levels),
      mixes = {};

    function one(image, layer, head, query) {
      // what a block gets is spread evenly over its patches
      if (query < prefix) return first(image, layer, head, query);
      var pooled = rest(image, layer, head, block[query - prefix]),
        row = pooled.slice(0, prefix);
      if (pool === 1) return pooled;
      var whole = new Float64Array(N);
      whole.set(row);
      for (var p = 0; p < patches; p++)
        whole[prefix + p] = pooled[prefix + block[p]] / sizes[block[p]];
      return whole;
    }
    function mean(image, layer, query) {
      var sum = new Float64Array(N);
      for (var head = 0; head < h; head++) {
        var row = one(image, layer, head, query);
        for (var k = 0; k < N; k++) sum[k] += row[k] / h;
      }
      return sum;
    }
    // Half residual, half mean attention, rows that sum to one.
    function mix(image, layer) {
      var key = image + ":" + layer,
        all = mixes[key];
      if (all) return all;
      all = mixes[key] = [];
      for (var q = 0; q < N; q++) {
        var row = mean(image, layer, q),
          total = 1,
          k;
        for (k = 0; k < N; k++) total += row[k];
        row[q] += 1;
        for (k = 0; k < N; k++) row[k] /= total;
        all.push(row);
      }
      return all;
    }
    // Abnar & Zuidema 2020, one row of it: down through the layers, from the query to the patches.
    function rollout(image, layer, query) {
      var row = mix(image, layer)[query];
      for (layer--; layer >= 0; layer--) {
        var below = mix(image, layer),
          mixed = new Float64Array(N);
        for (var j = 0; j < N; j++) {
          if (row[j]) for (var k = 0; k < N; k++) mixed[k] += row[j] * below[j][k];
        }
        row = mixed;
      }
      return row;
    }
    function weights(image, layer, head, query) {
      if (head === h) return mean(image, layer, query);
      if (head === h + 1 && pool === 1) return rollout(image, layer, query);
      return one(image, layer, Math.min(head, h), query);
    }
    return { images: images, marks: marks, weights: weights };
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

  var TOP = 6; // even shares at which the scale of even shares ends
  var SHOWN = ["photo", "both", "map"],
    SCALES = [TOP + " even shares", "own largest"];

  function percent(share) {
    var p = 100 * share;
    if (p < 0.1) return "<0.1\u202f%"; // a weight of 0 may be a rounded one
    return (p >= 9.95 ? Math.round(p) : p.toFixed(1)) + "\u202f%";
  }

  // One image: a photograph as it is, strokes as a mask; in the large view as dots of ink.
  function drawImage(data, pixels, index, dots) {
    var H = data.size[0],
      W = data.size[1],
      C = data.channels;
    var canvas = el("canvas"),
      side = C === 1 ? Math.max(4, Math.floor((dots ? 480 : 160) / Math.max(H, W))) : 1;
    canvas.width = W * side;
    canvas.height = H * side;
    var pen = canvas.getContext("2d"),
      from = index * H * W * C;
    if (C === 3) {
      var picture = pen.createImageData(W, H);
      for (var i = 0; i < H * W; i++) {
        for (var c = 0; c < 3; c++) picture.data[4 * i + c] = pixels[from + 3 * i + c];
        picture.data[4 * i + 3] = 255;
      }
      pen.putImageData(picture, 0, 0);
      return canvas.toDataURL();
    }
    for (var y = 0; y < H; y++) {
      for (var x = 0; x < W; x++) {
        var at = from + y * W + x;
        var ink = pixels[at] / 255,
          dot = dots ? side * 0.94 * (0.25 + 0.75 * ink) : side;
        if (ink < 0.04) continue;
        pen.globalAlpha = dots ? 0.35 + 0.65 * ink : ink;
        pen.beginPath();
        if (dots && pen.roundRect)
          pen.roundRect(
            (x + 0.5) * side - dot / 2,
            (y + 0.5) * side - dot / 2,
            dot,
            dot,
            dot * 0.22
          );
        else pen.rect((x + 0.5) * side - dot / 2, (y + 0.5) * side - dot / 2, dot, dot);
        pen.fill();
      }
    }
    return canvas.toDataURL();
  }

  // Unpack, then build; where that fails, the still and the words stay, and a sentence says why.
  function start(root) {
    if (root.vitbookStarted) return;
    root.vitbookStarted = true;
    var data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
    var packed = bytes(data.packed);
    function go(all) {
      unlessAbove(root, function () {
        build(root, data, all);
      });
    }
    if (!data.deflated) return go(packed);
    Promise.resolve(packed)
      .then(inflate)
      .then(go, function () {
        root.querySelector("p").textContent =
          "This browser cannot unpack the maps, so the figure stays still; a newer one can.";
      });
  }

  // What grows above the reader may move the page: there it waits until it is near, or on paper.
  function unlessAbove(root, go) {
    if (root.getBoundingClientRect().bottom > 0) return go();
    var near = new IntersectionObserver(
      function (entries) {
        if (entries[entries.length - 1].isIntersecting) once();
      },
      { rootMargin: "500px" }
    );
    function once() {
      near.disconnect();
      removeEventListener("beforeprint", once);
      go();
    }
    near.observe(root);
    addEventListener("beforeprint", once);
  }

  function build(root, data, packed) {
    var shadow = root.attachShadow({ mode: "open" });
    var rows = data.grid[0],
      columns = data.grid[1],
      prefix = data.prefix,
      patches = rows * columns;
    var read = readMaps(data, packed),
      weights = read.weights,
      pixels = read.images,
      marks = read.marks,
      pool = data.pool;
    function draw(dots) {
      return data.labels.map(function (_, i) {
        return "url(" + drawImage(data, pixels, i, dots) + ")";
      });
    }
    var pictures = draw(true),
      small = data.channels === 3 ? pictures : draw(false);
    var headNames = data.names.concat(
      "mean",
      data.layers > 1 || data.start.head > data.heads ? "rollout" : []
    );
    var photo = data.channels === 3,
      N = prefix + patches;
    var state = Object.assign(
      {
        image: 0,
        query: prefix ? 0 : Math.floor(rows / 2) * columns + Math.floor(columns / 2),
        show: 1,
        scale: data.even ? 0 : 1
      },
      data.start
    );
    var hovered = -1,
      palette = [],
      timer = 0;
    var shades = [],
      seen = -1,
      near = false; // what is painted already, and whether the table is on the screen

    // A query of pooled maps is a block of patches, called by its first one.
    function anchor(token) {
      if (token < prefix || pool === 1) return token;
      var p = token - prefix,
        row = Math.floor(p / columns),
        column = p % columns;
      return prefix + (row - (row % pool)) * columns + column - (column % pool);
    }
    function span(word, from, last, side) {
      var to = Math.min(last, from + side);
      return to === from + 1 ? word + " " + to : word + "s " + (from + 1) + " to " + to;
    }
    function place(token, side) {
      var p = token - prefix;
      return (
        span("row", Math.floor(p / columns), rows, side || 1) +
        ", " +
        span("column", p % columns, columns, side || 1)
      );
    }
    function name(token) {
      if (token >= prefix) return place(anchor(token), pool);
      return token === 0 ? "class token" : "prefix token " + (token + 1);
    }
    function theName(token) {
      return token < prefix ? "the " + name(token) : name(token);
    }
    function headName(head) {
      return head < data.heads
        ? "head " + headNames[head]
        : head === data.heads
          ? "mean of heads"
          : "rollout";
    }

    // --- the elements ---
    var tokens = [];
    function tokenButton(token, className) {
      var button = el("button", {
        type: "button",
        role: "radio",
        class: className,
        "aria-label": name(token),
        "aria-checked": "false",
        tabindex: "-1",
        onclick: function () {
          hovered = -1;
          choose({ query: anchor(token) });
        },
        onpointerenter: function (event) {
          if (event.pointerType === "mouse") {
            hovered = anchor(token);
            paint();
          }
        }
      });
      tokens[token] = button;
      return button;
    }
    var heading = el("span");
    var prefixRow = el("div", { class: "tokens" });
    for (var i = 0; i < prefix; i++) {
      var pill = tokenButton(i, "token");
      pill.append(name(i));
      prefixRow.append(pill);
    }
    var board = el("div", { class: "board" }),
      ring = el("div", { class: "ring" });
    var across = data.size[1] / data.size[0];
    board.style.gridTemplate = "repeat(" + rows + ", 1fr) / repeat(" + columns + ", 1fr)";
    board.style.aspectRatio = String(across);
    if (columns > 10) board.classList.add("fine");
    if (across < 1) board.style.width = 100 * across + "%";
    for (i = 0; i < patches; i++) board.append(tokenButton(prefix + i, "patch"));
    var svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("class", "arcs");
    svg.setAttribute("viewBox", "0 0 " + columns + " " + rows);
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-hidden", "true");
    var values = el("div", { class: "values", "aria-hidden": "true" });
    board.append(el("div", { class: "strokes" }), svg, values, ring);
    var field = el("div", {
      role: "radiogroup",
      "aria-label": "Query token: whose attention is shown",
      onkeydown: moveQuery,
      onpointerleave: function () {
        hovered = -1;
        paint();
      }
    });
    if (prefix) field.append(prefixRow);
    field.append(board);
    var ramp = el("div", { class: "ramp" }),
      top = el("span"),
      unit = el("p", { class: "unit" }),
      sentence = el("p", { class: "sentence" });
    var live = el("p", { class: "live", "aria-live": "polite" });

    function radios(title, className, labels, key) {
      var bar = el("div", { class: "bar " + className + (labels.length > 8 ? " long" : "") });
      var group = key + Math.random().toString(36).slice(2);
      labels.forEach(function (label, index) {
        var input = el("input", {
          type: "radio",
          name: group,
          checked: state[key] === index,
          onchange: function () {
            var change = {};
            change[key] = index;
            choose(change);
          }
        });
        bar.append(
          el("label", { class: label.textContent.length > 2 ? "wide" : "" }, input, label)
        );
      });
      return el("fieldset", { class: "of-" + key }, el("legend", {}, title), bar);
    }
    function spans(words) {
      return words.map(function (word) {
        return el("span", {}, word);
      });
    }
    var layerNames = [];
    for (i = 0; i < data.layers; i++) layerNames.push(String(i + 1));
    var imageChips = data.labels.map(function (label, index) {
      var chip = el("span", {}),
        picture = el("div", { class: "chip" });
      picture.style.cssText =
        "position:relative;width:2.75rem;aspect-ratio:" + across + ";--image:" + small[index];
      picture.append(el("div", { class: "strokes" }));
      chip.append(picture, el("em", {}, label));
      return chip;
    });
    var pickers = data.layers > 1 ? { layer: radios("Layer", "", spans(layerNames), "layer") } : {};
    pickers.head = radios("Head", "", spans(headNames), "head");
    var controls = el("div", {
      class: "controls",
      onkeydown: function (event) {
        if (event.key.startsWith("Arrow")) event.stopPropagation();
      } // else the page turns
    });
    if (data.labels.length > 1) controls.append(radios("Image", "images", imageChips, "image"));
    if (photo) {
      pickers.show = radios("Show", "", spans(SHOWN), "show");
      pickers.scale = radios("Strongest colour", "", spans(SCALES), "scale");
    }
    Object.keys(pickers).forEach(function (key) {
      controls.append(pickers[key]);
    });
    controls.append(
      el(
        "details",
        {},
        el("summary", {}, "How to use this figure"),
        el(
          "p",
          {},
          "Point at a patch to see where it looks, or click or tap it to keep it. With the keyboard, move to the " +
            "patches with Tab and walk over them with the arrow keys" +
            (prefix ? "; Escape goes back to the class token" : "") +
            ". The small pictures choose layer and head; arrow keys walk over them as well." +
            (data.layers > 1
              ? " Rollout follows the mean of the heads down to the patches, through all layers up to the chosen one."
              : "")
        )
      )
    );

    var table = el("div", {
      class: "table",
      role: "group",
      "aria-label": "Every layer and head",
      onkeydown: moveThumb
    });
    table.style.setProperty("--columns", headNames.length);
    var overlaid = !photo || data.layers * headNames.length <= 48; // on so many a photograph is only noise
    table.append(el("span"));
    headNames.forEach(function (word, head) {
      table.append(
        el(
          "span",
          {},
          head < data.heads && data.heads < 7 && word.length < 3 ? "head " + word : word
        )
      );
    });
    var thumbs = [];
    layerNames.forEach(function (word, layer) {
      table.append(el("span", { class: "layer" }, el("span", {}, "layer "), word));
      headNames.forEach(function (_, head) {
        var canvas = el("canvas", { width: columns, height: rows }),
          frame = el("i", {}, canvas, overlaid ? el("div", { class: "strokes" }) : "");
        frame.style.aspectRatio = String(across);
        var button = el(
          "button",
          {
            type: "button",
            class: "thumb",
            "aria-pressed": "false",
            tabindex: "-1",
            "aria-label": "layer " + word + ", " + headName(head),
            onclick: function () {
              choose({ layer: layer, head: head });
            }
          },
          frame,
          el("small", { "aria-hidden": "true" }, headNames[head])
        );
        thumbs.push({ button: button, canvas: canvas, layer: layer, head: head });
        table.append(button);
      });
    });
    var seenFrom = el("small"),
      every = el("span");
    var style = el("style");
    style.textContent = data.css;
    var card = el(
      "div",
      { class: "card" + (photo ? " photo" : "") + (data.heads > 4 ? " many" : "") },
      el(
        "div",
        { class: "stage" },
        el("p", { class: "title" }, heading),
        field,
        el("div", { class: "scale", "aria-hidden": "true" }, "0", ramp, top),
        unit,
        sentence,
        marks ? el("p", { class: "note" }, el("span", { class: "key" }), data.marks) : "",
        live
      ),
      controls,
      el(
        "div",
        { class: "heads" },
        el("p", { class: "title" }, every, seenFrom),
        el("div", { class: "scroll" }, table)
      )
    );
    card.setAttribute("role", "group");
    card.setAttribute("aria-label", data.title);
    shadow.append(
      style,
      data.warning ? el("p", { class: "warning", role: "note" }, data.warning) : "",
      card,
      data.notes.length ? el("ul", { class: "notes" }) : ""
    );
    data.notes.forEach(function (note) {
      shadow.lastChild.append(el("li", {}, note));
    });
    // Where not all small pictures fit side by side, those of the chosen layer are shown, larger.
    function narrow() {
      return card.lastChild.clientWidth < 48 * headNames.length + 52;
    }
    card.classList.toggle("folded", narrow()); // before it is seen
    new ResizeObserver(function () {
      if (narrow() === card.classList.contains("folded")) return;
      card.classList.toggle("folded");
      paint();
    }).observe(card.lastChild);
    new IntersectionObserver(
      function (entries) {
        near = entries[entries.length - 1].isIntersecting;
        if (near) paint();
      },
      { rootMargin: "300px" }
    ).observe(table);

    // --- choosing ---
    function choose(change) {
      Object.assign(state, change);
      paint();
      clearTimeout(timer); // spoken once the reader stops moving
      timer = setTimeout(function () {
        live.textContent = spoken(Object.keys(change)[0]);
      }, 200);
    }
    function spoken(changed) {
      if (changed === "show") return "Shown: " + SHOWN[state.show] + ".";
      if (changed === "scale") return "Strongest colour: " + SCALES[state.scale] + ".";
      var over = weights(state.image, state.layer, state.head, state.query)
        .slice(prefix)
        .filter(function (share) {
          return share * N > 1;
        });
      return (
        (data.labels.length > 1 ? data.labels[state.image] + ": " : "") +
        heading.textContent +
        ", layer " +
        (state.layer + 1) +
        ", " +
        headName(state.head) +
        ": " +
        sentence.textContent +
        " More than an even share: " +
        over.length +
        " of " +
        patches +
        " patches."
      );
    }
    function moveQuery(event) {
      var p = state.query - prefix,
        to = null;
      var row = Math.floor(p / columns),
        column = p % columns;
      if (state.query < prefix) {
        if (event.key === "ArrowLeft") to = Math.max(0, state.query - 1);
        else if (event.key === "ArrowRight") to = state.query + 1;
        else if (event.key === "ArrowDown") to = prefix + Math.floor(columns / 2);
      } else if (event.key === "ArrowLeft") to = state.query - (column ? pool : 0);
      else if (event.key === "ArrowRight") to = state.query + (column + pool < columns ? pool : 0);
      else if (event.key === "ArrowUp")
        to = row ? state.query - pool * columns : prefix ? 0 : state.query;
      else if (event.key === "ArrowDown")
        to = state.query + (row + pool < rows ? pool * columns : 0);
      if (event.key === "Home") to = prefix;
      if (event.key === "End") to = prefix + patches - 1;
      if (event.key === "Escape" && prefix) to = 0;
      if (to === null) return;
      to = anchor(to);
      event.preventDefault();
      event.stopPropagation(); // notebooks use the arrow keys too
      hovered = -1;
      choose({ query: to });
      tokens[to].focus({ preventScroll: false });
    }
    function moveThumb(event) {
      var step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[
        event.key
      ];
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
      var stops = getComputedStyle(root)
        .getPropertyValue("--vb-heat")
        .trim()
        .split(/\s+/)
        .map(function (hex) {
          return [1, 3, 5].map(function (at) {
            return parseInt(hex.slice(at, at + 2), 16);
          });
        });
      palette = [];
      for (var i = 0; i < 256; i++) {
        var at = (i / 255) * (stops.length - 1),
          low = Math.min(stops.length - 2, Math.floor(at));
        palette.push(
          [0, 1, 2].map(function (c) {
            return Math.round(stops[low][c] + (at - low) * (stops[low + 1][c] - stops[low][c]));
          })
        );
      }
      ramp.style.background =
        "linear-gradient(to right, " +
        stops.map(function (s) {
          return "rgb(" + s + ")";
        }) +
        ")";
    }
    function color(share, peak) {
      return palette[Math.round(255 * Math.min(1, state.scale ? share / peak : (share * N) / TOP))];
    }

    // Only what changed is written: a step of the query has to be cheap on a slow machine.
    function say(node, words) {
      if (node.textContent !== words) node.textContent = words;
    }
    function paint() {
      var query = hovered >= 0 ? hovered : state.query;
      var row = weights(state.image, state.layer, state.head, query);
      var onPatches = row.slice(prefix),
        peak = Math.max.apply(null, onPatches) || 1;
      var others = [];
      onPatches.forEach(function (share, p) {
        var shade = "rgb(" + color(share, peak) + ")";
        if (shades[p] !== shade) tokens[prefix + p].style.backgroundColor = shades[p] = shade;
        if (marks)
          tokens[prefix + p].classList.toggle("marked", marks[state.image * patches + p] === 1);
        if (anchor(prefix + p) !== query) others.push(p);
      });
      others.sort(function (a, b) {
        return onPatches[b] - onPatches[a];
      });
      for (var t = 0; t < prefix; t++) {
        var shade = color(row[t], peak);
        tokens[t].style.backgroundColor = "rgb(" + shade + ")";
        tokens[t].style.color =
          0.299 * shade[0] + 0.587 * shade[1] + 0.114 * shade[2] > 115 ? "#11161f" : "#ffffff";
      }
      tokens.forEach(function (button, token) {
        var chosen = token === state.query;
        if (chosen === (button.tabIndex === 0)) return;
        button.setAttribute("aria-checked", String(chosen));
        button.tabIndex = chosen ? 0 : -1;
      });
      ring.hidden = state.query < prefix;
      var wide = Math.min(pool, columns - ((state.query - prefix) % columns)),
        high = Math.min(pool, rows - Math.floor((state.query - prefix) / columns));
      ring.style.width = (100 * wide) / columns + "%";
      ring.style.height = (100 * high) / rows + "%";
      ring.style.transform =
        "translate(" +
        (100 * ((state.query - prefix) % columns)) / wide +
        "%, " +
        (100 * Math.floor((state.query - prefix) / columns)) / high +
        "%)";
      if ("moving" in root.dataset) return say(heading, "Where patches look"); // the page shows it off
      say(heading, "Where " + theName(query) + " looks");
      say(seenFrom, "seen from " + theName(query));
      say(top, state.scale ? percent(peak) : TOP + " or more");
      ramp.classList.toggle("even", !state.scale);
      say(
        unit,
        photo
          ? (state.scale
              ? "Share of all attention. Each map has a scale of its own, which flatters it."
              : "In even shares, one scale for all maps: 1 (the mark) is 1/" +
                N +
                " of all attention; from " +
                TOP +
                " on all look alike.") +
              (state.show === 1
                ? " Lower half of the bar: over the darkest parts of the photograph."
                : "")
          : ""
      );
      sentence.replaceChildren();
      var first = strongest(onPatches, others, query);
      first.forEach(function (p, i) {
        var at =
          place(prefix + p, query < prefix ? 1 : pool) +
          (photo ? " (" + (onPatches[p] * N).toFixed(1) + (i ? ")" : " even shares)") : "");
        if (i) sentence.append((i > 1 ? " and " : "then ") + at);
        else sentence.append(el("b", {}, percent(onPatches[p])), " on " + at + ", ");
      });
      if (first.length > 1) sentence.append("; ");
      if (others.length && !first.length)
        sentence.append(el("b", {}, "<0.1\u202f%"), " on any other patch, ");
      sentence.append(el("b", {}, percent(itself(row, query))), " on itself");
      if (prefix && query !== 0)
        sentence.append(", ", el("b", {}, percent(row[0])), " on the class token");
      sentence.append(".");
      card.dataset.show = SHOWN[state.show];
      if (photo) drawValues(onPatches, others);
      else drawArcs(query, onPatches, others);
      if (seen !== state.image) {
        seen = state.image;
        board.style.setProperty("--image", pictures[seen]);
        table.style.setProperty("--image", small[seen]);
      }
      say(
        every,
        card.classList.contains("folded")
          ? "Every head of layer " + (state.layer + 1)
          : "Every head at once"
      );
      Object.keys(pickers).forEach(function (key) {
        pickers[key].querySelectorAll("input").forEach(function (input, index) {
          input.checked = state[key] === index;
        });
      });
      thumbs.forEach(markThumb);
      if (near || matchMedia("print").matches)
        thumbs.forEach(function (thumb) {
          paintThumb(thumb, query);
        });
    }
    function markThumb(thumb) {
      var chosen = thumb.layer === state.layer && thumb.head === state.head;
      thumb.button.setAttribute("aria-pressed", String(chosen));
      thumb.button.classList.toggle("here", thumb.layer === state.layer);
      thumb.button.tabIndex = chosen ? 0 : -1;
    }
    function paintThumb(thumb, query) {
      var shares = weights(state.image, thumb.layer, thumb.head, query).slice(prefix);
      var peak = Math.max.apply(null, shares) || 1,
        pen = thumb.canvas.getContext("2d");
      var picture = pen.createImageData(columns, rows);
      shares.forEach(function (share, p) {
        picture.data.set(color(share, peak).concat(255), 4 * p);
      });
      pen.putImageData(picture, 0, 0);
      thumb.button.setAttribute(
        "aria-description",
        "most on " + place(prefix + shares.indexOf(peak))
      );
    }
    // What a query gives to its own block of patches.
    function itself(row, query) {
      return row.reduce(function (sum, share, token) {
        return anchor(token) === query ? sum + share : sum;
      }, 0);
    }
    // Up to three patches, or blocks of them, that get most, if that is 0.1 % or more; without a photograph one.
    function strongest(shares, others, query) {
      return others
        .filter(function (p) {
          return shares[p] >= 0.001 && (query < prefix || anchor(prefix + p) === prefix + p);
        })
        .slice(0, photo ? 3 : 1);
    }
    // On up to three patches that get two even shares or more, how many; beside another number, where
    // patches are narrow, there is no room for one.
    function drawValues(shares, others) {
      var shown = [];
      values.replaceChildren();
      if (state.show === 0 || (pool > 1 && state.query >= prefix)) return;
      function crowded(p, q) {
        return Math.floor(p / columns) === Math.floor(q / columns) && Math.abs(p - q) < columns / 8;
      }
      others.slice(0, 3).forEach(function (p) {
        if (
          shares[p] * N < 2 ||
          shown.some(function (q) {
            return crowded(p, q);
          })
        )
          return;
        shown.push(p);
        var value = el("span", {}, (shares[p] * N).toFixed(1));
        var inward = (p % columns) / Math.max(1, columns - 1); // at an edge it ends with its patch
        value.style.left = (100 * ((p % columns) + inward)) / columns + "%";
        value.style.translate = -100 * inward + "% -50%";
        value.style.top = (100 * (Math.floor(p / columns) + 0.5)) / rows + "%";
        values.append(value);
      });
    }
    // Up to five patches that get clearly more than an equal share.
    function drawArcs(query, shares, others) {
      svg.replaceChildren();
      board.querySelectorAll(".dot").forEach(function (dot) {
        dot.remove();
      });
      var peak = others.length ? shares[others[0]] : 0,
        p = query - prefix;
      var x = p < 0 ? columns / 2 : (p % columns) + 0.5,
        y = p < 0 ? -0.1 : Math.floor(p / columns) + 0.5;
      var mean =
        shares.reduce(function (a, b) {
          return a + b;
        }, 0) / shares.length;
      others.slice(0, 5).forEach(function (to) {
        if (shares[to] < 0.25 * peak || shares[to] < 1.25 * mean) return;
        var tx = (to % columns) + 0.5,
          ty = Math.floor(to / columns) + 0.5;
        var bend = tx === x ? 0.12 : 0.16 * Math.sign(tx - x);
        var path = document.createElementNS("http://www.w3.org/2000/svg", "path");
        path.setAttribute(
          "d",
          "M" +
            x +
            " " +
            y +
            "Q" +
            ((x + tx) / 2 - bend * (ty - y)) +
            " " +
            ((y + ty) / 2 + bend * (tx - x)) +
            " " +
            tx +
            " " +
            ty
        );
        path.setAttribute("stroke-width", String(1.5 + (2.5 * shares[to]) / peak));
        path.setAttribute("stroke-opacity", String(0.55 + (0.4 * shares[to]) / peak));
        svg.append(path);
        var dot = el("span", { class: "dot" });
        dot.style.left = (100 * tx) / columns + "%";
        dot.style.top = (100 * ty) / rows + "%";
        board.append(dot);
      });
    }

    function repaint() {
      readPalette();
      paint();
    }
    repaint();
    var watch = new MutationObserver(repaint); // the page's theme switch, then the system's
    [document.documentElement, document.body].forEach(function (node) {
      if (node)
        watch.observe(node, {
          attributes: true,
          attributeFilter: ["data-theme", "theme", "class", "data-jp-theme-light"]
        });
    });
    ["(prefers-color-scheme: dark)", "print"].forEach(function (query) {
      matchMedia(query).addEventListener("change", repaint);
    });
  }

  var script = document.currentScript,
    root = script && script.closest(".vitbook-explorer");
  if (root) start(root);
  else document.querySelectorAll(".vitbook-explorer").forEach(start);
})();
