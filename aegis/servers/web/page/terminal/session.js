// One live terminal in one pane: its screen first, then its bytes; keys; the size of its window.
import { effect, signal } from '../lib.js';
import { once, say } from '../overlay.js';
import { settings } from '../place.js';
import { call, connection, events, isReadOnly, link, terminals } from '../store.js';
import { copy } from '../ui.js';
import { linkPlaces } from './links.js';
import { Marks } from './marks.js';
import { Records } from './records.js';

const SCROLLBACK = 1000, KEPT_LINES = 5000, SETTLE_MS = 60, MINE_MS = 4000;
const SMALLEST = 7, DEFAULT_PX = 13, PHONE_PX = 12, RULER = 10;
const LEAST = { cols: 20, rows: 5 }, MOST = { cols: 500, rows: 200 };
const ENCODER = new TextEncoder();
const COARSE = matchMedia('(pointer: coarse)'), DARK = matchMedia('(prefers-color-scheme: dark)');
const within = (number, low, high) => Math.min(high, Math.max(low, number));

let library = null;
function load() {
  library ??= import('./xterm.js').catch(error => { library = null; throw error; });
  return library;
}

/** Whether the screens of terminals are dark. */
export const isDark = () => settings.value.terminalTheme === 'dark'
  || (settings.value.theme === 'dark' || (settings.value.theme !== 'light' && DARK.matches));

/**
 * What the view shows beside the screen.
 * @typedef {{state: string, needs: {kind: string, program: string} | null, title: string,
 *   typing: {writer: string, since: string} | null, isMine: boolean,
 *   owner: {writer: string, yours: boolean} | null, size: {cols: number, rows: number} | null,
 *   isFullScreen: boolean, end: string | null, isAtTop: boolean}} Shown
 */

export class Session {
  /** @param {string} name */
  constructor(name) {
    this.name = name;
    /** @type {number | null} the next byte that is expected */
    this.cursor = null;
    this.term = null; this.stream = null; this.isOver = false;
    this.owner = null; this.size = null; this.bells = 0; this.isDrawn = false;
    /** The size that a person has chosen; null: that of the window. */
    this.chosenSize = null;
    /** @type {import('@preact/signals').Signal<Shown>} */
    this.shown = signal({
      state: 'starting', needs: null, title: '', typing: null, isMine: false, owner: null,
      size: null, isFullScreen: false, end: null, isAtTop: false,
    });
    /** The command that the person has chosen, by its mark. */
    this.chosen = signal(/** @type {number | null} */ (null));
    /** Sticky keys of the key bar. */
    this.held = signal({ ctrl: false, alt: false });
    this.ledger = new Records(name, record => this.marks?.show(record), () => this.forgotten());
    /** Resolves once the first screen is drawn. */
    this.drawn = new Promise(resolve => { this.isFirst = resolve; });
  }

  get records() { return this.ledger.bySeq; }
  get blocks() { return this.marks.byStart; }
  get base() {
    const size = Number(settings.value.terminalSize) || DEFAULT_PX;
    return size === DEFAULT_PX && COARSE.matches ? PHONE_PX : size;
  }

  show(change) {
    const now = this.shown.peek();
    if (Object.keys(change).some(key => now[key] !== change[key])) {
      this.shown.value = { ...now, ...change };
    }
  }

  /** Draw into this element, and follow the output. */
  async open(screen, takesFocus) {
    this.screen = screen;
    let parts;
    try { parts = await load(); } catch {
      say('The screen could not be loaded: load the page again.', { tone: 'bad' });
      return;
    }
    if (this.isOver) return;
    this.parts = parts;
    const term = this.term = new parts.Terminal({
      allowProposedApi: true, scrollback: KEPT_LINES, fontSize: this.base, lineHeight: 1.15,
      overviewRuler: { width: RULER }, disableStdin: isReadOnly.value, cursorBlink: false,
      minimumContrastRatio: 4.5, macOptionIsMeta: true, screenReaderMode: settings.value.reader,
      linkHandler: { activate: (_, address) => follow(address) },
    });
    term.loadAddon(this.fitter = new parts.FitAddon());
    term.loadAddon(this.search = new parts.SearchAddon());
    term.loadAddon(new parts.WebLinksAddon((_, address) => follow(address)));
    term.loadAddon(new parts.UnicodeGraphemesAddon());
    term.unicode.activeVersion = '15-graphemes';
    this.paint();
    term.open(screen);
    parts.drawOnce(term);
    const { searchParams } = new URL(location.href);
    if (!COARSE.matches && searchParams.get('renderer') !== 'dom') parts.accelerate(term);
    parts.quieten(term);
    this.marks = new Marks(term, this.ledger, seq => { this.chosen.value = seq; });
    term.parser.registerOscHandler(133, () => { this.ledger.readSoon(); return true; });
    linkPlaces(term, line => this.directoryAt(line));
    term.onData(text => this.send(this.mapped(text)));
    term.onBinary(text => this.stream?.type(Uint8Array.from(text, c => c.charCodeAt(0))));
    term.attachCustomKeyEventHandler(event => this.takesKey(event));
    term.onRender(() => this.look());
    term.buffer.onBufferChange(({ type }) => this.show({ isFullScreen: type === 'alternate' }));
    this.touch();
    this.observer = new ResizeObserver(() => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.fit(), SETTLE_MS);
    });
    this.observer.observe(screen);
    const repaint = () => this.paint();
    DARK.addEventListener('change', repaint);
    const stop = effect(() => { settings.value; this.paint(); });
    this.stops = [stop, () => DARK.removeEventListener('change', repaint)];
    this.follow();
    // The focus is not taken from under a person who writes in another place meanwhile.
    if (takesFocus && !isReadOnly.value && !COARSE.matches) term.focus();
  }

  close() {
    this.isOver = true;
    clearTimeout(this.timer);
    for (const stop of this.stops ?? []) stop();
    this.stream?.close(); this.observer?.disconnect(); this.term?.dispose();
    this.ledger.close();
  }

  /** Take colours, font and size from the settings. */
  paint() {
    const { term, screen } = this, { terminalFont, reader } = settings.value;
    if (!term) return;
    const dark = isDark();
    screen.dataset.dark = String(dark);
    const mono = getComputedStyle(document.documentElement).getPropertyValue('--mono').trim();
    term.options.fontFamily = terminalFont ? `${quoted(terminalFont)}, ${mono}` : mono;
    term.options.theme = this.parts.theme(screen, dark);
    term.options.screenReaderMode = Boolean(reader);
    if (this.size) { this.scale(); this.fit(); }
  }

  // The stream.

  follow() {
    const { name } = this;
    const args = () => this.cursor === null
      ? { name, screen: true, scrollback: SCROLLBACK } : { name, cursor: this.cursor };
    this.show({ end: null });
    this.stream = link().open('terminal_output', args, {
      opened: frame => {
        this.resized(frame.cols, frame.rows);
        this.bells = frame.bells; this.isDrawn = this.cursor !== null;
        this.item(frame); this.own(frame.size_owner);
      },
      bytes: (cursor, data, done) => {
        this.cursor = cursor + data.length;
        // Credit is given back once the bytes are drawn.
        this.write(data, this.marks.find(cursor, data), done);
      },
      gap: () => this.redraw(), // bytes alone would lie
      item: item => this.item(item),
      lost: () => this.marks.lost(),
      ended: frame => this.ended(frame),
    });
  }

  ended(frame) {
    // A daemon that was killed had stored less than this page was sent.
    if (frame.code === 'invalid_request' && this.cursor !== null) {
      this.cursor = null; this.marks.clear(); this.follow();
      return;
    }
    if (frame.code === 'unavailable') {
      const info = terminals.peek().get(this.name);
      // The daemon stops, the shell has failed, or its host is away: the stream is opened again.
      if (frame.type !== 'error' || info) {
        if (info) this.show({ state: info.state, needs: null });
        return;
      }
      // It is closed. A link hears of no terminal: its stream is opened until one is there.
      if (!isReadOnly.value) { this.stream.isOver = true; this.stream.forget(); }
    }
    const isClosed = ['closed', 'not_found', 'unavailable'].includes(frame.code);
    this.show({ state: 'closed', needs: null, end: isClosed ? '' : frame.message ?? '' });
  }

  /** Follow the terminal again, which was closed and is open now. */
  again() {
    if (!this.term || !this.stream?.isOver || this.isOver) return;
    this.cursor = null; this.marks.clear(); this.follow(); this.ledger.onMissed();
  }

  /** What the screen shows may be of the deleted terminal too. */
  forgotten() {
    this.chosen.value = null;
    if (this.cursor !== null) this.redraw();
  }

  redraw() { this.cursor = null; this.marks.clear(); this.stream.reopen(); }

  item(item) {
    if (item.screen) {
      this.cursor = item.screen.cursor;
      this.term.reset();
      this.draw(item.screen);
      const { redraw } = item.screen;
      // A screen that was drawn long ago has no colours: most programs draw it again when asked.
      const isPlain = redraw.includes('\x1b[?1049h') && !/\x1b\[[0-9;]*[34][0-9]/.test(redraw);
      if (isPlain && !isReadOnly.value) {
        call('term_signal', { name: this.name, signal: 'WINCH' }).catch(() => {});
      }
      this.fit();
    }
    if (item.resized) this.resized(item.resized.cols, item.resized.rows);
    if (item.state) {
      this.show({ state: item.state, needs: item.needs_input ?? null });
      this.ledger.readSoon();
    }
    if (item.title !== undefined) this.show({ title: item.title ?? '' });
    if (item.bells !== undefined) this.rang(item.bells);
    if ('typing' in item) this.types(item.typing);
    if ('size_owner' in item) this.own(item.size_owner);
    if (item.size_refused) this.claimed = null;
    if (item.keys_refused) say(item.keys_refused.message, { tone: 'bad' });
  }

  rang(bells) {
    if (bells > this.bells && this.isDrawn) {
      events.dispatchEvent(new CustomEvent('bell', { detail: this.name }));
    }
    this.bells = bells; this.isDrawn = true;
  }

  types(typing) {
    const isRecent = performance.now() - (this.typedAt ?? -Infinity) < MINE_MS;
    this.show({ typing, isMine: typing?.writer === 'human' && isRecent });
  }

  /** Draw a screen, with the marks of the commands whose output begins in it. */
  draw({ redraw, marks }) {
    this.write(ENCODER.encode(redraw), marks, this.isFirst);
    if (marks.length) this.ledger.reach(marks[0].cursor);
  }

  /**
   * Write bytes in parts, with a mark behind each: xterm.js has come exactly to this byte then,
   * whatever it makes of the sequences before.
   */
  write(bytes, marks, done) {
    const { byStart } = this.marks;
    let from = 0;
    for (const { at, cursor } of marks) {
      this.term.write(bytes.subarray(from, at), () => {
        if (byStart === this.marks.byStart) this.marks.set(cursor);
      });
      from = at;
    }
    this.term.write(bytes.subarray(from), done);
  }

  // The size has one owner; the others see the terminal in its size.

  own(owner) { this.owner = owner; this.show({ owner }); this.fit(); }

  fit() {
    if (!this.term || !this.size) return;
    const mine = this.owner?.yours, wanted = this.chosenSize ?? this.fitter.proposeDimensions();
    const isSeen = document.visibilityState === 'visible' && this.screen.clientWidth > 0;
    if (wanted && isSeen && this.canClaim && (mine || !this.owner)) {
      const cols = within(wanted.cols, LEAST.cols, MOST.cols);
      const rows = within(wanted.rows, LEAST.rows, MOST.rows);
      const isOther = cols !== this.size.cols || rows !== this.size.rows;
      if (!mine || isOther) this.claim(cols, rows, false);
    }
    this.scale();
  }

  get canClaim() { return !isReadOnly.value && this.stream?.channel !== null; }

  claim(cols, rows, take) {
    const asked = `${cols}x${rows}`;
    if (this.claimed === asked && !take && this.owner?.yours) return;
    this.claimed = asked;
    link().send({ type: 'claim', id: this.stream.id, cols, rows, take });
  }

  /** Become the owner of the size, with letters of the usual size. */
  take() {
    this.chosenSize = null;
    this.term.options.fontSize = this.base;
    requestAnimationFrame(() => {
      const wanted = this.fitter.proposeDimensions();
      if (wanted) this.claim(wanted.cols, wanted.rows, true);
      this.term.focus();
    });
  }

  /** Set a size for all; null: that of the window again. */
  resize(size) {
    this.chosenSize = size;
    if (size) this.claim(size.cols, size.rows, true); else this.take();
  }

  /** Where another window owns the size, letters get smaller until it fits, or it scrolls. */
  scale() {
    const { base, term } = this, { options } = term;
    if ((!this.owner || this.owner.yours) && !this.chosenSize) {
      if (options.fontSize !== base) options.fontSize = base;
      return;
    }
    const cell = term._core?._renderService?.dimensions?.css?.cell;
    if (!cell?.width) return;
    const style = getComputedStyle(term.element);
    const room = this.screen.clientWidth - parseFloat(style.paddingLeft) - RULER;
    const fitting = Math.floor(options.fontSize * room / (cell.width * this.size.cols) * 2) / 2;
    const size = within(fitting, SMALLEST, base);
    if (size !== options.fontSize) options.fontSize = size;
  }

  resized(cols, rows) {
    this.size = { cols, rows };
    this.show({ size: this.size });
    // In the order of the output: what was written before is drawn at the size before.
    this.term.write('', () => {
      if (this.isOver) return;
      if (this.term.cols !== cols || this.term.rows !== rows) this.term.resize(cols, rows);
      this.scale();
      requestAnimationFrame(() => this.refit());
    });
  }

  /** Letters are measured anew with the size: fewer columns may fit. Never more: to and fro. */
  refit() {
    if (this.isOver || !this.owner?.yours || this.chosenSize) return;
    if (this.fitter.proposeDimensions()?.cols < this.size.cols) this.fit();
  }

  // Keys.

  /** Type this text. Returns whether there was a connection. */
  send(text) {
    if (isReadOnly.value || !text) return false;
    this.typedAt = performance.now();
    if (this.stream?.type(ENCODER.encode(text))) { this.fit(); return true; }
    const why = connection.peek().state === 'up' ? 'The terminal cannot be reached'
      : 'There is no connection';
    say(`${why}: nothing was typed.`, { tone: 'bad' });
    return false;
  }

  /** What is typed with the sticky keys of the key bar. */
  mapped(text) {
    const { ctrl, alt } = this.held.peek();
    if (!ctrl && !alt || [...text].length !== 1) return text;
    this.held.value = { ctrl: false, alt: false };
    const code = ctrl ? String.fromCharCode(text.toUpperCase().charCodeAt(0) & 31) : text;
    return alt ? `\x1b${code}` : code;
  }

  paste(text) { if (text) this.term?.paste(text); }

  /** Whether a key is the program's. The page has few of its own in here. */
  takesKey(event) {
    if (!event.ctrlKey || !event.shiftKey || event.altKey) return true;
    if (['KeyF', 'KeyK', 'KeyO', 'KeyP'].includes(event.code)) return false;
    if (event.code === 'KeyC' && event.type === 'keydown') {
      event.preventDefault();
      if (this.term.hasSelection()) once(copy)(this.term.getSelection());
    }
    return event.code !== 'KeyC' && event.code !== 'KeyV';
  }

  /** xterm.js does not scroll by touch; a full-screen program gets turns of a wheel instead. */
  touch() {
    let x = null, y = null;
    const { screen, term } = this;
    screen.addEventListener('pointerdown', event => {
      [x, y] = event.pointerType === 'touch' ? [event.clientX, event.clientY] : [null, null];
    });
    screen.addEventListener('pointermove', event => {
      if (y === null) return;
      screen.scrollLeft += x - event.clientX; // a wider terminal moves aside
      x = event.clientX;
      const row = screen.clientHeight / term.rows, lines = Math.trunc((y - event.clientY) / row);
      if (!lines) return;
      y -= lines * row;
      if (term.buffer.active.type === 'normal') term.scrollLines(lines);
      else {
        const { clientX, clientY } = event, bubbles = { bubbles: true, cancelable: true };
        const turn = { deltaY: lines, deltaMode: 1, clientX, clientY, ...bubbles };
        term.element.dispatchEvent(new WheelEvent('wheel', turn));
      }
    });
    for (const end of ['pointerup', 'pointercancel']) {
      screen.addEventListener(end, () => { x = y = null; });
    }
  }

  look() {
    const { viewportY, baseY, type } = this.term.buffer.active;
    this.show({ isAtTop: type === 'normal' && viewportY === 0 && baseY > 0 });
  }

  // Commands in the screen.

  directoryAt(line) {
    return this.marks.above(line)?.cwd ?? terminals.peek().get(this.name)?.cwd ?? null;
  }

  /** Scroll to a command. Returns false if its output is no longer in the screen. */
  jump(seq) {
    const line = this.marks?.lineOf(this.records.get(seq)) ?? -1;
    if (line < 0 || this.shown.peek().isFullScreen) return false;
    this.term.scrollToLine(Math.max(0, line - 1));
    this.chosen.value = seq;
    return true;
  }

  /** The text of the screen and of what is kept above it, and the first line that is shown. */
  text() {
    const { active } = this.term.buffer, lines = [];
    for (let at = 0; at < active.length; at++) {
      const line = active.getLine(at), text = line?.translateToString(true) ?? '';
      if (line?.isWrapped && lines.length) lines[lines.length - 1] += text; else lines.push(text);
    }
    while (lines.length && !lines.at(-1)) lines.pop();
    return lines.join('\n');
  }
}

/** Only addresses of the web are followed, and the page that opens gets no handle on this one. */
function follow(address) {
  if (/^https?:/i.test(address)) window.open(address, '_blank', 'noopener,noreferrer');
}

const quoted = font => font.split(',').map(each => each.trim().replace(/["\\]/g, ''))
  .filter(Boolean).map(each => `"${each}"`).join(', ');
