// xterm.js as this page needs it: under the policy for content, and without work that nobody sees.
// A chunk of its own: the only importer is `load()` of session.js.
import { Terminal } from '@xterm/xterm';
import { FitAddon } from '@xterm/addon-fit';
import { SearchAddon } from '@xterm/addon-search';
import { UnicodeGraphemesAddon } from '@xterm/addon-unicode-graphemes';
import { WebLinksAddon } from '@xterm/addon-web-links';

export { FitAddon, SearchAddon, Terminal, UnicodeGraphemesAddon, WebLinksAddon };

const NOWHERE = [0, 0];

// The policy refuses style elements and attributes: each <style> gets the page's nonce, and the
// attributes, which xterm.js sets for 24-bit colours, are set by CSSOM, which the policy allows.
const create = Document.prototype.createElement;
const { nonce } = /** @type {HTMLElement} */ (document.querySelector('script[nonce]'));
Document.prototype.createElement = function (...args) {
  const element = create.apply(this, args);
  if (element instanceof HTMLStyleElement) element.nonce = nonce;
  return element;
};
HTMLSpanElement.prototype.setAttribute = function (name, value) {
  if (name === 'style') this.style.cssText = value;
  else Element.prototype.setAttribute.call(this, name, value);
};

/** Draw the rows once a frame, move the scrollbar once a write. Call it after `term.open()`. */
export function drawOnce(term) {
  const { _renderService: renderer, _viewport: viewport, _inputHandler: handler } = term._core;
  const draw = renderer.handleSelectionChanged, sync = viewport._sync, parse = handler.parse;
  let wasSelected = false, isParsing = false, isDue = false;
  // xterm.js 6 reports the selection after each scroll, even an empty one, and makes all rows anew.
  renderer.handleSelectionChanged = function (start, end, isColumn) {
    const isSelected = Boolean(start && end && (start[0] !== end[0] || start[1] !== end[1]));
    // Its renderer of elements keeps a selection that is cleared by no place at all, and draws it
    // again on a resize.
    if (isSelected) draw.call(this, start, end, isColumn);
    else if (wasSelected) draw.call(this, NOWHERE, NOWHERE, false);
    wasSelected = isSelected;
  };
  // It moves the scrollbar for each line. No event of the user comes while bytes are parsed:
  // behind them is early enough.
  viewport._sync = function (top) { if (isParsing) isDue = true; else sync.call(this, top); };
  handler.parse = function (...args) {
    isParsing = true;
    try { return parse.apply(this, args); } finally {
      isParsing = false;
      if (isDue) { isDue = false; viewport._sync(); }
    }
  };
}

/** Answer nothing: the daemon does, and a second answer would be typed. Copy nothing (OSC 52). */
export function quieten({ parser }) {
  const swallow = () => true;
  const questions = [
    { final: 'c' }, { prefix: '>', final: 'c' }, { prefix: '=', final: 'c' },
    { final: 'n' }, { prefix: '?', final: 'n' }, { prefix: '>', final: 'q' }, { final: 't' },
    { intermediates: '$', final: 'p' }, { prefix: '?', intermediates: '$', final: 'p' },
  ];
  for (const id of questions) parser.registerCsiHandler(id, swallow);
  parser.registerDcsHandler({ intermediates: '$', final: 'q' }, swallow);
  parser.registerDcsHandler({ intermediates: '+', final: 'q' }, swallow);
  parser.registerOscHandler(52, swallow);
  for (const id of [4, 10, 11, 12]) {
    parser.registerOscHandler(id, data => data.split(';').includes('?'));
  }
}

const SOFTWARE = /swiftshader|llvmpipe|software|basic render/i;
/** Whether WebGL is drawn by a GPU. Browsers also offer it drawn by the processor. */
function hasGpu() {
  const probe = document.createElement('canvas').getContext('webgl2',
    { failIfMajorPerformanceCaveat: true });
  if (!probe) return false;
  const named = probe.getExtension('WEBGL_debug_renderer_info');
  const renderer = named ? probe.getParameter(named.UNMASKED_RENDERER_WEBGL) : '';
  probe.getExtension('WEBGL_lose_context')?.loseContext(); // few are to be had
  return !SOFTWARE.test(renderer);
}

/** Use the GPU where there is one: drawn by the processor, WebGL is four times slower. */
export async function accelerate(term) {
  if (!hasGpu()) return;
  try {
    const { WebglAddon } = await import('@xterm/addon-webgl');
    if (!term.element?.isConnected) return;
    const webgl = new WebglAddon();
    webgl.onContextLoss(() => webgl.dispose());
    term.loadAddon(webgl);
  } catch { /* the renderer of elements stays */ }
}

const LIGHT = {
  black: '#1b1e24', red: '#b3261e', green: '#1b6e3b', yellow: '#7a5300', blue: '#2456cf',
  magenta: '#8a3ab9', cyan: '#0e6c7c', white: '#596070', brightBlack: '#6b7280',
  brightRed: '#c62f26', brightGreen: '#207d44', brightYellow: '#8a5f00', brightBlue: '#3566dd',
  brightMagenta: '#9a4ac8', brightCyan: '#117a8b', brightWhite: '#a5abb5',
  selectionBackground: '#c9d8ff', scrollbarSliderBackground: '#d3d7de',
};
const DARK = {
  black: '#2a2e36', red: '#ff7b72', green: '#6fcf94', yellow: '#efb453', blue: '#86abff',
  magenta: '#d2a8ff', cyan: '#76d7e6', white: '#d8dce2', brightBlack: '#7d8796',
  brightRed: '#ff9a92', brightGreen: '#8fe0ae', brightYellow: '#f7cd82', brightBlue: '#a9c5ff',
  brightMagenta: '#e2c5ff', brightCyan: '#9be7f2', brightWhite: '#ffffff',
  selectionBackground: '#35507f', scrollbarSliderBackground: '#333a45',
};

/** The colours for a screen: its ground and letters are those of the style sheet. */
export function theme(screen, isDark) {
  const { backgroundColor: background, color: foreground } = getComputedStyle(screen);
  const cursor = isDark ? '#86abff' : '#2456cf';
  return {
    ...isDark ? DARK : LIGHT, background, foreground, cursor, cursorAccent: background,
    overviewRulerBorder: isDark ? '#2a2e36' : '#e2e5ea',
  };
}
