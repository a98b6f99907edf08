// The overview: what waits for a person on top, then agents, terminals, queues; the tree and the daemon beside.
import { ago, count, el, keyed, line, money, seconds, setText, toast } from './dom.js';
import { requestCard } from './requests.js';
import { deleteWorkspace, openShell } from './start.js';
import { agentState, terminalState } from './store.js';

const ORDER = { bad: 0, busy: 1, warn: 2, good: 3, done: 3, off: 5 }, PATIENCE_MS = 1500;

export class Overview {
  constructor(app, parent) {
    this.app = app; this.store = app.store;
    this.inbox = section('Waiting for you'); this.agents = section('Agents'); this.terminals = section('Terminals', action('+ Terminal', () => app.newTerminal()));
    this.queues = section('Queues'); this.groups = section('Groups'); this.workflows = section('Workflows', action('+ Run', () => app.runWorkflow())); this.canvases = section('Canvases', action('+ Canvas', () => app.openCanvas())); this.workspaces = section('Workspaces', action('+ Workspace', () => app.newWorkspace()));
    this.mail = section('Messages to you', el('button.btn', { type: 'button', onclick: () => this.store.acknowledge().catch(error => toast(error.message, 'bad')) }, 'Mark all as read'));
    this.facts = section('Daemon'); this.tree = section('Supervision tree'); this.tree.list.className = 'tree'; this.tree.list.tabIndex = 0; this.tree.list.setAttribute('aria-label', 'Supervision tree');
    this.inbox.box.classList.add('inbox'); this.facts.body = el('dl.facts'); this.facts.list.replaceWith(this.facts.body);
    for (const each of [this.mail, this.queues, this.groups, this.workflows, this.canvases, this.workspaces]) each.box.classList.add('filled');
    this.left = el('div.stack', {}, this.inbox.box, this.mail.box, this.agents.box, this.terminals.box, this.queues.box, this.groups.box, this.workflows.box, this.canvases.box, this.workspaces.box);
    const all = [el('h1.hidden', {}, 'Overview'), el('div.cols', {}, this.left, el('div.stack', {}, this.facts.box, this.tree.box))];
    // Shown once it is whole, so that nothing moves: the first items of all streams arrive together.
    this.show = () => { if (!this.isShown) { this.isShown = true; parent.replaceChildren(...all); } };
    this.patience = setTimeout(this.show, PATIENCE_MS);
    this.unwatch = this.store.watch(changes => { this.refresh(changes); if (this.store.isWhole) this.show(); });
    this.clock = setInterval(() => this.refresh(new Set(['agents', 'terminals'])), 10000);
  }

  refresh(changes) {
    if (changes.has('requests')) this.showRequests();
    if (changes.has('agents')) { this.showAgents(); this.showFacts(); }
    if (changes.has('terminals')) this.showTerminals();
    if (changes.has('queues')) this.showQueues();
    if (changes.has('tree')) this.showTree();
    if (changes.has('status')) this.showFacts();
    if (changes.has('mail')) this.showMail();
    if (changes.has('groups') || changes.has('agents')) this.showGroups();
    if (changes.has('workflows')) this.showWorkflows();
    if (changes.has('canvases')) this.showCanvases();
    if (changes.has('workspaces')) this.showWorkspaces();
  }

  showRequests() {
    const open = this.store.openRequests();
    this.inbox.box.classList.toggle('clear', !open.length);
    keyed(this.inbox.list, open, each => each.id, each => requestCard(each, this.app));
    setText(this.inbox.note, this.store.loaded.has('requests') ? 'Nothing. Agents that need an answer appear here.' : 'Loading…');
    setText(this.inbox.count, open.length || '');
  }

  showAgents() {
    const agents = [...this.store.agents.values()].map(agent => ({ agent, state: agentState(agent) })).sort((a, b) => (ORDER[a.state.tone] ?? 4) - (ORDER[b.state.tone] ?? 4) || a.agent.handle.localeCompare(b.agent.handle));
    keyed(this.agents.list, agents, ({ agent }) => agent.id, ({ agent }) => row(`#/a/${agent.handle}`), (item, { agent, state }) => fill(item, state, agent.handle, state.why,
      [agent.usage?.context_percent != null && `${Math.round(agent.usage.context_percent)} %`, money(agent.usage?.cost_usd), ago(state.since)].filter(Boolean).join(' · ')));
    if (!agents.length) this.agents.note.replaceChildren(this.store.loaded.has('agents') ? el('span', {}, 'No agents. Start one with ', el('code', {}, 'aegis-actors agent launch')) : 'Loading…');
  }

  showTerminals() {
    const terminals = [...this.store.terminals.values()].map(terminal => ({ terminal, state: terminalState(terminal) })).sort((a, b) => (ORDER[a.state.tone] ?? 4) - (ORDER[b.state.tone] ?? 4) || a.terminal.name.localeCompare(b.terminal.name));
    keyed(this.terminals.list, terminals, ({ terminal }) => terminal.name, ({ terminal }) => row(`#/t/${terminal.name}`), (item, { terminal, state }) => fill(item, state, terminal.name, state.what || this.below(terminal.cwd),
      [terminal.typing && `✎ ${terminal.typing.writer.replace(/^agent:/, '')}`, terminal.restarts > 0 && `${terminal.restarts} restarts`, `${state.word} · ${ago(state.since)}`].filter(Boolean).join(' · '), Boolean(state.what)));
    setText(this.terminals.note, this.store.loaded.has('terminals') ? 'No terminals yet.' : 'Loading…');
  }

  /** Return a directory relative to the root, if it is below it. */
  below(path) {
    const { root } = this.store.status ?? {};
    return !path || !root || !`${path}/`.startsWith(`${root}/`) ? path ?? '' : path === root ? '.' : path.slice(root.length + 1);
  }

  showQueues() {
    const queues = [...this.store.queues.values()];
    keyed(this.queues.list, queues, each => each.queue, each => row(`#/q/${each.queue}`), (item, queue) => fill(item, { tone: queue.problem ? 'bad' : queue.paused || queue.limited_until ? 'warn' : queue.running ? 'busy' : 'good' }, queue.queue, queue.problem || (queue.paused ? 'paused' : queue.limited_until ? `usage limit for ${ago(new Date(2 * Date.now() - Date.parse(queue.limited_until)).toISOString())}` : `${queue.agent} × ${queue.max_parallel}`), `${queue.running} run · ${queue.pending + queue.waiting} wait · ${queue.ended} ended`));
  }

  /** Messages of agents and programs to the person. */
  showMail() {
    const unread = [...this.store.mail.values()].toReversed();
    setText(this.mail.count, unread.length ? String(unread.length) : '');
    keyed(this.mail.list, unread.slice(0, 5), each => each.id, () => row('#/m/human'), (item, each) => fill(item, { tone: each.status === 'error' ? 'bad' : 'warn' }, each.sender.replace(/^agent:/, ''), each.body, `${ago(each.timestamp)} ago`));
  }

  showGroups() {
    const groups = [...this.store.groups.values()];
    keyed(this.groups.list, groups, each => each.group, each => row(`#/g/${each.group}`), (item, group) => {
      const { broadcast } = group, waits = broadcast && !broadcast.is_over, got = broadcast ? Object.values(broadcast.replies).filter(each => each === 'replied').length : 0;
      const needs = group.members.some(each => this.store.agent(each.handle)?.blocked);
      fill(item, { tone: group.problem || needs ? 'bad' : waits ? 'busy' : 'good' }, group.group, group.problem || (broadcast ? broadcast.objective : 'no order yet'), [`${group.members.length} members`, broadcast && `${got} of ${Object.keys(broadcast.replies).length} replied`].filter(Boolean).join(' · '));
    });
  }

  showWorkflows() {
    const runs = [...this.store.workflows.values()].toReversed();
    keyed(this.workflows.list, runs.slice(0, 50), each => each.workflow_id, each => row(`#/w/${each.workflow_id}`), (item, each) => fill(item, { tone: { running: 'busy', failed: 'bad', completed: 'done', waiting: 'warn' }[each.status] ?? 'off' }, each.name, each.problem || each.error || each.current.join(', ') || each.checkpoint || '', `${each.status} · ${each.calls} calls · ${ago(each.started)}`));
  }

  showCanvases() {
    const canvases = [...this.store.canvases.values()];
    keyed(this.canvases.list, canvases, each => each.name, each => row(`#/c/${each.name}`), (item, each) => fill(item, { tone: each.problem ? 'bad' : 'good' }, each.name, each.problem || (each.last ? `${each.last.writer.replace(/^agent:/, '')}: ${each.last.section}` : each.sections.join(', ')), [each.last && `${ago(each.last.timestamp)} ago`, `rev ${each.rev}`].filter(Boolean).join(' · ')));
  }

  showWorkspaces() {
    const { workspaces } = this.store;
    keyed(this.workspaces.list, workspaces, each => each.workspace_id, ({ workspace_id }) => this.workspace(workspace_id), (item, each) => {
      const [name, where] = item.firstChild.children, { links } = item;
      setText(name, line(each.workspace_id)); setText(where, line(this.below(each.directory))); where.title = line(each.directory);
      links.replaceChildren(...each.shells.map(shell => el('a.chip', { href: `#/t/${shell.shell_id}` }, line(shell.shell_id.slice(each.workspace_id.length + 1)))), ...each.agent ? [el('a.chip.busy', { href: this.store.agent(each.agent) ? `#/a/${each.agent}` : `#/t/${each.agent}` }, line(each.agent))] : []);
    });
  }

  workspace(id) {
    const links = el('span.links'), shell = action('+ Shell', () => openShell(this.app, id), '.bare'), close = action('Delete', () => deleteWorkspace(this.app, id), '.bare');
    shell.setAttribute('aria-label', `New shell in ${line(id)}`); close.setAttribute('aria-label', `Delete the workspace ${line(id)}`);
    return Object.assign(el('li', {}, el('div.row.place', {}, el('span.name.cut'), el('span.cut.quiet.mono'), el('span.links', {}, links, shell, close))), { links });
  }

  showFacts() {
    const { status } = this.store, agents = [...this.store.agents.values()], cost = agents.reduce((sum, each) => sum + (each.usage?.cost_usd ?? 0), 0), tokens = agents.reduce((sum, each) => sum + (each.usage?.output_tokens ?? 0), 0);
    const limited = agents.filter(each => each.limited_until);
    const facts = [['Cost of open sessions', money(cost)], ['Tokens written', count(tokens)], ...limited.map(each => [`Limit of ${each.handle}`, `until ${new Date(each.limited_until).toLocaleTimeString()}`]), ...agents.filter(each => each.budget_usd).map(each => [`Budget of ${each.handle}`, `${money(each.usage?.cost_usd ?? 0)} of ${money(each.budget_usd)}`]),
      ['Root', status?.root ?? '…'], ['Version', status?.version ?? '…'], ['Up', status ? seconds(status.uptime_s) : '…'], ['Memory', status ? `${Math.round(status.rss_bytes / 1048576)} MB` : '…'], ['Actors', String(status?.actors ?? '…')], ['Connections', String(status?.connections ?? '…')],
      ...(status ? [...status.nodes.filter(each => each.kind !== 'local').map(each => [`Node ${each.name ?? each.node}`, each.state])] : [])];
    this.facts.body.replaceChildren(...facts.flatMap(([name, value]) => [el('dt', {}, line(name, 60)), el('dd.cut', { title: line(value, 200) }, line(value, 200))]));
  }

  showTree() {
    const nodes = [...this.store.tree.values()].sort((a, b) => a.path < b.path ? -1 : 1).slice(0, 1000);
    keyed(this.tree.list, nodes, node => node.path, node => el('li', {}, el('div', {}, el('span.cut.mono', {}), el('span.quiet.small', {}), el('span.quiet.small', {}))), (item, node) => {
      const [name, state, more] = item.firstChild.children, depth = node.path.split('/').length - 1;
      name.style.paddingLeft = `${depth * 12}px`;
      const last = node.path.split('/').pop();
      setText(name, this.store.agents.get(last)?.handle ?? last);
      setText(state, node.state === 'running' ? '' : node.state);
      setText(more, [node.restarts && `↻ ${node.restarts}`, node.mailbox && `✉ ${node.mailbox}`].filter(Boolean).join(' '));
      more.title = 'restarts, queued messages';
      if (node.at && item._at !== node.at) { item._at = node.at; item.firstChild.classList.remove('flash'); void item.offsetWidth; item.firstChild.classList.add('flash'); }
    });
  }

  close() { this.isShown = true; clearTimeout(this.patience); this.unwatch(); clearInterval(this.clock); }
}

const action = (label, go, kind = '') => el(`button.btn${kind}`, { type: 'button', onclick: go }, label);

export function section(title, action) {
  const list = el('ul.rows'), note = el('p.empty'), counted = el('span.count');
  return { box: el('section.card', { 'aria-label': title }, el('header', {}, el('h2', {}, title), counted, action), list, note), list, note, count: counted };
}

export const row = href => el('li', {}, el('a.row', { href }, el('span.dot', { 'aria-hidden': 'true' }), el('span.name.cut'), el('span.what.cut.quiet'), el('span.meta')));

export function fill(item, state, name, what, meta, isCode = false) {
  const [dot, label, detail, more] = item.firstChild.children;
  dot.className = `dot ${state.tone}`;
  setText(label, line(name, 80)); setText(detail, line(what)); setText(more, meta);
  detail.classList.toggle('mono', isCode);
}
