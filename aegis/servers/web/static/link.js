// The frames of docs/protocol.md over one WebSocket, made again whenever it is lost.

const PING_MS = 15000, PONG_MS = 6000, FIRST_DELAY_MS = 100, MAX_DELAY_MS = 4000;
export const CREDIT = 1 << 20;

export class Failed extends Error { constructor(code, message) { super(message); this.code = code; } }

/** States: connecting, up, down, out (log in again). ``onState(state, reason)`` hears them. */
export class Link {
  constructor(pageKey, onState) {
    this.pageKey = pageKey; this.onState = onState;
    this.delay = FIRST_DELAY_MS; this.number = 0; this.instance = null; this.isHeld = false;
    this.streams = new Map(); this.calls = new Map(); this.channels = new Map(); this.state = '';
    addEventListener('pagehide', () => this.hold()); // an open socket keeps a page out of the back/forward cache
    addEventListener('pageshow', event => { if (event.persisted) this.resume(); });
    addEventListener('online', () => this.redial());
    document.addEventListener('visibilitychange', () => { if (document.visibilityState === 'visible') this.check(); });
    this.dial();
  }

  set(state, reason = '') { if (state !== this.state || reason) { this.state = state; this.onState(state, reason); } }

  dial() {
    clearTimeout(this.timer);
    if (this.isHeld || this.state === 'out') return;
    const socket = this.socket = new WebSocket(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/ws`);
    socket.binaryType = 'arraybuffer';
    socket.onopen = () => socket.send(JSON.stringify({ type: 'hello', version: 1, page: this.pageKey }));
    socket.onmessage = ({ data }) => {
      if (socket !== this.socket) return;
      this.heard = performance.now();
      typeof data === 'string' ? this.take(JSON.parse(data), data.length) : this.bytes(data);
    };
    socket.onclose = event => { if (socket === this.socket) this.lost(event); };
  }

  lost(event) {
    this.socket = null; clearInterval(this.pinging);
    this.channels.clear();
    for (const { reject } of this.calls.values()) reject(new Failed('lost', 'the connection was lost; try again'));
    this.calls.clear();
    for (const stream of this.streams.values()) stream.lost();
    // No other end needs a new login: a new connection may mend it.
    if (event.code === 4401) { this.set('out', event.reason); return; }
    this.set('down', event.reason);
    const wait = this.delay * (0.7 + 0.6 * Math.random());
    this.delay = Math.min(MAX_DELAY_MS, this.delay * 2);
    this.timer = setTimeout(() => this.dial(), wait);
  }

  hold() { this.isHeld = true; clearTimeout(this.timer); const { socket } = this; if (socket) { socket.onclose = null; socket.close(); this.lost({ code: 1000, reason: '' }); clearTimeout(this.timer); } }
  resume() { this.isHeld = false; this.delay = FIRST_DELAY_MS; this.dial(); }
  redial() { if (!this.isHeld && this.state !== 'out') { const { socket } = this; if (socket) { socket.onclose = null; socket.close(); this.lost({ code: 1000, reason: '' }); } this.delay = FIRST_DELAY_MS; this.dial(); } }

  /** Check the connection now: after the machine slept, or when the page is shown again. */
  check() {
    if (this.state === 'down') { this.delay = FIRST_DELAY_MS; this.dial(); return; }
    if (this.state !== 'up') return;
    const asked = performance.now(), { socket } = this;
    this.send({ type: 'ping', id: 'ping' });
    setTimeout(() => { if (socket === this.socket && this.heard < asked) this.redial(); }, PONG_MS);
  }

  send(frame) { if (this.socket?.readyState === 1) this.socket.send(JSON.stringify(frame)); }

  take(frame, cost) {
    switch (frame.type) {
      case 'hello': this.welcome(frame); return;
      case 'pong': return;
      case 'reply': this.calls.get(frame.id)?.resolve(frame.result); this.calls.delete(frame.id); return;
      case 'error':
        if (this.calls.has(frame.id)) { this.calls.get(frame.id).reject(new Failed(frame.code, frame.message)); this.calls.delete(frame.id); }
        else this.streams.get(frame.id)?.refused(frame);
        return;
      default: this.streams.get(frame.id)?.take(frame, cost);
    }
  }

  welcome(frame) {
    this.isRestarted = this.instance !== null && this.instance !== frame.instance;
    this.instance = frame.instance; this.delay = FIRST_DELAY_MS; this.me = frame;
    this.pinging = setInterval(() => this.check(), PING_MS);
    const before = [...this.streams.values()]; // what hears of "up" opens streams of its own
    this.set('up');
    for (const stream of before) stream.open();
  }

  bytes(buffer) {
    const view = new DataView(buffer);
    this.channels.get(view.getUint32(0))?.bytes(Number(view.getBigUint64(4)), new Uint8Array(buffer, 12));
  }

  call(command, args = {}) {
    if (this.state !== 'up') return Promise.reject(new Failed('lost', 'there is no connection to the daemon'));
    const id = ++this.number;
    return new Promise((resolve, reject) => {
      this.calls.set(id, { resolve, reject });
      this.send({ type: 'request', id, command, arguments: args });
    });
  }

  /** Open a stream; it is opened again after a lost connection, with what ``args()`` returns then. */
  open(name, args, handler, credit = CREDIT) { return new Stream(this, name, args, handler, credit); }
}

/** ``handler`` has the functions that it needs of: opened, item, bytes, gap, ended, lost. */
export class Stream {
  constructor(link, name, args, handler, credit) {
    Object.assign(this, { link, name, args, handler, credit, owed: 0, channel: null, isOver: false });
    this.open();
  }

  open() {
    if (this.isOver) return;
    this.link.streams.delete(this.id);
    this.id = ++this.link.number; this.owed = 0;
    this.link.streams.set(this.id, this);
    this.link.send({ type: 'open', id: this.id, stream: this.name, arguments: typeof this.args === 'function' ? this.args() : this.args, credit: this.credit });
  }

  /** Begin anew, with what ``args()`` returns now. */
  reopen() { this.link.send({ type: 'close', id: this.id }); this.lost(); this.open(); }

  close() { this.isOver = true; this.link.send({ type: 'close', id: this.id }); this.forget(); }
  forget() { this.link.streams.delete(this.id); this.lost(); }
  lost() { if (this.channel !== null) this.link.channels.delete(this.channel); this.channel = null; this.handler.lost?.(); }

  take(frame, cost) {
    switch (frame.type) {
      case 'opened':
        this.channel = frame.channel;
        if (frame.channel !== null) this.link.channels.set(frame.channel, this);
        this.handler.opened?.(frame);
        break;
      case 'item': this.handler.item?.(frame.item); this.give(cost); break;
      case 'gap': this.give(cost); this.handler.gap ? this.handler.gap(frame) : this.reopen(); break; // a new stream begins with all
      case 'ended': if (frame.code !== 'unavailable') { this.isOver = true; this.forget(); } this.handler.ended?.(frame); break;
    }
  }

  refused(frame) { if (frame.code !== 'unavailable') { this.isOver = true; this.forget(); } this.handler.ended?.(frame); }
  bytes(cursor, data) { this.handler.bytes?.(cursor, data, () => this.give(data.length)); }

  give(amount) {
    this.owed += amount;
    if (this.owed >= this.credit / 8) { this.link.send({ type: 'credit', id: this.id, amount: this.owed }); this.owed = 0; }
  }

  type(bytes) {
    if (this.channel === null) return false;
    for (let at = 0; at < bytes.length; at += 65536) { // a paste may be long
      const part = bytes.subarray(at, at + 65536), message = new Uint8Array(4 + part.length);
      new DataView(message.buffer).setUint32(0, this.channel); message.set(part, 4);
      this.link.socket?.send(message);
    }
    return true;
  }
}
