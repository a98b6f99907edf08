// Conversations that began outside of this daemon, in the files of an agent's own program.
import { html, useState } from '../lib.js';
import { at, go } from '../place.js';
import { call } from '../store.js';
import { Check, Field, Form, Input, Select, TextBox, Time, Why, useRead } from '../ui.js';
import { Trust } from './trust.js';

export function Conversations({ onClose, profile: given = '' }) {
  const [list] = useRead(() => call('list_agents'), []), profiles = list?.result ?? [];
  const [chosen, choose] = useState(given), [one, setOne] = useState(null), [word,
    setWord] = useState('');
  const [name, setName] = useState(''), [prompt, setPrompt] = useState(''), [isFork,
    setFork] = useState(false);
  const profile = chosen || profiles.find(each => each.is_default)?.profile || profiles[0]?.profile;
  const [found, error, again] = useRead(async () => profile ? call('agent_conversations',
    { profile }) : null, [profile]);
  const shown = (found?.result ?? []).filter(each =>
    `${each.begins} ${each.branch} ${each.id}`.toLowerCase().includes(word.trim().toLowerCase()));
  const act = async () => {
    const args = { conversation: one.id, profile, fork: isFork, ...(name.trim()
      && { handle: name.trim() }),
      ...(prompt.trim() && { prompt }) };
    go(at('a', (await call('agent_continue', args)).handle));
  };
  return html`<${Form} wide title="Continue a conversation" verb="Continue" act=${act}
    onClose=${onClose}
    disabled=${!one || (Boolean(one.holder) && !isFork)}>
    <div class="fields"><${Field} label="Profile"><${Select} label="Profile" value=${profile}
        of=${profiles.map(each => [each.profile, each.profile])} onChange=${id => { choose(id);
          setOne(null); }} /><//>
      <${Field} label="Find"><${Input} value=${word} onInput=${setWord} type="search" /><//></div>
    <${Why} of=${error} again=${again} />
    ${found && !shown.length && html`<p class="calm">No conversation was found in this
      project.</p>`}
    ${shown.length > 0 && html`<div class="pick-list" role="radiogroup"
      aria-label="Conversations">${shown.map(each => html`<label key=${each.id}
      class="pick-row"><input type="radio" name="conversation" checked=${one?.id === each.id}
        onChange=${() => setOne(each)} />
      <span class="cut" dir="auto" title=${each.begins}>${each.begins || each.id}</span>
      <span class="note cut">${[each.branch, each.holder
        && `open in ${each.holder}`].filter(Boolean).join(' · ')}</span>
      <${Time} at=${each.at} /></label>`)}</div>`}
    ${found?.notice && html`<p class="note">${found.notice}</p>`}
    ${one && html`<${Check} label="Continue a copy, and leave it as it is" value=${isFork}
      onChange=${setFork}
      note=${one.holder ? `It is open in ${one.holder}: only a copy can be continued.` : ''} />
    <div class="fields"><${Field} label="Name" note="Empty: a name is made."><${Input} value=${name}
      onInput=${setName} /><//>
      <${Field} label="Next message" note="Empty: it waits for you."><${TextBox} rows=${2}
        value=${prompt}
        onInput=${setPrompt} /><//></div>`}
    ${profile && html`<${Trust} place=${{ profile }} />`}<//>`;
}
