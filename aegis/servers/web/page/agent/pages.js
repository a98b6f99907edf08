// The views of agents.
export { AgentPage } from './page.js';
export { Agents } from './list.js';
export { Changes } from './changes.js';
export { Worktrees } from './worktrees.js';
