// Groups: agents that get one order together, and whose replies come together.
import { effect, html, signal, useEffect, useState } from '../lib.js';
import { agentOf, call, connection, groups, isReadOnly, loaded } from '../store.js';
import {
  Button, Choice, Empty, Field, Form, Head, Input, Link, Menu, Section, State, Time, confirm,
    useStill,
} from '../ui.js';
import { actions } from '../actions.js';
import { draft } from '../drafts.js';
import { open, say } from '../overlay.js';
import { at, go, renamed } from '../place.js';
import { agentState, REPLY } from '../state.js';
import { Text } from '../text.js';
import { WriteBox } from './write.js';

const NAME = '[A-Za-z0-9][A-Za-z0-9._\\-]{0,63}', MOST = 16, DAY_S = 86400;
const OWN = 'human', SHOWN_CHARS = 200; // of an order
const WORDS = { pending: 'has not replied yet', replied: 'replied', failed: 'failed',
  interrupted: 'was interrupted', cancelled: 'was cancelled', limited: 'has a usage limit',
  lost: 'was lost' };
const who = sender => sender.replace(/^agent:/, '').replace(/^human$/, 'You');

/** The profiles that can be started. */
function useProfiles() {
  const [list, setList] = useState([]);
  useEffect(() => { call('list_agents').then(({ result }) => setList(result), say); }, []);
  return list;
}

/** Make a group, all of its members or none.
 * @param {{onClose: () => void, given?: string}} props */
function NewGroup({ onClose, given = '' }) {
  const [name, setName] = useState(given), [by, setBy] = useState('profiles');
  const [preset, setPreset] = useState(''), [numbers, setNumbers] = useState({}),
    all = useProfiles();
  const able = all.filter(each => !each.problem);
  const profiles = Object.entries(numbers).flatMap(([profile, number]) =>
    Array(number).fill(profile));
  const isReady = name && (by === 'preset' ? preset.trim() : profiles.length > 0);
  const act = async () => {
    await call('group_spawn_mixed', { group: name,
      ...by === 'preset' ? { preset: preset.trim() } : { profiles } });
    go(at('g', name));
  };
  const set = (profile, value) => setNumbers({ ...numbers, [profile]: Math.max(0, Math.min(MOST,
    Math.round(Number(value) || 0))) });
  return html`<${Form} title="New group" verb=${by === 'profiles' && profiles.length
    ? `Start ${profiles.length} ${profiles.length > 1 ? 'agents' : 'agent'}` : 'Make the group'}
      act=${act}
    onClose=${onClose} disabled=${!isReady}>
    <${Field} label="Name"><${Input} value=${name} onInput=${setName} data-first required
      pattern=${NAME}
      placeholder="reviewers" /><//>
    <${Choice} label="Members from" of=${[['profiles', 'Profiles'], ['preset', 'A preset']]}
      value=${by}
      onChange=${setBy} />
    ${by === 'preset' ? html`<${Field} label="Preset"
      note="Of groups: presets: in .aegis.yaml"><${Input}
      value=${preset} onInput=${setPreset} /><//>` : html`<div class="counts" role="group"
      aria-label="Members">${able.map(each => html`<label key=${each.profile} class="counted"><input
        class="input" type="number" min="0" max=${MOST} value=${numbers[each.profile] ?? 0}
        onInput=${event => set(each.profile, event.target.value)} />
        <span><bdi>${each.profile}</bdi> <span class="note">${[each.provider, each.model,
          each.permission]
        .filter(Boolean).join(' · ')}</span></span></label>`)}${all.length > able.length && html`<p
        class="note">${all.length - able.length} more profiles cannot be started here.</p>`}
      </div>`}<//>`;
}
export const newGroup = (given = '') => open(NewGroup, { given });

/** Add a member. @param {{onClose: () => void, group: string}} props */
function AddMember({ onClose, group }) {
  const all = useProfiles(), [profile, setProfile] = useState('');
  const [handle, setHandle] = useState('');
  const able = all.filter(each => !each.problem), chosen = profile
    || able.find(each => each.is_default)?.profile || able[0]?.profile;
  const act = () => call('group_spawn', { group, profile: chosen, ...handle && { handle } });
  return html`<${Form} title=${`Add a member to ${group}`} verb="Add" act=${act} onClose=${onClose}
    disabled=${!chosen}><${Field} label="Profile"><select class="input" data-first
      onChange=${event => setProfile(event.target.value)}>${able.map(each => html`<option
      key=${each.profile} value=${each.profile}
        selected=${each.profile === chosen}>${each.profile}</option>`
    )}</select><//><${Field} label="Handle" note="Empty: one is made"><${Input} value=${handle}
      onInput=${setHandle} pattern=${NAME} /><//><//>`;
}

/** @param {{onClose: () => void, group: string}} props */
function Rename({ onClose, group }) {
  const [name, setName] = useState(group);
  const act = async () => {
    await call('group_rename', { group, new_name: name });
    renamed('g', group, name);
  };
  return html`<${Form} title=${`Rename ${group}`} verb="Rename" act=${act} onClose=${onClose}
    disabled=${!name || name === group}><${Field} label="Name"><${Input} value=${name}
      onInput=${setName}
    data-first required pattern=${NAME} /><//><//>`;
}

const dissolve = group => confirm({ title: `Dissolve ${group}?`, verb: 'Dissolve', tone: 'bad',
  text: 'Its members are closed, and replies are not awaited any more. Their transcripts stay.',
  act: () => call('group_dissolve', { group }) });

/** The status of each member in an order: a listed order has more of each. */
const repliesOf = ({ replies, members }) => replies
  ?? Object.fromEntries(Object.entries(members).map(each => [each[0], each[1].status]));
const replied = replies => Object.values(replies).filter(each => each === 'replied').length;

/** Orders that end with their first reply, and their groups: as long as the page is open. */
const endings = signal(/** @type {Map<string, string>} */ (new Map()));
async function endWithFirst(group, id) {
  try {
    let hasTimedOut = true; // the daemon lets a call wait for a day
    while (hasTimedOut) {
      const { metadata } = await call('group_wait_any', { group, broadcast_id: id,
        timeout: DAY_S });
      hasTimedOut = metadata.timed_out;
    }
  } catch (error) {
    if (error.code === 'lost') return; // it waits again with the next connection
    say(error);
  }
  endings.value = new Map([...endings.peek()].filter(each => each[0] !== id));
}
effect(() => {
  if (connection.value.state !== 'up') return;
  for (const [id, group] of endings.peek()) endWithFirst(group, id);
});

/** An order: what was said, the replies to it, and who is missing. */
function Order({ group, order, isNewest }) {
  const { broadcast_id: id, is_over: isOver } = order, { state } = connection.value;
  const replies = repliesOf(order);
  const [found, setFound] = useState(null), [problem, setProblem] = useState('');
  useEffect(() => {
    let isGone = false;
    if (state === 'up') {
      call('group_wait_all', { group, broadcast_id: id, timeout: 0 }).then(
        replies => { if (!isGone) { setFound(replies); setProblem(''); } },
        error => { if (!isGone && error.code !== 'lost') setProblem(error.message); },
      );
    }
    return () => { isGone = true; };
  }, [group, id, state, JSON.stringify(replies), isOver]);
  const members = Object.entries(found?.metadata.members ?? {}), got = found?.order ?? [];
  const rank = handle => got.includes(handle) ? got.indexOf(handle) : got.length;
  members.sort((a, b) => rank(a[0]) - rank(b[0]));
  // The daemon counts characters as code points.
  const isCut = [...order.objective].length >= SHOWN_CHARS, all = Object.keys(replies);
  const reader = all.find(agentOf) ?? all[0];
  const count = replied(replies), isEnding = endings.value.has(id);
  const first = () => confirm({ title: 'Take the first reply?', verb: 'Take the first', tone: 'bad',
    text: `${count ? 'The turns' : 'Once a member has replied, while this page is open, the turns'
    } of the other members are interrupted, and they get a message about it.`,
    act: async () => {
      endings.value = new Map([...endings.peek(), [id, group]]);
      endWithFirst(group, id);
    } });
  return html`<article class="order" aria-label=${isNewest ? 'Newest order' : 'Earlier order'}>
    <div class="message you"><header><bdi>${who(order.sender)}</bdi><${Time}
      at=${order.at} isClock />
      <span class="gap"></span><span
        class="note">${count} of ${Object.keys(replies).length}
      ${' '}replied</span>${!isOver && isEnding && html`<span class="note">ends with the first
      reply</span>`}${!isOver && !isEnding && !isReadOnly.value && html`<${Button} small
      tone="ghost" onClick=${first}>Only the first…<//>`}</header>
      <${Text}>${order.objective}<//>
      ${isCut && html`<p class="note">Only the first ${SHOWN_CHARS} characters of an order are shown
        here: <${Link} class="link" to=${at('a', reader)}>the transcript of <bdi>${reader}</bdi><//>
        ${' '}has all of it.</p>`}</div>
    ${problem && html`<p class="bad-text" role="alert">${problem}</p>`}
    <div role="list" aria-label="Replies">${members.map(([handle, member]) => html`<div
      role="listitem"
      class="message" key=${handle}><header><${State}
        of=${REPLY[member.status] ?? 'works'} /><${Link}
      to=${at('a', handle)}><bdi>${handle}</bdi><//><span
        class="note">${WORDS[member.status]}${member.reason
        ? `: ${member.reason}` : ''}</span>${member.at && html`<${Time}
          at=${member.at} isClock />`}</header>
      ${handle in found.by_member && html`<${Text}>${found.by_member[handle]}<//>`}
      ${member.is_cut && html`<p class="note">The reply is longer: <${Link} class="link"
        to=${at('a', handle)}>the transcript<//> has all of it.</p>`}</div>`)}</div></article>`;
}

/** Earlier orders, the newest first; older ones as they are asked for. */
function Earlier({ group, newest }) {
  const [list, setList] = useState([]), [hasMore, setMore] = useState(false);
  const [opened, setOpened] = useState(null), { state } = connection.value;
  const read = async before => {
    const found = await call('group_orders', { group, ...before && { before } });
    setList(known => before ? [...known, ...found.result] : found.result);
    setMore(found.more);
  };
  useEffect(() => {
    if (state === 'up') read(null).catch(() => { /* read again with the next order */ });
  }, [group, newest, state]);
  const older = list.filter(each => each.broadcast_id !== newest);
  if (!older.length) return null;
  return html`<${Section} title="Earlier orders"><ul class="rows" aria-label="Earlier orders">
    ${older.map(each => html`<li class="row" key=${each.broadcast_id}><button type="button"
      class="row-link" aria-expanded=${opened === each.broadcast_id}
      onClick=${() => setOpened(opened === each.broadcast_id ? null : each.broadcast_id)}><bdi
      class="cut">${each.objective}</bdi></button><span class="note">
      ${replied(repliesOf(each))} of ${Object.keys(each.members).length} replied</span><${Time}
      at=${each.at} />${opened === each.broadcast_id && html`<div class="row-more"><${Order}
      group=${group} order=${each} /></div>`}</li>`)}</ul>
    ${hasMore && html`<${Button} tone="ghost all" onClick=${() => read(list.at(-1).broadcast_id)}
      >Show older<//>`}<//>`;
}

/** @param {{id: string}} props */
export function Group({ id }) {
  const group = groups.value.get(id) ?? [...groups.value.values()].find(each =>
    each.aliases.includes(id)), more = draft(`order/${id}`);
  useEffect(() => {
    if (group && group.group !== id) renamed('g', id, group.group);
  }, [id, group?.group]);
  const [isMore, setMore] = useState(false);
  if (!group) {
    return loaded.value.has('groups') && html`<${Empty} title=${`There is no group “${id}”.`}>
      ${!isReadOnly.value && html`<${Button} tone="main"
        onClick=${() => newGroup(id)}>Make it<//>`}<//>`;
  }
  const { members, broadcast } = group, options = more.value ?? {}, isBusy = broadcast
    && !broadcast.is_over;
  const send = async (objective, key) => {
    const extra = Object.fromEntries(Object.entries(more.peek() ?? {}).filter(each =>
      each[1].trim()));
    await call('group_broadcast', { group: id, objective, callback: false, key, ...extra });
    more.value = null; setMore(false);
  };
  const extra = (name, label, note) => html`<${Field} label=${label} note=${note}><textarea
    class="input"
    rows="1" dir="auto" value=${options[name] ?? ''} onInput=${event => {
      more.value = { ...more.peek(), [name]: event.target.value }; }} /><//>`;
  const note = [group.problem, group.state !== 'open' && group.state, group.forming
    && `${group.forming} are starting`, `${members.length} members`, `made by ${group.owner === OWN
      ? 'you' : who(group.owner)}`];
  return html`<${Head} state=${group.problem ? 'failed' : isBusy ? 'works' : 'idle'} title=${id}
      note=${note.filter(Boolean).join(' · ')}>${!isReadOnly.value && html`<${Button} small
      onClick=${() => open(AddMember, { group: id })}>Add a member<//><${Menu} small
      label=${`More about ${id}`} items=${[{ text: 'Rename…', act: () => open(Rename,
        { group: id }) },
        '-', { text: 'Dissolve…', tone: 'bad', act: () => dissolve(id) }]} />`}<//>
    <div class="page narrow"><ul class="members" aria-label="Members">${members.map(each => {
      const agent = agentOf(each.handle), state = agent ? agentState(agent) : null;
      return html`<li key=${each.handle}><${Link} to=${at('a', each.handle)} title=${each.needs
        || state?.why || ''}><${State} of=${state?.kind ?? 'ended'} /><bdi
          class="name">${each.handle}</bdi>
        <span class="note">${each.profile}</span><//></li>`;
    })}</ul>
    ${!isReadOnly.value && html`<${WriteBox} of=${`g/${id}`}
      label=${`Order to all members of ${id}`}
      placeholder=${isBusy ? 'The group has an order: wait for its replies'
        : `Ask all ${members.length} members: they know nothing else`} verb="Send to all"
          send=${send}
      foot=${html`<button type="button" class="link" aria-expanded=${isMore}
        onClick=${() => setMore(!isMore)}>Form of the reply, tools, limits</button>`}>
      ${isMore && html`<div class="fields">${extra('output_format', 'Form of the reply')}
      ${extra('tool_guidance', 'Tools and sources')}${extra('boundaries',
        'What not to do')}</div>`}<//>`}
    ${broadcast ? html`<${Order} key=${broadcast.broadcast_id} group=${id}
      order=${broadcast} isNewest />`
      : html`<p class="calm">No order yet.</p>`}
    <${Earlier} group=${id} newest=${broadcast?.broadcast_id} /></div>`;
}

export function Groups() {
  const [shown, still] = useStill([...groups.value.values()], each => each.id);
  const add = !isReadOnly.value && html`<${Button} small tone="main" onClick=${() => newGroup()}>New
    group<//>`;
  const said = ({ broadcast, problem, members }) => problem || [`${members.length} members`,
    broadcast
    && `${Object.values(broadcast.replies).filter(each => each === 'replied').length} of
      ${Object.keys(broadcast.replies).length} replied`].filter(Boolean).join(' · ');
  return html`<${Head} title="Groups">${add}<//><div
    class="page narrow">${loaded.value.has('groups')
      && !shown.length && html`<${Empty}
        title="No group yet. A group is asked as one, and its replies come
      together.">${add}<//>`}
    ${shown.length > 0 && html`<ul class="rows" aria-label="Groups" ...${still}>${shown.map(each =>
      html`<li class=${`row tall ${each.gone ? 'gone' : ''}`} key=${each.id}><${Link}
        class="row-link"
        to=${at('g', each.group)}><${State} of=${each.problem ? 'failed' : each.broadcast
        && !each.broadcast.is_over ? 'works' : 'idle'} /><b class="name who">${each.group}</b><bdi
        class="cut quiet">${each.broadcast?.objective ?? each.members.map(one =>
          one.handle).join(', ')}
        </bdi><//><span class="note opt">${said(each)}</span>${each.broadcast && html`<${Time}
        at=${each.broadcast.at} />`}</li>`)}</ul>`}</div>`;
}

actions(() => isReadOnly.value ? [] : [
  { text: 'New group', group: 'Group', words: 'create committee', act: () => newGroup() },
  ...[...groups.value.keys()].flatMap(name => [
    { text: `Rename the group ${name}`, group: 'Group', of: at('g', name),
      act: () => open(Rename, { group: name }) },
    { text: `Dissolve the group ${name}`, group: 'Group', of: at('g', name),
      act: () => dissolve(name) }]),
]);
