// Places in files, `src/cart.py:12:3`, as links that open in the editor that the person has set.
import { settings } from '../place.js';
import { say } from '../overlay.js';

const MOST_WRAPPED = 20;
// A path begins only behind a character that is no part of one, and there is one way to match it.
// Otherwise the time for a long word is quadratic or exponential in its length.
const PART = String.raw`[~\w@%+.\-\/]`;
const PLACES = new RegExp([
  String.raw`(?<!\w)\w+:\/\/\S*`, // an address of the web, which is no place in a file
  String.raw`File "([^"]+)", line (\d+)`, // Python
  String.raw`(?<!${PART})(\/${PART}+|${PART}+\.\w{1,8})[:(](\d{1,7})(?:[:,](\d{1,5}))?`,
].join('|'), 'g');

/** @returns {{at: number, length: number, file: string, line: number, column: number}[]} */
export function placesIn(text) {
  const found = [];
  for (const match of text.matchAll(PLACES)) {
    const [{ length }, quoted, its, path, line, column] = match, file = quoted ?? path;
    if (file === undefined) continue;
    found.push({
      at: match.index, length, file, line: Number(its ?? line), column: Number(column) || 1,
    });
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
      const isWrapped = line => line > 0 && active.getLine(line)?.isWrapped;
      let first = number - 1, last = number - 1;
      while (isWrapped(first) && number - first <= MOST_WRAPPED) first--;
      while (isWrapped(last + 1) && last - number < MOST_WRAPPED) last++;
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
