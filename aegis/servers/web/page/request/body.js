// The whole of a request, and the buttons that answer it.
import { html, useEffect, useRef, useState } from '../lib.js';
import { isReadOnly } from '../store.js';
import { Button, Check, Link } from '../ui.js';
import { say } from '../overlay.js';
import { Diff, edited } from '../diff.js';
import { Text, isPartly } from '../text.js';
import { Exact, isOdd } from './exact.js';
import { FormField, Question, answersOf, clearFilled, useFilled } from './fields.js';
import {
  answer, asker, besidePlan, directoryOf, editsOf, fieldsOf, isPlan, isYesNo, mayAllow, optionsOf,
  placeOf, planOf, questionsOf, rootName, sentence, shortPath, valuesOf,
} from './model.js';

const MOST_LINES = 300;

/** Answer requests once: a click on a control that moved just now, and a second one, do nothing.
 * @returns {[(decision: string, more?: any) => (event?: any) => Promise<void>, boolean, string]}
 * a function that returns the handler of an answer, whether it is sent now, and what went wrong */
export function useAnswer(all, guard, onDone) {
  const [isBusy, setBusy] = useState(false), [problem, setProblem] = useState(''), busy = useRef(0);
  const give = (decision, more) => async event => {
    event?.stopPropagation?.();
    if (event?.detail && guard()) { say('It moved just now: look at it, and click again'); return; }
    if (busy.current) return;
    busy.current = 1; setBusy(true); setProblem('');
    try {
      const given = typeof more === 'function' ? more() : more;
      const late = await answer(all, decision, given);
      if (late) say(late, { tone: 'bad' });
      for (const each of all) clearFilled(each.id);
      onDone?.();
    } catch (error) {
      setProblem(error.message);
    } finally { busy.current = 0; setBusy(false); }
  };
  return [give, isBusy, problem];
}

/** Whether the end of a request was on the screen: nothing is allowed before. */
function useSeen(key) {
  const end = useRef(null), [seen, setSeen] = useState('');
  useEffect(() => {
    const look = new IntersectionObserver(found => {
      if (found.some(each => each.isIntersecting)) { setSeen(key); look.disconnect(); }
    });
    look.observe(end.current);
    return () => look.disconnect();
  }, [key]);
  return [end, seen === key];
}

const Json = ({ value }) => Object.keys(value).length > 0 && html`<pre class="exact" tabindex="0"
  role="region" aria-label="The input"><${Exact}>${JSON.stringify(value, null, 1)}<//></pre>`;

/** The change of a file, with the lines that stay: they are written too, and the agent may claim
 * that a file has them. The lines of a long one would be shown in part: its texts are whole. */
function Change({ file }) {
  const { path, before, after } = file,
    lines = before.split('\n').length + after.split('\n').length;
  if (lines < MOST_LINES) {
    const change = { ...edited(path, before, after, false, Infinity),
      what: before ? 'changed' : 'written' };
    return html`<${Diff} files=${[change]} isOpen=${true} />`;
  }
  return html`<p><code><${Exact}>${path}<//></code></p>${[['Before', before], ['After', after]]
    .filter(each => each[1]).map(([name, text]) => html`<pre class="exact" tabindex="0"
      role="region"
      aria-label=${`${name}: ${path}`} key=${name}><${Exact}>${text}<//></pre>`)}`;
}

/** All of an input: the command, the changes of files, and what else it has. */
function Input({ request }) {
  const { input, tool_kind, excerpt, input_bytes } = request;
  if (input === null) {
    return html`<pre class="exact" tabindex="0" role="region"
      aria-label="The beginning of the input"
      ><${Exact}>${excerpt}<//>…</pre><p
        class="warn-text">It has ${input_bytes.toLocaleString()} bytes
      and cannot be shown whole: it can only be denied.</p>`;
  }
  const name = { execute: 'command', fetch: 'url' }[tool_kind];
  const isOne = name !== undefined && typeof input[name] === 'string';
  const { [name]: one, ...others } = input, directory = directoryOf(request);
  const { files, rest } = isOne ? { files: [], rest: others } : editsOf(input);
  const { description, ...plain } = rest;
  const isDescribed = isOne && typeof description === 'string';
  const whole = JSON.stringify(input);
  return html`${isDescribed && html`<p dir="auto"><${Exact}>${description}<//></p>`}
    ${isOne && html`<pre class="exact" tabindex="0" role="region" aria-label=${name === 'url'
      ? 'The whole address' : 'The whole command'}>${name === 'command' && html`<span
      class="quiet">${shortPath(directory).replace(/^\.$/,
        rootName)} $ </span>`}<${Exact}>${one}<//></pre>`}
    ${files.map((each, index) => html`<${Change} key=${index} file=${each} />`)}
    <${Json} value=${isDescribed ? plain : rest} />
    ${isOdd(whole) && html`<p class="warn-text">It has characters that cannot be seen.
      They are marked.</p>`}`;
}

/** A plan as Markdown, and as it was written if that leaves out a part of it. */
const PlanText = ({ text }) => html`<div class="plan-text" tabindex="0" role="region"
  aria-label="The plan"><${Text}>${text}<//></div>${isPartly(text) && html`<pre class="exact"
  tabindex="0" role="region" aria-label="The plan as it was written"><${Exact}>${text}<//></pre>`}`;

/** Show a box and give it the focus at once: what is typed before it is drawn would be the letters
 * that answer. */
function write(box) {
  box.closest('[hidden]')?.removeAttribute('hidden');
  box.focus();
}

/** The buttons of a permission. Of several options of one kind each has its own button. */
function Permission({ all, give, isBusy, isSeen, guard }) {
  const [first] = all, box = useRef(null);
  const [id] = useState(first.id); // others may answer the first one while the reason is written
  const [values, set] = useFilled(id);
  const { isWhy = false, why = '', ends = false } = values;
  const many = all.length > 1 ? ` all ${all.length}` : '';
  const isMain = !first.default_to_no, off = isBusy || !isSeen;
  const allows = (kind, words, more, key) => {
    if (!mayAllow(first, kind)) return null;
    const options = optionsOf(first, kind), [only] = options;
    if (options.length < 2) {
      const covers = kind === 'allow_session' && only?.name ? only.name : undefined;
      return html`<${Button} tone=${key === 'y' && isMain ? 'main' : ''} disabled=${off}
        data-key=${key} title=${covers} onClick=${give('allow',
          more)}>${words}<kbd aria-hidden="true">${key}</kbd><//>`;
    }
    return options.map(each => html`<${Button} key=${each.id} disabled=${off}
      onClick=${give('allow', { ...more, option: each.id })}>${words}: <bdi>${each.name || each.id}
      </bdi><//>`);
  };
  const refuse = give(isWhy && ends ? 'cancel' : 'deny',
    () => isWhy && why.trim() ? { message: why.trim() } : {});
  const covered = optionsOf(first, 'allow_session');
  return html`<div class="why-not" hidden=${!isWhy}><textarea class="input" rows="2" dir="auto"
      aria-label="Reason, for the agent" placeholder="What it should do instead" value=${why}
      ref=${box} onInput=${event => set('why', event.target.value)} onKeyDown=${event => {
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) refuse(event);
        if (event.key === 'Escape') { event.stopPropagation(); set('isWhy', false); }
      }} /><${Check} label="End its turn too" value=${ends}
        onChange=${is => set('ends', is)} /></div>
    ${first.default_to_no && html`<p class="note">The agent suggests to refuse it.</p>`}
    ${first.needs_person && html`<p class="note">Only a person may allow it.</p>`}
    ${covered.length === 1 && covered[0].name && mayAllow(first, 'allow_session') && html`<p
      class="note">For the session: <bdi>${covered[0].name}</bdi></p>`}
    <div class="ask-acts">${allows('allow_once', `Allow${many}`, {}, 'y')}
      ${allows('allow_session', 'For the session', { scope: 'session' }, 's')}
      <${Button} tone=${isMain ? 'bad' : 'main'} data-key="n" disabled=${isBusy}
        onClick=${refuse}>${isWhy ? 'Deny with this reason' : `Deny${many}`}<kbd
          aria-hidden="true">n</kbd><//>
      ${!isWhy && html`<${Button} tone="ghost" disabled=${isBusy}
        onClick=${event => {
          if (event.detail && guard()) return;
          set('isWhy', true);
          write(box.current);
        }}>Deny with a reason…<//>`}
    </div>`;
}

/** A plan: read as Markdown, approved as it is or with changes, or sent back with a comment. */
function Plan({ request, give, isBusy, isSeen }) {
  const plan = planOf(request), [values, set] = useFilled(request.id);
  const { text = plan, isEdited = false, comment = '', isBack = false } = values;
  const isChanged = text !== plan, box = useRef(null);
  const off = isBusy || !isSeen || (isChanged && !text.trim());
  const edit = () => isChanged ? { values: { plan: text } } : {};
  const approves = mayAllow(request, 'allow_once'), lasts = mayAllow(request, 'allow_session');
  return html`<textarea class="input" rows="3" dir="auto" value=${comment} hidden=${!isBack}
      aria-label="Comment on the plan" placeholder="What should be different" ref=${box}
      onInput=${event => set('comment', event.target.value)} />
    <div class="ask-acts">
      ${approves && html`<${Button} tone="main" data-key="y" disabled=${off}
        onClick=${give('allow', edit)}>Approve<kbd aria-hidden="true">y</kbd><//>`}
      ${lasts && html`<${Button} data-key="s" disabled=${off}
        onClick=${give('allow', () => ({ ...edit(),
          scope: 'session' }))}>Approve and accept edits<kbd
          aria-hidden="true">s</kbd><//>`}
      ${isBack ? html`<${Button} disabled=${isBusy || !comment.trim()}
          onClick=${give('deny', () => ({ message: comment.trim() }))}>Send the comment<//>`
        : html`<${Button} data-key="n" onClick=${() => {
          set('isBack', true);
          write(box.current);
        }}>Keep planning…<kbd
          aria-hidden="true">n</kbd><//>`}
      ${isBack && html`<${Button} tone="ghost" disabled=${isBusy} onClick=${give('deny')}>Keep
        planning without a comment<//>`}
      ${request.takes_edit && html`<${Button} tone="ghost"
        onClick=${() => set('isEdited', !isEdited)}
        >${isEdited ? 'Show the plan' : 'Edit the plan'}<//>`}</div>`;
}

/** What the agent asks, in questions, a form or a login. */
function Asked({ request, give, isBusy, guard }) {
  const { id, kind, input, title } = request, [values, set] = useFilled(id);
  const questions = questionsOf(request), fields = fieldsOf(request), url = input?.url;
  const isLogin = kind === 'login', answers = answersOf(questions, values), form = useRef(null);
  const isReady = input !== null && (!questions.length || answers);
  const accept = give('allow', () => {
    if (questions.length) return { values: answers };
    if (!fields) return {};
    if (form.current && !form.current.reportValidity()) throw new Error('A field is not right yet');
    const found = valuesOf(fields, values);
    return Object.keys(found).length ? { values: found } : {};
  });
  const verb = isLogin ? input?.command ? 'Log in' : 'I have logged in'
    : url ? 'Done' : 'Answer';
  return html`<form ref=${form} class="asked" onSubmit=${event => { event.preventDefault();
      if (isReady) accept({ detail: 0 }); }}>
    ${!questions.length && title && html`<p dir="auto"><b><${Exact}>${title}<//></b></p>`}
    ${questions.map((each, index) => html`<${Question} key=${each.text} id=${id} index=${index}
      question=${each} value=${values[each.text]} onChange=${value => set(each.text, value)} />`)}
    ${fields?.map(each => html`<${FormField} key=${each.name} id=${id} field=${each}
      value=${values[each.name]} onChange=${value => set(each.name, value)} />`)}
    ${typeof url === 'string' && html`<p>It wants you to open this address. Open it only if you
      trust it.</p><pre class="exact" tabindex="0" role="region" aria-label="The whole address"
      ><${Exact}>${url}<//></pre>${/^https?:\/\//.test(url) && !isOdd(url) && html`<p><a href=${url}
      target="_blank" rel="noopener noreferrer">Open the address</a></p>`}`}
    ${isLogin && input?.command && html`<p>It runs this in the terminal <${Link}
      to=${`t/${input.terminal}`}>${input.terminal}<//>, and goes on when you are logged in:</p>
      <pre class="exact" tabindex="0" role="region" aria-label="The whole command"
      ><${Exact}>${input.command}<//></pre>`}
    <div class="ask-acts"><${Button} tone="main" disabled=${isBusy || !isReady}
      onClick=${accept}>${verb}<//><${Button} tone="bad" disabled=${isBusy}
      onClick=${give('deny')}>${isLogin ? 'Not now' : 'Decline'}<//>
      ${!isLogin && request.turn && html`<${Button} tone="ghost" disabled=${isBusy}
        onClick=${give('cancel')}>Decline and end the turn<//>`}</div></form>`;
}

/** A request, whole, with its answers. `all` are alike: they are answered together.
 * `guard()` is true for a moment after it moved; `isHere`: its agent is on the page already. */
export function Body({ all, isHere, guard = () => false, onDone }) {
  const [first] = all, [give, isBusy, problem] = useAnswer(all, guard, onDone);
  const [end, isSeen] = useSeen(all.map(each => each.id).join());
  const [values, set] = useFilled(first.id), names = [...new Set(all.map(asker))];
  const isPermission = first.kind === 'permission', about = first.title !== first.tool
    && isPermission && !isPlan(first) && first.title !== first.input?.command ? first.title : '';
  return html`<div class="ask-body">
    ${!isHere && html`<p class="ask-said"><bdi class="name">${names[0]}</bdi>${names.length > 1
      && ` and ${names.length - 1} more`} ${names.length > 1 ? sentence(first).replace(/^(\w+)s /,
      '$1 ') : sentence(first)}${isYesNo(first) && first.tool && html` <span class="note">with${' '}
      <bdi>${first.tool}</bdi></span>`}</p>`}
    ${isHere && isYesNo(first) && first.tool && html`<p class="note">With <bdi>${first.tool}</bdi>
      </p>`}
    ${about && html`<p dir="auto"><${Exact}>${about}<//></p>`}
    ${first.reason && html`<p dir="auto" class="quiet"><${Exact}>${first.reason}<//></p>`}
    ${(isYesNo(first) || first.input === null) && html`<${Input} request=${first} />`}
    ${isPlan(first) && first.input !== null && html`${values.isEdited ? html`<textarea
      class="input mono" dir="auto" rows=${(values.text ?? planOf(first)).split('\n').length + 1}
      aria-label="The plan, to change" value=${values.text ?? planOf(first)}
      onInput=${event => set('text', event.target.value)} />`
      : html`<${PlanText} text=${values.text ?? planOf(first)} />`}<${Json}
      value=${besidePlan(first)} />`}
    ${all.length > 1 && html`<p class="who-all">${all.map(each => html`<${Link} key=${each.id}
      to=${placeOf(each)}><bdi>${asker(each)}</bdi><//> `)}</p>`}
    <span class="ask-end" ref=${end}></span>
    ${problem && html`<p class="bad-text" role="alert">${problem}</p>`}
    ${isReadOnly.value ? null : isYesNo(first) ? html`<${Permission} all=${all} give=${give}
        isBusy=${isBusy} isSeen=${isSeen} guard=${guard} />`
      : isPlan(first) ? html`<${Plan} request=${first} give=${give} isBusy=${isBusy}
        isSeen=${isSeen} />`
        : html`<${Asked} request=${first} give=${give} isBusy=${isBusy} guard=${guard} />`}
    ${!isHere && all.length === 1 && html`<p class="ask-at"><${Link} to=${placeOf(first)}>Open${' '}
      <bdi>${asker(first)}</bdi><//></p>`}</div>`;
}
