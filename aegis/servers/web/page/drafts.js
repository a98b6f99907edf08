// Drafts: what a person writes outlives a reload, a crash of the page and a lost connection.
import { effect, signal } from './lib.js';
import { stored } from './place.js';

const PREFIX = 'draft:';
const MOST = 60;
/** One origin may serve another project tomorrow. */
export const project = { id: stored.get('project') ?? '' };
/** @type {Map<string, import('@preact/signals').Signal<any>>} */
const known = new Map();
const nameOf = key => `${PREFIX}${project.id}:${key}`;

/**
 * The draft of `key`, as a signal: null if there is none. What is set is stored; of too many the
 * oldest is dropped.
 * @param {string} key @returns {import('@preact/signals').Signal<any>}
 */
export function draft(key) {
  const name = nameOf(key), before = known.get(name);
  if (before) return before;
  const one = signal(stored.json(name, null)?.value ?? null);
  known.set(name, one);
  let isFirst = true;
  effect(() => {
    const { value } = one;
    if (isFirst) { isFirst = false; return; }
    const isEmpty = value === null || value === '';
    stored.set(name, isEmpty ? null : JSON.stringify({ value, at: Date.now() }));
    if (!isEmpty) dropOldest();
  });
  return one;
}

// Another window of this browser wrote the draft: a box without the focus shows the newer text.
addEventListener('storage', event => {
  const one = event.key && known.get(event.key);
  if (!one || document.hasFocus()) return;
  one.value = event.newValue ? stored.json(event.key, null)?.value ?? null : null;
});

function dropOldest() {
  try {
    const all = Object.keys(localStorage).filter(each => each.startsWith(PREFIX));
    if (all.length <= MOST) return;
    const dated = all.map(each => /** @type {[number, string]} */ ([stored.json(each, {}).at ?? 0,
      each]));
    localStorage.removeItem(dated.sort((a, b) => a[0] - b[0])[0][1]);
  } catch { /* storage is off */ }
}

/** A name for one sending: with it the daemon takes the same text once, also after a lost reply. */
export const freshKey = () =>
  `page-${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`;
