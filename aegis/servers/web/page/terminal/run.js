// The line under a terminal: it runs a command, or answers the program that waits for input.
import { draft } from '../drafts.js';
import { html, useEffect, useLayoutEffect, useRef, useState } from '../lib.js';
import { call } from '../store.js';
import { Button } from '../ui.js';
import { wholeOf } from './records.js';

const MOST_ROWS = 8, SEEN_MS = 600, HIDDEN_MS = 1500;

/** Start a command; returns once it runs. */
export const run = (name, cmd) => call('term_run', { name, cmd, until: 'started', timeout: 10 });
/** Interrupt what runs in a terminal. */
export const interrupt = name => call('term_signal', { name, signal: 'INT' });

/** Whether no control has the focus: then a line may take it. */
const isFocusFree = () => ['BODY', 'MAIN'].includes(document.activeElement.tagName);

/** @param {{session: any}} props */
export function RunLine({ session }) {
  const { needs: now, state } = session.shown.value, [text, setText] = useState('');
  const before = useRef(/** @type {any} */ (null)), hadFocus = useRef(false);
  const needs = state === 'running' ? now : null;
  // Half an answer keeps its box: the rest of a password would be typed into another one.
  const isOver = text !== '' && before.current !== null && before.current.kind !== needs?.kind;
  before.current = isOver ? before.current : needs;
  if (before.current) {
    return html`<${Answer} key=${before.current.kind} needs=${before.current}
      ...${{ session, text, setText, isOver, hadFocus }} />`;
  }
  return html`<${Run} ...${{ session, hadFocus }} />`;
}

function Run({ session, hadFocus }) {
  const { name, ledger } = session, text = draft(`run:${name}`), [why, setWhy] = useState('');
  const at = useRef(-1), typed = useRef(''), sending = useRef(null), box = useRef(null);
  const isRunning = session.shown.value.state === 'running';
  useLayoutEffect(() => { // once the command has ended that was answered: until then it may ask on
    if (isRunning || !hadFocus.current) return;
    if (isFocusFree()) box.current.focus();
    hadFocus.current = false;
  }, [isRunning]);
  const send = async () => {
    const cmd = text.value ?? '';
    if (!cmd.trim() || sending.current === cmd) return;
    sending.current = cmd;
    setWhy('');
    try {
      await run(name, cmd);
      if (text.value === cmd) text.value = null; // else a next one is written already
      at.current = -1;
    } catch (error) { setWhy(error.message); } finally {
      if (sending.current === cmd) sending.current = null;
    }
  };
  /** Earlier commands, as a shell shows them: what was typed is behind the newest. */
  const recall = by => {
    const all = [...new Set(ledger.list.peek().map(wholeOf).filter(Boolean))];
    const next = Math.max(-1, Math.min(all.length - 1, at.current + by));
    if (next === at.current) return;
    if (at.current < 0) typed.current = text.value ?? '';
    at.current = next;
    text.value = all[next] ?? typed.current;
  };
  const key = event => {
    if (event.isComposing) return;
    const { value, selectionStart, selectionEnd } = event.target;
    const isFirst = !value.slice(0, selectionStart).includes('\n');
    const isLast = !value.slice(selectionEnd).includes('\n');
    if (event.key === 'Enter' && !event.shiftKey) {
      event.preventDefault();
      if (!event.repeat) send();
    } else if (event.key === 'ArrowUp' && isFirst) { event.preventDefault(); recall(1); }
    else if (event.key === 'ArrowDown' && isLast) { event.preventDefault(); recall(-1); }
    else if (event.key === 'Escape') session.term?.focus();
  };
  const rows = Math.min(MOST_ROWS, (text.value ?? '').split('\n').length);
  return html`<form class="run-line" onSubmit=${event => { event.preventDefault(); send(); }}>
    <span class="run-sign" aria-hidden="true">$</span>
    <textarea class="mono" ref=${box} rows=${rows} aria-label="Run a command"
      placeholder="Run a command"
      spellcheck=${false} autocapitalize="off" autocomplete="off" dir="ltr" enterkeyhint="go"
      value=${text.value ?? ''} onKeyDown=${key}
      onInput=${event => { text.value = event.target.value; at.current = -1; }}></textarea>
    ${why && html`<span class="why" role="alert" dir="auto">${why}</span>`}
    <button class="btn small soft">Run</button></form>`;
}

function Answer({ session, needs, text, setText, isOver, hadFocus }) {
  const { name } = session, isSecret = needs.kind === 'secret';
  const [why, setWhy] = useState(''), input = useRef(null), isBusy = useRef(false);
  const overAt = useRef(0), waits = () => session.shown.peek().needs?.kind === needs.kind;
  overAt.current = isOver ? overAt.current || performance.now() : 0;
  useEffect(() => {
    if (isFocusFree()) input.current.focus();
  }, []);
  useLayoutEffect(() => {
    const { form } = input.current;
    hadFocus.current = false;
    // A password that is asked for again would be typed in the line for commands, in sight of all.
    return () => { hadFocus.current = !isSecret && form.contains(document.activeElement); };
  }, []);
  const send = async event => {
    event.preventDefault();
    if (isBusy.current) return;
    if (isOver && (isSecret || performance.now() - overAt.current > SEEN_MS)) {
      setText('');
      return;
    }
    isBusy.current = true;
    setWhy('');
    // What a program prints, or gets from another client, hides for a moment that it waits.
    for (const till = performance.now() + HIDDEN_MS; !isSecret && !waits()
      && performance.now() < till;) await new Promise(done => setTimeout(done, 50));
    // What waited may have ended: a password would be typed at the prompt, in sight of all.
    if (!waits()) {
      isBusy.current = false;
      setWhy('It no longer waits.');
      return;
    }
    try { await call('term_keys', { name, keys: `${text}\r` }); setText(''); } catch (error) {
      setWhy(error.message);
      if (error.code === 'lost') setText(''); // it may have been sent
    } finally { isBusy.current = false; }
  };
  const isUnsent = isOver && !isBusy.current; // else the reply to it is a moment behind
  const stop = async () => { await interrupt(name); setText(''); };
  const label = isSecret ? `Password for ${needs.program}` : `Answer to ${needs.program}`;
  return html`<form class="run-line answer" onSubmit=${send} autocomplete="off">
    <span class="run-why" role="status" dir="auto">${isUnsent
      ? `${needs.program} no longer waits: this was not sent` : isSecret
        ? `${needs.program} asks for a password` : `${needs.program} waits for input`}</span>
    <input class="mono" ref=${input} type=${isSecret ? 'password' : 'text'} aria-label=${label}
      autocomplete=${isSecret ? 'new-password' : 'off'} spellcheck=${false} autocapitalize="off"
      value=${text} onInput=${event => setText(event.target.value)} />
    ${why && html`<span class="why" role="alert" dir="auto">${why}</span>`}
    <button class="btn small main">${isUnsent ? 'Drop' : 'Send'}</button>
    ${!isUnsent && html`<${Button} small onClick=${stop}>Interrupt<//>`}</form>`;
}
