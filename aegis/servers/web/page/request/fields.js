// What a person fills in: the questions of an agent, and a form by its schema.
import { html } from '../lib.js';
import { draft } from '../drafts.js';
import { Exact } from './exact.js';

/** What was filled in outlives the view and the page. Returns [values, set(name, value)]. */
export function useFilled(id) {
  const one = draft(`request/${id}`);
  return [one.value ?? {}, (name, value) => { one.value = { ...one.value, [name]: value }; }];
}
export const clearFilled = id => { draft(`request/${id}`).value = null; };

/** The answers to questions as they are sent; null while one has none. */
export function answersOf(questions, values) {
  const answers = {};
  for (const { text, isMany } of questions) {
    const { picked = [], other = '', isOther = false } = values[text] ?? {};
    const own = isOther && other.trim() ? [other.trim()] : [];
    const all = isMany ? [...picked, ...own] : own.length ? own : isOther ? [] : picked;
    if (!all.length) return null;
    answers[text] = isMany ? all : all[0];
  }
  return answers;
}

/** One question: its options, and an answer in other words.
 * @param {{id: string, index: number, question: any, value?: any, onChange: Function}} props */
export function Question({ id, index, question, value = {}, onChange }) {
  const { text, isMany, options } = question, name = `${id}-${index}`;
  const { picked = [], other = '', isOther = !options.length } = value;
  const type = isMany ? 'checkbox' : 'radio';
  const pick = label => onChange(isMany
    ? { ...value, picked: picked.includes(label) ? picked.filter(each => each !== label)
      : [...picked, label] }
    : { ...value, picked: [label], isOther: false });
  return html`<fieldset class="options"><legend dir="auto"><${Exact}>${text}<//></legend>
    ${options.map(each => html`<label key=${each.label}><input type=${type} name=${name}
      checked=${!(isOther && !isMany) && picked.includes(each.label)}
      onChange=${() => pick(each.label)} /><span dir="auto"><${Exact}>${each.label}<//>
      ${each.description && html`<span class="quiet"> · ${String(each.description)}</span>`}
      </span></label>`)}
    <div class="other-answer">${options.length > 0 && html`<label><input type=${type} name=${name}
      checked=${isOther} onChange=${() => onChange({ ...value, isOther: !isMany || !isOther })} />
      <span>Something else</span></label>`}
    ${isOther && html`<textarea class="input" rows="1" dir="auto" value=${other}
      aria-label=${`Your own answer to: ${text}`} placeholder="In your own words"
      onInput=${event => onChange({ ...value, isOther: true, other: event.target.value })} />`}
    </div></fieldset>`;
}

/** One field of a form, by its type. */
export function FormField({ id, field, value, onChange }) {
  const { name, label, rule, type, choices, isRequired } = field, note = rule.description;
  const shown = value ?? rule.default, described = note && html`<span class="note">${note}</span>`;
  const title = html`<span class="label"><bdi>${label}</bdi>${!isRequired && html`<span
    class="quiet"> (optional)</span>`}</span>`;
  if (type === 'boolean') {
    return html`<label class="check"><input type="checkbox" checked=${shown === true}
      onChange=${event => onChange(event.target.checked)} />
      <span>${title}${described}</span></label>`;
  }
  if (type === 'array' && choices) {
    const all = Array.isArray(shown) ? shown : [];
    return html`<fieldset class="options"><legend>${title}</legend>${described}
      ${choices.map(([each, words]) => html`<label key=${each}><input type="checkbox"
        checked=${all.includes(each)} onChange=${() => onChange(all.includes(each)
          ? all.filter(one => one !== each) : [...all, each])} /><bdi>${words}</bdi></label>`)}
      </fieldset>`;
  }
  if (choices) {
    return html`<label class="field">${title}<select class="input" required=${isRequired}
      onChange=${event => onChange(event.target.value)}><option value=""
        selected=${!shown}>—</option>
      ${choices.map(([each, words]) => html`<option key=${each} value=${each}
        selected=${shown === each}>${words}</option>`)}</select>${described}</label>`;
  }
  if (type === 'array') {
    return html`<label class="field">${title}<textarea class="input" rows="3" dir="auto"
      placeholder="One a line" value=${(Array.isArray(shown) ? shown : []).join('\n')}
      onInput=${event => onChange(event.target.value.split('\n').filter(Boolean))} />
      ${described}</label>`;
  }
  const isNumber = type === 'number' || type === 'integer';
  const kind = isNumber ? 'number' : { email: 'email', uri: 'url', date: 'date',
    'date-time': 'text' }[rule.format] ?? 'text';
  return html`<label class="field">${title}<input class="input" type=${kind} dir="auto"
    name=${`${id}-${name}`} value=${shown ?? ''} required=${isRequired} autocomplete="off"
    step=${type === 'number' ? 'any' : null} min=${rule.minimum} max=${rule.maximum}
    minlength=${rule.minLength} maxlength=${rule.maxLength}
    onInput=${event => onChange(event.target.value)} />${described}</label>`;
}
