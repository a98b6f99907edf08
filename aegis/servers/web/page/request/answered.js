// The history of requests: who answered what, and when.
import { html, useEffect, useRef, useState } from '../lib.js';
import { call, requests } from '../store.js';
import { Button, Choice, Empty, Head, Icon, Link, Time } from '../ui.js';
import { Line } from '../requests.js';
import { Exact } from './exact.js';
import { asker, brief, outcome, placeOf, sentence } from './model.js';

const STEP = 50, MOST = 500;
const ENDED = [['all', 'All'], ['answered', 'Answered'], ['withdrawn', 'Withdrawn']];

function Ended({ request, isWanted }) {
  const [isOpen, setOpen] = useState(false), box = useRef(null);
  useEffect(() => {
    if (!isWanted) return;
    setOpen(true);
    box.current.scrollIntoView({ block: 'center' });
  }, [isWanted]);
  const at = request.answered ?? request.created;
  const { answer } = request, said = answer?.message || answer?.plan
    || (answer?.answers && Object.values(answer.answers).flat().join(', '))
    || (answer?.content && JSON.stringify(answer.content)) || request.withdrawn || '';
  return html`<li ref=${box} class=${`ask ${isOpen ? 'open' : ''}`}><div class="ask-line"><button
    type="button"
    class="ask-open" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}><${Icon}
      of="right" />
    <span class="who"><bdi class="name">${asker(request)}</bdi></span><span class="what"><${Line}
    request=${request} /></span></button><span class="ended-how ${request.state}">
    ${outcome(request)}</span><${Time} at=${at} /></div>
    ${isOpen && html`<div class="ask-body"><p><bdi>${asker(request)}</bdi> ${sentence(request)}.
      ${outcome(request)}${request.by && html` by <bdi>${request.by}</bdi>`}, <${Time} at=${at}
      isClock />.</p>${said && html`<p dir="auto"><${Exact}>${said}<//></p>`}
      ${request.reason && html`<p class="quiet" dir="auto">${request.reason}</p>`}
      <pre class="exact" tabindex="0" role="region" aria-label="The input"><${Exact}>${request.input
        ? request.input.command ?? request.input.plan ?? JSON.stringify(request.input, null, 1)
        : request.excerpt}<//></pre><p><${Link} to=${placeOf(request)}>Open <bdi>${asker(request)}
      </bdi><//></p></div>`}</li>`;
}

/** The page of answered requests: who answered what, and when. */
export function Answered({ params }) {
  const [list, setList] = useState(null), [hasMore, setMore] = useState(false);
  const [limit, setLimit] = useState(STEP), [kind, setKind] = useState('all');
  const [problem, setProblem] = useState(''), handle = params?.get('of');
  const [text, setText] = useState('');
  const open = requests.value.size, one = params?.get('id');
  useEffect(() => {
    let isOver = false;
    call('request_list', { state: 'closed', limit, ...handle && { handle } }).then(found => {
      if (isOver) return;
      setList(found.requests.toReversed()); setMore(found.more); setProblem('');
    }, error => { if (!isOver) setProblem(error.message); });
    return () => { isOver = true; };
  }, [limit, open, handle]);
  // A find of the history may be older than the first ones.
  const isFound = !one || list?.some(each => each.id === one);
  useEffect(() => {
    if (list && !isFound && hasMore && limit < MOST) setLimit(Math.min(MOST, limit * 2));
  }, [list, one]);
  const wanted = text.trim().toLowerCase(), shown = (list ?? [])
    .filter(each => kind === 'all' || each.state === kind)
    .filter(each => !wanted || `${asker(each)} ${brief(each)} ${each.by} ${outcome(each)}`
      .toLowerCase().includes(wanted));
  return html`<${Head} title="Answered requests" note=${handle ?? ''} />
    <div class="page narrow"><div class="filters"><${Choice} label="How they ended" of=${ENDED}
      value=${kind} onChange=${setKind} /><input class="input find" type="search" value=${text}
      aria-label="Find an answered request" placeholder="Find"
      onInput=${event => setText(event.target.value)} /></div>
    ${problem && html`<p class="bad-text" role="alert">${problem}</p>`}
    ${list && !shown.length && html`<${Empty} title="No request was answered yet." />`}
    ${shown.length > 0 && html`<ul class="asks" aria-label="Answered requests">${shown.map(each =>
      html`<${Ended} key=${each.id} request=${each} isWanted=${each.id === one} />`)}</ul>`}
    ${hasMore && limit < MOST && html`<${Button} tone="ghost all"
      onClick=${() => setLimit(Math.min(MOST, limit * 2))}>Show older<//>`}
    ${hasMore && limit >= MOST && html`<p class="note">Older ones are found in <${Link} to="history"
      >the history<//>.</p>`}</div>`;
}
