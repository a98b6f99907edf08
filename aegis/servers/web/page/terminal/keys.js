// A phone's help: the keys that its keyboard has not, pasting, and text that a finger can select.
import { html, useEffect, useRef, useState } from '../lib.js';
import { open, say } from '../overlay.js';
import { Button, Copy, Dialog, Form } from '../ui.js';

const arrow = letter => session =>
  `\x1b${session.term.modes.applicationCursorKeysMode ? 'O' : '['}${letter}`;
const KEYS = [
  ['Esc', 'Esc', '\x1b'], ['Tab', 'Tab', '\t'], ['Ctrl', 'Ctrl', 'ctrl'],
  ['Alt', 'Alt', 'alt'],
  ['↑', 'Up', arrow('A')], ['↓', 'Down', arrow('B')], ['←', 'Left', arrow('D')],
  ['→', 'Right', arrow('C')], ['^C', 'Control C', '\x03'], ['⇧Tab', 'Shift Tab', '\x1b[Z'],
  ['Home', 'Home', '\x1b[H'], ['End', 'End', '\x1b[F'], ['PgUp', 'PgUp', '\x1b[5~'],
  ['PgDn', 'PgDn', '\x1b[6~'], ['/', 'Slash', '/'], ['|', 'Pipe', '|'], ['~', 'Tilde', '~'],
  ['-', 'Minus', '-'],
];

/** The bar of keys. Ctrl and Alt hold for the next key. @param {{session: any}} props */
export function KeyBar({ session }) {
  const held = session.held.value;
  const press = keys => {
    if (keys === 'ctrl' || keys === 'alt') session.held.value = { ...held, [keys]: !held[keys] };
    else session.send(session.mapped(typeof keys === 'function' ? keys(session) : keys));
    session.term?.focus();
  };
  // The keyboard of the phone stays: the focus is not taken from the screen.
  const stay = event => event.preventDefault();
  return html`<div class="keybar" role="toolbar" aria-label="Keys">
    <button type="button" onPointerDown=${stay} onClick=${() => paste(session)}>Paste</button>
    ${KEYS.map(([label, spoken, keys]) => html`<button type="button" key=${label}
      aria-label=${spoken} onPointerDown=${stay} onClick=${() => press(keys)}
      aria-pressed=${keys === 'ctrl' ? held.ctrl : keys === 'alt' ? held.alt : null}>
      ${label}</button>`)}</div>`;
}

/** Paste; where the browser gives no text away, a person pastes it into a box. */
export async function paste(session) {
  let text = null;
  try { text = await navigator.clipboard.readText(); } catch { /* not allowed */ }
  if (text === null) open(Paste, { session });
  else if (text) session.paste(text);
  else say('There is nothing to paste.');
}

function Paste({ session, onClose }) {
  const [text, setText] = useState('');
  return html`<${Form} title="Paste" verb="Paste" onClose=${onClose}
    act=${async () => { session.paste(text); }}>
    <textarea class="input mono" data-first rows="6" aria-label="Text to paste" value=${text}
      placeholder="Paste here first"
        onInput=${event => setText(event.target.value)}></textarea><//>`;
}

/** The text of the screen, and of what is above it, to select with a finger. */
export function SelectText({ session, onClose }) {
  const [text] = useState(() => session.text()), box = useRef(null);
  useEffect(() => { const { current } = box; current.scrollTop = current.scrollHeight; }, []);
  return html`<${Dialog} wide title="Select text" onClose=${onClose}
    foot=${html`<${Button} onClick=${onClose}>Close<//><${Copy} text=${text} label="Copy all" />`}>
    <pre class="select-text" ref=${box} tabindex="0">${text}</pre><//>`;
}
