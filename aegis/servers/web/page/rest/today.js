// What the agents have cost today, for the foot of the rail.
import { computed, effect, signal } from '../lib.js';
import { call, connection, isReadOnly, loaded } from '../store.js';

const AGAIN_MS = 60e3;
/** In dollars; null until it was read. */
export const today = signal(/** @type {number | null} */ (null));

async function read() {
  const since = new Date(new Date().setHours(0, 0, 0, 0)).toISOString();
  try {
    const { total } = await call('agent_usage_over_time', { by: 'agent', since, limit: 1 });
    today.value = total.cost_usd ?? 0;
  } catch { /* read again later */ }
}

/** Whether calls are possible: the first lists have come. */
const isReady = computed(() => connection.value.state === 'up' && loaded.value.has('agents')
  && !isReadOnly.value);

effect(() => {
  if (!isReady.value) return undefined;
  read();
  const timer = setInterval(() => {
    if (document.visibilityState === 'visible') read();
  }, AGAIN_MS);
  return () => clearInterval(timer);
});
