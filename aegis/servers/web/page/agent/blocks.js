// The blocks of a transcript as elements; each is drawn again only once it has changed.
import { html, useRef } from '../lib.js';
import { isReadOnly } from '../store.js';
import { Text } from '../text.js';
import { Button, State, Time, copy, seconds } from '../ui.js';
import { grouped } from './fold.js';
import { Output } from './output.js';
import { Images } from './images.js';
import { Fold, Steps, Tool } from './tool.js';

/** The text that the agent wrote in the turn that a block is in. */
function textOfTurn(fold, seq) {
  const all = fold.blocks, at = all.findIndex(each => each.seq === seq && each.kind !== 'mail');
  const next = all.findIndex((each, index) => index > at && each.kind === 'mail');
  return all.slice(at, next < 0 ? undefined : next).filter(each => each.kind === 'text')
    .map(each => each.text).join('\n\n');
}

function Caption({ who, at, hint, text, label }) {
  return html`<header class="caption"><bdi class="name">${who}</bdi><${Time} at=${at} isClock />
    ${hint && html`<span class="note cut">${hint}</span>`}<span class="gap"></span>
    <${Button} small tone="ghost" icon="copy" label=${label}
      onClick=${() => copy(text(), 'Copied.')} /></header>`;
}

const senderOf = who => who === 'human' ? 'You' : who;

function Mail({ block }) {
  const { who, text, task, status } = block;
  const hint = block.hint || [task && `task ${task}`, status === 'error'
    && 'failed'].filter(Boolean).join(', ');
  return html`<article class=${`msg ${who === 'human' ? 'you' : 'from'}`} data-seq=${block.seq}>
    <${Caption} who=${senderOf(who)} at=${block.at} hint=${hint} text=${() => text}
      label=${`Copy the message of ${senderOf(who)}`} />
    <${Text}>${text}<//><${Images} images=${block.images} /></article>`;
}

const STEP = { completed: ['done', 'done'], in_progress: ['works', 'in progress'], pending: ['idle',
  'to do'] };

/** @param {{steps: {text: string, status: string}[]}} props */
export const PlanList = ({ steps }) => html`<ol class="plan">${steps.map(each => html`
  <li class=${each.status}><${State} of=${(STEP[each.status] ?? STEP.pending)[0]} quiet />
    <span dir="auto"><span class="hidden">${(STEP[each.status]
      ?? STEP.pending)[1]}: </span>${each.text}
    </span></li>`)}</ol>`;

function Note({ block, handle }) {
  const { tone, text, took, resets, lines, plan, outcome } = block;
  if (tone === 'end') return html`<p class="turn-end">${took > 1 ? `${seconds(took)}` : ''}</p>`;
  const canSend = outcome === 'interrupted' && !isReadOnly.value;
  return html`<div class=${`remark ${tone}`} role="note" data-seq=${block.seq}>
    <p dir="auto">${text}${resets ? html`. It ends <${Time} at=${resets * 1000} />` : ''}</p>
    ${canSend && html`<p class="note">It is not sent again by
      itself. <button type="button" class="link" onClick=${() => again(handle, block.turn)}>Send it
        again</button></p>`}
    ${lines?.length > 0 && html`<${Fold} title=${`${lines.length} files`}><ul class="plain-list">
      ${lines.map(each => html`<li><code>${each}</code></li>`)}</ul><//>`}
    ${plan && html`<div class="plan-text"><${Text}>${plan}<//></div>`}</div>`;
}

/** Put the message of a turn that was cut off into the box again. */
function again(handle, turn) {
  dispatchEvent(new CustomEvent('compose', { detail: { handle, turn } }));
}

function Block({ block, handle, fold }) {
  const caption = block.isFirst && html`<${Caption} who=${handle} at=${block.at} hint=${block.hint}
    text=${() => textOfTurn(fold, block.seq)} label="Copy the text of this turn" />`;
  return html`<div class="turn-block" data-seq=${block.seq}>${caption}${body(block, handle)}</div>`;
}

function body(block, handle) {
  switch (block.kind) {
    case 'text': return html`<article class="msg own"><${Text}>${block.text}<//>
      ${block.aborted && html`<p class="note">It was stopped here.</p>`}</article>`;
    case 'thought': {
      const took = (Date.parse(block.until) - Date.parse(block.at)) / 1000;
      return html`<${Fold} title="Thought" note=${took > 1 ? seconds(took) : null} class="thought">
        ${() => html`<div class="quiet"><${Text}>${block.text}<//></div>`}<//>`;
    }
    case 'steps': return html`<${Steps} tools=${block.tools} handle=${handle} />`;
    case 'tool': return html`<${Tool} block=${block} handle=${handle} />`;
    case 'terminal': return html`<${Output} block=${block} handle=${handle} />`;
    case 'plan': {
      const done = block.steps.filter(each => each.status === 'completed').length;
      return html`<${Fold} title="Plan" note=${`${done} of ${block.steps.length}`} isOpen>
        <${PlanList} steps=${block.steps} /><//>`;
    }
  }
}

/** All chunks of a transcript; those that have not changed keep their elements. */
export function Blocks({ fold, handle }) {
  const cache = useRef(new WeakMap()), { current: made } = cache;
  // The same vnode again: Preact then skips it, and the 5,000 entries above the last one with it.
  const kept = (key, rev, make) => {
    const known = made.get(key);
    if (known && known.rev === rev) return known.node;
    const node = make();
    made.set(key, { rev, node });
    return node;
  };
  const one = block => kept(block.kind === 'steps' ? block.tools[0] : block,
    block.kind === 'steps' ? `${block.tools.map(each => each.rev)}` : block.rev,
    () => block.kind === 'mail' ? html`<${Mail} key=${keyOf(block)} block=${block} rev=${block.rev}
      />`
      : block.kind === 'note' ? html`<${Note} key=${keyOf(block)} ...${{ block, handle }}
        rev=${block.rev} />`
        : html`<${Block} key=${keyOf(block)} ...${{ block: firstOf(block), handle, fold }}
          rev=${block.rev} />`);
  const isLast = chunk => chunk === fold.chunks.at(-1);
  return fold.chunks.map(chunk => kept(chunk, `${chunk.rev}${isLast(chunk)}`, () => html`
    <div class=${isLast(chunk) ? 'talk-chunk last' : 'talk-chunk'} key=${chunk.key}>
      ${grouped(chunk.blocks).map(one)}</div>`));
}

const keyOf = block => (block.tools?.[0] ?? block).key;
const firstOf = block => block.kind === 'steps' ? { ...block, isFirst: block.tools[0].isFirst }
  : block;
