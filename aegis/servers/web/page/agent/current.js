// What the palette offers for the agent of the active pane, and for agents at all.
import { actions } from '../actions.js';
import { open } from '../overlay.js';
import { activePane, at, go, panes, parse } from '../place.js';
import { agentOf, call, isReadOnly } from '../store.js';
import { actsOf } from './dialogs.js';
import { Conversations } from './conversations.js';
import { PERMISSIONS } from './words.js';

/** The agents that are shown, by the ids of their pages: closed ones too, which the store does not
 * have, and ones that were renamed meanwhile. */
const shown = new Map();

export const current = {
  /** Note what a page shows, until the returned function is called. */
  show(id, agent, turns, moves) {
    if (!agent) return undefined;
    shown.set(id, { agent, turns, moves });
    return () => shown.delete(id);
  },
};

actions(() => {
  if (isReadOnly.value) return [];
  const { kind, id } = parse(panes.value[activePane.value] ?? panes.value[0]);
  const here = (kind === 'a' || kind === 'changes') && (shown.get(id) ?? { agent: agentOf(id) });
  const { agent = null, turns, moves = null } = here || {};
  const of = agent && at('a', agent.handle), { handle } = agent ?? {};
  const local = agent ? actsOf(agent, turns).filter(each => each !== '-')
    .map(each => ({ ...each, text: `${each.text} (${handle})`, of })) : [];
  const driven = agent && !agent.program && agent.state !== 'closed';
  return [...local,
    moves && { text: `Find in the conversation (${handle})`, key: 'Ctrl F', act: moves.find, of },
    moves && { text: `About ${handle}: usage, files, plan`, act: moves.about, of },
    ...(driven ? PERMISSIONS.map(([permission, words]) => ({ of,
      text: `Permission: ${words} (${handle})`,
      act: () => call('agent_set', { handle, permission }) })) : []),
    { text: 'Continue a conversation that began outside', act: () => open(Conversations),
      words: 'resume' },
    { text: 'Resume a closed agent', act: () => go('agents?show=closed') },
  ];
});
