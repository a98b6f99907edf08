// The palette: go to anything, do anything, find anything that ever ran or was said.
import { html, untracked, useEffect, useLayoutEffect, useMemo, useRef, useState } from './lib.js';
import { actions, allActions } from './actions.js';
import { loadAll } from './lazy.js';
import { project } from './drafts.js';
import { once, open } from './overlay.js';
import { activePane, at, beside, go, panes, query, stored, subject } from './place.js';
import { ended, KIND, outcomeOf, Search, whereOf } from './rest/find.js';
import { ranked } from './rest/rank.js';
import { asker, brief } from './request/model.js';
import { agentState, RUN, terminalState } from './state.js';
import {
  agents, canvases, groups, loaded, queues, requests, terminals, workflows,
} from './store.js';
import { Button, State } from './ui.js';
import { PAGES } from './views.js';

const ITSELF = 'Go to or do';
const MOST_ROWS = 60, MOST_FINDS = 8, MOST_USED = 60, FEWEST_LETTERS = 3, SETTLE_MS = 250;

/**
 * @typedef {{key: string, kind: string, text: string, words?: string, state?: string,
 *   where?: string, act?: () => any, hint?: string, bonus?: number}} Row
 */

/** What the pages are called besides their titles. @type {Record<string, string>} */
const ALSO = {
  history: 'search everything that ran or was said', day: 'timeline: what ran when',
  cost: 'tokens turns usage money', access: 'keys links browsers share',
  tree: 'daemon status nodes doctor', settings: 'theme size clock notifications editor',
};
const BONUS = { asks: 0.1, failed: 0.06, works: 0.05 };

/** Return all that one can go to, as things are now. @returns {Row[]} */
function places() {
  const row = (kind, where, text, state, words) =>
    ({ key: where, where, kind, text, state, words, bonus: BONUS[state] ?? 0 });
  return [
    ...[...agents.value.values()].map(each => {
      const { kind, word, why } = agentState(each);
      return row('Agent', at('a', each.handle), each.handle, kind, why || word);
    }),
    ...[...terminals.value.values()].map(each => {
      const { kind, what } = terminalState(each);
      return row('Terminal', at('t', each.name), each.name, kind, what || each.cwd);
    }),
    ...[...requests.value.values()].map(each => row('Request', `home${query({ request: each.id })}`,
      `${asker(each)}: ${brief(each)}`, 'asks')),
    ...[...queues.value.values()].map(each => row('Queue', at('q', each.queue), each.queue)),
    ...[...canvases.value.values()].map(each =>
      row('Canvas', at('c', each.name), each.name, undefined, each.file)),
    ...[...workflows.value.values()].map(each => row('Run', at('w', each.workflow_id), each.name,
      RUN[each.status], each.workflow_id)),
    ...[...groups.value.values()].map(each => row('Group', at('g', each.group), each.group)),
    ...[...agents.value.values()].map(each =>
      row('Inbox', at('m', each.handle), `Inbox of ${each.handle}`)),
    ...Object.entries(PAGES).filter(([where]) => where !== 'more')
      .map(([where, [text]]) => row('Page', where, text, undefined, ALSO[where])),
  ];
}

/** @returns {Row[]} */
function everything() {
  const here = subject(panes.value[activePane.value] ?? 'home');
  const all = allActions().filter(each => each.text !== ITSELF);
  const does = all.map(({ text, act, key, group, words, of }) => ({
    key: `do ${text}`, kind: group ?? 'Do', text, words, act, hint: key,
    bonus: of && subject(of) === here ? 0.25 : 0,
  }));
  // One is there already, so it is the last that is meant.
  const others = places().map(each => each.where === here ? { ...each, bonus: -0.6 } : each);
  return [...does.filter(each => each.bonus), ...others, ...does.filter(each => !each.bonus)];
}

/** Search the history a moment after the last letter. */
function useFinds(text) {
  const [found, setFound] = useState({ text: '', finds: [], isBusy: false });
  useEffect(() => {
    const word = text.trim();
    setFound({ text: word, finds: [], isBusy: word.length >= FEWEST_LETTERS });
    if (word.length < FEWEST_LETTERS) return undefined;
    let isOver = false;
    const timer = setTimeout(async () => {
      const finds = await new Search({ word }).next(MOST_FINDS).catch(() => []);
      if (!isOver) setFound({ text: word, finds, isBusy: false });
    }, SETTLE_MS);
    return () => { isOver = true; clearTimeout(timer); };
  }, [text]);
  return found.text === text.trim() ? found : { finds: [], isBusy: true };
}

const usedKey = () => `used:${project.id}`;
function note(key) {
  const all = { ...stored.json(usedKey(), {}), [key]: Date.now() };
  const newest = Object.entries(all).sort((a, b) => b[1] - a[1]).slice(0, MOST_USED);
  stored.set(usedKey(), JSON.stringify(Object.fromEntries(newest)));
}

/** Focus what one writes in, in the pane that was opened: its composer, its screen. */
function focusPane() {
  const pane = document.querySelector('.pane.on') ?? document.querySelector('.pane');
  const target = pane?.querySelector('.composer textarea, .xterm-helper-textarea');
  if (target instanceof HTMLElement && matchMedia('(hover: hover)').matches) target.focus();
  else document.getElementById('main')?.focus();
}

/** @param {Row} row */
function take(row, isBeside, onClose) {
  note(row.key);
  onClose();
  if (row.act) { once(row.act)(); return; }
  if (isBeside) beside(row.where); else go(row.where);
  setTimeout(focusPane, 60); // closing the dialog gives the focus back first
}

const Option = ({ row, id, isOn, onPoint, onTake }) => html`<li id=${id} role="option"
  aria-selected=${isOn} onPointerMove=${onPoint} onClick=${onTake}
  onPointerDown=${event => event.preventDefault()}>
  ${row.state ? html`<${State} of=${row.state} quiet />` : html`<span class="nub"></span>`}
  <bdi class="name">${row.text}</bdi><bdi class="cut quiet">${row.words ?? ''}</bdi>
  ${row.hint && html`<kbd>${row.hint}</kbd>`}<span class="note">${row.kind}</span></li>`;

/** @param {{onClose: () => void, isBeside?: boolean}} props */
export function Palette({ onClose, isBeside = false }) {
  const [text, setText] = useState(''), [on, setOn] = useState(0), box = useRef(null);
  const [parts, setParts] = useState(0);
  // The actions of a part are known once it is loaded.
  useEffect(() => { loadAll().then(() => setParts(1), () => {}); }, []);
  // In the first moments of the page, lists are still coming.
  const all = useMemo(() => untracked(everything), [parts, loaded.value]);
  const used = useMemo(() => stored.json(usedKey(), {}), []);
  const { finds, isBusy } = useFinds(text);
  const names = useMemo(
    () => ranked(all.filter(each => !isBeside || each.where), text, used).slice(0, MOST_ROWS),
    [text, all],
  );
  const word = text.trim();
  /** @type {Row[]} */
  const ran = finds.map(find => ({
    key: `find ${whereOf(find)}`, kind: KIND[find.kind], where: whereOf(find),
    text: find.kind === 'message' ? find.by : find.name,
    words: `${ended(find)}: ${find.text}`, state: outcomeOf(find) ?? undefined,
  }));
  if (word.length > 1) {
    ran.push({ key: 'find more', kind: 'History', where: `history${query({ word })}`,
      text: `Search all that ran or was said for “${word}”` });
  }
  const rows = [...names, ...ran];
  useLayoutEffect(() => {
    const { current } = box;
    current.showModal();
    current.querySelector('input').focus();
    return () => current.close(); // gives the focus back
  }, []);
  useEffect(() => {
    box.current.querySelector(`#found-${on}`)?.scrollIntoView({ block: 'nearest' });
  }, [on]);
  const keyDown = event => {
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (by && rows.length) {
      const next = on + by;
      const isStep = Math.abs(by) === 1;
      setOn(isStep ? (next + rows.length) % rows.length
        : Math.max(0, Math.min(rows.length - 1, next)));
    } else if (event.key === 'Enter' && !event.isComposing && rows[on]) {
      const wantsBeside = isBeside || event.ctrlKey || event.metaKey;
      if (!event.repeat) take(rows[on], wantsBeside, onClose);
    } else return;
    event.preventDefault();
  };
  const list = (label, some, from) => some.length > 0 && html`<ul role="group" aria-label=${label}>
    ${some.map((row, index) => html`<${Option} key=${row.key} row=${row}
      id=${`found-${from + index}`}
      isOn=${from + index === on} onPoint=${() => setOn(from + index)}
      onTake=${event => take(row, isBeside || event.ctrlKey || event.metaKey, onClose)} />`)}</ul>`;
  const label = isBeside ? 'Open beside' : 'Go to or do';
  return html`<dialog ref=${box} class="palette" aria-label=${label}
    onCancel=${event => { event.preventDefault(); onClose(); }}
    onClick=${event => event.target === box.current && onClose()}>
    <div class="palette-in"><div class="palette-top"><input class="palette-text" role="combobox"
      aria-expanded="true" aria-controls="found" aria-autocomplete="list" aria-label=${label}
      aria-activedescendant=${rows.length ? `found-${on}` : null} autocomplete="off"
      spellcheck=${false} enterkeyhint="go" value=${text} onKeyDown=${keyDown}
      placeholder=${isBeside ? 'Open beside…' : 'An agent, a terminal, a page, an action, a word'}
      onInput=${event => { setText(event.target.value); setOn(0); }} />
      <${Button} icon="close" label="Close" tone="ghost" small onClick=${onClose} /></div>
    <div id="found" role="listbox" aria-label="Found" class="palette-list">
      ${list('Go to or do', names, 0)}${list('Ran or was said', ran, names.length)}
      ${!rows.length && html`<div role="option" aria-selected="false" aria-disabled="true"
        class="calm">Nothing is called that.</div>`}</div>
    <div class="palette-foot note" aria-hidden="true"><span><kbd>↑</kbd> <kbd>↓</kbd> choose</span>
      <span><kbd>Enter</kbd> take</span><span><kbd>Ctrl Enter</kbd> beside</span>
      <span><kbd>Esc</kbd> close</span></div>
    <span class="hidden" role="status">${isBusy ? '' : `${rows.length} found`}</span></div>
  </dialog>`;
}

actions(() => [
  { text: ITSELF, key: 'Ctrl K', act: () => open(Palette) },
  { text: 'Open beside', key: 'Ctrl \\', act: () => open(Palette, { isBeside: true }) },
]);
