// Search over everything that ever ran or was said: the pages of several kinds, merged by time.
import { at, query } from '../place.js';
import { call } from '../store.js';

/**
 * @typedef {{kind: string, at: string, began?: string, name: string, id: string, text: string,
 *   by: string, outcome: string, exit: number | null, archived: boolean}} Find
 * @typedef {{word?: string, kind?: string, name?: string, since?: string, until?: string}} Asked
 */

/** Messages and transcripts are searched only where they are asked for by their kind. */
const APART = ['', 'message', 'transcript'];
const MOST_EMPTY = 20;

export const KINDS = [
  ['', 'Everything'], ['command', 'Commands'], ['transcript', 'Conversations'],
  ['message', 'Messages'], ['task', 'Tasks'], ['run', 'Workflow runs'], ['request', 'Requests'],
];
/** @type {Record<string, string>} */
export const KIND = {
  command: 'Command', transcript: 'Conversation', message: 'Message', task: 'Task', run: 'Run',
  request: 'Request',
};

/** One search: `next(count)` returns further finds, the newest first, until `isOver`. */
export class Search {
  /** @param {Asked} asked @param {string[]} [kinds] */
  constructor(asked, kinds = asked.kind ? [asked.kind] : APART) {
    const given = Object.entries(asked).filter(([name, value]) => name !== 'kind' && value);
    this.asked = Object.fromEntries(given);
    this.sources = kinds.map(kind => ({ kind, more: null, isOver: false, finds: [] }));
    /** @type {Set<string>} */
    this.problems = new Set();
  }

  get isOver() { return this.sources.every(each => each.isOver && !each.finds.length); }

  /** @param {number} count @returns {Promise<Find[]>} */
  async next(count) {
    const found = [];
    while (found.length < count && !this.isOver) {
      // The newest is known only once each source has one, or has no more.
      await Promise.all(this.sources.map(each => this.fill(each, count)));
      const live = this.sources.filter(each => each.finds.length);
      if (!live.length) break;
      found.push(live.reduce((a, b) => a.finds[0].at >= b.finds[0].at ? a : b).finds.shift());
    }
    return found;
  }

  async fill(source, limit) {
    for (let turn = 0; !source.finds.length && !source.isOver && turn < MOST_EMPTY; turn += 1) {
      const { kind, more } = source;
      const page = await call('history', {
        ...this.asked, limit, ...kind && { kind }, ...more && { more },
      });
      source.finds = page.result;
      source.more = page.more;
      source.isOver = !page.more;
      for (const each of page.problems) this.problems.add(each);
    }
  }
}

/** Return the place of the page that shows a find. @param {Find} find */
export function whereOf({ kind, name, id }) {
  switch (kind) {
    case 'command': return at('t', name, { seq: id });
    case 'transcript': return at('a', name, { seq: id });
    case 'message': return name === 'human' ? `inbox${query({ message: id })}`
      : at('m', name, { message: id });
    case 'task': return at('q', name, { task: id });
    case 'run': return at('w', id);
    default: return `answered${query({ of: name, id })}`;
  }
}

/** Return whether a find ended well, for its mark: null if neither. @param {Find} find */
export function outcomeOf({ kind, exit, outcome }) {
  if (kind === 'command' && exit !== null) return exit === 0 ? 'done' : 'failed';
  if (kind === 'task' || kind === 'run') {
    return { completed: 'done', cancelled: 'ended' }[outcome] ?? 'failed';
  }
  return outcome === 'failed' ? 'failed' : null;
}

/** Return how a find ended, in words. @param {Find} find */
export function ended({ kind, exit, outcome }) {
  if (kind === 'command') return exit === null ? outcome : `exit ${exit}`;
  return { text: 'said', message: 'was told', tool: 'called', result: 'got' }[outcome] ?? outcome;
}
