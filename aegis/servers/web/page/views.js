// Which component an address has.
import { html } from './lib.js';
import { Home } from './home.js';
import { lazy } from './lazy.js';
import { parse, settings } from './place.js';
import { RUN, agentState, terminalState } from './state.js';
import { agentOf, requests, terminals, workflows } from './store.js';
import { Empty, Link } from './ui.js';

const agents = name => lazy(() => import('./agent/pages.js'), name);
const shells = name => lazy(() => import('./terminal/pages.js'), name);
const queues = name => lazy(() => import('./work/queue.js'), name);
const papers = name => lazy(() => import('./work/canvas.js'), name);
const runs = name => lazy(() => import('./work/workflow.js'), name);
const teams = name => lazy(() => import('./work/group.js'), name);
const letters = name => lazy(() => import('./work/inbox.js'), name);

/** @type {Record<string, [string, any, string]>} title, component, icon */
export const PAGES = {
  home: ['Home', Home, 'home'],
  inbox: ['Inbox', letters('Inbox'), 'inbox'],
  inboxes: ['Inboxes', letters('Inboxes'), 'inbox'],
  queues: ['Queues', queues('Queues'), 'queue'],
  canvases: ['Canvases', papers('Canvases'), 'canvas'],
  workflows: ['Workflows', runs('Workflows'), 'flow'],
  groups: ['Groups', teams('Groups'), 'group'],
  agents: ['Agents', agents('Agents'), 'agent'],
  terminals: ['Terminals', shells('Terminals'), 'terminal'],
  answered: ['Answered requests', lazy(() => import('./request/answered.js'), 'Answered'), 'check'],
  workspaces: ['Workspaces', shells('Workspaces'), 'folder'],
  worktrees: ['Worktrees', agents('Worktrees'), 'branch'],
  broadcast: ['Run on several terminals', shells('Broadcast'), 'terminal'],
  cost: ['Cost', lazy(() => import('./rest/cost.js'), 'Cost'), 'cost'],
  day: ['Day', lazy(() => import('./rest/day.js'), 'Day'), 'day'],
  history: ['History', lazy(() => import('./rest/history.js'), 'History'), 'history'],
  access: ['Access', lazy(() => import('./rest/access.js'), 'Access'), 'key'],
  settings: ['Settings', lazy(() => import('./rest/settings.js'), 'Settings'), 'settings'],
  tree: ['Processes', lazy(() => import('./rest/tree.js'), 'Tree'), 'tree'],
  more: ['More', lazy(() => import('./rest/more.js'), 'More'), 'menu'],
};
/** @type {Record<string, [any, string]>} component, icon */
const ONE = {
  a: [agents('AgentPage'), 'agent'],
  t: [shells('TerminalPage'), 'terminal'],
  q: [queues('Queue'), 'queue'],
  c: [papers('Canvas'), 'canvas'],
  w: [runs('Workflow'), 'flow'],
  g: [teams('Group'), 'group'],
  m: [letters('Inbox'), 'inbox'],
  changes: [agents('Changes'), 'edit'],
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
