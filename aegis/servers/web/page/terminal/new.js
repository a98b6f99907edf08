// The dialog for a new terminal, or for a shell in a workspace.
import { draft } from '../drafts.js';
import { html } from '../lib.js';
import { say } from '../overlay.js';
import { at, go } from '../place.js';
import { call, status, terminals, workspaces } from '../store.js';
import { Check, Field, Form, Icon, Input, Select } from '../ui.js';
import { run } from './run.js';

const NAME = '[A-Za-z0-9][A-Za-z0-9._\\-]{0,63}';
const SHELLS = ['bash', 'zsh', 'fish', 'dash', 'python3'];
const BLANK = {
  name: '', cwd: '', shell: '', env: '', node: '', cols: '', rows: '', command: '', workspace: '',
  isSeparate: false,
};

/** Read lines of NAME=value. */
export function environment(text) {
  const all = {};
  for (const line of text.split('\n')) {
    if (!line.trim()) continue;
    const [, name, value] = /^\s*(?:export\s+)?([A-Za-z_]\w*)=(.*)$/.exec(line) ?? [];
    if (!name) throw new Error(`Environment: “${line.trim()}” is not NAME=value.`);
    all[name] = value;
  }
  return all;
}

const freeName = () => {
  let number = 1;
  while (terminals.value.has(`term-${number}`)) number++;
  return `term-${number}`;
};
const given = values => Object.fromEntries(Object.entries(values).filter(([, value]) => value));

/** @param {{name?: string, workspace?: string, onClose: () => void}} props */
export function NewTerminal({ name = '', workspace = '', onClose }) {
  const kept = draft('new-terminal');
  const now = { ...BLANK, ...kept.value, ...given({ name, workspace }) };
  const put = change => { kept.value = { ...now, ...change }; };
  const field = key => ({ value: now[key], onInput: value => put({ [key]: value }) });
  const free = freeName(), isTaken = terminals.value.has(now.name), inPlace = now.workspace;
  const nodes = (status.value?.nodes ?? []).map(each => [each.name, nodeText(each)]);
  const places = [...new Set([...terminals.value.values()].map(each => each.cwd).filter(Boolean))];

  const act = async () => {
    const common = given({
      cwd: now.cwd, shell: now.shell, cols: Number(now.cols), rows: Number(now.rows),
    });
    let opened;
    if (inPlace) {
      const asked = { workspace: inPlace, ...given({ name: now.name }), ...common };
      opened = (await call('shell_open', asked)).shell_id;
    } else {
      opened = now.name || free;
      const env = environment(now.env), stderr = now.isSeparate ? 'separate' : '';
      const more = given({ node: now.node, stderr });
      await call('term_spawn', { name: opened, env, ...common, ...more });
    }
    kept.value = null;
    go(at('t', opened));
    if (now.command.trim()) {
      // The terminal is open: a failure of its first command keeps no dialog open.
      run(opened, now.command).catch(say);
    }
  };
  return html`<${Form} title="New terminal" verb="Open" act=${act} onClose=${onClose}>
    <${Field} label="Name" note=${isTaken ? 'This name is taken.' : null}>
      <${Input} ...${field('name')} pattern=${NAME} placeholder=${inPlace ? 'a number' : free}
        aria-invalid=${isTaken} data-first autocapitalize="off"
          title="Letters, digits, . _ -" /><//>
    ${workspaces.value.length > 0 && html`<${Field} label="Workspace"><${Select} label="Workspace"
      value=${inPlace} onChange=${value => put({ workspace: value })} of=${[['', 'None'],
        ...workspaces.value.map(each => [each.workspace_id, each.workspace_id])]} /><//>`}
    <${Field} label="Directory" note=${inPlace ? 'Relative to the workspace.' : null}>
      <${Input} ...${field('cwd')} list="directories" placeholder=${status.value?.root ?? ''} />
      <datalist id="directories">${places.map(each => html`<option key=${each} value=${each} />`)}
      </datalist><//>
    <${Field} label="First command"><${Input} ...${field('command')} class="input mono"
      placeholder="Only the prompt" /><//>
    <details class="more-fields"><summary><${Icon} of="right" />Shell, environment, node,
      size</summary>
      <${Field} label="Shell"><${Input} ...${field('shell')} list="shells"
        placeholder="The usual one" />
        <datalist id="shells">${SHELLS.map(each => html`<option key=${each} value=${each} />`)}
        </datalist><//>
      ${!inPlace && html`<${Field} label="Environment" note="One NAME=value a line.">
        <textarea class="input mono" rows="3" spellcheck=${false} value=${now.env}
          onInput=${event => put({ env: event.target.value })}></textarea><//>`}
      ${!inPlace && html`<${Field} label="Node"><${Select} label="Node" value=${now.node}
        onChange=${value => put({ node: value })} of=${[['', 'Any of this machine'],
          ['local', 'The daemon itself'], ...nodes]} /><//>`}
      <div class="two"><${Field} label="Columns"><${Input} ...${field('cols')} type="number" min="2"
        max="1000" placeholder="80" /><//><${Field} label="Rows"><${Input} ...${field('rows')}
        type="number" min="1" max="1000" placeholder="24" /><//></div>
      ${!inPlace && html`<${Check} label="Keep standard error apart" value=${now.isSeparate}
        onChange=${value => put({ isSeparate: value })}
          note="bash and zsh only." />`}</details><//>`;
}

const nodeText = ({ name, kind, state, terminals: open }) =>
  `${name} (${kind}, ${state === 'up' ? `${open} open` : state})`;
