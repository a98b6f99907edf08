// The images of a transcript: small ones in place, which enlarge; a line where one cannot be had.
import { html, useEffect, useRef, useState } from '../lib.js';
import { open } from '../overlay.js';
import { isReadOnly, link } from '../store.js';
import { Dialog, Icon } from '../ui.js';

const MOST = 40;
/** Addresses of what was read, by path; of too many the oldest are given back. */
const read = new Map();

/**
 * Read an image from the daemon, with the key of the page: an address of its own would need none.
 */
async function addressOf(path) {
  const known = read.get(path);
  if (known) return known;
  const response = await fetch(`/image?path=${encodeURIComponent(path)}`,
    { method: 'POST', headers: { 'X-Aegis-Page': link().pageKey() } });
  if (!response.ok) throw new Error(await response.text());
  const address = URL.createObjectURL(await response.blob());
  read.set(path, address);
  if (read.size > MOST) {
    const [oldest, gone] = read.entries().next().value;
    read.delete(oldest);
    URL.revokeObjectURL(gone);
  }
  return address;
}

/** The address of an image once its place comes into view: '' before, null if it cannot be had. */
function useImage(path, box) {
  const [address, setAddress] = useState(/** @type {string | null} */ (''));
  useEffect(() => {
    if (!path || isReadOnly.value) { setAddress(null); return undefined; }
    const look = new IntersectionObserver(found => {
      if (!found.some(each => each.isIntersecting)) return;
      look.disconnect();
      addressOf(path).then(setAddress, () => setAddress(null));
    });
    look.observe(box.current);
    return () => look.disconnect();
  }, [path]);
  return address;
}

const Whole = ({ address, words, onClose }) => html`<${Dialog} wide title=${words}
  onClose=${onClose}><img class="whole-image" src=${address} alt=${words} /><//>`;

function Image({ image }) {
  const { type, width, height, path } = image, box = useRef(null), address = useImage(path, box);
  const words = `${type.toUpperCase()} image, ${width} × ${height}`;
  return html`<li ref=${box}>${address ? html`<button type="button" class="thumb"
    aria-label=${`Enlarge the ${words}`} onClick=${() => open(Whole, { address, words })}>
    <img src=${address} alt=${words} width=${width} height=${height} /></button>`
    : html`<${Icon} of="image" /><span class="cut">${words}</span>
    ${path && html`<code class="note cut" title=${path}>${path}</code>`}`}</li>`;
}

export const Images = ({ images }) => images?.length > 0 && html`<ul class="images">
  ${images.map(image => html`<${Image} key=${image.path} image=${image} />`)}</ul>`;
