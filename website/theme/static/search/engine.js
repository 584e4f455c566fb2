// Finds the places of the book (website/theme/search.py) that answer a few words.
//
// A word counts more in a heading or among a section's keywords, and the rarer it is (BM25). No
// word must be there: a place with more of them comes first. Phrases that mean the same (a line of
// search_words.json) are one word each; a word that the book does not know becomes the nearest one.
window.bookSearch = (({ same, pages }) => {
  const STOP = new Set(
    (
      "a about all an and any are as at be been but by can could did do does doing don for from get had has have " +
      "how i if in into is isn it its just me mean my of off on or our s should so some t than that the their them " +
      "then there these they this those to use used using want was we were what when where which who whom whose " +
      "why will with without would you your"
    ).split(" ")
  );
  const WEIGHTS = { heading: 3, keywords: 4, above: 1, text: 1, more: 0.6 };
  const KINDS = { section: 1, claim: 0.55, notation: 0.45, api: 0.45 };
  const OF_PAGES = [
    // what is no chapter comes after the chapters
    [/depth_/, 0.75],
    [/^appendix\/(api|records|claims)/, 0.5],
    [/^(appendix|00_|index)/, 0.75],
    [/^classroom\/(a\d|attacks)/, 0.6]
  ];
  const LATE = /^(exercises|summary)$/i;
  const OTHER_WORDS = 0.8; // what a phrase of the same meaning counts
  const APART = 0.4; // what the words of a phrase count where they do not stand together

  function stem(word) {
    if (word.length < 4) return word;
    const rules = [
      [/ies$/, "y"],
      [/(ss|x|ch|sh)es$/, "$1"],
      [/([^siu])s$/, "$1"],
      [/iz(e|ed|es|ing|er|ation)$/, "is$1"],
      [/(....)ations?$/, "$1"],
      [/([aeiouy].*)(ing|ed)$/, "$1"],
      [/([bdgmnprt])\1$/, "$1"],
      [/(.....)al$/, "$1"],
      [/(....)ly$/, "$1"],
      [/(...)e$/, "$1"]
    ];
    return rules.reduce((said, [end, other]) => said.replace(end, other), word);
  }

  const stems = new Map(); // a word -> its stem, and what a stem was first seen as
  const surface = new Map();
  function stemmed(word) {
    if (!stems.has(word)) {
      stems.set(word, stem(word));
      if (!surface.has(stem(word))) surface.set(stem(word), word);
    }
    return stems.get(word);
  }
  const WORDS = /[\p{L}\d]+/gu;
  const words = (text) => text.toLowerCase().replace(/√/g, " sqrt ").match(WORDS) || [];
  const read = (text) => words(text).map(stemmed);

  // Phrases: the first stem -> [stems, group], the longest first.
  const phrases = new Map();
  const groups = same.map((group) => group.map(read));
  groups.forEach((group) =>
    group.forEach((said) => {
      phrases.set(
        said[0],
        [...(phrases.get(said[0]) || []), [said, group]].toSorted(
          (a, b) => b[0].length - a[0].length
        )
      );
    })
  );
  function phraseAt(said, at) {
    return (phrases.get(said[at]) || []).find(([phrase]) =>
      phrase.every((one, i) => said[at + i] === one)
    );
  }

  const places = pages.flatMap(([page, ...found]) =>
    found.map(([anchor, above, heading, text, more, keywords, kind]) => {
      const factor = (OF_PAGES.find(([name]) => name.test(page)) || [0, 1])[1];
      const worth = KINDS[kind] * factor * (LATE.test(heading) ? 0.6 : 1);
      return {
        address: above ? `${page}#${anchor}` : page,
        above,
        heading,
        text,
        more,
        keywords,
        kind,
        worth
      };
    })
  );
  const postings = new Map(); // a stem or phrase -> Map(place -> how much of it is there)
  let total = 0;
  places.forEach((place, at) => {
    for (const [field, weight] of Object.entries(WEIGHTS)) {
      const said = read(place[field]);
      if (field === "text") place.length = said.length;
      if (field === "more") place.length += said.length;
      const note = (term) => {
        if (!postings.has(term)) postings.set(term, new Map());
        const there = postings.get(term);
        there.set(at, (there.get(at) || 0) + weight);
      };
      said.forEach((one, i) => {
        note(one);
        const found = phraseAt(said, i);
        if (found && found[0].length > 1) note(found[0].join(" "));
      });
    }
    total += place.length;
  });
  const mean = total / places.length;

  function score(term, at) {
    const there = postings.get(term);
    if (!there?.has(at)) return 0;
    const rare = Math.log(1 + (places.length - there.size + 0.5) / (there.size + 0.5));
    const much = there.get(at);
    return (rare * much * 2.2) / (much + 1.2 * (0.5 + (0.5 * places[at].length) / mean));
  }

  // How many letters must change; more than `most` is told as infinite.
  function distance(a, b, most) {
    if (Math.abs(a.length - b.length) > most) return Infinity;
    let row = [...Array(b.length + 1).keys()];
    for (let i = 1; i <= a.length; i++) {
      const next = [i];
      for (let j = 1; j <= b.length; j++) {
        next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] !== b[j - 1]));
      }
      row = next;
    }
    return row[b.length] <= most ? row[b.length] : Infinity;
  }
  function nearest(word) {
    const most = word.length < 4 ? 0 : word.length < 8 ? 1 : 2;
    let best = null;
    for (const [term, there] of postings) {
      if (term.includes(" ") || term.length < 4) continue;
      const far = distance(word, term, most);
      if (
        far < Infinity &&
        (!best || far < best.far || (far === best.far && there.size > best.size))
      ) {
        best = { term, far, size: there.size };
      }
    }
    return best?.term;
  }

  // What was asked, as concepts: each a list of [terms, weight], any of which will do.
  function understand(query) {
    const asked = words(query);
    const said = asked.map(stem);
    const concepts = [],
      unknown = [];
    const onlySmall = asked.every((word) => STOP.has(word));
    for (let at = 0; at < said.length; at++) {
      const found = phraseAt(said, at);
      if (found) {
        const [phrase, group] = found;
        concepts.push([
          ...group.map((one) => [[one.join(" ")], one === phrase ? 1 : OTHER_WORDS]),
          [phrase, APART]
        ]);
        at += phrase.length - 1;
      } else if (onlySmall || !STOP.has(asked[at])) {
        const ways = postings.has(said[at]) ? [[[said[at]], 1]] : [];
        if (at === said.length - 1 && asked[at].length > 2) {
          // perhaps it is still being typed
          const begun = [...postings.keys()].filter(
            (term) => term.startsWith(asked[at]) && term !== said[at]
          );
          ways.push(...begun.map((term) => [[term], 0.6]));
        }
        if (!ways.length) {
          const near = nearest(said[at]);
          unknown.push({ word: asked[at], instead: near && surface.get(near) });
          if (near) ways.push([[near], 0.8]);
        }
        concepts.push(ways);
      }
    }
    return { concepts, unknown };
  }

  function search(query, most = 10) {
    const { concepts, unknown } = understand(query);
    const scores = new Map();
    for (const ways of concepts) {
      const best = new Map();
      for (const [terms, weight] of ways) {
        for (const at of postings.get(terms[0])?.keys() || []) {
          if (terms.some((term) => !postings.get(term)?.has(at))) continue;
          const worth = weight * terms.reduce((sum, term) => sum + score(term, at), 0);
          if (worth > (best.get(at) || 0)) best.set(at, worth);
        }
      }
      for (const [at, worth] of best) {
        const [sum, parts] = scores.get(at) || [0, 0];
        scores.set(at, [sum + worth, parts + 1]);
      }
    }
    const terms = new Set(
      concepts.flat().flatMap(([found]) => found.flatMap((term) => term.split(" ")))
    );
    const hits = [...scores].map(([at, [sum, parts]]) => {
      const place = places[at];
      return { place, worth: sum * place.worth * (0.3 + (0.7 * parts) / concepts.length) };
    });
    hits.sort((a, b) => b.worth - a.worth);
    return {
      hits: hits
        .slice(0, most)
        .map(({ place, worth }) => ({ ...place, worth, shown: excerpt(place.text, terms) })),
      found: hits.length,
      unknown
    };
  }

  // The part of a text with most of the terms, as [words, is a term] pairs.
  function excerpt(text, terms, length = 26) {
    const parts = text.split(/\s+/);
    const has = parts.map((part) => read(part).some((one) => terms.has(one) && !STOP.has(one)));
    const count = (from) => has.slice(from, from + length).filter(Boolean).length;
    let start = 0;
    for (let at = 1; at + length <= parts.length; at++) if (count(at) > count(start)) start = at;
    start = Math.max(0, Math.min(start - 3, parts.length - length));
    const end = start + length;
    const pairs = parts.slice(start, end).map((part, i) => [part, has[start + i]]);
    if (start > 0) pairs.unshift(["…", false]);
    if (end < parts.length) pairs.push(["…", false]);
    return pairs;
  }

  return { search };
})(window.bookIndex);
