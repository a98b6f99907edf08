// What became of a text: its lines that went and that came. Foreign text, as everywhere.
import { el, plain } from './dom.js';

/** Show one edit of a file. */
export const change = edit => [edited(String(edit?.old_string ?? ''), String(edit?.new_string ?? '')), edit?.truncated && el('p.file.quiet', {}, 'The change is longer.')].filter(Boolean);

/** Show what became of a text: the lines that differ, and those of both texts before and behind them. */
export function edited(before, after, context = 3) {
  const isWhole = [before, after].every(text => !text || text.endsWith('\n')); // then the empty text behind is no line
  const lines = text => text === '' ? [] : (isWhole ? text.slice(0, -1) : text).split('\n'), old = lines(before), now = lines(after);
  let head = 0, tail = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head++;
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail)) tail++;
  const same = (from, to) => now.slice(Math.max(0, from), to).map(each => ` ${each}`);
  return difference([...same(head - context, head), ...old.slice(head, old.length - tail).map(each => `-${each}`), ...now.slice(head, now.length - tail).map(each => `+${each}`), ...same(now.length - tail, now.length - tail + Math.min(tail, context))].join('\n'));
}

export function difference(text) {
  return el('div.diff', { tabindex: '0' }, plain(text, 60000).split('\n').slice(0, 3000).map(each => el(`div${each.startsWith('@@') ? '.at' : each.startsWith('+') && !each.startsWith('+++') ? '.add' : each.startsWith('-') && !each.startsWith('---') ? '.del' : ''}`, {}, each || ' ')));
}
