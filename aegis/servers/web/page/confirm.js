// Asking first, before something is lost.
import { html } from './lib.js';
import { open } from './overlay.js';
import { Form } from './ui.js';

const Confirm = ({ title, text, verb, tone, act, onClose }) => html`<${Form} title=${title}
  verb=${verb}
  tone=${tone} act=${act} onClose=${onClose}>${typeof text === 'string'
    ? html`<p dir="auto">${text}</p>` : text}<//>`;

/**
 * Ask, and carry out `act` if the person agrees; its failure stands in the dialog.
 * @param {{title: string, text: any, verb: string, tone?: string, act: () => Promise<any>}} given
 */
export const confirm = given => open(Confirm, { tone: 'main', ...given });
