// Inboxes: the person's own, and those of agents and programs, to read and to write to.
import { html, useEffect, useMemo, useRef, useState } from '../lib.js';
import { agentOf, agents, call, connection, isReadOnly, loaded, mail } from '../store.js';
import {
  Button, Choice, Field, Form, Head, Icon, Link, Menu, Time, once, usePhone, useStill,
} from '../ui.js';
import { actions } from '../actions.js';
import { draft, freshKey } from '../drafts.js';
import { open, say } from '../overlay.js';
import { at, go, query, restate, subject } from '../place.js';
import { Text } from '../text.js';
import { OWN, acknowledge, lineOf, sender } from './mail.js';
import { WriteBox } from './write.js';

const STEP = 100, MOST = 1000, EVERY_MS = 3000;

/** The page that shows a sender; null if there is none. */
function placeOf(from) {
  const [kind, name] = from.split(/:(.*)/s), kinds = { term: 't', queue: 'q', canvas: 'c',
    group: 'g' };
  if (kind === 'agent') return agentOf(name) ? at('a', name) : at('m', name);
  if (kind === 'workflow') return 'workflows';
  return kinds[kind] ? at(kinds[kind], name.split('/')[0]) : null;
}
/** The handle that a reply goes to; empty if the sender reads none. */
const replyTo = from => from === OWN ? '' : from.startsWith('agent:') ? from.slice(6)
  : from.includes(':') ? '' : from;

/** Return the ids of the unread ones: the oldest unread message, and all behind it. */
const unreadOf = (messages, oldest) => oldest ? messages.slice(Math.max(0,
  messages.findIndex(each => each.id === oldest.id))).map(each => each.id) : [];

/** The messages of an inbox, oldest first, and the ids of the unread ones. Another's inbox is read
 * now and then: a stream would count as its reader, and senders would believe that it was read. */
function useMessages(handle, limit) {
  const isOwn = handle === OWN, [list, setList] = useState(null);
  const [unread, setUnread] = useState([]);
  const [problem, setProblem] = useState(''), { state } = connection.value, fresh = mail.value;
  useEffect(() => {
    if (state !== 'up') return undefined;
    let isOver = false;
    const read = async () => {
      const whose = isOwn ? {} : { from_handle: handle };
      try {
        const all = await call('inbox_read', { ...whose, unread: false, limit });
        const first = isOwn ? null : await call('inbox_read', { ...whose, limit: 1 });
        if (isOver) return;
        setList(all.messages); setProblem('');
        if (first) setUnread(unreadOf(all.messages, first.messages[0]));
      } catch (error) { if (!isOver && error.code !== 'lost') setProblem(error.message); }
    };
    read();
    const timer = isOwn ? 0 : setInterval(() => {
      if (document.visibilityState === 'visible') read();
    }, EVERY_MS);
    return () => { isOver = true; clearInterval(timer); };
  }, [handle, limit, state, isOwn && fresh]);
  return { list, problem, unread: useMemo(() => new Set(isOwn ? [...fresh.keys()] : unread),
    [isOwn && fresh, unread]) };
}

/** Send a message to one handle. */
async function send(handle, text, key) {
  const { status, position, notice } = await call('handoff',
    { target_handle: handle, context: text, key });
  say(notice || (status === 'landed' ? `Sent to ${handle}` : position
    ? `Sent to ${handle}: ${position} before it` : `Sent to ${handle}: it waits in the inbox`));
}

/** Write to handles that one chooses. @param {{onClose: () => void, to?: string}} props */
export function WriteMessage({ onClose, to = '' }) {
  const text = draft('message'), [others, setOthers] = useState([]);
  const [chosen, setChosen] = useState([]);
  const [other, setOther] = useState(to), keys = useRef({ text: '', key: '' });
  const known = [...agents.value.values()].map(each => each.handle).sort();
  useEffect(() => {
    call('meta').then(({ peers, handles }) => {
      const all = [...peers.map(each => each.handle), ...handles];
      setOthers(all.filter(each => each !== OWN));
    }, () => { /* the field takes any handle */ });
  }, []);
  const targets = [...new Set([...chosen, ...other.split(/[,\s]+/)].filter(Boolean))];
  const act = async () => {
    const said = (text.peek() ?? '').trim();
    if (!targets.length) throw new Error('Choose who gets it.');
    if (!said) throw new Error('There is no text yet.');
    if (keys.current.text !== said) keys.current = { text: said, key: freshKey() };
    const { key } = keys.current, failed = [];
    // Under one key each target gets it once: those that have it already are not written to again.
    await Promise.all(targets.map(each => call('handoff',
      { target_handle: each, context: said, key: `${key}-${each}`.slice(0, 120) })
      .catch(error => failed.push(`${each}: ${error.message}`))));
    if (failed.length) throw new Error(failed.join('\n'));
    text.value = null;
    say(`Sent to ${targets.length > 1 ? `${targets.length} inboxes` : targets[0]}`);
  };
  return html`<${Form} title="Write a message" verb="Send" act=${act} onClose=${onClose}>
    <${Field} label="To" note="A handle; several with commas"><input class="input" value=${other}
      list="handles" autocomplete="off" spellcheck=${false} data-first=${!to}
      onInput=${event => setOther(event.target.value)} /><//>
    <datalist id="handles">${others.map(each => html`<option value=${each} />`)}</datalist>
    ${known.length > 0 && html`<fieldset class="options pick-many"><legend>Agents</legend>
      ${known.map(each => html`<label key=${each}><input type="checkbox"
        checked=${chosen.includes(each)}
        onChange=${() => setChosen(chosen.includes(each) ? chosen.filter(one => one !== each)
          : [...chosen, each])} /><bdi class="name">${each}</bdi></label>`)}</fieldset>`}
    <${Field} label="Message"><textarea class="input" rows="5" dir="auto" value=${text.value ?? ''}
      data-first=${Boolean(to)}
        onInput=${event => { text.value = event.target.value; }} /><//><//>`;
}
export const write = (to = '') => open(WriteMessage, { to });

function Message({ each, isUnread, isOwn, older, onBack }) {
  const to = replyTo(each.sender), where = placeOf(each.sender), name = sender(each);
  return html`<article class="mail-body" aria-label=${`Message from ${name}`}>
    <${Button} small tone="ghost to-list" icon="left" onClick=${onBack}>All messages<//>
    <header><h2>${where ? html`<${Link} to=${where}><bdi>${name}</bdi><//>`
      : html`<bdi>${name}</bdi>`}
      </h2>${each.status === 'error' && html`<span class="count bad">failed</span>`}<${Time}
      at=${each.timestamp} isClock /><span class="gap"></span>${isOwn && isUnread
        && !isReadOnly.value
      && html`<${Button} small onClick=${once(() => acknowledge(each.id))}>${older
        ? `Mark this and ${older} older as read` : 'Mark as read'}<//>`}</header>
    <${Text}>${each.body}<//>
    ${isOwn && !isReadOnly.value && (to ? html`<${WriteBox} key=${each.id} of=${`reply/${each.id}`}
      label=${`Reply to ${to}`} placeholder=${`Reply to ${to}`} verb="Reply"
      send=${(text, key) => send(to, text, key)} />` : html`<p
        class="note">It takes no reply.</p>`)}
    </article>`;
}

/** One inbox: its messages at the side, one of them whole. */
function Mailbox({ handle, where, params }) {
  const isOwn = handle === OWN, [limit, setLimit] = useState(STEP), isPhone = usePhone();
  const { list, unread, problem } = useMessages(handle, limit), [only, setOnly] = useState('all');
  const on = params?.get('message') ?? null, box = useRef(null), all = (list ?? []).toReversed();
  const setOn = id => restate(`${subject(where)}${id === null ? '' : query({ message: id })}`);
  const [shown, still] = useStill(all.filter(each => only === 'all' || unread.has(each.id)
    || each.id === on), each => each.id);
  const one = all.find(each => each.id === on), hasOlder = list?.length >= limit && limit < MOST;
  const showOlder = () => setLimit(Math.min(MOST, limit * 2));
  useEffect(() => { if (on !== null && !one && hasOlder) showOlder(); }, [on, list]);
  useEffect(() => {
    box.current?.querySelector('[aria-current=true]')?.scrollIntoView({ block: 'nearest' });
  }, [on, Boolean(one)]);
  const keys = event => {
    const by = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
    if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const rows = [...box.current.querySelectorAll('.mail')];
    rows[Math.max(0, Math.min(rows.length - 1,
      rows.indexOf(document.activeElement) + by))]?.focus();
  };
  const older = one ? all.filter(each => unread.has(each.id)).findLastIndex(() => true)
    - all.filter(each => unread.has(each.id)).findIndex(each => each.id === on) : 0;
  const note = unread.size ? `${unread.size} unread` : list ? 'all read' : '';
  return html`<${Head} title=${isOwn ? 'Inbox' : `Inbox of ${handle}`} note=${note}>
      ${isOwn && isPhone && !isReadOnly.value && html`<${Menu} small label="More about the inbox"
        items=${[unread.size > 0 && { text: 'Mark all as read', act: acknowledge },
          { text: 'All inboxes', act: () => go('inboxes') }]} />`}
      ${isOwn && !isPhone && !isReadOnly.value && html`<${Button} small disabled=${!unread.size}
        onClick=${acknowledge}>Mark all as read<//>`}
      ${isOwn && !isPhone && html`<${Link} class="btn small" to="inboxes">All inboxes<//>`}
      ${!isReadOnly.value && html`<${Button} small tone="main" onClick=${() => write(isOwn ? ''
        : handle)}
        >Write<//>`}<//>
    <div class=${`mails ${one ? 'has' : ''}`}><div class="mail-list"><div class="filters"><${Choice}
      label="Which messages" of=${[['all', 'All'], ['unread', 'Unread']]} value=${only}
      onChange=${setOnly} counts=${{ unread: unread.size }} /></div>
      ${problem && html`<p class="bad-text pad" role="alert">${problem}</p>`}
      ${list && !shown.length && html`<p class="calm">${only === 'unread' ? 'All read.' : isOwn
        ? 'No messages yet. Agents, queues and workflows write to you here.' : 'No messages.'}</p>`}
      <div ref=${box} onKeyDown=${keys}><ul class="still" ...${still}>${shown.map((each,
        index) => html`<li
        key=${each.id}><button type="button" class=${`mail ${unread.has(each.id) ? 'new' : ''}
        ${each.gone ? 'gone' : ''}`} aria-current=${on === each.id}
        tabindex=${(one ? each.id === on : index === 0) ? 0 : -1} onClick=${() => setOn(each.id)}>
        <span class="mail-top"><bdi class="name">${sender(each)}</bdi>${unread.has(each.id)
          && html`<span class="hidden">unread</span>`}${each.status === 'error' && html`<span
          class="count bad">failed</span>`}<${Time} at=${each.timestamp} /></span><bdi
        class="cut quiet">${lineOf(each.body)}</bdi></button></li>`)}</ul></div>
      ${hasOlder && html`<${Button} tone="ghost all" onClick=${showOlder}>Show older<//>`}</div>
    ${one ? html`<${Message} each=${one} isUnread=${unread.has(one.id)} isOwn=${isOwn}
      older=${older}
        onBack=${() => setOn(null)} />`
      : !isPhone && html`<div class="mail-body"><p class="calm">${!all.length ? '' : on === null
        ? 'Choose a message.' : hasOlder ? 'Loading…'
          : `The message is not among the newest ${all.length}.`}</p></div>`}</div>
    ${!isOwn && !isReadOnly.value && !(isPhone && one) ? html`<div class="mail-write"><${WriteBox}
      of=${`m/${handle}`} label=${`Message to ${handle}`} placeholder=${`Write to ${handle}`}
      send=${(text, key) => send(handle, text, key)} /></div>` : null}`;
}

const NEWEST = 60;
/** All inboxes with their newest messages. */
export function Inboxes() {
  const [handles, setHandles] = useState([OWN]), [newest, setNewest] = useState(new Map());
  const { state } = connection.value, ids = [...agents.value.keys()].join();
  useEffect(() => {
    if (state !== 'up') return undefined;
    let isOver = false;
    (async () => {
      const { peers, handles: others } = await call('meta');
      const all = [OWN, ...new Set([...peers.map(each => each.handle), ...others])];
      if (isOver) return;
      setHandles(all);
      for (const handle of all.slice(0, NEWEST)) {
        const whose = handle === OWN ? {} : { from_handle: handle };
        const { messages } = await call('inbox_read', { ...whose, unread: false, limit: 1 });
        if (isOver) return;
        setNewest(known => new Map(known).set(handle, messages[0]));
      }
    })().catch(error => { if (!isOver && error.code !== 'lost') say(error); });
    return () => { isOver = true; };
  }, [state, ids, mail.value]);
  const [shown, still] = useStill(handles, each => each);
  return html`<${Head} title="Inboxes">${!isReadOnly.value && html`<${Button} small tone="main"
    onClick=${() => write()}>Write<//>`}<//><div class="page narrow"><ul class="rows"
    aria-label="Inboxes" ...${still}>${shown.map(handle => {
      const last = newest.get(handle), isOwn = handle === OWN;
      return html`<li class="row tall" key=${handle}><${Link} class="row-link"
        to=${isOwn ? 'inbox' : at('m', handle)}><${Icon} of="inbox" /><bdi class="name who">${isOwn
        ? 'You' : handle}</bdi><bdi class="cut quiet">${last
          ? `${sender(last)}: ${lineOf(last.body)}`
        : ''}</bdi><//>${isOwn && mail.value.size > 0 && html`<span class="count">${mail.value.size}
        </span>`}${last && html`<${Time} at=${last.timestamp} />`}</li>`;
    })}</ul></div>`;
}

/** @param {{id?: ?string, where: string, params?: URLSearchParams}} props */
export const Inbox = ({ id, where, params }) => html`<${Mailbox} handle=${id ?? OWN}
  where=${where} params=${params} />`;

actions(() => isReadOnly.value ? [] : [
  { text: 'Write a message', group: 'Inbox', words: 'send broadcast agents', act: () => write() },
  { text: 'All inboxes', group: 'Go', act: () => go('inboxes') },
  mail.value.size > 0 && loaded.value.has('mail') && { text: 'Mark all messages as read',
    group: 'Inbox', of: 'inbox', act: acknowledge },
]);
