// All agents: the open ones by state, and the closed ones, which can be resumed.
import { html, useState } from '../lib.js';
import { open } from '../overlay.js';
import { at } from '../place.js';
import { agentState } from '../state.js';
import { agents, loaded } from '../store.js';
import { Button, Choice, Empty, Head, Link, Menu, State, Time, count, money,
  useStill } from '../ui.js';
import { closed, useClosed } from './closed.js';
import { Conversations } from './conversations.js';
import { actsOf, resume } from './dialogs.js';
import { saidOf } from './words.js';
import { Launch } from './launch.js';

const SHOWS = [['open', 'Open'], ['waits', 'Waiting'], ['works', 'Working'], ['closed', 'Closed']];
const RANK = { asks: 0, failed: 1, stalled: 2, limit: 3, works: 4, idle: 5, ended: 6 };
const MOST = 200;

function Row({ agent, state, gone }) {
  const { usage, handle } = agent, isClosed = agent.state === 'closed';
  const facts = [agent.model, usage?.context_percent != null
    && `${Math.round(usage.context_percent)} % full`,
    usage && money(usage.cost_usd)].filter(Boolean).join(' · ');
  return html`<li class="row tall ${gone ? 'gone' : ''}"><${Link} class="row-link" to=${at('a',
    handle)}>
      <${State} of=${state.kind} /><bdi class="name who" title=${handle}>${handle}</bdi>
      <span class="cut" dir="auto" title=${state.why || state.word}>${saidOf(state)}</span>
      <span class="note cut facts-of">${facts}</span><${Time} at=${state.since} /><//>
    ${isClosed ? html`<${Button} small label=${`Resume ${handle}`}
      onClick=${() => resume(handle)}>Resume<//>`
    : html`<${Menu} small label=${`What to do with ${handle}`} items=${actsOf(agent)} />`}</li>`;
}

export function Agents({ params }) {
  const [show, setShow] = useState(params.get('show') ?? 'open'), [word, setWord] = useState('');
  const gone = useClosed(), wanted = word.trim().toLowerCase();
  const of = { open: () => true, waits: kind => ['asks', 'failed', 'stalled',
    'limit'].includes(kind),
    works: kind => kind === 'works' };
  const all = (show === 'closed' ? gone : [...agents.value.values()])
    .map(agent => ({ agent, state: agentState(agent) }));
  const found = all.filter(({ agent, state }) => (of[show]?.(state.kind) ?? true)
    && [agent.handle, agent.profile, agent.model, agent.cwd, state.why].join(' ').toLowerCase()
      .includes(wanted))
    .sort((a, b) => show === 'closed' ? (a.state.since < b.state.since ? 1 : -1)
      : RANK[a.state.kind] - RANK[b.state.kind] || (a.agent.handle < b.agent.handle ? -1
        : 1)).slice(0, MOST);
  const [rows, still] = useStill(found, each => each.agent.id);
  const counts = { open: agents.value.size, closed: closed.all.value ? gone.length : undefined };
  const isEmpty = loaded.value.has('agents') && !found.length;
  return html`<${Head} title="Agents" note=${`${count(agents.value.size)} open`}>
      <${Button} small tone="ghost" icon="history" label="Continue a conversation"
        onClick=${() => open(Conversations)} />
      <${Button} small tone="main" icon="plus" onClick=${() => open(Launch)}>Launch<//><//>
    <div class="page"><div class="agent-filters"><${Choice} label="Which agents" of=${SHOWS}
      value=${show} counts=${counts}
        onChange=${setShow} /><input class="input" type="search" aria-label="Find an agent"
          placeholder="Find"
        value=${word} onInput=${event => setWord(event.target.value)} /></div>
    ${isEmpty ? html`<${Empty} title=${wanted ? 'No agent is found by this.' : show === 'closed'
      ? 'No agent was closed yet.'
      : show === 'open' ? 'No agent is open.' : 'None.'}>${show === 'open' && !wanted
        && html`<${Button} tone="main"
        onClick=${() => open(Launch)}>Launch an agent<//>`}<//>`
    : html`<ul class="rows" aria-label="Agents" ...${still}>${rows.map(each => html`<${Row}
      key=${each.agent.id} ...${each} />`)}</ul>`}</div>`;
}
