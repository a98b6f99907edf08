// A call of a tool: one line with its outcome, and what is behind it.
import { html, useState } from '../lib.js';
import { Diff, PlusMinus, changesIn } from '../diff.js';
import { Code } from '../text.js';
import { Icon, State, seconds } from '../ui.js';
import { agentOf } from '../store.js';
import { toolName } from './fold.js';
import { Output } from './output.js';
import { below } from './words.js';
import { Images } from './images.js';

const SHOWN_CHARS = 12_000, SMALL_CHANGE = 30, SLOW_S = 1;
/** By kind: while it runs, once it has ended, and in a sentence about several. */
const VERBS = {
  read: ['Reads', 'Read', (n, s) => `read ${n} file${s}`],
  search: ['Searches', 'Searched', n => n === 1 ? 'searched once' : `searched ${n} times`],
  fetch: ['Fetches', 'Fetched', (n, s) => `fetched ${n} page${s}`],
  execute: ['Runs', 'Ran'], edit: ['Changes', 'Changed'], delete: ['Deletes', 'Deleted'],
  move: ['Moves', 'Moved'], think: ['Thinks', 'Thought'], plan: ['Plans', 'Planned'],
};
const KIND = { bash: 'execute', read: 'read', grep: 'search', glob: 'search', edit: 'edit',
  write: 'edit', multiedit: 'edit', notebookedit: 'edit', webfetch: 'fetch', websearch: 'search' };
export const kindOf = block => VERBS[block.of] ? block.of
  : KIND[String(block.name).toLowerCase()] ?? 'other';

const STATE = { runs: 'works', done: 'done', failed: 'failed', stopped: 'ended', unseen: 'ended' };
const WORDS = { failed: 'failed', stopped: 'stopped', unseen: 'its end was not seen' };

const first = (...texts) => texts.find(each => typeof each === 'string' && each.trim()) ?? '';
/** What a call is about, for its line. */
export function about(block) {
  const { input } = block;
  return first(input.command, input.file_path, input.notebook_path, input.path, input.pattern,
    input.query, input.url, input.description, block.title, block.terminal?.command)
    .split('\n')[0].slice(0, 400);
}

/**
 * One line that opens.
 * @param {{title: any, note?: any, state?: string, isOpen?: boolean, children?: any,
 *   class?: string}} props
 */
export function Fold({ title, note, state, isOpen = false, children, class: more = '' }) {
  const [chosen, choose] = useState(null), open = chosen ?? isOpen;
  return html`<details class="fold ${more}" open=${open}>
    <summary onClick=${event => { event.preventDefault(); choose(!open); }}><${Icon} of="right" />
      <span class="cut">${title}</span>${note && html`<span class="note">${note}</span>`}
      ${state && html`<${State} of=${state} />`}</summary>
    ${open && html`<div class="fold-body">${typeof children === 'function' ? children()
      : children}</div>`}
  </details>`;
}

/** A long text: its beginning, and a way to the whole. */
export function Long({ text, label = 'Result' }) {
  const [isWhole, setWhole] = useState(false), isLong = text.length > SHOWN_CHARS && !isWhole;
  return html`<pre class="result" tabindex="0" role="group" aria-label=${label} dir="auto">
    ${isLong ? text.slice(0, SHOWN_CHARS) : text}</pre>
    ${isLong && html`<button type="button" class="link" onClick=${() => setWhole(true)}>
      Show all ${text.length.toLocaleString('en')} characters</button>`}`;
}

/** The input of a call as a person reads it. */
function Input({ block }) {
  const { input } = block;
  if (typeof input.command === 'string') return html`<${Code} text=${input.command} language="bash"
    />`;
  if (typeof input.prompt === 'string' && input.description) return html`<${Long}
    text=${input.prompt} label="Task" />`;
  const rest = Object.entries(input).filter(([, value]) => value !== null && value !== '');
  if (!rest.length) return null;
  return html`<dl class="pairs">${rest.map(([name, value]) => html`<dt>${name.replaceAll('_',
    ' ')}</dt>
    <dd dir="auto">${typeof value === 'string' ? value : JSON.stringify(value)}</dd>`)}</dl>`;
}

const exitOf = block => block.terminal?.exit ?? /^Exit code (\d+)/i.exec(block.text ?? '')?.[1];

/** @param {{block: any, handle: string}} props */
export function Tool({ block, handle }) {
  const kind = kindOf(block), isOver = block.state !== 'runs', verbs = VERBS[kind];
  const cwd = agentOf(handle)?.cwd, what = below(about(block), cwd);
  const changes = kind === 'edit' ? changesIn(block.input).map(each =>
    ({ ...each, path: below(each.path, cwd) })) : [];
  const took = block.until && (Date.parse(block.until) - Date.parse(block.at)) / 1000;
  const exit = exitOf(block), size = changes.reduce((sum, each) => sum + each.lines.length, 0);
  const isLive = block.terminal?.state === 'runs' && block.state === 'runs';
  const title = verbs ? html`<span class="verb">${verbs[+isOver]}</span> ${changes.length > 1
    ? `${changes.length} files` : html`<code dir="ltr">${what || toolName(block.name)}</code>`}`
    : html`${block.name && html`<span class="verb">${toolName(block.name)}</span> `}<bdi>${what
      || (block.name ? '' : 'A tool')}</bdi>`;
  const note = [changes.length > 0 && html`<${PlusMinus} files=${changes} /> `,
    exit !== undefined && exit !== null && +exit !== 0 ? `exit ${exit}`
      : WORDS[block.state], took > SLOW_S && seconds(took),
    block.children.length > 0 && `${block.children.length} step${block.children.length > 1 ? 's'
      : ''}`]
    .filter(Boolean);
  const isOpen = block.state === 'failed' || isLive || (changes.length > 0 && size <= SMALL_CHANGE)
    || (block.children.length > 0 && !isOver);
  return html`<${Fold} ...${{ title, isOpen }} state=${STATE[block.state]} class="tool"
    note=${note.map((each, index) => index && typeof each === 'string' ? ` · ${each}` : each)}>
    ${() => html`${changes.length > 0 ? html`<${Diff} files=${changes} isOpen
      isBare=${changes.length === 1} />` : html`<${Input} block=${block} />`}
      ${block.terminal && html`<${Output} block=${block.terminal} handle=${handle} />`}
      ${block.children.length > 0 && html`<div class="inner" role="group"
        aria-label="Steps of the subagent">
        ${block.children.map(each => html`<${Tool} key=${each.id} block=${each} handle=${handle}
          />`)}</div>`}
      ${!isOver && block.progress && html`<p class="note" dir="auto">${block.progress}</p>`}
      <${Images} images=${block.images} />
      ${block.result && block.text && !block.terminal?.output && !(changes.length
        && block.state === 'done')
        && html`<${Long} text=${block.text} label=${block.state === 'failed' ? 'Error' : 'Result'}
          />`}`}<//>`;
}

/** Neighbouring reads and searches as one sentence. */
export function Steps({ tools, handle }) {
  const counts = {};
  for (const each of tools) counts[kindOf(each)] = (counts[kindOf(each)] ?? 0) + 1;
  const words = Object.entries(counts).map(([kind, n]) => VERBS[kind][2](n, n > 1 ? 's' : ''));
  const text = words.join(', '), isBusy = tools.some(each => each.state === 'runs');
  return html`<${Fold} title=${text[0].toUpperCase() + text.slice(1)} state=${isBusy ? 'works'
    : null}>
    ${() => tools.map(each => html`<${Tool} key=${each.id} block=${each} handle=${handle}
      />`)}<//>`;
}
