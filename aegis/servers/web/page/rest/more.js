// On a phone: everything that the bar at the bottom has no room for.
import { html } from '../lib.js';
import { open } from '../overlay.js';
import { Palette } from '../palette.js';
import { Head, Icon, Link } from '../ui.js';
import { PAGES } from '../views.js';
import { About, Keys } from './keys.js';

const SHOWN = ['queues', 'canvases', 'workflows', 'groups', 'workspaces', 'worktrees', 'broadcast',
  'answered', 'history', 'day', 'cost', 'access', 'tree', 'settings'];

export const More = () => html`<${Head} title="More" /><div class="page">
  <button type="button" class="finder" onClick=${() => open(Palette)}><${Icon} of="find" />
    <span>Go to or do</span></button>
  <ul class="rows more-list">${SHOWN.map(where => html`<li class="row tall" key=${where}>
    <${Link} class="row-link" to=${where}><${Icon} of=${PAGES[where][2]} /><span>${PAGES[where][0]}
    </span><//></li>`)}
    ${[['Keys of the page', Keys], ['About', About]].map(([text, Component]) => html`<li
      class="row tall" key=${text}><button type="button" class="row-link"
      onClick=${() => open(Component)}>
      <${Icon} of="more" /><span>${text}</span></button></li>`)}</ul></div>`;
