// The records of one terminal's commands: the newest first of all, older ones when they are wanted.
import { project } from '../drafts.js';
import { signal } from '../lib.js';
import { stored } from '../place.js';
import { call, events, isReadOnly } from '../store.js';
import { say } from '../overlay.js';
import { count } from '../time.js';

const PAGE = 50, MOST_PAGES = 20, LOOK_MS = 300, CHUNK = 1 << 20, MOST_SEEN = 200;
const MOST_CMD_CHARS = 4096;

/** Whether a command still runs. */
export const isOpen = record => !record.end && record.exit === null;
/** Whether a command has ended, and not well. */
export const isFailed = record => !isOpen(record) && record.exit !== 0;
/** The text of a command, or why it is not known. */
export const textOf = record =>
  record.cmd ?? `(${record.cmd_reason || 'typed; its text is not known'})`;
/** Whether only the beginning of the text is known: a header, which has a name, truncates it. */
const isCut = record => 'name' in record && record.cmd?.length >= MOST_CMD_CHARS
  && record.cmd.endsWith('…');
/** The whole text of a command; null if it is not known. */
export const wholeOf = record => isCut(record) ? null : record.cmd;
/** How a command ended, in a word. */
export const endOf = record => isOpen(record) ? 'runs'
  : record.exit === null ? ENDS[record.end] ?? record.end
    : record.exit === 0 ? '' : `exit ${record.exit}`;
const ENDS = {
  exited: 'ended', shell_exit: 'the shell ended', killed_by_restart: 'ended by a restart',
  closed: 'ended as the terminal was closed', lost: 'its end is not known',
};

/** "1 command", "3 commands". */
export const plural = (number, word) => `${count(number)} ${word}${number === 1 ? '' : 's'}`;

// A terminal that is not there has no records; the view says so.
const failed = error => { if (!['lost', 'not_found'].includes(error.code)) say(error); };

export class Records {
  /**
   * `onRecord(record)` is called for each one that is new or has changed, `onForget()` when the
   * known ones are those of a deleted terminal.
   */
  constructor(name, onRecord, onForget) {
    this.name = name; this.onRecord = onRecord; this.onForget = onForget; this.isOver = false;
    /** @type {Map<number, any>} */
    this.bySeq = new Map();
    this.starts = new Map();
    /** The records, the newest first. */
    this.list = signal(/** @type {any[]} */ ([]));
    this.isAll = signal(false);
    /** How often all was forgotten: the history is read again then. */
    this.lives = signal(0);
    this.isRead = false;
    /** The newest command that the person saw before this page was opened, or left. */
    this.seenUntil = signal(this.seen);
    this.onHidden = () => { if (document.visibilityState !== 'visible') this.leave(); };
    document.addEventListener('visibilitychange', this.onHidden);
    this.onCommand = event => this.event(event.detail.command);
    this.onMissed = () => { this.reading = this.read(); };
    events.addEventListener('command', this.onCommand);
    events.addEventListener('missed', this.onMissed);
    this.reading = this.read();
  }

  close() {
    this.isOver = true;
    clearTimeout(this.drawing);
    document.removeEventListener('visibilitychange', this.onHidden);
    for (const each of this.looking ?? []) clearTimeout(each);
    events.removeEventListener('command', this.onCommand);
    events.removeEventListener('missed', this.onMissed);
  }

  event(command) { if (command.name === this.name) this.took({ result: [command] }); }

  /** Read the newest records, and those between them and the known ones: some may be missed. */
  async read() {
    const open = [...this.bySeq.values()].filter(isOpen).map(each => each.seq);
    const newest = Math.max(...this.bySeq.keys()), known = Math.min(...open, newest);
    try {
      for (let pages = MOST_PAGES, before; pages && !this.isOver; pages--) {
        const reply = await this.page(before);
        const last = before === undefined
          ? reply.running?.seq ?? reply.result.at(-1)?.seq ?? -1 : Infinity;
        if (this.seen !== null && this.seen > last) this.unsee();
        if (newest > last || reply.result.some(each => this.isOther(each))) {
          this.forget();
          await this.read();
          return;
        }
        this.took(reply);
        this.isRead = true;
        if (reply.result.length < PAGE && !reply.more) this.isAll.value = true;
        before = reply.result[0]?.seq;
        if (!(before > known)) return;
      }
    } catch (error) { failed(error); }
  }

  /** Whether a command of this number is known that began at another time. */
  isOther({ seq, started_at: at }) { return (this.bySeq.get(seq)?.started_at ?? at) !== at; }

  /** Forget all: the terminal was deleted, and one of its name opened, whose numbers begin at 0. */
  forget() {
    this.bySeq.clear(); this.starts.clear();
    this.isAll.value = false; this.lives.value++;
    this.onForget();
  }

  page(before) {
    const since = before === undefined ? {} : { before_seq: before };
    return call('term_read', { name: this.name, last_n: PAGE, output: false, ...since });
  }

  /** A link has no events: it looks after each mark, and once more for a record that came late. */
  readSoon() {
    if (!isReadOnly.value) return;
    for (const each of this.looking ?? []) clearTimeout(each);
    this.looking = [LOOK_MS, 8 * LOOK_MS].map(wait => setTimeout(() => this.read(), wait));
  }

  async older() {
    if (this.isReading || this.isAll.value || !this.bySeq.size) return;
    this.isReading = true;
    try {
      const reply = await this.page(this.oldest);
      this.took(reply);
      if (!reply.result.length) this.isAll.value = true; // what is read meanwhile may know it too
    } catch (error) { failed(error); } finally { this.isReading = false; }
  }

  get oldest() { return Math.min(...this.bySeq.keys()); }

  /** Read on until the command that printed this byte, and all after it, are known. */
  async reach(start) {
    await this.reading;
    const first = () => Math.min(...this.starts.keys());
    for (let pages = MOST_PAGES; pages && !this.isOver; pages--) {
      const known = first();
      if (start >= known) return;
      await this.older();
      if (first() === known) return;
    }
  }

  /** @param {{result: any[], running?: any}} reply */
  took({ result, running }) {
    for (const record of running ? [...result, running] : result) {
      this.bySeq.set(record.seq, record); this.starts.set(record.raw_start, record);
      this.onRecord(record);
      if (isCut(record) && !isOpen(record)) this.complete(record);
    }
    // Once a frame: a script may run hundreds of commands a second.
    this.drawing ??= setTimeout(() => { this.drawing = null; this.draw(); }, this.isRead ? 16 : 0);
  }

  draw() {
    this.list.value = [...this.bySeq.values()].sort((a, b) => b.seq - a.seq);
    if (document.visibilityState === 'visible') this.see();
  }

  /** Return a record, with its output or without it; null if there is none yet. */
  async full(seq, output = true) {
    const asked = { name: this.name, before_seq: seq + 1, last_n: 1, output };
    const { result: [found] } = await call('term_read', asked);
    return found?.seq === seq ? found : null;
  }

  /** Read the record of a command that ended: its event had the beginning of its text. */
  async complete({ seq }) {
    try {
      const record = await this.full(seq, false);
      if (record) this.took({ result: [record] });
    } catch (error) { failed(error); }
  }

  /** Return the whole output of a command: that which a record has no room for is read in pages. */
  async output(record) {
    const known = record.stdout ? record : await this.full(record.seq) ?? record;
    if (known.stdout !== undefined && !known.truncated && !isOpen(known)) {
      return { text: known.stderr ? `${known.stdout}${known.stderr}` : known.stdout, dropped: 0 };
    }
    const parts = [];
    let cursor, dropped = 0;
    for (;;) {
      const from = cursor === undefined ? {} : { cursor };
      const asked = { name: this.name, seq: record.seq, max_bytes: CHUNK, ...from };
      const chunk = await call('term_output', asked);
      dropped += chunk.dropped;
      parts.push(chunk.text);
      if (chunk.next_cursor === cursor || !chunk.text && cursor !== undefined) break;
      cursor = chunk.next_cursor;
      if (cursor >= (record.raw_end ?? Infinity)) break;
    }
    return { text: parts.join(''), dropped };
  }

  // What ran while nobody looked: the newest seen command is kept by terminal.

  get seen() { return read()[this.name] ?? null; }

  /** The person has seen all commands there are. */
  see() {
    const newest = this.list.value.find(each => !isOpen(each))?.seq;
    if (newest === undefined || !this.isRead) return;
    const all = read(), { [this.name]: before, ...rest } = all;
    if (before >= newest) return;
    const kept = Object.entries(rest).slice(-MOST_SEEN + 1);
    write(Object.fromEntries([...kept, [this.name, newest]]));
  }

  /** What was seen was of a terminal that was deleted. */
  unsee() {
    const { [this.name]: _, ...rest } = read();
    write(rest);
    this.seenUntil.value = null;
  }

  /** Begin to count anew: the person leaves now. */
  leave() { this.seenUntil.value = this.seen; }

  /** The commands that ended since the person was here, the newest first. */
  missed() {
    const until = this.seenUntil.value;
    return until === null ? [] : this.list.value.filter(each => each.seq > until && !isOpen(each));
  }

  /** Find the failed command before or after this one; none given: from the newest on. */
  nextFailed(seq, step) {
    const all = this.list.value.filter(isFailed);
    return step < 0 ? all.find(each => each.seq < (seq ?? Infinity))
      : all.findLast(each => each.seq > (seq ?? Infinity));
  }
}

const key = () => `seen-commands:${project.id}`;
const read = () => stored.json(key(), {});
const write = all => stored.set(key(), JSON.stringify(all));
