// The settings of this browser; each holds at once.
import { html, signal, useEffect, useState } from '../lib.js';
import { actions } from '../actions.js';
import * as notices from '../notify.js';
import { open, say } from '../overlay.js';
import { set, settings } from '../place.js';
import { push, readPush, subscribe, unsubscribe } from '../push.js';
import { connection, isReadOnly } from '../store.js';
import { EDITORS, editorAddress } from '../terminal/links.js';
import { Button, Check, Choice, Head, Input, Section, Select } from '../ui.js';
import { About, Keys } from './keys.js';

const THEMES = [['system', 'As the system'], ['light', 'Light'], ['dark', 'Dark']];
const SIZES = [['s', 'Small'], ['m', 'Medium'], ['l', 'Large'], ['xl', 'Largest']];
const CLOCKS = [['system', 'As the system'], ['24', '24 hours'], ['12', '12 hours']];
const SCREENS = [['page', 'As the page'], ['dark', 'Always dark']];
const SWITCH = [[false, 'Off'], [true, 'On']];
const NOTICES = [['none', 'None'], ['asks', 'What waits for me'], ['all', 'And what ended']];

const EDITOR = [['', 'None'], ...Object.entries(EDITORS).map(([id, [name]]) => [id, name]),
  ['own', 'Another']];

/** The event with which the browser offers to install the page; null where it does not. */
const offer = signal(/** @type {any} */ (null));
addEventListener('beforeinstallprompt', event => {
  event.preventDefault();
  offer.value = event;
});
addEventListener('appinstalled', () => { offer.value = null; });

async function install() {
  const { outcome } = await offer.value.prompt();
  if (outcome === 'accepted') offer.value = null;
}

const Setting = ({ title, note = null, children = null }) => html`<div class="setting" role="group"
  aria-label=${title}><div class="setting-words"><b>${title}</b>
  ${note && html`<p class="note">${note}</p>`}</div>${children}</div>`;
const Chosen = ({ title, note, name, of }) => html`<${Setting} title=${title} note=${note}>
  <${Choice} label=${title} of=${of} value=${settings.value[name]}
    onChange=${value => set({ [name]: value })} /><//>`;

function Editor() {
  const { editor, editorTemplate } = settings.value, isOwn = editor === 'own';
  const isBad = isOwn && editorTemplate && !editorAddress({ file: '/a', line: 1, column: 1 }, '');
  const choose = value => set({ editor: value, ...value !== 'own' && { editorTemplate: '' } });
  return html`<${Setting} title="Editor"
    note="Opens files and lines that agents and terminals name, on the machine of this browser.">
    <div class="setting-fields"><${Select} label="Editor" of=${EDITOR} value=${editor}
      onChange=${choose} />
    ${isOwn && html`<${Input} aria-label="Link of the editor" value=${editorTemplate}
      placeholder="editor://{path}:{line}:{column}" aria-invalid=${Boolean(isBad)}
      onInput=${value => set({ editorTemplate: value })} />`}
    ${isBad && html`<p class="why" role="alert">Write a link with a scheme of its own, such as
      editor://{path}:{line}</p>`}</div><//>`;
}

function Terminals() {
  const { terminalFont, terminalSize } = settings.value;
  return html`<${Section} title="In terminals">
    <${Chosen} title="Colours of terminals" name="terminalTheme" of=${SCREENS}
      note="Some programs expect a dark screen." />
    <${Setting} title="Font of terminals" note="A font of this machine. Empty: the system’s own.">
      <${Input} aria-label="Font of terminals" value=${terminalFont} placeholder="JetBrains Mono"
        onInput=${value => set({ terminalFont: value })} /><//>
    <${Setting} title="Size of terminals"><div class="setting-fields across">
      <${Button} label="Smaller letters" disabled=${terminalSize <= 8}
        onClick=${() => set({ terminalSize: terminalSize - 1 })}>−<//>
      <output aria-label="Size of terminals">${terminalSize} px</output>
      <${Button} label="Larger letters" disabled=${terminalSize >= 28}
        onClick=${() => set({ terminalSize: terminalSize + 1 })}>+<//></div><//>
    <${Setting} title="Screen reader" note="Terminals also say what they print.">
      <${Choice} label="Screen reader" of=${SWITCH} value=${settings.value.reader}
        onChange=${reader => set({ reader })} /><//><//>`;
}

function Notices() {
  const { notify, notifyHides } = settings.value, [, setAsked] = useState(0);
  const choose = async value => {
    if (value !== 'none' && !await notices.ask()) {
      say('The browser does not let this page notify you.', { tone: 'bad' });
    }
    set({ notify: value });
    setAsked(count => count + 1);
  };
  const isMissing = notify !== 'none' && notices.isPossible && !notices.isAllowed();
  return html`<${Setting} title="Notifications" note="While the page is open in the background.">
    <div class="setting-fields">${notices.isPossible ? html`<${Choice} label="Notifications"
      of=${NOTICES} value=${notify} onChange=${choose} />`
    : html`<p class="note">Over HTTPS only, or at localhost.</p>`}
    ${isMissing && html`<${Button} small onClick=${() => choose(notify)}>
      Let the browser ask me<//>`}
    ${notices.isPossible && notify !== 'none' && html`<${Check} label="Hide the contents"
      value=${notifyHides} onChange=${value => set({ notifyHides: value })} />`}</div><//>`;
}

const OFFERED = [['requests', 'Requests that wait for me'],
  ['ends', 'Messages to me, such as that an agent is done'], ['hides', 'Hide the contents']];
const FIRST = { requests: true, ends: false, hides: false };

// One change after the other: a choice that is made meanwhile is sent behind the one before.
let last = Promise.resolve();

function Push() {
  const { state, why, subscription } = push.value, { state: link } = connection.value;
  const [busy, setBusy] = useState(0), [failure, setFailure] = useState('');
  const known = subscription ?? FIRST, [chosen, setChosen] = useState(known);
  useEffect(() => {
    if (link === 'up') readPush().catch(error => setFailure(error.message));
  }, [link]);
  useEffect(() => { if (!busy) setChosen(known); }, [busy, subscription]);
  const act = change => {
    setBusy(count => count + 1);
    setFailure('');
    last = last.then(change).catch(error => setFailure(error.message))
      .finally(() => setBusy(count => count - 1));
  };
  const choose = (name, value) => {
    const { requests, ends, hides } = Object.assign({}, chosen, { [name]: value });
    setChosen({ requests, ends, hides });
    act(() => subscribe({ requests, ends, hides }));
  };
  const isOn = state === 'on';
  return html`<${Setting} title="Notifications when the page is closed" note=${why
    ?? 'Sent to the push service of this browser, which cannot read them.'}>
    ${(isOn || state === 'off') && html`<div class="setting-fields">
      <${Choice} label="Notifications when the page is closed" of=${SWITCH} value=${isOn}
        onChange=${() => act(isOn ? unsubscribe : () => subscribe(FIRST))} />
      ${isOn && OFFERED.map(([name, label]) => html`<${Check} key=${name} label=${label}
        value=${chosen[name]} onChange=${value => choose(name, value)} />`)}
      ${isOn && subscription.problem && html`<p class="why">The last one could not be sent:
        ${' '}${subscription.problem}</p>`}
      ${busy > 0 && html`<p class="note" role="status">A moment…</p>`}</div>`}
    ${failure && html`<p class="why" role="alert" dir="auto">${failure}</p>`}<//>`;
}

export function Settings() {
  return html`<${Head} title="Settings" note="of this browser" /><div class="page narrow">
    <${Section} title="The page"><${Chosen} title="Theme" name="theme" of=${THEMES} />
      <${Chosen} title="Text size" name="size" of=${SIZES} />
      <${Chosen} title="Clock" name="clock" of=${CLOCKS} /><${Editor} />
      ${offer.value && html`<${Setting} title="Install the page"
        note="As an application of its own, with a window and an icon.">
        <${Button} onClick=${install}>Install<//><//>`}<//>
    <${Terminals} />
    ${!isReadOnly.value && html`<${Section} title="Notices"><${Notices} /><${Push} /><//>`}
    <div class="setting-ends"><${Button} onClick=${() => open(Keys)}>Keys of the page<//>
      <${Button} onClick=${() => open(About)}>About<//></div></div>`;
}

actions(() => [
  ...THEMES.filter(([id]) => id !== settings.value.theme).map(([theme, name]) => ({
    text: `Theme: ${name.toLowerCase()}`, act: () => set({ theme }), group: 'Setting' })),
  ...SIZES.filter(([id]) => id !== settings.value.size).map(([size, name]) => ({
    text: `Text size: ${name.toLowerCase()}`, act: () => set({ size }), group: 'Setting' })),
  { text: `Screen reader: ${settings.value.reader ? 'off' : 'on'}`, group: 'Setting',
    act: () => set({ reader: !settings.value.reader }) },
  offer.value && { text: 'Install the page', act: install },
  { text: 'About', act: () => open(About), words: 'version licences' },
]);
