// Elements without innerHTML: what agents and programs wrote is only ever text.

/** Return a new element. Properties beginning with "on" are listeners; children are nodes or text. */
export function el(name, properties = {}, ...children) {
  const [tag, ...classes] = name.split('.');
  const element = document.createElement(tag || 'div');
  if (classes.length) element.className = classes.join(' ');
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (key === 'data') Object.assign(element.dataset, value);
    else if (key in element && !key.includes('-') && key !== 'list') element[key] = value;
    else element.setAttribute(key, value === true ? '' : value);
  }
  element.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== false));
  return element;
}

export const $ = id => document.getElementById(id);

// As aegis/shown_text.py decides: emoji stay whole, with the joiners, selectors and tags that belong to them.
const SIGN = String.raw`\p{Extended_Pictographic}(?:[\ufe0e\ufe0f]|\p{Emoji_Modifier})?`;
const FLAGS = ['gbeng', 'gbsct', 'gbwls'].map(region => [...region].map(c => String.fromCodePoint(0xe0000 + c.charCodeAt(0))).join('')).join('|');
const EMOJI = String.raw`[0-9#*]\ufe0f\u20e3|\u{1f3f4}(?:${FLAGS})\u{e007f}|${SIGN}(?:\u200d${SIGN})*`;
const HIDDEN = new RegExp(String.raw`(${EMOJI})|(?![\n\t])[\p{C}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\u{1d159}\u{e0100}-\u{e01ef}]`, 'gu');
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[ -/]*[0-~])/g;

/** Return foreign text as it may be shown: characters that hide, reorder or act are named. */
export function plain(text, limit = 20000) {
  let shown = String(text ?? '');
  if (shown.length > 4 * limit) shown = shown.slice(0, 4 * limit);
  shown = shown.replace(ESCAPES, '').replace(/\r\n?/g, '\n').replace(HIDDEN, (c, emoji) => emoji ?? `⟨U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`);
  return shown.length > limit ? `${shown.slice(0, limit)}… (${String(text).length.toLocaleString('en')} characters)` : shown;
}

/** Return foreign text on one line. */
export const line = (text, limit = 300) => plain(text, limit).replace(/\s*\n\s*/g, ' ⏎ ');

const HOVERS = matchMedia('(hover: hover)'), MOST_GHOSTS = 100;

/** Return whether a person is at a list: with the pointer over it, or with the focus inside. */
const isHeld = list => (HOVERS.matches && list.matches(':hover')) || list.contains(document.activeElement);

/**
 * Show one child for each item, known by its key: focus and scroll stay.
 *
 * While a person is at the list nothing moves under the pointer: the order stays, a new child goes last,
 * and one that is gone stays as a ghost that takes no click. Afterwards the list is put right.
 */
export function keyed(list, items, key, make, update) {
  const known = list._rows ?? held(list);
  list._again = () => keyed(list, items, key, make, update);
  const wanted = new Set(), isStill = isHeld(list) && list.querySelectorAll(':scope > .gone').length < MOST_GHOSTS;
  list._owes = isStill;
  let at = list.firstChild;
  for (const item of items) {
    const name = key(item);
    wanted.add(name);
    let row = known.get(name);
    if (row?.inert && isStill) { row.inert = false; row.classList.remove('gone'); }
    if (row?.inert) { if (row === at) at = at.nextSibling; row.remove(); row = null; } // it shows its end
    if (!row) known.set(name, row = make(item));
    update?.(row, item);
    if (isStill) { if (!row.isConnected) list.append(row); } else if (row !== at) list.insertBefore(row, at); else at = at.nextSibling;
  }
  for (const [name, row] of known) if (!wanted.has(name)) {
    if (isStill) { if (!row.inert) haunt(row); } else { row.remove(); known.delete(name); }
  }
}

function held(list) {
  const release = () => setTimeout(() => { if (list._owes && !isHeld(list)) list._again(); });
  for (const end of ['pointerleave', 'focusout']) list.addEventListener(end, release);
  return list._rows = new Map();
}

function haunt(row) {
  row.gone?.();
  if (row.contains(document.activeElement)) document.activeElement.blur();
  row.inert = true; row.classList.add('gone');
}

/** Return ``act``, which does nothing while an earlier call has not ended: a double click acts once. */
export function once(act) {
  let isBusy = false;
  return async (...given) => {
    if (isBusy) return;
    isBusy = true;
    try { await act(...given); } finally { isBusy = false; }
  };
}

const DRAFT = 'draft:', MOST_DRAFTS = 50;

/** Drafts by what they are for, in the browser's storage: neither a reload nor another page loses one. */
export const drafts = {
  project: '', // one origin may serve another project tomorrow
  get(place) { try { return JSON.parse(localStorage.getItem(`${DRAFT}${this.project}:${place}`)); } catch { return null; } },
  set(place, draft) {
    const name = `${DRAFT}${this.project}:${place}`;
    try {
      if (!draft) { localStorage.removeItem(name); return; }
      localStorage.setItem(name, JSON.stringify({ ...draft, at: Date.now() }));
      const all = Object.keys(localStorage).filter(each => each.startsWith(DRAFT)).map(each => [JSON.parse(localStorage[each]).at, each]);
      if (all.length > MOST_DRAFTS) localStorage.removeItem(all.sort((a, b) => a[0] - b[0])[0][1]);
    } catch { /* storage is off or full: the draft lives as long as its box */ }
  },
};

/**
 * Return what sends the text of a box, and keeps it until the daemon has taken it.
 *
 * A text that failed is sent again with the same key: ``send(text, key)`` takes it at most once. What is
 * typed while a text is sent stays in the box.
 */
export function composer(box, place, send) {
  let unsent = drafts.get(place), before = Promise.resolve();
  const trimmed = () => box.value.trim();
  const keep = () => drafts.set(place, trimmed() ? { text: box.value, key: unsent?.text === trimmed() ? unsent.key : null } : unsent);
  box.value = unsent?.text ?? '';
  if (!unsent?.key) unsent = null;
  box.addEventListener('input', keep);
  return () => {
    const text = trimmed();
    if (!text) return;
    const key = unsent?.text === text ? unsent.key : [...crypto.getRandomValues(new Uint32Array(4))].join('-');
    unsent = { text, key };
    box.value = ''; box.dispatchEvent(new Event('input', { bubbles: true }));
    before = before.then(() => send(text, key)).then(() => { if (unsent?.key === key) unsent = null; keep(); }, error => {
      box.value = trimmed() ? `${text}\n${box.value}` : text;
      box.dispatchEvent(new Event('input', { bubbles: true }));
      toast(error.message, 'bad');
    });
  };
}

export function setText(element, text) { if (element.textContent !== text) element.textContent = text; }

export function ago(iso, now = Date.now()) {
  if (!iso) return '';
  const s = Math.max(0, (now - Date.parse(iso)) / 1000);
  if (s < 60) return `${Math.floor(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} d`;
}

const TIME = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' }), DAY = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' });
/** Return the time of day, with the day before it unless it is today. */
export function clock(iso) {
  const at = new Date(iso);
  return `${at.toDateString() === new Date().toDateString() ? '' : `${DAY.format(at)} `}${TIME.format(at)}`;
}

export function seconds(s) {
  if (s === null || s === undefined) return '';
  if (s < 10) return `${s.toFixed(2)} s`;
  if (s < 120) return `${s.toFixed(0)} s`;
  return s < 7200 ? `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s` : `${(s / 3600).toFixed(1)} h`;
}

export const money = usd => usd === null || usd === undefined ? '' : usd === 0 ? '$0' : `$${usd.toFixed(usd < 1 ? 3 : 2)}`;
export const count = n => n === null || n === undefined ? '' : n >= 1e6 ? `${(n / 1e6).toFixed(1)} M` : n >= 1e3 ? `${(n / 1e3).toFixed(1)} k` : String(n);

const MOST_TOASTS = 4;

/** Show a sentence for some seconds: a repeated one is counted, and only the newest few are shown. */
export function toast(text, kind = '') {
  const said = plain(text, 400), all = $('toasts');
  let note = [...all.children].find(each => each.said === said);
  if (note) { setText(note, `${said} ×${note.times += 1}`); clearTimeout(note.timer); }
  else all.append(note = Object.assign(el(`p.toast${kind ? '.' + kind : ''}`, {}, said), { said, times: 1 }));
  note.timer = setTimeout(() => note.remove(), kind === 'bad' ? 9000 : 4500);
  while (all.childElementCount > MOST_TOASTS) all.firstChild.remove();
}
