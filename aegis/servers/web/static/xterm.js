// xterm.js as this page needs it: under the policy for content, and without work that nobody sees.

const NOWHERE = [0, 0];
let library = null;
/** Load xterm.js once. Each <style> that it makes gets the page's nonce; style attributes go through CSSOM. */
export function load() {
  return library ??= (async () => {
    const { nonce } = document.querySelector('script[nonce]'), create = Document.prototype.createElement;
    Document.prototype.createElement = function (...args) {
      const element = create.apply(this, args);
      if (element instanceof HTMLStyleElement) element.nonce = nonce;
      return element;
    };
    HTMLSpanElement.prototype.setAttribute = function (name, value) {
      if (name === 'style') this.style.cssText = value; else Element.prototype.setAttribute.call(this, name, value);
    };
    const names = ['xterm', 'addon-fit', 'addon-search', 'addon-web-links', 'addon-unicode-graphemes', 'addon-webgl'];
    return Object.assign({}, ...await Promise.all(names.map(name => import(`/vendor/${name}.mjs`))));
  })();
}

/** Draw the rows once per frame and move the scrollbar once per write. Call it after ``term.open()``. */
export function drawOnce(term) {
  const { _renderService: renderer, _viewport: viewport, _inputHandler: handler } = term._core;
  const draw = renderer.handleSelectionChanged, sync = viewport._sync, parse = handler.parse;
  let wasSelected = false, isParsing = false, isDue = false;
  // xterm.js 6 reports the selection after each scroll, even an empty one, and makes all rows anew for it.
  renderer.handleSelectionChanged = function (start, end, isColumn) {
    const isSelected = Boolean(start && end && (start[0] !== end[0] || start[1] !== end[1]));
    // Its renderer of elements keeps the selection that is cleared by no place at all, and draws it again on a resize.
    if (isSelected) draw.call(this, start, end, isColumn); else if (wasSelected) draw.call(this, NOWHERE, NOWHERE, false);
    wasSelected = isSelected;
  };
  // It moves the scrollbar for each line. No event of the user comes while bytes are parsed: behind them is early enough.
  viewport._sync = function (top) { if (isParsing) isDue = true; else sync.call(this, top); };
  handler.parse = function (...args) {
    isParsing = true;
    try { return parse.apply(this, args); } finally {
      isParsing = false;
      if (isDue) { isDue = false; viewport._sync(); }
    }
  };
}
