// Foreign text. The parser and the colours come later than the page: until then it is plain.
import { html, signal } from './lib.js';
import { numbered, oddIn, plain } from './plain.js';

export { isOdd } from './plain.js';

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
  const text = plain([children].flat(9).map(String).join(''));
  load();
  return rich.value ? html`<${rich.value.Markdown} text=${text} />`
    : html`<div class="md plain" dir="auto">${text}</div>`;
}

/** Whether a text says more than `Text` shows of it. */
export const isPartly = text => rich.value?.isPartly(plain(text)) ?? false;

/** Code with a button that copies it. @param {{text: string, language?: string}} props */
export function Code({ text, language }) {
  load();
  return rich.value ? html`<${rich.value.Code} ...${{ text, language }} />`
    : html`<figure class="code"><pre dir="ltr">${text}</pre></figure>`;
}

/** A text on which one decides: each character that is not seen is shown by its number. */
export function Exact({ children }) {
  const text = [children].flat(9).map(String).join(''), parts = [];
  let at = 0;
  for (const found of oddIn(text)) {
    parts.push(text.slice(at, found.index), html`<mark class="odd">${numbered(found[0])}</mark>`);
    at = found.index + found[0].length;
  }
  return html`${parts}${text.slice(at)}`;
}
