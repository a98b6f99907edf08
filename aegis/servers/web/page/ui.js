// The parts that every view uses: buttons, menus, dialogs, forms, heads, lists.
import { html, useEffect, useLayoutEffect, useRef, useState } from './lib.js';
import { Icon, State } from './icons.js';
import { once, open, overlay, say } from './overlay.js';
import { href } from './place.js';
import { connection } from './store.js';

export { Icon, State } from './icons.js';
export { Time, bytes, clocked, count, money, now, seconds, when, whole } from './time.js';
export { Following, useGuard, useIs, usePhone, useStill } from './still.js';
export { confirm } from './confirm.js';
export { once, say } from './overlay.js';

/** A button; an `onClick` that returns a promise runs once at a time, and its failure is said. */
export function Button({ icon, tone = '', label, children, small = false, onClick, ...rest }) {
  const latest = useRef(onClick), act = useRef(/** @type {any} */ (null));
  latest.current = onClick;
  act.current ??= once(event => latest.current?.(event));
  const kind = `btn ${tone} ${small ? 'small' : ''} ${children ? '' : 'only'}`;
  return html`<button type="button" class=${kind} aria-label=${label} title=${label}
    onClick=${act.current} ...${rest}>${icon && html`<${Icon} of=${icon} />`}${children}</button>`;
}

export const Name = ({ children, class: more = '' }) =>
  html`<bdi class="name ${more}" title=${children}>${children}</bdi>`;
export const Count = ({ of, tone = '', label }) =>
  of ? html`<span class="count ${tone}" aria-label=${label}>${of}</span>` : null;
export const Link = ({ to, children, ...rest }) => html`<a href=${href(to)}
  ...${rest}>${children}</a>`;

const REFUSED = 'The browser did not let the page copy.';
/** A text that a person copies by hand: over plain HTTP a page has no clipboard. */
const ByHand = ({ text, onClose }) => html`<${Dialog} title="Copy it by hand" onClose=${onClose}
  foot=${html`<${Button} onClick=${onClose}>Close<//>`}><p>${REFUSED}</p>
  <textarea class="input mono" readonly rows="6" aria-label="Text to copy" data-first dir="auto"
    value=${text} onFocus=${event => event.target.select()}></textarea><//>`;

/**
 * Copy a text, or what a function returns a promise of, and say `note`. Where the browser refuses,
 * the text is shown, selected. Returns whether it was copied.
 */
export async function copy(text, note = '') {
  const given = typeof text === 'function' ? await text() : text;
  try { await navigator.clipboard.writeText(given); } catch {
    if (overlay.peek()) throw new Error(REFUSED); // another dialog would end that one
    open(ByHand, { text: given });
    return false;
  }
  if (note) say(note);
  return true;
}
export function Copy({ text, label = 'Copy', children = 'Copy', small = true, tone = 'ghost' }) {
  const [isDone, setDone] = useState(false);
  const act = async () => {
    if (!await copy(text)) return;
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return html`<${Button} icon="copy" small=${small} tone=${tone} label=${label} onClick=${act}>
    ${isDone ? 'Copied' : children}<//>`;
}

const STEP = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
/** One of a few, `of` as [id, words]: arrow keys move, one stop of Tab. */
export function Choice({ of, value, onChange, label, counts = {} }) {
  const move = event => {
    const by = STEP[event.key];
    if (!by) return;
    event.preventDefault();
    const next = (of.findIndex(([id]) => id === value) + by + of.length) % of.length;
    onChange(of[next][0]);
    event.currentTarget.querySelectorAll('button')[next].focus();
  };
  return html`<div class="choice" role="radiogroup" aria-label=${label} onKeyDown=${move}>
    ${of.map(([id, words]) => html`<button type="button" key=${id} role="radio"
      aria-checked=${id === value} tabindex=${id === value ? 0 : -1} onClick=${() => onChange(id)}>
      ${words}${counts[id] === undefined ? '' : html`<span
        class="n">${counts[id]}</span>`}</button>`)}
  </div>`;
}

/**
 * A menu of actions. `items`: {text, act, key, tone}, or '-' for a line; false ones are left out.
 */
export function Menu({ label, icon = 'more', items, small = false, tone = 'ghost', text = '' }) {
  const [isOpen, setOpen] = useState(false), box = useRef(null), button = useRef(null);
  useEffect(() => {
    if (!isOpen) return undefined;
    box.current.querySelector('[role=menuitem]')?.focus();
    const away = event => {
      if (!box.current?.contains(event.target)
        && !button.current.contains(event.target)) setOpen(false);
    };
    addEventListener('pointerdown', away, true);
    return () => removeEventListener('pointerdown', away, true);
  }, [isOpen]);
  const shut = () => { setOpen(false); button.current.focus(); };
  const key = event => {
    const all = [...box.current.querySelectorAll('[role=menuitem]')];
    const at = all.indexOf(document.activeElement);
    if (event.key === 'Tab') { setOpen(false); return; }
    if (event.key === 'Escape') { event.stopPropagation(); shut(); }
    else if (event.key === 'ArrowDown') all[(at + 1) % all.length].focus();
    else if (event.key === 'ArrowUp') all[(at - 1 + all.length) % all.length].focus();
    else if (event.key === 'Home') all[0].focus();
    else if (event.key === 'End') all.at(-1).focus();
    else return;
    event.preventDefault();
  };
  const pick = each => { shut(); once(each.act)(); };
  return html`<div class="menu-of"><button ref=${button} type="button" title=${label}
      class="btn ${tone} ${small ? 'small' : ''} ${text ? '' : 'only'}" aria-haspopup="menu"
      aria-expanded=${isOpen} aria-label=${label} onClick=${() => setOpen(!isOpen)}>
      ${text}<${Icon} of=${icon} /></button>
    ${isOpen && html`<div ref=${box} class="menu" role="menu" aria-label=${label} onKeyDown=${key}>
      ${items.filter(Boolean).map(each => each === '-' ? html`<hr />` : html`<button type="button"
        role="menuitem" class=${each.tone ?? ''} key=${each.text} onClick=${() => pick(each)}>
        <span>${each.text}</span>${each.key && html`<kbd>${each.key}</kbd>`}</button>`)}</div>`}
  </div>`;
}

/** A modal dialog. `data-first` marks what gets the focus; closing gives it back. */
export function Dialog({ title, onClose, children, wide = false, foot = null, isForm = false }) {
  const box = useRef(null), from = useRef(/** @type {EventTarget | null} */ (null));
  useLayoutEffect(() => {
    const { current } = box, before = /** @type {HTMLElement} */ (document.activeElement);
    current.showModal();
    current.querySelector('[data-first]')?.focus();
    return () => { current.close(); before?.focus?.(); };
  }, []);
  // A form stays open at a click beside it, and so does a dialog in which a selection began.
  const beside = event => {
    if (!isForm && event.target === box.current && from.current === box.current) onClose();
  };
  return html`<dialog ref=${box} class="dialog ${wide ? 'wide' : ''}" aria-label=${title}
    onCancel=${event => { event.preventDefault(); onClose(); }} onClick=${beside}
    onPointerDown=${event => { from.current = event.target; }}>
    <div class="dialog-head"><h2>${title}</h2>
      <${Button} icon="close" label="Close" tone="ghost" onClick=${onClose} /></div>
    ${isForm ? children : html`<div class="dialog-body" tabindex="-1">${children}</div>`}
    ${foot && html`<div class="dialog-foot">${foot}</div>`}</dialog>`;
}

/**
 * A dialog with fields. `act` is awaited: while it fails, the dialog stays open with the sentence
 * beside the button, and what was typed stays too.
 */
export function Form({ title, verb, act, onClose, children, tone = 'main', wide = false,
  more = null,
  disabled = false }) {
  const [why, setWhy] = useState(''), [isBusy, setBusy] = useState(false), box = useRef(null);
  const send = async event => {
    event.preventDefault();
    if (isBusy || disabled) return;
    setBusy(true);
    setWhy('');
    try {
      await act();
      onClose();
    } catch (error) {
      if (!box.current) { say(error); return; } // the dialog was closed meanwhile
      setWhy(error.message);
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${title} onClose=${onClose} wide=${wide} isForm><form
    ref=${box} onSubmit=${send}
    onKeyDown=${event => { if (event.key === 'Enter' && (event.ctrlKey
      || event.metaKey)) send(event); }}>
    <div class="dialog-body">${children}</div>
    <div class="dialog-foot">${why && html`<p class="why" role="alert" dir="auto">${why}</p>`}
      ${more}<span class="gap"></span><${Button} onClick=${onClose}>Cancel<//>
      <button class="btn ${tone}" disabled=${isBusy || disabled}>${isBusy ? 'A moment…'
        : verb}</button>
    </div></form><//>`;
}

/** A control with its name, and a note that is not a part of the name. */
export const Field = ({ label, note = null, children }) => html`<div class="field"><label>
  <span class="label">${label}</span>${children}</label>
  ${note && html`<span class="note">${note}</span>`}</div>`;
/** A text field; `onInput` gets the text. */
export const Input = ({ value, onInput, ...rest }) => html`<input class="input" value=${value}
  autocomplete="off" spellcheck=${false} onInput=${event => onInput(event.target.value)}
    ...${rest} />`;
export const TextBox = ({ value, onInput, rows = 4, ...rest }) => html`<textarea class="input"
  rows=${rows} dir="auto" value=${value} onInput=${event => onInput(event.target.value)}
    ...${rest} />`;
export const Check = ({ label, value, onChange, note = null }) => html`<label class="check">
  <input type="checkbox" checked=${value} onChange=${event => onChange(event.target.checked)} />
  <span>${label}${note && html`<span class="note"> ${note}</span>`}</span></label>`;
export const Select = ({ of, value, onChange, label, ...rest }) => html`<select class="input"
  aria-label=${label} value=${value} onChange=${event => onChange(event.target.value)} ...${rest}>
  ${of.map(([id, words]) => html`<option key=${id} value=${id} selected=${id === value}>${words}
  </option>`)}</select>`;
/** A choice in little room, such as the model in a composer. */
export const Pick = ({ label, value, of, onChange, class: more = '' }) => html`<label
  class="pick ${more}"><span class="hidden">${label}</span><select title=${label} value=${value}
    onChange=${event => onChange(event.target.value)}>${of.map(([id, words]) => html`<option
      key=${id}
      value=${id} selected=${id === value}>${words}</option>`)}</select></label>`;

export const Empty = ({ title, children = null }) => html`<div class="empty"><p>${title}</p>
  ${children}</div>`;
/** The head of a view: state, name, a note, and what can be done, at the right. */
export const Head = ({ state = null, title, note = null, children = null }) => html`<header
  class="head">
  ${state && html`<${State} of=${state} />`}<h1><bdi title=${title}>${title}</bdi></h1>
  ${note && html`<span class="note cut">${note}</span>`}<span class="gap"></span>
  <div class="acts">${children}</div></header>`;
export const Section = ({ title, count = 0, tone = '', more = null, children,
  class: extra = '' }) =>
  html`<section class="section ${extra}" aria-label=${title}><div
    class="section-head"><h2>${title}</h2>
    <${Count} of=${count} tone=${tone} /><span
      class="gap"></span>${more}</div>${children}</section>`;

/**
 * Read a value of the daemon when `deps` change: [value, error, again]. Old answers are dropped.
 */
export function useRead(read, deps) {
  const [state, setState] = useState({ value: null, error: null }), turn = useRef(0);
  const again = async () => {
    const mine = ++turn.current;
    try {
      const value = await read();
      if (mine === turn.current) setState({ value, error: null });
    } catch (error) {
      if (mine === turn.current) setState(before => ({ value: before.value, error }));
    }
  };
  useEffect(() => { again(); return () => { turn.current++; }; }, deps);
  const isUp = connection.value.state === 'up';
  useEffect(() => { if (isUp && state.error?.code === 'lost') again(); }, [isUp]);
  return [state.value, state.error, again];
}
/** The sentence of a failure, with a button that tries again. */
export const Why = ({ of, again = null }) => of && html`<p class="why pad" role="alert">
  <span dir="auto">${of.message}</span>
  ${again && html` <${Button} small onClick=${again}>Try again<//>`}</p>`;
