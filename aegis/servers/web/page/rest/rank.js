// The order of the palette's rows. Pure, so that it can be tested by itself.

const LETTER = /[\p{L}\p{N}]/u;
const EACH = 1, AT_WORD = 3, ADJACENT = 2, AT_START = 1;
/** Letters that are only scattered over a text, such as "ste" in "as it goes", are no match. */
const FEWEST = 1.7;

/**
 * Return how well a text fits a word, 0 for not at all: its letters in order, best at the begins of
 * words and next to each other, so that "g23" finds "grace-23" before "long-lag-2-3".
 * @param {string} text
 * @param {string} word
 */
export function fit(text, word) {
  const name = text.toLowerCase(), asked = word.toLowerCase();
  if (!asked) return 1;
  if (asked.length > name.length) return 0;
  // points[at]: the best of the letters so far, the last of them at this place of the name.
  let points = null;
  for (const letter of asked) {
    const next = new Array(name.length).fill(0);
    let best = 0; // of all places before the one before this one
    for (let at = 0; at < name.length; at += 1) {
      if (points && at > 1) best = Math.max(best, points[at - 2]);
      if (name[at] !== letter) continue;
      const beside = points && at > 0 && points[at - 1] ? points[at - 1] + ADJACENT : 0;
      if (points && !best && !beside) continue;
      const isStart = at === 0 || !LETTER.test(name[at - 1]) && LETTER.test(letter);
      next[at] = Math.max(best, beside) + EACH + (isStart ? AT_WORD : 0) + (at ? 0 : AT_START);
    }
    points = next;
  }
  const most = Math.max(...points);
  if (asked.length > 2 && most < FEWEST * asked.length) return 0;
  const isWhole = name === asked ? 2 : 0;
  return most ? most / (AT_WORD * asked.length) + isWhole - name.length / 500 : 0;
}

/** Return how well a text that is not a name has a word: only whole, better at a word's begin. */
function has(text, word) {
  const at = text ? text.toLowerCase().indexOf(word.toLowerCase()) : -1;
  if (at < 0) return 0;
  return at === 0 || !LETTER.test(text[at - 1]) ? 0.5 : 0.3;
}

/**
 * Return how well a row fits what is asked: each word in its name, its kind or its other text.
 * @param {{text: string, kind?: string, words?: string}} row
 * @param {string} asked
 */
export function score(row, asked) {
  const all = asked.trim().split(/\s+/).filter(Boolean);
  let sum = 0;
  for (const word of all) {
    const one = Math.max(fit(row.text, word), has(row.kind, word), has(row.words, word));
    if (!one) return 0;
    sum += one;
  }
  return all.length ? sum / all.length + (all.length > 1 ? has(row.text, asked.trim()) : 0) : 1;
}

/**
 * Return the rows that fit, the best first; among equals what was used lately, then as they came.
 * @template {{key: string, text: string, kind?: string, words?: string, bonus?: number}} Row
 * @param {Row[]} rows
 * @param {string} asked
 * @param {Record<string, number>} used when each was last taken, by key
 * @returns {Row[]}
 */
export function ranked(rows, asked, used) {
  const lately = Object.entries(used).sort((a, b) => b[1] - a[1]).map(([key]) => key);
  const recent = new Map(lately.map((key, at) => [key, 0.4 - Math.min(at, 30) / 100]));
  return rows
    .map((row, at) => {
      const fits = score(row, asked);
      return { row, at, points: fits && fits + (row.bonus ?? 0) + (recent.get(row.key) ?? 0) };
    })
    .filter(each => each.points > 0)
    .sort((a, b) => b.points - a.points || a.at - b.at)
    .map(each => each.row);
}
