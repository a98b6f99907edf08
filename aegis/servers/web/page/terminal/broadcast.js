// One command on several terminals, and how it ended on each.
import { draft } from '../drafts.js';
import { html, useState } from '../lib.js';
import { at } from '../place.js';
import { terminalState } from '../state.js';
import { call, terminals } from '../store.js';
import { Button, Empty, Field, Head, Input, Link, Name, Section, State, seconds } from '../ui.js';
import { endOf, isFailed, isOpen } from './records.js';

const MOST = 64;

export function Broadcast() {
  const kept = draft('broadcast'), now = { cmd: '', timeout: '50', names: [], ...kept.value };
  const put = change => { kept.value = { ...now, ...change }; };
  const [outcomes, setOutcomes] = useState(null), [isBusy, setBusy] = useState(false);
  const [why, setWhy] = useState('');
  const all = [...terminals.value.values()].sort((a, b) => a.name.localeCompare(b.name));
  const names = now.names.filter(each => terminals.value.has(each));
  const ready = all.filter(each => each.state === 'idle').map(each => each.name).slice(0, MOST);
  const run = async event => {
    event.preventDefault();
    if (isBusy || !names.length || !now.cmd.trim()) return;
    setBusy(true); setWhy(''); setOutcomes(null);
    const asked = { names, cmd: now.cmd, timeout: Number(now.timeout) || 50 };
    try { setOutcomes((await call('term_broadcast', asked)).result); } catch (error) {
      setWhy(error.message);
    } finally { setBusy(false); }
  };
  const pick = (name, isIn) => put({
    names: isIn ? [...names, name].slice(0, MOST) : names.filter(each => each !== name),
  });
  return html`<${Head} title="Run on several terminals" />
    <div class="page narrow"><form onSubmit=${run} class="stack">
      <fieldset class="pick-many"><legend class="label">Terminals</legend>
        ${all.length === 0 && html`<${Empty} title="No terminal is open." />`}
        ${all.map(each => { const { kind, word, what } = terminalState(each); return html`<label
          class="check" key=${each.name}><input type="checkbox" checked=${names.includes(each.name)}
          onChange=${event => pick(each.name, event.target.checked)} />
          <${State} of=${kind} word=${word} /><${Name}>${each.name}<//>
          <span class="note cut">${kind === 'works' ? what : word}</span></label>`; })}
        ${all.length > 1 && html`<div class="acts"><${Button} small
          onClick=${() => put({ names: ready })}>
          All that are ready<//><${Button} small
            onClick=${() => put({ names: [] })}>None<//></div>`}
      </fieldset>
      <${Field} label="Command"><textarea class="input mono" rows="2" spellcheck=${false}
        value=${now.cmd} onInput=${event => put({ cmd: event.target.value })}></textarea><//>
      <${Field} label="Seconds at most"
        note="A command that is slower continues; its end is in the terminal.">
        <${Input} type="number" min="1" max="86400" value=${now.timeout}
          onInput=${value => put({ timeout: value })} /><//>
      ${why && html`<p class="why" role="alert" dir="auto">${why}</p>`}
      <button class="btn main" disabled=${isBusy || !names.length || !now.cmd.trim()}>
        ${isBusy ? `It runs on ${names.length}…` : `Run on ${names.length}`}</button></form>
    ${outcomes && html`<${Section} title="Outcomes" count=${outcomes.length}><ul class="rows"
      aria-label="Outcomes">${outcomes.map(each => html`<${Outcome} key=${each.name}
        each=${each} />`)}
      </ul><//>`}</div>`;
}

function Outcome({ each: { name, record, error } }) {
  const kind = error ? 'failed' : isOpen(record) ? (record.needs_input ? 'asks' : 'works')
    : isFailed(record) ? 'failed' : 'done';
  const words = error ? '' : record.needs_input ? 'waits for input'
    : isOpen(record) ? 'still runs' : endOf(record) || 'exit 0';
  const place = at('t', name, record ? { seq: String(record.seq) } : null);
  return html`<li class="outcome"><div class="row"><${State} of=${kind} /><${Link} class="link"
      to=${place}><${Name}>${name}<//><//><span class="note cut">${error ?? words}</span>
      <span class="gap"></span><span class="note num">${seconds(record?.duration_s)}</span></div>
    ${record && (record.stdout || record.stderr) && html`<pre
      class="out">${record.stdout}${record.stderr}
      </pre>`}</li>`;
}
