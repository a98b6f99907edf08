// Find in the output: the box over a terminal, and the patterns of what it searches for.
import { html, useEffect, useRef } from '../lib.js';
import { Button } from '../ui.js';

const MARKS = {
  matchOverviewRuler: '#c9a227', activeMatchColorOverviewRuler: '#e8871e',
  matchBackground: '#7a5c00', activeMatchBackground: '#b35900',
};

/**
 * @typedef {{text: string, isCase: boolean, isRegex: boolean}} Query
 * @typedef {{index: number, total: number, note?: string}} Found
 */
/** @type {Query} */
export const NOTHING = { text: '', isCase: false, isRegex: false };

/** The pattern of a query, for one line; null if there is none, or none that can be read. */
export function patternOf({ text, isCase, isRegex }) {
  if (!text) return null;
  const source = isRegex ? text : text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  try { return new RegExp(source, isCase ? 'gu' : 'giu'); } catch { return null; }
}

/**
 * @param {{session: any, query: Query, setQuery: (query: Query) => void, found: any,
 *   step: ((by: number) => void) | null, showHistory: (() => void) | null,
 *   onClose: () => void}} props
 */
export function FindBar({ session, query, setQuery, found, step, showHistory, onClose }) {
  const input = useRef(null), isBad = query.text !== '' && !patternOf(query);
  const { search } = session;
  const options = {
    caseSensitive: query.isCase, regex: query.isRegex, decorations: MARKS,
  };
  const look = by => {
    if (step) step(by);
    else if (isBad || !query.text) search?.clearDecorations();
    else if (by < 0) search?.findPrevious(query.text, options);
    else search?.findNext(query.text, { ...options, incremental: by === 0 });
  };
  useEffect(() => { input.current?.focus(); input.current?.select(); }, []);
  useEffect(() => {
    if (step || !search) return undefined;
    const heard = search.onDidChangeResults(({ resultIndex, resultCount }) => {
      found.value = { index: resultIndex, total: resultCount };
    });
    return () => { heard.dispose(); search.clearDecorations(); };
  }, [search, Boolean(step)]);
  useEffect(() => {
    if (step) return;
    found.value = null;
    search?.clearDecorations(); // else xterm.js does not see that only the options have changed
    look(0);
  },
    [query.text, query.isCase, query.isRegex, Boolean(step)]);
  const key = event => {
    if (event.key === 'Enter') { event.preventDefault(); look(event.shiftKey ? -1 : 1); }
    if (event.key === 'Escape') { event.stopPropagation(); onClose(); }
  };
  const now = found.value, total = now?.total ?? 0;
  const words = isBad ? 'not a regular expression' : !query.text || !now ? ''
    : total === 0 ? `nothing${now.note ? ` ${now.note}` : ''}`
      : `${now.index >= 0 ? `${now.index + 1} of ` : ''}${total}${now.note ? ` ${now.note}` : ''}`;
  return html`<div class="find-bar" role="search" aria-label="Find in output">
    <div class="find-box"><input class="input" type="search" ref=${input}
      aria-label="Find in output" placeholder="Find in output" aria-invalid=${isBad}
      value=${query.text} onKeyDown=${key}
      onInput=${event => setQuery({ ...query, text: event.target.value })} />
    <span class="note num" role="status">${words}</span></div>
    <${Button} small tone="ghost" label="Match case" aria-pressed=${query.isCase}
      onClick=${() => setQuery({ ...query, isCase: !query.isCase })}>Aa<//>
    <${Button} small tone="ghost" label="Regular expression" aria-pressed=${query.isRegex}
      onClick=${() => setQuery({ ...query, isRegex: !query.isRegex })}>.*<//>
    <${Button} small tone="ghost" icon="up" label="Previous match" onClick=${() => look(-1)} />
    <${Button} small tone="ghost" icon="down" label="Next match" onClick=${() => look(1)} />
    ${showHistory && html`<${Button} small tone="ghost" onClick=${showHistory}>Whole history<//>`}
    <${Button} small tone="ghost" icon="close" label="Close the search"
      onClick=${onClose} /></div>`;
}
