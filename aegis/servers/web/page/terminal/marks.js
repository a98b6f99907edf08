// Where commands begin in the output, and how each ended, in the gutter beside its line.
import { seconds } from '../ui.js';
import { endOf, isFailed, isOpen, textOf } from './records.js';

const TAIL = 64, ESC = 27, NOTHING = new Uint8Array(), LATIN = new TextDecoder('latin1');
const MOST = 1000; // of one message: each is a write of its own
const MARK_C = /\x1b\]133;C[^\x07\x18\x1a\x1b]*(?:\x07|\x1b\\)/g;

/**
 * Programs can print marks too, so a mark counts only if a record begins exactly behind it: no
 * program can choose the offset of its own bytes.
 */
export class Marks {
  /** `records` has the records by the first byte of their output; `onChoose(seq)` hears clicks. */
  constructor(term, records, onChoose) {
    this.term = term; this.records = records; this.onChoose = onChoose;
    this.tail = NOTHING;
    /** @type {Map<number, any>} markers of xterm.js, by the first byte of the output */
    this.byStart = new Map();
  }

  /**
   * Return where output may begin: behind each mark C, as an offset in `data` and as a cursor. A
   * mark may be cut by two messages.
   */
  find(cursor, data) {
    if (!this.tail.length && !data.includes(ESC)) return [];
    const all = new Uint8Array(this.tail.length + data.length);
    all.set(this.tail); all.set(data, this.tail.length);
    const found = [...LATIN.decode(all).matchAll(MARK_C)]
      .map(each => each.index + each[0].length - this.tail.length)
      .filter(at => at > 0); // else it was whole in the message before
    const cut = all.indexOf(ESC, Math.max(0, all.length - TAIL));
    this.tail = cut < 0 ? NOTHING : all.slice(cut);
    return found.slice(-MOST).map(at => ({ at, cursor: cursor + at }));
  }

  lost() { this.tail = NOTHING; }
  /** A new map: what is still being drawn belongs to the old one. */
  clear() { this.byStart = new Map(); }

  /** The cursor is on the line behind a command: its output begins at this byte. */
  set(start) {
    const marker = this.term.registerMarker(-1);
    if (!marker) return; // the alternate screen has none
    this.byStart.get(start)?.dispose();
    this.byStart.set(start, marker);
    marker.onDispose(() => this.byStart.get(start) === marker && this.byStart.delete(start));
    this.show(this.records.starts.get(start));
  }

  lineOf(record) { return this.byStart.get(record?.raw_start)?.line ?? -1; }

  /** The newest command that began above this line of the buffer. */
  above(line) {
    let best = null;
    for (const [start, marker] of this.byStart) {
      if (marker.line <= line && marker.line > (best?.line ?? -1)
        && this.records.starts.has(start)) {
        best = { line: marker.line, record: this.records.starts.get(start) };
      }
    }
    return best?.record ?? null;
  }

  /** Show the state of a command beside its line. */
  show(record) {
    const marker = this.byStart.get(record?.raw_start);
    if (!marker) return;
    const isBad = isFailed(record);
    if (marker.chip && marker.isBad !== isBad) { marker.chip.dispose(); marker.chip = null; }
    marker.isBad = isBad;
    if (marker.chip) { fill(marker.chip.element, record); return; }
    const ruler = isBad ? { overviewRulerOptions: { color: '#e5484d', position: 'full' } } : {};
    const options = { marker, anchor: 'left', width: 1, layer: 'top', ...ruler };
    const chip = marker.chip = this.term.registerDecoration(options);
    chip?.onRender(element => {
      if (!element.dataset.seq) {
        element.addEventListener('mousedown', event => event.stopPropagation()); // selects no text
        element.addEventListener('click', () => this.onChoose(record.seq));
      }
      fill(element, this.records.starts.get(record.raw_start) ?? record);
    });
  }
}

function fill(element, record) {
  if (!element) return;
  // The class of xterm.js is taken away by `className`.
  element.classList.add('mark');
  element.classList.toggle('fail', isFailed(record));
  element.classList.toggle('runs', isOpen(record));
  element.dataset.seq = record.seq;
  const sign = isOpen(record) ? '…' : isFailed(record) ? '✗' : '✓';
  if (element.textContent !== sign) element.textContent = sign;
  const took = record.duration_s === null ? '' : seconds(record.duration_s);
  element.title = [textOf(record), endOf(record), took].filter(Boolean).join(' · ').slice(0, 600);
}
