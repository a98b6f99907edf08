// What an agent changed, by file; comments on lines become one message to it.
import { html, useMemo, useRef, useState } from '../lib.js';
import { Diff, PlusMinus, parsedDiff } from '../diff.js';
import { draft, freshKey } from '../drafts.js';
import { at, go } from '../place.js';
import { agentOf, agents, call } from '../store.js';
import {
  Button, Copy, Empty, Head, Icon, Link, TextBox, Why, once, say, useRead,
} from '../ui.js';
import { save } from './dialogs.js';
import { merge, remove } from './worktrees.js';

const OPEN_FILES = 3;
/** A comment is of a line, by its number on one side of the change. */
const placeOf = (file, line) => `${file.path}:${line.now ?? `-${line.old}`}`;

const isWritten = comment => Boolean(comment?.text.trim());
/** The button of the line that the comment around an element is of. */
const lineOf = element => /** @type {HTMLElement | null | undefined} */ (
  element?.closest('.comment')?.previousElementSibling?.querySelector('button.n'));

/** Comments as the message that the agent gets. */
export function messageOf(comments) {
  const parts = Object.values(comments).map(({ path, number, code, text }) =>
    `${path}:${number}\n\`${code.trim().slice(0, 200)}\`\n${text.trim()}`);
  return `Comments on your changes:\n\n${parts.join('\n\n')}`;
}

function Comment({ place, value, onText, onSend, onDrop }) {
  const leave = (event, act) => { lineOf(event.target)?.focus(); act(); };
  const key = event => {
    if (event.key === 'Escape') {
      event.stopPropagation();
      leave(event, () => value.text || onDrop());
    } else if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      onSend();
    }
  };
  return html`<div class="comment"><${TextBox} rows=${2} value=${value.text}
    aria-label=${`Comment on ${place}`}
      placeholder="What should be different?" onInput=${onText} ref=${box => {
    if (!box?.base || box.base.dataset.on) return;
    box.base.dataset.on = '1';
    if (!value.text) box.base.focus();
  }} onKeyDown=${key} />
    <${Button} small tone="ghost" label=${`Remove the comment on ${place}`}
      onClick=${event => leave(event, onDrop)}>Remove<//></div>`;
}

export function Changes({ id, onClose }) {
  // Its id is found by any of its names, and when it is closed: comments are kept by it.
  const [shown, error, again] = useRead(async () => {
    const agent = await call('agent_show', { handle: id });
    return { agent, diff: await call('agent_diff', { handle: id }) };
  }, [id]);
  const agent = agents.value.get(shown?.agent.id) ?? agentOf(id) ?? shown?.agent;
  const diff = shown?.diff, handle = agent?.handle ?? id, kept = `changes/${agent?.id ?? id}`;
  const comments = draft(kept), unsent = draft(`${kept}/unsent`), all = comments.value ?? {};
  const [trees, , treesAgain] = useRead(() => call('agent_worktree_list'), [id]);
  const [wanted, setWanted] = useState(null);
  const files = useMemo(() => diff ? parsedDiff(diff.diff) : [], [diff]);
  const tree = trees?.result.find(each => each.id === agent?.id);
  const set = (place, change) => {
    const next = { ...comments.peek(), [place]: { ...(comments.peek() ?? {})[place], ...change } };
    if (change === null) delete next[place];
    comments.value = Object.keys(next).length ? next : null;
  };
  const onLine = (file, line) => {
    const place = placeOf(file, line);
    if (!all[place]) set(place, { path: file.path, number: line.now ?? line.old, code: line.text,
      text: '' });
  };
  const below = (file, line) => {
    const place = placeOf(file, line), value = all[place];
    return value && html`<${Comment} key=${place} ...${{ place, value }} onText=${text => set(place,
      { text })}
      onSend=${() => send.current()} onDrop=${() => set(place, null)} />`;
  };
  const written = Object.fromEntries(Object.entries(all).filter(([, each]) => isWritten(each)));
  const many = Object.keys(written).length;
  const send = useRef(/** @type {any} */ (null)), sendNow = useRef(/** @type {any} */ (null));
  sendNow.current = async () => {
    if (!many) return;
    const before = unsent.peek(), isIn = ([place, { text }]) => all[place]?.text === text;
    // What may have arrived is sent again with its key, without the comments written since.
    const isAgain = before && Object.entries(before.sent).every(isIn);
    const { sent, key } = isAgain ? before : { sent: written, key: freshKey() };
    unsent.value = { sent, key };
    try { await call('agent_send', { handle, text: messageOf(sent), key }); } catch (error) {
      if (error.code !== 'lost') unsent.value = null;
      throw error;
    }
    unsent.value = null;
    const line = lineOf(document.activeElement), count = Object.keys(sent).length;
    const rest = Object.entries(comments.peek() ?? {})
      .filter(([place, { text }]) => sent[place]?.text !== text);
    comments.value = rest.length ? Object.fromEntries(rest) : null;
    say(`${count} comment${count > 1 ? 's' : ''} sent to ${handle}.`);
    requestAnimationFrame(() => { if (document.activeElement === document.body) line?.focus(); });
  };
  send.current ??= once(() => sendNow.current());
  const names = files.filter(each => !wanted || each.path === wanted);
  const head = html`<${Head} title=${`Changes of ${handle}`} note=${diff
    && html`since <code>${diff.base.slice(0, 10)}</code> in <code>${diff.directory}</code>`}>
    ${files.length > 0 && html`<span class="num"><${PlusMinus} files=${files} /></span>`}
    <${Button} small tone="ghost" icon="again" label="Read the changes again"
      onClick=${() => { again(); treesAgain(); }} />
    ${diff && html`<${Copy} text=${diff.diff} label="Copy the whole change">Copy<//>
      <${Button} small tone="ghost" icon="down_end" label="Save as a patch"
        onClick=${() => save(`${handle}.patch`, diff.diff, 'text/x-diff')} />`}
    <${Link} class="btn small ghost" to=${at('a', handle)}>Conversation<//>
    ${onClose && html`<${Button} small tone="ghost" icon="close" label="Close the pane"
      onClick=${onClose} />`}<//>`;
  if (!diff) return html`${head}<div class="page">${error ? html`<${Why} of=${error} again=${again}
    />` : html`<p class="wait">A moment…</p>`}</div>`;
  return html`${head}<div class="page changes">
    ${tree && html`<div class="notice"><${Icon} of="branch" /><span>It works on the
      branch <code>${tree.branch}</code>${tree.target
      && html`, begun from <code>${tree.target}</code>`}. ${tree.unmerged > 0
        ? `${tree.unmerged} commit${tree.unmerged > 1
        ? 's' : ''} to merge.` : ''} ${tree.holds}</span>
      <${Button} small tone="main" onClick=${() => merge(tree, treesAgain)}>Merge…<//>
      <${Button} small onClick=${() => remove(tree, treesAgain)}>Remove…<//></div>`}
    ${diff.uncommitted.length > 0 && html`<p
      class="note">${diff.uncommitted.length} file${diff.uncommitted.length > 1
      ? 's are' : ' is'} not committed.</p>`}
    ${diff.truncated && html`<p class="why" role="note">The change is longer than what is
      shown.</p>`}
    ${files.length > 1 && html`<nav aria-label="Changed files"
      class="file-list"><ul>${files.map(file => html`<li key=${file.path}>
      <button type="button" class="row-link" aria-pressed=${wanted === file.path}
        onClick=${() => setWanted(wanted === file.path ? null : file.path)}><bdi class="path cut"
          title=${file.path}>${file.path}</bdi>
        <${PlusMinus} files=${[file]} /></button></li>`)}</ul></nav>`}
    ${!files.length && !diff.new_files.length && html`<${Empty}
      title="It has changed no file."><${Button}
      onClick=${() => go(at('a', handle))}>To its conversation<//><//>`}
    <${Diff} files=${names} isOpen=${names.length <= OPEN_FILES} key=${wanted ?? ''} ...${{ onLine,
      below }} />
    ${files.length > 0 && html`<p class="note">The number of a line takes a comment;
      arrows move from line to line, and Ctrl Enter sends.</p>`}
    ${many > 0 && html`<div class="send-bar"><span>${many} comment${many > 1 ? 's' : ''}</span><span
      class="gap"></span>
      <${Button} onClick=${() => { comments.value = unsent.value = null; }}>Drop<//>
      <${Button} tone="main" onClick=${send.current}>Send to ${handle}<//></div>`}</div>`;
}
