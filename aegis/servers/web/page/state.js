// States of agents, terminals, tasks, runs: one table of words and shapes for the whole page.

/**
 * @typedef {'asks'|'works'|'waits'|'stalled'|'done'|'failed'|'idle'|'ended'|'limit'|'paused'
 * } Kind
 */

export const WORD = {
  asks: 'waits for you', works: 'works', waits: 'waits', stalled: 'makes no progress', done: 'done',
  failed: 'failed', idle: 'idle', ended: 'ended', limit: 'usage limit', paused: 'paused',
};

/** @type {Record<string, [Kind, string]>} */
const AGENT = {
  working: ['works', 'works'], running: ['works', 'works'], starting: ['works', 'starts'],
  blocked: ['asks', 'waits for you'], needs_input: ['asks', 'waits for you'],
  stale: ['asks', 'has waited long'], limited: ['limit', 'usage limit'], error: ['failed',
    'failed'],
  idle: ['idle', 'idle'], dormant: ['idle', 'sleeps'], exited: ['ended', 'has ended'],
  closed: ['ended', 'closed'],
};
// The daemon reports a session again once it has made no progress for this long.
const STALLED_S = 120;

/** Return the state of an agent: kind, a word for it, the reason, and since when. */
export function agentState(agent) {
  if (agent.taken_over) {
    const why = `taken over in the terminal ${agent.taken_over.terminal}`;
    return { kind: 'works', word: 'taken over', why, since: agent.taken_over.since };
  }
  const isStalled = agent.state === 'working' && agent.quiet_s >= STALLED_S;
  const [kind, word] = isStalled ? ['stalled', WORD.stalled] : AGENT[agent.state] ?? ['idle',
    agent.state];
  const reason = agent.blocked?.title || agent.program?.need?.text || agent.reason
    || agent.tools?.join(', ') || '';
  return { kind, word, why: reason, since: agent.blocked?.since ?? agent.since };
}

/**
 * Return the state of a terminal: kind, a word for it, the command that it is about, since when.
 */
export function terminalState(terminal) {
  const { running, state, last_exit: exit } = terminal, last = terminal.last?.cmd ?? '';
  if (state === 'running' && running?.needs_input) {
    const isSecret = running.needs_input.kind === 'secret';
    const word = isSecret ? 'asks for a password' : 'waits for input';
    return { kind: 'asks', word, what: running.cmd ?? running.needs_input.program,
      since: running.started_at };
  }
  if (state === 'running') {
    return { kind: 'works', word: 'runs', what: running?.cmd ?? 'a command',
      since: running?.started_at };
  }
  const since = terminal.last_cmd_at ?? terminal.started_at;
  if (state === 'failed') return { kind: 'failed', word: 'has failed', what: '', since };
  if (state === 'unreachable') return { kind: 'stalled', word: 'host unreachable', what: '',
    since };
  if (state === 'starting') return { kind: 'works', word: 'starts', what: '', since };
  if (state === 'closed') return { kind: 'ended', word: 'closed', what: '', since };
  if (exit) return { kind: 'failed', word: `exit ${exit}`, what: last, since };
  return { kind: exit === 0 ? 'done' : 'idle', word: exit === 0 ? 'exit 0' : 'ready', what: last,
    since };
}

/** @type {Record<string, Kind>} */
export const TASK = {
  pending: 'waits', waiting: 'waits', running: 'works', completed: 'done', failed: 'failed',
  cancelled: 'ended',
};
/** @type {Record<string, Kind>} */
export const REPLY = {
  pending: 'works', replied: 'done', failed: 'failed', interrupted: 'stalled', cancelled: 'ended',
  limited: 'limit', lost: 'failed',
};
/** @type {Record<string, Kind>} */
export const RUN = {
  running: 'works', completed: 'done', failed: 'failed', cancelled: 'ended',
};
