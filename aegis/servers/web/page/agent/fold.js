// The entries of a transcript as blocks to draw. Pure: no call, no element.
import { plainIn } from '../plain.js';

/**
 * @typedef {object} Entry  as the daemon sends it
 * @property {number} seq
 * @property {string} kind
 * @property {string} at
 * @property {Record<string, any>} fields
 *
 * @typedef {object} Block
 * `rev` rises with each change, so that a view draws a block again only then.
 * @property {string} kind  mail, text, thought, tool, terminal, plan, note
 * @property {number} seq  of the entry that began it
 * @property {number} last  the seq of the newest entry in it
 * @property {number} rev
 * @property {string} at
 * @property {string} [text]
 * @property {string} [who]
 * @property {string} [tone]
 * @property {Block[]} [children]
 * @property {boolean} [isInside]  it is shown inside another block, or not at all
 * @property {boolean} [retries]
 *
 * @typedef {{key: number, rev: number, blocks: Block[]}} Chunk
 */

// Blocks that are laid out together: the browser skips those out of sight. By seq, so that the
// borders stay where they are when earlier entries come before them.
const CHUNK = 50;
const HEADER = /^> from (\S+)(?: · task#(\S+))?(?: · (ok|error))? · (\d\S+)$/gm;
const IMAGE = /^\[image: (\w+), (\d+) x (\d+), ([\d,]+) bytes(?:: (.+))?\]$/gm;
// The newlines at the end. Each run of newlines is looked at once, not from each of its places.
const LAST = /(?<!\n)\n+$/;
export const READS = new Set(['read', 'search', 'fetch']);

/** Split the text of a turn into its messages; `before` is what the daemon added itself. */
export function messagesIn(text) {
  const found = [...text.matchAll(HEADER)];
  const before = (found.length ? text.slice(0, found[0].index) : text).trim();
  const messages = found.map((head, index) => {
    const end = found[index + 1]?.index ?? text.length;
    const body = text.slice(head.index + head[0].length, end).replace(/^\n+/, '').replace(LAST, '');
    // The daemon marks each line that looks like a header: here the caption says who wrote it.
    return { who: head[1], task: head[2], status: head[3], at: head[4],
      text: body.replace(/^\| (?=\s*>)/gm, '') };
  });
  return { before, messages };
}

/** Return a text without the lines that show images, and these images. */
export function imagesIn(text) {
  const images = [...text.matchAll(IMAGE)].map(([, type, width, height, bytes, path]) =>
    ({ type, width: +width, height: +height, bytes, path }));
  return { text: images.length ? text.replace(IMAGE, '').replace(LAST, '') : text, images };
}

/** The words of a tool's name that people read. `mcp__aegis__term_run` is ours: "term run". */
export const toolName = name => String(name ?? '').replace(/^mcp__(aegis__)?/, '')
  .replace(/^aegis_/, '').replaceAll('__', ' · ').replaceAll('_', ' ');

export class Fold {
  constructor() {
    this.chunks = /** @type {Chunk[]} */ ([]);
    this.first = null; this.newest = null;
    this.turn = null; // {n, seq, at} while one is in progress
    this.messages = new Set(); // ids of the messages that began a turn
    this.places = new Map(); // `tool:ID` → {block, chunk, parent}
    this.open = null; // the text or thought that the next chunk of the message continues
    this.isNamed = false; // whether the agent's caption is above its blocks of this turn
    this.failure = '';
    this.isStopped = false; // whether the turn was interrupted by someone whom a note names
  }

  /** Take entries that follow those before. @param {Entry[]} entries */
  add(entries) {
    for (const entry of entries) {
      if (this.newest !== null && entry.seq <= this.newest) continue;
      this.first ??= entry.seq; this.newest = entry.seq;
      this.take({ ...entry, fields: plainIn(entry.fields) });
    }
    return this;
  }

  get blocks() { return this.chunks.flatMap(each => each.blocks); }

  push(kind, entry, fields) {
    const key = Math.floor(entry.seq / CHUNK);
    let chunk = this.chunks.at(-1);
    if (chunk?.key !== key) {
      chunk = { key, rev: 0, blocks: [] };
      this.chunks.push(chunk);
    }
    const block = { kind, seq: entry.seq, last: entry.seq, rev: 0, at: entry.at, ...fields };
    const same = chunk.blocks.filter(each => each.seq === entry.seq).length;
    block.key = `${kind}${entry.seq}${same ? `.${same}` : ''}`;
    if (kind === 'mail') this.isNamed = false;
    else if (kind !== 'note' && !this.isNamed) { block.isFirst = true; this.isNamed = true; }
    chunk.blocks.push(block); chunk.rev++;
    this.open = null;
    return { block, chunk, parent: null };
  }

  change(place, entry, fields) {
    Object.assign(place.block, fields, { last: entry.seq });
    place.block.rev++; place.chunk.rev++;
    for (let up = place.parent; up; up = up.parent) up.block.rev++;
  }

  note(entry, text, tone = '', more = {}) { return this.push('note', entry, { text, tone,
    ...more }); }

  take(entry) {
    const { kind, fields } = entry;
    switch (kind) {
      case 'turn_opened': this.opened(entry); break;
      case 'turn_ended': this.ended(entry); break;
      case 'event': this.event(fields.event ?? {}, entry); break;
      case 'started': if (fields.rung !== 1) this.note(entry, 'The agent was started again'); break;
      case 'ended':
        if (fields.reason && fields.code !== 0) this.note(entry, fields.reason, 'warn');
        break;
      case 'interrupt': this.isStopped = true; this.note(entry,
        `Interrupted by ${person(fields.by)}`); break;
      case 'closed': this.note(entry, `Closed by ${person(fields.by)}`); break;
      case 'reopened': this.note(entry, 'Resumed'); break;
      case 'forked': this.note(entry, 'Begins with a copy of another conversation'); break;
      case 'taken_over':
        this.note(entry, `${person(fields.by, 'You')} took the conversation over`, 'person');
        break;
      case 'handed_back':
        this.note(entry, `Handed back${fields.reason ? `: ${fields.reason}` : ''}`, 'person');
        break;
      case 'rewound': this.rewound(entry); break;
      case 'withdrawn': this.messages.add(fields.message);
        this.note(entry, `A message was taken back by ${person(fields.by)}`); break;
      case 'expired': this.note(entry, 'Nobody answered in time', 'warn'); break;
      case 'login_refused': this.note(entry, 'The login was refused', 'warn'); break;
      case 'decided': {
        const asked = this.places.get(`ask:${fields.request}`);
        if (!String(fields.answer?.kind ?? '').startsWith('allow')) {
          this.note(entry, `Refused by the profile: ${fields.why ?? ''}`, 'warn');
        } else if (asked) this.change(asked, entry, { isInside: true }); // nobody was asked
      }
    }
  }

  opened(entry) {
    const { fields, at } = entry, text = String(fields.text ?? '');
    const { before, messages } = messagesIn(text), senders = fields.messages ?? [];
    this.turn = { n: fields.turn, seq: entry.seq, at };
    for (const each of senders) this.messages.add(each.id);
    const turn = { turn: fields.turn };
    if (before && messages.length) this.note(entry, before, '', turn);
    const own = { who: senders[0]?.sender ?? 'human', text: before, at };
    for (const each of messages.length ? messages : [own]) {
      const { images, ...rest } = { ...each, ...imagesIn(each.text) };
      this.push('mail', entry, { ...turn, ...rest, images });
    }
  }

  ended(entry) {
    const { fields } = entry, { failure = '' } = this;
    const reason = failure && !String(fields.reason ?? '').includes(failure) ? failure
      : String(fields.reason ?? '');
    this.failure = '';
    const began = this.turn && Date.parse(this.turn.at);
    const took = began ? (Date.parse(entry.at) - began) / 1000 : null;
    this.turn = null;
    this.stopTools(entry, fields.outcome);
    const isSaid = fields.outcome === 'cancelled' && this.isStopped;
    this.isStopped = false;
    if (fields.outcome === 'completed' || isSaid) { this.note(entry, '', 'end', { took,
      turn: fields.turn }); return; }
    const words = { interrupted: 'The turn was cut off', cancelled: 'The turn was stopped',
      limited: 'The turn met a usage limit', failed: 'The turn failed' };
    const why = reason && reason !== fields.outcome ? `: ${reason}` : '';
    this.note(entry, `${words[fields.outcome] ?? `The turn ended: ${fields.outcome}`}${why}`,
      fields.outcome === 'cancelled' ? '' : 'bad', { took, turn: fields.turn,
        outcome: fields.outcome });
  }

  /** No call runs behind the end of its turn. */
  stopTools(entry, outcome) {
    for (const [key, place] of this.places) {
      if (!key.startsWith('tool:') || place.block.state !== 'runs') continue;
      this.change(place, entry, { state: outcome === 'completed' ? 'done' : 'stopped' });
    }
  }

  rewound(entry) {
    const { fields } = entry, turn = fields.turn;
    const text = fields.reason ? `Files were not set back to before turn ${turn}: ${fields.reason}`
      : `Files were set back to before turn ${turn} by ${person(fields.by)}`;
    const lines = [...(fields.files ?? []).map(each => `set back: ${each}`),
      ...(fields.left ?? []).map(each => `left, changed by others since: ${each}`),
      ...(fields.unable ?? []), ...(fields.kept ?? [])];
    this.note(entry, text, fields.reason ? 'warn' : 'person', { lines });
  }

  event(event, entry) {
    switch (event.type) {
      case 'assistant_text': this.text('text', event, entry); break;
      case 'assistant_thinking': this.text('thought', event, entry); break;
      case 'user_message':
        if (event.origin !== 'turn') {
          const who = entry.fields.source ? 'human' : event.origin || 'the agent itself';
          this.push('mail', entry, { who, ...imagesIn(String(event.text ?? '')),
            hint: entry.fields.source ? 'in the terminal' : '' });
        }
        break;
      case 'tool_use': this.tool(event, entry); break;
      case 'tool_progress': this.progress(event, entry); break;
      case 'tool_result': this.result(event, entry); break;
      case 'terminal_started': case 'terminal_output': case 'terminal_ended':
        this.terminal(event, entry); break;
      case 'plan': this.plan(event, entry); break;
      case 'result':
        this.failure = event.ok ? '' : String(event.text ?? '');
        break;
      case 'rate_limit': this.limit(event, entry); break;
      case 'retrying': this.retry(event, entry); break;
      case 'conversation_changed': {
        const by = event.by_agent ? ', as the context was full' : '';
        const known = event.before !== null && event.after !== null && event.before !== undefined;
        const size = known ? ` (${event.before} → ${event.after} tokens)` : '';
        this.note(entry, `The conversation was ${event.how}${by}${size}`, 'person');
        break;
      }
      case 'command_sent':
        if (event.as_text) this.note(entry, `It has no command /${event.name}: sent as text`,
          'warn');
        break;
      case 'start_notice': this.note(entry, event.text, 'warn'); break;
      case 'system_init': {
        const lost = Object.entries(event.mcp_servers ?? {}).filter(([, is]) => is !== 'connected');
        if (lost.length) {
          this.note(entry, lost.map(([name, is]) => `MCP server ${name}: ${is}`).join('\n'),
            'warn');
        }
        break;
      }
      case 'request_opened': this.asked(event, entry); break;
      case 'too_large': {
        const size = (event.size / 2 ** 20).toFixed(1);
        this.note(entry, `${event.kind || 'An item'} is too large, ${size} MiB: a part is kept`,
          'warn');
        break;
      }
      case 'unknown': this.note(entry, `An event of an unknown type, ${event.kind
        || 'without a name'}`);
    }
  }

  text(kind, event, entry) {
    const { open } = this, text = String(event.text ?? '');
    if (!text && !event.aborted) return;
    const continues = open && open.block.kind === kind
      && (kind === 'thought' || (event.message && open.block.message === event.message));
    if (continues) {
      this.change(open, entry, { text: open.block.text + text, aborted: event.aborted,
        until: entry.at });
      return;
    }
    if (kind === 'thought' && !text.trim()) return;
    const by = entry.fields.source ? { hint: 'in the terminal' } : null;
    this.open = this.push(kind, entry,
      { text, message: event.message, aborted: event.aborted, until: entry.at, ...by });
  }

  tool(event, entry) {
    const { id, name, title, input, parent, kind } = event, key = `tool:${id}`;
    const fields = { name, title, input: input ?? {}, of: kind, id };
    const known = this.places.get(key), up = parent ? this.places.get(`tool:${parent}`) : null;
    if (known) { this.change(known, entry, fields); return; }
    const state = 'runs', more = { ...fields, state, result: null, terminal: null, children: [] };
    if (!up) { this.places.set(key, this.push('tool', entry, more)); return; }
    const block = { kind: 'tool', seq: entry.seq, last: entry.seq, rev: 0, at: entry.at, ...more };
    up.block.children.push(block);
    const place = { block, chunk: up.chunk, parent: up };
    this.places.set(key, place);
    this.change(place, entry, {});
  }

  progress(event, entry) {
    const place = this.places.get(`tool:${event.id}`);
    if (!place) return;
    this.change(place, entry, { progress: event.text || place.block.progress });
    if (!event.terminal) return;
    // The terminal is shown in its call, also if it began before the call was known.
    const known = this.places.get(`term:${event.terminal}`);
    if (known) {
      known.block.isInside = true; known.parent = place; known.chunk.rev++; known.block.rev++;
      place.block.terminal = known.block;
    } else {
      const block = { kind: 'terminal', seq: entry.seq, last: entry.seq, rev: 0, at: entry.at,
        id: event.terminal, command: '', output: '', state: 'runs', isInside: true };
      place.block.terminal = block;
      this.places.set(`term:${event.terminal}`, { block, chunk: place.chunk, parent: place });
    }
    this.change(place, entry, {});
  }

  result(event, entry) {
    const place = this.places.get(`tool:${event.id}`);
    if (!place) return;
    this.change(place, entry, { ...imagesIn(String(event.text ?? '')), until: entry.at,
      result: true, state: event.is_error ? 'failed' : 'done' });
  }

  terminal(event, entry) {
    const key = `term:${event.terminal}`;
    if (!this.places.has(key)) {
      this.places.set(key, this.push('terminal', entry, { id: event.terminal,
        command: event.command ?? '', output: '', state: 'runs' }));
    }
    const place = this.places.get(key), fields = {};
    if (event.command) fields.command = event.command;
    if (event.output !== undefined) Object.assign(fields, { output: event.output,
      truncated: event.truncated });
    if (event.type === 'terminal_ended') {
      const { exit_code: exit, signal } = event;
      Object.assign(fields, { exit, signal, until: entry.at,
        state: exit === 0 ? 'done' : exit === null && !signal ? 'unseen' : 'failed' });
    }
    this.change(place, entry, fields);
  }

  plan(event, entry) {
    // A turn has one list: a newer one replaces it in its place.
    const known = this.places.get('plan'), turn = this.turn?.n ?? null;
    if (known && known.turn === turn) { this.change(known, entry, { steps: event.steps }); return; }
    const place = this.push('plan', entry, { steps: event.steps ?? [] });
    this.places.set('plan', { ...place, turn });
  }

  limit(event, entry) {
    if (event.status === 'allowed') return;
    const kind = event.kind ? ` (${event.kind.replaceAll('_', ' ')})` : '';
    const text = event.status === 'rejected' ? `The usage limit is reached${kind}`
      : `The usage limit is near${kind}`;
    const key = `${event.status} ${event.kind}`, known = this.places.get('limit');
    if (known && known.key === key && known.turn === this.turn?.n) return;
      // repeated at each request
    const place = this.note(entry, text, event.status === 'rejected' ? 'bad' : 'warn',
      { resets: event.resets_at });
    this.places.set('limit', { ...place, key, turn: this.turn?.n });
  }

  retry(event, entry) {
    const status = event.status ? ` with ${event.status}` : '';
    const text = `A request to the model failed${status}: attempt ${event.attempt} of `
      + `${event.attempts} in ${Math.round(event.delay_s)} s`;
    const last = this.chunks.at(-1)?.blocks.at(-1);
    if (last?.retries) { this.change({ block: last, chunk: this.chunks.at(-1) }, entry, { text });
      return; }
    this.note(entry, text, 'warn', { retries: true });
  }

  asked(event, entry) {
    if (event.tool_use && this.places.has(`tool:${event.tool_use}`)) return; // its call is shown
    const plan = event.tool_kind === 'plan' ? String(event.input?.plan ?? '') : '';
    const what = plan ? 'Showed its plan and asks to begin'
      : { login: 'Needs a login', question: 'Asked', elicitation: 'Asked' }[event.kind]
        ?? 'Asked for';
    const about = plan ? '' : `: ${event.title || event.tool || 'an answer'}`;
    this.places.set(`ask:${event.id}`, this.note(entry, `${what}${about}`, 'ask', { plan }));
  }
}

const person = (by, me = 'you') => by === 'human' ? me : String(by ?? 'the daemon');

/** Fold a whole list of entries. @param {Entry[]} entries */
export const folded = entries => new Fold().add(entries);

/** Group neighbouring reads and searches that went well, and drop what is shown inside another. */
export function grouped(blocks) {
  const shown = [];
  for (const block of blocks) {
    if (block.isInside || (block.kind === 'note' && block.tone === 'end' && !block.took)) continue;
    const isStep = block.kind === 'tool' && READS.has(block.of) && block.state !== 'failed'
      && !block.terminal && !block.children.length && !block.images?.length;
    const last = shown.at(-1);
    if (isStep && last?.kind === 'steps') last.tools.push(block);
    else if (isStep) shown.push({ kind: 'steps', seq: block.seq, tools: [block], at: block.at });
    else shown.push(block);
  }
  return shown.map(each => each.kind === 'steps' && each.tools.length === 1 ? each.tools[0] : each);
}

/** The text of a block that a search looks into. */
export const textOf = block => [block.text, block.title, block.name, block.command, block.output,
  block.input && Object.keys(block.input).length ? JSON.stringify(block.input) : '',
  ...(block.steps ?? []).map(each => each.text), block.plan, ...(block.lines ?? []),
  block.terminal && textOf(block.terminal), ...(block.children ?? []).map(textOf)]
  .filter(Boolean).join('\n');
