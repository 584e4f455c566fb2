// The model of the matching pairs and what was cut in it: an image, the view of a reader (layer,
// head, query), cuts, and the answers without and with them. Nothing here is drawn. `changed(words)`
// is called after each thing that a reader did, with no words where only the view changed.
(function () {
  "use strict";

  const SHOWN = 5,
    LEAST = 0.025; // arrows drawn: how many, and the weakest
  const { decode, decodeAll, number, place, vit } = vitbook.live;

  function cutGame(data, changed) {
    const net = vit(data.model.settings, decodeAll(data.model.weights));
    const { layers: L, heads: h, N, rows, columns } = net;
    const size = data.model.settings.image_size,
      P = data.model.settings.patch_size;
    const pictures = decode(data.images),
      ink = decode(data.glyphs),
      [kinds, side] = data.glyphs.shape;
    // head: h means all. cuts: what was cut at one time, {arrows: [index...], name, row (whose it is, if
    // it is one), promise, rows (how many), before, after}.
    const state = {
      picture: 0,
      own: false,
      layer: 0,
      head: h,
      query: 0,
      image: null,
      glyphs: [],
      cuts: [],
      guess: null
    };
    let base, now; // the answers without and with the cuts

    // --- what is so ---

    const lead = (answer) => answer.logits[1] - answer.logits[0];
    const way = (from, to) => (to - from) / (0 - from); // 1 = the answer turns
    const arrowAt = (layer, head, query, key) => ((layer * h + head) * N + query) * N + key;
    const headsOf = (head) => (head === h ? Array.from({ length: h }, (_, i) => i) : [head]);
    const names = (head) => (head === h ? "all heads" : `head ${head + 1}`);
    const isCut = (arrow) => state.cuts.some((cut) => cut.arrows.includes(arrow));
    const allCut = () => new Set(state.cuts.flatMap((cut) => cut.arrows));
    const count = () => allCut().size;
    // In one head, or the mean of all.
    function weightIn(answer, layer, head, query, key) {
      const chosen = headsOf(head);
      return (
        chosen.reduce((sum, one) => sum + answer.maps[layer][(one * N + query) * N + key], 0) /
        chosen.length
      );
    }
    const weight = (answer, query, key) => weightIn(answer, state.layer, state.head, query, key);
    // Of the arrow in each chosen head.
    const arrowsTo = (query, key) =>
      headsOf(state.head).map((head) => arrowAt(state.layer, head, query, key));
    const goneTo = (query, key) => arrowsTo(query, key).every(isCut);
    const cutsIn = (layer, head) =>
      head === h
        ? 0
        : [...allCut()].filter((arrow) => Math.floor(arrow / (N * N)) === layer * h + head).length;
    const glyphIn = (patch) => state.glyphs.find((glyph) => glyph.patch === patch);
    const glyphHere = () => glyphIn(state.query);
    const nameOf = (glyph) => data.names[glyph.kind];
    // A place, with the name of the glyph that stands there.
    const where = (patch) =>
      place(patch, columns) + (glyphIn(patch) ? ` (${nameOf(glyphIn(patch))})` : "");

    // The arrows of the query that are worth drawing, the thickest first; those that are cut stay.
    function shownKeys() {
      const keys = Array.from({ length: N }, (_, key) => key).filter((key) => key !== state.query);
      const size = (key) => Math.max(weight(base, state.query, key), weight(now, state.query, key));
      keys.sort((a, b) => size(b) - size(a));
      return keys.filter(
        (key, i) => goneTo(state.query, key) || (i < SHOWN && (i === 0 || size(key) >= LEAST))
      );
    }
    // The thickest of them that is left, or -1.
    function strongest() {
      let best = -1;
      for (const key of shownKeys()) {
        if (
          !goneTo(state.query, key) &&
          (best < 0 || weight(now, state.query, key) > weight(now, state.query, best))
        )
          best = key;
      }
      return best;
    }

    // The head with the thickest arrow of the query.
    function boldest() {
      const thickest = (head) =>
        Math.max(
          ...Array.from({ length: N }, (_, key) =>
            key === state.query ? 0 : weightIn(base, state.layer, head, state.query, key)
          )
        );
      return headsOf(h).reduce((best, head) => (thickest(head) > thickest(best) ? head : best), 0);
    }

    function answer(cuts) {
      const arrows = new Uint8Array(L * h * N * N);
      for (const cut of cuts) for (const arrow of cut.arrows) arrows[arrow] = 1;
      return net.forward(state.image, { arrows });
    }

    // --- what a reader does ---

    function restart() {
      state.cuts = [];
      state.guess = null;
      base = now = answer([]);
    }
    function open(index) {
      const one = data.pictures[index];
      Object.assign(state, {
        picture: index,
        own: false,
        image: pictures.slice(index * size * size, (index + 1) * size * size)
      });
      state.glyphs = one.patches.map((patch, i) => ({ patch, kind: one.kinds[i] }));
      state.query = one.patches[1];
      restart();
    }
    function next() {
      open((state.picture + 1) % data.pictures.length);
      changed(`Image ${state.picture + 1}. `);
    }
    function choose(change) {
      Object.assign(state, change);
      changed("");
    }

    function cut(arrows, name, row = "") {
      const fresh = arrows.filter((arrow) => !isCut(arrow));
      if (!fresh.length) return;
      const held = new Set(fresh.map((arrow) => Math.floor(arrow / N)));
      let promise = 0;
      for (const arrow of fresh)
        promise += now.maps[Math.floor(arrow / (h * N * N))][arrow % (h * N * N)];
      const made = { arrows, name, row, promise, rows: held.size, before: lead(now) };
      state.cuts.push(made);
      now = answer(state.cuts);
      made.after = lead(now);
      changed(`Cut: ${name}. `);
    }
    function restore(...made) {
      state.cuts = state.cuts.filter((one) => !made.includes(one));
      let before = lead(base);
      state.cuts.forEach((one, i) => {
        // what each did, in the order in which they stand now
        one.before = before;
        before = one.after = lead(answer(state.cuts.slice(0, i + 1)));
      });
      now = answer(state.cuts);
      changed(`Restored: ${made.map((one) => one.name).join("; ")}. `);
    }
    const canRestore = () => state.own || state.cuts.length > 0;
    function restoreAll() {
      if (!canRestore()) return;
      if (state.own) open(state.picture);
      else restart();
      changed("All restored. ");
    }
    function toggle(query, key) {
      const arrows = arrowsTo(query, key),
        from = `layer ${state.layer + 1}, ${names(state.head)}`;
      if (arrows.every(isCut))
        restore(...state.cuts.filter((one) => arrows.some((arrow) => one.arrows.includes(arrow))));
      else
        cut(
          arrows,
          `${from}, ${where(query)} to ${where(key)}`,
          `${place(query, columns)} takes in ${from}`
        );
    }
    function cutStrongest() {
      const key = strongest();
      if (key >= 0) toggle(state.query, key);
    }
    function cutHead() {
      const arrows = [];
      for (const head of headsOf(state.head))
        for (let q = 0; q < N; q++)
          for (let k = 0; k < N; k++) if (q !== k) arrows.push(arrowAt(state.layer, head, q, k));
      cut(arrows, `layer ${state.layer + 1}, ${names(state.head)}, all arrows between patches`);
    }
    function cutPatch() {
      const key = state.query,
        arrows = [];
      for (let layer = 0; layer < L; layer++)
        for (let head = 0; head < h; head++)
          for (let q = 0; q < N; q++) if (q !== key) arrows.push(arrowAt(layer, head, q, key));
      cut(arrows, `all arrows to ${where(key)}`);
    }

    // The index of a pixel of a patch, `inset` pixels in.
    const pixelOf = (patch, y, x, inset = 0) =>
      (Math.floor(patch / columns) * P + inset + y) * size + (patch % columns) * P + inset + x;
    // Two patches change places: as glyphs stand alike in their patches, the image stays one of its kind.
    function swap(from, to) {
      for (let y = 0; y < P; y++) {
        for (let x = 0; x < P; x++) {
          const one = pixelOf(from, y, x),
            other = pixelOf(to, y, x),
            kept = state.image[one];
          state.image[one] = state.image[other];
          state.image[other] = kept;
        }
      }
      for (const glyph of state.glyphs)
        glyph.patch = glyph.patch === from ? to : glyph.patch === to ? from : glyph.patch;
      state.own = true;
      state.query = to;
      restart();
      changed(`${place(to, columns)} has the ${nameOf(glyphHere())} now. `);
    }
    // Where ink comes or goes, a pixel v becomes 1 - v: the noise on ink and on paper is alike.
    function change(glyph, kind) {
      for (let y = 0; y < side; y++) {
        for (let x = 0; x < side; x++) {
          const pixel = y * side + x;
          if (ink[glyph.kind * side * side + pixel] === ink[kind * side * side + pixel]) continue;
          const at = pixelOf(glyph.patch, y, x, data.offset);
          state.image[at] = Math.fround(1 - state.image[at]);
        }
      }
      const before = nameOf(glyph);
      glyph.kind = kind;
      state.own = true;
      restart();
      changed(`The ${before} is a ${nameOf(glyph)} now. `);
    }

    // --- in words ---

    function sentence() {
      const key = strongest(),
        of =
          state.head === h
            ? `Mean of layer ${state.layer + 1}`
            : `Layer ${state.layer + 1}, head ${state.head + 1}`;
      const most = key < 0 ? "" : `${number(weight(now, state.query, key))} from ${where(key)}, `;
      const gone = Array.from({ length: N }, (_, k) => k).filter(
        (k) => k !== state.query && goneTo(state.query, k)
      );
      const cannot = gone.length
        ? ` It may not look at ${gone.length > 2 ? `${gone.length} patches` : gone.map(where).join(" and ")}.`
        : "";
      return `${of}: ${where(state.query)} takes ${most}${number(weight(now, state.query, state.query))} from itself; a row sums to one.${cannot}`;
    }

    return {
      L,
      h,
      N,
      rows,
      columns,
      size,
      kinds,
      side,
      ink,
      state,
      way,
      names,
      headsOf,
      count,
      weightIn,
      weight,
      goneTo,
      cutsIn,
      glyphIn,
      glyphHere,
      where,
      shownKeys,
      strongest,
      sentence,
      boldest,
      canRestore,
      open,
      next,
      choose,
      restore,
      restoreAll,
      toggle,
      cutStrongest,
      cutHead,
      cutPatch,
      swap,
      change,
      get base() {
        return base;
      },
      get now() {
        return now;
      },
      get was() {
        return lead(base);
      },
      get lead() {
        return lead(now);
      },
      get rowsCut() {
        return state.cuts.reduce((sum, one) => sum + one.rows, 0);
      },
      get promised() {
        return state.cuts.reduce((sum, one) => sum + one.promise, 0);
      },
      get truth() {
        return new Set(state.glyphs.map((glyph) => glyph.kind)).size === 1;
      }, // both shapes are the same
      pictures: data.pictures.length,
      glyphNames: data.names,
      get best() {
        return state.own ? 0 : data.pictures[state.picture].cuts.length;
      } // arrows, the fewest known; 0: none
    };
  }

  vitbook.live.cutGame = cutGame;
})();
