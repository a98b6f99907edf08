// Cost, tokens, turns and time of the agents, by hour, day and agent.
import { html, useEffect, useState } from '../lib.js';
import { agents, call, connection, queues } from '../store.js';
import { Choice, Empty, Head, Link, Section, Time, money, usePhone } from '../ui.js';
import { clock, now as theirs } from '../time.js';
import { Bars, Legend, MOST_SERIES } from './chart.js';

const HOUR_MS = 3600e3, DAY_MS = 24 * HOUR_MS, READ_AGAIN_MS = 60e3;
const RANGES = [['24', '24 hours'], ['7', '7 days'], ['30', '30 days']];
const MEASURES = [['cost', 'Cost'], ['tokens', 'Tokens'], ['turns', 'Turns'], ['time', 'Time']];
const BIG = new Intl.NumberFormat('en-GB', { notation: 'compact', maximumFractionDigits: 1 });
const DAY = new Intl.DateTimeFormat('en-GB', { weekday: 'short', day: 'numeric', month: 'short' });

const worked = amount => amount < 60 ? `${Math.round(amount)} s`
  : amount < 5400 ? `${Math.round(amount / 60)} min` : `${(amount / 3600).toFixed(1)} h`;
const SAYS = { cost: money, tokens: value => BIG.format(value), turns: String, time: worked };
const VALUE = {
  cost: usage => usage.cost_usd ?? 0,
  tokens: usage => (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0),
  turns: usage => usage.turns,
  time: usage => usage.turns_s,
};

const dayKey = date => [date.getFullYear(), date.getMonth() + 1, date.getDate()]
  .map(each => String(each).padStart(2, '0')).join('-');

/** Return the hours or days of a range, the last of them now, each with its key and its words. */
function spansOf(range, now) {
  if (range === '24') {
    const last = Math.floor(now / HOUR_MS) * HOUR_MS;
    return Array.from({ length: 24 }, (_, at) => {
      const begin = new Date(last - (23 - at) * HOUR_MS);
      const label = clock(begin.getTime()), tick = begin.getHours() % 6 ? '' : label;
      return { key: String(begin.getTime()), label, tick };
    });
  }
  const count = Number(range);
  return Array.from({ length: count }, (_, at) => {
    const begin = new Date(now);
    begin.setDate(begin.getDate() - (count - 1 - at));
    const isTick = count === 7 || (count - 1 - at) % 7 === 0;
    return { key: dayKey(begin), label: DAY.format(begin), tick: isTick ? DAY.format(begin) : '' };
  });
}

/** Return the plot's series and bars: the agents that used most by name, the others together. */
export function stacked(result, spans, value, isByHour) {
  const byAgent = new Map();
  for (const { handle, usage } of result) {
    byAgent.set(handle, (byAgent.get(handle) ?? 0) + value(usage));
  }
  const order = [...byAgent].filter(each => each[1] > 0).sort((a, b) => b[1] - a[1]);
  const names = order.slice(0, MOST_SERIES).map(([name]) => name);
  const all = order.length > MOST_SERIES ? [...names, 'others'] : names;
  const bars = new Map(spans.map(each => [each.key, { ...each, parts: all.map(() => 0) }]));
  for (const { begin, handle, usage } of result) {
    const key = isByHour ? String(new Date(begin).getTime()) : begin.slice(0, 10);
    const at = names.indexOf(handle);
    const bar = bars.get(key), amount = value(usage);
    if (bar && amount) bar.parts[at < 0 ? names.length : at] += amount;
  }
  return { names: all, spans: [...bars.values()] };
}

/** Read the usage of a range again each minute. */
function useUsage(range) {
  const [usage, setUsage] = useState(null), { state } = connection.value;
  useEffect(() => {
    if (state !== 'up') return undefined;
    let isOver = false;
    const read = async () => {
      const now = theirs.peek(), isByHour = range === '24';
      const since = new Date(isByHour ? Math.floor(now / HOUR_MS) * HOUR_MS - 23 * HOUR_MS
        : new Date(now - (Number(range) - 1) * DAY_MS).setHours(0, 0, 0, 0)).toISOString();
      try {
        const [over, each] = await Promise.all([
          call('agent_usage_over_time',
            { by: isByHour ? 'hour' : 'day', split: true, since, limit: 5000 }),
          call('agent_usage_over_time', { by: 'agent', since, limit: 5000 }),
        ]);
        const { result: byAgent, total } = each;
        if (!isOver) setUsage({ range, now, over: over.result, agents: byAgent, total });
      } catch (error) {
        if (!isOver) setUsage(known => ({ ...known, why: error.message }));
      }
    };
    read();
    const timer = setInterval(read, READ_AGAIN_MS);
    return () => { isOver = true; clearInterval(timer); };
  }, [range, state]);
  return usage;
}

const amount = value => value === null || value === undefined ? '–' : BIG.format(value);
const cost = value => value === null || value === undefined ? '–' : money(value);

const AgentTable = ({ spans }) => html`<div class="table-box" tabindex="0" role="region"
  aria-label="Usage of each agent"><table class="list"><thead><tr><th>Agent</th>
  <th class="num">Cost</th><th class="num">Turns</th><th class="num">Time</th><th
    class="num">Read</th>
  <th class="num">of it cached</th><th class="num">Written</th></tr></thead>
  <tbody>${spans.map(({ handle, usage }) => html`<tr key=${handle}>
    <td><${Link} to=${`a/${handle}`} class="link"><bdi>${handle}</bdi><//></td>
    <td class="num">${cost(usage.cost_usd)}</td><td class="num">${usage.turns}</td>
    <td class="num">${worked(usage.turns_s)}</td><td class="num">${amount(usage.input_tokens)}</td>
    <td class="num">${usage.cached_percent === null ? '–'
      : `${Math.round(usage.cached_percent)} %`}</td>
    <td class="num">${amount(usage.output_tokens)}</td></tr>`)}</tbody></table></div>`;

const SpanTable = ({ plot, says, first }) => html`<details class="as-table">
  <summary>As a table</summary><div class="table-box" tabindex="0" role="region"
  aria-label="The plot as a table"><table class="list"><thead><tr><th>${first}</th>
    ${plot.names.map(name => html`<th class="num" key=${name}>${name}</th>`)}
    <th class="num">Together</th></tr></thead>
  <tbody>${plot.spans.filter(each => each.parts.some(Boolean)).map(each => html`<tr key=${each.key}>
    <td>${each.label}</td>
    ${each.parts.map((part, at) => html`<td class="num" key=${at}>${part ? says(part) : ''}</td>`)}
    <td class="num">${says(each.parts.reduce((sum, one) => sum + one, 0))}</td></tr>`)}
  </tbody></table></div></details>`;

/** The usage limits of providers, and the budgets that a person gave. */
function Limits() {
  const limited = [
    ...[...agents.value.values()].filter(each => each.limited_until)
      .map(each => ({ where: `a/${each.handle}`, name: each.handle, until: each.limited_until })),
    ...[...queues.value.values()].filter(each => each.limited_until)
      .map(each => ({ where: `q/${each.queue}`, name: each.queue, until: each.limited_until })),
  ];
  const budgets = [...agents.value.values()].filter(each => each.budget_usd);
  if (!limited.length && !budgets.length) return null;
  return html`<${Section} title="Limits and budgets"><ul class="rows">
    ${limited.map(each => html`<li class="row" key=${each.where}><${Link} class="row-link"
      to=${each.where}><bdi class="name">${each.name}</bdi>
      <span class="cut">Usage limit, continues at</span><//>
      <${Time} at=${each.until} isClock /></li>`)}
    ${budgets.map(each => {
      const spent = each.usage?.cost_usd ?? 0;
      return html`<li class="row" key=${each.id}><${Link} class="row-link" to=${`a/${each.handle}`}>
        <bdi class="name">${each.handle}</bdi><//>
        <meter min="0" max=${each.budget_usd} high=${each.budget_usd * 0.8} value=${spent}
          aria-label=${`Spent by ${each.handle}`}></meter>
        <span class="num">${money(spent)} of ${money(each.budget_usd)}</span></li>`;
    })}</ul><//>`;
}

export function Cost() {
  const [range, setRange] = useState('24'), [measure, setMeasure] = useState('cost');
  const isPhone = usePhone(), usage = useUsage(range), isByHour = range === '24';
  const isKnown = usage?.range === range && usage.over, says = SAYS[measure];
  const plot = isKnown && stacked(usage.over, spansOf(range, usage.now), VALUE[measure], isByHour);
  const [, rangeWords] = RANGES.find(([id]) => id === range);
  const [, words] = MEASURES.find(([id]) => id === measure);
  const sum = isKnown ? says(VALUE[measure](usage.total)) : '';
  return html`<${Head} title="Cost" note=${sum && `${sum} in ${rangeWords}`} />
    <div class="page narrow"><div class="filters">
      <${Choice} label="Measure" of=${MEASURES} value=${measure} onChange=${setMeasure} />
      <${Choice} label="Range" of=${RANGES} value=${range} onChange=${setRange} /></div>
    ${usage?.why && html`<p role="alert" class="why">${usage.why}</p>`}
    ${!isKnown ? html`<p class="wait">Reading…</p>` : !usage.agents.length
      ? html`<${Empty} title=${`No agent has worked in the last ${rangeWords}.`} />`
      : html`<${Section} title=${`${words}, last ${rangeWords}`}
        more=${html`<${Legend} names=${plot.names} />`}>
        <${Bars} spans=${plot.spans} names=${plot.names} says=${says} isSmall=${isPhone}
          height=${isPhone ? 120 : 180}
          label=${`${words} by ${isByHour ? 'hour' : 'day'}, last ${rangeWords}: ${sum} in all`} />
        <${SpanTable} plot=${plot} says=${says} first=${isByHour ? 'Hour' : 'Day'} /><//>
      <${Section} title="By agent"><${AgentTable} spans=${usage.agents} /><//>`}
    <${Limits} /></div>`;
}
