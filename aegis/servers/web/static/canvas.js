// A canvas: its sections, each edited under the number of the change that the writer has read.
import { drafts, el, line, once, plain, setText, toast } from './dom.js';
import { edited } from './difference.js';

export class CanvasView {
  constructor(name, app, parent) {
    this.name = name; this.app = app; this.rev = null; this.parts = new Map();
    this.where = el('span.quiet.small.mono.cut'); this.empty = el('p.quiet', { hidden: true }, 'The file is empty.'); this.body = el('div.page', {}, this.empty);
    parent.replaceChildren(el('div.head', {}, el('h1.cut', {}, `Canvas ${name}`), this.where, el('span.grow'), el('button.btn', { type: 'button', onclick: () => this.add() }, '+ Section')), this.body);
    this.unwatch = app.store.watch(changes => { if (changes.has('canvases')) this.refresh(); });
  }

  async refresh() {
    const known = this.app.store.canvases.get(this.name);
    if (known && known.rev === this.rev && !known.problem) return;
    if (known?.problem) { setText(this.where, line(known.problem)); return; }
    try { this.took(await this.app.link.call('canvas_read', { name: this.name })); } catch (error) { if (error.code !== 'lost') toast(error.message, 'bad'); }
  }

  took(text) {
    if (this.rev !== null && text.rev < this.rev) return; // an older answer came later
    this.rev = text.rev;
    setText(this.where, `${line(text.file)} · rev ${text.rev}`);
    const names = text.sections.map(each => each.section);
    for (const [name, part] of this.parts) if (!names.includes(name) && !part.isEdited) { part.box.remove(); this.parts.delete(name); }
    for (const each of text.sections) {
      let part = this.parts.get(each.section);
      if (!part) this.parts.set(each.section, part = new Section(this, each.section));
      part.show(each);
      this.body.append(part.box);
    }
    this.empty.hidden = this.parts.size > 0;
  }

  add() {
    const name = el('input.field', { 'aria-label': 'Heading of the section', placeholder: 'Heading', required: true, maxLength: 200 }), area = el('textarea.field.mono', { rows: 8, 'aria-label': 'Text of the section' });
    const place = `/c/${this.name} +`, draft = drafts.get(place);
    name.value = draft?.name ?? ''; area.value = draft?.text ?? '';
    for (const each of [name, area]) each.addEventListener('input', () => drafts.set(place, name.value || area.value ? { name: name.value, text: area.value } : null));
    const make = once(async () => {
      if (!name.reportValidity()) return;
      try {
        await this.app.link.call('canvas_write_section', { name: this.name, section: name.value.trim(), content: area.value });
        drafts.set(place, null); box.close();
      } catch (error) { toast(error.message, 'bad'); }
    });
    const box = this.app.dialog('New section', el('div.form', {}, name, area), [el('button.btn', { type: 'button', onclick: () => box.close() }, 'Cancel'), el('button.btn.main', { type: 'submit' }, 'Add')]);
    box.firstChild.addEventListener('submit', event => { event.preventDefault(); make(); }); name.focus();
  }

  close() { this.unwatch(); }
}

/** One section. What another writer has changed is never under the hands of this one: it is shown beside. */
class Section {
  constructor(view, name) {
    this.view = view; this.name = name; this.isEdited = false; this.place = `/c/${view.name}/${name}`; this.save = once(() => this.write());
    this.by = el('span.quiet.small'); this.change = el('button.btn.bare', { type: 'button', onclick: () => this.edit() }, 'Edit');
    this.text = el('pre', { tabindex: '0', 'aria-label': `Text of ${name}` }); this.body = el('div.ask', {}, this.text);
    this.box = el('section.card', { 'aria-label': name }, el('header', {}, el('h2.cut', {}, name === '_preamble' ? 'Before the first heading' : line(name)), this.by, this.change), this.body);
  }

  show(part) {
    const isFirst = !this.part, isNew = !isFirst && this.part.rev !== part.rev;
    this.part = part;
    setText(this.by, `${line(part.writer.replace(/^agent:/, ''))} · rev ${part.rev}`);
    setText(this.text, plain(part.text, 60000) || ' ');
    this.change.hidden = part.more || this.isEdited; // a text that is cut would be written back cut
    if (this.isEdited && isNew && part.rev !== this.written) this.warn();
    const draft = isFirst && !part.more && drafts.get(this.place);
    if (draft) this.edit(draft);
  }

  /** Open the editor, on what was written before the page was left, if there is any. */
  edit(draft) {
    const { text, rev } = this.part;
    this.isEdited = true; this.base = draft ? draft.base : text; this.read = draft ? draft.rev : rev; this.change.hidden = true;
    this.area = el('textarea.field.mono', { rows: Math.min(24, text.split('\n').length + 2), value: draft ? draft.text : text, 'aria-label': `New text of ${this.name}`, oninput: () => this.keep(), onkeydown: event => { if (event.key === 'Escape') { event.preventDefault(); this.leave(); } else if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) this.save(); } });
    this.note = el('div.conflict', { role: 'alert', hidden: true });
    this.saver = el('button.btn.main', { type: 'button', onclick: () => this.save() }, 'Save');
    this.body.replaceChildren(this.note, this.area, el('div.acts', {}, this.saver, el('button.btn', { type: 'button', onclick: () => this.leave() }, 'Cancel'), el('span.quiet.small', {}, 'Ctrl Enter saves, Esc cancels')));
    if (!draft) this.area.focus();
    else if (draft.rev !== rev) this.warn();
  }

  keep() { drafts.set(this.place, this.area.value === this.base ? null : { text: this.area.value, base: this.base, rev: this.read }); }

  async write() {
    const { view } = this;
    this.saver.disabled = true;
    try {
      this.written = (await view.app.link.call('canvas_write_section', { name: view.name, section: this.name, content: this.area.value, if_rev: this.read })).rev;
      this.done(); toast('saved');
    } catch (error) {
      await view.app.link.call('canvas_read', { name: view.name }).then(text => view.took(text), () => {});
      if (this.part.rev === this.read) toast(error.message, 'bad'); else this.warn();
    } finally { this.saver.disabled = false; }
  }

  /** Another writer was first: show its text; saving again replaces it, knowingly. */
  warn() {
    this.note.hidden = false;
    this.note.replaceChildren(el('p', {}, el('b', {}, line(this.part.writer.replace(/^agent:/, ''))), ` has written this section meanwhile (rev ${this.part.rev}). Your text is below; their change:`), edited(this.base, this.part.text), el('div.acts', {}, el('button.btn', { type: 'button', onclick: () => { this.area.value = this.part.text; this.accept(); } }, 'Take theirs'), el('button.btn.no', { type: 'button', onclick: () => this.accept() }, 'Keep mine')));
  }

  accept() { this.base = this.part.text; this.read = this.part.rev; this.note.hidden = true; this.keep(); this.area.focus(); }

  leave() {
    if (this.area.value === this.base) this.done();
    else this.view.app.confirm('Discard what you wrote?', `The section ${line(this.name)} stays as it is.`, async () => this.done());
  }

  done() { drafts.set(this.place, null); this.isEdited = false; this.change.hidden = this.part.more; this.body.replaceChildren(this.text); this.change.focus(); }
}
