// Who can reach this daemon: browsers, read-only links, addresses of agents, the operator's key.
import { html, useEffect, useState } from '../lib.js';
import { actions } from '../actions.js';
import { open } from '../overlay.js';
import { browserName } from '../push.js';
import { agentOf, agents, call, connection, isReadOnly, me, terminals } from '../store.js';
import {
  Button, Copy, Dialog, Field, Form, Head, Input, Section, Select, Time, Why, confirm, useRead,
} from '../ui.js';

const LIFETIMES = [
  ['3600', '1 hour'], ['86400', '1 day'], ['604800', '1 week'], ['2592000', '30 days'],
];
const TOOLS = [['', 'As it has them: at first the working set'], ['core', 'The fewest: core'],
  ['work', 'The working set'], ['all', 'All']];

/** Lists that show links and addresses read again after one was made. */
const changes = new EventTarget();
const changed = () => changes.dispatchEvent(new Event('change'));
function useChanges(again) {
  useEffect(() => {
    changes.addEventListener('change', again);
    return () => changes.removeEventListener('change', again);
  }, []);
}

/** An address of this page for a one-time code or a link: as the browser reaches the daemon. */
const addressed = url => `${location.origin}/${new URL(url).hash}`;
/** A browser calls itself by a long line of all that it is like. */
const browser = label => /^Mozilla/.test(label) ? browserName(label) : label || 'Browser';
const named = view => view.replace('terminal:', 'Terminal ').replace('agent:', 'Agent ');

/** A secret address, with what it allows. */
const Secret = ({ title, address, children, onClose }) => html`<${Dialog} title=${title}
  onClose=${onClose} foot=${html`<${Button} tone="main" onClick=${onClose}>Done<//>`}>
  <div class="copied"><input class="input mono" readonly aria-label="Address" value=${address}
    onFocus=${event => event.target.select()} />
    <${Copy} text=${address} small=${false} tone="main" /></div>${children}<//>`;

/**
 * Make a read-only link of a terminal or an agent: `subject` is 'terminal:NAME' or 'agent:HANDLE',
 * left out to choose.
 * @param {{subject?: string, onClose: () => void}} props
 */
export function ShareLink({ subject = '', onClose }) {
  const all = [...[...terminals.value.keys()].map(each => `terminal:${each}`),
    ...[...agents.value.values()].map(each => `agent:${each.handle}`)].sort();
  const [view, setView] = useState(subject || all[0] || '');
  const [life, setLife] = useState('86400'), [label, setLabel] = useState('');
  const make = async () => {
    const link = await call('page_link', { view, for_s: Number(life), label });
    changed();
    open(Secret, {
      title: `Link to ${named(view)}`, address: addressed(link.url),
      children: html`<p>It shows this and nothing else, and can change nothing, until
        ${' '}<${Time} at=${link.expires_at} isClock /> or until you revoke it under Access.</p>`,
    });
  };
  return html`<${Form} title=${subject ? `Share ${named(subject)}` : 'New read-only link'}
    verb="Make the link" act=${make} onClose=${onClose} disabled=${!view}>
    <p>Everybody who has the link can watch. They cannot type, answer or see anything else.</p>
    ${!subject && html`<${Field} label="What it shows"><${Select} label="What it shows"
      value=${view} of=${all.map(each => [each, named(each)])} onChange=${setView} /><//>`}
    <${Field} label="Ends after"><${Select} label="Ends after" of=${LIFETIMES} value=${life}
      onChange=${setLife} /><//>
    <${Field} label="For whom" note="A note for the list under Access."><${Input} value=${label}
      maxlength="200" onInput=${setLabel} /><//><//>`;
}

/** A new address of the page, for another browser. */
async function showCode() {
  const { url, expires_at: ends } = await call('page_code');
  open(Secret, { title: 'Log in another browser', address: addressed(url), children: html`<p>Open it
    within a minute, until <${Time} at=${ends} isClock />, and once. That browser can then do all
    that you can do here.</p>` });
}

function revoke(each, again) {
  const isOwn = each.id === me.value?.page;
  const what = each.view ? `the link to ${named(each.view)}` : `the browser ${browser(each.label)}`;
  confirm({
    title: isOwn ? 'Log this browser out?' : `Revoke ${what}?`, verb: isOwn ? 'Log out' : 'Revoke',
    tone: 'bad',
    text: isOwn ? 'To log in again, run aegis-actors web on the machine of the daemon.'
      : each.view ? 'Everybody who watches by it is disconnected. The link opens nothing any more.'
        : 'It is disconnected, gets no notifications any more, and has to log in again.',
    act: async () => {
      await call('page_revoke', { id: each.id });
      if (!isOwn) await again();
    },
  });
}

function Pages({ pages, label, again }) {
  if (!pages.length) return html`<p class="calm">None.</p>`;
  return html`<div class="table-box" tabindex="0" role="region" aria-label=${label}>
    <table class="list">
    <thead><tr><th>${label}</th><th>Since</th><th>Ends</th><td></td></tr></thead>
    <tbody>${pages.map(each => {
      const isOwn = each.id === me.value?.page, verb = isOwn ? 'Log out' : 'Revoke';
      const name = each.view ? named(each.view) : browser(each.label);
      return html`<tr key=${each.id}><td class="wide"><bdi title=${each.label}>${name}</bdi>
        ${each.view && each.label && html` <bdi class="note">${each.label}</bdi>`}
        ${isOwn && html` <span class="chip">this browser</span>`}</td>
        <td><${Time} at=${each.created_at} /></td><td><${Time} at=${each.expires_at} /></td>
        <td class="act"><${Button} small tone="bad" onClick=${() => revoke(each, again)}
          label=${`${verb} ${name}`}>${verb}<//></td></tr>`;
    })}</tbody></table></div>`;
}

function NewAddress({ onClose }) {
  const [handle, setHandle] = useState(''), [tools, setTools] = useState('');
  const make = async () => {
    const more = tools && { tools: [tools] };
    const made = await call('session_new', { handle: handle.trim(), ...more });
    changed();
    showAddress(made);
  };
  return html`<${Form} title="Address for an agent" verb="Make the address" act=${make}
    onClose=${onClose} disabled=${!handle.trim()}>
    <p>An MCP client that has the address works here under this name: it has an inbox, and can use
      terminals, queues and the other tools.</p>
    <${Field} label="Name"><${Input} value=${handle} onInput=${setHandle} data-first
      placeholder="editor" maxlength="64" /><//>
    <${Field} label="Tools that it offers"><${Select} label="Tools that it offers" of=${TOOLS}
      value=${tools} onChange=${setTools} /><//><//>`;
}

const showAddress = ({ handle, url, tools }) => open(Secret, {
  title: `Address of ${handle}`, address: url,
  children: html`<p>Give it to one MCP client only, and keep it secret: it is the key of
    <bdi> ${handle}</bdi>. It offers: ${tools.join(', ')}.</p>`,
});

const own = handle => agentOf(handle)
  ? ` The agent ${handle} itself is one of them, and has no tools here without it.` : '';

function Addresses({ handles, again }) {
  const replace = handle => confirm({
    title: `Replace the address of ${handle}?`, verb: 'Replace', tone: 'bad',
    text: 'Clients that use the present address are disconnected, and need the new one.'
      + own(handle),
    act: async () => {
      await call('token_rotate', { session: handle });
      const made = await call('session_new', { handle });
      showAddress(made);
    },
  });
  const drop = handle => confirm({
    title: `Revoke the address of ${handle}?`, verb: 'Revoke', tone: 'bad',
    text: 'Clients that use it are disconnected for good. The inbox of this name is kept.'
      + own(handle),
    act: async () => { await call('session_revoke', { handle }); await again(); },
  });
  if (!handles.length) return html`<p class="calm">None. An agent of your own, outside of this page,
    connects by one.</p>`;
  return html`<ul class="rows">${handles.map(handle => html`<li class="row" key=${handle}>
    <bdi class="name grow">${handle}</bdi>
    <${Button} small label=${`Show the address of ${handle}`} onClick=${async () =>
      showAddress(await call('session_new', { handle }))}>Show<//>
    <${Button} small label=${`Replace the address of ${handle}`}
      onClick=${() => replace(handle)}>Replace<//>
    <${Button} small tone="bad" label=${`Revoke the address of ${handle}`}
      onClick=${() => drop(handle)}>Revoke<//></li>`)}</ul>`;
}

const rotate = all => confirm({
  title: all ? 'Replace all keys?' : 'Replace the key of the operator?',
  verb: 'Replace', tone: 'bad',
  text: html`<p>All browsers are logged out, this one too, and all read-only links end.
    ${' '}${all ? 'The addresses of all agents end as well: their clients are disconnected.'
    : 'Command lines and clients read the new key by themselves; the addresses of agents stay.'}</p>
    <p>To log in again, run <code>aegis-actors web</code> on the machine of the daemon.</p>`,
  act: async () => { await call('token_rotate', all ? { all_keys: true } : {}); },
});

function Subscriptions({ list, again }) {
  const drop = each => confirm({
    title: `Stop the notifications of ${each.label || each.service}?`, verb: 'Stop', tone: 'bad',
    text: 'That browser gets none any more while the page is closed. It stays logged in.',
    act: async () => { await call('push_remove', { id: each.id }); await again(); },
  });
  return html`<ul class="rows">${list.map(each => html`<li class="row tall" key=${each.id}>
    <span class="two-lines grow"><bdi class="name">${each.label || each.service}</bdi>
    <span class="cut quiet">${each.problem || [each.requests && 'requests', each.ends && 'messages',
      each.hides && 'contents hidden'].filter(Boolean).join(', ')} · ${each.service}</span></span>
    <${Time} at=${each.created_at} /><${Button} small tone="bad" onClick=${() => drop(each)}
      label=${`Stop the notifications of ${each.label || each.service}`}>Stop<//></li>`)}</ul>`;
}

const NONE = { pages: [], links: [], handles: [], subscriptions: [] };
const readAll = async () => Object.assign({}, ...await Promise.all(
  ['page_list', 'session_list', 'push_list'].map(each => call(each)),
));

export function Access() {
  const { state } = connection.value;
  const [value, error, again] = useRead(readAll, [state]);
  useChanges(again);
  const { pages, links, handles, subscriptions } = value ?? NONE;
  return html`<${Head} title="Access" note="Who can reach this daemon"><${Button} small tone="main"
      onClick=${() => open(ShareLink)}>New link<//><//>
    <div class="page narrow">${state === 'up' && html`<${Why} of=${error} again=${again} />`}
    ${value && html`<${Section} title="Browsers" count=${pages.length} more=${html`<${Button} small
      onClick=${showCode}>Log in another…<//>`}>
      <${Pages} pages=${pages} label="Browser" again=${again} /><//>
    <${Section} title="Read-only links" count=${links.length}>
      <${Pages} pages=${links} label="Link" again=${again} /><//>
    <${Section} title="Addresses of agents" count=${handles.length} more=${html`<${Button} small
      onClick=${() => open(NewAddress)}>New address…<//>`}>
      <${Addresses} handles=${handles} again=${again} /><//>
    ${subscriptions.length > 0 && html`<${Section} title="Notified while closed"
      count=${subscriptions.length}><${Subscriptions} list=${subscriptions} again=${again} /><//>`}
    <${Section} title="Keys"><p>If a key may be known to others, replace it.</p>
      <div class="setting-ends"><${Button} tone="bad" onClick=${() => rotate(false)}>
        Replace the key of the operator…<//><${Button} tone="bad" onClick=${() => rotate(true)}>
        Replace all keys…<//></div><//>`}</div>`;
}

actions(() => isReadOnly.value ? [] : [
  { text: 'New read-only link', act: () => open(ShareLink), words: 'share' },
  { text: 'Log in another browser', act: showCode, words: 'phone code' },
  { text: 'New address for an agent', act: () => open(NewAddress), words: 'MCP session client' },
]);
