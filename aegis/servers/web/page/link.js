// The frames of docs/protocol.md over one WebSocket, which is made again when it is lost.
import { inWords } from './words.js';

const PING_MS = 15000;
const PONG_MS = 6000;
const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 4000;
const AGAIN_MS = 2000;
const LONGEST_KEYS = 65536;
export const CREDIT = 1 << 20;
/** Commands that only read: those of a lost connection are called again without a look. */
const READS = new RegExp('^(?:status|tree|meta|history|doctor|list_\\w+|\\w+_(?:read|list|show|'
  + 'diff|output|status|history|export|orders|steps|key|screen|usage|over_time|conversations|wait|'
  + 'wait_all))$');

/** A call that the daemon refused, or that had no connection (`code` is then 'lost'). */
export class Failed extends Error {
  /** @param {string} code @param {string} message */
  constructor(code, message) {
    super(inWords(message));
    this.code = code;
  }
}

/** The connection. Its states: connecting, up, down, out (a person has to log in again). */
export class Link {
  /**
   * `pageKey` reads the stored key: another page of this browser may log in again, with a new one.
   * @param {() => string | null} pageKey @param {(state: string, reason: string) => void} onState
   */
  constructor(pageKey, onState) {
    this.pageKey = pageKey;
    /** @type {string | null} */
    this.shownKey = null;
    this.onState = onState;
    this.delay = FIRST_DELAY_MS;
    this.number = 0;
    /** @type {string | null} */
    this.instance = null;
    this.isRestarted = false;
    this.isHeld = false;
    /** @type {Map<number, Stream>} */
    this.streams = new Map();
    /** @type {Map<number, {command: string, resolve: Function, reject: Function}>} */
    this.calls = new Map();
    /** @type {Map<number, Stream>} */
    this.channels = new Map();
    this.state = '';
    /** @type {WebSocket | null} */
    this.socket = null;
    this.heard = 0;
    /** @type {any} */
    this.me = null;
    // An open socket keeps a page out of the back/forward cache.
    addEventListener('pagehide', () => this.hold());
    addEventListener('pageshow', event => { if (event.persisted) this.resume(); });
    addEventListener('online', () => this.redial());
    document.addEventListener('visibilitychange', () => {
      if (document.visibilityState === 'visible') this.check();
    });
    this.dial();
  }

  set(state, reason = '') {
    if (state === this.state && !reason) return;
    this.state = state;
    this.onState(state, reason);
  }

  dial() {
    clearTimeout(this.timer);
    if (this.isHeld || this.state === 'out') return;
    const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
    const socket = this.socket = new WebSocket(`${scheme}://${location.host}/ws`);
    socket.binaryType = 'arraybuffer';
    socket.onopen = () => {
      this.shownKey = this.pageKey() ?? '';
      socket.send(JSON.stringify({ type: 'hello', version: 1, page: this.shownKey }));
    };
    socket.onmessage = ({ data }) => {
      if (socket !== this.socket) return;
      this.heard = performance.now();
      if (typeof data === 'string') this.take(JSON.parse(data), data.length);
      else this.bytes(data);
    };
    socket.onclose = event => { if (socket === this.socket) this.lost(event); };
  }

  /** @param {{code: number, reason: string}} event */
  lost(event) {
    this.socket = null;
    clearInterval(this.pinging);
    this.channels.clear();
    const calls = [...this.calls.values()];
    this.calls.clear();
    for (const { command, reject } of calls) reject(new Failed('lost', READS.test(command)
      ? 'The connection was lost; try again.'
      : 'The connection was lost before the answer: look whether it was done.'));
    for (const stream of [...this.streams.values()]) stream.lost();
    // Only this end needs a new login: a new connection may mend any other, and another key this.
    if (event.code === 4401 && [null, this.shownKey].includes(this.pageKey())) {
      this.set('out', event.reason);
      return;
    }
    this.set('down', event.reason);
    const wait = this.delay * (0.7 + 0.6 * Math.random());
    this.delay = Math.min(MAX_DELAY_MS, this.delay * 2);
    this.timer = setTimeout(() => this.dial(), wait);
  }

  /** Close the socket without an end that would dial again. */
  drop() {
    const { socket } = this;
    if (!socket) return;
    socket.onclose = null;
    socket.close();
    this.lost({ code: 1000, reason: '' });
    clearTimeout(this.timer);
  }

  hold() {
    this.isHeld = true;
    clearTimeout(this.timer);
    this.drop();
  }

  resume() {
    this.isHeld = false;
    this.delay = FIRST_DELAY_MS;
    this.dial();
  }

  redial() {
    if (this.isHeld || this.state === 'out') return;
    this.drop();
    this.delay = FIRST_DELAY_MS;
    this.dial();
  }

  /** Check the connection now: after the machine slept, or when the page is shown again. */
  check() {
    if (this.state === 'down') {
      this.redial();
      return;
    }
    if (this.state !== 'up') return;
    const asked = performance.now(), { socket } = this;
    this.send({ type: 'ping', id: 'ping' });
    setTimeout(() => { if (socket === this.socket && this.heard < asked) this.redial(); }, PONG_MS);
  }

  send(frame) {
    if (this.socket?.readyState === 1) this.socket.send(JSON.stringify(frame));
  }

  take(frame, cost) {
    const call = this.calls.get(frame.id);
    switch (frame.type) {
      case 'hello': this.welcome(frame); return;
      case 'pong': return;
      case 'reply':
        this.calls.delete(frame.id);
        call?.resolve(frame.result);
        return;
      case 'error':
        this.calls.delete(frame.id);
        if (call) call.reject(new Failed(frame.code, frame.message));
        else this.streams.get(frame.id)?.refused(frame);
        return;
      default: this.streams.get(frame.id)?.take(frame, cost);
    }
  }

  welcome(frame) {
    this.isRestarted = this.instance !== null && this.instance !== frame.instance;
    this.instance = frame.instance;
    this.delay = FIRST_DELAY_MS;
    this.me = frame;
    this.pinging = setInterval(() => this.check(), PING_MS);
    const before = [...this.streams.values()]; // what hears of "up" opens streams of its own
    this.set('up');
    for (const stream of before) stream.open();
  }

  bytes(buffer) {
    const view = new DataView(buffer), stream = this.channels.get(view.getUint32(0));
    stream?.bytes(Number(view.getBigUint64(4)), new Uint8Array(buffer, 12));
  }

  /**
   * Carry out a command of the daemon. Rejects with `Failed`.
   * @param {string} command @param {Record<string, any>} [args] @returns {Promise<any>}
   */
  call(command, args = {}) {
    if (this.state !== 'up' || this.socket?.readyState !== 1) {
      const why = 'There is no connection to the daemon: try again once there is one.';
      return Promise.reject(new Failed('lost', why));
    }
    const id = ++this.number;
    return new Promise((resolve, reject) => {
      this.calls.set(id, { command, resolve, reject });
      this.send({ type: 'request', id, command, arguments: args });
    });
  }

  /** Open a stream; after a lost connection it is opened with what `args()` returns then. */
  open(name, args, handler, credit = CREDIT) {
    return new Stream(this, name, args, handler, credit);
  }
}

/** `handler` has the functions that it needs of: opened, item, bytes, gap, ended, lost. */
export class Stream {
  constructor(link, name, args, handler, credit) {
    this.link = link;
    this.name = name;
    this.args = args;
    this.handler = handler;
    this.credit = credit;
    this.id = 0;
    this.owed = 0;
    /** @type {number | null} */
    this.channel = null;
    this.isOver = false;
    this.open();
  }

  open() {
    if (this.isOver) return;
    this.link.streams.delete(this.id);
    this.id = ++this.link.number;
    this.owed = 0;
    this.link.streams.set(this.id, this);
    const args = typeof this.args === 'function' ? this.args() : this.args;
    const { id, name, credit } = this;
    this.link.send({ type: 'open', id, stream: name, arguments: args, credit });
  }

  /** Begin anew, with what `args()` returns now. */
  reopen() {
    this.link.send({ type: 'close', id: this.id });
    this.lost();
    this.open();
  }

  close() {
    this.isOver = true;
    this.link.send({ type: 'close', id: this.id });
    this.forget();
  }

  forget() {
    this.link.streams.delete(this.id);
    this.lost();
  }

  lost() {
    if (this.channel !== null) this.link.channels.delete(this.channel);
    this.channel = null;
    this.handler.lost?.();
  }

  take(frame, cost) {
    switch (frame.type) {
      case 'opened':
        this.channel = frame.channel;
        if (frame.channel !== null) this.link.channels.set(frame.channel, this);
        this.handler.opened?.(frame);
        break;
      case 'item':
        this.handler.item?.(frame.item);
        this.give(cost);
        break;
      case 'gap':
        this.give(cost);
        if (this.handler.gap) this.handler.gap(frame);
        else this.reopen(); // a new stream begins with all
        break;
      case 'ended': this.refused(frame); break;
    }
  }

  refused(frame) {
    if (frame.code === 'unavailable') this.openSoon();
    else {
      this.isOver = true;
      this.forget();
    }
    this.handler.ended?.({ ...frame, message: frame.message && inWords(frame.message) });
  }

  /** Open the stream again: its subject cannot be reached now, or will be opened again. */
  openSoon() {
    const { id } = this;
    this.lost();
    // A new connection opens it by itself, with another id.
    setTimeout(() => { if (this.id === id && this.link.state === 'up') this.open(); }, AGAIN_MS);
  }

  bytes(cursor, data) {
    this.handler.bytes?.(cursor, data, () => this.give(data.length));
  }

  give(amount) {
    this.owed += amount;
    if (this.owed < this.credit / 8) return;
    this.link.send({ type: 'credit', id: this.id, amount: this.owed });
    this.owed = 0;
  }

  /** Type bytes into the terminal; a long paste in parts. Returns whether there was a channel. */
  type(bytes) {
    if (this.channel === null) return false;
    for (let at = 0; at < bytes.length; at += LONGEST_KEYS) {
      const part = bytes.subarray(at, at + LONGEST_KEYS), message = new Uint8Array(4 + part.length);
      new DataView(message.buffer).setUint32(0, this.channel);
      message.set(part, 4);
      this.link.socket?.send(message);
    }
    return true;
  }
}
