// The beginning of the page: login, the connection, and what is drawn.
import { html, render, signal } from './lib.js';
import { project } from './drafts.js';
import { loadAll, loadSoon } from './lazy.js';
import { Link } from './link.js';
import { say } from './overlay.js';
import { place, stored } from './place.js';
import { Shell } from './shell.js';
import * as store from './store.js';
import { measureSkew } from './time.js';
import { connection, events, me, start, startView } from './store.js';

/** Why a person has to log in; null while that is not so. */
const loginReason = signal(/** @type {string | null} */ (null));
/**
 * For the tests, and for a person at the console: the link, and the terminal of the active pane.
 */
export const app = {
  link: /** @type {Link | null} */ (null),
  /** The terminal of the active pane. */
  current: /** @type {any} */ (null),
  store,
};
globalThis.app = app;

/** Post a code, with the key of this browser's login, which it keeps; or the secret of a link. */
async function logIn(given) {
  const body = given.code ? { key: stored.get('page-key') ?? '', ...given } : given;
  const headers = { 'content-type': 'application/json' };
  const response = await fetch('/login', { method: 'POST', headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error((await response.text()).trim());
  const { key, view, project: id } = await response.json();
  if (view === null) {
    stored.set('page-key', key);
    stored.set('project', id);
    stored.set('view', null, sessionStorage);
  } else { // only in this tab
    stored.set('view', view, sessionStorage);
    stored.set('view-key', key, sessionStorage);
  }
}

let notifying = null;
/** Begin to notify, if that has not begun: the file may have been lost with a connection. */
function notify() {
  notifying ??= import('./notify.js').then(({ notifyOfRequests }) => notifyOfRequests(),
    () => { notifying = null; });
}

function linked(link, state, reason) {
  connection.value = { state, reason, since: Date.now() };
  if (state === 'out') {
    if (stored.get('view', sessionStorage) === null) stored.set('page-key', null);
    loginReason.value = reason;
    return;
  }
  if (state !== 'up') return;
  if (link.isRestarted) say('The daemon was restarted.');
  const isFirst = me.value === null;
  me.value = link.me;
  if (!link.me.view) notify();
  if (!isFirst) return;
  if (link.me.view) { startView(link); return; }
  start(link);
  loadSoon();
  measureSkew().catch(() => { /* then ages are by the clock of this browser */ });
  events.addEventListener('settled', event => {
    const { by, handle } = /** @type {CustomEvent} */ (event).detail;
    if (by && by !== 'human') say(`${by} answered the request of ${handle}.`);
  });
}

/**
 * What logs in by the fragment of an address, which is never sent with a request; null if it has
 * neither a code nor the secret of a link.
 */
function givenBy(fragment) {
  if (!/^(code|v)=/.test(fragment)) return null; // a place of the page may have such words too
  const given = new URLSearchParams(fragment);
  const code = given.get('code'), secret = given.get('v');
  return code ? { code } : secret ? { link: secret } : null;
}

async function begin() {
  const given = givenBy(location.hash.slice(1));
  if (given) {
    history.replaceState(null, '', '/');
    try { await logIn(given); } catch (error) {
      loginReason.value = error.message;
      return;
    }
  }
  const isView = stored.get('view', sessionStorage) !== null;
  const key = () => isView ? stored.get('view-key', sessionStorage) : stored.get('page-key');
  if (!key()) {
    loginReason.value = '';
    return;
  }
  project.id = stored.get('project') ?? '';
  app.link = new Link(key, (state, reason) => linked(app.link, state, reason));
}

/** An installed page has no address bar: it takes the address here. */
async function enter(event) {
  event.preventDefault();
  const text = String(new FormData(event.target).get('address')).trim();
  try { await logIn(givenBy(text.replace(/^[^#]*#/, '')) ?? { code: text }); } catch (error) {
    loginReason.value = error.message;
    return;
  }
  location.reload(); // what was kept is of the login before
}

const Login = ({ reason }) => html`<main class="login"><section class="card">
  <h1>Log in</h1>${reason && html`<p class="why" role="alert" dir="auto">${reason}</p>`}
  <p>Run this on the machine of the daemon, in its project. It opens this page, or prints an address
    that is valid for a minute:</p><pre>aegis-actors web</pre>
  <form class="copied" onSubmit=${enter}><input class="input mono" name="address" required
    aria-label="Address" placeholder="Or paste the address here" autocomplete="off"
    autocapitalize="off" spellcheck=${false} />
    <button class="btn main">Log in</button></form></section></main>`;

const App = () => loginReason.value === null ? html`<${Shell} />`
  : html`<${Login} reason=${loginReason.value} />`;

const root = document.getElementById('app');
root.replaceChildren();
addEventListener('storage', ({ key, newValue }) => { // another tab has logged in
  if (key === 'page-key' && newValue && loginReason.value !== null) location.reload();
});
// Home is drawn without it.
if (place.value !== 'home') loadAll().catch(() => { /* the view says so */ });
render(html`<${App} />`, root);
begin();
