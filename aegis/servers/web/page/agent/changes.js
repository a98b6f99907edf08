// What an agent changed, by file; comments on lines become one message to it.
import { html, useMemo, useState } from '../lib.js';
import { Diff, PlusMinus, parsedDiff } from '../diff.js';
import { draft } from '../drafts.js';
import { at, go } from '../place.js';
import { agentOf, call } from '../store.js';
import { Button, Copy, Empty, Head, Icon, Link, TextBox, Why, say, useRead } from '../ui.js';
import { save } from './dialogs.js';
import { merge, remove } from './worktrees.js';

const OPEN_FILES = 3;
/** A comment is of a line, by its number on one side of the change. */
const placeOf = (file, line) => `${file.path}:${line.now ?? `-${line.old}`}`;

/** All comments as the message that the agent gets. */
export function messageOf(comments) {
  const parts = Object.entries(comments).filter(([, each]) => each.text.trim())
    .map(([, { path, number, code, text }]) => `${path}:${number}\n\`${code.trim().slice(0,
      200)}\`\n${text.trim()}`);
  return `Comments on your changes:\n\n${parts.join('\n\n')}`;
}

function Comment({ place, value, onText, onDone, onDrop }) {
  return html`<div class="comment"><${TextBox} rows=${2} value=${value.text}
    aria-label=${`Comment on ${place}`}
      placeholder="What should be different?" onInput=${onText} ref=${box => {
    if (!box?.base || box.base.dataset.on) return;
    box.base.dataset.on = '1';
    if (!value.text) box.base.focus();
  }} onKeyDown=${event => { if (event.key === 'Escape') { event.stopPropagation(); onDone(); } }} />
    <${Button} small tone="ghost" label=${`Remove the comment on ${place}`}
      onClick=${onDrop}>Remove<//></div>`;
}

export function Changes({ id, onClose }) {
  const agent = agentOf(id), comments = draft(`changes/${agent?.id ?? id}`), all = comments.value
    ?? {};
  const [diff, error, again] = useRead(() => call('agent_diff', { handle: id }), [id]);
  const [trees, , treesAgain] = useRead(() => call('agent_worktree_list'), [id]);
  const [wanted, setWanted] = useState(null);
  const files = useMemo(() => diff ? parsedDiff(diff.diff) : [], [diff]);
  const tree = trees?.result.find(each => each.handle === id);
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
      onDone=${() => !value.text && set(place, null)} onDrop=${() => set(place, null)} />`;
  };
  const many = Object.values(all).filter(each => each.text?.trim()).length;
  const send = async () => {
    await call('agent_send', { handle: id, text: messageOf(all), key: `comments-${Date.now()}` });
    comments.value = null;
    say(`${many} comment${many > 1 ? 's' : ''} sent to ${id}.`);
  };
  const names = files.filter(each => !wanted || each.path === wanted);
  const head = html`<${Head} title=${`Changes of ${id}`} note=${diff
    && html`since <code>${diff.base.slice(0, 10)}</code> in <code>${diff.directory}</code>`}>
    ${files.length > 0 && html`<span class="num"><${PlusMinus} files=${files} /></span>`}
    <${Button} small tone="ghost" icon="again" label="Read the changes again"
      onClick=${() => { again(); treesAgain(); }} />
    ${diff && html`<${Copy} text=${diff.diff} label="Copy the whole change">Copy<//>
      <${Button} small tone="ghost" icon="down_end" label="Save as a patch"
        onClick=${() => save(`${id}.patch`, diff.diff, 'text/x-diff')} />`}
    <${Link} class="btn small ghost" to=${at('a', id)}>Conversation<//>
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
      onClick=${() => go(at('a', id))}>To its conversation<//><//>`}
    <${Diff} files=${names} isOpen=${names.length <= OPEN_FILES} key=${wanted ?? ''} ...${{ onLine,
      below }} />
    ${files.length > 0 && html`<p class="note">The number of a line takes a comment.</p>`}
    ${many > 0 && html`<div class="send-bar"><span>${many} comment${many > 1 ? 's' : ''}</span><span
      class="gap"></span>
      <${Button} onClick=${() => { comments.value = null; }}>Drop<//>
      <${Button} tone="main" onClick=${send}>Send to ${id}<//></div>`}</div>`;
}
