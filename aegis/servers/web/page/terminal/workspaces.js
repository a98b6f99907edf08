// Workspaces with their shells, and the nodes on which terminals run.
import { draft } from '../drafts.js';
import { html, useState } from '../lib.js';
import { open } from '../overlay.js';
import { at } from '../place.js';
import { call, isReadOnly, readWorkspaces, refresh, status, workspaces } from '../store.js';
import {
  Button, Check, Dialog, Empty, Field, Form, Head, Icon, Input, Link, Menu, Section, State, Time,
  confirm, seconds,
} from '../ui.js';
import { NewTerminal } from './new.js';
import { plural } from './records.js';

const NAME = '[A-Za-z0-9][A-Za-z0-9_\\-]{0,31}';

export function Workspaces() {
  const all = workspaces.value, nodes = status.value?.nodes ?? [];
  const start = () => open(NewWorkspace);
  return html`<${Head} title="Workspaces"><${Button} tone="main" small icon="plus" onClick=${start}>
      New workspace<//><//>
    <div class="page narrow"><${Section} title="All workspaces" count=${all.length}>
      ${all.length === 0 && html`<${Empty}
        title="A workspace is a directory with shells of its own.">
        <${Button} onClick=${start}>New workspace<//><//>`}
      ${all.length > 0 && html`<ul class="rows">${all.map(each => html`<${Workspace}
        key=${each.workspace_id} each=${each} />`)}</ul>`}<//>
    <${Section} title="Nodes" count=${nodes.length}>
      ${nodes.length === 0 && html`<p
        class="note">All terminals run in the daemon's own process.</p>`}
      ${nodes.length > 0 && html`<ul class="rows">${nodes.map(each => html`<${Node} key=${each.name}
        each=${each} />`)}</ul>`}
      <details class="more-fields"><summary><${Icon} of="right" />Let a host join</summary>
        <p class="note">Start the daemon with an address for hosts,
          and print the path of its key:</p>
        <pre>aegis-actors up --nodes 127.0.0.1:8421${'\n'}aegis-actors node key</pre>
        <p class="note">Copy the key to the other machine, readable by its user alone,
          and join there.
          Over a network, use a tunnel:</p>
        <pre>aegis-actors join 127.0.0.1:8421 --name gpu1 --key-file ~/node.key</pre>
        <p class="note">It leaves when that program is stopped. Then it can be forgotten here.</p>
      </details><//></div>`;
}

function Workspace({ each }) {
  const { workspace_id: id, directory, shells, agent } = each;
  return html`<li class="row tall"><${Icon} of="folder" /><span class="two-lines place-of">
      <b><bdi>${id}</bdi></b><bdi class="cut note">${directory}</bdi>
      ${(shells.length > 0 || agent) && html`<span class="shells">${shells.map(one => html`<${Link}
        key=${one.shell_id} class="link" to=${at('t', one.shell_id)}>
        <${State} of=${one.state === 'running' ? 'idle' : 'ended'} />
        <bdi>${one.shell_id.replace(`${id}.`, '')}</bdi><//>`)}
        ${agent && html`<${Link} class="link" to=${at('a', agent)}>agent <bdi>${agent}</bdi><//>`}
      </span>`}</span>
    ${!isReadOnly.value && html`<${Button} small label=${`New shell in ${id}`} icon="plus"
        onClick=${() => open(NewTerminal, { workspace: id })}>Shell<//>
      <${Menu} small label=${`What to do with ${id}`} items=${[
    { text: 'New shell', act: () => open(NewTerminal, { workspace: id }) },
    { text: 'Run a command without a terminal', act: () => open(Exec, { workspace: id }) }, '-',
    { text: 'Delete the workspace', tone: 'bad', act: () => open(Delete, { each }) }]} />`}</li>`;
}

function Node({ each }) {
  const { name, kind, state, terminals, pid, address, since } = each;
  const forget = () => confirm({
    title: `Forget the host ${name}?`, verb: 'Forget', tone: 'bad',
    text: 'The names of its terminals become free here. Nothing on the host changes: if it joins'
      + ' again, they are available again.',
    act: async () => { await call('node_forget', { node: name }); await refresh(); },
  });
  const of = { up: 'idle', starting: 'works', unreachable: 'stalled' }[state];
  return html`<li class="row tall"><${State} of=${of} word=${state} /><span
    class="two-lines place-of">
      <b><bdi>${name}</bdi></b><span class="note">${kind === 'host' ? `host ${address ?? ''}`
        : `worker, pid ${pid ?? '–'}`} · ${plural(terminals, 'terminal')}</span></span>
    <span class="note">${state}</span><${Time} at=${since} />
    ${kind === 'host' && state === 'unreachable' && html`<${Button} small tone="bad"
      onClick=${forget}>
      Forget<//>`}</li>`;
}

export function NewWorkspace({ onClose }) {
  const kept = draft('new-workspace'), now = { workspace: '', directory: '', ...kept.value };
  const field = key => ({
    value: now[key], onInput: value => { kept.value = { ...now, [key]: value }; },
  });
  const act = async () => {
    await call('workspace_create', {
      workspace: now.workspace, ...now.directory ? { directory: now.directory } : {},
    });
    kept.value = null;
    await readWorkspaces();
  };
  return html`<${Form} title="New workspace" verb="Create" act=${act} onClose=${onClose}>
    <${Field} label="Name of the workspace"><${Input} ...${field('workspace')} required
      pattern=${NAME} title="Letters, digits, _ -" placeholder="checkout" data-first /><//>
    <${Field} label="Directory"
      note="It must exist. Relative to the project; empty: the project itself.">
      <${Input} ...${field('directory')} placeholder="." /><//><//>`;
}

function Delete({ each, onClose }) {
  const { workspace_id: workspace, shells, agent } = each, [purge, setPurge] = useState(false);
  const act = async () => {
    const { leftover } = await call('workspace_delete', { workspace, purge });
    await readWorkspaces();
    if (leftover.length) throw new Error(`Deleted, but these did not end: ${leftover.join(', ')}`);
  };
  return html`<${Form} title=${`Delete the workspace ${workspace}?`} verb="Delete" tone="bad"
    act=${act} onClose=${onClose}>
    <p>${plural(shells.length, 'shell')}${agent ? `,
      the agent ${agent},` : ''} and all that runs in them
      end. The directory is not changed.</p>
    <${Check} label="Delete the history of the shells too" value=${purge}
      onChange=${setPurge} /><//>`;
}

/** Run one command in a workspace, without a terminal. */
function Exec({ workspace, onClose }) {
  const [command, setCommand] = useState(''), [timeout, setTimeoutS] = useState('50');
  const [result, setResult] = useState(null), [isBusy, setBusy] = useState(false), [why,
    setWhy] = useState('');
  const run = async event => {
    event.preventDefault();
    if (isBusy || !command.trim()) return;
    setBusy(true); setWhy(''); setResult(null);
    try {
      setResult(await call('workspace_exec', { workspace, command, timeout: Number(timeout)
        || 50 }));
    } catch (error) { setWhy(error.message); } finally { setBusy(false); }
  };
  const end = result && (result.timed_out ? 'it took too long and was ended'
    : `exit ${result.exit}`);
  return html`<${Dialog} wide title=${`Run in ${workspace}`} onClose=${onClose}
    foot=${html`${why && html`<p class="why" role="alert">${why}</p>`}<span class="gap"></span>
      <${Button} onClick=${onClose}>Close<//><button class="btn main" form="exec"
        disabled=${isBusy}>
      ${isBusy ? 'It runs…' : 'Run'}</button>`}>
    <form id="exec" onSubmit=${run} class="stack"><${Field} label="Command"
        note="For bash, without input; what it leaves running is ended with it.">
      <textarea class="input mono" rows="2" data-first spellcheck=${false} value=${command}
        onInput=${event => setCommand(event.target.value)}></textarea><//>
    <${Field} label="Seconds at most"><${Input} type="number" min="1" max="86400" value=${timeout}
      onInput=${setTimeoutS} /><//></form>
    ${result && html`<div role="status"><p class="note">${end} · ${seconds(result.duration_s)}
      ${result.truncated && ' · cut'}</p>
      ${result.stdout && html`<pre class="out" aria-label="Output">${result.stdout}</pre>`}
      ${result.stderr && html`<pre class="out stderr"
        aria-label="Standard error">${result.stderr}</pre>`}
    </div>`}<//>`;
}
