// One live terminal: its screen, then its bytes; its commands as blocks, by their offsets in the output.
import { $, clock, el, line, once, seconds, setText, toast } from './dom.js';
import { Ledger } from './ledger.js';
import { drawOnce, load } from './xterm.js';

const RECORDS = 50, PAGES = 20, SCROLLBACK = 1000, TAIL = 64, ESC = 27, LOOK_MS = 300;
const MARK_C = /\x1b\]133;C[^\x07\x1b]*(?:\x07|\x1b\\)/g;
const LATIN = new TextDecoder('latin1'), NOTHING = new Uint8Array();
const DARK = { background: '#0e1116', foreground: '#dfe5ee', cursor: '#7aa7ff', selectionBackground: '#2f4a7a', overviewRulerBorder: '#283039', scrollbarSliderBackground: '#2a3340' };

export class TerminalView {
  constructor(name, app, parent) {
    this.name = name; this.app = app; this.link = app.link; this.isReadOnly = app.view !== null;
    this.cursor = null; this.tail = NOTHING; this.marks = []; this.blocks = new Map(); this.records = new Map(); this.starts = new Map();
    this.owner = null; this.size = null; this.ctrl = false; this.isOver = false; this.bells = 0;
    this.base = matchMedia('(pointer: coarse)').matches ? 12 : 13;
    this.build(parent);
    this.started = this.begin();
  }

  build(parent) {
    this.dot = el('span.dot'); this.state = el('span.quiet.small.cut'); this.where = el('span.where.cut');
    this.typing = el('span.chip.busy', { hidden: true });
    this.toggle = el('button.btn.bare', { type: 'button', onclick: () => this.showLedger(), 'aria-pressed': 'true', title: 'Show or hide the commands' }, 'Commands');
    const close = el('button.btn.bare', { type: 'button', onclick: () => this.app.confirm(`Close the terminal ${this.name}?`, 'Its programs end; its history stays.', () => this.link.call('term_close', { name: this.name })) }, 'Close');
    this.head = el('div.head', {}, this.dot, el('h1', {}, this.name), this.where, this.state, el('span.grow'), this.typing, this.seekBar(), this.toggle, !this.isReadOnly && close);
    this.banner = el('div.banner', { role: 'status' });
    this.screen = el('div.view', { 'aria-label': `Terminal ${this.name}`, role: 'region' }, this.banner);
    this.list = el('div.blocks', { role: 'list', 'aria-label': 'Commands, newest first', tabindex: '0', onscroll: () => { if (this.list.scrollHeight - this.list.scrollTop < 2 * this.list.clientHeight) this.older(); } });
    this.ledger = new Ledger(this.list, record => this.block(record), (row, record) => this.update(row, record));
    this.more = el('button.btn.bare', { type: 'button', onclick: () => this.older() }, 'Older');
    this.box = el('div.term', {}, this.screen, el('section.ledger', { 'aria-label': 'Commands' }, el('header', {}, el('h2', {}, 'Commands'), this.more), this.list));
    this.keys = this.keyBar();
    parent.replaceChildren(this.head, this.box);
    if (!this.isReadOnly) $('foot').replaceChildren(this.keys);
  }

  seekBar() {
    const input = el('input.field', { type: 'search', placeholder: 'Find in output', 'aria-label': 'Find in output', onkeydown: event => {
      if (event.key === 'Enter') { event.preventDefault(); event.shiftKey ? this.search?.findPrevious(input.value) : this.search?.findNext(input.value); }
      if (event.key === 'Escape') { box.hidden = true; this.search?.clearDecorations(); this.term.focus(); }
    } });
    const box = el('span.seek', { hidden: true }, input);
    this.seek = () => { box.hidden = !box.hidden; if (!box.hidden) input.focus(); };
    return [box, el('button.btn.bare', { type: 'button', title: 'Find in output', 'aria-label': 'Find in output', onclick: this.seek }, '⌕')];
  }

  showLedger(on) {
    const narrow = matchMedia('(max-width: 900px)').matches;
    if (narrow) this.box.classList.toggle('ledger-on', on); else this.box.classList.toggle('wide', on === undefined ? undefined : !on);
    this.toggle.setAttribute('aria-pressed', String(narrow ? this.box.classList.contains('ledger-on') : !this.box.classList.contains('wide')));
    requestAnimationFrame(() => this.fit());
  }

  async begin() {
    let parts;
    try { parts = await load(); } catch {
      this.screen.replaceChildren(el('p.wait', {}, $('main').dataset.missing || 'xterm.js could not be loaded'));
      return;
    }
    if (this.isOver) return;
    const { Terminal, FitAddon, SearchAddon, WebLinksAddon, UnicodeGraphemesAddon, WebglAddon } = parts;
    const term = this.term = new Terminal({ allowProposedApi: true, scrollback: 5000, fontSize: this.base, lineHeight: 1.15, fontFamily: getComputedStyle(document.documentElement).getPropertyValue('--mono').trim(), theme: DARK, overviewRuler: { width: 10 }, disableStdin: this.isReadOnly, cursorBlink: false, minimumContrastRatio: 3, macOptionIsMeta: true, screenReaderMode: this.app.settings.reader === 'on' });
    term.loadAddon(this.fitter = new FitAddon());
    term.loadAddon(this.search = new SearchAddon());
    term.loadAddon(new WebLinksAddon((event, url) => { if (/^https?:/.test(url)) window.open(url, '_blank', 'noopener,noreferrer'); }));
    term.loadAddon(new UnicodeGraphemesAddon()); term.unicode.activeVersion = '15-graphemes';
    term.open(this.screen); drawOnce(term);
    if (matchMedia('(pointer: fine)').matches && this.app.settings.renderer !== 'dom') try {
      const webgl = new WebglAddon(); webgl.onContextLoss(() => webgl.dispose()); term.loadAddon(webgl);
    } catch { /* the DOM renderer stays */ }
    this.quieten();
    term.onData(text => this.send(this.mapped(text)));
    term.onBinary(text => this.stream?.type(Uint8Array.from(text, c => c.charCodeAt(0))));
    term.attachCustomKeyEventHandler(event => this.app.takesKey(event));
    this.touch();
    this.observer = new ResizeObserver(() => { clearTimeout(this.timer); this.timer = setTimeout(() => this.fit(), 60); });
    this.observer.observe(this.screen);
    this.onCommand = event => this.command(event.detail);
    this.onMissed = () => { this.reading = this.read(); };
    this.app.store.addEventListener('command', this.onCommand);
    this.app.store.addEventListener('missed', this.onMissed);
    this.reading = this.read();
    this.follow();
    const isFree = [document.body, $('main')].includes(document.activeElement); // not from under one who searches meanwhile
    if (!this.isReadOnly && isFree && matchMedia('(pointer: fine)').matches) term.focus();
  }

  /** The daemon answers what programs ask: a second answer would be typed. Nothing is copied for programs (OSC 52). */
  quieten() {
    const { parser } = this.term, swallow = () => true;
    for (const id of [{ final: 'c' }, { prefix: '>', final: 'c' }, { prefix: '=', final: 'c' }, { final: 'n' }, { prefix: '?', final: 'n' },
      { prefix: '>', final: 'q' }, { intermediates: '$', final: 'p' }, { prefix: '?', intermediates: '$', final: 'p' }, { final: 't' }]) parser.registerCsiHandler(id, swallow);
    parser.registerDcsHandler({ intermediates: '$', final: 'q' }, swallow);
    parser.registerDcsHandler({ intermediates: '+', final: 'q' }, swallow);
    parser.registerOscHandler(52, swallow);
    for (const id of [4, 10, 11, 12]) parser.registerOscHandler(id, data => data.split(';').includes('?'));
    // A mark counts if a record begins exactly behind it: programs can print marks too.
    parser.registerOscHandler(133, data => {
      this.readSoon();
      if (data[0] === 'C' && this.marks.length) this.mark(this.marks.shift());
      return true;
    });
  }

  mark(start) { this.blocks.set(start, this.term.registerMarker(-1)); this.decorate(this.starts.get(start)); }

  follow() {
    const args = () => this.cursor === null ? { name: this.name, screen: true, scrollback: SCROLLBACK } : { name: this.name, cursor: this.cursor };
    this.stream = this.link.open('terminal_output', args, {
      opened: frame => {
        this.resized(frame.cols, frame.rows);
        this.bells = frame.bells; this.isDrawn = this.cursor !== null;
        this.item(frame); this.own(frame.size_owner);
      },
      bytes: (cursor, data, done) => {
        this.findMarks(cursor, data);
        this.cursor = cursor + data.length;
        this.term.write(data, done);
      },
      gap: () => this.redraw(), // bytes alone would lie
      item: item => this.item(item),
      lost: () => { this.tail = NOTHING; },
      ended: frame => {
        if (frame.code === 'invalid_request' && this.cursor !== null) { this.cursor = null; this.follow(); return; } // a killed daemon had stored less
        if (frame.code !== 'unavailable') this.say(frame.message ?? 'this terminal was closed', null);
      },
    });
  }

  redraw() { this.cursor = null; this.blocks.clear(); this.marks = []; this.stream.reopen(); }

  item(item) {
    if (item.screen) {
      this.cursor = item.screen.cursor;
      this.term.reset();
      this.draw(item.screen);
      if (item.screen.redraw.includes('\x1b[?1049h') && !this.isReadOnly && !/\x1b\[[0-9;]*[34][0-9]/.test(item.screen.redraw)) this.link.call('term_signal', { name: this.name, signal: 'WINCH' }).catch(() => {});
      this.fit();
    }
    if (item.resized) this.resized(item.resized.cols, item.resized.rows);
    if (item.state) { this.shown(item); this.readSoon(); }
    if ('title' in item && item.title !== undefined) setText(this.where, item.title ?? '');
    if ('bells' in item) { if (item.bells > this.bells && this.isDrawn) { this.app.bell(this.name); } this.bells = item.bells; this.isDrawn = true; }
    if ('typing' in item) this.types(item.typing);
    if ('size_owner' in item) this.own(item.size_owner);
    if (item.size_refused) this.offerSize();
    if (item.keys_refused) toast(item.keys_refused.message, 'bad');
  }

  shown({ state, needs_input }) {
    this.dot.className = `dot ${needs_input ? 'bad' : { running: 'busy', idle: 'good', failed: 'bad', starting: 'busy', unreachable: 'warn' }[state] ?? ''}`;
    setText(this.state, needs_input ? (needs_input.kind === 'secret' ? `${needs_input.program} asks for a password` : `${needs_input.program} waits for input`) : { running: 'runs', idle: 'ready', failed: 'has failed', starting: 'starts', closed: 'closed', unreachable: 'its host cannot be reached' }[state] ?? state);
  }

  types(typing) {
    const isMine = typing?.writer === 'human' && performance.now() - (this.typedAt ?? -1e9) < 4000;
    this.typing.hidden = !typing || isMine;
    if (typing) setText(this.typing, `✎ ${line(typing.writer.replace(/^agent:/, ''), 40)} types`);
  }

  // The size has one owner; the others see the terminal in its size.

  own(owner) { this.owner = owner; this.hasSize = true; this.fit(); }

  fit() {
    if (!this.term || !this.size) return;
    const wanted = this.fitter.proposeDimensions();
    const mine = this.owner?.yours;
    if (wanted && document.visibilityState === 'visible' && !this.isReadOnly && this.stream?.channel !== null && (mine || !this.owner)) {
      const cols = Math.min(500, Math.max(20, wanted.cols)), rows = Math.min(200, Math.max(5, wanted.rows));
      if (!mine || cols !== this.size.cols || rows !== this.size.rows) this.claim(cols, rows, false);
    }
    this.scale();
    this.offerSize();
  }

  claim(cols, rows, take) {
    const asked = `${cols}x${rows}${take}`;
    if (this.claimed === asked && !take && this.owner?.yours) return;
    this.claimed = asked;
    this.link.send({ type: 'claim', id: this.stream.id, cols, rows, take });
  }

  offerSize() {
    if (!this.owner || this.owner.yours) { if (this.banner.dataset.kind === 'size') this.say('', ''); return; }
    this.say(`sized by another window (${this.size.cols}×${this.size.rows})`, 'size', !this.isReadOnly && el('button.btn', { type: 'button', onclick: () => this.take() }, 'Fit to mine'));
  }

  /** Become the owner of the size, with letters of the usual size. */
  take() {
    this.term.options.fontSize = this.base;
    requestAnimationFrame(() => {
      const wanted = this.fitter.proposeDimensions();
      if (wanted) this.claim(wanted.cols, wanted.rows, true);
      this.term.focus();
    });
  }

  /** A window that does not own the size uses a smaller font until the terminal fits, or scrolls. */
  scale() {
    const { base } = this;
    if (!this.owner || this.owner.yours) { if (this.term.options.fontSize !== base) this.term.options.fontSize = base; return; }
    const cell = this.term._core?._renderService?.dimensions?.css?.cell;
    if (!cell?.width) return;
    const room = this.screen.clientWidth - 24, ratio = room / (cell.width * this.size.cols);
    const size = Math.max(7, Math.min(base, Math.floor(this.term.options.fontSize * ratio * 2) / 2));
    if (size !== this.term.options.fontSize) this.term.options.fontSize = size;
  }

  /** Draw a screen; the commands whose output begins in it are blocks too. */
  draw({ redraw, marks }) {
    const bytes = new TextEncoder().encode(redraw);
    let from = 0;
    for (const { at, cursor } of marks) {
      this.term.write(bytes.subarray(from, at), () => this.mark(cursor));
      from = at;
    }
    this.term.write(bytes.subarray(from));
    if (marks.length) this.reach(marks[0].cursor);
  }

  /** Read the records of the commands from this byte of the output on. */
  async reach(start) {
    await this.reading;
    const oldest = () => Math.min(...this.starts.keys());
    for (let pages = PAGES, known; pages && !this.isOver && start < (known = oldest()); pages--) {
      await this.older();
      if (oldest() === known) return;
    }
  }

  resized(cols, rows) { this.size = { cols, rows }; if (this.term.cols !== cols || this.term.rows !== rows) this.term.resize(cols, rows); this.scale(); requestAnimationFrame(() => this.refit()); }

  /** The letters are measured anew with the size: fewer columns may fit than were asked for. Never more, which could go to and fro. */
  refit() { if (!this.isOver && this.owner?.yours && this.fitter.proposeDimensions()?.cols < this.size.cols) this.fit(); }

  say(text, kind, button) { this.banner.dataset.kind = kind ?? ''; this.banner.replaceChildren(...[text && document.createTextNode(text), button].filter(Boolean)); }

  // Keys.

  send(text) {
    if (this.isReadOnly || !text) return;
    this.typedAt = performance.now();
    if (!this.stream?.type(new TextEncoder().encode(text))) toast('there is no connection: nothing was typed', 'bad');
    else this.fit();
  }

  mapped(text) {
    if (!this.ctrl || text.length !== 1) return text;
    this.setCtrl(false);
    return String.fromCharCode(text.toUpperCase().charCodeAt(0) & 31);
  }

  setCtrl(on) { this.ctrl = on; this.ctrlKey.setAttribute('aria-pressed', String(on)); }

  keyBar() {
    const arrow = letter => () => `\x1b${this.term.modes.applicationCursorKeysMode ? 'O' : '['}${letter}`;
    const named = [['Esc', '\x1b', 'Escape'], ['Tab', '\t', 'Tab'], ['⇧Tab', '\x1b[Z', 'Shift Tab'], ['Ctrl', null, 'Control'], ['↑', arrow('A'), 'Up'], ['↓', arrow('B'), 'Down'], ['←', arrow('D'), 'Left'], ['→', arrow('C'), 'Right'], ['^C', '\x03', 'Control C'], ['/', '/', 'Slash'], ['|', '|', 'Pipe'], ['-', '-', 'Minus']];
    return el('div.keys', { role: 'toolbar', 'aria-label': 'Keys' }, named.map(([label, keys, spoken]) => {
      const button = el('button', { type: 'button', 'aria-label': spoken, onpointerdown: event => event.preventDefault(), onclick: () => {
        if (keys === null) this.setCtrl(!this.ctrl); else this.send(typeof keys === 'function' ? keys() : keys);
        this.term?.focus();
      } }, label);
      if (keys === null) { this.ctrlKey = button; button.setAttribute('aria-pressed', 'false'); }
      return button;
    }));
  }

  /** xterm.js does not scroll by touch; a full-screen program gets turns of a wheel. A wider terminal moves aside. */
  touch() {
    let x = null, y = null;
    const { screen, term } = this;
    screen.addEventListener('pointerdown', event => { [x, y] = event.pointerType === 'touch' ? [event.clientX, event.clientY] : [null, null]; });
    screen.addEventListener('pointermove', event => {
      if (x !== null) { screen.scrollLeft += x - event.clientX; x = event.clientX; }
      const row = screen.clientHeight / term.rows, lines = y === null ? 0 : Math.trunc((y - event.clientY) / row);
      if (!lines) return;
      y -= lines * row;
      if (term.buffer.active.type === 'normal') term.scrollLines(lines);
      else term.element.dispatchEvent(new WheelEvent('wheel', { deltaY: lines, deltaMode: 1, clientX: event.clientX, clientY: event.clientY, bubbles: true, cancelable: true }));
    });
    for (const end of ['pointerup', 'pointercancel']) screen.addEventListener(end, () => { x = y = null; });
  }

  // Commands.

  /** Note where the output of commands may begin: behind each mark C. A mark may be cut by two messages. */
  findMarks(cursor, data) {
    if (!this.tail.length && !data.includes(ESC)) return;
    const all = new Uint8Array(this.tail.length + data.length);
    all.set(this.tail); all.set(data, this.tail.length);
    const begin = cursor - this.tail.length, text = LATIN.decode(all);
    for (const found of text.matchAll(MARK_C)) {
      const at = begin + found.index + found[0].length;
      if (at > cursor) this.marks.push(at); // else it was whole in the message before
    }
    const cut = all.indexOf(ESC, Math.max(0, all.length - TAIL));
    this.tail = cut < 0 ? NOTHING : all.slice(cut);
  }

  /** Read the newest records, and those between them and what is known: some may have been missed. */
  async read() {
    const known = Math.min(...[...this.records.values()].filter(isOpen).map(each => each.seq), Math.max(...this.records.keys()) + 1);
    const { name } = this, given = { last_n: RECORDS, output: false };
    try {
      for (let pages = PAGES, before; pages && !this.isOver; pages--) {
        const reply = await this.link.call('term_read', { name, ...given, ...(before === undefined ? {} : { before_seq: before }) });
        this.took(reply);
        before = reply.result[0]?.seq;
        if (!(before > known)) return;
      }
    } catch (error) { if (error.code !== 'lost') toast(error.message, 'bad'); }
  }

  /** A link has no events of commands: it looks after each mark, and once more for a record that came late. */
  readSoon() {
    if (!this.isReadOnly) return;
    for (const each of this.looking ?? []) clearTimeout(each);
    this.looking = [LOOK_MS, 8 * LOOK_MS].map(wait => setTimeout(() => { if (!this.isOver) this.read(); }, wait));
  }

  async older() {
    if (this.isReading || this.isAll || !this.records.size) return;
    this.isReading = true;
    try {
      const reply = await this.link.call('term_read', { name: this.name, last_n: RECORDS, before_seq: Math.min(...this.records.keys()), output: false });
      this.took(reply);
      this.isAll = !reply.result.length; this.more.style.visibility = this.isAll ? 'hidden' : ''; // its room stays: the rows must not move
    } catch (error) { if (error.code !== 'lost') toast(error.message, 'bad'); } finally { this.isReading = false; }
  }

  took(reply) {
    for (const record of reply.result) this.note(record);
    if (reply.running) this.note(reply.running);
  }

  command({ command }) { if (command.name === this.name) this.note(command); }

  note(record) {
    this.records.set(record.seq, record); this.starts.set(record.raw_start, record);
    this.ledger.put(record); this.decorate(record);
  }

  block(record) {
    const cmd = el('button.cmd', { type: 'button', title: 'Show in the terminal', onclick: () => this.jump(record.seq) });
    const chip = el('span.chip'), time = el('span.cut');
    const again = !this.isReadOnly && el('button.btn.bare', { type: 'button', title: 'Run again', onclick: once(() => this.again(record.seq)) }, 'Run again');
    const copy = el('button.btn.bare', { type: 'button', title: 'Copy the output', onclick: () => this.copy(record.seq) }, 'Copy');
    return Object.assign(el('div.block', { role: 'listitem' }, cmd, el('div.foot', {}, chip, time, el('span.acts', {}, copy, again))), { parts: { cmd, chip, time } });
  }

  update(row, record) {
    const runs = isOpen(record), { cmd, chip, time } = row.parts;
    setText(cmd, record.cmd === null ? `(${line(record.cmd_reason || 'typed; the text is not known', 600)})` : line(record.cmd, 600));
    row.classList.toggle('runs', runs); row.classList.toggle('fail', !runs && record.exit !== 0);
    chip.className = `chip ${runs ? (record.needs_input ? 'bad' : 'busy') : record.exit === 0 ? 'good' : 'bad'}`;
    setText(chip, runs ? (record.needs_input ? 'needs input' : 'runs') : record.exit === null ? record.end.replaceAll('_', ' ') : `exit ${record.exit}`);
    setText(time, [seconds(record.duration_s), record.writer === 'human' ? '' : line(record.writer.replace(/^agent:/, ''), 30), clock(record.started_at)].filter(Boolean).join(' · '));
  }

  jump(seq) {
    const record = this.records.get(seq), marker = this.blocks.get(record?.raw_start);
    this.box.classList.remove('ledger-on');
    if (marker && marker.line >= 0) this.term.scrollToLine(Math.max(0, marker.line - 1));
    else toast('its output has scrolled out of this view: use Copy');
    this.term.focus();
  }

  async again(seq) {
    const { cmd } = this.records.get(seq);
    if (!cmd) { toast('its text is not known', 'bad'); return; }
    try { await this.link.call('term_run', { name: this.name, cmd, until: 'started', timeout: 10 }); } catch (error) { toast(error.message, 'bad'); }
  }

  async copy(seq) {
    try {
      const { result } = await this.link.call('term_read', { name: this.name, since_seq: seq - 1 });
      const record = result.find(each => each.seq === seq);
      await navigator.clipboard.writeText(record ? record.stdout : '');
      toast(record?.truncated ? 'copied; the output was longer' : 'copied');
    } catch (error) { toast(error.message ?? 'copying is not allowed here', 'bad'); }
  }

  /** Show how a command ended, beside its line. */
  decorate(record) {
    const marker = this.blocks.get(record?.raw_start);
    if (!marker || marker.chip || isOpen(record)) return;
    const good = record.exit === 0;
    const chip = marker.chip = this.term.registerDecoration({ marker, anchor: 'right', width: 18, layer: 'top', overviewRulerOptions: { color: good ? '#2f9e5f' : '#e5484d', position: 'full' } });
    chip?.onRender(element => {
      element.classList.add('mark'); if (!good) element.classList.add('fail');
      element.dataset.seq = record.seq;
      setText(element, `${record.exit === null ? record.end : good ? '✓' : `✗ ${record.exit}`} ${seconds(record.duration_s)}`);
    });
  }

  close() {
    this.isOver = true;
    this.stream?.close(); this.observer?.disconnect(); this.term?.dispose();
    this.app.store.removeEventListener('command', this.onCommand);
    this.app.store.removeEventListener('missed', this.onMissed);
    $('foot').replaceChildren();
  }
}

const isOpen = record => !record.end && record.exit === null;
