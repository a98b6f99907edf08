// The page: login, pages by the address's fragment, search, keys, theme.
import { AgentView } from './agent.js';
import { CanvasView } from './canvas.js';
import { $, drafts, el, line, toast } from './dom.js';
import { GroupView } from './groups.js';
import { InboxesView, InboxView } from './inboxes.js';
import { Link } from './link.js';
import { Notifier } from './notify.js';
import { Overview } from './overview.js';
import { PagesView, QueueView, WorkflowView } from './pages.js';
import { newTerminal, newWorkspace, openCanvas, runWorkflow } from './start.js';
import { agentState, Store, terminalState } from './store.js';
import { TerminalView } from './terminal.js';

const stored = (key, value) => { try { if (value === undefined) return localStorage.getItem(key); value === null ? localStorage.removeItem(key) : localStorage.setItem(key, value); } catch { /* storage is off: the page works until it is closed */ } return null; };
// decodeURIComponent raises on an address that was cut inside of a character: it names nothing then.
const decoded = text => { try { return decodeURIComponent(text); } catch { return text; } };

class App {
  constructor() {
    this.settings = { theme: stored('theme') ?? 'auto', reader: stored('reader') ?? 'off', renderer: new URLSearchParams(location.search).get('renderer') ?? '' };
    this.dark = matchMedia('(prefers-color-scheme: dark)');
    this.dark.addEventListener('change', () => this.theme());
    this.theme();
    this.main = $('main'); this.current = null; this.view = null;
    // A login address that is pasted into this tab changes nothing but the fragment.
    addEventListener('hashchange', () => /^#(code|v)=/.test(location.hash) ? location.reload() : this.route());
    addEventListener('keydown', event => { if (!this.takesKey(event)) event.stopPropagation(); }, true);
    $('menu').addEventListener('click', () => this.menu());
    this.finder();
    this.start();
  }

  theme() { document.documentElement.dataset.theme = this.settings.theme === 'auto' ? (this.dark.matches ? 'dark' : 'light') : this.settings.theme; }

  // Login: the code or the link's secret is in the fragment, which is never sent with a request.

  async start() {
    const given = new URLSearchParams(location.hash.slice(1)), code = given.get('code'), secret = given.get('v');
    if (code || secret) {
      history.replaceState(null, '', '/');
      try { await this.logIn(code ? { code } : { link: secret }); } catch (error) { this.loginPage(error.message); return; }
    }
    const isView = sessionStorage.getItem('view') !== null;
    const key = isView ? sessionStorage.getItem('view-key') : stored('page-key');
    if (!key) { this.loginPage(''); return; }
    drafts.project = stored('project') ?? '';
    this.link = new Link(key, (state, reason) => this.linked(state, reason));
    this.store = new Store(this.link);
    window.app = this; // for the tests, and for the curious
  }

  async logIn(body) {
    const response = await fetch('/login', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
    if (!response.ok) throw new Error((await response.text()).trim());
    const { key, view, project } = await response.json();
    if (view === null) { stored('page-key', key); stored('project', project); sessionStorage.removeItem('view'); }
    else { sessionStorage.setItem('view', view); sessionStorage.setItem('view-key', key); } // only in this tab
  }

  loginPage(reason) {
    this.current?.close(); this.current = null; $('tabs').replaceChildren(); $('foot').replaceChildren();
    $('link').className = 'link out'; $('link').textContent = 'logged out';
    this.main.className = '';
    this.main.replaceChildren(el('section.card.login', {}, el('h1', {}, 'Log in'), reason && el('p', { role: 'alert' }, line(reason, 400)), el('p.quiet', {}, 'Run this on the machine of the daemon, in its project. It opens this page, or prints an address that is valid for a minute:'), el('pre', {}, 'aegis-actors web')));
  }

  linked(state, reason) {
    const badge = $('link');
    badge.className = `link ${state}`;
    badge.textContent = { up: 'live', down: 'reconnecting', out: 'logged out' }[state] ?? state;
    if (state === 'out') { if (this.view === null) stored('page-key', null); this.loginPage(reason); return; }
    if (state !== 'up') return;
    if (this.link.isRestarted) toast('the daemon was restarted');
    if (this.isStarted) return;
    this.isStarted = true;
    this.view = this.link.me.view ?? null;
    if (this.view === null) {
      this.store.start();
      this.notifier = new Notifier(this.store);
      this.store.watch(() => this.tabs());
      this.store.addEventListener('settled', ({ detail }) => { if (detail.by && detail.by !== 'human') toast(`${detail.by} answered the request of ${detail.handle}`); });
    }
    this.route();
  }

  tabs() {
    const open = this.store.requests.size, place = location.hash || '#/';
    const links = [['#/', 'Overview', open, 'open requests'], ['#/inboxes', 'Inboxes', this.store.mail.size, 'unread messages'], ['#/access', 'Access', 0]];
    const [, kind, name] = /^#\/([a-z])\/([^/]+)$/.exec(place) ?? [];
    const known = name && decoded(name), label = kind === 'w' ? this.store.workflows.get(known)?.name ?? 'Workflow' : kind === 'm' ? known === 'human' ? 'Your inbox' : `✉ ${known}` : known;
    if (kind) links.splice(1, 0, [place, line(label, 60), 0]);
    const text = JSON.stringify([links, place]);
    if (text === this.tabsShown) return;
    this.tabsShown = text;
    $('tabs').replaceChildren(...links.map(([href, label, number, what]) => el('a', { href, 'aria-current': href === place ? 'page' : null }, el('span.cut', {}, label), number ? el('span.count', { 'aria-label': `${number} ${what}` }, number) : null)));
    document.title = `${open ? `(${open}) ` : ''}${kind ? `${line(label, 60)} · ` : ''}aegis-actors`;
  }

  route() {
    if (!this.isStarted || this.link.state === 'out') return;
    const place = this.view !== null ? `#/${this.view.replace('terminal:', 't/').replace('agent:', 'a/')}` : location.hash || '#/';
    const [, kind = '', name = ''] = /^#\/([a-z]*)\/?(.*)$/.exec(place) ?? [];
    if (this.shown === place && this.current) return;
    this.shown = place;
    this.current?.close();
    const known = { t: TerminalView, a: AgentView, q: QueueView, c: CanvasView, w: WorkflowView, g: GroupView, m: InboxView }[kind];
    this.main.className = kind === 't' || kind === 'a' ? 'whole' : '';
    this.main.scrollTop = 0;
    this.current = known && name ? new known(decoded(name), this, this.main) : kind === 'access' ? new PagesView(this, this.main) : kind === 'inboxes' ? new InboxesView(this, this.main) : new Overview(this, this.main);
    if (this.view !== null) { $('tabs').replaceChildren(el('span.chip', {}, 'read-only')); document.querySelector('.find').hidden = true; $('menu').hidden = false; } else this.tabs();
  }

  // Search: terminals, agents, queues and actions, by keyboard alone.

  finder() {
    const input = $('find');
    const list = this.palette = el('ul.palette', { id: 'found', role: 'listbox', 'aria-label': 'Found', hidden: true });
    document.body.append(list);
    for (const [name, value] of [['role', 'combobox'], ['aria-expanded', 'false'], ['aria-controls', 'found']]) input.setAttribute(name, value);
    const move = step => {
      const all = [...list.children], at = all.findIndex(each => each.getAttribute('aria-selected') === 'true');
      all[at]?.setAttribute('aria-selected', 'false');
      const next = all[(at + step + all.length) % all.length];
      next?.setAttribute('aria-selected', 'true'); next?.scrollIntoView({ block: 'nearest' });
      input.setAttribute('aria-activedescendant', next?.id ?? '');
    };
    const close = () => { list.hidden = true; input.setAttribute('aria-expanded', 'false'); };
    const show = () => {
      if (!this.store) return;
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      const all = [...[...this.store.terminals.values()].map(each => ({ text: each.name, more: terminalState(each).what || each.cwd, kind: 'terminal', tone: terminalState(each).tone, go: `#/t/${each.name}` })),
        ...[...this.store.agents.values()].map(each => ({ text: each.handle, more: agentState(each).why, kind: 'agent', tone: agentState(each).tone, go: `#/a/${each.handle}` })),
        ...[...this.store.queues.keys()].map(each => ({ text: each, more: '', kind: 'queue', tone: 'good', go: `#/q/${each}` })),
        ...[...this.store.canvases.values()].map(each => ({ text: each.name, more: each.file, kind: 'canvas', tone: 'good', go: `#/c/${each.name}` })),
        ...[...this.store.groups.keys()].map(each => ({ text: each, more: '', kind: 'group', tone: 'good', go: `#/g/${each}` })),
        ...[...this.store.workflows.values()].map(each => ({ text: each.name, more: `${each.status} ${each.workflow_id}`, kind: 'workflow', tone: 'good', go: `#/w/${each.workflow_id}` })),
        ...['human', ...[...this.store.agents.values()].map(each => each.handle)].map(each => ({ text: each === 'human' ? 'your inbox' : `inbox of ${each}`, more: '', kind: 'inbox', tone: 'off', go: `#/m/${each}` })),
        ...this.actions().map(([text, , act]) => ({ text, more: '', kind: 'action', tone: 'off', act }))];
      const found = all.filter(each => words.every(word => `${each.text} ${each.kind} ${each.more ?? ''}`.toLowerCase().includes(word))).slice(0, 40);
      list.replaceChildren(...found.map((each, index) => el('li', { id: `found-${index}`, role: 'option', 'aria-selected': String(index === 0), onpointerdown: event => event.preventDefault(), onclick: () => { input.value = ''; close(); input.blur(); each.act ? each.act() : (location.hash = each.go); } }, el(`span.dot.${each.tone}`), el('b', {}, line(each.text, 80)), el('span.quiet.cut.grow', {}, line(each.more ?? '', 120)), el('span.chip', {}, each.kind))));
      list.hidden = !found.length; input.setAttribute('aria-expanded', String(!list.hidden));
    };
    input.addEventListener('input', show); input.addEventListener('focus', show); input.addEventListener('blur', close);
    input.addEventListener('keydown', event => {
      if (event.key === 'ArrowDown') { move(1); event.preventDefault(); }
      else if (event.key === 'ArrowUp') { move(-1); event.preventDefault(); }
      else if (event.key === 'Enter') { list.querySelector('[aria-selected=true]')?.click(); event.preventDefault(); }
      else if (event.key === 'Escape') { input.value = ''; input.blur(); this.main.focus(); }
    });
  }

  /** Return whether a key goes on to what has the focus. */
  takesKey(event) {
    if (event.type !== 'keydown' || event.defaultPrevented) return true;
    const isWriting = event.target.closest?.('input, textarea, select, .xterm');
    const act = (event.ctrlKey && event.shiftKey && { KeyF: () => this.current?.seek?.(), KeyO: () => { location.hash = '#/'; }, KeyP: () => $('find').focus() }[event.code])
      || (!isWriting && !event.ctrlKey && !event.metaKey && !event.altKey && { '/': () => $('find').focus(), g: () => { location.hash = '#/'; }, i: () => { location.hash = '#/inboxes'; }, n: () => this.newTerminal(), w: () => this.runWorkflow(), c: () => this.openCanvas(), '?': () => this.help() }[event.key]);
    if (!act || this.view !== null) return true;
    event.preventDefault(); act();
    return false;
  }

  actions() {
    const next = { auto: 'dark', dark: 'light', light: 'auto' }[this.settings.theme];
    return [['New terminal', 'n', () => this.newTerminal()], ['Run a workflow', 'w', () => this.runWorkflow()], ['Open a canvas', 'c', () => this.openCanvas()], ['New workspace', '', () => this.newWorkspace()], ['Overview', 'g', () => { location.hash = '#/'; }], ['Inboxes', 'i', () => { location.hash = '#/inboxes'; }], ['Access: browsers and links', '', () => { location.hash = '#/access'; }], [`Theme: ${next}`, '', () => { this.settings.theme = next; stored('theme', next); this.theme(); }],
      [`Screen reader mode: ${this.settings.reader === 'on' ? 'off' : 'on'}`, '', () => { this.settings.reader = this.settings.reader === 'on' ? 'off' : 'on'; stored('reader', this.settings.reader); this.shown = null; this.route(); }],
      ...(this.notifier?.isPossible && !this.notifier.isAllowed ? [['Notify me of requests', '', () => this.notifier.ask().then(answer => toast(answer === 'granted' ? 'you will be notified' : 'notifications are not allowed'))]] : []),
      ['Keys', '?', () => this.help()]];
  }

  menu() {
    if (this.pop) { this.pop.remove(); this.pop = null; return; }
    const actions = this.view === null ? this.actions() : this.actions().filter(([text]) => text.startsWith('Theme'));
    const pop = this.pop = el('div.pop', { role: 'menu' }, actions.map(([text, key, act]) => el('button', { type: 'button', role: 'menuitem', onclick: () => { pop.remove(); this.pop = null; act(); } }, text, key && el('kbd', {}, key))));
    document.body.append(pop); pop.firstChild.focus();
    const close = event => { if (event.type === 'keydown' ? event.key === 'Escape' : !pop.contains(event.target) && event.target !== $('menu')) { pop.remove(); if (this.pop === pop) this.pop = null; removeEventListener('pointerdown', close); removeEventListener('keydown', close); } };
    addEventListener('pointerdown', close); addEventListener('keydown', close);
  }

  help() {
    const keys = [['/', 'search everything'], ['g', 'overview'], ['i', 'inboxes'], ['n', 'new terminal'], ['w', 'run a workflow'], ['c', 'open a canvas'], ['Ctrl Shift O', 'overview, from a terminal'], ['Ctrl Shift P', 'search, from a terminal'], ['Ctrl Shift F', 'find in the output'], ['Ctrl Enter', 'send or save what is written'], ['?', 'these keys']];
    this.dialog('Keys', el('table', {}, el('tbody', {}, keys.map(([key, text]) => el('tr', {}, el('td', {}, el('kbd', {}, key)), el('td', {}, text))))));
  }

  dialog(title, content, buttons) {
    const box = el('dialog', { 'aria-label': title });
    box.append(el('form', { method: 'dialog' }, el('h2', {}, title), content, el('div.acts', {}, buttons ?? el('button.btn', { value: 'close' }, 'Close'))));
    box.addEventListener('close', () => box.remove());
    document.body.append(box); box.showModal();
    return box;
  }

  confirm(title, text, act) {
    const box = this.dialog(title, typeof text === 'string' ? el('p', {}, text) : text, [el('button.btn', { value: 'no' }, 'Cancel'), el('button.btn.main', { type: 'button', onclick: () => { box.close(); act().catch(error => toast(error.message, 'bad')); } }, 'Yes')]);
  }

  newTerminal() { newTerminal(this); }
  runWorkflow() { runWorkflow(this); }
  openCanvas() { openCanvas(this); }
  newWorkspace() { newWorkspace(this); }

  bell(name) { if (document.visibilityState !== 'visible') document.title = `🔔 ${name} · aegis-actors`; else toast(`🔔 ${name}`); }
}

new App();
