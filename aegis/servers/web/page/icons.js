// Drawn by strokes of 1.3 on a grid of 16, so that they follow the colour of the text.
import { html } from './lib.js';
import { WORD } from './state.js';

const ICONS = {
  home: 'M2.5 7 8 2.5 13.5 7v6.5h-4v-4h-3v4h-4z',
  inbox: 'M2 9h3.5l1 2h3l1-2H14M2 9l2-6h8l2 6v4.500H2z',
  queue: 'M2 4h12M2 8h12M2 12h7',
  canvas: 'M3 2h7l3 3v9H3zM10 2v3h3M5.500 8h5M5.500 11h5',
  flow: 'M3 3h4v3H3zM9 10h4v3H9zM5 6v5.500h4',
  group: 'M6 8a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5zM1.500 13c.5-2.500 2-3.500 4.500-3.500'
    + 's4 1 4.500 3.500M11 7.500a2 2 0 1 0-1-3.800M12 9.700c1.500.4 2.200 1.400 2.500 3.300',
  agent: 'M3 5h10v8H3zM8 5V2.500M6 8.500v1M10 8.500v1M1 8v2M15 8v2',
  terminal: 'M2 3h12v10H2zM4.500 6l2 2-2 2M8 10.500h3',
  cost: 'M2 13.500h12M4 13V9M8 13V4M12 13V7',
  day: 'M2.500 3.500h11v10h-11zM2.500 6.500h11M5 2v3M11 2v3',
  history: 'M2.500 8a5.500 5.500 0 1 0 2-4.200M2.500 2.500v3h3M8 5v3l2 1.500',
  more: 'M3.500 8h.01M8 8h.01M12.500 8h.01',
  plus: 'M8 3v10M3 8h10', close: 'm4 4 8 8m0-8-8 8', split: 'M2 3h12v10H2zM8 3v10',
  find: 'M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.600 10.600 14 14',
  down: 'm4 6 4 4 4-4', up: 'm4 10 4-4 4 4', right: 'm6 4 4 4-4 4', left: 'm10 4-4 4 4 4',
  copy: 'M5.500 5.500h8v8h-8zM2.500 10.500v-8h8', file: 'M4 2h5l3 3v9H4z',
  settings: 'M2 5h7M12 5h2M2 11h2M7 11h7M9 3.500h3v3H9zM4 9.500h3v3H4z',
  key: 'M10 9.500A3.500 3.500 0 1 0 7 7L2 12v2h3v-2h2V10z',
  tree: 'M2 2h4v3H2zM9 6h5v3H9zM9 11.500h5v3H9zM4 5v8h5M4 7.500h5',
  stop: 'M4 4h8v8H4z', menu: 'M2 4h12M2 8h12M2 12h12', play: 'M5 3l8 5-8 5z',
    check: 'm3 8.500 3.500 3.500L13 4.500',
  send: 'M2 8 14 2.500 10 14 7.500 9z', pause: 'M5 3v10M11 3v10',
    again: 'M13.500 8a5.500 5.500 0 1 1-2-4.200M13.500 2.500v3h-3',
  info: 'M8 2.500a5.500 5.500 0 1 0 .01 0zM8 7.500v3.500M8 5h.01',
  clip: 'M12.500 7.500 8 12a3 3 0 0 1-4.300-4.300L8.500 3a2 2 0 0 1 2.900 2.900L6.800 10.500'
    + 'a1 1 0 0 1-1.400-1.400L9.500 5',
  link: 'M6.500 9.500 9.500 6.500M7 4.500 9 2.500a3 3 0 0 1 4.500 4.500l-2 2'
    + 'M9 11.500l-2 2A3 3 0 0 1 2.500 9l2-2',
  folder: 'M2 4h4.500L8 5.500h6V13H2z', edit: 'M3 13l.7-3L11 2.700 13.300 5 6 12.300z',
  down_end: 'M8 2v9M4 7.500l4 4 4-4M3 14h10',
    branch: 'M5 3v10M5 10c5 0 6-2 6-5M11 3v2M5 3h.01M5 13h.01',
  image: 'M2 3h12v10H2zM2 11l3.500-3.500 3 3 2-2L14 12M10.500 6h.01',
    paste: 'M5 3H3v11h10V3h-2M5.500 2h5v2.500h-5z',
};

export const Icon = ({ of }) => html`<svg class="icon i-${of}" viewBox="0 0 16 16"
  aria-hidden="true">
  <path d=${ICONS[of] ?? ''} /></svg>`;

// States: a shape, a colour and a word, never the colour alone.
const SHAPE = {
  asks: 'M6 1 11 6 6 11 1 6z', works: 'M6 1.5a4.5 4.5 0 1 1-4.5 4.5',
    waits: 'M2 3l3 3-3 3M6.5 9.5H10',
  idle: 'M6 2.5a3.5 3.5 0 1 0 .01 0z', failed: 'm2.5 2.5 7 7m0-7-7 7',
  limit: 'M6 1.5a4.5 4.5 0 1 0 .01 0zM6 3.5V6l2 1', ended: 'M3 6h6', done: 'm2 6.5 2.7 2.7L10 3.5',
  paused: 'M4 2v8M8 2v8', stalled: 'M6 1.5 11 10H1zM6 4.5v2.5',
};

/** A state as a shape; with `quiet` its word stands beside it already. */
export const State = ({ of, quiet = false, word = WORD[of] }) => html`<svg class="state ${of}"
  viewBox="0 0 12 12" role=${quiet ? 'presentation' : 'img'} aria-label=${quiet ? null : word}
  aria-hidden=${quiet ? 'true' : null}><path d=${SHAPE[of] ?? SHAPE.idle} /></svg>`;
