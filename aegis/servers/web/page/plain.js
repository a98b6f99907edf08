// Foreign text without what hides in it. Pure.

// As aegis/shown_text.py decides: emoji stay whole, with the joiners, selectors and tags that
// belong to them; every other character that is not seen, or changes the order of others, is odd.
// So are those that look like a space and are none.
const SIGN = String.raw`\p{Extended_Pictographic}(?:[\ufe0e\ufe0f]|\p{Emoji_Modifier})?`;
const tagged = text => [...text].map(c => String.fromCodePoint(0xe0000 + c.charCodeAt(0))).join('');
const FLAGS = ['gbeng', 'gbsct', 'gbwls'].map(tagged).join('|');
const EMOJI = String.raw`[0-9#*]\ufe0f\u20e3|\u{1f3f4}(?:${FLAGS})\u{e007f}`
  + String.raw`|${SIGN}(?:\u200d${SIGN})*`;
const UNSEEN = String.raw`(?![\n\t])[\p{C}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f`
  + String.raw`\u2800\u3164\ufe00-\ufe0f\uffa0\u{1d159}\u{e0100}-\u{e01ef}`;
const HIDDEN = new RegExp(`(${EMOJI})|${UNSEEN}]`, 'gu');
const ODD = new RegExp(`(${EMOJI})|${UNSEEN}${String.raw`\u00a0\u2000-\u200a\u202f\u205f\u3000`}]`,
  'gu');
const ESCAPES = new RegExp(String.raw`\u001b(?:\[[0-?]*[ -/]*[@-~]`
  + String.raw`|[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[ -/]*[0-~])`, 'g');
/** A character by its number. */
export const numbered = c => `U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}`;
/** The characters of a text that a person would not see. */
export const oddIn = text => [...text.matchAll(ODD)].filter(([, emoji]) => emoji === undefined);

/** Whether a text has characters that a person would not see. */
export const isOdd = text => oddIn(text).length > 0;

/** Foreign text as it may be shown: what hides, reorders or acts is named; colours are left out. */
export const plain = text => text.replace(ESCAPES, '').replace(/\r\n?/g, '\n')
  .replace(HIDDEN, (c, emoji) => emoji ?? `⟨${numbered(c)}⟩`);
/** All texts in a value of JSON, as they may be shown. */
export const plainIn = value => typeof value === 'string' ? plain(value)
  : Array.isArray(value) ? value.map(plainIn)
    : value && typeof value === 'object'
      ? Object.fromEntries(Object.entries(value).map(([name, each]) => [name, plainIn(each)]))
      : value;
