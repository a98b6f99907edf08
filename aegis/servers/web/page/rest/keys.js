// The keys of the page, and what the page is.
import { html } from '../lib.js';
import { me, status } from '../store.js';
import { Dialog } from '../ui.js';

/** @type {[string, [string, string][]][]} */
const KEYS = [
  ['Anywhere', [
    ['Ctrl K', 'Go to, do or find anything'], ['Ctrl \\', 'Open beside'],
    ['1 … 9', 'The tab of that number'], ['[ ]', 'The tab before, the next tab'],
    ['x', 'Close the tab'], ['/', 'Filter agents and terminals'], ['c', 'Launch an agent'],
    ['t', 'New terminal'], ['h', 'Home'], ['i', 'Inbox'], [',', 'Settings'], ['?', 'These keys'],
  ]],
  ['Lists', [
    ['↑ ↓', 'The row before, the next row'], ['Enter', 'Open'], ['Ctrl Enter', 'Open beside'],
  ]],
  ['Requests', [
    ['j k', 'The next, the one before'], ['Enter', 'Open, close'],
    ['y', 'Allow: a long one opens first'], ['s', 'Allow for the session'], ['n', 'Deny'],
  ]],
  ['An agent', [
    ['Enter', 'Send'], ['Shift Enter', 'New line'], ['Esc', 'Interrupt, if nothing is written'],
  ]],
  ['A terminal', [
    ['Ctrl Shift K', 'Go to, do or find anything'], ['Ctrl Shift O', 'Home'],
    ['Ctrl Shift F', 'Find in the output'],
  ]],
  ['Forms', [['Ctrl Enter', 'Send or save'], ['Esc', 'Close']]],
];

/** Several keys are written as one each. */
const Combination = ({ of }) => of.split(' ').map((each, at) => html`${at > 0 && ' '}${each === '…'
  ? '…' : html`<kbd>${each}</kbd>`}`);

export const Keys = ({ onClose }) => html`<${Dialog} wide title="Keys of the page"
  onClose=${onClose}>
  <div class="keys-list" tabindex="0" role="region" aria-label="All keys">
    ${KEYS.map(([title, keys]) => html`<section key=${title}><h3>${title}</h3>
    <table><tbody>${keys.map(([key, does]) => html`<tr key=${key}><th scope="row">
      <${Combination} of=${key} /></th><td>${does}</td></tr>`)}</tbody></table></section>`)}</div>
  <p class="note">Inside a terminal all other keys belong to its program.</p><//>`;

export const About = ({ onClose }) => html`<${Dialog} title="About" onClose=${onClose}>
  <dl class="facts"><dt>Version</dt><dd>${status.value?.version ?? me.value?.server ?? ''}</dd>
    <dt>Project</dt><dd><bdi>${status.value?.root ?? ''}</bdi></dd>
    <dt>Licences</dt><dd><a class="link" href="/built/LICENSES.txt" target="_blank"
      rel="noopener">of the libraries of this page</a></dd></dl>
  <p class="note">The page is served by the daemon on your machine. It loads nothing from any other
    place.</p><//>`;
