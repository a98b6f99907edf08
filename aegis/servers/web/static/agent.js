// One agent: its transcript as it is written, its requests in place, a box to write to it.
import { $, ago, composer, count, el, keyed, line, money, once, plain, seconds, setText, toast } from './dom.js';
import { change, difference } from './difference.js';
import { requestCard } from './requests.js';
import { agentState } from './store.js';

const FIRST = 300, MOST = 1500;

export class AgentView {
  constructor(handle, app, parent) {
    this.handle = handle; this.app = app; this.link = app.link; this.isReadOnly = app.view !== null;
    this.seq = null; this.tools = new Map(); this.terminals = new Map(); this.asks = new Map(); this.texts = new Map();
    this.build(parent);
    this.follow();
    this.unwatch = this.isReadOnly ? () => {} : app.store.watch(() => this.refresh());
  }

  build(parent) {
    this.dot = el('span.dot'); this.state = el('span.quiet.small.cut'); this.usage = el('span.quiet.small.usage');
    const act = (label, text, go, kind = '.bare') => el(`button.btn${kind}`, { type: 'button', onclick: once(() => go().then(() => text && toast(text), error => toast(error.message, 'bad'))) }, label);
    this.head = el('div.head', {}, this.dot, el('h1', {}, this.handle), this.state, el('span.grow'), this.usage,
      !this.isReadOnly && act('Interrupt', 'interrupted', () => this.link.call('interrupt', { handle: this.handle })),
      !this.isReadOnly && el('button.btn.bare', { type: 'button', onclick: () => this.diff() }, 'Changes'));
    this.items = el('ol', { 'aria-label': 'Transcript' });
    this.talk = el('div.talk', { tabindex: '0', role: 'log', 'aria-label': `Transcript of ${this.handle}` }, this.items);
    this.open = el('ol', { 'aria-label': 'Open requests' });
    this.talk.append(this.open);
    this.items.style.marginBottom = '10px';
    const box = this.box = el('textarea.field', { rows: 1, placeholder: `Write to ${this.handle}…`, 'aria-label': `Message to ${this.handle}`, oninput: () => { box.style.height = 'auto'; box.style.height = `${Math.min(box.scrollHeight + 2, 240)}px`; }, onkeydown: event => { if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) { event.preventDefault(); this.write(); } } });
    this.write = composer(box, `/a/${this.handle}`, async (text, key) => { await this.link.call('handoff', { target_handle: this.handle, context: text, key }); toast('sent'); });
    parent.replaceChildren(this.head, this.talk);
    if (!this.isReadOnly) parent.append(el('form.compose', { onsubmit: event => { event.preventDefault(); this.write(); } }, box, el('button.btn.main', { type: 'submit' }, 'Send')));
  }

  async diff() {
    try {
      const found = await this.link.call('agent_diff', { handle: this.handle });
      this.app.dialog(`Changes of ${this.handle}`, el('div', {}, el('p.quiet', {}, `since ${found.base.slice(0, 12)} in `, el('code', {}, plain(found.directory))), difference(found.diff || 'no changes'), found.new_files.length ? el('p', {}, `new files: ${found.new_files.map(each => line(each)).join(', ')}`) : null));
    } catch (error) { toast(error.message, 'bad'); }
  }

  follow() {
    const args = () => this.seq === null ? { handle: this.handle, last_n: FIRST } : { handle: this.handle, since: this.seq };
    this.stream = this.link.open('session', args, {
      item: ({ entries }) => {
        const isAtEnd = this.isAtEnd();
        for (const entry of entries) { this.seq = entry.seq; this.take(entry); }
        while (this.items.childElementCount > MOST) this.items.firstChild.remove();
        if (isAtEnd) this.talk.scrollTop = this.talk.scrollHeight;
      },
      ended: frame => { if (frame.code !== 'unavailable') this.add(el('li.turn', {}, line(frame.message ?? 'the session is closed'))); },
    });
  }

  refresh() {
    const agent = this.app.store.agent(this.handle);
    if (!agent) return;
    const { tone, why, since } = agentState(agent);
    this.dot.className = `dot ${tone}`;
    setText(this.state, `${line(why)} · ${ago(since)}`);
    const { usage } = agent;
    setText(this.usage, usage ? [usage.context_percent !== null && `context ${Math.round(usage.context_percent)} %`, usage.output_tokens && `${count(usage.output_tokens)} tokens`, money(usage.cost_usd)].filter(Boolean).join(' · ') : agent.model);
    if (agent.program && !this.sent) { this.sent = true; this.add(el('li', {}, el('a.btn', { href: `#/t/${agent.program.terminal}` }, `It runs on the terminal ${agent.program.terminal}`))); }
    const isAtEnd = this.isAtEnd(), shown = this.open.childElementCount;
    keyed(this.open, this.app.store.openRequests().filter(each => each.handle === this.handle), each => each.id, each => { const card = requestCard(each, this.app); card.classList.add('card'); return card; });
    if (isAtEnd && this.open.childElementCount > shown) this.talk.scrollTop = this.talk.scrollHeight;
  }

  isAtEnd() { return this.talk.scrollHeight - this.talk.scrollTop - this.talk.clientHeight < 80; }

  add(item) { this.items.append(item); return item; }

  take({ kind, fields, at }) {
    if (kind === 'turn_opened') { this.add(el('li.turn', {}, `turn ${fields.turn} · ${new Date(at).toLocaleTimeString()}`)); if (fields.text) this.add(el('li.mine', {}, plain(fields.text))); }
    else if (kind === 'turn_ended') { this.texts.clear(); this.add(el('li.turn', {}, `${line(fields.outcome ?? 'ended')}${fields.reason && fields.reason !== fields.outcome && fields.outcome !== 'completed' ? `: ${line(fields.reason)}` : ''}`)); }
    else if (kind === 'event') this.event(fields.event ?? {});
    else if (kind === 'decided' && !String(fields.answer?.kind ?? '').startsWith('allow')) this.add(el('li.quiet.small', {}, `✗ refused by the profile: ${line(fields.why)}`));
    else if (kind === 'closed' || kind === 'interrupt') this.add(el('li.turn', {}, `${kind === 'closed' ? 'closed' : 'interrupted'} by ${line(fields.by)}`));
  }

  event(event) {
    switch (event.type) {
      case 'assistant_text': this.text(event); break;
      case 'assistant_thinking': this.thought(event); break;
      case 'tool_use': this.tool(event); break;
      case 'tool_progress': if (event.terminal) this.tie(event); break;
      case 'tool_result': this.result(event); break;
      case 'terminal_started': this.terminal(event.terminal, event.command); break;
      case 'terminal_output': case 'terminal_ended': this.output(event); break;
      case 'plan': this.plan(event); break;
      case 'retrying': this.add(el('li.quiet.small', {}, `retrying, ${event.attempt} of ${event.attempts}`)); break;
      case 'too_large': this.add(el('li', {}, el('span.chip.warn', {}, `${line(event.kind) || 'an item'} is too large, ${(event.size / 2 ** 20).toFixed(1)} MiB: only a part of it is kept`))); break;
      case 'rate_limit': if (event.status !== 'allowed') this.add(el('li', {}, el('span.chip.warn', {}, `usage limit: ${event.status}`))); break;
    }
  }

  text(event) {
    const known = event.message && this.texts.get(event.message);
    if (known && known === this.items.lastElementChild) { known.append(plain(event.text)); return; } // else something came between
    const item = this.add(el('li.said', {}, plain(event.text)));
    if (event.message) this.texts.set(event.message, item);
  }

  thought(event) {
    const last = this.items.lastElementChild;
    if (last?.classList.contains('thinks')) { last.firstChild.lastChild.append(plain(event.text)); return; }
    this.add(el('li.thinks', {}, el('details.thought', {}, el('summary', {}, 'thought'), el('div', {}, plain(event.text)))));
  }

  tool(event) {
    let tool = this.tools.get(event.id);
    if (!tool) {
      const title = el('span.cut.grow'), chip = el('span.chip.busy', {}, 'runs'), body = el('div');
      tool = { title, chip, body, box: el('details.tool', {}, el('summary', {}, el('b', {}), title, chip), body) };
      this.tools.set(event.id, tool);
      this.add(el('li', {}, tool.box));
    }
    const input = event.input ?? {};
    setText(tool.box.querySelector('b'), line(event.name || event.kind, 60));
    setText(tool.title, line(event.title || input.command || input.file_path || input.path || input.pattern || '', 200));
    const shown = shownInput(input);
    tool.body.replaceChildren(...shown);
    if (shown.some(each => each.className === 'diff')) tool.box.open = true;
  }

  tie(event) {
    const tool = this.tools.get(event.id);
    if (!tool) return;
    const known = this.terminals.get(event.terminal);
    if (known?.item) { tool.body.append(known.out); known.chip.hidden = true; tool.chip.before(known.chip); known.item.remove(); known.item = null; } // it began before its tool call was known
    else if (!known) this.terminals.set(event.terminal, this.pane(tool.body));
    tool.box.open = true;
  }

  pane(parent) { const out = el('pre.out', { tabindex: '0' }); parent.append(out); return { out }; }

  terminal(id, command) {
    if (this.terminals.has(id)) return this.terminals.get(id);
    const body = el('div'), box = el('details.tool', { open: true }, el('summary', {}, el('b', {}, '$'), el('span.cut.grow.mono', {}, line(command)), el('span.chip.busy', {}, 'live')), body);
    const pane = { ...this.pane(body), chip: box.querySelector('.chip'), item: this.add(el('li', {}, box)) };
    this.terminals.set(id, pane);
    return pane;
  }

  output(event) {
    const pane = this.terminal(event.terminal, event.command ?? '');
    const isAtEnd = pane.out.scrollHeight - pane.out.scrollTop - pane.out.clientHeight < 40;
    setText(pane.out, `${event.truncated ? '…\n' : ''}${plain(event.output, 40000)}`);
    if (isAtEnd) pane.out.scrollTop = pane.out.scrollHeight;
    if (event.type === 'terminal_ended' && pane.chip) { const good = event.exit_code === 0; pane.chip.hidden = false; pane.chip.className = `chip ${good ? 'good' : 'bad'}`; setText(pane.chip, event.signal ? `signal ${event.signal}` : event.exit_code == null ? 'end not seen' : `exit ${event.exit_code}`); }
  }

  result(event) {
    const tool = this.tools.get(event.id);
    if (!tool) return;
    tool.chip.className = `chip ${event.is_error ? 'bad' : 'good'}`;
    setText(tool.chip, event.is_error ? 'failed' : 'done');
    if (event.text) tool.body.append(el('pre', { tabindex: '0' }, plain(event.text, 12000)));
  }

  plan({ steps }) {
    const list = el('ol.plan', {}, steps.map(step => el(`li.${step.status}`, {}, el('span', { 'aria-hidden': 'true' }, { completed: '✓', in_progress: '▸', pending: '○' }[step.status] ?? '○'), el('span', {}, line(step.text)))));
    if (this.planned?.isConnected) this.planned.replaceWith(this.planned = list); else this.add(el('li.card.ask', {}, el('h3', {}, 'Plan'), this.planned = list));
  }

  close() { this.stream.close(); this.unwatch(); $('foot').replaceChildren(); }
}

function shownInput(input) {
  if (typeof input.old_string === 'string' && typeof input.new_string === 'string') return change(input);
  if (Array.isArray(input.edits) && input.edits.length) return input.edits.flatMap(each => [each?.file_path && el('p.file', {}, line(each.file_path)), ...change(each)]).filter(Boolean);
  if (typeof input.diff === 'string') return [difference(input.diff)];
  if (typeof input.command === 'string') return [el('pre', { tabindex: '0' }, `$ ${plain(input.command, 8000)}`)];
  if (typeof input.content === 'string') return [difference(input.content.split('\n').map(each => `+${each}`).join('\n'))];
  return Object.keys(input).length ? [el('pre', { tabindex: '0' }, plain(JSON.stringify(input, null, 1), 12000))] : [];
}
