// What a person does with an agent, and the dialogs that ask for more.
import { html, useEffect, useState } from '../lib.js';
import { open } from '../overlay.js';
import { at, beside, go, renamed } from '../place.js';
import { ShareLink } from '../rest/access.js';
import { call } from '../store.js';
import {
  Check, Field, Form, Input, Select, TextBox, confirm, copy, money, say,
} from '../ui.js';
import { closed } from './closed.js';
import { isBusy, isOver } from './words.js';

function Rename({ agent, onClose }) {
  const [name, setName] = useState(agent.handle);
  const act = async () => {
    const { handle } = await call('rename', { old_handle: agent.handle, new_handle: name.trim() });
    for (const kind of ['a', 'changes', 'm']) renamed(kind, agent.handle, handle);
  };
  return html`<${Form} title=${`Rename ${agent.handle}`} verb="Rename" act=${act} onClose=${onClose}
    disabled=${!name.trim() || name.trim() === agent.handle}>
    <${Field} label="New name" note="The old name keeps its meaning: messages to it still arrive.">
      <${Input} value=${name} onInput=${setName} data-first /><//><//>`;
}

function Fork({ agent, onClose }) {
  const [name, setName] = useState(''), [prompt, setPrompt] = useState('');
  const act = async () => {
    const args = { handle: agent.handle, ...(name.trim() && { new_handle: name.trim() }),
      ...(prompt.trim() && { prompt }) };
    go(at('a', (await call('agent_fork', args)).handle));
  };
  return html`<${Form} title=${`Fork ${agent.handle}`} verb="Fork" act=${act} onClose=${onClose}>
    <p class="note">A new agent continues with a copy of this conversation.</p>
    <${Field} label="First message" note="Empty: it waits for you."><${TextBox} rows=${3}
      value=${prompt} onInput=${setPrompt} data-first /><//>
    <${Field} label="Name" note="Empty: a name is made."><${Input} value=${name} onInput=${setName}
      /><//><//>`;
}

function Budget({ agent, onClose }) {
  const [value, setValue] = useState(agent.budget_usd === null ? '' : String(agent.budget_usd));
  const amount = Number(value.replace(',', '.'));
  const act = () => call('agent_set', { handle: agent.handle, budget_usd: amount });
  return html`<${Form} title=${`Budget of ${agent.handle}`} verb="Set" act=${act} onClose=${onClose}
    disabled=${value.trim() === '' || !(amount >= 0)}>
    <${Field} label="Budget in $" note=${`Spent so far: ${money(agent.usage?.cost_usd ?? 0)
      || '$0'}. Once
      it is spent no further turn begins, and you are asked.`}>
      <${Input} value=${value} onInput=${setValue} inputmode="decimal" data-first /><//><//>`;
}

/** The model or the effort, by a name that is not among those offered. */
function ByName({ agent, of, label, onClose }) {
  const [name, setName] = useState(agent[of] ?? '');
  const act = () => call('agent_set', { handle: agent.handle, [of]: name.trim() });
  return html`<${Form} title=${`${label} of ${agent.handle}`} verb="Set" act=${act}
    onClose=${onClose} disabled=${!name.trim()}>
    <${Field} label=${label} note="By a name that the agent knows."><${Input} value=${name}
      onInput=${setName} data-first /><//><//>`;
}

function Takeover({ agent, onClose }) {
  const [isNow, setNow] = useState(false), works = isBusy(agent);
  const act = async () => {
    const info = await call('agent_takeover', { handle: agent.handle, interrupt: isNow });
    if (info.taken_over) beside(at('t', info.taken_over.terminal));
  };
  return html`<${Form} title=${`Take ${agent.handle} over`} verb="Take over" act=${act}
    onClose=${onClose}>
    <p>You continue its conversation by hand, in its own program in a terminal. Messages to it wait
      until you hand it back.</p>
    ${works && html`<${Check} label="Stop the current turn now" value=${isNow} onChange=${setNow}
      note="Else its end is waited for." />`}<//>`;
}

/** Rewind: first what would be set back, then the question. */
function Rewind({ agent, turns, onClose }) {
  const [turn, setTurn] = useState(String(turns.at(-1)?.turn ?? '')), [plan,
    setPlan] = useState(null);
  const [why, setWhy] = useState('');
  const args = { handle: agent.handle, ...(turn && { turn: +turn }) };
  useEffect(() => {
    let isOff = false;
    setPlan(null);
    setWhy('');
    call('agent_rewind', { ...args, dry_run: true }).then(reply => isOff || setPlan(reply),
      error => isOff || setWhy(error.message));
    return () => { isOff = true; };
  }, [turn]);
  const act = async () => {
    const { files } = await call('agent_rewind', args);
    say(`${files.length} file${files.length === 1 ? '' : 's'} set back.`);
  };
  const list = (title, files) => files.length > 0 && html`<h3>${title}</h3><ul class="plain-list">
    ${files.map(each => html`<li><code>${each}</code></li>`)}</ul>`;
  return html`<${Form} wide title=${`Set files of ${agent.handle} back`} verb="Set back" tone="bad"
    act=${act}
    onClose=${onClose} disabled=${!plan || plan.files.length === 0}>
    <${Field} label="To before the turn"><${Select} label="Turn" value=${turn} onChange=${setTurn}
      of=${turns.map(each => [String(each.turn), `${each.turn}: ${each.text.slice(0, 60)}`])} /><//>
    ${why && html`<p class="why" role="alert" dir="auto">${why}</p>`}
    ${!plan && !why && html`<p class="note" role="status">Looking which files…</p>`}
    ${plan && html`${plan.files.length === 0 && html`<p>No file would be set back.</p>`}
      ${list('Would be set back', plan.files)}${list('Stay, as others changed them since',
        plan.left)}
      ${plan.unable.map(each => html`<p class="why" dir="auto">${each}</p>`)}
      <p class="note">What its shell commands did, and the conversation, stay.</p>`}<//>`;
}

/** Save a text as a file. */
export function save(name, text, type = 'text/plain') {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = Object.assign(document.createElement('a'), { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

export async function exported(handle, form) {
  const parts = [];
  for (let since = 0; since !== null;) {
    const { text, next } = await call('session_export', { handle, form, since });
    parts.push(text);
    since = next;
  }
  const isLines = form === 'jsonl';
  save(`${handle}.${isLines ? 'jsonl' : 'md'}`, parts.join(''),
    isLines ? 'application/x-ndjson' : 'text/markdown');
}

export async function resume(handle) {
  const info = await call('agent_resume', { handle });
  closed.forget(info.id);
  go(at('a', info.handle));
}
export const interrupt = handle => call('interrupt', { handle });
/** Take a message back before the agent reads it; refused once it does. */
export const withdraw = (handle, message) => call('interrupt', { handle, message,
  unless_begun: true });
export const handBack = handle => call('agent_handback', { handle });

export function close(agent) {
  confirm({ title: `Close ${agent.handle}?`, verb: 'Close', tone: 'bad',
    text: `Its program ends${isBusy(agent) ? ', in the middle of its work' : ''}. Its transcript and
      messages are kept, and you can resume it.`,
    act: async () => { closed.keep(await call('close', { handle: agent.handle })); } });
}
function purge(agent) {
  confirm({ title: `Delete the transcript of ${agent.handle}?`, verb: 'Delete', tone: 'bad',
    text: `The agent is closed, and all that was said is deleted for ever. Files that it wrote and
      its inbox are kept.`,
    act: async () => {
      const { id } = await call('agent_purge', { handle: agent.handle });
      closed.forget(id);
      go('agents');
    } });
}
function restart(agent) {
  const act = () => call('agent_restart', { handle: agent.handle });
  if (!isBusy(agent)) return act();
  return confirm({ title: `Restart the program of ${agent.handle}?`, verb: 'Restart', tone: 'bad',
    act,
    text: 'Its current turn ends. The conversation continues with your next message.' });
}

/**
 * All that can be done with an agent, for its menu and the palette.
 * @param {any} agent @param {() => {turn: number, text: string}[]} [turns] @returns {any[]}
 */
export function actsOf(agent, turns = () => []) {
  const { handle } = agent, over = isOver(agent), driven = !agent.program;
  const dialog = (Component, more = {}) => () => open(Component, { agent, ...more });
  return [
    over && { text: 'Resume', act: () => resume(handle) },
    !over && isBusy(agent) && { text: 'Interrupt', act: () => interrupt(handle) },
    driven && { text: 'Show the changes', act: () => go(at('changes', handle)) },
    { text: 'Open beside', act: () => beside(at('a', handle)) },
    { text: 'Open its inbox', act: () => go(at('m', handle)) },
    '-',
    !over && driven && (agent.taken_over ? { text: 'Hand back', act: () => handBack(handle) }
      : { text: 'Take over…', act: dialog(Takeover) }),
    driven && { text: 'Fork…', act: dialog(Fork) },
    { text: 'Rename…', act: dialog(Rename) },
    !over && driven && { text: 'Model by name…', act: dialog(ByName, { of: 'model',
      label: 'Model' }) },
    !over && driven && { text: 'Effort by name…', act: dialog(ByName, { of: 'effort',
      label: 'Effort' }) },
    !over && driven && { text: 'Budget…', act: dialog(Budget) },
    !over && driven && { text: 'Set files back…',
      act: () => open(Rewind, { agent, turns: turns().filter(each => each.turn) }) },
    '-',
    { text: 'Share a read-only link…',
      act: () => open(ShareLink, { subject: `agent:${handle}` }) },
    { text: 'Save as Markdown', act: () => exported(handle, 'markdown') },
    { text: 'Save as JSON lines', act: () => exported(handle, 'jsonl') },
    agent.conversation && { text: 'Copy the id of the conversation',
      act: () => copy(agent.conversation, 'Copied.') },
    '-',
    !over && { text: 'Restart the program', act: () => restart(agent) },
    !over && { text: 'Close…', tone: 'bad', act: () => close(agent) },
    { text: 'Delete its transcript…', tone: 'bad', act: () => purge(agent) },
  ].filter(Boolean);
}
