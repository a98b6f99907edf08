// Shows the page again when its notification is clicked. It stores nothing and answers no request.
addEventListener('install', () => skipWaiting());
addEventListener('activate', event => event.waitUntil(clients.claim()));
addEventListener('notificationclick', event => {
  event.notification.close();
  event.waitUntil((async () => {
    const pages = await clients.matchAll({ type: 'window', includeUncontrolled: true });
    const page = pages[0];
    if (page) { await page.focus(); page.postMessage({ go: event.notification.data?.go ?? '#/' }); }
    else await clients.openWindow('/' + (event.notification.data?.go ?? ''));
  })());
});
