// Notifications while the page is closed: the browser's push service, to which the daemon sends.
import { signal } from './lib.js';
import { worker } from './notify.js';
import { call, me } from './store.js';

/** @typedef {{requests: boolean, ends: boolean, hides: boolean}} Choices */
/**
 * `state`: unknown, impossible (with the reason), off, or on, with the daemon's `subscription`.
 * @type {import('@preact/signals').Signal<{state: string, why?: string, subscription?: any}>}
 */
export const push = signal({ state: 'unknown' });

const INSECURE = 'The browser allows this over HTTPS only, or at localhost.';
const NOT_HERE = 'This browser cannot do it. On an iPhone, put the page on the home screen first.';
const DENIED = 'The browser was told not to show notifications of this page: allow them in its '
  + 'settings of this site.';

function impossible() {
  if (!isSecureContext) return INSECURE;
  if (!('serviceWorker' in navigator && 'PushManager' in globalThis)) return NOT_HERE;
  return Notification.permission === 'denied' ? DENIED : '';
}

/** Read whether the daemon sends to this browser. */
export async function readPush() {
  const why = impossible();
  if (why) { push.value = { state: 'impossible', why }; return; }
  // Not the worker that is ready: one that is being installed has none yet.
  const registration = await navigator.serviceWorker.getRegistration('/');
  const own = await registration?.pushManager.getSubscription();
  const { subscriptions } = await call('push_list'), id = own && await idOf(own.endpoint);
  const subscription = subscriptions.find(each => each.id === id);
  push.value = subscription ? { state: 'on', subscription } : { state: 'off' };
  // It would end with a login of before, of which this browser has lost the key.
  if (subscription?.page && subscription.page !== me.value?.page) {
    const { requests, ends, hides } = subscription;
    await subscribe({ requests, ends, hides });
  }
}

/** The id of the daemon's subscription of an address. */
async function idOf(endpoint) {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(endpoint));
  return [...new Uint8Array(digest).subarray(0, 6)].map(each => each.toString(16).padStart(2, '0'))
    .join('');
}

const bytes = text => Uint8Array.from(
  atob(text.replaceAll('-', '+').replaceAll('_', '/')), each => each.charCodeAt(0),
);
function base64url(buffer) {
  const text = btoa(String.fromCharCode(...new Uint8Array(buffer)));
  return text.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** What this browser calls itself in lists. */
export function browserName(agent = navigator.userAgent) {
  const of = names => names.find(([, pattern]) => pattern.test(agent))?.[0];
  const browser = of([['Edge', /Edg/], ['Firefox', /Firefox|FxiOS/], ['Chrome', /Chrom|CriOS/],
    ['Safari', /Safari/]]) ?? 'Browser';
  const system = of([['Android', /Android/], ['iPhone', /iPhone/], ['iPad', /iPad/],
    ['Windows', /Windows/], ['macOS', /Mac OS/], ['Linux', /Linux/]]);
  return system ? `${browser}, ${system}` : browser;
}

/** Subscribe this browser, or change of what it is notified. @param {Choices} choices */
export async function subscribe(choices) {
  if (await Notification.requestPermission() !== 'granted') throw new Error(DENIED);
  const { pushManager } = await worker();
  const { public_key: key } = await call('push_key');
  let own = await pushManager.getSubscription();
  const known = own?.options.applicationServerKey;
  if (own && known && base64url(known) !== key) { // of another daemon at the same address
    await own.unsubscribe();
    own = null;
  }
  own ??= await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: bytes(key) });
  const subscription = await call('push_subscribe', {
    endpoint: own.endpoint, p256dh: base64url(own.getKey('p256dh')),
    auth: base64url(own.getKey('auth')), label: browserName(), ...choices,
  });
  push.value = { state: 'on', subscription };
}

export async function unsubscribe() {
  const { subscription } = push.value;
  if (subscription) await call('push_remove', { id: subscription.id });
  const own = await (await worker())?.pushManager.getSubscription();
  await own?.unsubscribe();
  push.value = { state: 'off' };
}
