// Dialogs that start something: a terminal, a workflow, a canvas, a workspace, a shell in one.
import { el, line, plain, toast } from './dom.js';

const NAME = '[A-Za-z0-9][A-Za-z0-9._\\-]{0,63}', WORKSPACE = '[A-Za-z0-9][A-Za-z0-9_\\-]{0,31}';

/** Ask for values, and call ``act()`` with them; while that fails, the dialog stays open and says why. */
function ask(app, title, content, verb, act) {
  const why = el('p.no', { role: 'alert', hidden: true });
  const send = el('button.btn.main', { type: 'submit' }, verb);
  const box = app.dialog(title, el('div.form', {}, content, why), [el('button.btn', { type: 'button', onclick: () => box.close() }, 'Cancel'), send]);
  box.firstChild.addEventListener('submit', async event => {
    event.preventDefault();
    send.disabled = true; why.hidden = true;
    try { await act(); box.close(); } catch (error) { why.textContent = line(error.message, 600); why.hidden = false; } finally { send.disabled = false; }
  });
  box.querySelector('input, select, textarea')?.focus();
  return { box, send };
}

const field = (label, input) => el('label.labelled', {}, el('span', {}, label), input);
const nameField = (placeholder, pattern = NAME) => el('input.field', { placeholder, pattern, required: true, autocomplete: 'off', spellcheck: false });
const optional = placeholder => el('input.field', { placeholder, autocomplete: 'off', spellcheck: false });
const go = place => { location.hash = `#/${place}`; };

export function newTerminal(app) {
  const name = nameField('build');
  ask(app, 'New terminal', field('Name of the terminal', name), 'Open', async () => {
    await app.link.call('term_spawn', { name: name.value });
    go(`t/${name.value}`);
  });
}

export function openCanvas(app) {
  const name = nameField('plan'), file = optional('plan.md');
  const content = [field('Name of the canvas', name), field('Its Markdown file, below the root; none if it has one', file)];
  ask(app, 'Open a canvas', content, 'Open', async () => {
    await app.link.call('canvas_open', { name: name.value, ...(file.value && { file: file.value }) });
    go(`c/${name.value}`);
  });
}

export function newWorkspace(app) {
  const name = nameField('checkout', WORKSPACE), directory = optional('.');
  const content = [field('Name of the workspace', name), field('Its directory, below the root', directory)];
  ask(app, 'New workspace', content, 'Create', async () => {
    await app.link.call('workspace_create', { workspace: name.value, ...(directory.value && { directory: directory.value }) });
    await app.store.readWorkspaces();
    go('');
  });
}

export function openShell(app, workspace) {
  const name = el('input.field', { placeholder: 'a number', pattern: NAME, autocomplete: 'off', spellcheck: false });
  ask(app, `New shell in ${line(workspace)}`, field('Name of the shell', name), 'Open', async () => {
    const { shell_id } = await app.link.call('shell_open', { workspace, ...(name.value && { name: name.value }) });
    go(`t/${shell_id}`);
  });
}

export function deleteWorkspace(app, workspace) {
  app.confirm(`Delete the workspace ${line(workspace)}?`, 'Its shells and agents are closed and their programs end. Its directory is not changed.', async () => {
    await app.link.call('workspace_delete', { workspace });
    await app.store.readWorkspaces();
  });
}

/** Run a workflow of the project, with its arguments; or trust the plugins, whose files were changed. */
export async function runWorkflow(app) {
  let found;
  try { found = await app.link.call('workflow_list', { limit: 0 }); } catch (error) { toast(error.message, 'bad'); return; }
  const { workflows, problems } = found, doc = el('p.quiet'), given = el('div.form'), arguments_ = new Map();
  const pick = el('select.field', { onchange: () => show() }, workflows.map(each => el('option', { value: each.name }, line(each.name))));
  const trust = el('button.btn', { type: 'button', onclick: () => { box.close(); trustPlugins(app, problems); } }, 'Trust the plugins…');
  const untrusted = problems.length > 0 && el('div.conflict', {}, problems.map(each => el('p', {}, el('code', {}, line(each.file)), ` ${line(each.problem, 400)}`)), el('div.acts', {}, trust));
  const none = !workflows.length && el('p.quiet', {}, 'No plugin has a workflow that can be run. Plugins are in .aegis/plugins of the project.');
  const { box, send } = ask(app, 'Run a workflow', [untrusted, none, workflows.length > 0 && [field('Workflow', pick), doc, given]], 'Run', async () => {
    const kwargs = Object.fromEntries([...arguments_].map(([name, read]) => [name, read()]).filter(([, value]) => value !== undefined));
    const { workflow_id } = await app.link.call('run_workflow', { name: pick.value, kwargs });
    go(`w/${workflow_id}`);
  });
  send.disabled = !workflows.length;
  const show = () => {
    const known = workflows.find(each => each.name === pick.value);
    doc.textContent = plain(known?.doc ?? '', 1000); doc.hidden = !known?.doc;
    arguments_.clear();
    given.replaceChildren(...(known?.parameters ?? []).map(each => {
      const { input, read } = argument(each);
      arguments_.set(each.name, read);
      return field(`${line(each.name)}${each.type ? `: ${line(each.type, 80)}` : ''}${each.required ? '' : ' (optional)'}`, input);
    }));
  };
  show();
}

/** Return the input of a parameter, and a function that reads it: undefined for one that is left out. */
function argument({ name, type, required }) {
  if (type === 'bool') {
    const input = el('select.field', { required }, [['', '—'], ['true', 'yes'], ['false', 'no']].map(([value, text]) => el('option', { value }, text)));
    return { input, read: () => input.value ? input.value === 'true' : undefined };
  }
  const isNumber = type === 'int' || type === 'float', isText = !type || /\bstr\b(?![^|]*\])/.test(type);
  const input = el('input.field', { type: isNumber ? 'number' : 'text', step: type === 'float' ? 'any' : null, required: required && !isText, placeholder: isNumber || isText ? '' : 'JSON', autocomplete: 'off' });
  return { input, read: () => {
    if (!input.value && !(required && isText)) return undefined;
    if (isText) return input.value;
    try { return JSON.parse(input.value); } catch { throw new Error(`${name}: the value is not JSON`); }
  } };
}

function trustPlugins(app, problems) {
  const files = problems.map(each => el('li', {}, el('code', {}, line(each.file))));
  const text = el('div.form', {}, el('p', {}, 'The daemon runs plugins with your rights. Read their files as they are now, before you trust them:'), el('ul', {}, files));
  app.confirm('Trust the plugins?', text, async () => {
    const trusted = await app.link.call('workflow_trust');
    toast(`trusted: ${trusted.files.join(', ') || 'there is no plugin'}`);
    await runWorkflow(app);
  });
}
