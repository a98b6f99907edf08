// Places in files, `src/cart.py:12:3`, as links that open in the editor that the person has set.
import { settings } from '../place.js';
import { say } from '../overlay.js';

const FILE = String.raw`(?:~|\.{1,2})?(?:\/?[\w@%+.\-]+)*\/?[\w@%+\-]*\.?[\w@%+\-]+`;
const PLACES = [
  /File "([^"]+)", line (\d+)()/g, // Python
  new RegExp(String.raw`(${FILE}\.\w{1,8})[:(](\d{1,7})(?:[:,](\d{1,5}))?`, 'g'),
  /((?:\/[\w@%+.\-]+)+)[:(](\d{1,7})(?:[:,](\d{1,5}))?/g,
];

/** @returns {{at: number, length: number, file: string, line: number, column: number}[]} */
export function placesIn(text) {
  const found = [];
  for (const pattern of PLACES) {
    for (const match of text.matchAll(pattern)) {
      const [whole, file, line, column] = match;
      const before = text.slice(0, match.index);
      if (/\w+:\/\/\S*$/.test(before + file) || found.some(each => each.at <= match.index
        && match.index < each.at + each.length)) continue;
      found.push({
        at: match.index, length: whole.length, file,
        line: Number(line), column: Number(column) || 1,
      });
    }
  }
  return found;
}

/** The editors that take places as addresses. */
export const EDITORS = {
  vscode: ['VS Code', 'vscode://file{path}:{line}:{column}'],
  vscodium: ['VSCodium', 'vscodium://file{path}:{line}:{column}'],
  cursor: ['Cursor', 'cursor://file{path}:{line}:{column}'],
  zed: ['Zed', 'zed://file{path}:{line}:{column}'],
  jetbrains: ['JetBrains', 'jetbrains://idea/navigate/reference?path={path}:{line}:{column}'],
};

/** The address of a place for the person's editor, or null. `directory` is for a relative path. */
export function editorAddress({ file, line, column }, directory) {
  const { editor, editorTemplate } = settings.value;
  const template = editorTemplate || EDITORS[editor]?.[1] || (editor.includes('{') ? editor : '');
  if (!template) return null;
  const isWhole = /^[/~]/.test(file) || !directory;
  const path = isWhole ? file : `${directory}/${file.replace(/^\.\//, '')}`;
  const values = { path: encodeURI(path), line, column };
  const address = template.replace(/\/?\{path\}/, match => path[0] === '/' ? '{path}' : match)
    .replace(/\{(path|line|column)\}/g, (_, name) => values[name]);
  // A page that is given `javascript:` by a setting would run it.
  return /^(?!javascript:|data:)[a-z][a-z0-9+.\-]*:/i.test(address) ? address : null;
}

/** Open a place in the editor. */
export function openPlace(place, directory) {
  const address = editorAddress(place, directory);
  if (address) {
    const event = new CustomEvent('open-place', { detail: address, cancelable: true });
    if (dispatchEvent(event)) location.assign(address);
    return;
  }
  say(`Set your editor in Settings to open ${place.file}:${place.line} in it.`);
}

/** Make places in the output links. `directoryAt(line)` is that of the command there. */
export function linkPlaces(term, directoryAt) {
  return term.registerLinkProvider({
    provideLinks(number, done) {
      const { active } = term.buffer;
      let first = number - 1, last = number - 1;
      while (first > 0 && active.getLine(first)?.isWrapped) first--;
      while (active.getLine(last + 1)?.isWrapped && last - first < 20) last++;
      let text = '';
      for (let each = first; each <= last; each++) {
        text += active.getLine(each)?.translateToString(false) ?? '';
      }
      const at = offset =>
        ({ x: offset % term.cols + 1, y: first + Math.floor(offset / term.cols) + 1 });
      done(/[\u1100-\uffff]/.test(text) ? undefined // wide letters: an offset is not a column
        : placesIn(text).map(place => ({
          range: { start: at(place.at), end: at(place.at + place.length - 1) },
          text: text.slice(place.at, place.at + place.length),
          activate: () => openPlace(place, directoryAt(number - 1)),
        })));
    },
  });
}
