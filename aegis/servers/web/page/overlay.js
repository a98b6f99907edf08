// What lies over the page: one dialog, and a few short notes.
import { html, signal } from './lib.js';

/** @type {import('@preact/signals').Signal<{Component: any, props: any, id: number} | null>} */
export const overlay = signal(null);
let number = 0;

/** Show a dialog; its component gets `onClose`. */
export function open(Component, props = {}) {
  overlay.value = { Component, props, id: ++number };
}
export const close = () => { overlay.value = null; };

const SHOWN_MS = 7000;
const MOST = 3;
/** @type {import('@preact/signals').Signal<{id: number, text: string, tone: string,
  undo: any}[]>} */
export const notes = signal([]);

/**
 * Show a note for a while. A failure is an `Error`: it stays twice as long.
 * @param {string | Error} said @param {{tone?: string, undo?: (() => void) | null}} [more]
 */
export function say(said, more = {}) {
  const isBad = said instanceof Error, text = isBad ? said.message : said;
  const one = { id: ++number, text, tone: more.tone ?? (isBad ? 'bad' : ''), undo: more.undo
    ?? null };
  notes.value = [...notes.value.filter(each => each.text !== text), one].slice(-MOST);
  setTimeout(() => dismiss(one.id), isBad ? 2 * SHOWN_MS : SHOWN_MS);
}
export const dismiss = id => { notes.value = notes.value.filter(each => each.id !== id); };

/**
 * Return `act` as a button calls it: nothing happens while it runs, and a failure is said.
 * @param {(...given: any[]) => any} act
 */
export function once(act) {
  let isBusy = false;
  return async (...given) => {
    if (isBusy) return;
    isBusy = true;
    try { await act(...given); } catch (error) { say(error); } finally { isBusy = false; }
  };
}

export const Overlay = () => {
  const here = overlay.value;
  if (!here) return null;
  // An act that ends late closes its own dialog, not the one that was opened meanwhile.
  const shut = () => { if (overlay.peek()?.id === here.id) close(); };
  return html`<${here.Component} key=${here.id} ...${here.props} onClose=${shut} />`;
};

export const Notes = () => html`<div class="notes" role="status" aria-live="polite">
  ${notes.value.map(each => html`<div class="said ${each.tone}" key=${each.id}>
    <span dir="auto">${each.text}</span>
    ${each.undo && html`<button class="link" onClick=${() => { dismiss(each.id); each.undo(); }}>
      Undo</button>`}
    <button class="x" aria-label="Dismiss" onClick=${() => dismiss(each.id)}>×</button>
  </div>`)}</div>`;
