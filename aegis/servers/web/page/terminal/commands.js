// The commands of a terminal at its side, the newest first.
import { html, useEffect, useRef, useState } from '../lib.js';
import { say } from '../overlay.js';
import { isReadOnly, terminals } from '../store.js';
import { Exact } from '../text.js';
import { Button, Empty, State, Time, bytes, copy, seconds } from '../ui.js';
import { endOf, isFailed, isOpen, plural, textOf, wholeOf } from './records.js';
import { run } from './run.js';

const CHUNK = 25, LONGEST = 400;
const kindOf = record => isOpen(record) ? (record.needs_input ? 'asks' : 'works')
  : isFailed(record) ? 'failed' : 'done';

/** Run a command again: its text as it was. */
export async function runAgain(session, record) {
  const cmd = wholeOf(record) ?? wholeOf(await session.ledger.full(record.seq, false) ?? record);
  if (!cmd) throw new Error('Its whole text is not known, so it cannot be run again.');
  await run(session.name, cmd);
}

/** Copy the whole output of a command, however long it is. */
export async function copyOutput(session, record) {
  const { text, dropped } = await session.ledger.output(record);
  await copy(text, dropped
    ? `Copied, but ${bytes(dropped)} at the beginning are no longer kept.` : 'Copied.');
}

/**
 * @param {{session: any, jump: (record: object) => void, showHistory: (record: object) => void,
 *   onClose: (() => void) | null}} props
 */
export function Commands({ session, jump, showHistory, onClose }) {
  const { ledger, chosen } = session, box = useRef(null), chunks = useRef(new Map());
  const [word, setWord] = useState(''), [onlyFailed, setOnlyFailed] = useState(false);
  // A new command would push the others away from under the pointer: it is shown afterwards.
  const [held, setHeld] = useState(null);
  const all = ledger.list.value, missed = ledger.missed(), last = missed.at(-1)?.seq;
  const shown = all.filter(each => (held === null || each.seq <= held)
    && (!onlyFailed || isFailed(each)) && textOf(each).toLowerCase().includes(word.toLowerCase()));
  const later = held === null ? 0 : all.filter(each => each.seq > held).length;
  const chosenSeq = chosen.value;
  useEffect(() => {
    box.current?.querySelector(`[data-seq="${chosenSeq}"]`)?.scrollIntoView({ block: 'nearest' });
  }, [chosenSeq]);
  const hold = () => setHeld(before => before ?? ledger.list.peek()[0]?.seq ?? null);
  const release = () => setTimeout(() => {
    if (!box.current?.matches(':hover, :focus-within')) setHeld(null);
  }, 60);
  const failed = step => {
    const next = ledger.nextFailed(chosen.peek(), step);
    if (!next) { say('There is no other failed command.'); return; }
    chosen.value = next.seq;
    jump(next);
  };
  const move = event => {
    const rows = [...box.current.querySelectorAll('.cmd')],
      at = rows.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
    if (to === undefined || at < 0 || !rows[to]) return;
    event.preventDefault(); rows[to].focus();
  };
  const more = event => {
    const { scrollHeight, scrollTop, clientHeight } = event.currentTarget;
    if (scrollHeight - scrollTop < 2 * clientHeight) ledger.older();
  };
  const row = record => html`<${Row} key=${record.seq} ...${{ session, record, jump, showHistory }}
    isChosen=${record.seq === chosenSeq} isFirst=${record === shown[0]}
    isLastMissed=${record.seq === last && !word && !onlyFailed} missed=${missed.length} />`;
  return html`<aside class="commands" aria-label="Commands">
    <header class="commands-head"><h2>Commands</h2>
      ${later > 0 && html`<span class="note">${later} new</span>`}<span class="gap"></span>
      <${Button} small tone="ghost" icon="up" label="Previous failed command"
        onClick=${() => failed(-1)} />
      <${Button} small tone="ghost" icon="down" label="Next failed command"
        onClick=${() => failed(1)} />
      ${onClose && html`<${Button} small tone="ghost" icon="close" label="Hide the commands"
        onClick=${onClose} />`}</header>
    <div class="commands-find">
      <input class="input" type="search" aria-label="Filter commands" placeholder="Filter"
        value=${word} onInput=${event => setWord(event.target.value)} />
      <${Button} small tone="ghost" aria-pressed=${onlyFailed}
        onClick=${() => setOnlyFailed(!onlyFailed)}>Failed<//></div>
    ${all.length === 0 && ledger.isRead && html`<${Empty} title="No command has run here yet." />`}
    <ul class="blocks" ref=${box} aria-label="Commands, newest first" onScroll=${more}
      onPointerEnter=${event => event.pointerType !== 'touch' && hold()} onPointerLeave=${release}
      onFocusIn=${hold} onFocusOut=${release} onKeyDown=${move}>
      ${grouped(shown, chunks.current, row, [chosenSeq, last, jump])}
      ${!ledger.isAll.value && all.length > 0 && html`<li class="more-row" key="older">
        <${Button} small tone="ghost"
          onClick=${() => ledger.older()}>Older<//></li>`}</ul></aside>`;
}

/** Rows in chunks: a command touches no row but those of its own chunk, however many there are. */
function grouped(records, known, row, depends) {
  const groups = new Map();
  for (const each of records) {
    const number = Math.floor(each.seq / CHUNK);
    groups.set(number, [...groups.get(number) ?? [], each]);
  }
  return [...groups].map(([number, all]) => {
    const before = known.get(number), now = [...all, ...depends];
    const isSame = before?.now.length === now.length
      && before.now.every((each, i) => each === now[i]);
    if (isSame) return before.rows;
    const rows = html`<li key=${number} class="chunk"><ul>${all.map(row)}</ul></li>`;
    known.set(number, { now, rows });
    return rows;
  });
}

function Row({ session, record, jump, showHistory, isChosen, isFirst, isLastMissed, missed }) {
  const text = textOf(record), took = seconds(record.duration_s);
  const choose = () => {
    session.chosen.value = isChosen ? null : record.seq;
    if (!isChosen) jump(record);
  };
  const words = [record.needs_input ? 'needs input' : endOf(record), took].filter(Boolean);
  const isBusy = terminals.value.get(session.name)?.state === 'running';
  return html`<li class="block ${isOpen(record) ? 'runs' : isFailed(record) ? 'fail' : ''}
      ${isChosen ? 'chosen' : ''}" data-seq=${record.seq}>
    <button type="button" class="cmd" aria-expanded=${isChosen} title=${text.slice(0, LONGEST)}
      tabindex=${isFirst || isChosen ? 0 : -1} onClick=${choose}>
      <${State} of=${kindOf(record)} /><code class="cut" dir="auto">${text.slice(0, LONGEST)}</code>
      <span class="note chip">${words.join(' · ')}</span></button>
    ${isChosen && html`<div class="block-more"><code class="whole"><${Exact}>${text}<//></code>
      <p class="note"><bdi>${record.writer.replace(/^agent:/, '')}</bdi> · <${Time}
        at=${record.started_at} isClock />${record.cwd && html` · <bdi>${record.cwd}</bdi>`}</p>
      <div class="acts">${record.cmd && !isReadOnly.value && html`<${Button} small
        disabled=${isBusy}
          onClick=${() => runAgain(session, record)}>Run again<//>`}
        <${Button} small onClick=${() => copyOutput(session, record)}>Copy output<//>
        <${Button} small onClick=${() => showHistory(record)}>In the history<//></div></div>`}
    ${isLastMissed && html`<p class="divider note">${missedText(missed)}</p>`}</li>`;
}

/** "3 commands while you were away". */
export const missedText = missed => `${plural(missed, 'command')} while you were away`;
