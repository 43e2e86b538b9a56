"use strict";

const escapeText = (text) =>
  String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

/** A number to read: about 3 significant digits, no exponent in the usual range. */
function readable(value) {
  if (value === null || value === undefined) return "–";
  if (value < 0) return `−${readable(-value)}`;
  if (Number.isInteger(value) && value < 1e7) return String(value);
  if (value !== 0 && (value < 1e-3 || value >= 1e5)) return value.toExponential(1);
  return value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : value >= 0.1 ? 3 : 4);
}

/** Eight colours; from the ninth run on they come again, mixed with the ink. */
const colour = (run) => run < 8 ? `var(--run-${run})`
  : `color-mix(in oklab, var(--run-${run % 8}) ${Math.round(100 * 0.6 ** Math.floor(run / 8))}%, var(--ink))`;
const swatch = (run) => `<span class="swatch" style="color:${colour(run)}"></span>`;
const hiddenRuns = new Set();

/** Round tick positions, about `count` of them, within [low, high]. */
function ticks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].find((m) => m * power >= rough * 0.999) * power;
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) found.push(i * step);
  return found;
}

const tickText = (value, all) => {
  const step = all.length > 1 ? all[1] - all[0] : 1;
  const [unit, suffix] = step >= 1e6 ? [1e6, "M"] : step >= 1000 ? [1000, "k"] : [1, ""];
  const scaled = step / unit;
  if (scaled < 1e-4) return value ? value.toExponential(1).replace("-", "−") : "0";
  const digits = Math.max(0, Math.ceil(-Math.log10(scaled) - 1e-9));
  const halves = Math.abs(scaled * 10 ** digits - Math.round(scaled * 10 ** digits)) > 1e-6;
  return (value / unit).toFixed(digits + (halves ? 1 : 0)).replace("-", "−") + (value ? suffix : "");
};

/** Moving mean over `width` points around each one, fewer at the ends. */
function movingMean(points, width) {
  return points.map((point, i) => {
    const start = i - Math.floor(width / 2);
    const part = points.slice(Math.max(0, start), start + width);
    return [point[0], part.reduce((sum, p) => sum + p[1], 0) / part.length];
  });
}

/**
 * Draws one chart into a figure and keeps it up to date with size and hidden runs.
 *
 * spec: {title, unit, note, x: {label, log2}, y: [low, high] or null, variants: [label], series:
 * [{run, label, variant, kind: "line" | "dots" | "seed" | "mean", points: [[x, y]], band:
 * [[x, low, high]], window}]}
 */
function chart(figure, spec) {
  const variants = spec.variants || [];
  figure.innerHTML = `<figcaption><h3>${escapeText(spec.title)}
      ${spec.unit ? `<span class="unit">· ${escapeText(spec.unit)}</span>` : ""}</h3>
    <p class="note">${escapeText(spec.note || "")}<span class="variants">${variants
      .map((v, i) => `<span><svg width="22" height="6"><line x2="22" y1="3" y2="3" stroke="currentColor"
        stroke-width="2" stroke-dasharray="${dash(i)}"/></svg>${escapeText(v)}</span>`)
      .join("")}</span></p></figcaption>
    <svg class="chart" role="img" aria-label="${escapeText(spec.title)}"></svg>
    <div class="tooltip" hidden></div>`;
  const svg = figure.querySelector("svg.chart");
  const tip = figure.querySelector(".tooltip");
  let place = null;

  const draw = () => { place = paint(svg, spec); tip.hidden = true; };
  new ResizeObserver(draw).observe(svg);
  document.addEventListener("runs", draw);
  svg.addEventListener("pointerleave", () => { tip.hidden = true; cursor(svg, null); });
  svg.addEventListener("pointermove", (event) => {
    if (place) hover(event, svg, tip, figure, spec, place);
  });
}

const dash = (variant) => ["", "5 4", "1.5 3"][variant || 0];

const shown = (spec) => spec.series.filter((s) => !hiddenRuns.has(s.run) && s.points.length);

/** Where numbers lie in the picture. */
function scales(spec, width, height) {
  const series = shown(spec);
  const all = spec.series.filter((s) => s.points.length);
  const xs = all.flatMap((s) => s.points.map((p) => p[0]));
  let [xLow, xHigh] = [Math.min(...xs), Math.max(...xs)];
  if (xLow === xHigh) [xLow, xHigh] = [xLow - 1, xHigh + 1];
  let [low, high] = spec.y || [Infinity, -Infinity];
  if (!spec.y) {
    for (const s of series.length ? series : all) {
      for (const p of s.points) { low = Math.min(low, p[1]); high = Math.max(high, p[1]); }
      for (const b of s.band || []) { low = Math.min(low, b[1]); high = Math.max(high, b[2]); }
    }
    if (spec.zero) low = Math.min(low, 0);
    const room = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
    [low, high] = [spec.zero && low === 0 ? 0 : low - room, high + room];
  }
  const yTicks = ticks(low, high, 4);
  const left = 14 + 6.4 * Math.max(...yTicks.map((t) => tickText(t, yTicks).length));
  const [right, top, bottom] = [10, 8, 36];
  const warp = spec.x.log2 ? Math.log2 : (v) => v;
  const whole = xs.every(Number.isInteger);  // layers, steps: nothing stands between them
  const across = (width - left - right) / (warp(xHigh) - warp(xLow));
  return {
    left, top, width, height, right: width - right, bottom: height - bottom, yTicks,
    xTicks: spec.x.log2 ? [...new Set(xs)].sort((a, b) => a - b)
      : ticks(xLow, xHigh, width / 75).filter((t) => !whole || Math.abs(t - Math.round(t)) < 1e-9),
    x: (v) => left + (warp(v) - warp(xLow)) * across,
    y: (v) => height - bottom - ((v - low) / (high - low)) * (height - top - bottom),
  };
}

const path = (points, at) =>
  points.map((p, i) => `${i ? "L" : "M"}${at.x(p[0]).toFixed(1)} ${at.y(p[1]).toFixed(1)}`).join("");

function paint(svg, spec) {
  const { clientWidth: width, clientHeight: height } = svg;
  if (!width || !spec.series.some((s) => s.points.length)) return null;
  const at = scales(spec, width, height);
  const parts = [];
  for (const t of at.yTicks) {
    parts.push(`<line class="grid" x1="${at.left}" x2="${at.right}" y1="${at.y(t)}" y2="${at.y(t)}"/>
      <text x="${at.left - 8}" y="${at.y(t) + 4}" text-anchor="end">${tickText(t, at.yTicks)}</text>`);
  }
  parts.push(`<line class="axis" x1="${at.left}" x2="${at.right}" y1="${at.bottom}" y2="${at.bottom}"/>`);
  for (const t of at.xTicks) {
    parts.push(`<line class="axis" x1="${at.x(t)}" x2="${at.x(t)}" y1="${at.bottom}" y2="${at.bottom + 4}"/>
      <text x="${at.x(t)}" y="${at.bottom + 16}" text-anchor="middle">${tickText(t, spec.x.log2 ? [0, 1] : at.xTicks)}</text>`);
  }
  parts.push(`<text x="${(at.left + at.right) / 2}" y="${at.bottom + 32}" text-anchor="middle">${escapeText(spec.x.label)}</text>`);
  for (const s of shown(spec)) {
    if (s.band?.length) {
      const upper = s.band.map((b) => [b[0], b[2]]);
      const lower = s.band.map((b) => [b[0], b[1]]).reverse();
      parts.push(`<path d="${path([...upper, ...lower], at)}Z" style="fill:${colour(s.run)}" opacity=".14"/>`);
    }
    const stroke = `style="stroke:${colour(s.run)}" fill="none" stroke-linejoin="round" stroke-dasharray="${dash(s.variant)}"`;
    if (s.kind === "dots") {
      parts.push(...s.points.map((p) => `<circle cx="${at.x(p[0])}" cy="${at.y(p[1])}" r="3" style="fill:${colour(s.run)}" opacity=".75"/>`));
    } else if (s.kind === "seed") {
      parts.push(`<path d="${path(s.points, at)}" ${stroke} stroke-width="1" opacity=".35"/>`);
    } else {
      const smooth = s.window > 1;
      if (smooth) parts.push(`<path d="${path(s.points, at)}" ${stroke} stroke-width="1" opacity=".25"/>`);
      parts.push(`<path d="${path(smooth ? movingMean(s.points, s.window) : s.points, at)}" ${stroke} stroke-width="2"/>`);
      if (s.points.length <= 25 && s.kind !== "curve") {
        parts.push(...s.points.map((p) => `<circle cx="${at.x(p[0])}" cy="${at.y(p[1])}" r="2.6" style="fill:${colour(s.run)}"/>`));
      }
    }
  }
  parts.push('<g class="pointer"></g>');
  svg.innerHTML = parts.join("");
  return at;
}

function cursor(svg, found, at) {
  const group = svg.querySelector(".pointer");
  if (!group) return;
  group.innerHTML = !found ? "" :
    (found.line === null ? "" : `<line class="cursor" x1="${found.line}" x2="${found.line}" y1="${at.top}" y2="${at.bottom}"/>`) +
    found.dots.map(([s, p]) => `<circle cx="${at.x(p[0])}" cy="${at.y(p[1])}" r="4" style="fill:${colour(s.run)};stroke:var(--card)" stroke-width="1.5"/>`).join("");
}

function hover(event, svg, tip, figure, spec, at) {
  const box = svg.getBoundingClientRect();
  const [mx, my] = [event.clientX - box.left, event.clientY - box.top];
  const scatter = spec.series.some((s) => s.kind === "dots");
  const candidates = shown(spec).filter((s) => (scatter ? s.kind === "dots" : true));
  if (!candidates.length) return;
  const far = (p) => (scatter ? Math.hypot(at.x(p[0]) - mx, at.y(p[1]) - my) : Math.abs(at.x(p[0]) - mx));
  const nearest = candidates.map((s) => [s, s.points.reduce((best, p) => (far(p) < far(best) ? p : best))]);
  const closest = Math.min(...nearest.map(([, p]) => far(p)));
  const dots = nearest.filter(([, p]) => far(p) <= (scatter ? closest : closest + 12));
  const x = dots[0][1][0];
  const rows = dots.map(([s, p]) => {
    const band = (s.band || []).find((b) => b[0] === p[0]);
    const name = [s.label, (spec.variants || [])[s.variant]].filter(Boolean).join(" · ");
    const range = band ? ` <span class="note">${readable(band[1])} to ${readable(band[2])}</span>` : "";
    return `<tr><td>${swatch(s.run)}${escapeText(name)}${range}</td><td>${readable(p[1])}</td></tr>`;
  });
  tip.innerHTML = `<div class="note">${escapeText(spec.x.label)} ${readable(x)}${
    dots[0][1][2] ? ` · ${escapeText(dots[0][1][2])}` : ""}</div><table>${rows.join("")}</table>`;
  tip.hidden = false;
  cursor(svg, { line: scatter ? null : at.x(x), dots }, at);
  const frame = figure.getBoundingClientRect();
  const left = mx > box.width / 2 ? mx - tip.offsetWidth - 14 : mx + 14;
  tip.style.left = `${box.left - frame.left + left}px`;
  tip.style.top = `${box.top - frame.top + Math.max(0, my - tip.offsetHeight - 10)}px`;
}

/** The bar of runs; a click hides a run in every chart. */
function legend(bar, runs) {
  bar.innerHTML = runs.map((run, i) =>
    `<button class="chip" aria-pressed="true" data-run="${i}" title="show or hide">${swatch(i)}${escapeText(run.label)}</button>`).join("");
  bar.addEventListener("click", (event) => {
    const chip = event.target.closest("button");
    if (!chip) return;
    const run = Number(chip.dataset.run);
    hiddenRuns.has(run) ? hiddenRuns.delete(run) : hiddenRuns.add(run);
    chip.setAttribute("aria-pressed", String(!hiddenRuns.has(run)));
    document.dispatchEvent(new Event("runs"));
  });
}

function drawSections(parent, sections) {
  for (const section of sections) {
    if (section.folded) { parent.append(foldedTable(section)); continue; }
    const block = document.createElement("section");
    block.innerHTML = `<h2>${escapeText(section.title)}</h2><p class="intro">${escapeText(section.intro)}</p>
      <div class="charts ${section.wide ? "wide" : ""}"></div>`;
    parent.append(block);
    drawCharts(block.lastElementChild, section.charts);
    if (section.table) block.lastElementChild.append(tableElement(section.table));
  }
}

function drawCharts(box, specs) {
  for (const spec of specs) {
    const figure = document.createElement("figure");
    box.append(figure);
    chart(figure, spec);
  }
}

function foldedTable({ title, intro, table }) {
  const block = document.createElement("details");
  block.innerHTML = `<summary>${escapeText(title)} (${table.rows.length})</summary><p class="intro">${escapeText(intro)}</p>`;
  block.append(tableElement(table));
  return block;
}

function tableElement({ head, rows }) {
  const box = document.createElement("div");
  const cells = (tag, row) => row.map((v) => `<${tag}>${escapeText(v)}</${tag}>`).join("");
  box.className = "table";
  box.innerHTML = `<table><tr>${cells("th", head)}</tr>${rows.map((r) => `<tr>${cells("td", r)}</tr>`).join("")}</table>`;
  return box;
}
