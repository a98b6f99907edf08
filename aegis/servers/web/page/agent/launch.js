// Launch an agent: what it is to do, who it is, what it may, and where it works.
import { html, useEffect } from '../lib.js';
import { draft } from '../drafts.js';
import { open, say } from '../overlay.js';
import { at, go } from '../place.js';
import { agents, call } from '../store.js';
import { Choice, Field, Form, Input, Select, TextBox, useRead } from '../ui.js';
import { sendBy } from './composer.js';
import { Conversations, usePlaces } from './conversations.js';
import { AttachButton, Attachments, attach, isUploaded, pathsOf, takesFiles } from './files.js';
import { Trust } from './trust.js';
import { PERMISSIONS, effortChoice } from './words.js';

const EMPTY = { way: 'profile', profile: '', prompt: '', files: [], handle: '', model: '',
  effort: '', thinking: '',
  permission: '', place: '', worktree: '', branch: '', budget: '', command: '' };

/** The models that agents of a profile were offered: known once one of them has started. */
function useOffered(profile) {
  const like = [...agents.value.values()].find(each => each.profile === profile && !each.program);
  const [details] = useRead(async () => like ? call('agent_show', { handle: like.handle }) : null,
    [like?.handle]);
  return details?.models ?? [];
}

export function Launch({ onClose, profile: given = '', prompt = '' }) {
  const kept = draft('launch'), value = { ...EMPTY, ...kept.value };
  const set = change => { kept.value = { ...EMPTY, ...kept.peek(), ...change }; };
  const [list, error] = useRead(() => call('list_agents'), []), profiles = list?.result ?? [];
  const standard = profiles.find(each => each.is_default)?.profile ?? profiles[0]?.profile ?? '';
  const name = profiles.some(each => each.profile === value.profile) ? value.profile : standard;
  const profile = profiles.find(each => each.profile === name), models = useOffered(name),
    places = usePlaces();
  const isProgram = value.way === 'program', isOwn = value.place === 'directory', { files } = value;
  useEffect(() => {
    const whole = files.filter(isUploaded); // a reload cuts uploads off
    if (given || prompt || whole.length !== files.length) set({ files: whole,
      ...(given && { profile: given }), ...(prompt && { prompt }) });
  }, []);
  const setFiles = change => set({ files: change(kept.peek()?.files ?? []) });
  const onFiles = all => attach(all, setFiles);
  const place = { ...(value.place.startsWith('w:') && { workspace: value.place.slice(2) }),
    ...(isOwn && value.directory?.trim() && { directory: value.directory.trim() }) };
  const isTaken = [...agents.value.values()].some(each => each.handle === value.handle.trim());
  const budget = value.budget.trim() === '' ? null : Number(value.budget.replace(',', '.'));
  const efforts = (models.find(each => each.name === value.model) ?? models[0])?.efforts ?? [];
  const isBad = isTaken || (budget !== null && !(budget >= 0)) || files.some(each => !each.path)
    || (isProgram ? !value.command.trim() : Boolean(profile?.problem) || !profile);

  const act = async () => {
    const handle = value.handle.trim() || null, text = value.prompt.trim() ? value.prompt : null;
    if (isProgram) {
      const args = { cmd: value.command, ...(handle && { handle }), ...(place.workspace && place) };
      const info = await call('agent_launch', args);
      kept.value = null;
      go(at('t', info.program.terminal));
      return;
    }
    const chosen = { profile: name, handle, ...place, model: value.model || null,
      effort: value.effort || null,
      thinking: value.thinking || null, permission: value.permission || null, budget_usd: budget,
      worktree: value.worktree === '' ? null : value.worktree === 'yes',
      branch: value.worktree === 'yes' && value.branch.trim() ? value.branch.trim() : null,
      prompt: files.length ? null : text };
    const args = Object.fromEntries(Object.entries(chosen).filter(([, each]) => each !== null
      && each !== ''));
    const info = await call('spawn', args);
    kept.value = null;
    go(at('a', info.handle));
    if (!files.length) return;
    // Files are read by the daemon for a session that exists; the first message has them. It is in
    // the box of the agent if it was refused: there is an agent now, and no second one is started.
    const message = { text: text ?? '', files };
    try {
      await sendBy(draft(`a/${info.id}`), message, key => call('agent_send', {
        handle: info.handle, text: message.text, key, ...pathsOf(files) }));
    } catch (error) { say(error); }
  };
  const field = (key, more = {}) => html`<${Input} value=${value[key] ?? ''}
    onInput=${text => set({ [key]: text })} ...${more} />`;
  const choose = (key, label, of, first) => html`<${Field} label=${label}><${Select} label=${label}
    value=${value[key]}
    of=${[['', first], ...of]} onChange=${text => set({ [key]: text })} /><//>`;
  const note = profile?.problem ? html`<span class="why" role="alert">${profile.problem}</span>`
    : profile && [profile.provider, profile.model].filter(Boolean).join(' · ');
  const said = PERMISSIONS.find(([id]) => id === profile?.permission)?.[1];

  return html`<${Form} wide title="Launch an agent" verb="Launch" act=${act} onClose=${onClose}
    disabled=${isBad}
    more=${html`<button type="button" class="link" onClick=${() => open(Conversations,
      { profile: name, place: value.place })}>Continue a
      conversation…</button>`}>
    <${Choice} label="Kind" of=${[['profile', 'By a profile'], ['program',
      'A program in a terminal']]} value=${value.way}
      onChange=${way => set({ way })} />
    ${error && html`<p class="why" role="alert">${error.message}</p>`}
    ${isProgram ? html`<${Field} label="Command"
      note="As you would type it. It is answered in its terminal."
        >${field('command', { class: 'input mono', 'data-first': true,
          placeholder: 'claude --model opus' })}<//>`
    : html`<div class="field" ...${takesFiles(onFiles)}><span class="label" id="launch-task">First
      message</span>
      <${TextBox} rows=${4} value=${value.prompt} onInput=${text => set({ prompt: text })}
        data-first
        aria-labelledby="launch-task" />
      <div class="under"><${AttachButton} onFiles=${onFiles} /><span class="note">Empty: it waits
        for you. Files by
        paste and drop too.</span></div>
      <${Attachments} list=${files} onRemove=${gone => setFiles(all => all.filter(each =>
        each.id !== gone))} /></div>
    <div class="fields"><${Field} label="Profile" note=${note}><${Select} label="Profile"
      value=${name}
        of=${profiles.map(each => [each.profile, each.profile + (each.is_default ? ' (default)'
          : '')])}
        onChange=${text => set({ profile: text, model: '', effort: '' })} /><//>
      ${choose('permission', 'Permission', PERMISSIONS, `As its profile says${said
        ? `: ${said.toLowerCase()}` : ''}`)}
      ${models.length ? choose('model', 'Model', models.map(each => [each.name, each.title
        || each.name]), 'As its profile says')
    : html`<${Field} label="Model">${field('model', { placeholder: profile?.model
      || 'as its profile says' })}<//>`}
      ${efforts.length ? choose('effort', 'Effort', effortChoice(efforts,
        value.effort).filter(([id]) => id), 'As its profile says')
    : html`<${Field} label="Effort">${field('effort', { placeholder: 'as its profile says' })}<//>`}
      ${choose('thinking', 'Thinking', [['on', 'On'], ['off', 'Off']], 'As its profile says')}
      <${Field} label="Budget in $" note=${budget !== null && !(budget >= 0) ? html`<span
        class="why">Write an amount, such
        as 2.50.</span>` : 'No further turn begins once it is spent.'}>${field('budget',
          { inputmode: 'decimal' })}<//></div>`}
    <div class="fields"><${Field} label="Name" note=${isTaken ? html`<span class="why"
      role="alert">This name is taken.</span>` : 'Empty: a name is made.'}
        >${field('handle', { 'aria-invalid': isTaken })}<//>
      <${Field} label="Where it works"><${Select} label="Where it works" value=${value.place}
        of=${isProgram ? places.filter(([id]) => id !== 'directory') : places}
          onChange=${text => set({ place: text })} /><//>
      ${isOwn && !isProgram && html`<${Field} label="Directory"
        note="Below the root.">${field('directory')}<//>`}
      ${!isProgram && choose('worktree', 'Worktree', [['yes', 'A worktree of its own'], ['no',
        'None: it shares the files']],
    'As its profile says')}
      ${!isProgram && value.worktree === 'yes' && html`<${Field} label="Branch"
        note="Empty: aegis/ and its name.">
        ${field('branch')}<//>`}</div>
    ${!isProgram && name && html`<${Trust} place=${{ profile: name, ...place }} />`}<//>`;
}
