// Workflows: programs that coordinate agents; their runs, step by step.
import { html, useEffect, useState } from '../lib.js';
import { call, connection, isReadOnly, requests, workflows } from '../store.js';
import {
  Button, Copy, Empty, Field, Form, Head, Link, Section, Select, State, Time, confirm, now, seconds,
  useStill, when,
} from '../ui.js';
import { actions } from '../actions.js';
import { draft } from '../drafts.js';
import { open, say } from '../overlay.js';
import { at, go, query } from '../place.js';
import { RUN, WORD } from '../state.js';
import { RequestList } from '../requests.js';

const STEP = 50, MOST = 1000, MOST_STEPS = 3000;
const ago = moment => when(moment) === 'now' ? 'just now' : `${when(moment)} ago`;
const byHandle = sender => sender.replace(/^agent:/, '').replace(/^human$/, 'you');
const read = text => { try { return JSON.parse(text); } catch { return null; } };

/** Whether a parameter takes text as it is typed: `str | None`, but not `dict[str, str | None]`. */
const isText = type => !type || outer(type).split('|').some(each => each.trim() === 'str');
const outer = type => {
  const less = type.replace(/\[[^[\]]*\]/g, '');
  return less === type ? type : outer(less);
};
const isNumber = type => /^(int|float)( \| None)?$/.test(type ?? '');
/** The texts of a Literal that has nothing but texts. */
const choicesOf = type => {
  const found = /^(?:typing\.)?Literal\[((?:'[^']*'|"[^"]*"|, )+)\]$/.exec(type ?? '');
  return found && [...found[1].matchAll(/'([^']*)'|"([^"]*)"/g)].map(each => each[1] ?? each[2]);
};

/** Return the value of a parameter; undefined for one that is left out. */
function valueOf({ name, type, required }, text) {
  if (text === undefined || (text === '' && !(required && isText(type)))) return undefined;
  if (type === 'bool') return text === 'true';
  if (choicesOf(type) || isText(type)) return text;
  try { return JSON.parse(text); } catch { throw new Error(`${name}: the value is not JSON`); }
}

/** An argument of an earlier run, as one types it. */
function shownOf({ type }, value) {
  if (value === null && (isText(type) || isNumber(type))) return '';
  return typeof value === 'string' && (isText(type) || choicesOf(type)) ? value
    : JSON.stringify(value);
}

function Argument({ of: { name, type, required }, value = '', onInput }) {
  const label = html`${name}<span class="quiet">${type ? ` ${type}` : ''}${required ? ''
    : ' (optional)'}</span>`;
  const choices = type === 'bool' ? [['true', 'yes'], ['false', 'no']]
    : choicesOf(type)?.map(each => [each, each]);
  if (choices) {
    return html`<${Field} label=${label}><${Select} of=${[['', '—'], ...choices]} value=${value}
      required=${required} onChange=${onInput} /><//>`;
  }
  const isPlain = isText(type) || isNumber(type), given = { class: 'input', value,
    autocomplete: 'off',
    required: required && !isText(type), placeholder: isPlain ? '' : 'JSON',
    onInput: event => onInput(event.target.value) };
  return html`<${Field} label=${label}>${isText(type) ? html`<textarea ...${given} dir="auto"
    rows=${Math.min(8, value.split('\n').length)} />` : html`<input ...${given}
    type=${isNumber(type) ? 'number' : 'text'} step=${type?.startsWith('float') ? 'any'
      : null} />`}<//>`;
}

/** Plugins that are not trusted, or do not load: they run with the person's rights. */
function Problems({ list, onTrust }) {
  if (!list.length) return null;
  const ask = () => confirm({ title: 'Trust the plugins?', verb: 'Trust them',
    text: html`<p>The daemon
    runs plugins with your rights. Read these files, as they are now, before you trust them:</p><ul
    class="files">${list.map(each => html`<li
      key=${each.file}><code>${each.file}</code></li>`)}</ul>`,
  act: async () => {
    const { files } = await call('workflow_trust');
    say(files.length ? `Trusted: ${files.join(', ')}` : 'There is no plugin');
    onTrust?.();
  } });
  return html`<div class="conflict"><p>Workflows of these files cannot run:</p><ul class="files">
    ${list.map(each => html`<li key=${each.file}><code>${each.file}</code> <span class="note"
      dir="auto">
      ${each.problem}</span></li>`)}</ul>${!isReadOnly.value && html`<div
        class="ask-acts"><${Button} small
      onClick=${ask}>Trust the plugins…<//></div>`}</div>`;
}

/** Run a workflow, or one again: `run` has its id, its name, and its arguments if all are known.
 * @param {{onClose: () => void, name?: string,
 *   run?: {id: string, name: string, given: Record<string, any> | null} | null}} props */
function Run({ onClose, run = null, name: first = run?.name ?? '' }) {
  const [found, setFound] = useState(null), [name, setName] = useState(first);
  const isAgain = run?.name === name, given = isAgain ? run.given ?? {} : {};
  const one = draft(`run/${isAgain ? run.id : name}`);
  useEffect(() => {
    call('workflow_list', { limit: 0 }).then(list => {
      setFound(list);
      setName(was => was || (list.workflows[0]?.name ?? ''));
    }, say);
  }, []);
  const known = found?.workflows.find(each => each.name === name);
  const before = Object.fromEntries((known?.parameters ?? []).filter(each =>
    Object.hasOwn(given, each.name)).map(each => [each.name, shownOf(each, given[each.name])]));
  const values = one.value ?? before;
  const act = async () => {
    // What was not changed is given as it was: in a text box 3 and "3" are the same.
    const entries = known.parameters.map(each => [each.name,
      Object.hasOwn(given, each.name) && values[each.name] === before[each.name] ? given[each.name]
        : valueOf(each, values[each.name])]);
    const kwargs = Object.fromEntries(entries.filter(each => each[1] !== undefined));
    const { workflow_id } = await call('run_workflow', { name, kwargs });
    one.value = null;
    go(at('w', workflow_id));
  };
  return html`<${Form} title="Run a workflow" verb="Run" act=${act} onClose=${onClose}
    disabled=${!known}>
    ${found && html`<${Problems} list=${found.problems} onTrust=${() => open(Run, { name,
      run })} />`}
    ${isAgain && !run.given && html`<p class="note">The arguments of that run are too long to be
      shown: they are not filled in.</p>`}
    ${found && !found.workflows.length && html`<p
      class="quiet">No plugin has a workflow that can be run.
      Plugins are files in .aegis/plugins of the project.</p>`}
    ${found?.workflows.length > 0 && html`<${Field} label="Workflow"><select
      class="input" data-first
      onChange=${event => setName(event.target.value)}>${found.workflows.map(each => html`<option
      key=${each.name} value=${each.name}
        selected=${each.name === name}>${each.name}</option>`)}</select>
      <//>${known?.doc && html`<p class="quiet" dir="auto">${known.doc}</p>`}
      ${known?.parameters.map(each => html`<${Argument} key=${each.name} of=${each}
      value=${values[each.name]} onInput=${value => { one.value = { ...one.peek() ?? before,
        [each.name]: value }; }}
      />`)}`}<//>`;
}
export const runWorkflow = (name = '') => open(Run, { name });

/** The steps of a run, the first thousands of them. */
async function readSteps(id) {
  const all = [];
  for (let isOver = false; !isOver && all.length < MOST_STEPS;) {
    const after = all.at(-1)?.number ?? 0;
    const { result, more } = await call('workflow_steps', { workflow_id: id, after, limit: 500 });
    all.push(...result);
    isOver = !more || !result.length;
  }
  return all;
}

/** A run with the end of its log, and its steps; read again when it changes. */
function useRun(id) {
  const [run, setRun] = useState(null), [steps, setSteps] = useState([]);
  const [problem, setProblem] = useState(''), { state } = connection.value;
  const change = workflows.value.get(id);
  useEffect(() => {
    if (state !== 'up') return undefined;
    let isGone = false;
    const bad = error => { if (!isGone && error.code !== 'lost') setProblem(error.message); };
    call('workflow_status', { workflow_id: id }).then(found => {
      if (!isGone) { setRun(found); setProblem(''); }
    }, bad);
    readSteps(id).then(found => { if (!isGone) setSteps(found); }, bad);
    return () => { isGone = true; };
  }, [id, state, change]);
  return [run, steps, problem];
}

const KIND = { running: 'works', completed: 'done', failed: 'failed', cancelled: 'ended',
  interrupted: 'stalled' };
const plain = text => typeof read(text) === 'string' ? read(text) : text;

function Step({ step, begin, length, end, isAsking }) {
  const { label, kind, state, handle, started, ended, result, error, is_cut } = step;
  const [isOpen, setOpen] = useState(false), shape = isAsking ? 'asks' : KIND[state] ?? 'idle';
  const from = started ? Date.parse(started) : null, to = ended ? Date.parse(ended) : end;
  const text = error || (result !== null && result !== 'null' ? plain(result) : '');
  return html`<li class=${`step is-${shape}`}><button type="button" class="step-line"
      aria-expanded=${isOpen} disabled=${!text && !handle} onClick=${() => setOpen(!isOpen)}>
      <${State} of=${shape} /><bdi class="cut" title=${label}>${label || kind}</bdi><bdi
      class=${`note cut ${error ? 'bad-text' : ''}`}>${text.split('\n')[0]}</bdi><svg class="lane"
      viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">${from !== null
        && html`<rect
      class=${`is-${shape}`} x=${(from - begin) / length * 100} y="1" height="6"
      width=${Math.max(0.7, (to - from) / length * 100)} />`}</svg><span class="num note">
      ${from === null ? '' : seconds((to - from) / 1000)}</span></button>
    ${isOpen && html`<div class="step-body">${handle && ['spawn', 'send', 'drain', 'close']
      .includes(kind) && html`<p><${Link} class="link" to=${at('a',
        handle)}>Open <bdi>${handle}</bdi>
      <//></p>`}${text && html`<pre class=${`exact ${error ? 'bad-text' : ''}`} tabindex="0"
        role="region"
      aria-label=${`Outcome of ${label}`}>${text}</pre>`}${is_cut && html`<p
        class="note">This is only
      its beginning.</p>`}</div>`}</li>`;
}

/** The steps of a run on one axis of time. */
function Steps({ steps, run, isAsking }) {
  const end = run.ended ? Date.parse(run.ended) : Math.max(now.value, Date.now());
  const starts = steps.filter(each => each.started).map(each => Date.parse(each.started));
  const begin = Math.min(Date.parse(run.started), ...starts), length = Math.max(1, end - begin);
  return html`<ol class="gantt" aria-label="Steps">${steps.map(each => html`<${Step}
    key=${each.number} step=${each} begin=${begin} length=${length} end=${end}
    isAsking=${isAsking && each.kind === 'ask_human' && each.state === 'running'} />`)}</ol>`;
}

const Facts = ({ of }) => html`<dl class="facts">${of.filter(each => each[1]).map(([name, value]) =>
  html`<dt key=${name}>${name}</dt><dd dir="auto">${value}</dd>`)}</dl>`;

/** @param {{id: string}} props */
export function Workflow({ id }) {
  const [run, steps, problem] = useRun(id), asks = [...requests.value.values()]
    .filter(each => each.workflow === id);
  if (!run) return problem ? html`<${Empty} title=${problem} />` : html`<p
    class="wait">Loading…</p>`;
  const kind = asks.length && run.status === 'running' ? 'asks' : RUN[run.status] ?? 'idle';
  const given = read(run.kwargs), isOver = run.status !== 'running', mayResume = ['failed',
    'cancelled']
    .includes(run.status);
  const act = command => () => call(command, { workflow_id: id });
  const cancel = () => confirm({ title: `Cancel ${run.name}?`, verb: 'Cancel the run', tone: 'bad',
    text: 'Its process and the agents that it started are ended. '
      + 'Finished steps are kept: it can be resumed.',
    act: act('workflow_cancel') });
  return html`<${Head} state=${kind} title=${run.name} note=${html`${isOver ? run.status
    : WORD[kind]} ·
      started by <bdi> ${byHandle(run.sender)}</bdi>, ${ago(run.started)}`}>${!isReadOnly.value
      && html`${run.status === 'running' && html`<${Button} small tone="bad"
        onClick=${cancel}>Cancel<//>`}
      ${mayResume && html`<${Button} small
        onClick=${act('workflow_resume')}>Resume<//><${Button} small
      onClick=${act('workflow_retry')}>Retry from the start<//>`}
      ${isOver && html`<${Button} small onClick=${() => open(Run, { run: { id, name: run.name,
        given } })}>Run again…<//>`}`}<//>
    <div class="page narrow">${asks.length > 0 && html`<section class="docked flat"
      aria-label="Asks you">
      <${RequestList} list=${asks} isHere /></section>`}
    ${problem && html`<p class="bad-text" role="alert">${problem}</p>`}
    ${given && html`<p class="inputs">${Object.entries(given).map(([name, value]) => html`<span
      key=${name}><span class="quiet">${name}</span> <bdi>${typeof value === 'string' ? value
      : JSON.stringify(value)}</bdi></span>`)}</p>`}
    ${run.error && html`<${Section} title="Error"><pre class="exact bad-text" tabindex="0"
      role="region"
      aria-label="The error">${run.error}</pre><//>`}
    ${run.result !== null && html`<${Section} title="Result" more=${html`<${Copy} text=${run.result}
      label="Copy the result" />`}><pre class="exact" tabindex="0" role="region"
        aria-label="The result"
      >${plain(run.result)}</pre><//>`}
    ${steps.length > 0 && html`<${Section} title="Steps" count=${steps.length}><${Steps}
      steps=${steps} run=${run} isAsking=${asks.length > 0} /><//>`}
    <${Facts} of=${[['Problem', run.problem], ['Runs now', !isOver && run.current.join(', ')],
      ['Checkpoint', run.checkpoint], ['Calls', run.calls ? `${run.calls} ended` : ''],
      ['Started', run.runs > 1 ? `${run.runs} times` : ''], ['Key', run.key],
      ['Arguments', !given && run.kwargs]]} />
    <${Section} title="Log" more=${run.log && html`<${Copy} text=${run.log}
      label="Copy the log" />`}>
      <pre class="exact log" tabindex="0" role="region" aria-label="The log">${run.log
      || 'Nothing yet.'}</pre><//></div>`;
}

export function Workflows() {
  const [found, setFound] = useState(null), [limit, setLimit] = useState(STEP);
  const [turn, setTurn] = useState(0);
  const { state } = connection.value, live = workflows.value;
  useEffect(() => {
    let isGone = false;
    if (state === 'up') {
      call('workflow_list', { limit }).then(list => { if (!isGone) setFound(list); },
        error => { if (!isGone && error.code !== 'lost') say(error); });
    }
    return () => { isGone = true; };
  }, [state, limit, live, turn]);
  const asks = new Set([...requests.value.values()].map(each => each.workflow));
  const hasMore = found?.more && found.result.length >= limit && limit < MOST;
  const [shown, still] = useStill((found?.result ?? []).map(each =>
    live.get(each.workflow_id) ?? each),
    each => each.workflow_id);
  const start = !isReadOnly.value && html`<${Button} small tone="main"
    onClick=${() => runWorkflow()}
    >Run a workflow<//>`;
  return html`<${Head} title="Workflows">${start}<//><div class="page narrow">
    ${found && html`<${Problems} list=${found.problems} onTrust=${() => setTurn(turn + 1)} />`}
    ${found && !shown.length && !found.workflows.length && html`<${Empty}
      title="No workflow yet. It is a
      program that coordinates agents: a Python file in .aegis/plugins of the project." />`}
    ${shown.length > 0 && html`<${Section} title="Runs"><ul class="rows" aria-label="Runs"
      ...${still}>
      ${shown.map(each => html`<li class=${`row tall ${each.gone ? 'gone' : ''}`}
        key=${each.workflow_id}><${Link} class="row-link" to=${at('w', each.workflow_id)}><${State}
        of=${asks.has(each.workflow_id) ? 'asks' : RUN[each.status] ?? 'idle'} /><b
          class="name who">
        ${each.name}</b><bdi class="cut quiet">${each.problem || each.error
          || each.current.join(', ')
        || each.checkpoint || each.kwargs}</bdi><//><span
          class="note opt">${each.status}</span><${Time}
        at=${each.ended ?? each.started} /></li>`)}</ul>
      ${hasMore && html`<${Button} tone="ghost all"
        onClick=${() => setLimit(Math.min(MOST, limit * 2))}>Show older<//>`}
      ${found.more && !hasMore && html`<p class="note">Older ones are in <${Link} class="link"
        to=${`history${query({ kind: 'run' })}`}>the history<//>.</p>`}<//>`}
    ${found?.workflows.length > 0 && html`<${Section} title="Can be run"><ul class="rows"
      aria-label="Can be run">${found.workflows.map(each => html`<li class="row tall"
        key=${each.name}>
        <b class="name who">${each.name}</b><bdi class="cut quiet">${each.doc}</bdi><span
          class="gap"></span>
        <span class="note opt">${each.file}:${each.line}</span>${!isReadOnly.value
          && html`<${Button} small
        label=${`Run ${each.name}`}
          onClick=${() => runWorkflow(each.name)}>Run…<//>`}</li>`)}</ul><//>`}
    </div>`;
}

actions(() => isReadOnly.value ? [] : [
  { text: 'Run a workflow', group: 'Workflow', words: 'start plugin', act: () => runWorkflow() },
  ...[...workflows.value.values()].filter(each => each.status === 'running').map(each => (
    { text: `Cancel the run ${each.name}`, group: 'Workflow', of: at('w', each.workflow_id),
      act: () => confirm({ title: `Cancel ${each.name}?`, verb: 'Cancel the run', tone: 'bad',
        text: 'Finished steps are kept: it can be resumed.',
        act: () => call('workflow_cancel', { workflow_id: each.workflow_id }) }) })),
]);
