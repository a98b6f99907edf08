// What the daemon says, kept current by its streams: each entity is a signal of a map.
import { computed, signal, useEffect, useRef } from './lib.js';

const SETTLE_MS = 300;
const STATUS_MS = 60000;
const MOST_MAIL = 1000; // the most that one call returns

/** @type {import('@preact/signals').Signal<{state: string, reason: string, since: number}>} */
export const connection = signal({ state: 'connecting', reason: '', since: Date.now() });
/** The hello of the daemon; null before it came. */
export const me = signal(/** @type {any} */ (null));
/** What a read-only link shows, 'terminal:NAME' or 'agent:HANDLE'; null for a login. */
export const view = computed(() => me.value?.view ?? null);
export const isReadOnly = computed(() => view.value !== null);
/** Which of the entities were read since the page began. */
export const loaded = signal(/** @type {Set<string>} */ (new Set()));
/** Whether what the frame and home show was read: drawn before, they would move as it arrives. */
export const isReady = computed(() => isLate.value
  || ['agents', 'terminals', 'requests', 'mail'].every(each => loaded.value.has(each)));
const isLate = signal(false);
const LATE_MS = 2000;
/** 'command' (an item of the stream `events`), 'missed', 'settled' (a request), 'gone'. */
export const events = new EventTarget();

/**
 * A map whose signal changes once per frame, however many changes there were.
 * @template V
 */
class Kept {
  constructor(name) {
    this.name = name;
    /** @type {Map<string, V>} */
    this.map = new Map();
    this.signal = signal(this.map);
  }

  changed() {
    if (due.has(this)) return;
    due.add(this);
    const publish = () => this.publish();
    // A hidden page has no frames.
    if (document.visibilityState === 'visible') requestAnimationFrame(publish);
    else setTimeout(publish, 250);
  }

  publish() {
    if (!due.delete(this)) return;
    this.signal.value = this.map = new Map(this.map);
    if (!loaded.peek().has(this.name)) loaded.value = new Set([...loaded.peek(), this.name]);
  }
}

/** The maps that have changed since their signals. */
const due = new Set();
document.addEventListener('visibilitychange', () => {
  // The frame for which they wait comes only once the page is shown again.
  if (document.visibilityState === 'hidden') for (const each of [...due]) each.publish();
});

/** @type {Record<string, Kept<any>>} */
const kept = Object.fromEntries(['terminals', 'agents', 'requests', 'queues', 'canvases',
  'workflows', 'groups', 'mail', 'tree'].map(name => [name, new Kept(name)]));

export const terminals = kept.terminals.signal;
export const agents = kept.agents.signal;
export const requests = kept.requests.signal;
export const queues = kept.queues.signal;
export const canvases = kept.canvases.signal;
export const workflows = kept.workflows.signal;
export const groups = kept.groups.signal;
/** Unread messages of the person's inbox, by id. */
export const mail = kept.mail.signal;
/** Actors by path. Kept only while something shows it: `useTree()`. */
export const tree = kept.tree.signal;
export const workspaces = signal(/** @type {any[]} */ ([]));
export const status = signal(/** @type {any} */ (null));

const byHandle = computed(() => new Map([...agents.value.values()].map(each => [each.handle,
  each])));
/** @param {string} handle */
export const agentOf = handle => byHandle.value.get(handle);
/** Open requests, oldest first. */
export const openRequests = computed(() =>
  [...requests.value.values()].sort((a, b) => a.created < b.created ? -1 : 1));

/** @type {import('./link.js').Link} */
let line;
export const link = () => line;
/** Carry out a command of the daemon. Rejects with `Failed`, whose message is one sentence. */
export const call = (command, args = {}) => line.call(command, args);

/** Begin, once the first hello came: a login follows everything, a link only its subject. */
export function start(given) {
  line = given;
  // A gap of events is followed by all terminals, as a new connection is.
  line.open('events', {}, { gap: () => {}, item: onEvent });
  keep('agents', 'agent', 'id', each => each.state === 'closed');
  keep('queues', 'queue', 'queue');
  keep('canvases', 'canvas', 'name');
  keep('workflows', 'workflow', 'workflow_id');
  keep('groups', 'group', 'group', each => each.state === 'dissolved');
  // Opened first and then read, so that no message is between the two.
  line.open('inbox', {}, {
    opened: readMail,
    gap: readMail,
    item: message => { kept.mail.map.set(message.id, message); kept.mail.changed(); },
  });
  line.open('requests', {}, { item: onRequest });
  refresh();
  readWorkspaces();
  setTimeout(() => { isLate.value = true; }, LATE_MS);
  setInterval(() => {
    if (document.visibilityState !== 'visible') return;
    refresh();
    dropReadMail();
  }, STATUS_MS);
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') dropReadMail();
  });
}

/**
 * Drop the messages that were read, maybe with another client: the stream has only new ones. A
 * message is read together with all before it, so the oldest unread one says which these are.
 */
export async function dropReadMail() {
  const before = [...kept.mail.map.keys()];
  if (!before.length) return;
  try {
    const { messages: [oldest] } = await call('inbox_read', { limit: 1 });
    const { map } = kept.mail, known = [...map.keys()];
    const at = oldest ? known.indexOf(oldest.id) : before.length;
    // Of very many not all are known.
    if (at < 0) { await readMail(); return; }
    const isLess = (oldest ? known.slice(0, at) : before).map(id => map.delete(id)).includes(true);
    if (isLess) kept.mail.changed();
  } catch { /* lost: all is read once the stream is opened again */ }
}

/** Use a link whose hello came, for a read-only view: nothing but its subject may be read. */
export const startView = given => { line = given; };

export async function refresh() {
  // Without a connection the indicator says so.
  try { status.value = await call('status'); } catch { /* read again in a minute */ }
}

/** Follow a stream that begins with an item of all, under its own name, then has one at a time. */
function keep(stream, one, key, isGone = each => false) {
  const { [stream]: here } = kept;
  line.open(stream, {}, { item: item => {
    if (item[stream]) here.map = new Map(item[stream].map(each => [each[key], each]));
    else if (isGone(item[one])) {
      here.map.delete(item[one][key]);
      events.dispatchEvent(new CustomEvent('gone', { detail: { stream, item: item[one] } }));
    }
    else {
      // A renamed group comes under its new name.
      for (const each of item[one].aliases ?? []) here.map.delete(each);
      here.map.set(item[one][key], item[one]);
    }
    here.changed();
    if (stream === 'agents') lookAtWorkspaces();
  } });
}

/** Read the unread messages: the oldest, and the newest if there are others behind those. */
export async function readMail() {
  const before = new Set(kept.mail.map.keys());
  try {
    const { messages } = await call('inbox_read', { limit: MOST_MAIL });
    if (messages.length === MOST_MAIL) {
      const known = new Set(messages.map(each => each.id));
      const newest = await call('inbox_read', { unread: false, limit: MOST_MAIL });
      // A message is read together with all before it, so those behind an unread one are unread.
      const last = newest.messages.findLastIndex(each => known.has(each.id));
      messages.push(...newest.messages.slice(last + 1));
    }
    // Those that came meanwhile may be newer than the answer.
    const came = [...kept.mail.map].filter(([id]) => !before.has(id));
    kept.mail.map = new Map([...messages.map(each => [each.id, each]), ...came]);
    kept.mail.changed();
  } catch { /* lost: the stream is opened again, and then this is read */ }
}

// Workspaces have no stream: they are listed again a moment after a terminal or an agent appears or
// goes.
let places = '', looking = 0;
function lookAtWorkspaces() {
  const now = JSON.stringify([[...kept.terminals.map.keys()], [...kept.agents.map.keys()]]);
  if (now === places) return;
  places = now;
  clearTimeout(looking);
  looking = window.setTimeout(readWorkspaces, SETTLE_MS);
}

export async function readWorkspaces() {
  try { workspaces.value = (await call('workspace_list')).result; } catch { places = ''; }
}

function onEvent(item) {
  const { terminals: here } = kept;
  if (item.terminals) {
    here.map = new Map(item.terminals.map(each => [each.name, withLast(each)]));
    events.dispatchEvent(new Event('missed')); // commands may have begun and ended meanwhile
  } else if (item.event === 'terminal_closed') here.map.delete(item.terminal.name);
  else if (item.terminal) {
    here.map.set(item.terminal.name, withLast(item.terminal));
  } else if (item.command) {
    onCommand(item);
    events.dispatchEvent(new CustomEvent('command', { detail: item }));
  }
  here.changed();
  lookAtWorkspaces();
}

/** A terminal with its last command, if that is the known one: others may have ended meanwhile. */
function withLast(terminal) {
  const { last } = kept.terminals.map.get(terminal.name) ?? {};
  return last?.started_at === terminal.last_cmd_at ? { last, ...terminal } : terminal;
}

function onCommand({ event, command }) {
  const known = kept.terminals.map.get(command.name);
  if (!known) return;
  const isNewer = !known.running || known.running.seq <= command.seq;
  const change = event !== 'command_finished' ? { running: command, state: 'running' }
    : { last: command, ...(isNewer ? { running: null, last_exit: command.exit, state: 'idle',
      last_cmd_at: command.started_at } : {}) };
  kept.terminals.map.set(command.name, { ...known, ...change });
}

function onRequest(item) {
  const { requests: here } = kept;
  if (item.open) {
    const open = new Set(item.open);
    for (const id of [...here.map.keys()]) if (!open.has(id)) here.map.delete(id);
  } else if (item.request.state === 'open') here.map.set(item.request.id, item.request);
  else {
    here.map.delete(item.request.id);
    events.dispatchEvent(new CustomEvent('settled', { detail: item.request }));
  }
  here.changed();
}

let treeUsers = 0, treeStream = null;
/** Keep `tree` current while the component is shown. */
export function useTree() {
  useEffect(() => {
    treeUsers += 1;
    if (treeUsers === 1) treeStream = line.open('tree', {}, { item: onTree });
    return () => {
      treeUsers -= 1;
      if (treeUsers === 0) treeStream?.close();
    };
  }, []);
}

function onTree(item) {
  const { tree: here } = kept;
  if (item.snapshot) {
    here.map = new Map();
    plant(item.snapshot);
  } else {
    const { delta } = item, known = here.map.get(delta.path);
    const at = known && delta.restarts > known.restarts ? Date.now() : known?.at;
    if (delta.state === 'stopped') here.map.delete(delta.path);
    else here.map.set(delta.path, { ...known, ...delta, at });
  }
  here.changed();
}

function plant({ children, ...node }) {
  kept.tree.map.set(node.path, node);
  for (const child of children ?? []) plant(child);
}

/**
 * Follow a stream while the component is shown; `deps` begin it anew.
 * @param {string} name @param {any} args @param {any} handler @param {any[]} deps
 */
export function useStream(name, args, handler, deps) {
  const latest = useRef(handler);
  latest.current = handler;
  useEffect(() => {
    const via = part => (...given) => latest.current[part]?.(...given);
    const parts = Object.fromEntries(Object.keys(handler).map(part => [part, via(part)]));
    const stream = line.open(name, args, parts);
    return () => stream.close();
  }, deps);
}
