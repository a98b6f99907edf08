// The transcript as it scrolls: it follows the end until one scrolls up, and is paged both ways.
import { html, useCallback, useEffect, useLayoutEffect, useRef, useState } from '../lib.js';
import { Button, Following, Icon, once } from '../ui.js';
import { Blocks } from './blocks.js';

const NEAR_PX = 60, LOAD_PX = 800;

/** Keep what is read in its place while something comes above it. */
function anchorOf(box) {
  const top = box.getBoundingClientRect().top;
  const first = [...box.querySelectorAll('[data-seq]')].find(each =>
    each.getBoundingClientRect().bottom > top);
  return first && { seq: first.dataset.seq, top: first.getBoundingClientRect().top };
}
function restore(box, anchor) {
  const found = anchor && box.querySelector(`[data-seq="${anchor.seq}"]`);
  if (found) box.scrollTop += found.getBoundingClientRect().top - anchor.top;
}

/** @param {{transcript: any, handle: string, children?: any, seek?: any}} props */
export function Talk({ transcript, handle, children = null, seek = null }) {
  const box = useRef(null), inner = useRef(null), [isAtEnd, setAtEnd] = useState(seek === null);
  const following = useRef(null), anchor = useRef(null), loading = useRef(false);
  const prepended = useRef(transcript.prepended);
  const version = transcript.version.value, isNewest = transcript.isNewest.value;
  const hasEarlier = transcript.hasEarlier.value, isLoaded = transcript.isLoaded.value;
  following.current ??= new Following(seek === null);
  const follow = is => {
    following.current.is = is;
    transcript.isFollowed = is;
    // At the end the place is ours: a browser that keeps it too would seem to scroll up.
    if (box.current) box.current.style.overflowAnchor = is ? 'none' : 'auto';
  };

  // Measured as it is drawn, not as it was asked for: a person scrolls and others write meanwhile.
  if (prepended.current !== transcript.prepended) {
    prepended.current = transcript.prepended;
    anchor.current = anchorOf(box.current);
  }
  const toEnd = useCallback(() => following.current.go(box.current), []);
  useLayoutEffect(() => {
    const { current } = anchor;
    anchor.current = null;
    if (!current || (following.current.is && isNewest)) return;
    restore(box.current, current);
    // The browser may have moved it too.
    requestAnimationFrame(() => { if (box.current) restore(box.current, current); });
  });
  useLayoutEffect(() => { if (following.current.is && isNewest) toEnd(); }, [version]);
  useLayoutEffect(() => {
    const before = transcript.asked.peek();
    follow(following.current.is);
    return transcript.asked.subscribe(asked => {
      if (asked === before) return;
      follow(true);
      setAtEnd(true);
      toEnd();
    });
  }, [transcript]);
  useEffect(() => { // text grows when colours arrive and folds open
    const grown = new ResizeObserver(() => { if (following.current.is
      && transcript.isNewest.peek()) toEnd(); });
    grown.observe(inner.current);
    grown.observe(box.current);
    return () => grown.disconnect();
  }, []);

  const earlier = once(async () => {
    if (loading.current) return;
    loading.current = true;
    try { await transcript.earlier(); } finally { loading.current = false; }
  });
  const later = once(async () => {
    if (loading.current || transcript.isNewest.peek()) return;
    loading.current = true;
    try { await transcript.later(); } finally { loading.current = false; }
  });
  const start = once(async () => {
    follow(false);
    setAtEnd(false);
    await transcript.start();
    requestAnimationFrame(() => { box.current.scrollTop = 0; });
  });
  const scrolled = ({ currentTarget: it }) => {
    const rest = following.current.scrolled(it, NEAR_PX), { is } = following.current;
    setAtEnd(is);
    follow(is && transcript.isNewest.peek());
    if (it.scrollTop < LOAD_PX && transcript.hasEarlier.peek() && !following.current.is) earlier();
    else if (rest < LOAD_PX && !transcript.isNewest.peek()) later();
  };

  // A place that was asked for: of an address, or of a find.
  useEffect(() => {
    if (seek === null) return undefined;
    let isOff = false;
    follow(false);
    once(async () => {
      await transcript.around(seek.seq);
      for (let tries = 0; tries < 40 && !isOff; tries++) {
        await new Promise(done => requestAnimationFrame(done));
        const all = [...inner.current.querySelectorAll('[data-seq]')];
        const found = all.filter(each => +each.dataset.seq <= seek.seq).at(-1);
        if (!found) continue;
        inner.current.querySelectorAll('.sought').forEach(each => each.classList.remove('sought'));
        found.classList.add('sought');
        found.scrollIntoView({ block: 'center' });
        if (tries > 3) break; // heights above it are estimates until they were drawn
      }
    })();
    return () => { isOff = true; };
  }, [seek]);

  const showsNewest = !isAtEnd || !isNewest;
  return html`<div class="talk-box"><div class="talk" ref=${box} tabindex="0" role="log"
    aria-live="off"
      aria-label=${`Conversation with ${handle}`} onScroll=${scrolled}><div class="talk-in"
        ref=${inner}>
      ${hasEarlier && html`<div class="earlier"><${Button} small onClick=${earlier}>Earlier<//>
        <${Button} small onClick=${start}>From the start<//></div>`}
      <${Blocks} fold=${transcript.fold} handle=${handle} version=${version} />
      ${!isNewest && html`<div class="earlier"><${Button} small onClick=${later}>Later<//></div>`}
      ${isLoaded && !transcript.entries.length && isNewest && html`<p class="calm">Nothing was said
        yet.</p>`}
      ${children}</div></div>
    ${showsNewest && html`<button type="button" class="btn newest"
      onClick=${() => transcript.end()}>
      <${Icon} of="down_end" />Newest</button>`}</div>`;
}

/** Search in the whole transcript. `onSeek({seq})` shows a find. */
export function Finder({ transcript, onSeek, onClose }) {
  const [text, setText] = useState(''), [found, setFound] = useState([]), [place,
    setPlace] = useState(-1);
  const [isDone, setDone] = useState(true), search = useRef(0);
  useEffect(() => {
    const mine = ++search.current;
    setFound([]);
    setPlace(-1);
    setDone(!text.trim());
    if (!text.trim()) return undefined;
    const timer = setTimeout(once(() => transcript.find(text.trim(), (seqs, done) => {
      setFound(seqs);
      setDone(done);
    }, () => mine !== search.current)), 200);
    return () => { clearTimeout(timer); search.current++; };
  }, [text]);
  const step = by => {
    if (!found.length) return;
    // The newest find is first: one looks for what was said lately.
    const next = place < 0 ? found.length - 1 : (place + by + found.length) % found.length;
    setPlace(next);
    onSeek({ seq: found[next] });
  };
  const key = event => {
    if (event.key === 'Enter') { event.preventDefault(); step(event.shiftKey ? 1 : -1); }
    else if (event.key === 'Escape') { event.stopPropagation(); onClose(); }
  };
  const said = !text.trim() ? '' : found.length ? `${place < 0 ? found.length
    : `${place + 1} of ${found.length}`}`
    : isDone ? 'nothing' : '';
  return html`<div class="finder-bar" role="search"><${Icon} of="find" /><input class="input"
    type="search"
      aria-label="Find in the conversation" ref=${box => box && !box.dataset.on
        && (box.dataset.on = '1') && box.focus()}
      value=${text} onInput=${event => setText(event.target.value)} onKeyDown=${key} />
    <span class="note" role="status">${said}${isDone ? '' : ' …'}</span>
    <${Button} small tone="ghost" icon="up" label="Previous find" disabled=${!found.length}
      onClick=${() => step(-1)} />
    <${Button} small tone="ghost" icon="down" label="Next find" disabled=${!found.length}
      onClick=${() => step(1)} />
    <${Button} small tone="ghost" icon="close" label="Close the search" onClick=${onClose}
      /></div>`;
}
