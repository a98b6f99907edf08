// Plots as plain SVG: stacked bars need no library.
import { html } from '../lib.js';

export const MOST_SERIES = 5;

/** Return a round number that is not below a value: the top of an axis. @param {number} value */
export function top(value) {
  if (value <= 0) return 1;
  const unit = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find(each => each * unit >= value) * unit;
}

/**
 * Stacked bars. `spans` are the bars from left to right, each with its `parts` by series; `says`
 * writes a number. Each part has its words as a title; the table beside it is for other readers.
 * @param {{spans: {key: string, label: string, tick?: string, parts: number[]}[], names: string[],
 *   says: (value: number) => string, label: string, isSmall?: boolean, height?: number}} props
 */
export function Bars({ spans, names, says, label, isSmall, height = isSmall ? 56 : 180 }) {
  const width = isSmall ? 320 : 960, foot = 16, left = isSmall ? 0 : 54;
  const sums = spans.map(each => each.parts.reduce((sum, one) => sum + one, 0));
  const most = top(Math.max(0, ...sums)), step = (width - left) / Math.max(1, spans.length);
  const y = value => height - value / most * (height - 10);
  const lines = isSmall ? [] : [most, most / 2];
  return html`<svg class="bars" viewBox="0 0 ${width} ${height + foot}" role="img"
    aria-label=${label}>
    ${lines.map(value => html`<g key=${value}>
      <line x1=${left} x2=${width} y1=${y(value)} y2=${y(value)} />
      <text x=${left - 6} y=${y(value) + 4} text-anchor="end">${says(value)}</text></g>`)}
    <line x1=${left} x2=${width} y1=${height} y2=${height} />
    ${spans.map((span, at) => {
      let under = 0;
      const x = left + at * step + step * 0.1;
      return html`<g key=${span.key}>${span.parts.map((value, which) => {
        if (!value) return null;
        under += value;
        return html`<rect key=${which} class="s${which}" x=${x} width=${step * 0.8} y=${y(under)}
          height=${Math.max(1, y(under - value) - y(under))}>
          <title>${span.label}${'\n'}${names[which]}: ${says(value)}</title></rect>`;
      })}
      ${span.tick && html`<text y=${height + 13} x=${x > width - 40 ? width : x}
        text-anchor=${x > width - 40 ? 'end' : 'start'}>${span.tick}</text>`}</g>`;
    })}</svg>`;
}

export const Legend = ({ names }) => html`<ul class="legend">${names.map((name, which) =>
  html`<li key=${name}><i class="s${which}"></i><bdi>${name}</bdi></li>`)}</ul>`;
