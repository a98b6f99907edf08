// The dialogs of one terminal: signal, size, subscription, name of the tab, link, close.
import { html, useState } from '../lib.js';
import { go, place, set, settings } from '../place.js';
import { agents, call, terminals } from '../store.js';
import { Button, Check, Field, Form, Input, Select } from '../ui.js';

const SIGNALS = [
  ['INT', 'Interrupt', 'as Ctrl C'], ['TERM', 'Terminate', 'asks it to end'],
  ['KILL', 'Kill', 'ends it at once; what it has not saved is lost'],
  ['HUP', 'Hang up', 'as if the terminal were closed'],
  ['QUIT', 'Quit', 'ends it with a core dump'],
  ['TSTP', 'Suspend', 'as Ctrl Z'], ['STOP', 'Stop', 'pauses it'],
  ['CONT', 'Continue', 'after a pause'],
  ['USR1', 'User 1', 'its own meaning'], ['USR2', 'User 2', 'its own meaning'],
];

export function SendSignal({ name, onClose }) {
  const [signal, setSignal] = useState('TERM');
  // The signal is for what ran when it was chosen, never for what began meanwhile.
  const [running] = useState(() => terminals.peek().get(name)?.running);
  const act = async () => {
    const now = terminals.peek().get(name)?.running;
    if (!running && now) throw new Error(`${now.cmd ?? 'A command'} has begun meanwhile.`);
    await call('term_signal', { name, signal, ...running ? { seq: running.seq } : {} });
  };
  return html`<${Form} title="Send a signal" verb="Send" act=${act} onClose=${onClose}>
    <p class="note">${running ? html`To <code dir="auto">${running.cmd ?? 'what runs'}</code>`
      : 'Nothing runs: the shell itself gets it.'}</p>
    <fieldset class="signals"><legend class="label">Signal</legend>
    ${SIGNALS.map(([id, words, note]) => html`<label class="check" key=${id}><input type="radio"
      name="signal" checked=${signal === id} data-first=${signal === id ? '' : null}
      onChange=${() => setSignal(id)} /><span>${words} <span
        class="note">${note}</span></span></label>`)}
    </fieldset><//>`;
}

export function SetSize({ session, onClose }) {
  const { size } = session.shown.value;
  const [cols, setCols] = useState(String(size?.cols ?? 80));
  const [rows, setRows] = useState(String(size?.rows ?? 24));
  const act = async () => session.resize({ cols: Number(cols), rows: Number(rows) });
  const number = (value, setValue, most) => html`<input class="input" type="number" min="2"
    max=${most}
    required value=${value} onInput=${event => setValue(event.target.value)} />`;
  const fit = () => { session.resize(null); onClose(); };
  return html`<${Form} title="Size" verb="Set the size" act=${act} onClose=${onClose}
    more=${html`<${Button} onClick=${fit}>Fit to this window<//>`}>
    <p class="note">All who look at this terminal see it in this size.</p>
    <div class="two"><${Field} label="Columns">${number(cols, setCols, 1000)}<//>
    <${Field} label="Rows">${number(rows, setRows, 1000)}<//></div><//>`;
}

export function Subscribe({ name, onClose }) {
  const [who, setWho] = useState('human'), [pattern, setPattern] = useState('');
  const [onlyFailures, setOnly] = useState(false);
  const all = terminals.value.get(name)?.subscribers ?? [], isIn = all.includes(who);
  const given = { name, from_handle: who };
  const act = () => call('term_subscribe', {
    ...given, only_failures: onlyFailures, ...pattern ? { pattern } : {},
  });
  const end = () => call('term_unsubscribe', given);
  const handles = [...agents.value.values()].map(each => [each.handle, each.handle]);
  return html`<${Form} title="Messages of ended commands" verb=${isIn ? 'Change' : 'Subscribe'}
    act=${act} onClose=${onClose} more=${isIn && html`<${Button} onClick=${end}>Unsubscribe<//>`}>
    <p class="note">Whenever a command of somebody else ends here, a message is sent.
      ${all.length > 0 && html` Subscribed: <bdi>${all.map(nameOf).join(', ')}</bdi>.`}</p>
    <${Field} label="To"><${Select} label="To" value=${who} onChange=${setWho}
      of=${[['human', 'You'], ...handles]} /><//>
    <${Field} label="Only commands that match" note="A regular expression; empty: all.">
      <${Input} value=${pattern} onInput=${setPattern} /><//>
    <${Check} label="Only failures" value=${onlyFailures} onChange=${setOnly} /><//>`;
}
const nameOf = handle => handle === 'human' ? 'you' : handle;

export function RenameTab({ name, onClose }) {
  const [label, setLabel] = useState(settings.value.tabNames[name] ?? '');
  const act = async () => {
    const { [name]: _, ...rest } = settings.value.tabNames;
    set({ tabNames: label.trim() ? { ...rest, [name]: label.trim() } : rest });
  };
  return html`<${Form} title="Rename the tab" verb="Rename" act=${act} onClose=${onClose}>
    <${Field} label="Name of the tab" note=${`Only in this browser; the terminal stays ${name}.`}>
      <${Input} value=${label} onInput=${setLabel} placeholder=${name} data-first
        maxlength="60" /><//><//>`;
}

/** Close a terminal; what runs there is said first. */
export function CloseTerminal({ name, onClose }) {
  const [purge, setPurge] = useState(false), info = terminals.value.get(name);
  const act = async () => {
    const { leftover } = await call('term_close', { name, purge });
    if (leftover.length) throw new Error(`Closed, but these did not end: ${leftover.join(', ')}`);
    if (place.value.split('?')[0] === `t/${encodeURIComponent(name)}`) go('terminals');
  };
  return html`<${Form} title=${`Close the terminal ${name}?`} verb=${purge
    ? 'Close and delete' : 'Close the terminal'}
    tone="bad" act=${act} onClose=${onClose}>
    <p>${!info ? 'It is closed already.' : info.running ? html`<code dir="auto">${info.running.cmd
      ?? 'A command'}</code> runs there: it ends, and so does everything that was started there.`
      : 'Nothing runs in front there. Everything that was started there ends.'}</p>
    <${Check} label="Delete its history too" value=${purge} onChange=${setPurge}
      note=${purge ? 'Its commands and their output are lost.'
        : 'Otherwise it can be read, and continued under the same name.'} /><//>`;
}
