// The commands of a terminal, newest first: rows in chunks, so that the work for a row depends on no others.

const CHUNK = 25, ROW_PX = 58, HOVERS = matchMedia('(hover: hover)');

/** A list of records by their ``seq``. ``make(record)`` returns a row; ``update(row, record)`` fills it. */
export class Ledger {
  constructor(list, make, update) {
    Object.assign(this, { list, make, update });
    this.rows = new Map(); this.chunks = new Map(); this.rest = 0;
  }

  /** Show a record: in its row, or in a new one at its place. */
  put(record) {
    let row = this.rows.get(record.seq);
    if (!row) {
      // Newest first: a new row would move the others away from a reader, or from under the pointer.
      const { list } = this, isHeld = list.scrollTop > 0 || (HOVERS.matches && list.matches(':hover'));
      const kept = isHeld && (list.querySelector('.block:hover') ?? list.querySelector('.block')), top = kept && kept.getBoundingClientRect().top;
      this.rows.set(record.seq, row = this.make(record));
      const chunk = this.chunk(Math.floor(record.seq / CHUNK));
      place(chunk, row, record.seq);
      // A chunk that was never shown is taken for as high as this: the scrollbar hardly moves when it is.
      chunk.style.containIntrinsicBlockSize = `auto ${ROW_PX * chunk.childElementCount}px`;
      this.fill(row, record);
      if (kept) this.scroll(kept.getBoundingClientRect().top - top);
      return;
    }
    this.fill(row, record);
  }

  /** Scroll by some pixels. The list scrolls by whole ones: the rest is kept for the next time. */
  scroll(pixels) { this.rest += pixels; const whole = Math.round(this.rest); this.list.scrollTop += whole; this.rest -= whole; }

  fill(row, record) { if (row.record !== record) { row.record = record; this.update(row, record); } }

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
