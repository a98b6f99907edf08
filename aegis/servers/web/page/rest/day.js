// The timeline of a day: what ran when, a lane for each terminal, agent, queue and workflow.
import { html, useEffect, useRef, useState } from '../lib.js';
import { at, go, query } from '../place.js';
import { agents, call, connection, queues, terminals, workflows } from '../store.js';
import { Button, Empty, Head, Link, Section, State, seconds } from '../ui.js';
import { clock, clocked, now, whole } from '../time.js';
import { KIND, outcomeOf, Search, ended, whereOf } from './find.js';

const HOUR_MS = 3600e3, PAGE = 200, MOST_FINDS = 2000, LISTED = 100, MOST_LEVELS = 4;
const AGAIN_MS = 60e3, SETTLE_MS = 300;
const KINDS = { a: 'Agents', t: 'Terminals', q: 'Queues', w: 'Workflows' };
const LANE = { command: 't', task: 'q', run: 'w', request: 'a' };
const NAMED = new Intl.DateTimeFormat('en-GB',
  { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' });

/**
 * @typedef {{key: string, from: number, to: number, state: string, text: string, what: string,
 *   where: string, level?: number, share?: number}} Bar
 * @typedef {{key: string, kind: string, name: string, bars: Bar[]}} Lane
 */

/** Return a day of the browser's calendar as in an address: 2026-11-29. @param {Date} date */
export const dayText = date => [date.getFullYear(), date.getMonth() + 1, date.getDate()]
  .map(each => String(each).padStart(2, '0')).join('-');
/** @param {string} text @param {number} by */
function beginOf(text, by = 0) {
  const [year, month, day] = text.split('-').map(Number);
  return new Date(year, month - 1, day + by);
}

const keyOf = find => `${find.kind} ${find.name} ${find.id}`;
/** Return a find as a bar: from when it began, if that is known, to its end. */
function barOf(find) {
  const to = Date.parse(find.at), from = find.began ? Date.parse(find.began) : to;
  return {
    key: keyOf(find), from: Math.min(from, to), to, text: find.text,
    state: find.kind === 'request' ? 'asks' : outcomeOf(find) ?? 'idle',
    what: `${KIND[find.kind]}, ${ended(find)}`, where: whereOf(find),
  };
}

/** Return what runs now as bars, by lane. */
function running(end) {
  return [...terminals.value.values()].filter(each => each.running).map(each => ({
    lane: ['t', each.name],
    bar: { key: `now ${each.name}`, from: Date.parse(each.running.started_at), to: end,
      state: 'works', text: each.running.cmd ?? 'a command', what: 'Command, runs now',
      where: at('t', each.name, { seq: each.running.seq }) },
  })).concat([...agents.value.values()].filter(each => each.state === 'working').map(each => ({
    lane: ['a', each.handle],
    bar: { key: `now ${each.handle}`, from: Date.parse(each.since), to: end, state: 'works',
      text: each.tools?.join(', ') || 'works', what: 'Agent, works now',
      where: at('a', each.handle) },
  })));
}

/** Give bars that overlap levels of their own, as far as there is room. @param {Bar[]} bars */
function levelled(bars) {
  const ends = [];
  for (const bar of bars) {
    const free = ends.findIndex(each => each <= bar.from);
    bar.level = free >= 0 ? free : Math.min(ends.length, MOST_LEVELS - 1);
    ends[bar.level] = Math.max(ends[bar.level] ?? 0, bar.to);
  }
  return bars;
}

/**
 * Return the lanes of a day. `hours` are the usage of agents by hour: how long each worked.
 * @returns {Lane[]}
 */
function lanesOf(finds, hours, others) {
  /** @type {Map<string, Lane>} */
  const lanes = new Map();
  const put = (kind, name, bar) => {
    const key = `${kind}/${name}`;
    if (!lanes.has(key)) lanes.set(key, { key, kind, name, bars: [] });
    lanes.get(key).bars.push(bar);
  };
  for (const find of finds) put(LANE[find.kind], find.name, barOf(find));
  for (const { begin, handle, usage } of hours) {
    const from = Date.parse(begin), worked = Math.min(HOUR_MS, usage.turns_s * 1000);
    if (worked > 0) {
      put('a', handle, { key: `hour ${handle} ${begin}`, from, to: from + HOUR_MS, state: 'hour',
        text: `worked ${seconds(usage.turns_s)} in this hour`, what: 'Agent',
        share: worked / HOUR_MS,
        where: at('a', handle) });
    }
  }
  for (const { lane: [kind, name], bar } of others) put(kind, name, bar);
  const order = Object.keys(KINDS);
  for (const lane of lanes.values()) levelled(lane.bars.sort((a, b) => a.from - b.from));
  return [...lanes.values()].sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind)
    || a.name.localeCompare(b.name));
}

/** Return a number that changes each minute of today, and a moment after something ended. */
function useChanges(isToday) {
  const [count, setCount] = useState(0), soon = useRef(0);
  const ended = [...[...terminals.value.values()].map(each => each.last?.seq),
    ...[...queues.value.values()].map(each => each.ended),
    ...[...workflows.value.values()].map(each => each.ended)].join(), seen = useRef(ended);
  const again = () => setCount(before => before + 1);
  useEffect(() => {
    if (!isToday) return undefined;
    const timer = setInterval(again, AGAIN_MS);
    return () => { clearInterval(timer); clearTimeout(soon.current); soon.current = 0; };
  }, [isToday]);
  useEffect(() => {
    if (!isToday || soon.current || seen.current === ended) return;
    seen.current = ended;
    soon.current = window.setTimeout(() => { soon.current = 0; again(); }, SETTLE_MS);
  }, [isToday, ended]);
  return count;
}

const NOTHING = { day: '', finds: [], hours: [], isBusy: true, isCut: false, why: '' };

/** Read the ended of a day, and the hours in which agents worked; today again as it changes. */
function useDay(day, isToday) {
  const [state, setState] = useState(NOTHING), { state: link } = connection.value;
  const change = useChanges(isToday), again = useRef(() => {});
  useEffect(() => {
    if (link !== 'up') return undefined;
    const begin = beginOf(day).getTime(), last = beginOf(day, 1).getTime() - 1;
    let isGone = false, isReading = false, isDue = false;
    let kept = state.day === day ? state : { ...NOTHING, day };
    const show = more => {
      kept = { ...kept, ...more };
      if (!isGone) setState(kept);
    };
    const read = async () => {
      // Of what was read, the newest may have been written before others of the same moment.
      const newest = kept.finds.length ? Date.parse(kept.finds[0].at) - AGAIN_MS : begin;
      const search = new Search({ since: new Date(Math.max(begin, newest)).toISOString(),
        until: new Date(last).toISOString() }, ['']), fresh = [];
      while (!search.isOver && fresh.length < MOST_FINDS) {
        const page = await search.next(PAGE);
        if (isGone) return;
        fresh.push(...page);
        if (!page.length) break;
      }
      const usage = await call('agent_usage_over_time', { by: 'hour', split: true,
        since: new Date(begin).toISOString(), limit: 5000 });
      const finds = new Map([...kept.finds, ...fresh].map(each => [keyOf(each), each]));
      show({ finds: [...finds.values()].sort((a, b) => a.at < b.at ? 1 : -1), isBusy: false,
        hours: usage.result.filter(each => each.handle && Date.parse(each.begin) <= last),
        isCut: kept.isCut || !search.isOver, why: '' });
    };
    again.current = async () => {
      isDue = true;
      if (isReading) return;
      isReading = true;
      while (isDue && !isGone) {
        isDue = false;
        await read().catch(error => show({ isBusy: false, why: error.message }));
      }
      isReading = false;
    };
    show({});
    again.current();
    return () => { isGone = true; };
  }, [day, link]);
  useEffect(() => { if (change) again.current(); }, [change]);
  return state.day === day ? state : NOTHING;
}

const LEVEL_PX = 12;

function LaneRow({ lane, from, to }) {
  const levels = 1 + Math.max(...lane.bars.map(each => each.level)), width = 1000;
  const x = time => Math.max(0, Math.min(width, (time - from) / (to - from) * width));
  const place = lane.kind === 'w' ? 'workflows' : at(lane.kind, lane.name);
  return html`<li class="lane-row"><${Link} class="lane-name" to=${place}><bdi class="cut"
    title=${lane.name}>${lane.name}</bdi><//>
    <svg class="lane" viewBox="0 0 ${width} ${levels * LEVEL_PX}" preserveAspectRatio="none"
      style=${{ height: `${levels * LEVEL_PX}px` }} aria-hidden="true">
      ${lane.bars.map(bar => html`<rect key=${bar.key} class="is-${bar.state}" x=${x(bar.from)}
        y=${bar.level * LEVEL_PX + (bar.share ? (1 - bar.share) * (LEVEL_PX - 2) : 0)}
        width=${Math.max(2, x(bar.to) - x(bar.from) - 1)}
        height=${Math.max(2, (bar.share ?? 1) * (LEVEL_PX - 2))}
        onClick=${() => go(bar.where)}><title>${clocked(bar.from)}, ${lasted(bar)}${'\n'}${
  bar.text}</title></rect>`)}</svg></li>`;
}

/** @param {Bar} bar */
const lasted = ({ from, to, share }) => share ? '' : to > from ? seconds((to - from) / 1000) : '';

/** The hours over the lanes, as many as there is room for. */
function Axis({ from, to }) {
  const hours = Math.round((to - from) / HOUR_MS), step = [1, 2, 3, 4, 6].find(each =>
    hours / each <= 8) ?? 6;
  const ticks = Array.from({ length: Math.ceil(hours / step) }, (_, each) =>
    from + each * step * HOUR_MS);
  return html`<li class="lane-row axis" aria-hidden="true"><span></span><div class="ticks">
    ${ticks.map(each => html`<span key=${each}
      style=${{ insetInlineStart: `${(each - from) / (to - from) * 100}%` }}>${clock(each)}
    </span>`)}</div></li>`;
}

function Timeline({ lanes, begin }) {
  const all = lanes.flatMap(each => each.bars);
  // What began on an earlier day is drawn from the begin of this one.
  const first = Math.floor(Math.min(...all.map(each => each.from)) / HOUR_MS) * HOUR_MS;
  const from = Math.max(first, begin);
  const last = Math.max(...all.map(each => each.to), from + 2 * HOUR_MS);
  const to = Math.ceil(last / HOUR_MS) * HOUR_MS;
  return html`<ul class="lanes" aria-label="Timeline"><${Axis} from=${from} to=${to} />
    ${Object.entries(KINDS).map(([kind, title]) => {
      const some = lanes.filter(each => each.kind === kind);
      return some.length > 0 && html`<li key=${kind}><h2>${title}</h2><ul>${some.map(lane =>
        html`<${LaneRow} key=${lane.key} lane=${lane} from=${from} to=${to} />`)}</ul></li>`;
    })}</ul>`;
}

function List({ lanes }) {
  const [most, setMost] = useState(LISTED);
  const all = lanes.flatMap(lane => lane.bars.map(bar => ({ ...bar, lane })))
    .sort((a, b) => b.from - a.from);
  return html`<${Section} title="As a list" count=${all.length}><div class="table-box" tabindex="0"
    role="region" aria-label="What ran, as a list"><table class="list"><thead><tr><th>Began</th>
    <th class="num">For</th><th>Where</th><th>What</th></tr></thead><tbody>
    ${all.slice(0, most).map(bar => html`<tr key=${bar.key}>
      <td><time title=${whole(bar.from)}>${clocked(bar.from)}</time></td>
      <td class="num">${lasted(bar)}</td><td class="lane-cell"><bdi>${bar.lane.name}</bdi></td>
      <td class="wide"><${Link} class="link cut" to=${bar.where} title=${bar.text}>
        <bdi>${bar.text || bar.what}</bdi><//><span class="note cut">${bar.what}</span></td></tr>`)}
    </tbody></table></div>
    ${all.length > most && html`<${Button} onClick=${() => setMost(most + 4 * LISTED)}>
      Show more<//>`}
    <//>`;
}

export function Day({ params }) {
  const today = dayText(new Date(now.value)), given = params.get('day') ?? '';
  const day = /^\d{4}-\d\d-\d\d$/.test(given) ? given : today, isToday = day === today;
  const { finds, hours, isBusy, isCut, why } = useDay(day, isToday);
  const show = text => go(text >= today ? 'day' : `day${query({ day: text })}`);
  const step = by => show(dayText(beginOf(day, by)));
  const others = isToday ? running(now.value) : [];
  const lanes = lanesOf(finds, hours, others.filter(each => each.bar.from <= each.bar.to));
  return html`<${Head} title="Day" note=${NAMED.format(beginOf(day))}>
      <${Button} small icon="left" label="The day before" onClick=${() => step(-1)} />
      <input class="input day-input" type="date" aria-label="Day" value=${day} max=${today}
        onChange=${event => event.target.value && show(event.target.value)} />
      <${Button} small icon="right" label="The next day" disabled=${isToday}
        onClick=${() => step(1)} /><//>
    <div class="page narrow">${why && html`<p role="alert" class="why">${why}</p>`}
    ${isBusy && !finds.length ? html`<p class="wait" role="status">Reading…</p>`
    : !lanes.length ? html`<${Empty} title="Nothing ran on this day." />`
      : html`<${Timeline} lanes=${lanes} begin=${beginOf(day).getTime()} />
        ${isCut && html`<p class="note">These are the last ${finds.length} of the day. History has
          ${' '}<${Link} class="link"
          to=${`history${query({ since: day, until: day })}`}>all<//>.</p>`}
        <p class="note legend-line"><${State} of="done" quiet /> ended well <${State} of="failed"
          quiet /> failed <${State} of="asks" quiet /> waited for an answer <${State} of="works"
          quiet /> runs; the height of an agent’s bar is the part of the hour in which it worked</p>
        <${List} lanes=${lanes} />`}</div>`;
}
