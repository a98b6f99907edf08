// Times and amounts: in lists the age, in conversations the clock; one locale.
import { html, signal } from './lib.js';
import { settings } from './place.js';

const LANGUAGE = 'en-GB';
const TICK_MS = 10000;
/** Clocks are said in whole seconds, and a reply takes its time. */
const MOST_SKEW_MS = 5000;
/** @type {Map<string, Intl.DateTimeFormat>} */
const formats = new Map(); // making one takes long, so it is kept

/** By how much the clock of the daemon is ahead of that of this browser, in milliseconds. */
let skew = 0;
/** The time now by the daemon's clock, in milliseconds, as coarse as ages are shown. */
export const now = signal(Date.now());
const tick = () => { now.value = Date.now() + skew; };
setInterval(() => { if (document.visibilityState === 'visible') tick(); }, TICK_MS);
document.addEventListener('visibilitychange', tick);

/** Ask for the daemon's clock: a phone's may be wrong, and then a new message would be days old. */
export async function measureSkew() {
  const sent = Date.now(), { headers } = await fetch('/icon.svg', { method: 'HEAD',
    cache: 'no-store' });
  const theirs = Date.parse(headers.get('date') ?? ''), away = theirs - (sent + Date.now()) / 2;
  skew = Math.abs(away) > MOST_SKEW_MS ? away : 0;
  tick();
}

const ms = at => typeof at === 'number' ? at : Date.parse(at);
function format(name, options) {
  const { clock } = settings.value, key = `${name}${clock}`;
  const isClock = clock !== 'system' && name !== 'day';
  let known = formats.get(key);
  if (!known) {
    const hours = isClock ? { hour12: clock === '12' } : {};
    known = new Intl.DateTimeFormat(LANGUAGE, { ...options, ...hours });
    formats.set(key, known);
  }
  return known;
}

/** Return the age of a moment (ISO 8601 or milliseconds): 'now', '4 min', '3 h', '2 d'. */
export function when(at) {
  const past = now.value - ms(at), away = Math.abs(past);
  const words = away < 60e3 ? 'now' : away < 3600e3 ? `${Math.floor(away / 60e3)} min`
    : away < 48 * 3600e3 ? `${Math.floor(away / 3600e3)} h` : `${Math.floor(away / 86400e3)} d`;
  return past < 0 && words !== 'now' ? `in ${words}` : words;
}

/** Return the clock of a moment, without its day. */
export const clock = at =>
  format('clock', { hour: '2-digit', minute: '2-digit' }).format(ms(at));
/** Return the clock of a moment, with its day if that is not today. */
export function clocked(at) {
  const day = new Date(ms(at)), time = clock(at);
  if (day.toDateString() === new Date(now.value).toDateString()) return time;
  return `${dated(day.getTime())}, ${time}`;
}
export const dated = at =>
  format('day', { weekday: 'short', day: 'numeric', month: 'short' }).format(ms(at));
export const whole = at => format('whole', { dateStyle: 'full',
  timeStyle: 'medium' }).format(ms(at));

export function Time({ at, isClock = false }) {
  if (!at) return null;
  return html`<time class="time" datetime=${new Date(ms(at)).toISOString()} title=${whole(at)}>
    ${isClock ? clocked(at) : when(at)}</time>`;
}

export const money = amount => amount === null || amount === undefined ? ''
  : `$${amount < 0.995 && amount > 0 ? amount.toFixed(3).replace(/0$/, '') : amount.toFixed(2)}`;
/** Return a duration: '0.3 s', '2 min 5 s', '3 h 4 min'. */
export function seconds(amount) {
  if (amount === null || amount === undefined) return '';
  if (amount < 60) return `${amount.toFixed(1)} s`;
  if (amount < 3600) return `${Math.floor(amount / 60)} min ${Math.round(amount % 60)} s`;
  return `${Math.floor(amount / 3600)} h ${Math.round(amount % 3600 / 60)} min`;
}
/** Return a number in few characters: 940, '12.3k', '4.1M'. */
export const count = amount => amount === null || amount === undefined ? ''
  : amount < 1000 ? String(amount) : amount < 999500 ? `${(amount / 1000).toPrecision(3)}k`
    : `${(amount / 1e6).toPrecision(3)}M`;
export const bytes = amount => amount < 1024 ? `${amount} B` : amount < 1048576
  ? `${(amount / 1024).toFixed(1)} KiB` : `${(amount / 1048576).toFixed(1)} MiB`;
