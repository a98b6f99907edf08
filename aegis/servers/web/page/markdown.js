// Markdown and code as elements: a chunk of its own, loaded with the first text of an agent.
// Tokens become vnodes; markup is never made from text, so there is nothing to sanitise.
import MarkdownIt from 'markdown-it';
import hljs from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import c from 'highlight.js/lib/languages/c';
import css from 'highlight.js/lib/languages/css';
import diff from 'highlight.js/lib/languages/diff';
import go from 'highlight.js/lib/languages/go';
import java from 'highlight.js/lib/languages/java';
import javascript from 'highlight.js/lib/languages/javascript';
import json from 'highlight.js/lib/languages/json';
import python from 'highlight.js/lib/languages/python';
import rust from 'highlight.js/lib/languages/rust';
import sql from 'highlight.js/lib/languages/sql';
import xml from 'highlight.js/lib/languages/xml';
import yaml from 'highlight.js/lib/languages/yaml';
import { Fragment, h, html, useMemo, useRef } from './lib.js';
import { Copy } from './ui.js';

const languages = { bash, c, css, diff, go, java, javascript, json, python, rust, sql, xml, yaml };
for (const [name, rules] of Object.entries(languages)) hljs.registerLanguage(name, rules);
const ALIASES = { 'c++': 'c', cpp: 'c', console: 'bash', shell: 'bash', shellsession: 'bash',
  typescript: 'javascript', tsx: 'javascript', toml: 'yaml', ini: 'yaml', vue: 'xml' };

const parser = new MarkdownIt({ html: false, linkify: true });
parser.linkify.set({ fuzzyLink: false, fuzzyEmail: false }); // README.md and setup.py are no links
const MOST_COLOURED = 20_000, MOST_CHARS = 100_000, MOST_TOKENS = 20_000;
const TAGS = { h1: 'h3', h2: 'h4', h3: 'h5', h4: 'h6', h5: 'h6', h6: 'h6' };
const PLAIN = new Set(['p', 'ul', 'ol', 'li', 'blockquote', 'thead', 'tbody', 'tr', 'th', 'td',
  'em', 'strong', 's']);
const DIRECTED = new Set(['p', 'li', 'blockquote', 'th', 'td', 'h3', 'h4', 'h5', 'h6']);
// The patterns of highlight.js need the square of the length of a word, or of a gap.
const LONG_WORD = /(?<!\S)\S{1000}|(?<!\s)\s{1000}/;
const TASK = /^\[([ xX])\] /;

/** Return code as nodes with colours, or as it is: a very long one, or of an unknown language. */
export function coloured(code, name) {
  const language = ALIASES[name] ?? name;
  if (!language || !hljs.getLanguage(language) || code.length > MOST_COLOURED
    || LONG_WORD.test(code)) return code;
  const walk = node => typeof node === 'string' ? node
    : h('span', node.scope ? { class: `hl-${node.scope.split('.')[0].replace(/\W/g, '')}` } : null,
      node.children.map(walk));
  return /** @type {any} */ (hljs.highlight(code, { language, ignoreIllegals: true }))
    ._emitter.rootNode.children.map(walk);
}

/**
 * A block of code with its language and a button.
 * @param {{text: string, language?: string}} props
 */
export function Code({ text, language = '' }) {
  const nodes = useMemo(() => coloured(text, language), [text, language]);
  return html`<figure class="code"><figcaption><span>${language || 'text'}</span>
    <${Copy} text=${text} label="Copy the code" /></figcaption>
    <pre tabindex="0" role="group" aria-label="Code"
      dir="ltr"><code>${nodes}</code></pre></figure>`;
}

const isSafe = address => /^(https?:\/\/|mailto:)[^\s]/i.test(address);

function linked(address, children) {
  if (!isSafe(address)) return h('span', null, children);
  return h('a', { href: address, target: '_blank', rel: 'noopener noreferrer', title: address },
    children);
}

function element(opening, children) {
  const { tag } = opening;
  if (opening.hidden) return h(Fragment, null, children);
  if (tag === 'a') return linked(opening.attrGet('href') ?? '', children);
  if (tag === 'table') {
    return h('div', { class: 'scroll', tabindex: 0, role: 'group', 'aria-label': 'Table' },
      h('table', null, children));
  }
  const name = TAGS[tag] ?? (PLAIN.has(tag) ? tag : 'span');
  if (opening.meta?.task !== undefined) {
    const isDone = opening.meta.task;
    return h('li', { class: 'todo', dir: 'auto' }, h('span', { class: 'box', role: 'img',
      'aria-label': isDone ? 'done' : 'open' }, isDone ? '☑' : '☐'), h('div', null, children));
  }
  const align = /text-align:(right|center)/.exec(opening.attrGet('style') ?? '')?.[1];
  return h(name, { dir: DIRECTED.has(name) ? 'auto' : null, class: align ?? null,
    ...(tag === 'ol' && opening.attrGet('start') ? { start: opening.attrGet('start') } : null) },
  children);
}

function leaf(token) {
  switch (token.type) {
    case 'text': return token.content;
    case 'softbreak': return '\n';
    case 'hardbreak': return h('br', null);
    case 'hr': return h('hr', null);
    case 'code_inline': return h('code', { dir: 'ltr' }, token.content);
    case 'fence': case 'code_block': {
      const language = (token.info ?? '').trim().split(/\s/)[0].toLowerCase();
      return h(Code, { text: token.content.replace(/\n$/, ''), language });
    }
    case 'image': { // never loaded: an address in a text would tell its owner who reads it
      const address = token.attrGet('src') ?? '';
      const words = `[image: ${token.content || address}]`;
      return h('span', { class: 'quiet' }, linked(address, words));
    }
    default: return token.content;
  }
}

/** Mark the items of a list that begin with a box. */
function markTasks(tokens) {
  for (let at = 0; at + 2 < tokens.length; at++) {
    if (tokens[at].type !== 'list_item_open' || tokens[at + 2].type !== 'inline') continue;
    const first = tokens[at + 2].children?.[0], found = first && TASK.exec(first.content);
    if (!found) continue;
    tokens[at].meta = { task: found[1] !== ' ' };
    first.content = first.content.slice(4);
  }
}

function built(tokens) {
  const stack = [{ token: null, nodes: [] }];
  for (const token of tokens) {
    const top = stack.at(-1);
    if (token.type === 'inline') top.nodes.push(h(Fragment, null, built(token.children)));
    else if (token.nesting === 1) stack.push({ token, nodes: [] });
    else if (token.nesting === -1 && stack.length > 1) {
      stack.pop();
      stack.at(-1).nodes.push(element(top.token, top.nodes));
    } else top.nodes.push(leaf(token));
  }
  return stack[0].nodes;
}

/** The place of a line in a text. */
function placeOf(text, line) {
  let at = 0;
  for (let n = 0; n < line; n++) {
    at = text.indexOf('\n', at) + 1;
    if (at === 0) return text.length;
  }
  return at;
}

/** Whether a text says more than is shown of it: the address of a link, a cell too many. */
export function isPartly(text) {
  const count = part => part.match(/[\p{L}\p{N}]/gu)?.length ?? 0;
  const tokens = text.length > MOST_CHARS ? null : parser.parse(text, {});
  if (!tokens || tokens.length > MOST_TOKENS) return false; // it is shown as it is
  const shown = all => all.reduce((sum, { content, children, info }) => sum + (children
    ? shown(children) : count(content) + count(info.trim().split(/\s/)[0])), 0);
  return count(text) > shown(tokens);
}

/** Parse a text; return its blocks as nodes, where the last begins, and how many are before it. */
function parsed(text, env) {
  const tokens = parser.parse(text, env);
  if (tokens.length > MOST_TOKENS) {
    return { nodes: [h('pre', { class: 'plain' }, text)], last: 0, head: 0 };
  }
  markTasks(tokens);
  const nodes = [];
  let from = 0, line = 0, head = 0;
  tokens.forEach((token, at) => {
    if (token.level !== 0) return;
    if (token.nesting >= 0 && token.map) line = token.map[0];
    if (token.nesting > 0) return;
    head = nodes.length;
    nodes.push(...built(tokens.slice(from, at + 1)));
    from = at + 1;
  });
  return { nodes, last: placeOf(text, line), head };
}

/** Leave out the links that are defined from the last block on: their addresses may grow too. */
function leaveOpen(env, text) {
  if (!Object.keys(env.references ?? {}).length) return;
  const last = /** @type {any} */ ({});
  parser.parse(text, last);
  for (const [name, { href }] of Object.entries(last.references ?? {})) {
    if (env.references[name]?.href === href) delete env.references[name];
  }
}

/**
 * A text as elements. Of a text that grows only the last block is parsed again.
 * @param {{text: string}} props
 */
export function Markdown({ text }) {
  const known = useRef({ text: '', nodes: [], last: 0, head: 0, env: {} }), state = known.current;
  if (state.text !== text || !state.nodes.length) {
    const clean = text.replace(/\r\n?/g, '\n');
    if (clean.length > MOST_CHARS) {
      return html`<div class="md"><pre class="plain" dir="auto">${clean}</pre></div>`;
    }
    const isLonger = state.nodes.length > 0 && clean.startsWith(state.text);
    const from = isLonger ? state.last : 0, env = isLonger ? state.env : {};
    const found = parsed(clean.slice(from), env);
    leaveOpen(env, clean.slice(from + found.last));
    // The last block may be none any more: a definition of a link has no node.
    const before = isLonger ? state.nodes.slice(0, state.head) : [];
    known.current = { text: clean, env, last: from + found.last, head: before.length + found.head,
      nodes: [...before, ...found.nodes] };
  }
  return html`<div class="md">${known.current.nodes}</div>`;
}
