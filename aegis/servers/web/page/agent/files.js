// Files in a message: a browser has bytes, the daemon takes paths. They are posted when chosen.
import { html, useRef } from '../lib.js';
import { freshKey } from '../drafts.js';
import { link } from '../store.js';
import { Button, Icon, bytes } from '../ui.js';

const MOST_BYTES = 16 * 1024 * 1024, MOST_FILES = 20;
const IMAGE = /^image\/(png|jpeg|gif|webp)$/;

// One at a time: the daemon refuses a second one meanwhile.
let posting = Promise.resolve();
/** The ids of the files that are being posted. */
const posted = new Set();

async function post(file) {
  const response = await fetch(`/upload?name=${encodeURIComponent(file.name || 'image.png')}`,
    { method: 'POST', headers: { 'X-Aegis-Page': link().pageKey() }, body: file });
  const text = await response.text();
  if (!response.ok) throw new Error(text.trim()
    || `The daemon refused the file: ${response.status}`);
  return JSON.parse(text);
}

/**
 * @typedef {{id: string, name: string, size: number, isImage: boolean, path?: string, why?:
 * string}} Attached
 * Post files; `set(change)` gets a function of the list.
 * @param {Iterable<File>} files @param {(change: (list: Attached[]) => Attached[]) => void} set
 */
export function attach(files, set) {
  for (const file of [...files].slice(0, MOST_FILES)) {
    const id = freshKey();
    const one = { id, name: file.name || 'image.png', size: file.size,
      isImage: IMAGE.test(file.type) };
    const why = file.size === 0 ? 'it is empty' : file.size > MOST_BYTES
      ? 'it is larger than 16 MiB' : '';
    set(list => [...list, why ? { ...one, why } : one]);
    if (why) continue;
    const change = more => set(list => list.map(each => each.id === id ? { ...each, ...more }
      : each));
    posted.add(id);
    posting = posting.then(() => post(file)).then(({ path }) => change({ path }),
      error => change({ why: error.message })).then(() => { posted.delete(id); });
  }
}

/** Whether a file was posted, or will be: a reload of the page cuts it off. */
export const isUploaded = file => Boolean(file.path) || posted.has(file.id);

/** What `agent_send` takes. */
export const pathsOf = list => ({
  images: list.filter(each => each.isImage && each.path).map(each => each.path),
  files: list.filter(each => !each.isImage && each.path).map(each => each.path),
});

/** The attached files, each with a button that removes it. */
export function Attachments({ list, onRemove }) {
  if (!list.length) return null;
  return html`<ul class="attached" aria-label="Attached files">${list.map(each => html`<li
    key=${each.id}
    class=${each.why ? 'bad-text' : ''}><${Icon} of=${each.isImage ? 'image' : 'file'} />
    <bdi class="name" title=${each.name}>${each.name}</bdi>
    <span class="note" role=${each.why ? 'alert' : null}>${each.why ?? (each.path ? bytes(each.size)
      : 'uploading…')}</span>
    <button type="button" class="x" aria-label=${`Remove ${each.name}`}
      onClick=${() => onRemove(each.id)}><${Icon} of="close" /></button></li>`)}</ul>`;
}

/** A button that chooses files. */
export function AttachButton({ onFiles, label = 'Attach files' }) {
  const input = useRef(null);
  return html`<${Button} small tone="ghost" icon="clip" label=${label}
    onClick=${() => input.current.click()} />
    <input ref=${input} type="file" multiple hidden aria-label=${label} tabindex="-1"
      onChange=${event => {
    onFiles(event.target.files);
    event.target.value = '';
  }} />`;
}

/** Handlers of a box that takes files by paste and by drop. */
export const takesFiles = onFiles => ({
  onPaste: event => {
    const files = [...event.clipboardData?.files ?? []];
    if (!files.length) return;
    event.preventDefault();
    onFiles(files);
  },
  onDragOver: event => { if (event.dataTransfer?.types.includes('Files')) event.preventDefault(); },
  onDrop: event => {
    if (!event.dataTransfer?.files.length) return;
    event.preventDefault();
    onFiles(event.dataTransfer.files);
  },
});
