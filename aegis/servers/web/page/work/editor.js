// An editor for Markdown: a text area with the keys that one expects.
import { html, useEffect, useRef, useState } from '../lib.js';
import { Button } from '../ui.js';
import { Text } from '../text.js';

const ITEM = /^(\s*)(?:([-*+]) (\[[ xX]\] )?|(\d{1,9})([.)]) )/;

/** Put a text in place of the selection, so that the browser's undo takes it back. */
function replace(area, from, to, text) {
  area.setSelectionRange(from, to);
  const did = text ? document.execCommand('insertText', false, text)
    : from === to || document.execCommand('delete');
  if (did) return;
  area.setRangeText(text, from, to, 'end');
  area.dispatchEvent(new Event('input', { bubbles: true }));
}

/** Continue a list with the next item; an item without a text ends it. Returns whether it did. */
function nextItem(area) {
  const { value, selectionStart: at, selectionEnd } = area, from = value.lastIndexOf('\n',
    at - 1) + 1;
  const found = ITEM.exec(value.slice(from, at));
  if (!found || at !== selectionEnd) return false;
  const [mark, indent, bullet, box, number, point] = found;
  if (value.slice(from, at) === mark) replace(area, from, at, '');
  else {
    const next = bullet ? `${bullet} ${box ? '[ ] ' : ''}` : `${Number(number) + 1}${point} `;
    replace(area, at, at, `\n${indent}${next}`);
  }
  return true;
}

/** Indent the selected lines, or less. Outside of lists and selections Tab is not taken. */
function indent(area, isLess) {
  const { value, selectionStart, selectionEnd } = area;
  const from = value.lastIndexOf('\n', selectionStart - 1) + 1;
  const end = value.indexOf('\n', selectionEnd), to = end < 0 ? value.length : end;
  const lines = value.slice(from, to).split('\n');
  if (lines.length === 1 && !ITEM.test(lines[0])) return false;
  const next = lines.map(each => isLess ? each.replace(/^ {1,2}/, '') : `  ${each}`).join('\n');
  replace(area, from, to, next);
  area.setSelectionRange(lines.length > 1 ? from : from + next.length - (to - selectionEnd),
    from + next.length - (lines.length > 1 ? 0 : to - selectionEnd));
  return true;
}

/** Put marks around the selection, or take them away. */
function wrap(area, before, after = before) {
  const { value, selectionStart: from, selectionEnd: to } = area, text = value.slice(from, to);
  const isOn = value.slice(from - before.length, from) === before
    && value.slice(to, to + after.length) === after;
  if (isOn) replace(area, from - before.length, to + after.length, text);
  else replace(area, from, to, before + text + after);
  const start = isOn ? from - before.length : from + before.length;
  area.setSelectionRange(start, start + text.length);
}
function link(area) {
  const { value, selectionStart: from, selectionEnd: to } = area, text = value.slice(from, to);
  replace(area, from, to, `[${text}](https://)`);
  const at = from + text.length + 3;
  area.setSelectionRange(at, at + 8);
}

/** @param {{value: string, label: string, onInput: (text: string) => void, rows?: number,
 *   onSave?: () => void, onLeave?: () => void, isFirst?: boolean}} props */
export function Editor({ value, label, onInput, rows = 6, onSave, onLeave, isFirst = true }) {
  const area = useRef(null), [isRead, setRead] = useState(false), leaves = useRef(false);
  useEffect(() => { if (isFirst) area.current?.focus(); }, []);
  const key = event => {
    const { current } = area, isCtrl = event.ctrlKey || event.metaKey,
      name = event.key.toLowerCase();
    const had = leaves.current;
    leaves.current = false;
    if (event.isComposing) return;
    if (name === 'enter' && isCtrl) { if (!event.repeat) onSave?.(); }
    else if (name === 'enter' && !event.shiftKey) { if (!nextItem(current)) return; }
    else if (name === 'tab' && !isCtrl) { if (had || !indent(current, event.shiftKey)) return; }
    // Escape lets the next Tab leave the text; a second one closes the editor.
    else if (name === 'escape') { if (had) onLeave?.(); else leaves.current = true; }
    else if (isCtrl && name === 'b') wrap(current, '**');
    else if (isCtrl && name === 'i') wrap(current, '*');
    else if (isCtrl && name === 'e') wrap(current, '`');
    else if (isCtrl && name === 'k') link(current);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const tool = (icon, words, act, keys) => html`<${Button} small tone="ghost"
    title=${`${words}${keys
    ? ` (Ctrl ${keys})` : ''}`} disabled=${isRead} onClick=${() => { area.current.focus();
    act(area.current); }}>${icon}<span class="hidden">${words}</span><//>`;
  return html`<div class="editor"><div class="editor-tools" role="toolbar" aria-label="Format">
    ${tool(html`<b aria-hidden="true">B</b>`, 'Bold', each => wrap(each, '**'), 'B')}
    ${tool(html`<i aria-hidden="true">I</i>`, 'Italic', each => wrap(each, '*'), 'I')}
    ${tool(html`<code aria-hidden="true">{}</code>`, 'Code', each => wrap(each, '`'), 'E')}
    ${tool(html`<span aria-hidden="true">Link</span>`, 'as Markdown', link, 'K')}<span
      class="gap"></span>
    <${Button} small tone="ghost" aria-pressed=${isRead}
      onClick=${() => setRead(!isRead)}>Preview<//>
    </div>${isRead ? html`<div class="preview"><${Text}>${value}<//></div>` : html`<textarea
      ref=${area} class="input mono" dir="auto" aria-label=${label} value=${value}
      rows=${Math.max(rows, Math.min(28, value.split('\n').length + 1))} onKeyDown=${key}
      onInput=${event => onInput(event.target.value)} />`}</div>`;
}
