// Messages in words, and their acknowledgement: for every page that lists some.
import { call, dropReadMail, mail } from '../store.js';

/** The handle of the person. */
export const OWN = 'human';
const LINE_CHARS = 240;

/** The name of a sender without its kind. */
export const sender = ({ sender: from }) => from === OWN ? 'You'
  : from.replace(/^agent:/, '').replace(/^([a-z]+):/, '$1 ');
/** The first line of a text, without the marks of Markdown. */
export const lineOf = text => text.trim().slice(0, LINE_CHARS).split('\n')[0]
  .replace(/[*_`#>]+/g, '').trim();

/** Acknowledge messages up to one; without one, all that are shown now. */
export async function acknowledge(upTo = null) {
  const last = typeof upTo === 'string' ? upTo : [...mail.value.keys()].at(-1);
  if (last === undefined) return;
  await call('inbox_read', { after: last, limit: 1 });
  await dropReadMail();
}
