// Sentences of the daemon in the words of the page: a tool that one names is a button or a page
// here.

/** @type {Record<string, string>} the words on the page for a tool, without 'aegis_' */
const HERE = {
  term_spawn: 'New terminal', term_list: 'Terminals', term_read: 'its history', term_run: 'Run',
  term_keys: 'its screen', term_screen: 'its screen', term_output: 'its history',
  term_wait: 'its commands', term_signal: 'Send a signal', term_resize: 'Set the size',
  term_subscribe: 'Messages', term_unsubscribe: 'Messages', term_close: 'Close the terminal',
  term_broadcast: 'Run on several', spawn: 'Launch an agent', agent_launch: 'Launch an agent',
  list_sessions: 'Agents', list_agents: 'Launch an agent', session_read: 'its conversation',
  agent_show: 'About', agent_wait: 'its conversation', agent_set: 'its settings',
  agent_restart: 'Restart the program', agent_resume: 'Resume', agent_fork: 'Fork',
  agent_purge: 'Delete its transcript', agent_diff: 'Show the changes', agent_merge: 'Merge',
  agent_worktree_list: 'Worktrees', agent_worktree_remove: 'Worktrees', agent_trust: 'trust it',
  agent_conversations: 'a conversation that began elsewhere', agent_takeover: 'Take over',
  agent_continue: 'a conversation that began elsewhere', agent_handback: 'Hand back',
  agent_rewind: 'Set files back', interrupt: 'Interrupt', rename: 'Rename', close: 'Close',
  handoff: 'a message', agent_send: 'a message', inbox_read: 'Inbox', inbox_wait: 'Inbox',
  request_list: 'Home', request_answer: 'Home', enqueue: 'Add a task', cancel: 'Cancel',
  task_status: 'Queues', task_list: 'Queues', task_retry: 'Retry', queue_list: 'Queues',
  queue_pause: 'Pause', queue_resume: 'Resume', canvas_open: 'Open a canvas',
  canvas_list: 'Canvases', canvas_read: 'the canvas', canvas_history: 'its history',
  canvas_subscribe: 'Follow', canvas_unsubscribe: 'Follow', run_workflow: 'Run a workflow',
  workflow_list: 'Workflows', workflow_status: 'the run', workflow_cancel: 'Cancel',
  workflow_resume: 'Resume', workflow_retry: 'Retry', workflow_trust: 'Trust the plugins',
  group_spawn: 'New group', group_spawn_mixed: 'New group', group_list: 'Groups',
  group_status: 'Groups', group_broadcast: 'its order', group_wait_all: 'its replies',
  group_wait_any: 'its replies', group_dissolve: 'Dissolve', group_rename: 'Rename',
  node_forget: 'Forget it', session_new: 'Access', session_list: 'Access', page_list: 'Access',
  page_link: 'Share', history: 'History', status: 'Processes', tree: 'Processes',
};

// Text in quotes is a person's own and is kept.
const TOOL = /(?<![\w'"])aegis_([a-z_]+)(?:\([^()]*\))?(?![\w'"])/g;

/** Return a sentence of the daemon as the page says it: its beginning is no tool, and a capital. */
export function inWords(sentence) {
  const said = String(sentence ?? '').replace(/^aegis_[a-z_]+: /, '')
    .replace(TOOL, (all, tool) => HERE[tool] ? `“${HERE[tool]}”` : all);
  return said.charAt(0).toUpperCase() + said.slice(1);
}
