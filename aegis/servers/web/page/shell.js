// The frame: rail, tabs, panes, the bars of a phone, and the keys of the page.
import { effect, html, useEffect, useLayoutEffect, useRef, useState } from './lib.js';
import { actions } from './actions.js';
import { Notes, Overlay, open, overlay } from './overlay.js';
import { Keys, Launch, NewTerminal, Palette } from './dialogs.js';
import {
  activePane, closePane, closeTab, go, href, isHome, panes, place, set, settings, subject, tabs,
} from './place.js';
import { Live, Rail } from './rail.js';
import { isReadOnly, isReady, mail, requests, view } from './store.js';
import { Button, Choice, Count, Icon, Menu, State, usePhone } from './ui.js';
import { PAGES, View, iconOf, stateOf, titleOf } from './views.js';

const isWriting = target => /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)
  || Boolean(target.closest?.('.xterm, [contenteditable]'));

/** The keys of the page, outside of boxes: what each does. */
const PLAIN = {
  '/': () => /** @type {HTMLElement} */ (document.querySelector('.rail-find input'))?.focus(),
  '?': () => open(Keys), c: () => open(Launch), t: () => open(NewTerminal), h: () => go('home'),
  i: () => go('inbox'), ',': () => go('settings'), '[': () => step(-1), ']': () => step(1),
  x: () => closeTab(place.value),
};
function step(by) {
  const all = tabs.value;
  go(all[(all.indexOf(place.value) + by + all.length) % all.length]);
}

const PAUSE_MS = 1000;
/** The box that is written in. One that goes meanwhile leaves the rest of a word to our keys. */
const writing = { box: /** @type {any} */ (null), until: 0 };
const write = box => { Object.assign(writing, { box, until: 0 }); };
addEventListener('focusin', ({ target }) => {
  if (isWriting(target)) write(target);
  else if (writing.box?.isConnected) write(null); // else the page itself moved the focus
});
addEventListener('pointerdown', () => write(null), true);
effect(() => { place.value; write(null); }); // the person went to another place

/** Whether a key ends what is written in a box: behind a wrong password comes the next one. */
function isEnd({ key, shiftKey, ctrlKey, metaKey, isComposing, target }) {
  if (target.closest?.('.xterm, .answer')) return false;
  return key === 'Escape' || (key === 'Enter' && !shiftKey && !isComposing
    && (target.tagName === 'INPUT' || ctrlKey || metaKey));
}

/** Whether the box went in which the person writes: until they pause. */
function isOfLostBox() {
  const { box, until } = writing, at = performance.now();
  if (!box || box.isConnected) return false;
  if (until && at > until) { write(null); return false; }
  writing.until = at + PAUSE_MS;
  return true;
}

function keyAct(event) {
  const isCtrl = event.ctrlKey || event.metaKey, isTyping = isWriting(event.target);
  if (isTyping) write(isEnd(event) ? null : event.target);
  // What is typed in a dialog stays; the palette may be opened anew.
  if (overlay.value && !document.querySelector('dialog.palette')) return null;
  if (isCtrl && event.shiftKey) {
    // Firefox keeps Ctrl Shift P for a private window, and hides it from every page.
    return { KeyK: () => open(Palette), KeyP: () => open(Palette),
      KeyO: () => go('home') }[event.code];
  }
  if (event.altKey || (isTyping && event.target.closest?.('.xterm'))) return null;
  if (isCtrl) {
    if (event.key === 'k' && event.target.closest?.('.editor')) return null; // a link
    return { k: () => open(Palette), '\\': () => open(Palette, { isBeside: true }) }[event.key];
  }
  if (isTyping || overlay.value || isOfLostBox()) return null;
  if (/^[1-9]$/.test(event.key)) return tabs.value[event.key - 1]
    && (() => go(tabs.value[event.key - 1]));
  return PLAIN[event.key];
}

actions(() => [
  { text: 'Launch an agent', key: 'c', act: () => open(Launch), words: 'new start' },
  { text: 'New terminal', key: 't', act: () => open(NewTerminal), words: 'shell open' },
  { text: 'Keys of the page', key: '?', act: () => open(Keys), words: 'help shortcuts' },
  { text: settings.value.rail ? 'Hide the list' : 'Show the list',
    act: () => set({ rail: !settings.value.rail }) },
  panes.value.length > 1 && { text: 'Close this pane', act: () => closePane(activePane.value) },
  !isHome(place.value) && { text: 'Close this tab', key: 'x', act: () => closeTab(place.value) },
  { text: 'Close all other tabs',
    act: () => { tabs.value = tabs.value.filter(each => isHome(each) || each === place.value); } },
]);

function Tabs() {
  const box = useRef(null);
  useLayoutEffect(() => {
    box.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest',
      inline: 'nearest' });
  }, [place.value]);
  const key = (event, where) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === 'Delete') closeTab(where);
    if (!by) return;
    step(by);
    requestAnimationFrame(() => box.current.querySelector('[aria-current]')?.focus());
  };
  return html`<nav class="tabs" ref=${box} aria-label="Open tabs"><ul>
    ${tabs.value.map(where => html`<${Tab} key=${where} where=${where}
      onKey=${key} />`)}</ul></nav>`;
}

function Tab({ where, onKey }) {
  const parts = where.split('+'), isHere = where === place.value;
  const names = parts.map(titleOf).join(' | '), state = stateOf(parts[0]);
  const middle = event => event.button === 1 && closeTab(where);
  return html`<li class="tab ${isHere ? 'on' : ''}" onAuxClick=${middle}>
    <a aria-current=${isHere ? 'page' : null} tabindex=${isHere ? 0 : -1} href=${href(where)}
      title=${names} onKeyDown=${event => onKey(event, where)}>
      ${state ? html`<${State} of=${state} quiet />` : html`<${Icon} of=${iconOf(parts[0])} />`}
      <bdi class="name">${names}</bdi></a>
    ${!isHome(where) && html`<button type="button" class="x" tabindex=${isHere ? 0 : -1}
      aria-label=${`Close the tab ${names}`} onClick=${() => closeTab(where)}>
      <${Icon} of="close" /></button>`}</li>`;
}

const NARROWEST = 20;
const between = at => Math.max(NARROWEST, Math.min(100 - NARROWEST, at));

function Panes() {
  const [at, setAt] = useState(50), box = useRef(null), isPhone = usePhone(), all = panes.value;
  const drag = event => {
    const grip = event.currentTarget;
    grip.setPointerCapture(event.pointerId);
    grip.onpointermove = move => {
      const size = box.current.getBoundingClientRect();
      setAt(between((move.clientX - size.left) / size.width * 100));
    };
    grip.onpointerup = () => { grip.onpointermove = null; };
  };
  const nudge = event => {
    const by = { ArrowLeft: -5, ArrowRight: 5 }[event.key];
    if (by) setAt(between(at + by));
  };
  const pane = (where, index) => html`<section key=${subject(where)}
    aria-label=${all.length > 1 ? titleOf(where) : null}
    class="pane ${index === activePane.value && all.length > 1 ? 'on' : ''}"
    style=${all.length === 2 ? { flexBasis: `${index ? 100 - at : at}%` } : null}
    onFocusIn=${() => { activePane.value = index; }}
    onPointerDown=${() => { activePane.value = index; }}>
    <${View} where=${where} onClose=${all.length > 1 ? () => closePane(index) : null} /></section>`;
  if (isPhone) {
    const index = Math.min(activePane.value, all.length - 1);
    const choose = value => { activePane.value = value; };
    return html`<div class="panes">${all.length > 1 && html`<${Choice} label="Pane" value=${index}
      of=${all.map((each, each2) => [each2, titleOf(each)])} onChange=${choose} />`}
      ${pane(all[index], index)}</div>`;
  }
  return html`<div class="panes" ref=${box} data-count=${all.length}>${all.map((where, index) => [
    index > 0 && html`<div class="grip" key=${`grip${index}`} role="separator" tabindex="0"
      aria-orientation="vertical" aria-label="Width of the panes" aria-valuenow=${Math.round(at)}
      aria-valuemin=${NARROWEST} aria-valuemax=${100 - NARROWEST} onPointerDown=${drag}
      onKeyDown=${nudge}></div>`, pane(where, index)])}</div>`;
}

const PHONE_PAGES = ['home', 'agents', 'terminals', 'inbox', 'more'];
const PHONE_PAGE = { home: 'home', a: 'agents', agents: 'agents', changes: 'agents', t: 'terminals',
  terminals: 'terminals', inbox: 'inbox', m: 'inbox' };

function PhoneBar() {
  const here = PHONE_PAGE[place.value.split(/[/?+]/)[0]] ?? 'more';
  const counts = { home: requests.value.size, inbox: mail.value.size };
  return html`<nav class="bottom" aria-label="Pages">${PHONE_PAGES.map(where => html`<a key=${where}
    href=${href(where)} aria-current=${here === where ? 'page' : null}><span class="bottom-icon">
    <${Icon} of=${PAGES[where][2]} /><${Count} of=${counts[where]}
      tone=${where === 'home' ? 'ask' : ''} /></span>${PAGES[where][0]}</a>`)}</nav>`;
}

const Strip = () => html`<div class="strip">
  <${Button} icon="menu" small tone="ghost" label=${settings.value.rail ? 'Hide the list'
    : 'Show the list'}
    onClick=${() => set({ rail: !settings.value.rail })} /><${Tabs} />
  <${Menu} label="Open or start something" icon="plus" small items=${[
    { text: 'Launch an agent', key: 'c', act: () => open(Launch) },
    { text: 'New terminal', key: 't', act: () => open(NewTerminal) }, '-',
    { text: 'Open beside', key: 'Ctrl \\', act: () => open(Palette,
      { isBeside: true }) }]} /></div>`;

/** A read-only link: its terminal or agent, and nothing else. */
const OfLink = () => {
  const [kind, id] = view.value.split(/:(.*)/s), where = `${kind === 'terminal' ? 't' : 'a'}/${id}`;
  useEffect(() => { document.title = `${id} · aegis-actors`; }, [id]);
  return html`<div class="app norail"><main id="main" tabindex="-1"><div class="strip of-link">
    <span class="chip">read-only</span><span class="gap"></span><${Live} /></div>
    <section class="pane"><${View} where=${where} onClose=${null} /></section></main></div>`;
};

export function Shell() {
  const isPhone = usePhone();
  useEffect(() => {
    const key = event => {
      if (event.defaultPrevented || isReadOnly.value) return;
      const act = keyAct(event);
      if (!act) return;
      write(null); // the person leaves the box by a key
      event.preventDefault();
      event.stopPropagation();
      act();
    };
    addEventListener('keydown', key, true);
    return () => removeEventListener('keydown', key, true);
  }, []);
  const waiting = requests.value.size, title = panes.value.map(titleOf).join(' | ');
  useEffect(() => {
    document.title = `${waiting ? `(${waiting}) ` : ''}${title} · aegis-actors`;
  }, [waiting, title]);
  const toMain = event => { event.preventDefault(); document.getElementById('main').focus(); };
  if (isReadOnly.value) return html`<${OfLink} /><${Notes} />`;
  return html`<a class="skip" href="#main" onClick=${toMain}>Skip to content</a>
    <div class="app ${settings.value.rail ? '' : 'norail'}">${!isPhone && html`<${Rail} />`}
      <main id="main" tabindex="-1">${isPhone ? html`<div class="phone-live"><${Live} /></div>`
    : html`<${Strip} />`}
        ${isReady.value ? html`<${Panes} />` : html`<p class="wait">Connecting…</p>`}</main>
      ${isPhone && html`<${PhoneBar} />`}</div><${Overlay} /><${Notes} />`;
}
