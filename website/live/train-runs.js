// One or two models that learn side by side from the same batches, their curves, and what an
// experiment (train_experiments.py) reads and cuts.
(function () {
  "use strict";
  const { read, recipe, settings, written } = vitbook.trainSettings;

  // chosen: {A, B}, B or null; loaded: what engine.load gave, one for each; arrays: images, labels,
  // glyphs; choosing: other images are held out; drawn: there will be curves.
  function runs(chosen, loaded, arrays, planned = null, { choosing = false, drawn = true } = {}) {
    const all = Object.entries(chosen)
      .filter(([, one]) => one)
      .map(([name, one], i) => {
        const task = vitbook.training.TASKS[one.task](arrays, choosing);
        const run = vitbook.training.run(task, settings(one), loaded[i], recipe(one));
        const said = written({ A: one }) || "as at first";
        return { name, one, task, run, said, marks: [], rows: [], sum: 0, count: 0 };
      });
    const called = (name) => all.find((one) => one.name === name);

    // A row of the curves: after how many updates; the loss is the mean since the row before.
    function measure(one) {
      const loss = one.count ? one.sum / one.count : null;
      one.rows.push({ at: one.run.steps, ...one.run.accuracy(), loss });
      one.sum = one.count = 0;
    }

    // A part becomes another one, in this run.
    function set(name, key, value) {
      const here = called(name);
      here.one[key] = value;
      here.run.net.set(settings(here.one));
      here.run.setRate(Number(here.one.rate));
      here.marks.push(here.run.steps);
      measure(here);
    }

    const reads = (one, at) =>
      planned?.reads.some(([name, , when]) => name === one.name && when === at);

    // One update of each; true where the experiment has come to its end.
    function update() {
      for (const one of all) {
        one.sum += one.run.step();
        one.count += 1;
        const { steps } = one.run;
        if ((drawn && steps % (steps < 100 ? 5 : 20) === 0) || reads(one, steps)) measure(one);
      }
      const { steps } = all[0].run;
      for (const [at, name, key, value] of planned?.cuts ?? [])
        if (at === steps) set(name, key, value);
      return planned?.until === steps;
    }

    all.forEach(measure);
    return {
      all,
      update,
      set,
      // What the experiment read, in percent; before a cut that comes after as many updates.
      values: () =>
        planned.reads.map(([name, key, when]) =>
          Math.round(100 * called(name).rows.find(({ at }) => at === when)[key])
        ),
      // As a chart draws them.
      curves: () =>
        all.map(({ name, rows, marks }) => ({
          name,
          marks,
          points: Object.fromEntries(
            ["held", "known", "loss"].map((key) => [
              key,
              rows.filter((row) => Number.isFinite(row[key])).map((row) => [row.at, row[key]])
            ])
          )
        }))
    };
  }

  // The setting of an experiment, with a seed.
  function starts(experiment, seed) {
    const { A, B } = read(experiment.starts);
    return { A: { ...A, seed }, B: B && { ...B, seed } };
  }

  vitbook.trainRuns = { runs, starts };
})();
