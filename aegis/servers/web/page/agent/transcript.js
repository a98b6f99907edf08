// A transcript as it is read: followed at its end, or a window of it that a person paged to.
import { signal } from '../lib.js';
import { call, link } from '../store.js';
import { Fold, folded, textOf } from './fold.js';

const FIRST = 300, PAGE = 300, MOST = 6000, DROPPED = 2000;
const DRAW_MS = 120; // a text that streams is drawn at most so often
const MOST_FOUND = 2000;

/** The transcript of one agent; views of several panes share it. */
export class Transcript {
  /** @param {string} handle */
  constructor(handle) {
    this.handle = handle;
    this.users = 0;
    this.stream = null;
    /** Whether a view follows its end: then the oldest entries may be dropped. */
    this.isFollowed = true;
    this.entries = []; this.fold = new Fold();
    /** Rises when the blocks have changed. */
    this.version = signal(0);
    /** Whether the window ends with the newest entry and grows. */
    this.isNewest = signal(true);
    this.hasEarlier = signal(false);
    /** Rises when a person asks for the newest entries. */
    this.asked = signal(0);
    this.isLoaded = signal(false);
    this.ended = signal('');
    this.drawnAt = 0; this.drawing = 0; this.busy = Promise.resolve();
    /** How often entries were put before the first one. */
    this.prepended = 0;
  }

  get newest() { return this.entries.at(-1)?.seq ?? null; }

  open() {
    if (this.users++ > 0) return;
    clearTimeout(this.closing);
    this.follow();
  }

  /** Open the stream, unless it is open: the daemon ends that of an agent that is closed. */
  follow() {
    if (this.stream && !this.stream.isOver) return;
    this.ended.value = '';
    const args = () => this.newest === null || !this.isNewest.peek()
      ? { handle: this.handle, last_n: FIRST } : { handle: this.handle, since: this.newest };
    this.stream = link().open('session', args, {
      opened: frame => {
        // After a loss of power the newest entries may be gone: what follows has their numbers.
        const isShorter = this.newest !== null && this.isNewest.peek()
          && frame.newest < this.newest;
        if (isShorter) { this.set([]); this.stream.reopen();
          } else if (frame.newest === 0) this.draw();
      },
      item: ({ entries }) => this.take(entries),
      gap: () => {}, // entries that are no longer kept: the next ones follow
      ended: ({ code, message }) => {
        this.isLoaded.value = true;
        if (code !== 'closed' && code !== 'unavailable') this.ended.value = message ?? '';
      },
    });
  }

  /** Read from the last entry on, or the newest ones: a closed agent has them too. */
  again() {
    if (this.stream?.isOver) this.follow();
    else this.stream?.reopen();
  }

  /** A view was closed. The stream ends a little later: a person often comes back to a tab. */
  close() {
    if (--this.users > 0) return;
    this.closing = setTimeout(() => {
      this.stream?.close(); this.stream = null;
      known.delete(this.handle);
    }, KEPT_MS);
  }

  take(entries) {
    if (!this.isNewest.peek()) return;
    const fresh = entries.filter(each => each.seq > (this.newest ?? -1));
    if (!fresh.length) return;
    this.entries.push(...fresh);
    this.fold.add(fresh);
    if (this.entries.length > MOST && this.isFollowed) {
      this.set(this.entries.slice(DROPPED));
      return;
    }
    this.draw();
  }

  /** Draw at the next frame, but not more often than eyes need. */
  draw() {
    if (this.drawing) return;
    const wait = this.drawnAt + DRAW_MS - performance.now();
    const now = () => {
      this.drawing = 0; this.drawnAt = performance.now();
      this.isLoaded.value = true;
      this.hasEarlier.value = (this.entries[0]?.seq ?? 1) > 1 && !this.isStart;
      this.version.value++;
    };
    this.drawing = wait > 0 ? setTimeout(() => requestAnimationFrame(now), wait)
      : requestAnimationFrame(now);
    // A hidden page draws no frames; its view is right when it is shown.
    if (document.visibilityState !== 'visible') setTimeout(() => { if (this.drawing) now(); }, 300);
  }

  set(entries) {
    this.entries = entries; this.isStart = false;
    this.fold = folded(entries);
    this.draw();
  }

  read(args) { return call('session_read', { handle: this.handle, ...args }); }

  /** Read one page, and one entry more to see whether others follow. */
  page(since) { return this.read({ since, last_n: PAGE + 1 }); }

  /** Run one move at a time, in their order. */
  move(how) {
    this.busy = this.busy.then(how, how);
    return this.busy;
  }

  /** Show the entries before the first one. */
  earlier() { return this.move(async () => {
    const first = this.entries[0]?.seq ?? 0;
    let since = Math.max(0, first - 1 - PAGE), step = PAGE, page = [], isStart = false;
    for (;;) {
      let at = since, reply;
      do {
        reply = await this.page(at);
        page.push(...reply.result.filter(each => each.seq < first));
        isStart ||= at === since && (since === 0 || reply.missed > 0);
        at = reply.result.at(-1)?.seq ?? first;
      } while (reply.more && at < first - 1);
      if (page.length || since === 0) break;
      step *= 2; since = Math.max(0, since - step); page = [];
    }
    if (this.entries[0]?.seq !== first) return; // another page came meanwhile
    if (page.length) this.prepended++;
    this.set([...page, ...this.entries]);
    this.isStart = isStart;
  }); }

  /** Show the entries after the last one, of a window that does not end with the newest. */
  later() { return this.move(async () => {
    const { result, more } = await this.page(this.newest ?? 0);
    if (!this.isNewest.peek()) this.append(result, more); // the newest were asked for meanwhile
  }); }

  append(result, more) {
    const isAll = !more && result.length <= PAGE;
    this.set([...this.entries, ...result.slice(0, PAGE)]);
    if (!isAll) return;
    this.isNewest.value = true;
    this.again();
  }

  /** Show the first entries that are kept. */
  start() { return this.move(async () => {
    const { result, more } = await this.page(0);
    this.isNewest.value = false;
    this.entries = [];
    this.append(result, more);
    this.isStart = true;
  }); }

  /** Show the entries around one. */
  around(seq) { return this.move(async () => {
    const first = this.entries[0]?.seq ?? Infinity;
    if (seq >= first && seq <= (this.newest ?? -1)) return;
    const { result, more } = await this.page(Math.max(0, seq - PAGE / 2));
    this.isNewest.value = false;
    this.entries = [];
    this.append(result, more);
  }); }

  /** Show the newest entries, and follow. */
  end() {
    this.asked.value++;
    if (this.isNewest.peek()) return;
    this.isNewest.value = true;
    this.set([]);
    this.again();
  }

  /**
   * Find a text in all entries that are kept. `onFound` gets the seqs so far; `isOff()` ends it.
   * @param {string} text @param {(found: number[], isDone: boolean) => void} onFound
   */
  async find(text, onFound, isOff) {
    const wanted = text.toLowerCase(), found = [];
    for (let since = 0, more = true; more && !isOff();) {
      const page = await this.read({ since });
      if (isOff()) return;
      const blocks = folded(page.result).blocks.filter(each => !each.isInside);
      for (const block of blocks) {
        if (textOf(block).toLowerCase().includes(wanted)) found.push(block.seq);
      }
      more = page.more && page.result.length > 0 && found.length < MOST_FOUND;
      since = page.result.at(-1)?.seq ?? since;
      onFound([...new Set(found)], !more);
    }
  }
}

const KEPT_MS = 20_000;
/** @type {Map<string, Transcript>} */
const known = new Map();

/** The transcript of a handle, shared while it is shown. @param {string} handle */
export function transcriptOf(handle) {
  if (!known.has(handle)) known.set(handle, new Transcript(handle));
  return known.get(handle);
}
