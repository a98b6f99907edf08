// Which component an address has.
import { html } from './lib.js';
import { Home } from './home.js';
import { later } from './lazy.js';
import { parse, settings } from './place.js';
import { RUN, agentState, terminalState } from './state.js';
import { agentOf, requests, terminals, workflows } from './store.js';
import { Empty, Link } from './ui.js';

/** @type {Record<string, [string, any, string]>} title, component, icon */
export const PAGES = {
  home: ['Home', Home, 'home'],
  inbox: ['Inbox', later('Inbox'), 'inbox'],
  inboxes: ['Inboxes', later('Inboxes'), 'inbox'],
  queues: ['Queues', later('Queues'), 'queue'],
  canvases: ['Canvases', later('Canvases'), 'canvas'],
  workflows: ['Workflows', later('Workflows'), 'flow'],
  groups: ['Groups', later('Groups'), 'group'],
  agents: ['Agents', later('Agents'), 'agent'],
  terminals: ['Terminals', later('Terminals'), 'terminal'],
  answered: ['Answered requests', later('Answered'), 'check'],
  workspaces: ['Workspaces', later('Workspaces'), 'folder'],
  worktrees: ['Worktrees', later('Worktrees'), 'branch'],
  broadcast: ['Run on several terminals', later('Broadcast'), 'terminal'],
  cost: ['Cost', later('Cost'), 'cost'],
  day: ['Day', later('Day'), 'day'],
  history: ['History', later('History'), 'history'],
  access: ['Access', later('Access'), 'key'],
  settings: ['Settings', later('Settings'), 'settings'],
  tree: ['Processes', later('Tree'), 'tree'],
  more: ['More', later('More'), 'menu'],
};
/** @type {Record<string, [any, string]>} component, icon */
const ONE = {
  a: [later('AgentPage'), 'agent'],
  t: [later('TerminalPage'), 'terminal'],
  q: [later('Queue'), 'queue'],
  c: [later('Canvas'), 'canvas'],
  w: [later('Workflow'), 'flow'],
  g: [later('Group'), 'group'],
  m: [later('Inbox'), 'inbox'],
  changes: [later('Changes'), 'edit'],
};

export function titleOf(where) {
  const { kind, id } = parse(where);
  if (id === null) return PAGES[kind]?.[0] ?? 'Not found';
  if (kind === 't') return settings.value.tabNames[id] || id;
  if (kind === 'w') return workflows.value.get(id)?.name ?? 'Run';
  if (kind === 'changes') return `Changes of ${id}`;
  return kind === 'm' ? `Inbox of ${id}` : id;
}
export const iconOf = where => {
  const { kind, id } = parse(where);
  return id === null ? PAGES[kind]?.[2] : ONE[kind]?.[1];
};
export function stateOf(where) {
  const { kind, id } = parse(where);
  if (id === null) return null;
  const known = kind === 'a' ? agentOf(id) : { t: terminals, w: workflows }[kind]?.value.get(id);
  if (!known) return null;
  if (kind === 'w') {
    const asks = [...requests.value.values()].some(each => each.workflow === id);
    return asks ? 'asks' : RUN[known.status];
  }
  return (kind === 'a' ? agentState(known) : terminalState(known)).kind;
}

export function View({ where, onClose }) {
  const { kind, id, params } = parse(where), Page = id === null ? PAGES[kind]?.[1] : ONE[kind]?.[0];
  if (!Page) {
    return html`<h1 class="hidden">Not found</h1><${Empty} title="There is no such page.">
      <${Link} class="btn" to="home">Home<//><//>`;
  }
  return html`<${Page} key=${`${kind}/${id}`} id=${id} where=${where} params=${params}
    onClose=${onClose} />`;
}
