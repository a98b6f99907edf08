// The settings of a project that an agent would use: a person trusts them by what they say.
import { html, useState } from '../lib.js';
import { call } from '../store.js';
import { Exact } from '../text.js';
import { Button, useRead } from '../ui.js';

/**
 * What would run with an agent of a profile, and a button that trusts it.
 * @param {{place: {profile?: string, workspace?: string, directory?: string}, onTrust?: () =>
 * void}} props
 */
export function Trust({ place, onTrust = () => {} }) {
  const [trust, , again] = useRead(() => call('agent_trust', place), [JSON.stringify(place)]);
  const [isWhole, setWhole] = useState(false);
  if (!trust || !trust.wanted || trust.is_trusted || !trust.files.length) return null;
  const accept = async () => {
    await call('agent_trust', { ...place, digest: trust.digest });
    await again();
    onTrust();
  };
  const lines = isWhole ? trust.shown : trust.shown.slice(0, 12);
  return html`<section class="trust" aria-label="Settings of the project"><p><b>This project brings
    settings that can run
      programs.</b> Read them before you trust them:</p>
    <ul class="plain-list">${trust.files.map(each => html`<li><code>${each}</code></li>`)}</ul>
    <pre class="result" tabindex="0" role="group"
      aria-label="What they say"><${Exact}>${lines.join('\n')}<//></pre>
    ${lines.length < trust.shown.length && html`<button type="button" class="link"
      onClick=${() => setWhole(true)}>Show all ${trust.shown.length} lines</button>`}
    ${trust.problem && html`<p class="why">${trust.problem}</p>`}
    ${trust.digest && !trust.problem && html`<${Button}
      disabled=${lines.length < trust.shown.length}
      onClick=${accept}>Trust these settings<//>`}</section>`;
}
