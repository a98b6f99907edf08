// The tasks of a queue: a row each, opened to its text, result or error.
import { html, useEffect } from '../lib.js';
import { agentOf, call, isReadOnly } from '../store.js';
import {
  Button, Copy, Icon, Link, Menu, State, Time, confirm, useGuard, useStill, when, whole,
} from '../ui.js';
import { at } from '../place.js';
import { TASK } from '../state.js';
import { Text } from '../text.js';
import { lineOf } from './mail.js';

// A task is listed with so much of its text.
const HEAD_CHARS = 200;
const WORDS = { pending: 'next', waiting: 'waits', running: 'runs', limited: 'usage limit',
  completed: 'done', failed: 'failed', cancelled: 'cancelled' };
const kindOf = task => task.status === 'limited' ? 'limit' : TASK[task.status] ?? 'waits';
export const isOver = task => ['completed', 'failed', 'cancelled'].includes(task.status);

const Long = ({ text, label }) => html`<div class="long" tabindex="0" role="region"
  aria-label=${label}><${Text}>${text}<//></div>`;

/** All of a task: its text, its result or error, and where it was done. */
function Whole({ task }) {
  const times = [['Added', task.enqueued], ['Not before', !isOver(task) && task.not_before],
    ['Began', task.started], ['Ended', task.ended]].filter(each => each[1]);
  const facts = [['From', task.sender.replace(/^agent:/, '').replace(/^human$/, 'you')],
    ['Priority', task.priority || ''], ['Attempts', `${task.attempt} of ${task.max_attempts}`],
    ['Key', task.key], ['Waits for', task.waits], ...times.map(([name, moment]) =>
      [name, `${whole(moment)} (${when(moment)})`])].filter(each => each[1]);
  return html`<div class="task-body"><h3>Task</h3><${Long} text=${task.payload} label="The task" />
    ${task.payload.length >= HEAD_CHARS && html`<p class="note">This is only the beginning. The
      agent that does it has all of it.</p>`}
    ${task.error && html`<h3>${isOver(task) ? 'Why it ended' : 'Why it waits'}</h3><pre
      class="exact bad-text" tabindex="0" role="region" aria-label="The error">${task.error}</pre>`}
    ${task.result && html`<h3>Result</h3><${Long} text=${task.result} label="The result" />`}
    <dl class="facts">${facts.map(([name, value]) => html`<dt key=${name}>${name}</dt><dd
      dir="auto">${value}</dd>`)}${task.worker && html`<dt>Done by</dt><dd><${Link} class="link"
      to=${at('a', task.worker)}><bdi>${task.worker}</bdi><//></dd>`}${task.failed_with.length > 0
      && html`<dt>Failed with it</dt><dd>${task.failed_with.length} tasks</dd>`}</dl>
    <div class="ask-acts">${task.result && html`<${Copy} text=${task.result} label="Copy the result"
      >Copy the result<//>`}<${Copy} text=${task.task_id} label="Copy its id">Copy its id<//></div>
    </div>`;
}

function Task({ task, isOpen, onToggle, onMove, neighbours }) {
  const [box, moved] = useGuard(), { task_id, status, worker, gone } = task,
    line = lineOf(task.payload);
  const guarded = act => event => event?.detail && moved() ? undefined : act();
  const cancel = () => status === 'running' ? confirm({ title: 'Cancel the task?', tone: 'bad',
    verb: 'Cancel the task', text: `${worker ?? 'Its agent'} is ended; what it has written stays.`,
    act: () => call('cancel', { task_id }) }) : call('cancel', { task_id });
  const move = place => () => onMove(task, place);
  const why = task.error ? lineOf(task.error) : task.not_before && !task.waiting_for.length
    && status === 'waiting' ? `not before ${whole(task.not_before)}` : lineOf(task.waits);
  const { up, down, isFirst, isLast } = neighbours, mayMove = status === 'pending'
    && !isReadOnly.value;
  return html`<li ref=${box} data-task=${task_id} class=${`task ${isOpen ? 'open' : ''} ${gone
    ? 'gone' : ''}`}>
    <div class="task-line"><button type="button" class="task-open" aria-expanded=${isOpen}
      onClick=${onToggle}><${Icon} of="right" /><${State} of=${kindOf(task)}
      word=${WORDS[status]} /><span class="task-text"><bdi class="cut">${line
        || 'An empty task'}</bdi>
      ${why && html`<bdi class=${`cut note ${status === 'failed' ? 'bad-text' : ''}`}>${why}</bdi>`}
      </span></button>
    <span class="opt note">${worker && agentOf(worker) ? html`<${Link} class="link"
      to=${at('a', worker)}><bdi>${worker}</bdi><//>` : worker ? html`<bdi>${worker}</bdi>`
      : html`from <bdi>${task.sender.replace(/^agent:/, '').replace(/^human$/,
        'you')}</bdi>`}</span>
    ${task.priority !== 0 && html`<span class="chip opt">${task.priority > 0 ? '+'
      : ''}${task.priority}
      </span>`}${task.attempt > 1 && html`<span class="note opt num">${task.attempt} of
      ${' '}${task.max_attempts}</span>`}
    <${Time} at=${task.ended ?? task.started ?? task.enqueued} />
    ${!isReadOnly.value && !gone && html`<span class="task-acts">${mayMove && html`<${Menu} small
      label=${`Move: ${line}`} icon="queue" items=${[
        !isFirst && { text: 'Move to the front', act: move({ to: 'first' }) },
        up && { text: 'Move up', act: move({ before: up }) },
        down && { text: 'Move down', act: move(down === 'last' ? { to: 'last' }
          : { before: down }) },
        !isLast && { text: 'Move to the end', act: move({ to: 'last' }) }]} />`}
      ${['failed', 'cancelled'].includes(status) ? html`<${Button} small label=${`Retry: ${line}`}
        onClick=${guarded(() => call('task_retry', { task_id }))}>Retry<//>`
        : !isOver(task) && html`<${Button} small tone="ghost" label=${`Cancel: ${line}`}
        onClick=${guarded(cancel)}>Cancel<//>`}</span>`}</div>
    ${isOpen && html`<${Whole} task=${task} />`}</li>`;
}

/** Where a pending task can be moved to, among those that begin in turn. */
function places(tasks, task) {
  const all = tasks.filter(each => each.status === 'pending');
  const index = all.findIndex(each => each.task_id === task.task_id), more = all.length > 1;
  return { isFirst: index <= 0, isLast: !more || index === all.length - 1,
    up: index > 0 && all[index - 1].task_id,
    down: index >= 0 && index < all.length - 1 && (all[index + 2]?.task_id ?? 'last') };
}

/** The rows of tasks. Order is kept under a pointer, but who moves a task sees where it went:
 * `onMoved()` reads the order again, and draws the list anew. `moved` gets the focus then.
 * @param {{tasks: any[], all: any[], opened: ?string, onOpen: (id: ?string) => void,
 *   moved: ?string, onMoved: (id: string) => Promise<void>}} props */
export function TaskList({ tasks, all, opened, onOpen, moved, onMoved }) {
  const [shown, still] = useStill(tasks, each => each.task_id), box = still.ref;
  useEffect(() => {
    if (!moved) return;
    [...box.current.children].find(each => each.dataset.task === moved)
      ?.querySelector('.task-acts button')?.focus();
  }, []);
  const isThere = shown.some(each => each.task_id === opened);
  useEffect(() => {
    if (isThere) box.current.querySelector('.open .task-line').scrollIntoView({ block: 'nearest' });
  }, [opened, isThere]);
  const move = async ({ queue, task_id }, place) => {
    await call('task_move', { queue, task_id, ...place });
    await onMoved(task_id);
  };
  return html`<ul class="tasks" aria-label="Tasks" ...${still}>${shown.map(each => html`<${Task}
    key=${each.task_id} task=${each} isOpen=${opened === each.task_id} onMove=${move}
    neighbours=${places(all, each)}
    onToggle=${() => onOpen(opened === each.task_id ? null : each.task_id)} />`)}</ul>`;
}
