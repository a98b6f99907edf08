// Search over everything that ever ran or was said, with filters, in pages.
import { html, useEffect, useMemo, useRef, useState } from '../lib.js';
import { beside, go, query, restate } from '../place.js';
import { agents, connection, queues, terminals } from '../store.js';
import { Button, Empty, Head, Link, Select, State, Time } from '../ui.js';
import { ended, KIND, KINDS, outcomeOf, Search, whereOf } from './find.js';

const PAGE = 50, SETTLE_MS = 300;
const FILTERS = ['word', 'kind', 'name', 'since', 'until'];

/** The words of a text with the searched one marked. */
export function Marked({ text, word }) {
  const at = word ? text.toLowerCase().indexOf(word.toLowerCase()) : -1;
  if (at < 0) return text;
  const end = at + word.length;
  return html`${text.slice(0, at)}<mark>${text.slice(at, end)}</mark>${text.slice(end)}`;
}

/** Arrows move in a list of links, which is one stop of Tab; Ctrl opens beside. */
const listKeys = event => {
  const links = [...event.currentTarget.querySelectorAll('a')], at = links.indexOf(event.target);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: links.length - 1 }[event.key];
  if (to === undefined || at < 0 || !links[to]) return;
  event.preventDefault();
  for (const each of links) each.tabIndex = each === links[to] ? 0 : -1;
  links[to].focus();
};
const opened = where => event => {
  if (!event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  beside(where);
};

export const Found = ({ find, word, isFirst }) => html`<li class="row tall"><${Link}
  class="row-link" to=${whereOf(find)} tabindex=${isFirst ? 0 : -1}
  onClick=${opened(whereOf(find))}>
  ${outcomeOf(find) ? html`<${State} of=${outcomeOf(find)} quiet />`
    : html`<span class="nub"></span>`}
  <span class="two-lines"><bdi class="cut found-text" title=${find.text}>
    <${Marked} text=${find.text} word=${word} /></bdi>
    <span class="cut quiet">${KIND[find.kind]} · <bdi>${find.name}</bdi>
    ${find.by && find.by !== find.name && html` · <bdi>${find.by}</bdi>`} · ${ended(find)}</span>
  </span><//>
  <${Time} at=${find.at} /></li>`;

/** Return a day's begin or end as the daemon takes it. A day without a time is the browser's. */
const moment = (day, isEnd) => {
  const date = new Date(`${day}T${isEnd ? '23:59:59.999' : '00:00:00'}`);
  return Number.isNaN(date.getTime()) ? '' : date.toISOString();
};

const NOTHING = { finds: [], isOver: false, problems: /** @type {string[]} */ ([]) };

/** The finds of a search so far, whether there are more, and a function that reads on. */
function useSearch(asked) {
  const [state, setState] = useState({ ...NOTHING, isBusy: true, why: '' });
  const key = JSON.stringify(asked), { state: link } = connection.value, current = useRef(null);
  const read = async (search, before) => {
    setState({ ...before, isBusy: true, why: '' });
    try {
      const finds = [...before.finds, ...await search.next(PAGE)];
      if (current.current !== search) return;
      const { isOver, problems } = search;
      setState({ finds, isBusy: false, isOver, why: '', problems: [...problems] });
    } catch (error) {
      if (current.current === search) setState({ ...before, isBusy: false, why: error.message });
    }
  };
  useEffect(() => {
    if (link !== 'up') return undefined;
    // What is shown is of the search before: none of it can be continued.
    current.current = null;
    setState(before => ({ ...before, isBusy: true }));
    const { since, until, ...rest } = asked;
    const search = current.current = new Search({ ...rest, since: since && moment(since, false),
      until: until && moment(until, true) });
    const timer = setTimeout(() => read(search, NOTHING), SETTLE_MS);
    return () => { clearTimeout(timer); current.current = null; };
  }, [key, link]);
  return { ...state, more: () => read(current.current, state) };
}

/** Write the filters into the address, so that a reload and a link show the same. */
function remember(asked) {
  const given = Object.fromEntries(Object.entries(asked).filter(each => each[1]));
  restate(`history${Object.keys(given).length ? query(given) : ''}`);
}

export function History({ params }) {
  const given = Object.fromEntries(FILTERS.map(each => [each, params.get(each) ?? '']));
  const [asked, setAsked] = useState(given);
  const change = part => { const next = { ...asked, ...part }; setAsked(next); remember(next); };
  const key = JSON.stringify(given);
  useEffect(() => { setAsked(given); }, [key]); // a link of the palette while the page is open
  const names = useMemo(() => [...new Set([...terminals.value.keys(), ...queues.value.keys(),
    ...[...agents.value.values()].map(each => each.handle)])].sort(), []);
  const found = useSearch(asked), isFiltered = FILTERS.some(each => asked[each]);
  const input = (name, label, more) => html`<label class="filter">
    <span class="label">${label}</span>
    <input class="input" name=${name} value=${asked[name]} ...${more}
      onInput=${event => change({ [name]: event.target.value })} /></label>`;
  return html`<${Head} title="History" note="Everything that ever ran or was said here">
      <${Button} small onClick=${() => go('day')}>Timeline<//><//>
    <div class="page narrow"><form class="filters find-filters" role="search"
      onSubmit=${event => event.preventDefault()}>
      ${input('word', 'Word', { type: 'search', placeholder: 'In any case', maxlength: 200 })}
      <label class="filter"><span class="label">Kind</span><${Select} label="Kind" of=${KINDS}
        value=${asked.kind} onChange=${kind => change({ kind })} /></label>
      ${input('name', 'Of', { list: 'history-names', placeholder: 'Terminal, agent, queue' })}
      <datalist id="history-names">${names.map(each => html`<option key=${each} value=${each} />`)}
      </datalist>
      ${input('since', 'From', { type: 'date' })}${input('until', 'To', { type: 'date' })}
      ${isFiltered && html`<${Button} small tone="ghost" onClick=${() =>
        change(Object.fromEntries(FILTERS.map(each => [each, ''])))}>Clear<//>`}</form>
    ${found.why && html`<p role="alert" class="why">${found.why}</p>`}
    ${found.problems.map(each => html`<p class="warn-text" key=${each}>Left out: ${each}</p>`)}
    ${found.finds.length > 0 && html`<ul class="rows" aria-label="Found"
      onKeyDown=${listKeys}>${found.finds.map((find, at) =>
      html`<${Found} key=${`${find.kind} ${find.name} ${find.id} ${find.at}`} find=${find}
        word=${asked.word} isFirst=${at === 0} />`)}</ul>`}
    ${!found.finds.length && !found.isBusy && !found.why && html`<${Empty} title=${isFiltered
      ? 'Nothing fits.' : 'Nothing has ended here yet.'} />`}
    <p role="status" class="quiet pad">${found.isBusy ? 'Searching…' : found.isOver
      ? found.finds.length > 0 && `${found.finds.length} found, these are all` : ''}</p>
    ${!found.isOver && !found.isBusy && html`<${Button} onClick=${found.more}>Show more<//>`}
    </div>`;
}
