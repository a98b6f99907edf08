// The smaller pages: a queue with its tasks, a workflow run, the browsers that are logged in.
import { ago, el, keyed, line, once, plain, seconds, setText, toast } from './dom.js';
import { fill, row, section } from './overview.js';
import { requestCard } from './requests.js';
import { TASK } from './store.js';

export class QueueView {
  constructor(name, app, parent) {
    this.name = name; this.app = app;
    this.state = el('span.quiet.cut'); this.part = section('Tasks');
    const act = (label, command) => el('button.btn', { type: 'button', onclick: once(() => app.link.call(command, { queue: name }).catch(error => toast(error.message, 'bad'))) }, label);
    parent.replaceChildren(el('div.head', {}, el('h1', {}, `Queue ${name}`), this.state, el('span.grow'), act('Pause', 'queue_pause'), act('Resume', 'queue_resume')), el('div.page', {}, this.part.box));
    this.unwatch = app.store.watch(changes => { if (changes.has('queues')) this.refresh(); });
  }

  async refresh() {
    const queue = this.app.store.queues.get(this.name);
    if (queue) setText(this.state, queue.problem || `${queue.agent} × ${queue.max_parallel}${queue.paused ? ' · paused' : ''} · ${queue.running} run · ${queue.pending + queue.waiting} wait`);
    try {
      const { result } = await this.app.link.call('task_list', { queue: this.name, limit: 200 });
      keyed(this.part.list, result, task => task.task_id, task => task.worker ? row(`#/a/${task.worker}`) : row(`#/q/${this.name}`), (item, task) => fill(item, { tone: TASK[task.status] ?? '' }, task.status, task.error || task.payload, [task.waits && `waits ${task.waits}`, task.worker, `attempt ${task.attempt}/${task.max_attempts}`, ago(task.ended ?? task.started ?? task.enqueued)].filter(Boolean).join(' · ')));
      setText(this.part.note, 'No tasks.');
    } catch (error) { if (error.code !== 'lost') toast(error.message, 'bad'); }
  }

  close() { this.unwatch(); }
}

export class WorkflowView {
  constructor(id, app, parent) {
    this.id = id; this.app = app; this.title = el('h1', {}, 'Workflow'); this.state = el('span.quiet.cut');
    this.facts = el('dl.facts'); this.log = el('pre', { tabindex: '0' });
    const act = (label, command, when) => Object.assign(el('button.btn', { type: 'button', hidden: true, onclick: once(() => app.link.call(command, { workflow_id: id }).catch(error => toast(error.message, 'bad'))) }, label), { when });
    this.acts = [act('Resume', 'workflow_resume', ['cancelled', 'failed']), act('Retry', 'workflow_retry', ['cancelled', 'failed']), act('Cancel', 'workflow_cancel', ['running'])];
    this.open = el('ul.rows', { 'aria-label': 'Open requests' }); this.asks = el('section.card.inbox.filled', { 'aria-label': 'Waiting for you' }, this.open);
    parent.replaceChildren(el('div.head', {}, this.title, this.state, el('span.grow'), ...this.acts), el('div.page', {}, this.asks, el('section.card', { 'aria-label': 'Facts' }, this.facts), el('section.card', {}, el('header', {}, el('h2', {}, 'Log')), el('div.ask', {}, this.log))));
    this.unwatch = app.store.watch(changes => { if (changes.has('workflows')) this.refresh(); if (changes.has('requests')) this.ask(); });
  }

  async refresh() {
    try {
      const run = await this.app.link.call('workflow_status', { workflow_id: this.id });
      for (const each of this.acts) each.hidden = !each.when.includes(run.status);
      setText(this.title, line(run.name)); setText(this.state, `${run.status} · ${run.calls} calls · ${ago(run.started)}`);
      const facts = [['Started by', run.sender], ['Arguments', run.kwargs], ['Checkpoint', run.checkpoint], ['Runs now', run.current.join(', ')], ['Problem', run.problem], ['Error', run.error], ['Result', run.result]].filter(([, value]) => value);
      this.facts.replaceChildren(...facts.flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, plain(value, 4000))]));
      setText(this.log, plain(run.log, 60000) || 'nothing yet');
    } catch (error) { if (error.code !== 'lost') toast(error.message, 'bad'); }
  }

  /** Show what it asks, to be answered here. */
  ask() {
    const open = this.app.store.openRequests().filter(each => each.workflow === this.id);
    keyed(this.open, open, each => each.id, each => requestCard(each, this.app));
  }

  close() { this.unwatch(); }
}

export class PagesView {
  constructor(app, parent) {
    this.app = app;
    this.pages = section('Browsers that are logged in'); this.links = section('Read-only links', el('button.btn', { type: 'button', onclick: () => this.newLink() }, '+ Link'));
    parent.replaceChildren(el('div.page', {}, el('h1', {}, 'Access'), this.pages.box, this.links.box));
    this.refresh();
  }

  async refresh() {
    try {
      const found = await this.app.link.call('page_list');
      for (const [part, items, none] of [[this.pages, found.pages, 'None.'], [this.links, found.links, 'None. A link shows one terminal or agent, and can change nothing.']]) {
        keyed(part.list, items, each => each.id, each => el('li', {}, el('div.row.two', {}, el('span', {}, el('b', {}, each.view ? line(each.view) : 'everything'), ` ${line(each.label, 90)}`, el('span.quiet.small', {}, ` · until ${new Date(each.expires_at).toLocaleString()}${each.id === this.app.link.me?.page ? ' · this browser' : ''}`)), el('button.btn.no', { type: 'button', onclick: () => this.revoke(each) }, each.id === this.app.link.me?.page ? 'Log out' : 'Revoke'))));
        setText(part.note, none);
      }
    } catch (error) { if (error.code !== 'lost') toast(error.message, 'bad'); }
  }

  async revoke({ id }) { try { await this.app.link.call('page_revoke', { id }); } catch (error) { toast(error.message, 'bad'); } this.refresh(); }

  newLink() {
    const what = el('select.field', { 'aria-label': 'What it shows' }, [...this.app.store.terminals.keys()].map(each => el('option', { value: `terminal:${each}` }, `terminal ${each}`)), [...this.app.store.agents.values()].map(each => el('option', { value: `agent:${each.handle}` }, `agent ${each.handle}`)));
    const time = el('select.field', { 'aria-label': 'How long' }, [['1 hour', 3600], ['1 day', 86400], ['1 week', 604800]].map(([name, value]) => el('option', { value }, name)));
    const out = el('pre', { hidden: true });
    const make = async () => {
      try {
        const link = await this.app.link.call('page_link', { view: what.value, for_s: Number(time.value) });
        out.hidden = false; out.textContent = `${location.origin}/${new URL(link.url).hash}`;
        this.refresh();
      } catch (error) { toast(error.message, 'bad'); }
    };
    this.app.dialog('A read-only link', el('div.ask', {}, what, time, el('button.btn.main', { type: 'button', onclick: make }, 'Make the link'), out, el('p.quiet.small', {}, 'Whoever has the link sees this, and nothing else, until it ends or is revoked.')));
  }

  close() {}
}
