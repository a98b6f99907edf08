// Everything that can be done, for the palette. Each area registers what it offers.

/**
 * @typedef {{text: string, act: () => any, key?: string, group?: string, words?: string,
 *   of?: string}} Action
 * `of` is the address of the pane that the action is about; `words` are found by a search too.
 */

/** @type {(() => (Action | false | null | undefined)[])[]} */
const sources = [];

/** Register a function that returns the actions as things are; it is called for each palette. */
export const actions = source => { sources.push(source); };

/** @returns {Action[]} */
export const allActions = () => /** @type {Action[]} */ (
  sources.flatMap(each => each()).filter(each => each));
