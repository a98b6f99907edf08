// Foreign text. The parser and the colours come later than the page: until then it is plain.
import { html, signal } from './lib.js';

const rich = signal(null);
let loading = null;

/** Load the parser now: the view of an agent asks for it before its first text. */
export function load() {
  loading ??= import('./markdown.js').then(module => { rich.value = module; },
    () => { loading = null; }); // the connection was lost: the next text asks again
  return loading;
}

/** A text that may be Markdown. @param {{children: any}} props */
export function Text({ children }) {
  const text = [children].flat(9).map(String).join('');
  load();
  return rich.value ? html`<${rich.value.Markdown} text=${text} />`
    : html`<div class="md plain" dir="auto">${text}</div>`;
}

/** Code with a button that copies it. @param {{text: string, language?: string}} props */
export function Code({ text, language }) {
  load();
  return rich.value ? html`<${rich.value.Code} ...${{ text, language }} />`
    : html`<figure class="code"><pre dir="ltr">${text}</pre></figure>`;
}

// As aegis/shown_text.py decides: emoji stay whole, with the joiners, selectors and tags that
// belong to them; every other character that is not seen, or changes the order of others, is odd.
// So are those that look like a space and are none.
const SIGN = String.raw`\p{Extended_Pictographic}(?:[\ufe0e\ufe0f]|\p{Emoji_Modifier})?`;
const tagged = text => [...text].map(c => String.fromCodePoint(0xe0000 + c.charCodeAt(0))).join('');
const FLAGS = ['gbeng', 'gbsct', 'gbwls'].map(tagged).join('|');
const EMOJI = String.raw`[0-9#*]\ufe0f\u20e3|\u{1f3f4}(?:${FLAGS})\u{e007f}`
  + String.raw`|${SIGN}(?:\u200d${SIGN})*`;
const ODD = new RegExp(String.raw`(${EMOJI})|(?![\n\t])[\p{C}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4`
  + String.raw`\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\u{1d159}\u{e0100}-\u{e01ef}`
  + String.raw`\u00a0\u2000-\u200a\u202f\u205f\u3000]`, 'gu');
const oddIn = text => [...text.matchAll(ODD)].filter(([, emoji]) => emoji === undefined);

/** Whether a text has characters that a person would not see. */
export const isOdd = text => oddIn(text).length > 0;

/** A text on which one decides: each character that is not seen is shown by its number. */
export function Exact({ children }) {
  const text = [children].flat(9).map(String).join(''), parts = [];
  let at = 0;
  for (const found of oddIn(text)) {
    const code = found[0].codePointAt(0).toString(16).toUpperCase().padStart(4, '0');
    parts.push(text.slice(at, found.index), html`<mark class="odd">U+${code}</mark>`);
    at = found.index + found[0].length;
  }
  return html`${parts}${text.slice(at)}`;
}
