// Changes of files: of git's text, or of an old and a new text; and as they are shown.
import { html, useState } from './lib.js';
import { Icon } from './ui.js';

/**
 * @typedef {{sign: '+'|'-'|' '|'@', text: string, old: number|null, now: number|null}} Line
 * @typedef {{path: string, from?: string, what: string, lines: Line[], plus: number,
 *   minus: number, isCut?: boolean}} FileChange
 */

const CONTEXT = 3, FIRST_LINES = 400;

const numberOf = line => line.now ?? line.old;
const takesComment = line => line.sign !== '@' && numberOf(line) !== null;

const counted = file => ({ ...file, plus: file.lines.filter(each => each.sign === '+').length,
  minus: file.lines.filter(each => each.sign === '-').length });

/** git quotes a path with odd characters: "a/caf\303\251". */
function unquoted(path) {
  if (!path.startsWith('"')) return path;
  const codes = { n: 10, t: 9, r: 13, a: 7, b: 8, f: 12, v: 11 }, bytes = [];
  const inner = path.slice(1, path.endsWith('"') ? -1 : undefined);
  const encoder = new TextEncoder();
  for (const [all, octal, letter] of inner.matchAll(/\\([0-7]{3})|\\(.)|[^\\]+/gs)) {
    if (octal) bytes.push(parseInt(octal, 8));
    else if (letter) bytes.push(codes[letter] ?? letter.charCodeAt(0));
    else bytes.push(...encoder.encode(all));
  }
  return new TextDecoder().decode(new Uint8Array(bytes));
}
const bare = path => unquoted(path.replace(/\t.*$/, '')).replace(/^[ab]\//, '');

/** Parse the text of `git diff`. @returns {FileChange[]} */
export function parsedDiff(text) {
  const files = [];
  let file = null, old = 0, now = 0, leftOld = 0, leftNow = 0;
  const begin = (path, what = 'changed') => {
    file = { path, what, lines: [] };
    files.push(file);
  };
  for (const line of text.split('\n')) {
    const sign = line[0];
    if (leftOld > 0 || leftNow > 0) { // inside a hunk each line is content, also "--- a/x"
      if (sign === '+') { file.lines.push({ sign, text: line.slice(1), old: null, now: now++ });
        leftNow--; continue; }
      if (sign === '-') { file.lines.push({ sign, text: line.slice(1), old: old++, now: null });
        leftOld--; continue; }
      if (sign === '\\') continue;
      if (sign === ' ' || line === '') {
        file.lines.push({ sign: ' ', text: line.slice(1), old: old++, now: now++ });
        leftOld--; leftNow--; continue;
      }
      leftOld = leftNow = 0;
    }
    const hunk = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)/.exec(line);
    if (hunk) {
      if (!file) begin('');
      [old, leftOld, now, leftNow] = [+hunk[1], +(hunk[2] ?? 1), +hunk[3], +(hunk[4] ?? 1)];
      if (file.lines.length || old > 1) {
        file.lines.push({ sign: '@', text: hunk[5], old: null, now: null });
      }
    } else if (line.startsWith('diff --git ')) begin(bare(line.slice(11).split(/ (?="?b\/)/)
      .at(-1)));
    else if (line.startsWith('--- ')) {
      if (!file || file.lines.length) begin('');
      if (line.slice(4) === '/dev/null') file.what = 'new';
      else file.path ||= bare(line.slice(4));
    } else if (line.startsWith('+++ ') && file) {
      if (line.slice(4) === '/dev/null') file.what = 'deleted';
        else file.path = bare(line.slice(4));
    } else if (line.startsWith('rename from ') && file) {
      file.what = 'renamed'; file.from = unquoted(line.slice(12));
    } else if (file && /^(Binary files |GIT binary patch)/.test(line)) file.what = 'binary';
    else if (file && line.startsWith('new file')) file.what = 'new';
    else if (file && line.startsWith('deleted file')) file.what = 'deleted';
  }
  return files.map(counted);
}

/** The lines of an old and a new text that differ, with some around them. @returns {FileChange} */
export function edited(path, before, after, isCut = false, around = CONTEXT) {
  const isWhole = [before, after].every(text => !text || text.endsWith('\n'));
  const lines = text => text === '' ? [] : (isWhole ? text.slice(0, -1) : text).split('\n');
  const was = lines(before), is = lines(after), shown = [];
  let head = 0, tail = 0;
  while (head < was.length && head < is.length && was[head] === is[head]) head++;
  while (tail < was.length - head && tail < is.length - head
    && was.at(-1 - tail) === is.at(-1 - tail)) tail++;
  const add = (sign, list) => list.forEach(text => shown.push({ sign, text, old: null,
    now: null }));
  add(' ', is.slice(Math.max(0, head - around), head));
  add('-', was.slice(head, was.length - tail));
  add('+', is.slice(head, is.length - tail));
  add(' ', is.slice(is.length - tail, is.length - tail + Math.min(tail, around)));
  return counted({ path, what: before ? 'changed' : 'new', lines: shown, isCut });
}

/** The changes that the input of a tool describes. @returns {FileChange[]} */
export function changesIn(input) {
  const path = String(input.file_path ?? input.notebook_path ?? input.path ?? '');
  if (Array.isArray(input.edits) && input.edits.length) {
    return input.edits.filter(each => each && typeof each === 'object').map(each =>
      edited(String(each.file_path ?? path), String(each.old_string ?? ''),
        String(each.new_string ?? ''), each.truncated));
  }
  if (typeof input.old_string === 'string' || typeof input.new_string === 'string') {
    return [edited(path, String(input.old_string ?? ''), String(input.new_string ?? ''),
      input.truncated)];
  }
  if (typeof input.diff === 'string' || typeof input.patch === 'string') {
    return parsedDiff(String(input.diff ?? input.patch));
  }
  if (path && typeof input.content === 'string') return [edited(path, '', input.content)];
  return [];
}

/** The numbers of lines that came and went. @param {{files: FileChange[]}} props */
export function PlusMinus({ files }) {
  const plus = files.reduce((sum, each) => sum + each.plus, 0);
  const minus = files.reduce((sum, each) => sum + each.minus, 0);
  return html`<span class="pm"><span class="plus">+${plus}</span>
    <span class="minus">−${minus}</span></span>`;
}

/**
 * Files with their lines. `onLine(file, line)` makes each line a button; `below(file, line)` is
 * shown under a line.
 * `isBare`: without the names of the files.
 * @param {{files: FileChange[], isOpen?: boolean, isBare?: boolean, onLine?: Function,
 *   below?: Function}} props
 */
export function Diff({ files, isOpen, isBare = false, onLine, below }) {
  if (isBare) {
    return html`<div class="diff">${files.map(file => html`<div class="file"><${Lines}
      ...${{ file, onLine, below }} /></div>`)}</div>`;
  }
  return html`<div class="diff">${files.map((file, index) => html`<${File} key=${index}
    ...${{ file, onLine, below }} isOpen=${isOpen ?? index === 0} />`)}</div>`;
}

function File({ file, isOpen, onLine, below }) {
  const [open, setOpen] = useState(isOpen);
  const what = { new: 'new', deleted: 'deleted', binary: 'binary',
    renamed: `was ${file.from ?? ''}` }[file.what];
  return html`<details class="file" open=${open} onToggle=${event => setOpen(event.target.open)}>
    <summary><${Icon} of="right" /><bdi class="path" title=${file.path}>${file.path || 'text'}</bdi>
      ${what && html`<span class="note cut">${what}</span>`}<${PlusMinus} files=${[file]}
        /></summary>
    ${open && html`<${Lines} ...${{ file, onLine, below }} />`}</details>`;
}

const STEP = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };

function Lines({ file, onLine, below }) {
  const [isWhole, setWhole] = useState(false), [on, setOn] = useState(/** @type {any} */ (null));
  const lines = isWhole ? file.lines : file.lines.slice(0, FIRST_LINES);
  // One stop of Tab in a file: from there arrows move.
  const stop = lines.includes(on) ? on : lines.find(takesComment);
  const move = event => {
    const all = [...event.currentTarget.querySelectorAll('button.n')];
    const from = all.indexOf(event.target), by = STEP[event.key];
    if (from < 0 || !by) return;
    event.preventDefault();
    all[Math.max(0, Math.min(all.length - 1, from + by))].focus();
  };
  return html`<div class="lines" tabindex="0" role="group" aria-label=${`Change of ${file.path}`}
    onKeyDown=${onLine && move}>
    <div class="lines-in">${lines.map(line => html`<${DiffLine} ...${{ file, line, onLine, below,
      setOn }} isStop=${line === stop} />`)}
    </div>${file.lines.length > lines.length && html`<button type="button" class="link pad"
      onClick=${() => setWhole(true)}>Show all ${file.lines.length} lines</button>`}
    ${file.isCut && html`<p class="note pad">The change is longer than what is kept.</p>`}</div>`;
}

const TONES = { '+': 'add', '-': 'del', '@': 'at', ' ': '' };

function DiffLine({ file, line, onLine, below, isStop, setOn }) {
  const number = numberOf(line), { sign, text } = line, can = onLine && takesComment(line);
  return html`<div class="dline ${TONES[sign]}">
      ${can ? html`<button type="button" class="n" aria-label=${`Comment on ${line.now === null
        ? 'old line' : 'line'} ${number} of ${file.path}`}
        tabindex=${isStop ? 0 : -1} onFocus=${() => setOn(line)}
        onClick=${() => onLine(file, line)}>${number}</button>`
        : number !== null && html`<span class="n">${number}</span>`}
      <span class="sign">${sign === '-' ? '−' : sign === '@' ? '⋯' : sign}</span>
      <code dir="ltr">${text || ' '}</code></div>${below?.(file, line)}`;
}
