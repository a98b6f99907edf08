// The pages about terminals, as one part that is loaded later, with their actions.
import { actions } from '../actions.js';
import { open } from '../overlay.js';
import { go } from '../place.js';
import { isReadOnly } from '../store.js';
import { NewWorkspace, Workspaces } from './workspaces.js';

export { Broadcast } from './broadcast.js';
export { Terminals } from './terminals.js';
export { TerminalPage } from './view.js';
export { Workspaces };

actions(() => isReadOnly.value ? [] : [
  { text: 'Run a command on several terminals', act: () => go('broadcast'), words: 'broadcast' },
  { text: 'New workspace', act: () => open(NewWorkspace), words: 'create directory' },
]);
