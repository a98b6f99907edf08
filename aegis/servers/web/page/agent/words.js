// Words of agents: what they may do, and the choices that they offer.

/** @type {[string, string][]} */
export const PERMISSIONS = [['read', 'Reads only'], ['plan', 'Plans first'],
  ['ask', 'Asks for each step'], ['write', 'Edits, asks to run'], ['full', 'Asks for nothing']];
/** @type {[string, string][]} */
export const THINKING = [['', 'default thinking'], ['on', 'thinks'], ['off', 'no thinking']];

const same = (model, name) => model.name === name || model.full_name === name;

/** The model of `models` that an agent uses now. */
export const modelOf = (models, name) => models.find(each => same(each, name));

/** Models as a choice; the one in use is among them, also if it is not offered. */
export function modelChoice(models, name) {
  const known = modelOf(models, name);
  const of = models.map(each => [each.name, each.title || each.full_name || each.name]);
  return { of: known || !name ? of : [[name, name], ...of], value: known?.name ?? name };
}

export const effortChoice = (efforts, value) => {
  const all = !value || efforts.includes(value) ? efforts : [value, ...efforts];
  return [...(value ? [] : [['', 'default effort']]), ...all.map(each => [each, `${each} effort`])];
};

/** Thinking as a choice: a number of tokens that was set stays in it. */
export const thinkingChoice = value => THINKING.some(([id]) => id === value) ? THINKING
  : [...THINKING, [value, `${value} tokens`]];

/** Whether an agent can no longer be written to, until it is resumed. */
export const isOver = agent => agent.state === 'closed';
export const isBusy = agent => ['working', 'blocked', 'starting'].includes(agent.state);

/** A state in a line: its word and the reason. */
export const saidOf = ({ word, why }) => !why ? word : why.startsWith(word) ? why
  : `${word}: ${why}`;
/** A path as it is read: below the directory of its agent, without that. */
export const below = (path, directory) =>
  directory && path.startsWith(`${directory}/`) ? path.slice(directory.length + 1) : path;
