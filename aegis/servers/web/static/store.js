// What the daemon says: terminals, agents, requests, queues, messages, the tree; kept current by its streams.

const PARTS = ['terminals', 'agents', 'requests', 'queues', 'canvases', 'workflows', 'groups', 'workspaces', 'mail', 'tree', 'status'];
const SETTLE_MS = 300, MOST_SETTLED = 100;

export class Store extends EventTarget {
  constructor(link) {
    super();
    this.link = link;
    this.terminals = new Map(); this.agents = new Map(); this.requests = new Map(); this.queues = new Map();
    this.canvases = new Map(); this.workflows = new Map(); this.groups = new Map(); this.tree = new Map();
    this.settled = new Map(); this.answers = new Map(); // how requests ended, and what is filled in for open ones
    this.mail = new Map(); this.workspaces = []; this.places = '';
    this.status = null; this.loaded = new Set(); this.changes = new Set(); this.listeners = new Set();
  }

  start() {
    const { link } = this;
    // A gap of events is followed by all terminals, as a new connection is.
    this.events = link.open('events', {}, { gap: () => {}, item: item => this.event(item) });
    this.keep('agents', 'agent', 'id', each => each.state === 'closed');
    this.keep('queues', 'queue', 'queue');
    this.keep('canvases', 'canvas', 'name');
    this.keep('workflows', 'workflow', 'workflow_id');
    this.keep('groups', 'group', 'group', each => each.state === 'dissolved');
    // The person's own inbox: opened first and then read, so that no message is between the two.
    link.open('inbox', {}, { opened: () => this.readMail(), gap: () => this.readMail(), item: message => { this.mail.set(message.id, message); this.changed('mail'); } });
    link.open('requests', {}, { item: item => this.request(item) });
    link.open('tree', {}, { item: item => {
      if (item.snapshot) { this.tree = new Map(); this.plant(item.snapshot); }
      else {
        const { delta } = item, known = this.tree.get(delta.path);
        if (delta.state === 'stopped') this.tree.delete(delta.path);
        else this.tree.set(delta.path, { ...delta, at: known && delta.restarts > known.restarts ? Date.now() : known?.at });
      }
      this.changed('tree');
    } });
    this.refresh(); this.readWorkspaces();
    setInterval(() => { if (document.visibilityState === 'visible') this.refresh(); }, 60000);
  }

  refresh() {
    this.link.call('status').then(status => { this.status = status; this.changed('status'); }, () => {});
    if (this.loaded.has('mail')) this.readMail();
    if (this.loaded.has('workspaces')) this.readWorkspaces();
  }

  /** Follow a stream that begins with an item of all, under its own name, and then has one at a time. */
  keep(stream, one, key, isGone = () => false) {
    this.link.open(stream, {}, { item: item => {
      if (item[stream]) this[stream] = new Map(item[stream].map(each => [each[key], each]));
      else if (isGone(item[one])) this[stream].delete(item[one][key]);
      else this[stream].set(item[one][key], item[one]);
      this.changed(stream);
    } });
  }

  async readMail() {
    try {
      const { messages } = await this.link.call('inbox_read', { limit: 200 });
      this.mail = new Map(messages.map(each => [each.id, each])); this.changed('mail');
    } catch { /* the connection was lost: the stream is opened again, and then this is read */ }
  }

  /** Acknowledge the messages that are shown. Another may have arrived meanwhile: it stays. */
  async acknowledge() {
    const last = [...this.mail.keys()].at(-1);
    if (last === undefined) return;
    await this.link.call('inbox_read', { after: last, limit: 1 });
    await this.readMail();
  }

  /** Workspaces have no stream: they are listed again a moment after a terminal or an agent appears or goes. */
  lookAtWorkspaces() {
    const places = JSON.stringify([[...this.terminals.keys()], [...this.agents.keys()]]);
    if (places === this.places) return;
    this.places = places;
    clearTimeout(this.looking);
    this.looking = setTimeout(() => this.readWorkspaces(), SETTLE_MS);
  }

  async readWorkspaces() {
    try { this.workspaces = (await this.link.call('workspace_list')).result; this.changed('workspaces'); } catch { this.places = ''; }
  }

  plant(node) {
    this.tree.set(node.path, { path: node.path, kind: node.kind, state: node.state, restarts: node.restarts, mailbox: node.mailbox });
    for (const child of node.children ?? []) this.plant(child);
  }

  event(item) {
    if (item.terminals) {
      this.terminals = new Map(item.terminals.map(terminal => [terminal.name, terminal]));
      this.dispatchEvent(new Event('missed')); // commands may have begun and ended meanwhile
    }
    else if (item.event === 'terminal_closed') this.terminals.delete(item.terminal.name);
    else if (item.terminal) this.terminals.set(item.terminal.name, item.terminal);
    else if (item.command) {
      const known = this.terminals.get(item.command.name), { command } = item;
      if (known) {
        if (item.event === 'command_finished') { if (!known.running || known.running.seq <= command.seq) Object.assign(known, { running: null, last_exit: command.exit, state: 'idle' }); }
        else Object.assign(known, { running: command, state: 'running' });
        known.last = item.event === 'command_finished' ? command : known.last;
      }
      this.dispatchEvent(new CustomEvent('command', { detail: item }));
    }
    this.changed('terminals');
  }

  request(item) {
    if (item.open) { const open = new Set(item.open); for (const id of this.requests.keys()) if (!open.has(id)) this.requests.delete(id); }
    else if (item.request.state === 'open') this.requests.set(item.request.id, item.request);
    else {
      this.requests.delete(item.request.id); this.answers.delete(item.request.id);
      this.settled.set(item.request.id, item.request);
      if (this.settled.size > MOST_SETTLED) this.settled.delete(this.settled.keys().next().value);
      this.dispatchEvent(new CustomEvent('settled', { detail: item.request }));
    }
    this.changed('requests');
  }

  /** Tell listeners of a change once per frame, however many there were. */
  changed(what) {
    this.loaded.add(what); this.changes.add(what);
    if (this.scheduled) return;
    this.scheduled = true;
    const tell = () => { this.scheduled = false; const all = new Set(this.changes); this.changes.clear(); if (all.has('terminals') || all.has('agents')) this.lookAtWorkspaces(); for (const listener of [...this.listeners]) listener(all); };
    document.visibilityState === 'visible' ? requestAnimationFrame(tell) : setTimeout(tell, 250);
  }

  /** Call ``listener(changes)`` now and after each change, until the returned function is called. */
  watch(listener) { this.listeners.add(listener); listener(new Set(PARTS)); return () => this.listeners.delete(listener); }

  get isWhole() { return PARTS.every(each => this.loaded.has(each)); }

  agent(handle) { for (const agent of this.agents.values()) if (agent.handle === handle) return agent; return null; }
  openRequests() { return [...this.requests.values()].sort((a, b) => a.created < b.created ? -1 : 1); }
}

const AGENTS = { working: ['busy', 'works'], running: ['busy', 'works'], starting: ['busy', 'starts'], blocked: ['bad', 'needs an answer'], needs_input: ['bad', 'needs input'], stale: ['bad', 'has waited long'], limited: ['warn', 'usage limit'], error: ['bad', 'failed'], idle: ['good', 'is ready'], dormant: ['off', 'sleeps'], exited: ['off', 'has ended'], closed: ['off', 'is closed'] };
// The daemon reports a session again once it has made no progress for this long.
const STALLED_S = 120;
export function agentState(agent) {
  if (agent.taken_over) return { tone: 'busy', word: 'is taken over', why: `is taken over in terminal ${agent.taken_over.terminal}`, since: agent.taken_over.since };
  const [tone, word] = agent.state === 'working' && agent.quiet_s >= STALLED_S ? ['warn', 'makes no progress'] : AGENTS[agent.state] ?? ['', agent.state];
  const why = agent.blocked ? `${word}: ${agent.blocked.title}` : agent.program?.need ? `${word}: ${agent.program.need.text}` : agent.reason ? `${word}: ${agent.reason}` : agent.tools?.length ? `${word}: ${agent.tools.join(', ')}` : word;
  return { tone, word, why, since: agent.blocked?.since ?? agent.since };
}

export function terminalState(terminal) {
  const { running } = terminal;
  if (terminal.state === 'running' && running?.needs_input) return { tone: 'bad', word: running.needs_input.kind === 'secret' ? 'asks for a password' : 'waits for input', what: running.cmd ?? running.needs_input.program, since: running.started_at };
  if (terminal.state === 'running') return { tone: 'busy', word: 'runs', what: running?.cmd ?? 'a command', since: running?.started_at };
  if (terminal.state === 'failed') return { tone: 'bad', word: 'has failed', what: '', since: terminal.started_at };
  if (terminal.state === 'unreachable') return { tone: 'warn', word: 'host unreachable', what: '', since: null };
  if (terminal.state === 'starting') return { tone: 'busy', word: 'starts', what: '', since: terminal.started_at };
  if (terminal.last_exit === 0) return { tone: 'done', word: 'exit 0', what: terminal.last?.cmd ?? '', since: terminal.last_cmd_at };
  if (terminal.last_exit) return { tone: 'warn', word: `exit ${terminal.last_exit}`, what: terminal.last?.cmd ?? '', since: terminal.last_cmd_at };
  return { tone: 'good', word: 'is ready', what: '', since: terminal.last_cmd_at ?? terminal.started_at };
}

export const TASK = { pending: 'good', waiting: 'warn', running: 'busy', completed: 'done', failed: 'bad', cancelled: 'off' };
export const REPLY = { pending: 'busy', replied: 'good', failed: 'bad', interrupted: 'warn', cancelled: 'off', limited: 'warn', lost: 'bad' };
