// The commands of a terminal, newest first: rows in chunks, so that the work for a row depends on no others.

const CHUNK = 25, ROW_PX = 58;

/** A list of records by their ``seq``. ``make(record)`` returns a row; ``update(row, record)`` fills it. */
export class Ledger {
  constructor(list, make, update) {
    Object.assign(this, { list, make, update });
    this.rows = new Map(); this.chunks = new Map();
  }

  /** Show a record: in its row, or in a new one at its place. */
  put(record) {
    let row = this.rows.get(record.seq);
    if (!row) {
      this.rows.set(record.seq, row = this.make(record));
      const chunk = this.chunk(Math.floor(record.seq / CHUNK));
      place(chunk, row, record.seq);
      // A chunk that was never shown is taken for as high as this: the scrollbar hardly moves when it is.
      chunk.style.containIntrinsicBlockSize = `auto ${ROW_PX * chunk.childElementCount}px`;
    }
    if (row.record !== record) { row.record = record; this.update(row, record); }
  }

  chunk(number) {
    let chunk = this.chunks.get(number);
    if (!chunk) {
      this.chunks.set(number, chunk = document.createElement('div'));
      chunk.className = 'chunk';
      place(this.list, chunk, number);
    }
    return chunk;
  }
}

/** Put a child between those of higher and lower numbers. */
function place(parent, child, number) {
  let next = parent.firstChild;
  while (next && next.place > number) next = next.nextSibling;
  child.place = number;
  parent.insertBefore(child, next);
}
