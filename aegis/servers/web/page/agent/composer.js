// The box to write to an agent: text, commands, files; its settings; what waits to be read.
import { html, signal, useEffect, useLayoutEffect, useMemo, useRef, useState } from '../lib.js';
import { draft, freshKey } from '../drafts.js';
import { at } from '../place.js';
import { call } from '../store.js';
import { Button, Link, Pick, Time, say, useGuard, useIs } from '../ui.js';
import { AttachButton, Attachments, attach, isUploaded, pathsOf, takesFiles } from './files.js';
import { handBack, interrupt, resume, withdraw } from './dialogs.js';
import { PERMISSIONS, effortChoice, isBusy, isOver, modelChoice, modelOf,
  thinkingChoice } from './words.js';

/** `unsent` is what was sent and not answered yet: it may have arrived. */
const EMPTY = { text: '', files: [], unsent: null };
/** The drafts whose messages are being sent: a view of one may come and go meanwhile. */
const sending = signal(new Set());
const isSent = kept => sending.value.has(kept);

function change(kept, more) {
  const next = { ...EMPTY, ...kept.peek(), ...more };
  kept.value = next.text || next.files.length || next.unsent ? next : null;
}

/** Put what was not sent back before what was typed meanwhile. */
function restore(kept) {
  const now = { ...EMPTY, ...kept.peek() }, { unsent } = now;
  if (!unsent) return;
  const typed = now.text.trim() && now.text !== unsent.text ? now.text : '';
  change(kept, { text: [unsent.text, typed].filter(Boolean).join('\n'), files: now.files.length
    ? now.files : unsent.files });
}

/**
 * Send a message by way of a draft, which has it again if that fails. `send` gets its key.
 * @param {any} kept @param {{text: string, files: any[]}} message
 * @param {(key: string) => Promise<any>} send
 */
export async function sendBy(kept, { text, files }, send) {
  // What failed is sent again with the same key: it may have arrived.
  const { unsent } = kept.peek() ?? EMPTY, named = list => list.map(each => each.id).join();
  const isAgain = unsent?.text.trim() === text.trim() && named(unsent.files) === named(files);
  const key = isAgain ? unsent.key : freshKey();
  kept.value = { ...EMPTY, unsent: { text, files, key } };
  sending.value = new Set(sending.peek()).add(kept);
  try {
    const receipt = await send(key);
    change(kept, { unsent: null });
    return receipt;
  } catch (error) {
    restore(kept);
    throw error;
  } finally {
    sending.value = new Set([...sending.peek()].filter(each => each !== kept));
  }
}

const COMMAND = /^\/([\w:.-]*)$/;

/** Messages that the agent has not read yet; `mine` are of this page. */
function useQueued(agent, fold, version) {
  const [list, setList] = useState([]);
  useEffect(() => {
    let isOff = false;
    if (!agent.waiting) { setList([]); return undefined; }
    call('inbox_read', { from_handle: agent.handle, limit: 50 })
      .then(({ messages }) => isOff || setList(messages), () => {});
    return () => { isOff = true; };
  }, [agent.handle, agent.waiting]);
  return useMemo(() => list.filter(each => !fold.messages.has(each.id)), [list, version]);
}

function Waiting({ message, handle }) {
  const [box, moved] = useGuard(), { id, sender, body, timestamp } = message;
  const takeBack = event => {
    if (!event.detail || !moved()) return withdraw(handle, id);
    return say('It moved just now: look at it, and click again');
  };
  return html`<li ref=${box}><span class="note">waits</span><bdi class="name">${sender === 'human'
    ? 'You' : sender}</bdi><span class="cut" dir="auto" title=${body}>${body}</span>
    <${Time} at=${timestamp} /><${Button} small tone="ghost"
      label=${`Take back: ${body.slice(0, 60)}`} onClick=${takeBack}>Take back<//></li>`;
}

const Queued = ({ list, handle }) => list.length > 0 && html`<ul class="queued"
  aria-label="Messages that wait">${list.map(each => html`<${Waiting} key=${each.id} message=${each}
    handle=${handle} />`)}</ul>`;

function Picks({ agent, details, onRefused }) {
  const models = details?.models ?? [], { handle } = agent;
  // Not `once`: a second choice may come before the first one is answered.
  const set = async change => {
    try { await call('agent_set', { handle, ...change }); } catch (error) {
      onRefused(); // the choice shows again what holds
      say(error);
    }
  };
  const model = modelOf(models, agent.model), choice = modelChoice(models, agent.model);
  // The agent may call its model by a name that it does not list: then any choice is possible.
  const like = model ? [model] : models, efforts = [...new Set(like.flatMap(each => each.efforts))];
  return html`${models.length > 0 && html`<${Pick} key="Model" label="Model" value=${choice.value}
    of=${choice.of}
      onChange=${value => set({ model: value })} />`}
    ${efforts.length > 0 && html`<${Pick} key="Effort" label="Effort" value=${agent.effort}
      of=${effortChoice(efforts, agent.effort)} onChange=${effort => set({ effort })} />`}
    ${(like.some(each => each.sets_thinking) || agent.thinking) && html`<${Pick} key="Thinking"
      label="Thinking"
      value=${agent.thinking}
      of=${thinkingChoice(agent.thinking)} onChange=${thinking => thinking && set({ thinking })}
        />`}
    ${agent.permission && html`<${Pick} key="Permission" label="Permission"
      value=${agent.permission}
      of=${PERMISSIONS}
      onChange=${permission => set({ permission })} />`}`;
}

/** The commands whose name begins as what is typed. */
function commandsFor(text, commands) {
  const typed = COMMAND.exec(text)?.[1].toLowerCase();
  if (typed === undefined) return [];
  const names = each => [each.name, ...each.aliases].map(name => name.toLowerCase());
  const starts = commands.filter(each => names(each).some(name => name.startsWith(typed)));
  const rest = commands.filter(each => !starts.includes(each) && each.name.toLowerCase()
    .includes(typed));
  return [...starts, ...rest];
}

function Completion({ list, on, onPick, id }) {
  const box = useRef(null);
  useLayoutEffect(() =>
    { box.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' }); },
    [on]);
  return html`<ul ref=${box} class="completion" role="listbox" id=${id} aria-label="Commands">
    ${list.map((each, index) => html`<li key=${each.name} id=${`${id}-${index}`} role="option"
      aria-selected=${index === on} onMouseDown=${event => event.preventDefault()}
      onClick=${() => onPick(each)}>
      <code>/${each.name}</code>${each.hint && html`<span class="note">${each.hint}</span>`}
      <span class="note cut" dir="auto">${each.description}</span></li>`)}</ul>`;
}

const SENT_MS = 8000;
const LANDED = 'It reads your message now.';
const placed = ({ status, position }) => status === 'landed' ? LANDED
  : position > 0 ? `It waits behind ${position} other${position > 1 ? 's' : ''}.`
    : 'It is read once the agent is free.';

export function Composer({ agent, details, fold, version, onSent }) {
  const kept = draft(`a/${agent.id}`), value = { ...EMPTY, ...kept.value }, box = useRef(null);
  const [sent, setSent] = useState(null), [why, setWhy] = useState(''), isSending = isSent(kept);
  const [refusals, setRefusals] = useState(0), [on, setOn] = useState(0), [isShut,
    setShut] = useState(false), isTouch = useIs('(pointer: coarse)');
  const queued = useQueued(agent, fold, version);
  const set = more => change(kept, more);
  const setFiles = change => set({ files: change(kept.peek()?.files ?? []) });
  const onFiles = files => { setWhy(''); attach(files, setFiles); };
  const list = isShut ? [] : commandsFor(value.text, details?.commands ?? []);
  const { text, files } = value, isUploading = files.some(each => !each.path && !each.why);
  const can = !isUploading && !files.some(each => each.why) && (text.trim() !== ''
    || files.length > 0);

  useLayoutEffect(() => {
    const { current } = box;
    if (!current) return;
    current.style.height = 'auto';
    current.style.height = `${Math.min(current.scrollHeight + 2, innerHeight * 0.4)}px`;
  }, [text]);
  useEffect(() => { // an upload that a reload cut off is not attached
    const whole = files.filter(isUploaded);
    if (whole.length !== files.length) set({ files: whole });
    if (!text && !isSending) restore(kept); // a reload came before the answer
  }, []);
  useEffect(() => { // "Send it again", and comments on a change
    const take = event => {
      const { handle, turn, text: given } = event.detail;
      if (handle !== agent.handle) return;
      const mine = fold.blocks.filter(each => each.kind === 'mail'
        && each.turn === turn).map(each => each.text);
      set({ text: [kept.peek()?.text, given ?? mine.join('\n\n')].filter(Boolean).join('\n\n') });
      box.current?.focus();
    };
    addEventListener('compose', take);
    return () => removeEventListener('compose', take);
  }, [fold, agent.handle]);

  const send = async () => {
    if (!can || isSent(kept)) return;
    setWhy('');
    const { handle } = agent;
    // A program in a terminal gets a text: it reads files by their paths.
    const whole = [text.trim() && text, files.map(each => each.path).join('\n')].filter(Boolean);
    try {
      const receipt = await sendBy(kept, { text, files }, key => agent.program
        ? call('handoff', { target_handle: handle, context: whole.join('\n\n'), key })
        : call('agent_send', { handle, text, key, ...pathsOf(files) }));
      setSent(receipt);
      onSent();
      setTimeout(() => setSent(now => now === receipt ? null : now), SENT_MS);
      if (receipt.notice) say(receipt.notice);
    } catch (error) {
      if (box.current) setWhy(error.message);
      else say(error); // another view is shown
    }
  };
  const pick = each => { set({ text: `/${each.name} ` }); setOn(0); box.current.focus(); };
  const key = event => {
    if (event.isComposing) return;
    if (list.length) {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) { event.preventDefault(); setOn((on + step + list.length) % list.length); return; }
      if (event.key === 'Escape') { event.preventDefault(); event.stopPropagation(); setShut(true);
        return; }
      const isWhole = list[on] && text === `/${list[on].name}`;
      if (event.key === 'Tab' || (event.key === 'Enter' && !event.shiftKey && !isWhole)) {
        event.preventDefault();
        pick(list[on] ?? list[0]);
        return;
      }
    }
    if (event.key !== 'Enter' || event.shiftKey || (isTouch && !event.ctrlKey)) return;
    event.preventDefault();
    if (!event.repeat) send();
  };
  if (isOver(agent)) {
    return html`<div class="composer over"><span class="note">This agent is closed. Its conversation
      is
      kept.</span><span class="gap"></span><${Button} tone="main"
        onClick=${() => resume(agent.handle)}>Resume<//></div>`;
  }
  const busy = isBusy(agent) && !agent.taken_over, id = `commands-${agent.id}`;
  const type = event => {
    const { value: typed } = event.target;
    set(typed || isSent(kept) ? { text: typed } : { text: '', unsent: null });
    setShut(false); setOn(0);
    setSent(null); };
  return html`<${Queued} list=${queued} handle=${agent.handle} />
    ${agent.taken_over && html`<div class="notice" role="status"><span>You have its conversation
      in <${Link}
      to=${at('t', agent.taken_over.terminal)} class="link">${agent.taken_over.terminal}<//>.
        Messages
      wait.</span><${Button} small onClick=${() => handBack(agent.handle)}>Hand back<//></div>`}
    <form class="composer" ...${takesFiles(onFiles)} onSubmit=${event => { event.preventDefault();
      send(); }}>
      ${list.length > 0 && html`<${Completion} ...${{ list, on, id }} onPick=${pick} />`}
      <textarea ref=${box} rows="1" dir="auto" aria-label=${`Write to ${agent.handle}`}
        value=${text}
        aria-autocomplete="list" aria-controls=${list.length ? id : null} enterkeyhint=${isTouch
          ? 'enter' : 'send'}
        aria-activedescendant=${list.length ? `${id}-${on}` : null}
        placeholder=${busy ? 'Write: it is read after this turn'
          : 'Write a message, or / for a command'}
        onInput=${type} onKeyDown=${key}></textarea>
      <${Attachments} list=${files} onRemove=${gone => setFiles(all => all.filter(each =>
        each.id !== gone))} />
      ${why && html`<p class="why" role="alert" dir="auto">${why}</p>`}
      <div class="composer-foot"><${AttachButton} onFiles=${onFiles} />
        <${Picks} key=${refusals} agent=${agent} details=${details}
          onRefused=${() => setRefusals(refusals + 1)} /><span class="gap"></span>
        <span class="note sent" role="status">${sent && !text ? placed(sent) : ''}</span>
        ${busy && html`<${Button} small icon="stop" label="Interrupt"
          onClick=${() => interrupt(agent.handle)}>
          Interrupt<//>`}
        <button class="btn main small" type="submit" disabled=${!can
          || isSending}>Send</button></div></form>`;
}
