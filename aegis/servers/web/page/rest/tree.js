// The daemon: the tree of its processes, its figures, hosts that have joined, and its stop.
import { html, signal, useEffect, useMemo, useRef, useState } from '../lib.js';
import { actions } from '../actions.js';
import { open } from '../overlay.js';
import { go } from '../place.js';
import {
  agents, call, connection, isReadOnly, refresh, status, terminals, tree, useTree,
} from '../store.js';
import {
  Button, Copy, Dialog, Head, Icon, Section, State, Time, Why, confirm, say, useRead,
} from '../ui.js';
import { inWords } from '../words.js';

const MOST_FOUND = 300;
/** @param {number} number @param {string} thing */
const count = (number, thing) => `${number} ${thing}${number === 1 ? '' : 's'}`;
const SHAPE = {
  running: 'done', starting: 'works', stopping: 'works', down: 'failed', stopped: 'ended',
  up: 'done', unreachable: 'failed',
};

/**
 * @typedef {{path: string, kind: string, state: string, restarts: number, mailbox: number}} Part
 */

/**
 * Return the children of each path: the tree is a map of all paths.
 * @param {Map<string, Part>} all
 */
export function childrenOf(all) {
  /** @type {Map<string, Part[]>} */
  const under = new Map();
  for (const part of all.values()) {
    const at = part.path.lastIndexOf('/');
    // The root's own path has no other in it.
    const parent = at > 0 && all.has(part.path.slice(0, at)) ? part.path.slice(0, at) : '';
    if (parent === part.path) continue;
    if (!under.has(parent)) under.set(parent, []);
    under.get(parent).push(part);
  }
  return under;
}

const nameOf = path => path.slice(path.lastIndexOf('/') + 1) || path;
/** Parts of an agent are named by its id. */
const alsoOf = path => agents.value.get(nameOf(path))?.handle;

const Facts = ({ part, isWhole }) => html`<${State} of=${SHAPE[part.state] ?? 'idle'} />
  <bdi class="cut">${isWhole ? part.path : nameOf(part.path)}</bdi>
  ${alsoOf(part.path) && html`<bdi>${alsoOf(part.path)}</bdi>`}
  ${part.kind !== nameOf(part.path) && html`<span class="note">${part.kind}</span>`}
  ${part.restarts > 0 && html`<span class="why">restarted ${count(part.restarts, 'time')}</span>`}
  ${part.mailbox > 0 && html`<span class="note">${count(part.mailbox, 'message')} queued</span>`}
  ${part.state !== 'running' && html`<span class="why">${part.state}</span>`}`;

/** @param {Map<string, Part[]>} under @param {(part: Part, depth: number) => boolean} isOpen */
function rowsOf(under, isOpen, parent = '', depth = 0) {
  return (under.get(parent) ?? []).flatMap(part => [{ part, depth }, ...under.has(part.path)
    && isOpen(part, depth) ? rowsOf(under, isOpen, part.path, depth + 1) : []]);
}

/** The tree as rows: one Tab stop, arrows move and fold, as the pattern of a tree view has it. */
function Rows({ under }) {
  // Paths whose state is not the first one, which shows two levels.
  const [turned, setTurned] = useState(new Set());
  const isOpen = ({ path }, depth) => (depth < 2) !== turned.has(path);
  const rows = rowsOf(under, isOpen), [on, setOn] = useState(''), box = useRef(null);
  const stop = rows.some(each => each.part.path === on) ? on : rows[0]?.part.path;
  const turn = path => {
    const next = new Set(turned);
    if (!next.delete(path)) next.add(path);
    setTurned(next);
  };
  const focus = at => box.current.children[at]?.focus();
  const keyDown = event => {
    const at = rows.findIndex(each => each.part.path === stop), { part, depth } = rows[at];
    const has = under.has(part.path), isUnfolded = has && isOpen(part, depth), { key } = event;
    if (key === 'ArrowDown' || (key === 'ArrowRight' && isUnfolded)) focus(at + 1);
    else if (key === 'ArrowUp') focus(at - 1);
    else if (key === 'Home') focus(0);
    else if (key === 'End') focus(rows.length - 1);
    else if (has && (key === 'Enter' || key === ' ' || key === 'ArrowRight'
      || (key === 'ArrowLeft' && isUnfolded))) turn(part.path);
    else if (key === 'ArrowLeft') {
      focus(rows.findLastIndex((each, index) => index < at && each.depth < depth));
    } else return;
    event.preventDefault();
  };
  return html`<ul class="tree" role="tree" aria-label="Processes" ref=${box} onKeyDown=${keyDown}>
    ${rows.map(({ part, depth }) => {
      const count = under.get(part.path)?.length ?? 0, { path } = part;
      return html`<li key=${path} role="treeitem" class="node" aria-level=${depth + 1}
        aria-expanded=${count ? isOpen(part, depth) : null} aria-selected="false"
        tabindex=${path === stop ? 0 : -1} style=${{ paddingInlineStart: `${depth * 1.4}rem` }}
        onFocus=${() => setOn(path)} onClick=${() => count && turn(path)}>
        ${count ? html`<${Icon} of=${isOpen(part, depth) ? 'down' : 'right'} />`
    : html`<span class="nub"></span>`}<${Facts} part=${part} />
        ${count > 0 && html`<span class="note">${count}</span>`}</li>`;
    })}</ul>`;
}

function Parts() {
  const [text, setText] = useState(''), [isOdd, setOdd] = useState(false), all = tree.value;
  const under = useMemo(() => childrenOf(all), [all]);
  const odd = [...all.values()].filter(each =>
    each.restarts || each.mailbox || each.state !== 'running').length;
  const isSought = text || isOdd;
  const isIt = each => `${each.path} ${each.kind} ${alsoOf(each.path)}`.toLowerCase()
    .includes(text.toLowerCase());
  const found = isSought && [...all.values()].filter(each => isIt(each)
    && (!isOdd || each.restarts || each.mailbox || each.state !== 'running'));
  return html`<${Section} title="Processes" count=${all.size} more=${html`<label class="check">
      <input type="checkbox" checked=${isOdd} onChange=${event => setOdd(event.target.checked)} />
      <span>Only restarted, busy or down (${odd})</span></label>`}>
    <input class="input" type="search" placeholder="Search" aria-label="Search processes"
      value=${text} onInput=${event => setText(event.target.value)} />
    ${isSought ? html`<ul class="tree" aria-label="Found processes">
      ${found.slice(0, MOST_FOUND).map(each => html`<li key=${each.path}><div class="node">
        <${Facts} part=${each} isWhole /></div></li>`)}
      ${!found.length && html`<li class="quiet pad">None.</li>`}
      ${found.length > MOST_FOUND && html`<li class="quiet pad">
        And ${found.length - MOST_FOUND} more: search for more of the name.</li>`}</ul>`
    : html`<${Rows} under=${under} />`}<//>`;
}

const size = bytes => bytes >= 1e9 ? `${(bytes / 1e9).toFixed(1)} GB`
  : `${Math.round(bytes / 1e6)} MB`;
const age = amount => amount < 3600 ? `${Math.round(amount / 60)} min` : amount < 172800
  ? `${Math.round(amount / 3600)} h` : `${Math.round(amount / 86400)} days`;

function Figures({ now }) {
  const facts = [
    ['Version', now.version], ['Root', now.root], ['Address', now.url], ['Up', age(now.uptime_s)],
    ['Memory', size(now.rss_bytes)], ['Process', now.pid], ['Open files', now.open_files],
    ['Actors', now.actors], ['Terminals', now.terminals], ['Connections', now.connections],
    ['Replies too late', now.late_replies],
    ['Left out of environments', now.left_out.join(', ') || 'nothing'],
  ];
  return html`<dl class="facts">${facts.map(([name, value]) => html`<dt key=${name}>${name}</dt>
    <dd><bdi>${value}</bdi></dd>`)}</dl>`;
}

function forget(node) {
  confirm({
    title: `Forget the host ${node.name}?`, verb: 'Forget', tone: 'bad',
    text: 'The names of its terminals become free here. Nothing on the host changes: if it joins '
      + 'again, its terminals are available again.',
    act: async () => {
      const { terminals: free } = await call('node_forget', { node: node.name });
      const had = free.length ? `, with ${count(free.length, 'terminal')}` : '';
      say(`Forgotten: ${node.name}${had}`);
      await refresh();
    },
  });
}

/** How another host joins: three commands, here and there. */
export function Join({ onClose }) {
  const root = status.value?.root ?? '.';
  const steps = [
    ['Start this daemon so that it lets hosts join:',
      `aegis-actors up -d --root ${root} --nodes 127.0.0.1:8421`],
    ['Copy its key to the other host, readable by you alone. It allows to run commands on both:',
      `scp -p ${root}/.aegis/state/node.key gpu:node.key`],
    ['On the other host, join through a tunnel, as the connection is not encrypted:',
      'ssh -f -N -L 8421:127.0.0.1:8421 you@daemon\n'
        + 'aegis-actors join 127.0.0.1:8421 --name gpu --root ~/gpu-work --key-file ~/node.key'],
  ];
  return html`<${Dialog} wide title="Join another host" onClose=${onClose}><ol class="steps">
    ${steps.map(([text, command]) => html`<li key=${text}><p>${text}</p><div class="copied">
      <pre class="exact" tabindex="0">${command}</pre><${Copy} text=${command} /></div></li>`)}</ol>
    <p class="note">The host is then listed here, and a new terminal can be opened there.</p><//>`;
}

const Nodes = ({ nodes }) => html`<${Section} title="Workers and hosts" count=${nodes.length}
  more=${html`<${Button} small onClick=${() => open(Join)}>Join a host…<//>`}>
  ${!nodes.length && html`<p class="calm">None: the daemon does all by itself.</p>`}
  <ul class="rows" hidden=${!nodes.length}>${nodes.map(each => html`<li class="row"
    key=${each.name}>
    <${State} of=${SHAPE[each.state] ?? 'works'} /><bdi class="name">${each.name}</bdi>
    <span class="cut quiet grow">${each.kind === 'host' ? `Host, ${each.address ?? 'away'}`
      : `Worker, process ${each.pid ?? 'none'}`} · ${count(each.terminals, 'terminal')}
      ${each.state !== 'up' && ` · ${each.state}`}</span>
    ${each.since && html`<${Time} at=${each.since} />`}
    ${each.kind === 'host' && each.state !== 'up' && html`<${Button} small tone="bad"
      label=${`Forget ${each.name}`} onClick=${() => forget(each)}>Forget<//>`}</li>`)}</ul><//>`;

const LEVELS = { problem: 'failed', warning: 'stalled', ok: 'done' };

/** How many checks were asked for since the view was opened, by its button or the palette. */
const asked = signal(0);
const check = () => { asked.value++; };

const Finding = ({ found }) => html`<li class="row finding"><${State} of=${LEVELS[found.level]}
    word=${found.level} /><bdi class="name">${found.subject}</bdi>
  <span class="grow" dir="auto">${found.sentence}
    ${found.remedy && html`<span class="note remedy">To do: ${inWords(found.remedy)}</span>`}</span>
  </li>`;

function Findings() {
  const [reply, error, retry] = useRead(() => call('doctor'), []);
  if (error) return html`<${Why} of=${error} again=${retry} />`;
  if (!reply) return html`<p class="wait" role="status">Checking: it takes some seconds…</p>`;
  const { findings, left_out: more } = reply;
  const [problems, warnings, fine] = Object.keys(LEVELS).map(level =>
    findings.filter(each => each.level === level));
  const odd = [problems.length && count(problems.length, 'problem'),
    warnings.length && count(warnings.length, 'warning')].filter(Boolean).join(', ');
  return html`<p class="note" role="status">${odd || 'All is well'}
      ${more > 0 && ` · ${count(more, 'finding')} not shown`}</p>
    <ul class="rows" aria-label="Findings">${[...problems, ...warnings, ...fine].map(
      (found, at) => html`<${Finding} key=${at} found=${found} />`)}</ul>`;
}

const Check = () => html`<${Section} title="Check" more=${!isReadOnly.value
  && html`<${Button} small onClick=${check}>Check this machine<//>`}>
  ${asked.value ? html`<${Findings} key=${asked.value} />`
    : html`<p class="calm">Looks at shells, agent programs, the files of the daemon and the limits
      of the machine. Nothing is changed.</p>`}<//>`;

function WhatEnds() {
  const running = [...terminals.value.values()].filter(each => each.state === 'running').length;
  const live = [...agents.value.values()];
  const working = live.filter(each => each.state === 'working').length;
  return html`<p>What ends: ${count(terminals.value.size, 'terminal')}
      ${` (${count(running, 'command')} running)`} and the programs of
      ${` ${count(live.length, 'agent')} (${working} working).`}</p>
    <p>Histories, conversations, queues and canvases are kept. Start it again on its machine with
      ${' '}<code>aegis-actors up -d</code></p>`;
}

/** Stop the daemon, after a question that says what ends. */
export const stopDaemon = () => confirm({
  title: 'Stop the daemon?', verb: 'Stop it', tone: 'bad', text: html`<${WhatEnds} />`,
  act: async () => { await call('down'); say('The daemon is stopping'); },
});

export function Tree() {
  const now = status.value, { state } = connection.value;
  useTree();
  useEffect(() => { if (state === 'up') refresh(); }, [state]);
  useEffect(() => () => { asked.value = 0; }, []);
  return html`<${Head} title="Processes" note="What the daemon runs and restarts">
      ${!isReadOnly.value && html`<${Button} small tone="bad" onClick=${stopDaemon}>
        Stop the daemon…<//>`}<//>
    <div class="page narrow">${now && html`<${Section} title="Daemon"><${Figures} now=${now} />
      <//><${Check} /><${Nodes} nodes=${now.nodes} />`}
    <${Parts} /></div>`;
}

actions(() => [
  !isReadOnly.value && { text: 'Check this machine', act: () => { go('tree'); check(); },
    words: 'doctor diagnose health repair' },
  !isReadOnly.value && { text: 'Stop the daemon…', act: stopDaemon, words: 'down shut quit exit' },
  !isReadOnly.value && { text: 'Join another host…', act: () => open(Join), words: 'node remote' },
]);
