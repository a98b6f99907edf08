// The history of a canvas: who changed what, and the difference to the text before.
import { html, useEffect, useRef, useState } from '../lib.js';
import { call, connection } from '../store.js';
import { Button, Icon, Time } from '../ui.js';
import { Diff, edited } from '../diff.js';
import { titleOf, writerOf } from './canvas.js';

const STEP = 30;
const WORDS = { written: 'wrote', appended: 'appended to', changed: 'changed', removed: 'removed' };

/** Return the text of a section before and after a change, from the changes before it, the newest
 * first; null for a text that is not known. Of a whole history all texts are known. */
export function texts(changes, index, isWhole) {
  const { section, op, text } = changes[index];
  let before = isWhole ? '' : null;
  const older = changes.slice(index + 1).filter(each => each.section === section
    && !each.displaced);
  for (const each of older.toReversed()) {
    if (each.op !== 'appended') before = each.text ?? '';
    else if (before !== null) before += `${before && !before.endsWith('\n') ? '\n'
      : ''}${each.text}`;
  }
  if (op === 'appended') {
    // Of an appended text the difference is known without the text before.
    return { before: before ?? '', after: `${before ? before.replace(/\n?$/, '\n') : ''}${text}` };
  }
  return { before, after: text ?? '' };
}

function Change({ changes, index, isWhole }) {
  const each = changes[index], [isOpen, setOpen] = useState(false);
  const { before, after } = texts(changes, index, isWhole);
  return html`<li class=${`ask ${isOpen ? 'open' : ''}`}><div class="ask-line"><button type="button"
    class="ask-open" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}><${Icon}
      of="right" />
    <span class="what"><span
      class="num note">${each.rev}</span>${' '}<bdi><b>${writerOf(each.writer)}</b></bdi>
    ${' '}${WORDS[each.op]} <bdi>${titleOf(each.section)}</bdi>${each.displaced && html` <span
    class="note">(a text that was replaced)</span>`}</span></button><span class="pm"><span
      class="plus"
    >+${each.added}</span> <span class="minus">−${each.removed}</span></span><${Time}
    at=${each.timestamp} /></div>${isOpen && html`<div class="ask-body">${before !== null
      ? html`<${Diff} files=${[edited(titleOf(each.section), before, after)]}
        isOpen=${true} />`
      : html`<p class="note">The text before is not known here: show older changes for the
        difference.</p>`}
    ${each.text !== null && html`<details><summary>${each.op === 'appended' ? 'What was appended'
      : 'The whole text'}</summary><pre class="exact" tabindex="0" role="region"
      aria-label=${`Text of revision ${each.rev}`}>${each.text}</pre></details>`}</div>`}</li>`;
}

/** The changes of a canvas, the newest first; older ones as they are asked for. */
export function History({ canvas, rev }) {
  const [list, setList] = useState([]), [next, setNext] = useState(null);
  const [problem, setProblem] = useState(''), [isGone, setGone] = useState(false);
  const { state } = connection.value, turn = useRef(0);
  const read = async before => {
    const mine = ++turn.current;
    try {
      const found = await call('canvas_history', { name: canvas, limit: STEP, ...before
        && { before } });
      if (mine !== turn.current) return; // an older answer that comes later counts for nothing
      setList(known => before ? [...known, ...found.result] : found.result);
      setNext(found.more ? found.before : null); setGone(found.gone); setProblem('');
    } catch (error) {
      if (mine === turn.current && error.code !== 'lost') setProblem(error.message);
    }
  };
  useEffect(() => { if (state === 'up') read(null); }, [canvas, rev, state]);
  return html`<section class="section" aria-label="History"><div
    class="section-head"><h2>History</h2>
    </div>${problem && html`<p class="bad-text" role="alert">${problem}</p>`}
    ${!list.length && !problem && html`<p class="calm">Nothing was changed yet.</p>`}
    ${list.length > 0 && html`<ul class="asks" aria-label="Changes">${list.map((each, index) =>
      html`<${Change} key=${`${each.rev} ${each.displaced}`} changes=${list} index=${index}
        isWhole=${next === null && !isGone} />`)}</ul>`}
    ${next !== null && html`<${Button} tone="ghost all" onClick=${() => read(next)}>Show older<//>`}
    ${isGone && html`<p class="note">Older ones are not kept.</p>`}</section>`;
}
