// The worktrees of agents: merged into the branch that they began from, or removed.
import { html, useState } from '../lib.js';
import { open } from '../overlay.js';
import { at } from '../place.js';
import { agents, call } from '../store.js';
import { Button, Check, Empty, Form, Head, Icon, Link, Why, confirm, say, useRead } from '../ui.js';

const MERGED = { none: 'had all commits already', 'fast-forward': 'was moved forward',
  commit: 'has a merge commit' };

const NONE = 'No agent has a worktree of its own. Choose that when you launch one.';

/** Ask, and merge the branch of a worktree. @param {any} tree @param {() => any} onDone */
export function merge(tree, onDone) {
  const { handle, branch, target, unmerged } = tree;
  confirm({ title: `Merge ${branch}?`, verb: 'Merge',
    text: `${unmerged === null ? 'Its commits' : `${unmerged} commit${unmerged === 1 ? ''
      : 's'}`} of ${handle}
      come into ${target || 'its first branch'}. It is refused if the two contradict each
      other or if a change is not committed.`,
    act: async () => {
      const { kind, files, left } = await call('agent_merge', { handle });
      say(`${target || 'The branch'} ${MERGED[kind]}: ${files} file${files === 1 ? ''
        : 's'} changed.${left.length
        ? ` Not replaced: ${left.join(', ')}` : ''}`);
      onDone();
    } });
}

function Remove({ tree, onDone, onClose }) {
  const [isForced, force] = useState(false), { handle, holds, branch } = tree;
  const act = async () => {
    await call('agent_worktree_remove', { handle, ...(isForced && { force: true }) });
    say(`The worktree of ${handle} is removed; its commits stay in ${branch}.`);
    onDone();
  };
  const isOpen = [...agents.value.values()].some(each => each.handle === handle);
  return html`<${Form} title=${`Remove the worktree of ${handle}?`} verb="Remove" tone="bad"
    act=${act} onClose=${onClose}
    disabled=${Boolean(holds) && !isForced}><p><code>${tree.path}</code></p>
    ${isOpen && html`<p>The agent is open: close it first.</p>`}
    ${holds ? html`<p class="why" dir="auto">Would be lost: ${holds}</p>
      <${Check} label="Remove it with that" value=${isForced} onChange=${force} />`
    : html`<p>Nothing is lost: its commits stay in the branch <code>${branch}</code>.</p>`}<//>`;
}
/** Ask, with what would be lost, and remove a worktree. */
export const remove = (tree, onDone) => open(Remove, { tree, onDone });

export function Worktrees() {
  const ids = [...agents.value.keys()].join();
  const [list, error, again] = useRead(() => call('agent_worktree_list'), [ids]);
  return html`<${Head} title="Worktrees"><${Button} small tone="ghost" icon="again"
    label="Read again" onClick=${again} /><//>
    <div class="page"><${Why} of=${error} again=${again} />
    ${list && !list.result.length && html`<${Empty}
      title=${NONE} />`}
    ${list?.result.length > 0 && html`<ul class="rows">${list.result.map(tree => html`<li
      key=${tree.id} class="row tall">
      <${Icon} of="branch" /><${Link} class="row-link" to=${at('changes', tree.handle)}><bdi
        class="name who">${tree.handle}</bdi>
        <code class="cut" title=${tree.path}>${tree.branch}</code>
        <span class="note cut">${[tree.unmerged > 0
          && `${tree.unmerged} to merge into ${tree.target}`, tree.holds].filter(Boolean)
          .join(' · ')
          || 'nothing to merge'}</span><//>
      <${Button} small label=${`Merge ${tree.branch}`} disabled=${tree.unmerged === 0}
        onClick=${() => merge(tree, again)}>Merge…<//>
      <${Button} small tone="ghost" label=${`Remove the worktree of ${tree.handle}`}
        onClick=${() => remove(tree, again)}>Remove…<//>
    </li>`)}</ul>`}</div>`;
}
