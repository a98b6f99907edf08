// Everything that ever ran in a terminal, as text: read backwards, and searched as a whole.
import { html, useEffect, useLayoutEffect, useRef, useState } from '../lib.js';
import { call, isReadOnly } from '../store.js';
import { Button, Empty, Following, State, Time, bytes, seconds } from '../ui.js';
import { copyOutput, runAgain } from './commands.js';
import { patternOf } from './find.js';
import { openPlace, placesIn } from './links.js';
import { endOf, isFailed, isOpen, plural, textOf } from './records.js';

const PAGE = 30, NEAR = 6, MOST_LINES = 200, LINKED = 30000;

/**
 * @param {{session: any, query: import('./find.js').Query, seq: number | null, found: any,
 *   stepper: {current: any}, onClose: () => void}} props
 */
export function History({ session, query, seq, found, stepper, onClose }) {
  const { name, ledger } = session, box = useRef(null), following = useRef(null);
  following.current ??= new Following(seq === null);
  /** Records with output, the oldest first; `isAll`: none is before, `later`: some are behind;
   * `why`: what could not be read; `searched`: the pattern for which everything was read. */
  const [state, setState] = useState({
    records: [], isAll: false, isBusy: false, later: false, isPlaced: false, oldest: 0, why: '',
    searched: '',
  });
  const latest = useRef(state), top = useRef(null), reading = useRef(null);
  const put = change => {
    latest.current = { ...latest.current, ...change };
    setState(latest.current);
  };

  const read = () => reading.current ??= (async () => {
    const { records } = latest.current, first = records[0]?.seq;
    const before = first ?? (seq === null ? undefined : seq + NEAR);
    put({ isBusy: true, why: '' });
    try {
      const args = { name, last_n: PAGE, ...before === undefined ? {} : { before_seq: before } };
      const reply = await call('term_read', args);
      const isAll = reply.result.length === 0 || reply.result[0].seq === 0;
      top.current = box.current && box.current.scrollHeight - box.current.scrollTop;
      const newest = ledger.list.peek()[0]?.seq ?? -1, last = reply.result.at(-1)?.seq ?? -1;
      put({
        records: [...reply.result, ...latest.current.records], isAll,
        oldest: reply.oldest_kept ?? 0,
        ...records.length ? {} : { later: last < newest },
      });
    } catch (error) {
      // A terminal of which nothing is stored has no history.
      put(error.code === 'not_found' ? { isAll: true } : { why: error.message });
    } finally {
      reading.current = null; put({ isBusy: false });
    }
  })();
  const readLater = async () => {
    const last = latest.current.records.at(-1)?.seq ?? -1;
    const reply = await call('term_read', { name, since_seq: last });
    put({ records: [...latest.current.records, ...reply.result], later: Boolean(reply.more) });
  };

  useEffect(() => { read(); }, []);
  // What comes above must not move what is read.
  useLayoutEffect(() => {
    const { current } = box;
    if (!current) return;
    const target = seq !== null && !state.isPlaced && current.querySelector(`[data-seq="${seq}"]`);
    if (target) { target.scrollIntoView(); put({ isPlaced: true }); }
    else if (following.current.is && !pattern) following.current.go(current);
    else if (top.current !== null) current.scrollTop = current.scrollHeight - top.current;
    top.current = null;
  }, [state.records]);

  const pattern = patternOf(query), source = String(pattern);
  const [turn, setTurn] = useState(0);
  // A search reads on to the beginning, with the outputs that a record has no room for.
  useEffect(() => {
    if (!pattern) { found.value = null; return undefined; }
    let isOver = false;
    put({ why: '' });
    (async () => {
      while (!isOver && !latest.current.isAll && !latest.current.why) await read();
      if (latest.current.why) return;
      for (const each of latest.current.records) {
        if (isOver) return;
        if (each.truncated && !each.whole) {
          try { each.whole = (await ledger.output(each)).text; } catch (error) {
            put({ why: error.message });
            if (error.code === 'lost') return;
          }
          put({ records: [...latest.current.records] });
        }
      }
      if (!isOver && !latest.current.why) put({ searched: source });
    })();
    return () => { isOver = true; };
  }, [source, turn]);

  const hits = pattern ? state.records.map(each => [each, hitsIn(each, pattern)])
    .filter(([, each]) => each.total > 0) : null;
  const total = hits?.reduce((sum, [, each]) => sum + each.total, 0) ?? 0;
  const [at, setAt] = useState(-1);
  useEffect(() => setAt(-1), [source]);
  useEffect(() => {
    if (!pattern) return;
    const oldest = state.records.find(each => each.started_at)?.started_at;
    const where = hits.length ? `in ${plural(hits.length, 'command')}` : '';
    const reach = state.isAll ? 'so far' : `back to ${oldest?.slice(0, 10) ?? 'now'} so far`;
    const note = [where, state.searched !== source && reach].filter(Boolean).join(', ');
    found.value = { index: at, total, note };
  });
  stepper.current = by => {
    const all = [...box.current.querySelectorAll('.hit')];
    if (!all.length) return;
    const next = by === 0 ? all.length - 1 : (at < 0 ? (by > 0 ? 0 : all.length - 1)
      : (at + by + all.length) % all.length);
    for (const each of all) each.classList.toggle('on', each === all[next]);
    all[next].scrollIntoView({ block: 'center' });
    setAt(next);
  };
  const scroll = event => {
    const { currentTarget: it } = event;
    following.current.scrolled(it, 4);
    if (it.scrollTop < it.clientHeight && !state.isAll && !pattern) read();
  };
  const isNone = !state.records.length && state.isAll;
  return html`<section class="history" aria-label="History of ${name}" ref=${box} tabindex="0"
      onScroll=${scroll} onKeyDown=${event => event.key === 'Escape' && onClose()}>
    <div class="history-top">${state.why && html`<p class="why" role="alert"
        dir="auto">Not all could be read. ${state.why}</p>`}
      ${state.isBusy ? html`<span class="note">Reading…</span>`
      : !state.isAll || state.why ? html`<${Button} small
        onClick=${() => pattern ? setTurn(turn + 1) : read()}>${state.isAll ? 'Try again'
          : 'Earlier'}<//>`
        : !isNone && html`<span class="note">${state.oldest > 0
          ? 'What was before is no longer kept.' : 'The beginning.'}</span>`}</div>
    ${isNone && html`<${Empty} title="No command has ended here yet." />`}
    ${(hits ?? state.records.map(each => [each, null])).map(([record, each]) => html`<${Entry}
      key=${record.seq} ...${{ session, record }} hits=${each}
      replace=${() => put({ records: [...latest.current.records] })} />`)}
    ${pattern && !isNone && total === 0 && state.searched === source && html`<${Empty}
      title="Nothing in the whole history." />`}
    ${state.later && html`<div class="history-top"><${Button} small onClick=${readLater}>
      Later<//></div>`}</section>`;
}

/** One command with its output; with `hits` only the lines that are searched for. */
function Entry({ session, record, hits, replace }) {
  const end = endOf(record), text = record.whole ?? record.stdout;
  const readWhole = async () => {
    record.whole = (await session.ledger.output(record)).text;
    replace();
  };
  const kind = isOpen(record) ? 'works' : isFailed(record) ? 'failed' : 'done';
  return html`<article class="entry" data-seq=${record.seq}>
    <header><${State} of=${kind} />
      <code class="entry-cmd">${marked(textOf(record), hits?.pattern)}</code>
      <span class="note">${[end, seconds(record.duration_s)].filter(Boolean).join(' · ')} · <${Time}
        at=${record.started_at} isClock /></span>
      <${Button} small tone="ghost" icon="copy" label="Copy the output"
        onClick=${() => copyOutput(session, record)} />
      ${record.cmd && !isReadOnly.value && html`<${Button} small tone="ghost" icon="again"
        label="Run again" onClick=${() => runAgain(session, record)} />`}</header>
    ${hits ? hits.lines.length > 0 && html`<pre>${hits.lines.map(([number, line]) => html`<div
        class="found-line" key=${number}><span class="number">${number}</span><span>${
        marked(line, hits.pattern)}</span></div>`)}
        ${hits.more > 0 && html`<div class="note">${plural(hits.more, 'more line')}</div>`}</pre>`
    : text && html`<pre>${text.length < LINKED ? linked(text, record.cwd) : text}</pre>`}
    ${!hits && record.stderr && html`<pre class="stderr">${record.stderr}</pre>`}
    ${record.truncated && !record.whole && html`<${Button} small onClick=${readWhole}>
      Show the whole output (${bytes(record.output_bytes)})<//>`}</article>`;
}

function hitsIn(record, pattern) {
  const lines = [];
  let total = 0, more = 0, number = 0;
  const look = text => { pattern.lastIndex = 0; return pattern.test(text); };
  if (look(textOf(record))) total++;
  for (const line of `${record.whole ?? record.stdout}\n${record.stderr}`.split('\n')) {
    number++;
    if (!line || !look(line)) continue;
    total++;
    if (lines.length < MOST_LINES) lines.push([number, line]); else more++;
  }
  return { lines, total, more, pattern };
}

function marked(text, pattern) {
  if (!pattern) return text;
  const parts = [];
  let at = 0;
  pattern.lastIndex = 0; // as left behind by `test`
  for (const match of text.matchAll(pattern)) {
    if (!match[0]) break; // a pattern of nothing
    parts.push(text.slice(at, match.index), html`<mark class="hit">${match[0]}</mark>`);
    at = match.index + match[0].length;
  }
  return [...parts, text.slice(at)];
}

/** Text whose places in files, and addresses, are links. */
function linked(text, directory) {
  const parts = [];
  let from = 0;
  const places = text.split('\n').flatMap(line => {
    const start = from;
    from += line.length + 1;
    return placesIn(line).map(each => ({ ...each, at: start + each.at }));
  }).sort((a, b) => a.at - b.at);
  let at = 0;
  for (const each of places) {
    if (each.at < at) continue;
    const end = each.at + each.length;
    parts.push(text.slice(at, each.at), html`<button type="button" class="link"
      onClick=${() => openPlace(each, directory)}>${text.slice(each.at, end)}</button>`);
    at = end;
  }
  return [...parts, text.slice(at)];
}
