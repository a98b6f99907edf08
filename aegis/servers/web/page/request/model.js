// A request in words: what it asks, which ones are alike, and what may be allowed from its line.
import { agentOf, call, status, workflows } from '../store.js';
import { isOdd } from './exact.js';

/** @typedef {{id: string, digest: string, handle: string, workflow: ?string, kind: string,
 *   tool: string, tool_kind: string, title: string, reason: string, input: ?Record<string, any>,
 *   excerpt: string, input_bytes: number, options: {id: string, name: string, kind: string}[],
 *   created: string, state: string, answer: ?Record<string, any>, scope: ?string, by: ?string,
 *   answered: ?string, withdrawn: ?string, needs_person: boolean, default_to_no: boolean,
 *   no_session_scope: boolean, takes_edit: boolean}} Request */
/** @typedef {{key: string, first: Request, all: Request[], gone?: boolean}} Row */

const VERBS = {
  execute: 'run', edit: 'change', delete: 'delete', move: 'move', fetch: 'open', read: 'read',
  search: 'search', think: 'think', plan: 'has a plan:', other: 'use',
};
const SENTENCES = {
  execute: 'asks to run a command', edit: 'asks to change files', delete: 'asks to delete',
  move: 'asks to move files', fetch: 'asks to open an address', read: 'asks to read',
  search: 'asks to search', think: 'asks to think', plan: 'asks you to approve its plan',
};
export const isPlan = request => request.kind === 'permission' && request.tool_kind === 'plan';
export const isYesNo = request => request.kind === 'permission' && !isPlan(request);
const isText = value => typeof value === 'string';
const below = (path, root) => root && (path === root || path.startsWith(`${root}/`));

/** The directory in which the agent of a request works. */
export const directoryOf = request => agentOf(request.handle)?.cwd ?? '';
/** A path as it is shown: relative to the root, if it is below it. */
export function shortPath(path) {
  const { root } = status.value ?? {};
  return below(path, root) ? path.slice(root.length + 1) || '.' : path;
}

/** The name of the root's directory. */
export const rootName = () => status.value?.root.split('/').at(-1) ?? '.';

/** Name the agent or the workflow that asks. */
export const asker = request => request.workflow
  ? workflows.value.get(request.workflow)?.name ?? 'a workflow' : request.handle;
export const placeOf = request =>
  request.workflow ? `w/${request.workflow}` : `a/${request.handle}`;

/** The verb on the line of a request. */
export const verb = request => request.kind === 'permission' ? VERBS[request.tool_kind] ?? 'use'
  : request.kind === 'login' ? 'needs a login' : 'asks';
/** What a request asks, as the end of a sentence that begins with the name of the agent. */
export const sentence = request => request.kind === 'permission'
  ? SENTENCES[request.tool_kind] ?? `asks to use ${request.tool || 'something'}`
  : request.kind === 'login' ? 'needs a login' : 'asks you';

/** The fields of an input that say all of it on one line, and those that change nothing in it. */
const LINES = {
  execute: [['command'], ['description', 'timeout']],
  fetch: [['url'], []],
  read: [['file_path', 'path', 'absolute_path'], ['offset', 'limit']],
  delete: [['path', 'file_path'], []],
  search: [['query', 'pattern'], []],
};

const MOST_ON_LINE = 300;
/** The text of a line: what would happen, or what is asked. It is cut where no line can show it. */
export function brief(request) {
  const text = whole(request);
  return text.length > MOST_ON_LINE ? `${text.slice(0, MOST_ON_LINE)}…` : text;
}
function whole(request) {
  const { kind, tool_kind, input, title, tool } = request;
  if (kind === 'question') return questionsOf(request)[0]?.text ?? title;
  if (kind !== 'permission') {
    const names = () => fieldsOf(request)?.map(each => each.label).join(', ');
    return title || request.reason || names() || (input?.url ?? tool);
  }
  if (isPlan(request)) return planOf(request).trim().split('\n')[0].replace(/^#+ */, '') || title;
  const files = editsOf(input ?? {}).files.map(each => shortPath(each.path));
  if (files.length) return files.length > 1 ? `${files[0]} and ${files.length - 1} more` : files[0];
  const [shown = []] = LINES[tool_kind] ?? [];
  const named = shown.map(name => input?.[name]).find(isText);
  return named ?? (SENTENCES[tool_kind] ? title || tool : tool || title);
}

/** Whether the line shows everything of a request, if it fits: nothing hidden, none outside. */
export function isPlain(request) {
  const { input, tool_kind, options } = request, rule = LINES[tool_kind];
  if (!isYesNo(request) || !input || !rule || request.needs_person || request.default_to_no) {
    return false;
  }
  if (optionsOf(request, 'allow_once').length > 1 || !mayAllow(request, 'allow_once')) return false;
  const names = Object.keys(input), shown = names.filter(name => rule[0].includes(name));
  if (shown.length !== 1 || names.some(name => !rule[0].includes(name) && !rule[1].includes(name)))
    return false;
  const text = input[shown[0]], { root } = status.value ?? {}, directory = directoryOf(request);
  if (!isText(text) || !text.trim() || text.length > MOST_ON_LINE) return false;
  if (/[\n\r\t]/.test(text) || isOdd(text)) return false;
  if (directory && !below(directory, root)) return false;
  const isPath = tool_kind === 'read' || tool_kind === 'delete';
  return !isPath || (!/(^|\/)\.\.(\/|$)/.test(text) && (!text.startsWith('/') || below(text,
    root)));
}

/** The different options of a kind, as the agent named them. */
export function optionsOf(request, kind) {
  const alike = (request.options ?? []).filter(each => each.kind === kind);
  return [...new Map(alike.map(each => [each.id, each])).values()];
}
/** Whether an answer of this kind can be given. */
export function mayAllow(request, kind) {
  if (request.input === null) return false;
  if (kind === 'allow_session' && request.no_session_scope) return false;
  return !request.options?.length || optionsOf(request, kind).length > 0;
}

/** Group requests: those with the same input, in the same directory, for the same reason. */
export function grouped(list) {
  /** @type {Map<string, Row>} */
  const rows = new Map();
  for (const each of list) {
    const key = isYesNo(each)
      ? JSON.stringify([each.digest, directoryOf(each), each.reason, each.default_to_no,
        each.needs_person, each.no_session_scope]) : each.id;
    const row = rows.get(key);
    if (row) row.all.push(each);
    else rows.set(key, { key, first: each, all: [each] });
  }
  return [...rows.values()];
}

/** The changes of files in an input, and what else it has. */
export function editsOf(input) {
  const { file_path, old_string, new_string, ...rest } = input;
  if (isText(file_path) && isText(old_string) && isText(new_string)) {
    return { files: [{ path: file_path, before: old_string, after: new_string }], rest };
  }
  if (isText(file_path) && isText(input.content)) {
    const { file_path: path, content: after, ...others } = input;
    return { files: [{ path, before: '', after }], rest: others };
  }
  const content = Array.isArray(input.content) ? input.content : [], known = ['type', 'path',
    'oldText', 'newText'];
  const isEdit = each => each?.type === 'diff' && isText(each.path) && isText(each.oldText ?? '')
    && isText(each.newText) && Object.keys(each).every(name => known.includes(name));
  const files = content.filter(isEdit)
    .map(each => ({ path: each.path, before: each.oldText ?? '', after: each.newText }));
  if (!files.length) return { files, rest: input };
  const { content: _, ...left } = input, others = content.filter(each => !isEdit(each));
  return { files, rest: others.length ? { ...left, content: others } : left };
}

export const planOf = request => isText(request.input?.plan) ? request.input.plan : '';
/** What an input has beside its plan; the plan may be a copy of its content. */
export function besidePlan({ input }) {
  const { plan, content, ...rest } = input;
  if (!isText(plan)) return input;
  const copy = JSON.stringify([{ type: 'content', content: { type: 'text', text: plan } }]);
  return content === undefined || JSON.stringify(content) === copy ? rest : { ...rest, content };
}

/** The questions of a request. */
export function questionsOf(request) {
  const asked = request.input?.questions;
  return (Array.isArray(asked) ? asked : []).filter(each => isText(each?.question)).map(each => ({
    text: each.question, isMany: each.multiSelect === true,
    options: (Array.isArray(each.options) ? each.options : []).filter(one => isText(one?.label)),
  }));
}

/** The fields of a form, from its schema; null if the request has none. */
export function fieldsOf(request) {
  const input = request.input ?? {};
  const schema = [input.requestedSchema, input.requested_schema, input.schema]
    .find(each => each && typeof each === 'object') ?? (input.properties ? input : null);
  const { properties } = schema ?? {};
  if (!properties || typeof properties !== 'object') return null;
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(properties).filter(([, rule]) => rule && typeof rule === 'object')
    .map(([name, rule]) => ({ name, rule, type: typeOf(rule), choices: choicesOf(rule),
      isRequired: required.includes(name), label: isText(rule.title) ? rule.title : name }));
}
const typeOf = rule => ['boolean', 'integer', 'number', 'array'].includes(rule.type)
  ? rule.type : 'string';
function choicesOf(rule) {
  const { enum: plain, enumNames, oneOf, anyOf } = rule.type === 'array' ? rule.items ?? {} : rule;
  if (Array.isArray(plain)) {
    return plain.filter(isText).map((each, at) => [each, String(enumNames?.[at] ?? each)]);
  }
  const named = [oneOf, anyOf].find(Array.isArray);
  return named?.filter(each => isText(each?.const)).map(each => [each.const,
    String(each.title ?? each.const)]) ?? null;
}

/** Read what was filled in as values of the types of the fields; throw what is missing. */
export function valuesOf(fields, filled) {
  const values = {};
  for (const { name, rule, type, isRequired, label } of fields) {
    let value = filled[name] ?? rule.default;
    if (type === 'boolean') value ??= isRequired ? false : undefined;
    if ((type === 'integer' || type === 'number') && isText(value)) {
      const number = value.trim() ? Number(value) : undefined;
      if (Number.isNaN(number)) throw new Error(`${label}: this is not a number`);
      value = number;
    }
    if (type === 'array' && value?.length === 0 && !isRequired) value = undefined;
    if (value === '' && !(isRequired && type === 'string')) value = undefined;
    if (isRequired && (value === undefined || value === '')) throw new Error(`${label} is missing`);
    if (value !== undefined) values[name] = value;
  }
  return values;
}

/** Answer requests with what was shown of them. Return a sentence about the ones that were late. */
export async function answer(all, decision, more = {}) {
  const replies = await Promise.all(all.map(({ id, digest }) =>
    call('request_answer', { id, digest, answer: decision, ...more })));
  const late = replies.filter(each => each.outcome !== 'applied');
  if (!late.length) return '';
  const [one] = late, many = late.length > 1 ? ` (${late.length} of ${all.length})` : '';
  if (one.outcome === 'already_answered') return `Too late: ${one.by} answered first${many}`;
  return one.outcome === 'withdrawn' ? `Too late: it was withdrawn${many}` : one.text;
}

/** An answered request in words. */
export function outcome(request) {
  const { state, answer: given, scope } = request;
  if (state === 'withdrawn') return 'Withdrawn';
  const kind = given?.kind ?? given?.action ?? '';
  if (given && 'answers' in given) return given.answers === null ? 'Declined' : 'Answered';
  if (kind.startsWith('deny')) return given.interrupt ? 'Denied, turn ended' : 'Denied';
  if (kind.startsWith('allow')) {
    return scope === 'session' ? 'Allowed for the session' : isPlan(request) ? 'Approved'
      : 'Allowed';
  }
  return { accept: request.kind === 'login' ? 'Logged in' : 'Answered', decline: 'Declined',
    cancel: 'Cancelled' }[kind] ?? 'Answered';
}
