// Home: what waits for a person, what works, what ended, and what it costs.
import { html, useEffect, useRef, useState } from './lib.js';
import {
  agents, call, connection, isReadOnly, loaded, mail, queues, requests, terminals,
} from './store.js';
import {
  Button, Empty, Head, Link, Menu, Section, State, Time, money, now, once, usePhone, useStill,
} from './ui.js';
import { allActions } from './actions.js';
import { Launch, NewTerminal, Palette } from './dialogs.js';
import { loadAll } from './lazy.js';
import { open } from './overlay.js';
import { at, stored } from './place.js';
import { agentState } from './state.js';
import { RequestList } from './requests.js';
import { acknowledge, lineOf, sender } from './work/mail.js';
import { Bars } from './rest/chart.js';
import { Search } from './rest/find.js';

const HOUR_MS = 3600e3, DAY_MS = 24 * HOUR_MS, SETTLE_MS = 600, AGAIN_MS = 60e3;
const PAGE = 200, MOST_ENDED = 1000;
const ROWS = 6;

/** Do what another part of the page registered for the palette; it may have to be loaded first. */
const begin = async text => {
  await loadAll();
  return allActions().find(each => each.text === text)?.act();
};

// What ended before the last visit is not new: a visit ends when the page is hidden.
const VISIT = 'visited';
const lastVisit = Number(stored.get(VISIT)) || Date.now() - DAY_MS;
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'hidden') stored.set(VISIT, String(Date.now()));
});

/** Call ``read()`` now, and a moment after one of the values changed. */
function useSettled(read, changes) {
  const timer = useRef(0), { state } = connection.value;
  useEffect(() => {
    if (state !== 'up') return undefined;
    clearTimeout(timer.current);
    timer.current = setTimeout(() => read().catch(() => { /* read again with the next change */ }),
      SETTLE_MS);
    return () => clearTimeout(timer.current);
  }, [state, ...changes]);
}

/** Rows that stand still under a pointer; of many the first ones. */
function Rows({ list, keyOf, none, of: Row, most = ROWS, label }) {
  const [shown, still] = useStill(list, keyOf), [isAll, setAll] = useState(false);
  if (!shown.length) return html`<p class="calm">${none}</p>`;
  const some = isAll || shown.length <= most + 1 ? shown : shown.slice(0, most);
  return html`<ul class="rows" aria-label=${label} ...${still}>${some.map(each => html`<${Row}
      key=${keyOf(each)} each=${each} />`)}</ul>
    ${shown.length > most + 1 && html`<${Button} tone="ghost all"
      onClick=${() => setAll(!isAll)}>${isAll ? 'Show fewer' : `Show ${shown.length - most} more`}
      <//>`}`;
}

function Working({ each: { agent, state, gone } }) {
  const { usage } = agent;
  return html`<li class=${`row ${gone ? 'gone' : ''}`}><${Link} class="row-link"
    to=${at('a', agent.handle)}><${State} of=${state.kind} /><bdi
      class="name who">${agent.handle}</bdi>
    <bdi class="cut quiet">${state.why || state.word}</bdi><//>
    ${usage?.cost_usd != null && html`<span class="num note opt">${money(usage.cost_usd)}</span>`}
    <${Time} at=${state.since} /></li>`;
}

function Ended({ each: { agent, state, gone } }) {
  const isFailed = state.kind === 'failed', { handle } = agent;
  const resume = once(() => call(isFailed ? 'agent_restart' : 'agent_resume', { handle }));
  return html`<li class=${`row ${gone ? 'gone' : ''}`}><${Link} class="row-link" to=${at('a',
    handle)}>
    <${State} of=${state.kind} /><bdi class="name who">${handle}</bdi><bdi class="cut quiet">
    ${state.why || state.word}</bdi><//>${!isReadOnly.value && !gone && state.kind !== 'limit'
      && html`<${Button} small tone="ghost" label=${`${isFailed ? 'Restart' : 'Resume'} ${handle}`}
      onClick=${resume}>${isFailed ? 'Restart' : 'Resume'}<//>`}<${Time} at=${state.since} /></li>`;
}

/** The sessions that ended or failed in the last day. */
function useEnded() {
  const [closed, setClosed] = useState([]), open = [...agents.value.values()];
  useSettled(async () => {
    const { result } = await call('list_sessions', { closed: true });
    setClosed(result.filter(each => each.state === 'closed'
      && Date.parse(each.since) > Math.min(lastVisit, now.peek() - DAY_MS)));
  }, [open.map(each => each.id).join()]);
  return [...open, ...closed.filter(each => !agents.value.has(each.id))]
    .map(agent => ({ agent, state: agentState(agent) }))
    .filter(each => ['failed', 'limit', 'ended'].includes(each.state.kind))
    .sort((a, b) => Date.parse(b.state.since) - Date.parse(a.state.since));
}

const Task = ({ each }) => html`<li class=${`row ${each.gone ? 'gone' : ''}`}><${Link}
    class="row-link" to=${at('q', each.name, { task: each.id })}><${State} of="failed" />
    <bdi class="cut">${lineOf(each.text)}</bdi><//>${!isReadOnly.value && !each.gone
      && !each.archived && html`<${Button}
    small tone="ghost" label=${`Retry: ${lineOf(each.text)}`} onClick=${once(() =>
      call('task_retry', { task_id: each.id }))}>Retry<//>`}</li>`;

function FailedTasks() {
  const [tasks, setTasks] = useState([]);
  useSettled(async () => {
    const since = new Date(Math.min(lastVisit, now.peek() - DAY_MS)).toISOString();
    const search = new Search({ kind: 'task', since }), all = [];
    for (let page = [null]; page.length && !search.isOver && all.length < MOST_ENDED;) {
      page = await search.next(PAGE);
      all.push(...page);
    }
    setTasks(all.filter(each => each.outcome === 'failed'));
  }, [queues.value]);
  if (!tasks.length) return null;
  return html`<${Section} title="Failed tasks" count=${tasks.length} tone="bad"><${Rows}
    list=${tasks}
    keyOf=${each => each.id} label="Failed tasks" most=${4} of=${Task} /><//>`;
}

function CostToday() {
  const [spans, setSpans] = useState([]), [tick, setTick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setTick(count => count + 1), AGAIN_MS);
    return () => clearInterval(timer);
  }, []);
  useSettled(async () => {
    const since = new Date(new Date().setHours(0, 0, 0, 0)).toISOString();
    const { result } = await call('agent_usage_over_time', { by: 'hour', since });
    setSpans(result);
  }, [tick]);
  const hours = Array.from({ length: 24 }, (_, hour) => ({ key: String(hour), label: `${hour}:00`,
    tick: hour % 6 ? '' : `${String(hour).padStart(2, '0')}:00`, parts: [0] }));
  for (const { begin: from, usage } of spans) {
    hours[new Date(from).getHours()].parts[0] += usage.cost_usd ?? 0;
  }
  const sum = hours.reduce((all, each) => all + each.parts[0], 0);
  return html`<${Section} title="Cost today" more=${html`<${Link} class="more" to="cost">Over time
    <//>`}><p class="big">${money(sum)}</p><${Bars} isSmall height=${44} spans=${hours}
    names=${['Cost']} says=${money} label=${`Cost by hour today: ${money(sum)} in all`} /><//>`;
}

const Message = ({ each }) => html`<li class=${`row ${each.gone ? 'gone' : ''}`}><${Link}
    class="row-link" to=${`inbox?message=${encodeURIComponent(each.id)}`}><bdi class="name who">
    ${sender(each)}</bdi><bdi class="cut quiet">${lineOf(each.body)}</bdi><//><${Time}
    at=${each.timestamp} /></li>`;

function Messages() {
  const list = [...mail.value.values()].toReversed();
  return html`<${Section} title="Messages" count=${list.length} more=${list.length > 0
    && !isReadOnly.value && html`<button type="button" class="link"
      onClick=${once(acknowledge)}>Mark
    all as read</button>`}><${Rows} list=${list} keyOf=${each => each.id} none="All read." most=${5}
    label="Messages to you" of=${Message} /><//>`;
}

/** @param {{params?: URLSearchParams}} props */
export function Home({ params }) {
  const isPhone = usePhone(), asks = [...requests.value.values()];
  const states = [...agents.value.values()].map(agent => ({ agent, state: agentState(agent) }));
  const works = states.filter(each => ['works', 'stalled'].includes(each.state.kind))
    .sort((a, b) => Date.parse(b.state.since) - Date.parse(a.state.since));
  const ended = useEnded(), fresh = ended.filter(each => Date.parse(each.state.since) > lastVisit);
  const isLoaded = loaded.value.has('agents') && loaded.value.has('terminals')
    && loaded.value.has('requests');
  const isEmpty = isLoaded && !agents.value.size && !terminals.value.size && !asks.length
    && !mail.value.size && !ended.length;
  const head = isPhone ? html`<${Head} title="Home"><${Button} tone="ghost" icon="find"
      label="Go to or do" onClick=${() => open(Palette)} />${!isReadOnly.value
        && html`<${Menu}
      label="Start something" icon="plus" items=${['Launch an agent', 'New terminal', 'New group',
        'Run a workflow', 'Write a message'].map(text => ({ text,
          act: () => begin(text) }))} />`}<//>`
    : html`<h1 class="hidden">Home</h1>`;
  if (isEmpty) {
    return html`${head}<div class="page"><${Empty}
      title="No agent works here yet. Launch one, and give
      it its first task.">${!isReadOnly.value && html`<div class="ask-acts"><${Button} tone="main"
      onClick=${() => open(Launch)}>Launch an agent<//><${Button}
      onClick=${() => open(NewTerminal)}>Open a terminal<//></div>`}<//></div>`;
  }
  return html`${head}<div class="page home"><div class="home-main">
    <${Section} title="Waiting for you" count=${asks.length} tone="ask" more=${html`<${Link}
      class="more" to="answered">Answered<//>`}>${isLoaded && html`<${RequestList} list=${asks}
      first=${params?.get('request')} />`}<//>
    <${Section} title="Working" count=${works.length}><${Rows} list=${works} label="Working"
      keyOf=${each => each.agent.id} none="No agent works." of=${Working} /><//></div>
    <div class="home-side"><${CostToday} /><${Messages} />
    <${Section} title="Ended" count=${fresh.length}><${Rows} list=${ended} label="Ended"
      keyOf=${each => each.agent.id} none="Nothing ended." most=${5} of=${Ended} /><//>
    <${FailedTasks} /></div></div>`;
}
