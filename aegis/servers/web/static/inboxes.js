// Inboxes: the list of them, and the messages of one.
import { ago, composer, el, keyed, line, plain, setText, toast } from './dom.js';
import { fill, row, section } from './overview.js';

const OWN = 'human', SHOWN = 200, NEWEST = 60, EVERY_MS = 3000;

export class InboxesView {
  constructor(app, parent) {
    this.app = app; this.part = section('Inboxes'); this.newest = new Map();
    parent.replaceChildren(el('div.page', {}, el('h1', {}, 'Inboxes'), this.part.box));
    this.unwatch = app.store.watch(changes => { if (changes.has('mail') || changes.has('agents')) this.refresh(); });
  }

  async refresh() {
    const { link, store } = this.app;
    try {
      const { peers, handles } = await link.call('meta'), all = [OWN, ...new Set([...peers.map(each => each.handle), ...handles])];
      this.show(all);
      for (const handle of all.slice(0, NEWEST)) {
        const { messages } = await link.call('inbox_read', { ...(handle === OWN ? {} : { from_handle: handle }), unread: false, limit: 1 });
        this.newest.set(handle, messages[0]);
      }
      this.show(all);
    } catch (error) { if (error.code !== 'lost') toast(error.message, 'bad'); }
    this.unread = store.mail.size;
  }

  show(handles) {
    keyed(this.part.list, handles, each => each, each => row(`#/m/${each}`), (item, handle) => {
      const last = this.newest.get(handle), unread = handle === OWN ? this.app.store.mail.size : 0;
      fill(item, { tone: unread ? 'bad' : last ? 'good' : 'off' }, handle === OWN ? 'You' : handle, last ? `${from(last)}: ${last.body}` : '', [unread && `${unread} unread`, last && `${ago(last.timestamp)} ago`].filter(Boolean).join(' · '));
    });
  }

  close() { this.unwatch(); }
}

const from = message => line(message.sender.replace(/^agent:/, ''), 60);

/** Return where a sender is shown, if the page shows it. */
function place(sender, store) {
  const [kind, name] = sender.split(/:(.*)/);
  if (kind === 'term' && store.terminals.has(name)) return `#/t/${name}`;
  if (kind === 'queue' && store.queues.has(name)) return `#/q/${name}`;
  if (kind === 'canvas' && store.canvases.has(name)) return `#/c/${name}`;
  return kind === 'agent' ? store.agent(name) ? `#/a/${name}` : `#/m/${name}` : null;
}

export function message(each, store) {
  const at = place(each.sender, store), name = el('b', {}, from(each));
  return el('li.ask.letter', {}, el('div.top', {}, el('span.dot', { 'aria-hidden': 'true' }), at ? el('a', { href: at }, name) : name, each.status === 'error' && el('span.chip.bad', {}, 'failed'), el('span.grow'), el('time.quiet.small', { dateTime: each.timestamp, title: new Date(each.timestamp).toLocaleString() }, `${ago(each.timestamp)} ago`)), el('div.said', {}, plain(each.body, 20000)));
}

export class InboxView {
  constructor(handle, app, parent) {
    this.handle = handle; this.app = app; this.isOwn = handle === OWN;
    this.state = el('span.quiet'); this.part = section(this.isOwn ? 'Messages to you' : `Messages to ${handle}`);
    this.part.list.setAttribute('aria-live', 'polite');
    this.reader = el('button.btn', { type: 'button', hidden: true, onclick: () => app.store.acknowledge().catch(error => toast(error.message, 'bad')) }, 'Mark all as read');
    parent.replaceChildren(el('div.head', {}, el('h1.cut', {}, this.isOwn ? 'Your inbox' : `Inbox of ${handle}`), this.state, el('span.grow'), this.reader, el('a.btn.bare', { href: '#/inboxes' }, 'All inboxes')), el('div.page', {}, this.part.box, !this.isOwn && this.writer()));
    // A stream would count as a reader of that handle: its senders would believe that their message was read.
    this.timer = this.isOwn ? null : setInterval(() => { if (document.visibilityState === 'visible') this.refresh(); }, EVERY_MS);
    this.unwatch = app.store.watch(changes => { if (changes.has('mail')) this.refresh(); });
  }

  writer() {
    const box = el('textarea.field', { rows: 2, placeholder: `Write to ${this.handle}…`, 'aria-label': `Message to ${this.handle}`, onkeydown: event => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) send(); } });
    const send = composer(box, `/m/${this.handle}`, async (text, key) => { await this.app.link.call('handoff', { target_handle: this.handle, context: text, key }); this.refresh(); });
    return el('form.card', { onsubmit: event => { event.preventDefault(); send(); } }, el('div.ask', {}, box, el('div.acts', {}, el('button.btn.main', { type: 'submit' }, 'Send'), el('span.quiet.small', {}, 'Ctrl Enter sends'))));
  }

  async refresh() {
    const whose = this.isOwn ? {} : { from_handle: this.handle };
    try {
      const [all, open] = [await this.app.link.call('inbox_read', { ...whose, unread: false, limit: SHOWN }), this.isOwn ? { messages: [...this.app.store.mail.values()] } : await this.app.link.call('inbox_read', { ...whose, limit: SHOWN })];
      const unread = new Set(open.messages.map(each => each.id));
      keyed(this.part.list, all.messages.toReversed(), each => each.id, each => message(each, this.app.store), (item, each) => { item.querySelector('.dot').className = `dot ${unread.has(each.id) ? 'bad' : 'off'}`; });
      setText(this.part.note, 'No messages.');
      setText(this.state, unread.size ? `${unread.size} unread` : '');
      this.reader.hidden = !this.isOwn || !unread.size;
    } catch (error) { if (error.code !== 'lost') toast(error.message, 'bad'); }
  }

  close() { this.unwatch(); clearInterval(this.timer); }
}
