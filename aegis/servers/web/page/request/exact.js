// A text that somebody decides on: characters that cannot be seen are marked by their numbers.
import { html } from '../lib.js';
import { Exact as Marked, isOdd as hasOdd } from '../text.js';

// The daemon writes the number of each such character in the texts of a request.
const NUMBERED = /<U\+[0-9A-F]{4,6}>/g;

export const isOdd = text => hasOdd(text) || text.search(NUMBERED) >= 0;

/** Show a text with such characters marked. */
export function Exact({ children }) {
  const text = [children].flat(9).map(String).join(''), parts = [];
  let at = 0;
  for (const found of text.matchAll(NUMBERED)) {
    parts.push(html`<${Marked}>${text.slice(at, found.index)}<//>`,
      html`<mark class="odd">${found[0].slice(1, -1)}</mark>`);
    at = found.index + found[0].length;
  }
  return html`${parts}<${Marked}>${text.slice(at)}<//>`;
}
