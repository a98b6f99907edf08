// Where the person is: addresses, panes and tabs; and the settings of this browser.
import { computed, effect, signal } from './lib.js';

export const MOST_PANES = 3;
const MOST_TABS = 40;

/** The browser's storage, which may be switched off: the page works until it is closed. */
export const stored = {
  get(key, area = localStorage) { try { return area.getItem(key); } catch { return null; } },
  set(key, value, area = localStorage) {
    try { value === null ? area.removeItem(key) : area.setItem(key, value); } catch { /* off,
      full */ }
  },
  json(key, otherwise, area = localStorage) {
    try { return JSON.parse(area.getItem(key) ?? '') ?? otherwise; } catch { return otherwise; }
  },
};

// decodeURIComponent raises on an address that was cut inside of a character: it names nothing
// then.
const decoded = text => { try { return decodeURIComponent(text); } catch { return text; } };

const read = () => location.hash.startsWith('#/') ? location.hash.slice(2) || 'home' : 'home';
/** The address without '#/': panes joined by '+', each with what follows its '?'. */
export const place = signal(read());
addEventListener('hashchange', () => {
  // A login address that is pasted into this tab changes nothing but the fragment.
  if (/^#(code|v)=/.test(location.hash)) location.reload();
  else place.value = read();
});

/** @typedef {{where: string, kind: string, id: string | null, params: URLSearchParams}} Pane */

/** @param {string} where @returns {Pane} */
export function parse(where) {
  const [path, query = ''] = where.split('?'), at = path.indexOf('/');
  const [kind, id] = at < 0 ? [path, null] : [path.slice(0, at), decoded(path.slice(at + 1))];
  return { where, kind, id, params: new URLSearchParams(query) };
}

/** Return the address of one thing: `at('a', 'ada')`. */
export const at = (kind, id, params = null) =>
  `${kind}/${encodeURIComponent(id)}${params ? query(params) : ''}`;
// URLSearchParams writes a space as '+', which joins panes.
export const query = params => `?${new URLSearchParams(params).toString().replaceAll('+', '%20')}`;
/** The address of a pane without its parameters: what is shown, not where in it. */
export const subject = where => where.split('?')[0];

export const panes = computed(() => place.value.split('+').slice(0, MOST_PANES));
export const activePane = signal(0);

const known = where => where.split('+').map(subject).join('+');
const distinct = list => [...new Map(list.map(each => [known(each), each])).values()];
/** Whether an address is that of home alone, which may have a request to show first. */
export const isHome = where => known(where) === 'home';

/** Each tab is an address; home is always the first. They are of this window. */
export const tabs = signal(distinct(stored.json('tabs', ['home'], sessionStorage)));
effect(() => {
  const here = place.value, all = tabs.peek(),
    index = all.findIndex(each => known(each) === known(here));
  if (index < 0) tabs.value = [...all, here].slice(-MOST_TABS);
  else if (all[index] !== here) tabs.value = all.map((each, i) => i === index ? here : each);
  if (!tabs.peek().some(isHome)) tabs.value = ['home', ...tabs.peek()];
  activePane.value = Math.min(activePane.peek(), panes.value.length - 1);
});
effect(() => stored.set('tabs', JSON.stringify(tabs.value), sessionStorage));

export const href = where => `#/${where}`;
export const go = where => {
  location.hash = href(where);
  place.value = where; // the event comes later, and the next key may come before it
};

/** Show an address beside what is shown: the last of three panes gives way. */
export function beside(where) {
  const all = panes.value;
  if (all.some(each => subject(each) === subject(where))) return;
  const next = [...all.slice(0, MOST_PANES - 1), where].join('+');
  tabs.value = distinct(tabs.value.map(each => each === place.value ? next : each));
  activePane.value = Math.min(all.length, MOST_PANES - 1);
  go(next);
}

export function closePane(index) {
  const rest = panes.value.filter((_, each) => each !== index).join('+') || 'home';
  tabs.value = distinct(tabs.value.map(each => each === place.value ? rest : each));
  activePane.value = 0;
  go(rest);
}

export function closeTab(where) {
  if (isHome(where)) return;
  const index = tabs.value.indexOf(where);
  tabs.value = tabs.value.filter(each => each !== where);
  if (place.value === where) go(tabs.value[Math.max(0, index - 1)] ?? 'home');
}

/** Change what follows the '?' of a pane in the address, without a step to go back. */
export function restate(where) {
  const next = panes.value.map(each => subject(each) === subject(where) ? where : each).join('+');
  if (next !== place.value) history.replaceState(history.state, '', href(next));
  place.value = next;
}

/** Follow a name that was changed, in all tabs. */
export function renamed(kind, from, to) {
  const change = where => where.split('+').map(each => {
    const { kind: one, id, params } = parse(each);
    return one === kind && id === from ? at(kind, to, params.size ? params : null) : each;
  }).join('+');
  const next = change(place.value);
  tabs.value = distinct(tabs.value.map(change));
  if (next !== place.value) go(next);
}

/** What a person set in this browser. A new setting needs only a value here. */
export const settings = signal({
  theme: 'system', size: 'm', clock: 'system', rail: true,
  terminalTheme: 'page', terminalFont: '', terminalSize: 13, reader: false,
  editor: '', editorTemplate: '', notify: 'asks', notifyHides: false,
  tabNames: /** @type {Record<string, string>} */ ({}),
  ...stored.json('settings', {}),
});
/** @param {Partial<typeof settings.value>} change */
export const set = change => { settings.value = { ...settings.value, ...change }; };
let isTaken = false;
effect(() => {
  const { theme, size } = settings.value;
  if (!isTaken) stored.set('settings', JSON.stringify(settings.value));
  Object.assign(document.documentElement.dataset, { theme, size });
});
// Another window of this browser changed them: the newest choice holds in all. To store it again
// would undo what was chosen there meanwhile.
addEventListener('storage', event => {
  if (event.key !== 'settings' || !event.newValue) return;
  isTaken = true;
  try { settings.value = { ...settings.value, ...stored.json('settings', {}) }; } finally {
    isTaken = false;
  }
});
