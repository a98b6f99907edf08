// The worker of the page: shows notifications while the page is closed, and the page again on a
// click. It stores nothing, and answers no request.

// Safari ends a subscription whose messages show nothing; others allow it while a page is visible.
const IS_SAFARI = /AppleWebKit(?!.*Chrom)/.test(navigator.userAgent);

const worker = /** @type {ServiceWorkerGlobalScope} */ (/** @type {unknown} */ (self));
const { clients, registration } = worker;

worker.addEventListener('install', () => { worker.skipWaiting(); });
worker.addEventListener('activate', event => { event.waitUntil(clients.claim()); });

const pages = () => clients.matchAll({ type: 'window', includeUncontrolled: true });
const place = go => typeof go === 'string' && go.startsWith('#/') ? go : '#/home';

/** Whether a person looks at a page that shows it: a login or a read-only link holds no lock. */
const isLookedAt = async () => (await worker.navigator.locks.query()).held
  .some(({ name }) => name.startsWith('looked-at '));

async function shown(notice) {
  const { tag, title, body, go, settled } = notice;
  const options = { tag, body, icon: '/icon.svg', data: { go: place(go) } };
  if (settled) {
    if (IS_SAFARI) await registration.showNotification(title, { ...options, silent: true });
    for (const each of await registration.getNotifications({ tag })) each.close();
    return;
  }
  if (IS_SAFARI || !await isLookedAt()) await registration.showNotification(title, options);
}

worker.addEventListener('push', event => {
  let notice;
  try { notice = event.data.json(); } catch { return; }
  if (typeof notice?.tag !== 'string' || typeof notice.title !== 'string') return;
  event.waitUntil(shown(notice));
});

worker.addEventListener('notificationclick', event => {
  event.notification.close();
  const go = place(event.notification.data?.go);
  event.waitUntil((async () => {
    const [page] = await pages();
    if (!page) { await clients.openWindow(`/${go}`); return; }
    page.postMessage({ go });
    await page.focus();
  })());
});
