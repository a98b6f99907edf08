// Closed agents: the daemon's stream has the open ones only.
import { signal, useEffect } from '../lib.js';
import { agents, call, connection, events } from '../store.js';

/** Closed agents by id; null until they were read. */
const all = signal(/** @type {Map<string, any> | null} */ (null));

const NOTED_MS = 30000;
/** Closed a moment ago, as the stream said: the list of the daemon may not have them yet. */
const noted = new Map();
events.addEventListener('gone', event => {
  const { stream, item } = /** @type {CustomEvent} */ (event).detail;
  if (stream !== 'agents') return;
  noted.set(item.id, { item, at: Date.now() });
  closed.keep(item);
});

export const closed = {
  all,
  /** Note that an agent was closed here, before the list is read again. */
  keep(info) { if (all.peek()) all.value = new Map(all.peek()).set(info.id, info); },
  forget(id) {
    noted.delete(id);
    const next = new Map(all.peek() ?? []);
    if (next.delete(id)) all.value = next;
  },
  async read() {
    const { result } = await call('list_sessions', { closed: true });
    const listed = result.filter(each => each.state === 'closed').map(each => [each.id, each]);
    for (const [id, { at }] of noted) if (Date.now() - at > NOTED_MS) noted.delete(id);
    all.value = new Map([...[...noted].map(([id, { item }]) => [id, item]), ...listed]);
  },
};

/** Read the closed agents now, and again when an agent was closed or resumed. */
export function useClosed() {
  const ids = [...agents.value.keys()].sort().join(), { state } = connection.value;
  // Lost with the connection: read once it is back.
  useEffect(() => { if (state === 'up') closed.read().catch(() => {}); }, [ids, state]);
  return [...(all.value ?? new Map()).values()].filter(each => !agents.value.has(each.id))
    .sort((a, b) => a.since < b.since ? 1 : -1);
}
