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

const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[ -/]*[0-~])/g;

/** Return foreign text as it may be shown: characters that hide, reorder or act are named. */
export function plain(text, limit = 20000) {
  let shown = String(text ?? '');
  if (shown.length > 4 * limit) shown = shown.slice(0, 4 * limit);
  shown = shown.replace(ESCAPES, '').replace(/\r\n?/g, '\n').replace(HIDDEN, c => `⟨U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`);
  return shown.length > limit ? `${shown.slice(0, limit)}… (${String(text).length.toLocaleString('en')} characters)` : shown;
}

/** Return foreign text on one line. */
export const line = (text, limit = 300) => plain(text, limit).replace(/\s*\n\s*/g, ' ⏎ ');

/** Replace the children of an element only where they differ by their key: focus and scroll stay. */
export function keyed(parent, items, key, make, update) {
  const known = parent._rows ?? (parent._rows = new Map());
  const wanted = new Set();
  let at = parent.firstChild;
  for (const item of items) {
    const name = key(item);
    wanted.add(name);
    let row = known.get(name);
    if (!row) known.set(name, row = make(item));
    update?.(row, item);
    if (row !== at) parent.insertBefore(row, at); else at = at.nextSibling;
  }
  for (const [name, row] of known) if (!wanted.has(name)) { row.remove(); known.delete(name); }
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

export function toast(text, kind = '') {
  const note = el(`p.toast${kind ? '.' + kind : ''}`, {}, plain(text, 400));
  $('toasts').append(note);
  setTimeout(() => note.remove(), kind === 'bad' ? 9000 : 4500);
}
