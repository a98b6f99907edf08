// The page of one agent: its conversation, what it asks, and the box to write to it.
import { html, useEffect, useMemo, useRef, useState } from '../lib.js';
import { at, beside, go } from '../place.js';
import { RequestList } from '../requests.js';
import { agentState } from '../state.js';
import { agentOf, agents, call, isReadOnly, openRequests } from '../store.js';
import { load } from '../text.js';
import { Button, Empty, Head, Link, Menu, Time, money, usePhone, useRead } from '../ui.js';
import { About } from './about.js';
import { PlanList } from './blocks.js';
import { Composer } from './composer.js';
import { saidOf } from './words.js';
import { actsOf, handBack } from './dialogs.js';
import { current } from './current.js';
import { Finder, Talk } from './talk.js';
import { transcriptOf } from './transcript.js';

function useTranscript(handle) {
  const transcript = useMemo(() => transcriptOf(handle), [handle]);
  useEffect(() => { load(); transcript.open(); return () => transcript.close(); }, [transcript]);
  return transcript;
}

/** The turns that are shown, for a choice of one. */
const turnsOf = fold => fold.blocks.filter(each => each.kind === 'mail' && each.turn)
  .map(({ turn, text }) => ({ turn, text }));

/** What to do next when an agent cannot continue by itself. */
function Remedy({ agent }) {
  const { handle, state, blocked } = agent;
  if (state === 'error') {
    return html`<div class="notice bad" role="alert"><span dir="auto">${agent.reason
      || 'Its program failed.'}</span>
      <${Button} small tone="main"
        onClick=${() => call('agent_restart', { handle })}>Restart<//></div>`;
  }
  if (state === 'limited') {
    return html`<div class="notice" role="status"><span>It met a usage limit and continues by
      itself${agent.limited_until
      ? html` <${Time} at=${agent.limited_until} />` : ''}.</span></div>`;
  }
  if (blocked?.kind === 'limit') {
    return html`<div class="notice" role="alert"><span dir="auto">${blocked.title}</span>
      <${Button} small onClick=${() => actsOf(agent).find(each =>
        each.text === 'Budget…').act()}>Budget…<//></div>`;
  }
  return null;
}

/** The plan as it is now, in one line that opens. */
function PlanDock({ plan }) {
  const [isOpen, setOpen] = useState(false), done = plan.filter(each =>
    each.status === 'completed').length;
  const now = plan.find(each => each.status === 'in_progress') ?? plan.find(each =>
    each.status === 'pending');
  if (!plan.length || !now) return null;
  return html`<details class="plan-dock" open=${isOpen}
    onToggle=${event => setOpen(event.target.open)}>
    <summary><span class="note">Plan ${done} of ${plan.length}</span><span class="cut"
      dir="auto">${now.text}</span></summary>
    <${PlanList} steps=${plan} /></details>`;
}

/** A program that is its terminal has no transcript: its terminal is shown. */
const OfProgram = ({ agent }) => html`<div class="calm program"><p>It is a program in a
  terminal: <${Link}
  class="link" to=${at('t', agent.program.terminal)}>${agent.program.terminal}<//>.
  ${agent.program.title && html` It works on “${agent.program.title}”.`}</p><p>
  <${Button} tone="main" onClick=${() => go(at('t', agent.program.terminal))}>Open its
    terminal<//> <${Button} icon="split"
    onClick=${() => beside(at('t', agent.program.terminal))}>Beside<//></p></div>`;

const usageOf = ({ usage, model }) => !usage ? model : [usage.context_percent !== null
  && `${Math.round(usage.context_percent)} % full`, money(usage.cost_usd)].filter(Boolean)
    .join(' · ');

export function AgentPage({ id, params, onClose }) {
  const known = useRef(null), isView = isReadOnly.value, transcript = useTranscript(id);
  const live = agentOf(id) ?? agents.value.get(known.current); // others may rename it
  const [details, error] = useRead(async () => isView ? null : call('agent_show', { handle: id }),
    [id, live?.state, live?.model, live?.effort, live?.turn]);
  known.current = live?.id ?? details?.id ?? null;
  const agent = live ?? agents.value.get(details?.id) ?? details, isPhone = usePhone();
  const [isAbout, setAbout] = useState(false), [isFinding, setFinding] = useState(false);
  const wanted = params?.get('seq');
  const [seek, setSeek] = useState(wanted ? { seq: +wanted } : null);
  useEffect(() => { if (wanted) setSeek({ seq: +wanted }); }, [wanted]);
  useEffect(() => { if (live) transcript.follow(); }, [transcript, Boolean(live)]); // resumed
  const version = transcript.version.value, problem = transcript.ended.value;
  useEffect(() => current.show(id, agent, () => turnsOf(transcript.fold), {
    find: () => setFinding(true), about: () => setAbout(true) }));

  if (isView) {
    return html`<${Head} title=${id} note=${problem} /><div class="agent"><${Talk}
      transcript=${transcript}
      handle=${id} seek=${seek} /></div>`;
  }
  if (!agent) {
    if (!error) return html`<${Head} title=${id} /><p class="wait">A moment…</p>`;
    return html`<${Head} title=${id} /><${Empty} title=${error.message}><${Link} class="btn"
      to="agents">All agents<//><//>`;
  }
  const state = agentState(agent), waiting = openRequests.value.filter(each =>
    each.handle === agent.handle);
  const note = html`${isPhone ? state.word : saidOf(state)} · <${Time} at=${state.since} />`;
  const onKey = event => {
    if ((event.ctrlKey || event.metaKey) && event.key === 'f' && !event.shiftKey) {
      event.preventDefault();
      setFinding(true);
    }
  };
  return html`<${Head} state=${state.kind} title=${agent.handle} note=${note}>
      ${!isPhone && html`<span class="note num">${usageOf(agent)}</span>`}
      ${agent.taken_over && html`<${Button} small onClick=${() => handBack(agent.handle)}>Hand
        back<//>`}
      ${!agent.program && html`<${Button} small tone="ghost" icon="find"
        label="Find in the conversation"
        aria-pressed=${isFinding} onClick=${() => setFinding(!isFinding)} />`}
      ${!isPhone && !agent.program && html`<${Button} small tone="ghost" icon="edit"
        label="Show the changes"
        onClick=${() => go(at('changes', agent.handle))} />`}
      <${Button} small tone="ghost" icon="info" label=${`About ${agent.handle}`}
        aria-pressed=${isAbout}
        onClick=${() => setAbout(!isAbout)} />
      <${Menu} small label=${`What to do with ${agent.handle}`}
        items=${actsOf(agent, () => turnsOf(transcript.fold))} />
      ${onClose && html`<${Button} small tone="ghost" icon="close" label="Close the pane"
        onClick=${onClose} />`}<//>
    <div class="agent" onKeyDown=${onKey}>
      <div class="agent-main">${isFinding && html`<${Finder} transcript=${transcript}
        onSeek=${setSeek}
          onClose=${() => setFinding(false)} />`}
        ${agent.program ? html`<${OfProgram} agent=${agent} />` : html`<${Talk} ...${{ transcript,
          seek }}
          handle=${agent.handle}>${problem && html`<p class="remark bad">${problem}</p>`}
          ${state.kind === 'works' && !agent.taken_over && !agent.tools?.length && html`<p
            class="doing" role="status">
            ${state.why || state.word}</p>`}<//>`}
        <div class="dock"><${PlanDock} plan=${state.kind === 'ended' ? [] : agent.plan ?? []} />
          <${Remedy} agent=${agent} />
          ${waiting.length > 0 && html`<section class="docked" aria-label="Waits for your answer">
            <${RequestList} list=${waiting} isHere /></section>`}
          <${Composer} key=${agent.id} ...${{ agent, details, version }} fold=${transcript.fold}
            onSent=${() => transcript.end()} /></div></div>
      ${isAbout && html`<${About} agent=${agent} details=${details} onClose=${() => setAbout(false)}
        />`}</div>`;
}
