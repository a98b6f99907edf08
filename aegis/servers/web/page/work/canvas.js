// Canvases: Markdown files that people and agents write together, section by section.
import { html, useEffect, useRef, useState } from '../lib.js';
import { call, canvases, connection, isReadOnly, loaded } from '../store.js';
import {
  Button, Empty, Field, Form, Head, Link, Menu, State, Time, confirm, once, useStill,
} from '../ui.js';
import { actions } from '../actions.js';
import { draft } from '../drafts.js';
import { edited, Diff } from '../diff.js';
import { open, overlay, say } from '../overlay.js';
import { at, go } from '../place.js';
import { Text } from '../text.js';
import { Editor } from './editor.js';
import { History } from './revisions.js';

const OWN = 'human', NAME = '[A-Za-z0-9][A-Za-z0-9._\\-]{0,63}';
export const writerOf = writer => writer === OWN ? 'you'
  : writer === 'outside' ? 'another program' : writer.replace(/^agent:/, '');
export const titleOf = section => section === '_preamble' ? 'Before the first heading'
  : section === 'body' ? 'The whole text' : section;

/** Move the drafts of the text before the first heading: it is the section `body` while there is no
 * heading, `_preamble` with one. */
function moveDrafts(canvas, sections) {
  const names = sections.map(each => each.section), isAlone = names.length === 1;
  if (names.includes('body') && !isAlone) return; // it is a heading
  const [from, to] = names.includes('body') ? ['_preamble', 'body'] : ['body', '_preamble'];
  for (const kind of ['', ' +']) {
    const one = draft(`c/${canvas}/${from}${kind}`), next = draft(`c/${canvas}/${to}${kind}`);
    if (one.peek() === null || next.peek() !== null) continue;
    next.value = one.peek();
    one.value = null;
  }
}

/** The sections of a canvas, read again with each change. An older answer that comes later counts
 * for nothing. Returns [canvas, problem, read]. */
function useSections(name) {
  const [text, setText] = useState(null), [problem, setProblem] = useState('');
  const { state } = connection.value, known = canvases.value.get(name), newest = useRef(-1);
  const read = async () => {
    try {
      const found = await call('canvas_read', { name });
      if (found.rev < newest.current) return null;
      newest.current = found.rev;
      moveDrafts(name, found.sections);
      setText(found); setProblem('');
      return found;
    } catch (error) {
      if (error.code !== 'lost') setProblem(error.message);
      return null;
    }
  };
  useEffect(() => { newest.current = -1; setText(null); }, [name]);
  useEffect(() => { if (state === 'up') read(); }, [name, state, known?.rev, known?.problem]);
  return [text, problem, read];
}

/** Another writer was first: both texts, and the choice between them. */
function Conflict({ part, one, onTake, onKeep }) {
  const { base } = one.value;
  return html`<div class="conflict" role="alert"><p><b><bdi>${writerOf(part.writer)}</bdi></b> wrote
    this section meanwhile (revision ${part.rev}). Your text is below. What they changed:</p>
    <${Diff} files=${[edited('Their change', base, part.text)]} isOpen=${true} />
    <details><summary>Their whole text</summary><pre class="exact" tabindex="0" role="region"
      aria-label="Their text">${part.text || ' '}</pre></details>
    <div class="ask-acts"><${Button} small onClick=${onKeep}>Keep mine<//><${Button} small
      onClick=${onTake}>Take theirs<//></div></div>`;
}

/** One section. Its draft has the text, the text that it began with, and the revision of that. */
function Part({ canvas, part, read }) {
  const { section, text, rev, writer, more, isGone } = part;
  const one = draft(`c/${canvas}/${section}`), extra = draft(`c/${canvas}/${section} +`);
  const [isBusy, setBusy] = useState(false), busy = useRef(false);
  const [problem, setProblem] = useState('');
  const [isAdding, setAdding] = useState(Boolean(extra.peek()));
  const button = useRef(null), adder = useRef(null), box = useRef(null), back = useRef(null);
  const kept = one.value, title = titleOf(section), isCovered = overlay.value !== null;
  const isStale = kept && !isGone && kept.rev !== rev;
  const alone = async act => { // a second click of the same moment does nothing
    if (busy.current) return;
    busy.current = true;
    setBusy(true); setProblem('');
    try { await act(); } catch (error) { setProblem(error.message); } finally {
      busy.current = false;
      setBusy(false);
    }
  };
  // The focus of an editor that was closed returns to its button, once that can have it.
  useEffect(() => {
    const target = back.current?.current;
    if (!target || isCovered) return;
    back.current = null;
    if (document.activeElement === document.body) target.focus();
  });
  const close = () => { one.value = null; setProblem(''); back.current = button; };
  const stop = () => { setAdding(false); back.current = adder; };
  const begin = () => { one.value = { text, base: text, rev }; };
  const change = value => { one.value = { ...one.peek(), text: value }; };
  const accept = mine => {
    one.value = { text: mine ? one.peek().text : text, base: text, rev };
    setProblem('');
    box.current.querySelector('textarea')?.focus();
  };
  const save = () => alone(async () => {
    const given = one.peek();
    let written;
    try {
      written = await call('canvas_write_section', { name: canvas, section, content: given.text,
        ...!isGone && { if_rev: given.rev } });
    } catch (error) {
      const found = await read(), now = found?.sections.find(each => each.section === section);
      if (!now || now.rev === one.peek()?.rev) throw error;
      return; // another writer was first, which is shown
    }
    const saved = (await read())?.sections.find(each => each.rev === written.rev);
    const now = one.peek();
    if (!now || now.text === given.text) close();
    else one.value = { text: now.text, base: saved?.text ?? given.text, rev: written.rev };
    say('Saved');
  });
  const leave = () => {
    if (one.peek()?.text === one.peek()?.base) close();
    else confirm({ title: 'Discard what you wrote?', verb: 'Discard', tone: 'bad',
      text: `The section “${title}” stays as it is in the canvas.`, act: async () => close() });
  };
  const append = event => {
    event.preventDefault();
    alone(async () => {
      const given = extra.peek();
      if (!given?.trim()) return;
      await call('canvas_append_to_section', { name: canvas, section, text: given });
      const now = extra.peek() ?? '', rest = now.startsWith(given) ? now.slice(given.length) : now;
      extra.value = rest.trim() ? rest : null;
      if (!rest.trim()) stop();
      await read();
    });
  };
  return html`<section class="part" ref=${box} aria-label=${title}
    id=${`part-${section}`}><header><h2><bdi>${title}
    </bdi></h2>${!isGone && html`<span class="note">revision ${rev} by${' '}
      <bdi>${writerOf(writer)}</bdi></span>`}<span
    class="gap"></span>${!kept && !isReadOnly.value && html`<button type="button"
      class="btn small ghost" ref=${adder} onClick=${() =>
      setAdding(!isAdding)}>Append</button>${!more && html`<button type="button"
      class="btn small ghost" ref=${button} onClick=${begin}>Edit</button>`}`}</header>
    ${isGone && html`<p class="conflict" role="alert">${kept?.base ? `Another writer
      removed this section meanwhile. Your text is below: saving it adds the section again.`
      : 'The canvas has no such section. Your text is below: saving it adds the section.'}</p>`}
    ${isStale && !isBusy && html`<${Conflict} part=${part} one=${one} onTake=${() => accept(false)}
      onKeep=${() => accept(true)} />`}
    ${kept ? html`<${Editor} value=${kept.text} label=${`New text of ${title}`} onInput=${change}
        onSave=${isStale ? null : save} onLeave=${leave} />
      <div class="ask-acts"><${Button} tone="main" disabled=${isBusy || isStale}
        onClick=${save}>Save<//>
        <${Button} onClick=${leave}>Discard<//><span
          class="note keys">Ctrl Enter saves</span></div>`
      : html`<${Text}>${text || ' '}<//>`}
    ${more && html`<p class="note">The section is longer than what is shown.</p>`}
    ${isAdding && html`<form class="write" onSubmit=${append}><${Editor} value=${extra.value ?? ''}
      label=${`Append to ${title}`} rows=${3} onInput=${value => { extra.value = value; }}
      onSave=${() => append(new Event('submit'))} onLeave=${stop} />
      <div class="ask-acts"><button class="btn main" disabled=${isBusy
        || !extra.value?.trim()}>Append
      </button></div></form>`}
    ${problem && html`<p class="bad-text" role="alert" dir="auto">${problem}</p>`}</section>`;
}

/** A new section of a canvas. @param {{canvas: string, onClose: () => void}} props */
function NewSection({ canvas, onClose }) {
  const one = draft(`c/${canvas} new`), { name = '', text = '' } = one.value ?? {};
  const set = change => { one.value = { ...one.peek(), ...change }; };
  const act = async () => {
    await call('canvas_write_section', { name: canvas, section: name.trim(), content: text });
    one.value = null;
  };
  return html`<${Form} title="New section" verb="Add" act=${act} onClose=${onClose} wide
    disabled=${!name.trim()}><${Field} label="Heading"><input class="input" data-first required
      maxlength="200" value=${name} onInput=${event => set({ name: event.target.value })} /><//>
    <${Editor} value=${text} label="Text of the section" isFirst=${false}
      onInput=${value => set({ text: value })} /><//>`;
}

/** Open a canvas or make one. @param {{onClose: () => void, given?: string}} props */
function OpenCanvas({ onClose, given = '' }) {
  const [name, setName] = useState(given), [file, setFile] = useState('');
  const act = async () => {
    await call('canvas_open', { name, ...file.trim() && { file: file.trim() } });
    go(at('c', name));
  };
  return html`<${Form} title="Open a canvas" verb="Open" act=${act} onClose=${onClose}
    disabled=${!name}><${Field} label="Name"><input class="input" data-first required
      pattern=${NAME}
      value=${name} placeholder="plan" autocomplete="off" spellcheck=${false}
      onInput=${event => setName(event.target.value)} /><//>
    <${Field} label="Its Markdown file, below the root"
      note="A canvas that was opened before has one"
      ><input class="input" value=${file} placeholder=${`${name || 'plan'}.md`} autocomplete="off"
      spellcheck=${false} onInput=${event => setFile(event.target.value)} /><//><//>`;
}
export const openCanvas = (given = '') => open(OpenCanvas, { given });

const follows = canvas => canvas?.subscribers.includes(OWN);
async function follow(name) {
  const on = follows(canvases.value.get(name));
  await call(on ? 'canvas_unsubscribe' : 'canvas_subscribe', { name });
  say(on ? 'No more messages about its changes' : 'Its changes come to your inbox');
}

/** @param {{id: string}} props */
export function Canvas({ id }) {
  const known = canvases.value.get(id), [text, problem, read] = useSections(id);
  const [isHistory, setHistory] = useState(false), body = useRef(null), { last } = known ?? {};
  const seen = useRef(new Set(['_preamble']));
  if (!known && loaded.value.has('canvases') && !text) {
    return html`<${Empty} title=${`There is no canvas “${id}”.`}>${!isReadOnly.value
      && html`<${Button}
      tone="main" onClick=${() => openCanvas(id)}>Make it<//>`}<//>`;
  }
  const parts = text?.sections ?? [], names = parts.map(each => each.section);
  for (const name of names) seen.current.add(name);
  // A section that was removed while somebody here wrote in it stays: nothing written is lost.
  const lost = text ? [...seen.current].filter(each => !names.includes(each)
    && ['', ' +'].some(kind => draft(`c/${id}/${each}${kind}`).value)) : [];
  const note = last && html`revision ${known.rev} by
    <bdi> ${writerOf(last.writer)}</bdi> · <${Time} at=${last.timestamp} />`;
  const to = section => [...body.current.querySelectorAll('.part')]
    .find(each => each.id === `part-${section}`)?.scrollIntoView({ block: 'start' });
  return html`<${Head} title=${id} note=${note}>${!isReadOnly.value && html`<${Button} small
      aria-pressed=${Boolean(follows(known))} onClick=${() => follow(id)}>${follows(known)
        ? 'Following'
      : 'Follow'}<//>`}<${Button} small aria-pressed=${isHistory} onClick=${() =>
      setHistory(!isHistory)}>History<//>${!isReadOnly.value && html`<${Button} small tone="main"
      onClick=${() => open(NewSection, { canvas: id })}>Add a section<//>`}<//>
    <div class="page canvas" ref=${body}><nav class="toc"
      aria-label="Sections"><ul>${parts.map(each =>
      html`<li key=${each.section}><button type="button" class="link"
        onClick=${() => to(each.section)}>
        <bdi>${titleOf(each.section)}</bdi></button></li>`)}</ul>
      ${text && html`<p class="note file-of"><bdi>${text.file}</bdi></p>`}</nav>
    <div class="parts">${(problem || known?.problem) && html`<p class="bad-text" role="alert"
      dir="auto">
      ${problem || known.problem}</p>`}
      ${isHistory && html`<${History} canvas=${id} rev=${known?.rev} />`}
      ${text && !parts.length && html`<p class="calm">The file is empty.</p>`}
      ${[...parts, ...lost.map(section => ({ section, text: '', rev: null, writer: 'outside',
        isGone: true }))].map(each => html`<${Part} canvas=${id} part=${each}
        key=${each.section === 'body' && parts.length === 1 ? '_preamble' : each.section}
        read=${read} />`)}
    </div></div>`;
}

export function Canvases() {
  const [shown, still] = useStill([...canvases.value.values()], each => each.name);
  const add = !isReadOnly.value && html`<${Button} small tone="main" onClick=${() => openCanvas()}
    >Open a canvas<//>`;
  return html`<${Head} title="Canvases">${add}<//><div class="page narrow">
    ${loaded.value.has('canvases') && !shown.length && html`<${Empty}
      title="No canvas yet. A canvas is a
      text that people and agents write together.">${add}<//>`}
    ${shown.length > 0 && html`<ul class="rows" aria-label="Canvases"
      ...${still}>${shown.map(each =>
      html`<li class="row tall" key=${each.name}><${Link} class="row-link" to=${at('c', each.name)}>
        <${State} of=${each.problem ? 'failed' : 'idle'} quiet /><b
          class="name who">${each.name}</b>
        <bdi class="cut quiet">${each.problem || each.sections.map(titleOf).join(', ')}</bdi><//>
        ${each.last && html`<span
          class="note opt">by <bdi>${writerOf(each.last.writer)}</bdi></span>
        <${Time} at=${each.last.timestamp} />`}${!isReadOnly.value && html`<${Menu} small
        label=${`More about ${each.name}`} items=${[{ text: follows(each) ? 'Follow no more'
          : 'Follow',
          act: once(() => follow(each.name)) }]} />`}</li>`)}</ul>`}</div>`;
}

actions(() => isReadOnly.value ? [] : [
  { text: 'Open a canvas', group: 'Canvas', words: 'new create', act: () => openCanvas() },
  ...[...canvases.value.keys()].flatMap(name => [
    { text: `Add a section to ${name}`, group: 'Canvas', of: at('c', name),
      act: () => open(NewSection, { canvas: name }) },
    { text: `${follows(canvases.value.get(name)) ? 'Unfollow' : 'Follow'} ${name}`, group: 'Canvas',
      of: at('c', name), act: () => follow(name) }]),
]);
