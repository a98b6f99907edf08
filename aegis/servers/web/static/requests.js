// Requests to a person: shown with all of what would happen, answered with the digest that was shown.
import { change } from './difference.js';
import { ago, el, line, plain, toast } from './dom.js';

const WHOLE = 1e6; // nothing of an input is left out: what is cut off would be allowed unseen
const GUARD_MS = 400; // a request that appears, or moves, under a finger or key is not answered by it
const LOOK_MS = 100;

/** Where cards were when last looked at, and since when they are there. */
const places = new WeakMap();

/** Note where a card is now; return for how many milliseconds it has been there. */
function rested(card) {
  const { left, top } = card.getBoundingClientRect(), place = `${left} ${top}`, known = places.get(card), now = performance.now();
  if (known?.place === place) return now - known.since;
  places.set(card, { place, since: now });
  return 0;
}

// A card moves with whatever is above it: looking now and then finds every cause.
setInterval(() => {
  if (document.visibilityState !== 'visible') return;
  for (const card of document.querySelectorAll('[data-request]')) card.classList.toggle('moved', rested(card) < GUARD_MS);
}, LOOK_MS);

export function requestCard(request, app) {
  const shownAt = performance.now();
  const card = el('li.ask', { data: { request: request.id } });
  const values = app.store.answers.get(request.id) ?? {}; // what was filled in before another page was looked at
  app.store.answers.set(request.id, values);
  const act = (answer, extra = {}) => async event => {
    if (performance.now() - shownAt < GUARD_MS) return;
    if (event.detail > 0 && rested(card) < GUARD_MS) { toast('the request moved just now: look at it, and click again'); return; }
    for (const button of card.querySelectorAll('button')) button.disabled = true;
    try {
      const reply = await app.link.call('request_answer', { id: request.id, digest: request.digest, answer, ...extra, ...(answer === 'allow' && Object.keys(values).length ? { values } : {}) });
      if (reply.outcome !== 'applied') toast(reply.text, 'bad');
    } catch (error) {
      toast(error.message, 'bad');
      for (const button of card.querySelectorAll('button')) button.disabled = false;
    }
  };
  const word = { permission: 'asks to use', question: 'asks', elicitation: 'asks', login: 'needs a login' }[request.kind] ?? 'asks';
  card.append(el('div.top', {}, el('span.dot.bad'), request.workflow ? el('a', { href: `#/w/${request.workflow}` }, el('b', {}, line(app.store.workflows.get(request.workflow)?.name ?? 'a workflow'))) : el('b', {}, line(request.handle)), el('span.quiet', {}, word), request.tool && !request.workflow && el('span.chip', {}, line(request.tool, 60)), el('span.grow'), el('span.quiet.small', {}, `${ago(request.created)} ago`)));
  if (!request.workflow && (request.reason || (request.title && request.title !== request.tool))) card.append(el('p', {}, plain([request.title !== request.tool && request.title, request.reason].filter(Boolean).join(' – '), 1000)));
  const form = request.kind === 'question' ? questions(request, values) : request.kind === 'elicitation' ? fields(request, values) : null;
  if (form) card.append(form);
  else if (request.input && Object.keys(request.input).length) card.append(...shownInput(request));
  else if (request.excerpt) card.append(el('pre', { tabindex: '0' }, `${plain(request.excerpt, 4000)}\n… ${request.input_bytes} bytes in all: it can only be denied here`));
  const acts = el('div.acts');
  const mayAllow = request.input !== null;
  if (request.kind === 'permission') {
    const allowing = permits(request).map(([words, extra]) => el('button.btn', { type: 'button', onclick: act('allow', extra), disabled: !mayAllow }, words));
    const deny = el('button.btn.no', { type: 'button', onclick: act('deny') }, 'Deny');
    (request.default_to_no ? deny : allowing[0] ?? deny).classList.add('main');
    acts.append(...allowing, deny);
    if (request.needs_person) acts.append(el('span.quiet.small', {}, 'only a person may allow this'));
  } else {
    acts.append(el('button.btn.main', { type: 'button', onclick: act('allow') }, request.kind === 'login' ? 'Done' : 'Answer'), el('button.btn.no', { type: 'button', onclick: act('deny') }, 'Decline'));
  }
  card.append(acts);
  card.gone = () => {
    const { by, state } = app.store.settled.get(request.id) ?? {};
    acts.style.minHeight = `${acts.offsetHeight}px`; // what is below must not move
    acts.replaceChildren(el('span.quiet', {}, by ? `answered by ${line(by, 60)}` : state === 'withdrawn' ? 'withdrawn' : 'settled'));
  };
  return card;
}

// The buttons that allow: of several options of one kind each has its own, which begins with the effect
// because the agent chose the name.
function permits({ options, no_session_scope }) {
  const kinds = [['allow_once', 'Allow once', {}], ...(no_session_scope ? [] : [['allow_session', 'For this session', { scope: 'session' }]])];
  return kinds.flatMap(([kind, words, extra]) => {
    const alike = [...new Map((options ?? []).filter(each => each.kind === kind).map(each => [each.id, each])).values()];
    const [only] = alike, covered = kind === 'allow_session' && only ? `: ${line(only.name || only.id, 100)}` : '';
    return alike.length < 2 ? [[`${words}${covered}`, extra]] : alike.map(each => [`${words}: ${line(each.name || each.id, 60)}`, { ...extra, option: each.id }]);
  });
}

function shownInput({ tool_kind, input }) {
  const { command, plan, ...others } = input;
  if (typeof plan === 'string' && tool_kind === 'plan') return [pre(plan)];
  if (typeof command === 'string' && tool_kind === 'execute') return [pre(`$ ${command}`), ...json(others)];
  const { edits, rest } = editsOf(input);
  return [...edits.flatMap(each => [el('p.file', {}, plain(each.file_path, WHOLE)), ...change(each)]), ...json(rest)];
}

// The changes of files in an input, and what else it has: all of it is shown.
function editsOf(input) {
  const { file_path, old_string, new_string, ...rest } = input;
  if (isShort(old_string, new_string)) return { edits: [{ file_path, old_string, new_string }], rest };
  const content = Array.isArray(input.content) ? input.content : [], isEdit = each => each?.type === 'diff' && isShort(each.oldText ?? '', each.newText) && Object.keys(each).every(name => ['type', 'path', 'oldText', 'newText'].includes(name));
  const edits = content.filter(isEdit).map(each => ({ file_path: each.path, old_string: each.oldText ?? '', new_string: each.newText }));
  const others = content.filter(each => !isEdit(each)), { content: _, ...left } = input;
  return { edits, rest: !edits.length ? input : others.length ? { ...input, content: others } : left };
}

// A longer change would be cut by what draws it.
const isShort = (...texts) => texts.every(text => typeof text === 'string' && text.length < 20000 && text.split('\n').length < 1000);
const json = rest => Object.keys(rest).length ? [pre(JSON.stringify(rest, null, 1))] : [];
const pre = text => el('pre', { tabindex: '0' }, plain(text, WHOLE));

function questions(request, values) {
  return el('div', {}, (request.input?.questions ?? []).map((question, index) => {
    const many = question.multiSelect === true, name = `${request.id}-${index}`, text = String(question.question ?? '');
    return el('fieldset', {}, el('legend', {}, plain(text, 1000)), (question.options ?? []).map(option => el('label', {},
      el('input', { type: many ? 'checkbox' : 'radio', name, checked: many ? (values[text] ?? []).includes(String(option.label)) : values[text] === String(option.label), onchange: event => {
        const label = String(option.label);
        if (!many) values[text] = label;
        else values[text] = [...(values[text] ?? []).filter(each => each !== label), ...(event.target.checked ? [label] : [])];
      } }), el('span', {}, line(option.label), option.description && el('span.quiet', {}, ` – ${line(option.description)}`)))));
  }));
}

function fields(request, values) {
  const { mode, url, schema } = request.input ?? {};
  if (mode === 'url') return el('p', {}, 'It wants you to open ', el('code', {}, plain(url, 2000)), '. Open it yourself if you trust it.');
  return el('div', {}, Object.entries(schema?.properties ?? {}).map(([name, field]) => el('label', {}, el('span', {}, line(field.title ?? name)),
    field.enum ? el('select.field', { onchange: event => { values[name] = event.target.value; } }, el('option', { value: '' }, '—'), field.enum.map(each => el('option', { value: each, selected: values[name] === each }, line(each))))
      : field.type === 'boolean' ? el('input', { type: 'checkbox', checked: values[name] === true, onchange: event => { values[name] = event.target.checked; } })
        : el('input.field', { type: field.type === 'number' || field.type === 'integer' ? 'number' : 'text', value: values[name], oninput: event => { values[name] = event.target.type === 'number' ? Number(event.target.value) : event.target.value; } }))));
}
