// From strokes to the image that the digit model knows, step by step what
// experiments/drawn_digits/strokes.py computes: moved and scaled so that the longer side of the ink
// takes 20 of 28 pixels and its centre of mass stands in the middle; the pen keeps its width.
(function () {
  "use strict";

  const SIDE = 28,
    BOX = 20,
    PEN = 0.08,
    LARGEST = 6;

  // Both ends of every line between neighbouring points: [x0, y0, x1, y1]; a lone point is a line.
  function segments(strokes) {
    return strokes.flatMap((stroke) =>
      stroke.length === 1
        ? [[...stroke[0], ...stroke[0]]]
        : stroke.slice(1).map((end, i) => [...stroke[i], ...end])
    );
  }

  function placed(lines, pen) {
    const xs = lines.flatMap((l) => [l[0], l[2]]),
      ys = lines.flatMap((l) => [l[1], l[3]]);
    const low = [Math.min(...xs), Math.min(...ys)],
      high = [Math.max(...xs), Math.max(...ys)];
    const scale = Math.min(
      (BOX - pen) / Math.max(high[0] - low[0], high[1] - low[1], 1e-9),
      LARGEST * SIDE
    );
    let lengths = lines.map((l) => Math.hypot(l[2] - l[0], l[3] - l[1])),
      total = lengths.reduce((a, b) => a + b, 0);
    if (!total) {
      lengths = lines.map(() => 1);
      total = lines.length;
    }
    const edge = SIDE / 2 - pen / 2,
      shift = [0, 1].map((axis) => {
        const centre =
          lines.reduce((sum, l, i) => sum + (lengths[i] * (l[axis] + l[axis + 2])) / 2, 0) / total;
        return (
          Math.max(
            Math.min(-centre * scale, edge - high[axis] * scale),
            -edge - low[axis] * scale
          ) +
          SIDE / 2
        );
      });
    return lines.map((l) => l.map((value, i) => value * scale + shift[i % 2]));
  }

  // strokes: [[[x, y], ...], ...] and width in sides of the board -> Float64Array of 28 * 28 in 0 ... 1.
  function drawn(strokes, width = PEN) {
    const image = new Float64Array(SIDE * SIDE),
      lines = segments(strokes),
      pen = SIDE * width;
    if (!lines.length) return image;
    const ends = placed(lines, pen);
    for (let row = 0; row < SIDE; row++) {
      for (let column = 0; column < SIDE; column++) {
        let least = Infinity;
        for (const [x, y, toX, toY] of ends) {
          const right = column + 0.5 - x,
            below = row + 0.5 - y,
            across = toX - x,
            down = toY - y;
          const length = Math.max(across * across + down * down, 1e-12);
          const share = Math.min(Math.max((right * across + below * down) / length, 0), 1);
          const dx = right - share * across,
            dy = below - share * down;
          least = Math.min(least, dx * dx + dy * dy);
        }
        image[row * SIDE + column] = Math.min(Math.max(0.5 + pen / 2 - Math.sqrt(least), 0), 1);
      }
    }
    return image;
  }

  globalThis.vitbook.live.pen = { drawn, PEN, SIDE };
})();
