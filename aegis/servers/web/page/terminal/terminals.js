// The terminals of the project, as a list.
import { html, useState } from '../lib.js';
import { open } from '../overlay.js';
import { at, beside, go, settings } from '../place.js';
import { terminalState } from '../state.js';
import { loaded, terminals } from '../store.js';
import {
  Button, Choice, Empty, Head, Link, Menu, Name, State, Time, usePhone, useStill,
} from '../ui.js';
import { ShareLink } from '../rest/access.js';
import { CloseTerminal, RenameTab, SendSignal } from './dialogs.js';
import { NewTerminal } from './new.js';
import { interrupt } from './run.js';

const ONLY = [['all', 'All'], ['asks', 'Waiting'], ['works', 'Working'], ['rest', 'Ready']];
const GROUP = { asks: 'asks', works: 'works', stalled: 'asks', failed: 'rest', done: 'rest',
  idle: 'rest' };

const items = each => {
  const { name } = each;
  return [
    { text: 'Open beside', key: 'Ctrl Enter', act: () => beside(at('t', name)) },
    { text: 'Interrupt', act: () => interrupt(name) },
    { text: 'Send a signal', act: () => open(SendSignal, { name }) },
    { text: 'Rename the tab', act: () => open(RenameTab, { name }) },
    { text: 'Share a read-only link',
      act: () => open(ShareLink, { subject: `terminal:${name}` }) },
    '-',
    { text: 'Close the terminal', tone: 'bad', act: () => open(CloseTerminal, { name }) },
  ];
};

export function Terminals() {
  const [word, setWord] = useState(''), [only, setOnly] = useState('all');
  const all = [...terminals.value.values()].map(each => ({ ...each, shown: terminalState(each) }));
  const wanted = all.filter(each => (only === 'all' || GROUP[each.shown.kind] === only)
    && `${each.name} ${settings.value.tabNames[each.name] ?? ''} ${each.cwd} ${each.shown.what}`
      .toLowerCase().includes(word.toLowerCase()))
    .sort((a, b) => a.name.localeCompare(b.name));
  const [rows, still] = useStill(wanted, each => each.name), isPhone = usePhone();
  const counts = Object.fromEntries(ONLY.map(([id]) => [id, id === 'all' ? all.length
    : all.filter(each => GROUP[each.shown.kind] === id).length]));
  // On a phone, More has the two other pages.
  return html`<${Head} title="Terminals">${!isPhone && html`<${Button} small
      onClick=${() => go('broadcast')}>Run on several<//><${Button} small
      onClick=${() => go('workspaces')}>Workspaces<//>`}
      <${Button} tone="main" small icon="plus"
        onClick=${() => open(NewTerminal)}>New terminal<//><//>
    <div class="page"><div class="filters"><input class="input" type="search" placeholder="Filter"
      aria-label="Filter terminals" value=${word} onInput=${event => setWord(event.target.value)} />
      <${Choice} label="State" of=${ONLY} value=${only} onChange=${setOnly}
        counts=${counts} /></div>
    ${all.length === 0 && loaded.value.has('terminals') ? html`<${Empty}
      title="No terminal is open.">
        <${Button} tone="main" onClick=${() => open(NewTerminal)}>New terminal<//><//>`
      : rows.length === 0 && html`<${Empty} title="None matches." />`}
    ${rows.length > 0 && html`<ul class="rows" aria-label="Terminals" ...${still}>${rows.map(each =>
      html`<${Row} key=${each.name} each=${each} />`)}</ul>`}</div>`;
}

function Row({ each }) {
  const { name, shown, cwd, node, last_cmd_at: last, started_at: started, gone } = each;
  const label = settings.value.tabNames[name];
  return html`<li class="row tall ${gone ? 'gone' : ''}"><${Link} class="row-link" to=${at('t',
    name)}>
      <${State} of=${shown.kind} word=${shown.word} />
      <span class="two-lines"><${Name}>${label ? `${label} (${name})` : name}<//>
      <span class="cut note">${shown.what ? html`<code
        dir="auto">${shown.what}</code> · ` : ''}<bdi>${cwd}
      </bdi>${node !== 'local' ? ` · on ${node}` : ''}</span></span><//>
    <span class="note">${shown.word}</span><${Time} at=${last ?? started} />
    <${Menu} small label=${`What to do with ${name}`} items=${items(each)} /></li>`;
}
