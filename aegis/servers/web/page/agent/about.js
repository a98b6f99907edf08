// About an agent: where it works, what it used, what it has running, and whom it meets.
import { html } from '../lib.js';
import { at } from '../place.js';
import { call } from '../store.js';
import { Button, Copy, Link, State, Time, count, money, seconds, useRead } from '../ui.js';
import { PlanList } from './blocks.js';
import { PERMISSIONS } from './words.js';

/** The parts of a line, without those that are not known. */
const joined = (...parts) => parts.filter(Boolean).join(' · ');

function Usage({ usage, budget }) {
  const { context_tokens: context, context_limit: limit, cached_percent: cached } = usage;
  const percent = usage.context_percent;
  const rows = [
    ['Cost', usage.cost_usd !== null && `${money(usage.cost_usd)}${budget === null ? ''
      : ` of ${money(budget)}`}`],
    ['Context', context !== null && joined(`${count(context)}${limit ? ` of ${count(limit)}`
      : ''} tokens`,
      percent !== null && `${Math.round(percent)} % full`)],
    ['Read', usage.input_tokens !== null && joined(`${count(usage.input_tokens)} tokens`,
      cached !== null && `${Math.round(cached)} % cached`)],
    ['Written', usage.output_tokens !== null && `${count(usage.output_tokens)} tokens`],
    ['Turns', joined(String(usage.turns), usage.turns_s > 0 && seconds(usage.turns_s))],
  ].filter(([, value]) => value);
  return html`<section><h3>Usage</h3><dl class="pairs">${rows.map(([name, value]) =>
    html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>
    ${percent !== null && html`<progress class="meter" max="100" value=${percent}
      aria-label="Context"></progress>`}
  </section>`;
}

export function About({ agent, details, onClose }) {
  const [diff] = useRead(() => call('agent_diff', { handle: agent.handle }), [agent.handle,
    agent.turn, agent.state]);
  const permission = PERMISSIONS.find(([id]) => id === agent.permission)?.[1];
  const heads = diff?.diff.matchAll(/^diff --git "?a\/.* "?b\/(.*?)"?$/gm) ?? [];
  const files = [...new Set([...heads].map(each => each[1]))];
  return html`<aside class="about" aria-label=${`About ${agent.handle}`}><div
    class="about-head"><h2>About</h2>
      <span class="gap"></span><${Button} small tone="ghost" icon="close" label="Close About"
        onClick=${onClose} /></div>
    <dl class="pairs"><dt>Profile</dt><dd>${joined(agent.profile, agent.provider)}</dd>
      ${agent.model && html`<dt>Model</dt><dd>${joined(agent.model, agent.effort
        && `${agent.effort} effort`)}</dd>`}
      ${permission && html`<dt>Permission</dt><dd>${joined(permission, agent.mode
        && agent.mode !== 'default'
        && `its mode: ${agent.mode}`)}</dd>`}
      <dt>Directory</dt><dd><code>${agent.cwd}</code></dd>
      <dt>Started by</dt><dd>${agent.spawned_by === 'human' ? 'you'
        : html`<${Link} class="link" to=${at('a', agent.spawned_by)}>${agent.spawned_by}<//>`}</dd>
      ${agent.conversation && html`<dt>Conversation</dt><dd><code
        >${agent.conversation}</code> <${Copy} text=${agent.conversation}
        label="Copy the id of the conversation">Copy<//></dd>`}
      ${agent.limited_until && html`<dt>Limit ends</dt><dd><${Time} at=${agent.limited_until}
        isClock /></dd>`}</dl>
    ${agent.usage && html`<${Usage} usage=${agent.usage} budget=${agent.budget_usd} />`}
    ${agent.plan?.length > 0 && html`<section><h3>Plan</h3><${PlanList} steps=${agent.plan}
      /></section>`}
    ${(details?.tasks?.length > 0 || agent.terminals.length > 0) && html`<section><h3>Runs now</h3>
      <ul class="plain-list">${agent.terminals.map(each => html`<li><${State} of="works" />
        <code class="cut" title=${each.command}>${each.command}</code></li>`)}
      ${(details?.tasks ?? []).map(each => html`<li><${State} of="works" /><span
        class="cut">${each}</span></li>`)}</ul>
    </section>`}
    ${agent.conflicts.length > 0 && html`<section><h3>Files that others changed too</h3><ul
      class="plain-list">
      ${agent.conflicts.map(each => html`<li><code class="cut"
        title=${each.path}>${each.path}</code>
        <span class="note">${each.handles.join(', ')}</span></li>`)}</ul></section>`}
    ${diff && html`<section><h3>Changed files</h3>
      ${files.length > 0 ? html`<ul class="plain-list">${files.slice(0, 30).map(each => html`<li>
        <code class="cut" title=${each}>${each}</code></li>`)}</ul>
        <${Link} class="link" to=${at('changes', agent.handle)}>Show the changes
          of ${files.length} files<//>`
    : html`<p class="note">None.</p>`}</section>`}
  </aside>`;
}
