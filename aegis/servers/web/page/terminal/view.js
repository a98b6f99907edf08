// One terminal in a pane: head, screen, commands at the side, the line that runs commands, keys.
import { actions } from '../actions.js';
import { html, signal, useEffect, useMemo, useRef, useState } from '../lib.js';
import { open, say } from '../overlay.js';
import { activePane, at, panes, set, settings, stored } from '../place.js';
import { ShareLink } from '../rest/access.js';
import { terminalState } from '../state.js';
import { connection, events, isReadOnly, loaded, terminals } from '../store.js';
import { Button, Count, Dialog, Empty, Head, Menu, Name, confirm, useIs, usePhone } from '../ui.js';
import { Commands, copyOutput, missedText, runAgain } from './commands.js';
import {
  CloseTerminal, RenameTab, SendSignal, SetSize, Subscribe,
} from './dialogs.js';
import { FindBar, NOTHING } from './find.js';
import { History } from './history.js';
import { KeyBar, SelectText, paste } from './keys.js';
import { NewTerminal } from './new.js';
import { isOpen } from './records.js';
import { RunLine, interrupt } from './run.js';
import { Session } from './session.js';

const WIDE = 1100, SMALLEST_PX = 8, LARGEST_PX = 28;
const isOn = (key, otherwise) => {
  const before = stored.get(key);
  const now = signal(before === null ? otherwise : before === 'on');
  const turn = () => {
    now.value = !now.value;
    stored.set(key, now.value ? 'on' : 'off');
  };
  return { now, turn };
};
const list = isOn('show-commands', innerWidth >= WIDE), runLine = isOn('show-run-line', true);

// The bell: a note, or a sign in the title of a page that nobody sees.
let titleBefore = null;
events.addEventListener('bell', event => {
  const { detail: name } = /** @type {CustomEvent} */ (event);
  if (document.visibilityState === 'visible') { say(`🔔 ${name}`); return; }
  titleBefore ??= document.title;
  document.title = `🔔 ${name} · aegis-actors`;
});
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState !== 'visible' || titleBefore === null) return;
  document.title = titleBefore;
  titleBefore = null;
});

/** The open panes with a terminal: what the palette offers for each. @type {Set<any>} */
const shownPanes = new Set();
actions(() => isReadOnly.value ? [] : [...shownPanes].flatMap(pane => pane.offers()));

const resizeText = by => {
  const now = Number(settings.value.terminalSize) || 13;
  set({ terminalSize: Math.max(SMALLEST_PX, Math.min(LARGEST_PX, now + by)) });
};

/**
 * @param {{id: string, where: string, params: URLSearchParams,
 *   onClose: (() => void) | null}} props
 */
export function TerminalPage({ id, where, params, onClose }) {
  const session = useMemo(() => new Session(id), [id]), screen = useRef(null);
  const isPhone = usePhone(), isCoarse = useIs('(pointer: coarse)');
  const [isFinding, setFinding] = useState(false), [query, setQuery] = useState(NOTHING);
  /** Where the history begins: null if it is not shown, a seq, or 'end'. */
  const [history, setHistory] = useState(/** @type {number | 'end' | null} */ (null));
  const found = useMemo(() => signal(null), []), stepper = useRef(null);
  const [dismissed, setDismissed] = useState('');
  const [ownList, setOwnList] = useState(/** @type {boolean | null} */ (null));
  const info = terminals.value.get(id), shown = session.shown.value, { ledger } = session;
  const isActive = isReadOnly.value || panes.value[activePane.value] === where;

  useEffect(() => {
    const here = document.activeElement ?? document.body;
    const isWriting = here.matches('input, textarea, select, dialog *, .tabs a:focus-visible');
    session.open(screen.current, isActive && !isWriting);
    return () => {
      session.close();
      if (globalThis.app.current === session) globalThis.app.current = null;
    };
  }, [session]);
  useEffect(() => { if (isActive) globalThis.app.current = session; }, [session, isActive]);
  useEffect(() => { if (info) session.again(); }, [info?.started_at]);

  const jump = record => { if (!session.jump(record.seq)) showHistory(record); };
  const showHistory = record => { setQuery(NOTHING); setHistory(record?.seq ?? 'end'); };
  const leaveHistory = () => { setHistory(null); session.term?.focus(); };
  const find = () => {
    if (isFinding) screen.current.parentElement.querySelector('.find-bar input')?.focus();
    setFinding(true);
  };
  const stopFinding = () => { setFinding(false); setQuery(NOTHING); session.term?.focus(); };

  // An address with ?seq= shows that command.
  const seq = params.get('seq');
  useEffect(() => {
    let isOver = false;
    const show = async () => {
      await Promise.race([session.drawn, new Promise(resolve => setTimeout(resolve, 2000))]);
      await ledger.reading;
      if (!isOver && !session.jump(Number(seq))) setHistory(Number(seq));
    };
    if (seq !== null && /^\d+$/.test(seq)) show();
    return () => { isOver = true; };
  }, [session, seq]);

  const given = { session, info, shown, isPhone, list, runLine };
  const does = useMemo(() => ({ current: [] }), []);
  does.current = doings({ ...given, id, find, showHistory });
  useEffect(() => {
    const pane = { offers: () => offers(does.current, id) };
    shownPanes.add(pane);
    return () => { shownPanes.delete(pane); };
  }, [session]);
  const key = event => {
    if (event.ctrlKey && event.shiftKey && event.code === 'KeyF') {
      event.preventDefault(); event.stopPropagation(); find();
    }
  };

  const isClosed = shown.state === 'closed', isKnown = ledger.list.value.length > 0;
  const isUnknown = isClosed && !isKnown && !info;
  const running = info?.running && { ...info.running, needs_input: shown.needs };
  const state = terminalState({ ...info, state: shown.state, running });
  const missed = ledger.missed().length;
  // Beside another pane there is no room, unless it is asked for.
  const isAlone = panes.value.length === 1;
  const isListShown = !isPhone && (ownList ?? (list.now.value && isAlone));
  const turnList = () => {
    setOwnList(!isListShown);
    if (isAlone && list.now.value === isListShown) list.turn();
  };
  const isTaken = shown.owner && !shown.owner.yours && !isReadOnly.value;
  const types = shown.typing && !shown.isMine ? shown.typing.writer.replace(/^agent:/, '') : null;
  return html`<div class="terminal" onKeyDownCapture=${key}>
    <${Head} state=${state.kind} title=${settings.value.tabNames[id] || id} note=${html`<${Note}
      ...${{ info, shown, state }} />`}>
      ${types && html`<span class="chip typing"><${Name}>${types}<//> types</span>`}
      ${isTaken && html`<${Button} small onClick=${() => session.take()}
        title="Another window has the size ${shown.size?.cols}×${shown.size?.rows}">Take over<//>`}
      ${!isPhone && html`<${Button} small tone="ghost" icon="find" label="Find in output"
          onClick=${find} />
        <${Button} small tone="ghost" aria-pressed=${isListShown} onClick=${turnList}>Commands
        <${Count} of=${missed} label=${missedText(missed)} /><//>`}
      <${Menu} small label=${`What to do with ${id}`} items=${does.current} />
      ${onClose && html`<${Button} small tone="ghost" icon="close" label="Close the pane"
        onClick=${onClose} />`}<//>
    ${missed > 0 && !isListShown && html`<button type="button" class="strip-note"
      onClick=${() => isPhone ? openCommands(session, jump, showHistory) : turnList()}>
      ${missedText(missed)}</button>`}
    <${Banner} ...${{ info, shown, dismissed, setDismissed }} />
    <div class="term">
      <div class="term-main">
        ${isUnknown && loaded.value.has('terminals') ? html`<${Empty}
          title=${`There is no terminal “${id}”.`}>${!isReadOnly.value && html`<${Button}
            tone="main"
            onClick=${() => open(NewTerminal, { name: id })}>Open it<//>`}<//>` : null}
        <div class="screen" ref=${screen} role="region" aria-label=${`Terminal ${id}`}
          hidden=${isUnknown}></div>
        ${history !== null && html`<${History} key=${`${history} ${ledger.lives.value}`}
          ...${{ session, query, found, stepper }}
          seq=${history === 'end' ? null : history} onClose=${leaveHistory} />
          <${Button} small onClick=${leaveHistory}
            class="btn small soft to-screen">Back to the screen<//>`}
        ${isFinding && html`<${FindBar} ...${{ session, query, setQuery, found }}
          step=${history === null ? null : by => stepper.current?.(by)} onClose=${stopFinding}
          showHistory=${history === null ? () => setHistory('end') : null} />`}
        ${shown.isAtTop && history === null && isKnown && html`<${Button} small
          class="btn small earlier"
          onClick=${() => showHistory(null)}>Earlier output<//>`}</div>
      ${isListShown && html`<${Commands} ...${{ session, jump, showHistory }}
        onClose=${turnList} />`}
    </div>
    ${isClosed && !isUnknown && html`<div class="run-line"><span class="note">This terminal is
      closed. ${shown.end}</span><span class="gap"></span><${Button} small
      onClick=${() => showHistory(null)}>History<//>${!isReadOnly.value && html`<${Button} small
        tone="main"
      onClick=${() => open(NewTerminal, { name: id })}>Open it again<//>`}</div>`}
    ${!isClosed && !isReadOnly.value && (runLine.now.value || shown.needs) && html`<${RunLine}
      session=${session} />`}
    ${isCoarse && !isClosed && !isReadOnly.value && html`<${KeyBar} session=${session} />`}</div>`;
}

function openCommands(session, jump, showHistory) {
  open(CommandsDialog, { session, jump, showHistory });
}

function CommandsDialog({ session, jump, showHistory, onClose }) {
  const then = act => record => { onClose(); act(record); };
  return html`<${Dialog} title="Commands" onClose=${onClose}><${Commands} session=${session}
    jump=${record => { if (session.jump(record.seq)) session.chosen.value = record.seq; }}
    showHistory=${then(showHistory)} onClose=${null} />
    <${Button} class="btn"
      onClick=${then(() => jump(session.records.get(session.chosen.peek()) ?? {}))}
      disabled=${session.chosen.value === null}>Show in the terminal<//><//>`;
}

/** What stands beside the name: the command that runs, or the directory; the title; the node. */
function Note({ info, shown, state }) {
  const parts = [
    state.word !== 'runs' && html`<span>${state.word}</span>`,
    shown.state === 'running' && info?.running ? html`<code dir="auto">${info.running.cmd
      ?? 'a command'}</code>` : info?.cwd && html`<bdi>${info.cwd}</bdi>`,
    shown.title && shown.title !== info?.cwd && html`<bdi class="title">${shown.title}</bdi>`,
    info && !['local', '', undefined].includes(info.node) && html`<span>on ${info.node}</span>`,
    info?.integration === 'fallback' && html`<span title="Where commands begin and end is a best
      effort in this shell">other shell</span>`,
  ].filter(Boolean);
  return parts.map((each, index) => [index > 0 && ' · ', each]);
}

function Banner({ info, shown, dismissed, setDismissed }) {
  const node = info?.node ?? 'NAME';
  const text = shown.state === 'unreachable' ? `The host ${node} cannot be reached. What runs there`
    + ' continues, and this terminal returns with the host. If it does not, start'
    + ` “aegis-actors join … --name ${node}” there again.`
    : shown.state === 'failed' ? info?.notice || 'Its shell ended three times before a prompt.'
      + ' Close the terminal, and open it again with another shell or directory.'
      : connection.value.state === 'down' ? 'No connection to the daemon: what you see may be old,'
        + ' and nothing is typed.' : info?.notice;
  if (!text || text === dismissed) return null;
  return html`<div class="banner ${shown.state}" role="status"><span dir="auto">${text}</span>
    <${Button} small tone="ghost" icon="close" label="Hide this"
      onClick=${() => setDismissed(text)} />
  </div>`;
}

/** All that one can do with a terminal, as the items of its menu. */
function doings({ session, info, shown, isPhone, id, find, showHistory }) {
  const may = !isReadOnly.value, isLive = may && shown.state !== 'closed';
  const isOther = shown.typing && !shown.isMine && shown.state === 'idle';
  const isAlwaysDark = settings.value.terminalTheme === 'dark';
  const last = session.ledger.list.value.find(each => !isOpen(each));
  const jump = record => { if (!session.jump(record.seq)) showHistory(record); };
  const discard = () => confirm({
    title: 'Discard the unfinished line?', verb: 'Discard', tone: 'bad', act: () => interrupt(id),
    text: `What ${shown.typing.writer.replace(/^agent:/, '')} has typed at the prompt is lost.`,
  });
  return [
    isPhone && { text: 'Commands', act: () => openCommands(session, jump, showHistory) },
    { text: 'Find in output', key: isPhone ? '' : 'Ctrl Shift F', act: find },
    { text: 'History', act: () => showHistory(null) },
    last && { text: 'Copy the last output', act: () => copyOutput(session, last) },
    last?.cmd && isLive
      && { text: 'Run the last command again', act: () => runAgain(session, last) },
    isLive && { text: 'Paste', act: () => paste(session) },
    { text: 'Select text', act: () => open(SelectText, { session }) },
    isLive && '-',
    isLive && { text: 'Interrupt', key: isPhone ? '' : 'Ctrl C', act: () => interrupt(id) },
    isLive && { text: 'Send a signal', act: () => open(SendSignal, { name: id }) },
    isOther && isLive && { text: 'Discard the unfinished line', act: discard },
    '-',
    isLive && { text: 'Set the size', act: () => open(SetSize, { session }) },
    { text: 'Larger text', act: () => resizeText(1) },
    { text: 'Smaller text', act: () => resizeText(-1) },
    { text: isAlwaysDark ? 'Colours of the page' : 'Always dark',
      act: () => set({ terminalTheme: isAlwaysDark ? 'page' : 'dark' }) },
    isLive && { text: runLine.now.value ? 'Hide the run line' : 'Show the run line',
      act: runLine.turn },
    may && '-',
    may && { text: 'Messages of ended commands', act: () => open(Subscribe, { name: id }) },
    may && { text: 'Rename the tab', act: () => open(RenameTab, { name: id }) },
    may && { text: 'Share a read-only link',
      act: () => open(ShareLink, { subject: `terminal:${id}` }) },
    may && { text: info ? 'Close the terminal' : 'Delete its history', tone: 'bad',
      act: () => open(CloseTerminal, { name: id }) },
  ].filter(Boolean);
}

/** The same for the palette. */
const offers = (items, id) => items.filter(each => each !== '-')
  .map(each => ({ ...each, text: `${each.text}: ${id}`, group: 'Terminal', of: at('t', id) }));

