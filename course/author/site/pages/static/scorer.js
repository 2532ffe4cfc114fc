/* The order of what is found: the words, the five and the trail, then other pages, and last `more` and the lists of names. */

var Scorer = {
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  first: ["glossary", "notebooks/0", "notebooks/trail/"],
  last: ["notebooks/more/", "api/", "CHANGELOG", "course/author/bench/"],

  /* 100 points for a place are more than any word gives: the order within a place stays. */
  score([page, , , , points]) {
    const at = Scorer.first.findIndex((start) => page.startsWith(start));
    if (at >= 0) return points + 100 * (Scorer.first.length - at);
    return Scorer.last.some((start) => page.startsWith(start)) ? points - 100 : points;
  },
};
