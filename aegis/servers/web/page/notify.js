// Notifications while the page is open but not looked at; withdrawn once they are answered.
import { computed, effect, signal } from './lib.js';
import { go, settings } from './place.js';
import { plain } from './plain.js';
import { asker, brief, verb } from './request/model.js';
import { connection, isReadOnly, loaded, mail, requests } from './store.js';

export const isPossible = 'serviceWorker' in navigator && 'Notification' in globalThis
  && isSecureContext;
const MOST_CHARS = 140, MOST_READ = 2000;
/** The beginning of the name of a lock that a page holds while a person looks at it. */
const LOOKED_AT = 'looked-at ', OWN_LOCK = LOOKED_AT + Math.random();
/** Of many unread messages only the newest are worth a notification each. */
const MOST_MAIL = 20;
const shown = new Set(), changes = signal(0);
/** @type {Promise<ServiceWorkerRegistration | null> | null} */
let registering = null;

/** Return the registration of the page's worker; null if the browser has none. */
export function worker() {
  if (!('serviceWorker' in navigator) || !isSecureContext) return Promise.resolve(null);
  registering ??= register().catch(() => null);
  return registering;
}

async function register() {
  // The one policy of Trusted Types that the page may make: for the address of its worker.
  const createScriptURL = url => {
    if (url !== '/worker.js') throw new TypeError(url);
    return url;
  };
  const { trustedTypes } = /** @type {any} */ (globalThis);
  const policy = trustedTypes?.createPolicy('aegis-worker', { createScriptURL });
  await navigator.serviceWorker.register(policy?.createScriptURL('/worker.js') ?? '/worker.js');
  return navigator.serviceWorker.ready;
}

/** Ask the browser for the permission; return whether it was granted. */
export async function ask() {
  return isPossible && await Notification.requestPermission() === 'granted';
}
export const isAllowed = () => isPossible && Notification.permission === 'granted';

/** Foreign text on one line, without what hides or reorders it. */
function line(text) {
  const shown = plain(text.slice(0, MOST_READ)).replace(/\s+/g, ' ').trim();
  return shown.length > MOST_CHARS ? `${shown.slice(0, MOST_CHARS)}…` : shown;
}

/** The notifications that should be visible if nobody looks at the page, by their tags. */
const wanted = computed(() => {
  const { notify, notifyHides } = settings.value, all = new Map();
  if (notify === 'none') return all;
  const put = (tag, title, body, where) => all.set(tag, notifyHides
    ? { title: 'Something waits for you', body: '', go: where }
    : { title: line(title), body: line(body), go: where });
  for (const request of requests.value.values()) {
    const text = `${verb(request)} ${brief(request)}`;
    put(request.id, `${asker(request)} waits for you`, text, '#/home');
  }
  if (notify === 'all') {
    for (const { id, sender, status, body } of [...mail.value.values()].slice(-MOST_MAIL)) {
      const has = status === 'ok' ? 'is done' : status === 'error' ? 'failed' : 'wrote to you';
      put(`mail-${id}`, `${sender.replace(/^agent:/, '')} ${has}`, body, '#/inbox');
    }
  }
  return all;
});

/** Whether a person looks at another page of this browser, which shows the same. */
async function isLookedAt() {
  const { held } = await navigator.locks.query();
  return held.some(({ name }) => name.startsWith(LOOKED_AT) && name !== OWN_LOCK);
}

let leave = () => {};
/** Say to the other pages and to the worker whether a person looks at this page. */
function sayWhetherShown() {
  // Without a connection it shows nothing new, and after the end of its login nothing at all.
  const isUp = connection.value.state === 'up';
  leave();
  if (!isUp || document.visibilityState !== 'visible') return;
  const isLeft = new Promise(resolve => { leave = () => resolve(undefined); });
  navigator.locks.request(OWN_LOCK, () => isLeft).catch(() => {});
}

async function update(all) {
  const registration = await worker();
  if (!registration) return;
  for (const tag of shown) {
    if (all.has(tag)) continue;
    shown.delete(tag);
    for (const each of await registration.getNotifications({ tag })) each.close();
  }
  const fresh = [...all].filter(([tag]) => !shown.has(tag));
  if (!fresh.length) return;
  // A person who looks at a page sees it there. One who allows it later gets it then.
  const isSeen = document.visibilityState === 'visible' || (isAllowed() && await isLookedAt());
  if (!isSeen && !isAllowed()) return;
  for (const [tag, { title, body, go: place }] of fresh) {
    const options = { body, tag, icon: '/icon.svg', data: { go: place } };
    if (!isSeen) await registration.showNotification(title, options);
    shown.add(tag);
  }
}

/** Notify from now on, and show the number of open requests on the installed page's icon. */
export function notifyOfRequests() {
  if (isReadOnly.value) return;
  navigator.serviceWorker?.addEventListener('message', ({ data }) => {
    if (typeof data?.go === 'string' && data.go.startsWith('#/')) go(data.go.slice(2));
  });
  worker();
  if (isPossible) {
    effect(sayWhetherShown);
    document.addEventListener('visibilitychange', sayWhetherShown);
  }
  navigator.permissions?.query({ name: 'notifications' }).then(status => {
    status.onchange = () => { changes.value += 1; };
  }, () => {});
  let last = Promise.resolve();
  effect(() => {
    const all = wanted.value;
    changes.value; // of the permission
    // Before the daemon has said what is open, nothing was answered.
    if (loaded.value.has('requests')) last = last.then(() => update(all)).catch(() => {});
  });
  effect(() => {
    const count = requests.value.size;
    if (count) navigator.setAppBadge?.(count).catch(() => {});
    else navigator.clearAppBadge?.().catch(() => {});
  });
}
