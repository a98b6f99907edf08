// Nothing moves under a pointer: order stands still, and a control that moved takes no click.
import { useEffect, useLayoutEffect, useRef, useState } from './lib.js';

const RELEASE_MS = 120;
const MOST_GHOSTS = 100;
export const GUARD_MS = 400;

/**
 * A list whose order stands still while the pointer or the focus is in it. What goes leaves its row
 * as a ghost (`gone`), what comes is put at the end. Spread the handlers on the list's element.
 * @template V
 * @param {V[]} items @param {(item: V) => string} key
 * @returns {[(V & {gone?: boolean})[], any, boolean]} what to show, handlers, whether it is held
 */
export function useStill(items, key) {
  const [isHeld, setHeld] = useState(false);
  const order = useRef(/** @type {string[]} */ ([])), known = useRef(new Map()), box = useRef(null);
  const live = new Map(items.map(each => [key(each), each]));
  let shown = items;
  if (isHeld) {
    for (const [id, each] of live) known.current.set(id, each);
    const before = new Set(order.current);
    order.current = [...order.current, ...[...live.keys()].filter(id => !before.has(id))];
    const ghosts = order.current.filter(id => !live.has(id)).slice(-MOST_GHOSTS);
    const isShown = new Set([...live.keys(), ...ghosts]);
    order.current = order.current.filter(id => isShown.has(id));
    shown = order.current.map(id => live.get(id) ?? { ...known.current.get(id), gone: true });
  } else {
    order.current = [...live.keys()];
    known.current = new Map(live);
  }
  const release = () => setTimeout(() => {
    const { current } = box;
    const isIn = current?.matches(':hover') || current?.contains(document.activeElement);
    if (current && !isIn) setHeld(false);
  }, RELEASE_MS);
  const handlers = {
    ref: box,
    onPointerEnter: event => event.pointerType !== 'touch' && setHeld(true),
    onPointerLeave: release,
    onFocusIn: () => setHeld(true),
    onFocusOut: release,
  };
  return [shown, handlers, isHeld];
}

/**
 * Return a ref, and a function that is true for a moment after its element moved for another
 * reason than scrolling: a click then was not meant for it.
 * @returns {[any, () => boolean]}
 */
export function useGuard(ms = GUARD_MS) {
  const box = useRef(null), moved = useRef(performance.now()), top = useRef(null);
  useLayoutEffect(() => {
    const at = box.current?.offsetTop ?? null;
    if (at === top.current) return;
    top.current = at;
    moved.current = performance.now();
  });
  return [box, () => performance.now() - moved.current < ms];
}

/** Whether a box that scrolls is kept at its end: until somebody scrolls up, or again down. */
export class Following {
  /** @param {boolean} is */
  constructor(is) { this.is = is; this.top = 0; }

  /** Go to the end. */
  go(box) {
    box.scrollTop = box.scrollHeight;
    this.top = box.scrollTop; // the event comes later, maybe with a move of the person in it
  }

  /**
   * Take a scroll event; return how many pixels are below. Text that grew below is not somebody who
   * scrolled up, though the event shows the same distance from the end.
   */
  scrolled({ scrollTop, scrollHeight, clientHeight }, nearPx) {
    const rest = scrollHeight - scrollTop - clientHeight;
    if (rest < nearPx) this.is = true;
    else if (scrollTop < this.top) this.is = false;
    this.top = scrollTop;
    return rest;
  }
}

/** Whether a media query holds. */
export function useIs(query) {
  const [is, setIs] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query), note = () => setIs(media.matches);
    note();
    media.addEventListener('change', note);
    return () => media.removeEventListener('change', note);
  }, [query]);
  return is;
}
export const PHONE = '(max-width: 700px)';
export const usePhone = () => useIs(PHONE);
