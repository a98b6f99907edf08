// A box to write in and a button that sends it: a draft, which a held key sends once.
import { html, useEffect, useRef, useState } from '../lib.js';
import { draft, freshKey } from '../drafts.js';

/**
 * Write and send. `send(text, key)` rejects with what went wrong: then the text stays, and the same
 * text is sent again under the same key.
 * @param {{of: string, label: string, placeholder?: string, verb?: string, rows?: number,
 *   send: (text: string, key: string) => Promise<any>, foot?: any,
 *   children?: any, isFirst?: boolean}} props
 */
export function WriteBox({ of, label, placeholder, verb = 'Send', rows = 2, send, foot,
  children, isFirst }) {
  const one = draft(of), text = one.value ?? '', [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState(''), sent = useRef({ text: '', key: '' }),
    busy = useRef(0);
  const box = useRef(null);
  useEffect(() => { if (isFirst) box.current?.focus(); }, []);
  const submit = async event => {
    event?.preventDefault();
    const said = (one.peek() ?? '').trim();
    if (!said || busy.current) return;
    if (sent.current.text !== said) sent.current = { text: said, key: freshKey() };
    busy.current = 1; setBusy(true); setProblem('');
    try {
      await send(said, sent.current.key);
      sent.current = { text: '', key: '' };
      // What was typed meanwhile stays.
      const now = one.peek() ?? '';
      one.value = now.trim() === said ? '' : now.startsWith(said) ? now.slice(said.length) : now;
    } catch (error) { setProblem(error.message); } finally { busy.current = 0; setBusy(false); }
  };
  const key = event => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey) || event.isComposing) return;
    event.preventDefault();
    if (!event.repeat) submit();
  };
  return html`<form class="write" onSubmit=${submit}><textarea ref=${box} class="input" dir="auto"
      rows=${Math.min(14, Math.max(rows, text.split('\n').length))} aria-label=${label}
      placeholder=${placeholder} value=${text} onKeyDown=${key}
      onInput=${event => { one.value = event.target.value; }} />${children}
    ${problem && html`<p class="bad-text" role="alert">${problem}</p>`}
    <div class="ask-acts"><button type="submit" class="btn main" disabled=${isBusy || !text.trim()}>
      ${verb}</button><span class="note keys">Ctrl Enter</span>${foot}</div></form>`;
}
