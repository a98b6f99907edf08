// Notifications for open requests, where the person allowed them; withdrawn once they are answered.
import { line } from './dom.js';

export class Notifier {
  constructor(store) {
    this.shown = new Set(); this.first = true;
    if (!('serviceWorker' in navigator) || !isSecureContext) return;
    // The one policy of Trusted Types that the page may make: for the address of its worker.
    const policy = globalThis.trustedTypes?.createPolicy('aegis-worker', { createScriptURL: url => { if (url !== '/worker.js') throw new TypeError(url); return url; } });
    this.ready = navigator.serviceWorker.register(policy ? policy.createScriptURL('/worker.js') : '/worker.js').then(() => navigator.serviceWorker.ready).catch(() => null);
    navigator.serviceWorker.addEventListener('message', ({ data }) => { if (typeof data?.go === 'string' && data.go.startsWith('#/')) location.hash = data.go; });
    store.watch(changes => { if (changes.has('requests') && store.loaded.has('requests')) this.update(store.requests); });
  }

  get isPossible() { return 'Notification' in globalThis && Boolean(this.ready); }
  get isAllowed() { return this.isPossible && Notification.permission === 'granted'; }
  ask() { return Notification.requestPermission(); }

  async update(requests) {
    const worker = await this.ready;
    for (const id of this.shown) if (!requests.has(id)) {
      this.shown.delete(id);
      for (const note of await worker?.getNotifications({ tag: id }) ?? []) note.close();
    }
    for (const request of requests.values()) if (!this.shown.has(request.id)) {
      this.shown.add(request.id);
      if (this.isAllowed && document.visibilityState !== 'visible') await worker?.showNotification(`${line(request.handle, 60)} needs an answer`, { body: line([request.tool, request.title === request.tool ? request.input?.command : request.title].filter(Boolean).join(': '), 140), tag: request.id, icon: '/icon.svg', data: { go: '#/' } });
    }
  }
}
