// Parts of the page that are loaded when they are first shown, or when the page has time.
import { html, useEffect, useState } from './lib.js';

/** @type {(() => Promise<any>)[]} */
const loaders = [];
/** Load all parts: what is not shown yet is there at once when it is, and its actions are known. */
export const loadAll = () => Promise.all(loaders.map(load => load()));
/** Load all parts once the page has nothing else to do. */
export const loadLater = () => {
  const idle = globalThis.requestIdleCallback ?? (act => setTimeout(act, 500));
  idle(() => loadAll().catch(() => { /* each is tried again when it is shown */ }));
};

/**
 * Return a component that is exported as `name` by a module which `load` imports. While it is
 * loaded nothing is drawn; if it cannot be had, a sentence and a button.
 * @param {() => Promise<any>} load @param {string} name
 */
export function lazy(load, name) {
  /** @type {any} */
  let Known = null;
  const get = async () => { Known = (await load())[name]; };
  loaders.push(get);
  return props => {
    const [, again] = useState(0), [isLost, setLost] = useState(false), isDrawn = Known !== null;
    useEffect(() => {
      if (Known) { // it may have come after the component was drawn, and before this
        if (!isDrawn) again(each => each + 1);
        return;
      }
      setLost(false);
      get().then(() => again(each => each + 1), () => setLost(true));
    }, [isLost]);
    if (Known) return html`<${Known} ...${props} />`;
    return isLost && html`<p class="wait">This part of the page could not be loaded. <button
      class="link" onClick=${() => location.reload()}>Reload the page</button></p>`;
  };
}
