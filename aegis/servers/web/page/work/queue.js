// Queues: tasks that agents do one after another.
import { html, useEffect, useRef, useState } from '../lib.js';
import { call, connection, isReadOnly, loaded, queues } from '../store.js';
import {
  Button, Choice, Empty, Field, Head, Link, State, once, useStill, when,
} from '../ui.js';
import { actions } from '../actions.js';
import { draft } from '../drafts.js';
import { say } from '../overlay.js';
import { at, go, query, restate } from '../place.js';
import { lineOf } from './mail.js';
import { TaskList, isOver } from './task.js';
import { WriteBox } from './write.js';

const STEP = 200, MOST = 1000, SETTLE_MS = 250;
const GROUPS = {
  running: ['running', 'limited'], waiting: ['pending', 'waiting'], failed: ['failed', 'cancelled'],
  done: ['completed'],
};
const STATES = [['all', 'All'], ['running', 'Running'], ['waiting', 'Waiting'], ['failed',
  'Failed'],
  ['done', 'Done']];
/** The tasks of a queue, read again when one of them changed. */
function useTasks(queue, limit) {
  const [found, setFound] = useState(null), [problem, setProblem] = useState('');
  const { state } = connection.value, change = queues.value.get(queue), timer = useRef(0);
  const turn = useRef(0), last = useRef(Promise.resolve());
  const load = async mine => {
    try {
      const value = await call('task_list', { queue, limit });
      if (mine === turn.current) { setFound(value); setProblem(''); }
    } catch (error) {
      if (mine === turn.current && error.code !== 'lost') setProblem(error.message);
    }
  };
  /** Read the tasks; the promise is kept when they are shown, by this or a newer read. */
  const read = () => {
    const mine = ++turn.current;
    const done = load(mine).then(() => mine === turn.current ? undefined : last.current);
    last.current = done;
    return done;
  };
  useEffect(() => {
    if (state !== 'up') return undefined;
    clearTimeout(timer.current);
    timer.current = setTimeout(read, found ? SETTLE_MS : 0);
    return () => clearTimeout(timer.current);
  }, [queue, limit, state, change]);
  return [found, problem, read];
}

/** The task that the address opens if it is none of those that are listed. */
function useApart(queue, id, found, onProblem) {
  const [apart, setApart] = useState(null);
  const isListed = !id || !found || found.result.some(each => each.task_id === id);
  useEffect(() => {
    let isGone = false;
    if (isListed) setApart(null);
    else {
      call('task_status', { task_id: id }).then(
        task => { if (!isGone) setApart(task.queue === queue ? task : null); },
        error => { if (!isGone && error.code !== 'lost') onProblem(error.message); },
      );
    }
    return () => { isGone = true; };
  }, [queue, id, found]);
  return !isListed && apart?.task_id === id ? apart : null;
}

/** What a new task needs beside its text. */
function useOptions(queue) {
  const one = draft(`task-options/${queue}`), options = one.value ?? {};
  const set = (name, value) => { one.value = { ...one.peek(), [name]: value }; };
  const args = () => {
    const { priority, before, after = [], attempts, minutes, key, silent } = one.peek() ?? {};
    return { ...priority && { priority: Number(priority) },
      ...before && { not_before: new Date(before).toISOString() }, ...after.length && { after },
      ...attempts && { max_attempts: Number(attempts) },
      ...minutes && { max_runtime_s: Number(minutes) * 60 }, ...key && { key },
      ...silent && { callback: false } };
  };
  return { options, set, args, clear: () => { one.value = null; } };
}

function TaskOptions({ options, set, tasks }) {
  const { priority = '', before = '', after = [], attempts = '', minutes = '', key = '' } = options;
  const open = tasks.filter(each => !isOver(each));
  const number = (name, value, label, note, more) => html`<${Field} label=${label}
    note=${note}><input
    class="input" type="number" value=${value} ...${more}
    onInput=${event => set(name, event.target.value)} /><//>`;
  return html`<div class="fields">
    ${number('priority', priority, 'Priority', 'Higher ones begin first', { min: -9, max: 9,
      placeholder: '0' })}
    <${Field} label="Not before"><input class="input" type="datetime-local" value=${before}
      onInput=${event => set('before', event.target.value)} /><//>
    ${number('attempts', attempts, 'Attempts at most', null, { min: 1, max: 100 })}
    ${number('minutes', minutes, 'Minutes at most', 'An attempt ends then', { min: 1 })}
    <${Field} label="Key" note="With it a second task is not made"><input class="input" value=${key}
      autocomplete="off" onInput=${event => set('key', event.target.value)} /><//></div>
    <label class="check"><input type="checkbox" checked=${!options.silent}
      onChange=${event => set('silent', !event.target.checked)} /><span>A message to me when it has
      ended</span></label>
    ${open.length > 0 && html`<fieldset class="options pick-many"><legend>After</legend>
      ${open.map(each => html`<label key=${each.task_id}><input type="checkbox"
        checked=${after.includes(each.task_id)} onChange=${() => set('after',
          after.includes(each.task_id) ? after.filter(one => one !== each.task_id)
            : [...after, each.task_id])} /><bdi class="cut">${lineOf(each.payload)}</bdi></label>`)}
      </fieldset>`}`;
}

const pause = (queue, isPaused) => call(isPaused ? 'queue_resume' : 'queue_pause', { queue });
function noteOf({ agent, max_parallel, paused, problem, limited_until, running, pending,
  waiting }) {
  const limit = limited_until && `usage limit, goes on ${when(limited_until)}`;
  return problem || [paused && 'paused', limit, `${agent}, ${max_parallel} at once`,
    `${running} running`, `${pending + waiting} waiting`].filter(Boolean).join(' · ');
}
const stateOf = ({ problem, paused, limited_until, running }) => problem ? 'failed'
  : paused ? 'paused' : limited_until ? 'limit' : running ? 'works' : 'idle';

/** @param {{id: string, params?: URLSearchParams}} props */
export function Queue({ id, params }) {
  const queue = queues.value.get(id), [limit, setLimit] = useState(STEP);
  const [only, setOnly] = useState('all');
  const [found, problem, read] = useTasks(id, limit), tasks = found?.result ?? [];
  const [turn, setTurn] = useState(0), moved = useRef(null);
  const [isMore, setMore] = useState(false), opened = params?.get('task') ?? null;
  const setOpened = task => restate(at('q', id, task && { task }));
  const [notFound, setNotFound] = useState(''), apart = useApart(id, opened, found, setNotFound);
  const { options, set, args, clear } = useOptions(id), isSet = Object.values(args()).length;
  const shown = tasks.filter(each => only === 'all' || GROUPS[only].includes(each.status));
  const counts = Object.fromEntries(STATES.map(([state]) => [state, tasks.filter(each =>
    state === 'all' || GROUPS[state].includes(each.status)).length]));
  const failed = tasks.filter(each => each.status === 'failed');
  const hasMore = found?.more && tasks.length >= limit && limit < MOST;
  useEffect(() => {
    setNotFound('');
    if (opened && !shown.some(each => each.task_id === opened)) setOnly('all');
  }, [opened]);
  if (!queue) {
    return loaded.value.has('queues') && html`<${Empty}
      title=${`There is no queue “${id}”.`}><${Link}
      class="btn" to="queues">All queues<//><//>`;
  }
  const enqueue = async (payload, key) => {
    await call('enqueue', { queue: id, payload, key, ...args() });
    clear(); setMore(false);
    say(queue.paused ? 'Added; the queue is paused' : 'Added');
  };
  const retryAll = async () => {
    // A task that waits for another one is refused before that one is retried.
    let left = failed.toReversed(), why = null;
    for (let before = 0; left.length !== before;) {
      const refused = [];
      before = left.length;
      why = null;
      for (const each of left) {
        await call('task_retry', { task_id: each.task_id }).catch(error => {
          why ??= error;
          refused.push(each);
        });
      }
      left = refused;
    }
    if (why) throw why;
  };
  return html`<${Head} state=${stateOf(queue)} title=${id} note=${noteOf(queue)}>${!isReadOnly.value
      && html`${failed.length > 1 && html`<${Button} small onClick=${retryAll}>Retry
      ${' '}${failed.length} failed<//>`}<${Button} small onClick=${() => pause(id, queue.paused)}>
      ${queue.paused ? 'Resume' : 'Pause'}<//>`}<//>
    <div class="page narrow">${!isReadOnly.value && html`<${WriteBox} of=${`task/${id}`} rows=${1}
      label="A new task" placeholder="A new task: the agent knows nothing else" verb="Add"
      send=${enqueue} foot=${html`<button type="button" class="link" aria-expanded=${isMore}
        onClick=${() => setMore(!isMore)}>Priority, time, order${isSet ? ` (${isSet} set)`
          : ''}</button>`}>
      ${isMore && html`<${TaskOptions} options=${options} set=${set} tasks=${tasks} />`}<//>`}
    <div class="filters"><${Choice} label="State of the tasks" of=${STATES} value=${only}
      onChange=${setOnly} counts=${found?.more ? {} : counts} /></div>
    ${(problem || notFound) && html`<p class="bad-text" role="alert">${problem || notFound}</p>`}
    ${found && !shown.length && html`<p class="calm">${only === 'all'
      ? 'No task yet: add the first one above.' : found.more ? 'None of those listed.'
        : 'No task in this state.'}</p>`}
    <${TaskList} key=${turn} tasks=${apart ? [apart, ...shown] : shown} all=${tasks}
      opened=${opened} onOpen=${setOpened}
      moved=${moved.current} onMoved=${async task => { moved.current = task; await read();
        setTurn(turn + 1); }} />
    ${hasMore && html`<${Button} tone="ghost all"
      onClick=${() => setLimit(Math.min(MOST, limit * 2))}>Show more<//>`}
    ${found?.more && !hasMore && html`<p class="note">These are not all: <${Link} class="link"
      to=${`history${query({ kind: 'task', name: id })}`}>the history<//> has the others that have
      ended.</p>`}</div>`;
}

export function Queues() {
  const [shown, still] = useStill([...queues.value.values()], each => each.queue);
  return html`<${Head} title="Queues" /><div class="page narrow">${loaded.value.has('queues')
      && !shown.length && html`<${Empty}
        title="No queue yet. A queue hands tasks to agents, one after
      another: it is configured under “queues:” in .aegis.yaml of the project." />`}
    ${shown.length > 0 && html`<ul class="rows" aria-label="Queues" ...${still}>${shown.map(each =>
      html`<li class="row tall" key=${each.queue}><${Link} class="row-link" to=${at('q',
        each.queue)}>
        <${State} of=${stateOf(each)} /><b class="name who">${each.queue}</b><span
          class="cut quiet">
        ${noteOf(each)}</span><//><span class="note opt">${each.ended} ended</span>
        ${!isReadOnly.value && html`<${Button} small tone="ghost" onClick=${once(() =>
          pause(each.queue, each.paused))} label=${`${each.paused ? 'Resume'
            : 'Pause'} ${each.queue}`}>
          ${each.paused ? 'Resume' : 'Pause'}<//>`}</li>`)}</ul>`}</div>`;
}

actions(() => isReadOnly.value ? [] : [...queues.value.values()].flatMap(({ queue, paused }) => [
  { text: `Add a task to ${queue}`, group: 'Queue', words: 'enqueue', of: at('q', queue),
    act: () => go(at('q', queue)) },
  { text: `${paused ? 'Resume' : 'Pause'} the queue ${queue}`, group: 'Queue', of: at('q', queue),
    act: () => pause(queue, paused) },
]));
