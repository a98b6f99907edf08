// Conversations that began outside of this daemon, in the files of an agent's own program.
import { html, useEffect, useMemo, useState } from '../lib.js';
import { at, go } from '../place.js';
import { call, readWorkspaces, workspaces } from '../store.js';
import { Check, Field, Form, Input, Select, TextBox, Time, Why, useRead } from '../ui.js';
import { Trust } from './trust.js';

/** Directories below the root that are in use, to choose from. */
export function usePlaces() {
  useEffect(() => { readWorkspaces(); }, []); // another client may have made one
  return useMemo(() => {
    const named = workspaces.value.map(each => [`w:${each.workspace_id}`,
      `Workspace ${each.workspace_id}`]);
    return [['', 'The root of the project'], ...named, ['directory', 'Another directory…']];
  }, [workspaces.value]);
}

/** @param {{onClose: () => void, profile?: string, place?: string}} props */
export function Conversations({ onClose, profile: given = '', place = '' }) {
  const [list] = useRead(() => call('list_agents'), []), profiles = list?.result ?? [];
  const [chosen, choose] = useState(given), [one, setOne] = useState(null), [word,
    setWord] = useState('');
  const [name, setName] = useState(''), [prompt, setPrompt] = useState(''), [isFork,
    setFork] = useState(false);
  const profile = chosen || profiles.find(each => each.is_default)?.profile || profiles[0]?.profile;
  const places = usePlaces().filter(([id]) => id !== 'directory');
  const [where, setWhere] = useState(places.some(([id]) => id === place) ? place : '');
  const of = { profile, ...(where && { workspace: where.slice(2) }) };
  const [found, error, again] = useRead(async () => profile ? call('agent_conversations', of)
    : null, [profile, where]);
  const shown = (found?.result ?? []).filter(each =>
    `${each.begins} ${each.branch} ${each.id}`.toLowerCase().includes(word.trim().toLowerCase()));
  const act = async () => {
    const args = { ...of, conversation: one.id, fork: isFork, ...(name.trim()
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
      <${Field} label="Where it works"><${Select} label="Where it works" value=${where}
        of=${places} onChange=${id => { setWhere(id); setOne(null); }} /><//>
      <${Field} label="Find"><${Input} value=${word} onInput=${setWord} type="search" /><//></div>
    <${Why} of=${error} again=${again} />
    ${found && !shown.length && html`<p class="calm">No conversation was found in this
      directory.</p>`}
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
    ${profile && html`<${Trust} place=${of} />`}<//>`;
}
