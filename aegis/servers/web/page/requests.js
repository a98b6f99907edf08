// Requests to a person: one line each, opened to the whole in place; alike ones are one row.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from './lib.js';
import { isReadOnly, openRequests } from './store.js';
import { Button, Choice, Icon, Time, useStill } from './ui.js';
import { actions } from './actions.js';
import { go } from './place.js';
import { Body, useAnswer } from './request/body.js';
import { Exact } from './request/exact.js';
import { asker, brief, editsOf, grouped, isPlain, isPlan, isYesNo, verb } from './request/model.js';

const GUARD_MS = 400;

/** Whether the text of a line is shown whole: it is measured, as the width of the pane varies. */
function useFits() {
  const box = useRef(null), [fits, setFits] = useState(false);
  useEffect(() => {
    const { current } = box, look = () => {
      setFits(current.scrollWidth <= current.clientWidth + 1
        && current.scrollHeight <= current.clientHeight + 2);
    };
    const sized = new ResizeObserver(look);
    sized.observe(current);
    look();
    return () => sized.disconnect();
  });
  return [box, fits];
}

/** What a line says: the verb, and the input or the question. */
export function Line({ request }) {
  const text = brief(request), { files } = editsOf(request.input ?? {});
  return html`<span class="verb">${verb(request)}</span> ${isYesNo(request)
    ? html`<code dir="ltr"><${Exact}>${text}<//></code>`
    : html`<bdi><${Exact}>${text}<//></bdi>`}${files.length > 0 && html` <span class="note">
    ${files.length > 1 ? `${files.length} files` : ''}</span>`}`;
}

/** Return whether the row of a key moved just now, for another reason than scrolling: a click on it
 * was meant for what was there before. */
function useMoved(box, isShown) {
  const places = useRef(new Map());
  const look = () => {
    const at = performance.now(), next = new Map();
    for (const each of box.current?.querySelectorAll('.asks > .ask') ?? []) {
      const { dataset: { key }, offsetTop: top } = each, known = places.current.get(key);
      next.set(key, known?.top === top ? known : { top, at });
    }
    places.current = next;
  };
  useLayoutEffect(look);
  useEffect(() => {
    const list = box.current?.querySelector('.asks');
    if (!list) return undefined;
    const sized = new ResizeObserver(look); // a text that is drawn later moves the rows below it
    sized.observe(list);
    return () => sized.disconnect();
  }, [isShown]);
  return key => {
    look();
    return performance.now() - (places.current.get(key)?.at ?? Infinity) < GUARD_MS;
  };
}

function Row({ row, index, isOpen, isOn, isHere, moved, onToggle, onPick, onDone }) {
  const { first, all, gone } = row, [what, fits] = useFits();
  const [give, isBusy, problem] = useAnswer(all, moved, onDone);
  const isPlainLine = fits && isPlain(first), many = all.length > 1 ? ` ${all.length}` : '';
  const who = [...new Set(all.map(asker))], stop = isOn ? 0 : -1, text = brief(first);
  const review = isPlan(first) || isYesNo(first) ? 'Review' : 'Answer';
  return html`<li data-key=${row.key} data-request=${first.id} onPointerDown=${onPick}
    onFocusIn=${onPick}
    class=${`ask ${isOpen ? 'open' : ''} ${isOn ? 'on' : ''} ${gone ? 'gone' : ''}`}>
    <div class="ask-line"><button type="button" class="ask-open" data-row=${index} tabindex=${stop}
      aria-expanded=${isOpen} aria-disabled=${gone ? 'true' : null}
      onClick=${() => gone || onToggle()}>
      <${Icon} of="right" /><span class="who"><bdi class="name">${who[0]}</bdi>${who.length > 1
        && html`<span class="note">+${who.length - 1}</span>`}</span>${all.length > 1
        && html`<span class="times">${all.length} ×</span>`}<span class="what" ref=${what}><${Line}
        request=${first} /></span></button>
      ${gone ? html`<span class="note ask-gone">answered</span>` : html`<${Time}
        at=${first.created} />
        <span class="ask-quick">${isReadOnly.value ? null : isPlainLine && !isOpen
          ? html`<${Button} small tone="soft" tabindex=${stop} data-quick="y" disabled=${isBusy}
              label=${`Allow${many}: ${text}`} onClick=${give('allow')}>Allow${many}<//>
            <${Button} small tone="ghost" tabindex=${stop} data-quick="n" disabled=${isBusy}
              label=${`Deny${many}: ${text}`} onClick=${give('deny')}>Deny<//>`
          : html`<${Button} small tone="ghost" tabindex=${stop} aria-expanded=${isOpen}
              label=${`${isOpen ? 'Close' : review}: ${text}`} onClick=${onToggle}>
              ${isOpen ? 'Close' : review}<//>`}</span>`}</div>
    ${problem && html`<p class="bad-text ask-problem" role="alert">${problem}</p>`}
    ${isOpen && !gone && html`<${Body} all=${all} guard=${moved} isHere=${isHere}
      onDone=${onDone} />`}</li>`;
}

const KINDS = [['all', 'All'], ['yesno', 'Permissions'], ['question', 'Questions'],
  ['other', 'Other']];
const kindOf = each => isYesNo(each) ? 'yesno' : each.kind === 'question' ? 'question' : 'other';

/** Open requests, to be answered here. `isHere`: on the page of what asks, the only one is open.
 * `first` is the id of the one to open.
 * @param {{list: any[], isHere?: boolean, most?: number, none?: string, first?: ?string}} props */
export function RequestList({ list, isHere = false, most = 9, first = null,
  none = 'Nothing waits for you.' }) {
  const [kind, setKind] = useState('all'), [isAll, setAll] = useState(false), box = useRef(null);
  const [opened, setOpened] = useState(null), [on, setOn] = useState(null), answered = useRef(0);
  const alone = useRef('');
  const counts = { all: list.length };
  for (const each of list) counts[kindOf(each)] = (counts[kindOf(each)] ?? 0) + 1;
  const rows = useMemo(() => grouped(list.filter(each => kind === 'all' || kindOf(each) === kind))
    .sort((a, b) => b.all.length - a.all.length || (a.first.created < b.first.created ? -1 : 1)),
  [list, kind]);
  const [shown, still] = useStill(rows, row => row.key), moved = useMoved(box, shown.length > 0);
  const visible = isAll ? shown : shown.slice(0, most);
  const place = Math.max(0, visible.findIndex(row => row.key === on));
  if (isHere && visible.length === 1) alone.current = visible[0].key;
  // It stays open when others come: one may be writing why it is denied.
  const isOpen = row => row.key === (opened ?? alone.current);
  useLayoutEffect(() => { if (list.length <= 1 && kind !== 'all') setKind('all'); }, [list.length]);
  useEffect(() => {
    const row = first && rows.find(each => each.all.some(one => one.id === first));
    if (row) { setKind('all'); setAll(true); setOn(row.key); setOpened(row.key); }
  }, [first, rows.length > 0]);
  const to = next => {
    const row = visible[Math.max(0, Math.min(visible.length - 1, next))];
    if (!row) return;
    setOn(row.key);
    box.current.querySelector(`[data-row="${visible.indexOf(row)}"]`)?.focus();
  };
  const done = () => {
    answered.current = performance.now();
    const { activeElement } = document;
    if (!box.current?.contains(activeElement)) return;
    to(visible.findIndex((each, index) => index > place && !each.gone));
  };
  const press = (row, how) => {
    const item = box.current.querySelectorAll('.ask')[visible.indexOf(row)];
    const button = item.querySelector(`.ask-acts [data-key="${how}"], [data-quick="${how}"]`);
    if (!button || (!isOpen(row) && how === 's')) { setOpened(row.key); return; }
    // A part that was not on the screen yet is shown first: the next key may allow it.
    if (button.disabled) item.querySelector('.ask-end')?.scrollIntoView({ block: 'center' });
    else if (row.first.needs_person && how !== 'n') button.focus();
    else button.click();
  };
  const key = event => {
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const row = visible[place], { key: name } = event;
    if (name === 'j' || name === 'ArrowDown') to(place + 1);
    else if (name === 'k' || name === 'ArrowUp') to(place - 1);
    else if (name === 'Home') to(0);
    else if (name === 'End') to(visible.length - 1);
    else if (name === 'Escape' && opened) { setOpened(''); to(place); }
    else if (['y', 's', 'n'].includes(name) && !isReadOnly.value) {
      // A held key answers one request, and a second stroke is not for the one that took its place.
      const isEarly = event.repeat || performance.now() - answered.current < GUARD_MS;
      if (!isEarly && row && !row.gone) press(row, name);
    } else return;
    event.preventDefault();
  };
  if (!shown.length && !list.length) return none && html`<p class="calm">${none}</p>`;
  return html`<div ref=${box} class="requests" onKeyDown=${key}>
    ${(list.length > 4 || kind !== 'all') && html`<div class="filters"><${Choice} of=${KINDS}
      label="Kind of request" value=${kind} onChange=${setKind} counts=${counts} />
      <span class="gap"></span><span
        class="keys note"><kbd>j</kbd><kbd>k</kbd> move <kbd>Enter</kbd>${' '}
      open <kbd>y</kbd> allow <kbd>n</kbd> deny</span></div>`}
    <ul class="asks" aria-label="Open requests" ...${still}>${visible.map((row,
      index) => html`<${Row}
      key=${row.key} row=${row} index=${index} isHere=${isHere} isOpen=${isOpen(row)}
      isOn=${place === index} moved=${() => moved(row.key)} onPick=${() => setOn(row.key)}
        onDone=${done}
      onToggle=${() => setOpened(isOpen(row) ? '' : row.key)} />`)}</ul>
    ${shown.length > most && html`<${Button} tone="ghost all" onClick=${() => setAll(!isAll)}
      >${isAll ? 'Show fewer' : `Show ${shown.length - most} more`}<//>`}</div>`;
}

actions(() => {
  const [oldest] = openRequests.value;
  return oldest && !isReadOnly.value ? [{ text: 'Answer the oldest request', group: 'Request',
    words: 'allow deny permission', act: () => go(`home?request=${oldest.id}`) }] : [];
});
