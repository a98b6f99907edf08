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

// Characters that are not seen, that change the order of others, or that look like a space and are
// none. A joiner inside an emoji is left alone.
const ODD = new RegExp('(?!(?<=\\p{Extended_Pictographic}\\ufe0f?|\\p{Emoji_Modifier})\\u200d)'
  + '[\\p{Cf}\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00a0\\u115f\\u1160\\u2000-\\u200a'
  + '\\u2028\\u2029\\u202f\\u205f\\u2800\\u3000\\u3164\\uffa0\\u{e0100}-\\u{e01ef}]', 'gu');

/** Whether a text has characters that a person would not see. */
export const isOdd = text => { ODD.lastIndex = 0; return ODD.test(text); };

/** A text on which one decides: each character that is not seen is shown by its number. */
export function Exact({ children }) {
  const text = [children].flat(9).map(String).join(''), parts = [];
  let at = 0;
  for (const found of text.matchAll(ODD)) {
    const code = found[0].codePointAt(0).toString(16).toUpperCase().padStart(4, '0');
    parts.push(text.slice(at, found.index), html`<mark class="odd">U+${code}</mark>`);
    at = found.index + found[0].length;
  }
  return html`${parts}${text.slice(at)}`;
}
