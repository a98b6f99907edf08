// The rail: everything alive, always visible, with its state; a filter; the pages.
import { computed, html, signal, useState } from './lib.js';
import { Keys, Launch, NewTerminal, Palette } from './dialogs.js';
import { open } from './overlay.js';
import { at, beside, go, href, panes, settings, subject } from './place.js';
import { today } from './rest/today.js';
import { agentState, terminalState } from './state.js';
import { agents, connection, isReady, mail, queues, requests, terminals,
  workspaces } from './store.js';
import { Button, Choice, Count, Icon, Link, Menu, State, money, useStill, when } from './ui.js';

const RANK = { asks: 0, failed: 1, limit: 1, stalled: 2, works: 3, waits: 4, idle: 5, done: 5,
  ended: 6 };
const ONLY = [['all', 'All'], ['asks', 'Waiting'], ['works', 'Working'], ['rest', 'Idle']];
const KINDS = { asks: ['asks', 'failed', 'limit', 'stalled'], works: ['works', 'waits'],
  rest: ['idle', 'done', 'ended', 'paused'] };
const filter = signal(''), only = signal('all');

const agentRows = computed(() => [...agents.value.values()].map(each => ({
  id: each.handle, where: at('a', each.handle), ...agentState(each), cwd: each.cwd,
  asks: [...requests.value.values()].filter(one => one.handle === each.handle).length,
  text: `${each.handle} ${each.profile} ${each.model}`.toLowerCase(),
})));
const terminalRows = computed(() => [...terminals.value.values()].map(each => ({
  id: each.name, where: at('t', each.name), ...terminalState(each), cwd: each.cwd,
    exit: each.last_exit,
  label: settings.value.tabNames[each.name],
  text: `${each.name} ${settings.value.tabNames[each.name] ?? ''} ${each.cwd}`.toLowerCase(),
})));

/**
 * Return the rows in their order: what waits for a person first. A terminal's failure is a fact.
 */
function ordered(rows, isTerminal) {
  const words = filter.value.toLowerCase(), kinds = KINDS[only.value];
  const rank = each => isTerminal && each.kind === 'failed' && each.exit ? RANK.idle
    : RANK[each.kind];
  return rows.filter(each => each.text.includes(words) && (!kinds || kinds.includes(each.kind)))
    .sort((a, b) => rank(a) - rank(b) || a.id.localeCompare(b.id));
}

/** Groups by workspace, where there is one: the rows of the project itself have no head. */
function grouped(rows) {
  const places = [...workspaces.value].sort((a, b) => b.directory.length - a.directory.length);
  const of = each => places.find(one => each.cwd === one.directory
    || each.cwd?.startsWith(`${one.directory}/`))?.workspace_id ?? '';
  const names = [...new Set(rows.map(of))].sort();
  return names.map(name => /** @type {[string, any[]]} */ ([name,
    rows.filter(each => of(each) === name)]));
}

const info = each => each.asks ? html`<${Count} of=${each.asks} tone="ask"
    label=${`${each.asks} requests`} />`
  : each.what && each.kind === 'works' ? html`<span class="cut">${each.what}</span>`
    : each.exit ? html`<span class="bad-text">exit ${each.exit}</span>` : each.since
      && when(each.since);

function step(event) {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!by) return;
  const all = /** @type {HTMLElement[]} */ ([...document.querySelectorAll('.rail .item')]);
  const next = all[all.indexOf(/** @type {HTMLElement} */ (document.activeElement)) + by];
  if (!next) return;
  event.preventDefault();
  next.focus();
}

function Item({ row, isStop }) {
  const isHere = panes.value.some(each => subject(each) === row.where);
  const click = event => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    beside(row.where);
  };
  const key = event => event.key === 'Enter' && (event.ctrlKey || event.metaKey) && click(event);
  return html`<li><a class="item ${row.gone ? 'gone' : ''}" tabindex=${isStop ? 0 : -1}
    href=${href(row.where)} aria-current=${isHere ? 'page' : null} onClick=${click}
      onKeyDown=${key}>
    <${State} of=${row.kind} word=${row.word} />
    <bdi class="name" title=${row.label ? `${row.label} (${row.id})` : row.id}>${row.label
      || row.id}</bdi>
    <span class="info">${info(row)}</span></a></li>`;
}

function Items({ title, rows, isTerminal, label, onNew }) {
  const wanted = ordered(rows, isTerminal), [isShut, setShut] = useState(false);
  const [shown, still] = useStill(wanted, each => each.id), groups = grouped(shown);
  const stop = shown.find(each => panes.value.some(one => subject(one) === each.where)) ?? shown[0];
  const number = wanted.length === rows.length ? rows.length : `${wanted.length} of ${rows.length}`;
  return html`<section class="items ${isShut ? 'shut' : ''}" aria-label=${title}>
    <div class="items-head"><h2><button type="button" aria-expanded=${!isShut}
      onClick=${() => setShut(!isShut)}><${Icon} of=${isShut ? 'right'
        : 'down'} />${title}</button></h2>
      <span class="n">${number}</span><span class="gap"></span>
      <${Button} icon="plus" small tone="ghost" label=${label} onClick=${onNew} /></div>
    <div hidden=${isShut} ...${still} onKeyDown=${step}>${groups.map(([name,
      list]) => html`<${Group}
      key=${name} name=${name} list=${list} stop=${stop} isAlone=${groups.length === 1} />`)}</div>
    ${!shown.length && !isShut && html`<p class="note pad">${rows.length ? 'None matches.'
    : html`None yet. <button class="link" onClick=${onNew}>${label}</button>`}</p>`}</section>`;
}
const Group = ({ name, list, stop, isAlone }) => html`${name && !isAlone && html`<h3 class="place">
  <${Icon} of="folder" /><bdi>${name}</bdi></h3>`}<ul>${list.map(each => html`<${Item}
    key=${each.id}
  row=${each} isStop=${each === stop} />`)}</ul>`;

const LIVE = { up: 'live', down: 'reconnecting', out: 'logged out', connecting: 'connecting' };
/** The connection, in a word. */
export const Live = () => {
  const { state, reason } = connection.value;
  return html`<span id="link" class="live ${state}" role="status" aria-live="polite"
    title=${reason || 'The connection to the daemon'}><i></i>${LIVE[state]}</span>`;
};

const troubled = computed(() => [...queues.value.values()].filter(each => each.problem).length);
const NAV = () => [
  ['home', 'Home', 'home', requests.value.size, 'ask'],
  ['inbox', 'Inbox', 'inbox', mail.value.size, ''],
  ['queues', 'Queues', 'queue', troubled.value, 'bad'],
  ['canvases', 'Canvases', 'canvas'],
  ['workflows', 'Workflows', 'flow'],
  ['groups', 'Groups', 'group'],
];

export function Rail() {
  const down = event => {
    if (event.key !== 'ArrowDown') return;
    event.preventDefault();
    /** @type {HTMLElement} */ (document.querySelector('.rail .item'))?.focus();
  };
  return html`<nav class="rail" aria-label="Everything">
    <div class="rail-top"><button type="button" class="finder" onClick=${() => open(Palette)}>
      <${Icon} of="find" /><span>Go to or do</span><kbd>Ctrl K</kbd></button></div>
    <ul class="nav">${NAV().map(([where, words, icon, count, tone]) => html`<li key=${where}>
      <a class="nav-item" href=${href(where)}
        aria-current=${subject(panes.value[0]) === where ? 'page' : null}>
      <${Icon} of=${icon} /><span>${words}</span><${Count} of=${count}
        tone=${tone} /></a></li>`)}</ul>
    <div class="rail-find"><input class="input" type="search" placeholder="Filter  /"
      aria-label="Filter agents and terminals" value=${filter.value} onKeyDown=${down}
      onInput=${event => { filter.value = event.target.value; }} />
      <${Choice} label="State" of=${ONLY} value=${only.value}
        onChange=${value => { only.value = value; }} /></div>
    <div class="rail-list">${isReady.value && html`
      <${Items} title="Agents" rows=${agentRows.value} label="Launch an agent"
        onNew=${() => open(Launch)} />
      <${Items} title="Terminals" rows=${terminalRows.value} isTerminal label="New terminal"
        onNew=${() => open(NewTerminal)} />`}</div>
    <div class="rail-foot"><${Link} to="cost" class="today" title="Cost today"><${Icon} of="cost" />
      ${today.value === null ? 'Cost' : `${money(today.value)} today`}<//><span
        class="gap"></span><${Live} />
      <${Menu} label="More" small items=${[
    { text: 'Day', act: () => go('day') }, { text: 'History', act: () => go('history') },
    { text: 'Workspaces', act: () => go('workspaces') }, { text: 'Worktrees',
      act: () => go('worktrees') },
    { text: 'Answered requests', act: () => go('answered') }, '-',
    { text: 'Access', act: () => go('access') }, { text: 'Processes', act: () => go('tree') },
    { text: 'Settings', key: ',', act: () => go('settings') },
    { text: 'Keys', key: '?', act: () => open(Keys) }]} /></div></nav>`;
}
