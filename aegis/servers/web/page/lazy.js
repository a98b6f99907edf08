// The views and dialogs that are loaded once the page is drawn, or when one is shown.
import { html, useEffect, useState } from './lib.js';

/** @type {Record<string, any> | null} */
let parts = null;
/** Load them now. Rejects if they cannot be had. */
export const loadAll = async () => { parts ??= await import('./later.js'); };
/** Load them once the page has nothing else to do. */
export const loadSoon = () => {
  const idle = globalThis.requestIdleCallback ?? (act => setTimeout(act, 500));
  idle(() => loadAll().catch(() => { /* tried again when one is shown */ }));
};

/**
 * Return a component of `later.js`. While it is loaded nothing is drawn; if it cannot be had, a
 * sentence and a button.
 * @param {string} name
 */
export const later = name => props => {
  const [isLost, setLost] = useState(false), [, again] = useState(0), isDrawn = parts !== null;
  useEffect(() => {
    if (!isDrawn) loadAll().then(() => again(1), () => setLost(true));
  }, []);
  if (parts) return html`<${parts[name]} ...${props} />`;
  // After an update of the daemon the file has another name: only a new page knows it.
  return isLost && html`<p class="wait">This part of the page could not be loaded. <button
    class="link" onClick=${() => location.reload()}>Reload the page</button></p>`;
};
