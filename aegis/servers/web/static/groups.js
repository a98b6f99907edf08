// A group: its members, the newest order to all of them, and their replies.
import { ago, composer, el, keyed, line, plain, setText, toast } from './dom.js';
import { fill, row, section } from './overview.js';
import { agentState, REPLY } from './store.js';

export class GroupView {
  constructor(name, app, parent) {
    this.name = name; this.app = app; this.replies = new Map();
    this.state = el('span.quiet.cut'); this.members = section('Members');
    this.order = el('pre', { tabindex: '0', 'aria-label': 'Order' }); this.sent = el('span.quiet.small'); this.list = el('ul.rows', { 'aria-label': 'Replies' });
    this.part = el('section.card', { 'aria-label': 'Newest order', hidden: true }, el('header', {}, el('h2', {}, 'Newest order'), this.sent), el('div.ask', {}, this.order), this.list);
    this.box = el('textarea.field', { rows: 3, placeholder: 'An order for all members…', 'aria-label': 'Order to all members', onkeydown: event => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) this.send(); } });
    this.send = composer(this.box, `/g/${name}`, (text, key) => app.link.call('group_broadcast', { group: name, objective: text, callback: false, key }));
    this.sender = el('button.btn.main', { type: 'submit' }, 'Send to all');
    const dissolve = el('button.btn.no', { type: 'button', onclick: () => app.confirm(`Dissolve the group ${name}?`, 'Its members are closed; their transcripts stay.', () => app.link.call('group_dissolve', { group: name })) }, 'Dissolve');
    parent.replaceChildren(el('div.head', {}, el('h1.cut', {}, `Group ${name}`), this.state, el('span.grow'), dissolve),
      el('div.page', {}, this.members.box, this.part, el('form.card', { onsubmit: event => { event.preventDefault(); this.send(); } }, el('div.ask', {}, this.box, el('div.acts', {}, this.sender, el('span.quiet.small', {}, 'Ctrl Enter sends'))))));
    this.unwatch = app.store.watch(changes => { if (changes.has('groups') || changes.has('agents')) this.refresh(changes.has('groups')); });
  }

  refresh(isChanged) {
    const group = this.app.store.groups.get(this.name);
    this.sender.disabled = !group;
    if (!group) { setText(this.state, this.app.store.loaded.has('groups') ? 'there is no such group' : ''); return; }
    setText(this.state, group.problem ? line(group.problem) : [group.state === 'open' ? '' : group.state, group.forming && `${group.forming} start`, `of ${line(group.owner.replace(/^agent:/, ''))}`].filter(Boolean).join(' · '));
    keyed(this.members.list, group.members, each => each.handle, each => row(`#/a/${each.handle}`), (item, member) => {
      const agent = this.app.store.agent(member.handle), state = agent ? agentState(agent) : { tone: 'off', why: 'is closed' };
      fill(item, state, member.handle, state.why, [member.profile, agent && ago(state.since)].filter(Boolean).join(' · '));
    });
    const { broadcast } = group;
    this.part.hidden = !broadcast;
    if (broadcast && (isChanged || broadcast.broadcast_id !== this.shown)) this.show(broadcast);
  }

  async show(broadcast) {
    this.shown = broadcast.broadcast_id;
    setText(this.order, plain(broadcast.objective, 8000));
    setText(this.sent, `${line(broadcast.sender.replace(/^agent:/, ''))} · ${ago(broadcast.at)} ago${broadcast.is_over ? '' : ' · waits for replies'}`);
    try {
      const found = await this.app.link.call('group_wait_all', { group: this.name, broadcast_id: broadcast.broadcast_id, timeout: 0 });
      if (this.shown !== found.broadcast_id) return;
      keyed(this.list, Object.entries(found.metadata.members), ([handle]) => `${found.broadcast_id} ${handle}`, ([handle]) => this.reply(handle), (item, [handle, member]) => {
        const { chip, why, text } = item.parts;
        chip.className = `chip ${REPLY[member.status] ?? ''}`; setText(chip, member.status); setText(why, line(member.reason));
        text.hidden = !(handle in found.by_member); setText(text, plain(found.by_member[handle], 20000));
      });
    } catch (error) { if (error.code !== 'lost') toast(error.message, 'bad'); }
  }

  reply(handle) {
    const chip = el('span.chip'), why = el('span.quiet.cut'), text = el('pre', { tabindex: '0', 'aria-label': `Reply of ${handle}` });
    return Object.assign(el('li.ask.letter', {}, el('div.top', {}, el('a', { href: `#/a/${handle}` }, el('b', {}, line(handle))), chip, why), text), { parts: { chip, why, text } });
  }

  close() { this.unwatch(); }
}
