// The output of a command that an agent has its session run: live while it runs, whole on request.
import { html, useLayoutEffect, useRef, useState } from '../lib.js';
import { open } from '../overlay.js';
import { call, isReadOnly, useStream } from '../store.js';
import { Button, Copy, Dialog, Following, State } from '../ui.js';

const KEPT_CHARS = 60_000;

/** @param {{block: any, handle: string}} props */
export function Output({ block, handle }) {
  const isLive = block.state === 'runs' && !isReadOnly.value;
  return html`<div class="embed"><div class="embed-head">
      <${State} of=${{ runs: 'works', done: 'done', failed: 'failed' }[block.state] ?? 'ended'} />
      <code class="cut" dir="ltr">$ ${block.command}</code><span class="gap"></span>
      <span class="note">${block.state === 'runs' ? 'live' : ended(block)}</span>
      ${!isReadOnly.value && html`<${Button} small tone="ghost" label="Show the whole output"
        onClick=${() => open(Whole, { handle, command: block.id,
          title: block.command })}>Whole<//>`}</div>
    ${isLive ? html`<${Live} handle=${handle} block=${block} />`
      : html`<${Screen} text=${`${block.truncated ? '…\n' : ''}${block.output ?? ''}`} />`}</div>`;
}

const ended = ({ signal, exit }) => signal ? `ended by ${signal}`
  : exit === null || exit === undefined ? 'its end was not seen' : `exit ${exit}`;

function Screen({ text }) {
  const box = useRef(null), following = useRef(null);
  following.current ??= new Following(true);
  useLayoutEffect(() => {
    if (following.current.is) following.current.go(box.current);
  });
  const scroll = ({ currentTarget: it }) => following.current.scrolled(it, 30);
  return html`<pre ref=${box} class="screen-text" tabindex="0" role="group" aria-label="Output"
    dir="ltr" onScroll=${scroll}>${text || ' '}</pre>`;
}

/** @param {{handle: string, block: any}} props */
function Live({ handle, block }) {
  const [shown, show] = useState(null), kept = useRef('');
  useStream('agent_command', { handle, command: block.id }, {
    opened: () => { kept.current = ''; },
    gap: () => {},
    item: ({ text, line }) => {
      kept.current = (kept.current + text).slice(-KEPT_CHARS);
      show(kept.current + line);
    },
  }, [handle, block.id]);
  return html`<${Screen} text=${shown ?? block.output ?? ''} />`;
}

/** All of the output that is kept, read in parts. */
function Whole({ handle, command, title, onClose }) {
  const [text, setText] = useState(''), [why, setWhy] = useState('reading…');
  useLayoutEffect(() => {
    let isOff = false;
    (async () => {
      try {
        for (let cursor = 0, all = ''; !isOff;) {
          const reply = await call('agent_output', { handle, command, cursor });
          const lost = `The first ${reply.begin} bytes are no longer kept.`;
          if (cursor === 0) setWhy(reply.begin > 0 ? lost : '');
          all += reply.output;
          if (!isOff) setText(all + reply.line);
          if (reply.cursor === cursor || !reply.output) break;
          cursor = reply.cursor;
        }
      } catch (error) { setWhy(error.message); }
    })();
    return () => { isOff = true; };
  }, []);
  return html`<${Dialog} wide title=${title || 'Output'} onClose=${onClose}
    foot=${html`<${Copy} text=${text} label="Copy the output" />`}>
    ${why && html`<p class="note" role="status">${why}</p>`}
    <pre class="result whole" tabindex="0" role="group" aria-label="Output"
      dir="ltr">${text}</pre><//>`;
}
