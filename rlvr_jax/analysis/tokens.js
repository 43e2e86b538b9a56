/* Draws responses token by token, coloured by a column, from `data.samples`; charts.js comes before it. */

/* Every column of numbers per token: how it is read from a response, and its scale. */
const COLUMNS = [
  { name: "entropy", scale: "entropy", unit: "nats", value: (r, i) => at(r.entropy, i) },
  { name: "log-prob", scale: "surprise", unit: "nats, −log π", value: (r, i) => negative(at(r.logp, i)) },
  { name: "advantage", scale: "advantage", unit: "", diverging: true, value: (r, i) => at(r.advantage, i) },
  { name: "advantage × ratio", scale: "push", unit: "", diverging: true, value: (r, i) => push(r, i) },
  { name: "chosen", unit: "by the method", flag: true, value: (r, i) => at(r.chosen, i) },
  { name: "clipped", unit: "by its ratio", flag: true, value: (r, i) => at(r.clipped, i) },
  { name: "probability, second − first", scale: "prob_delta", unit: "", diverging: true, value: (r, i) => at(r.prob_delta, i) },
  { name: "entropy, second − first", scale: "entropy_delta", unit: "nats", diverging: true, value: (r, i) => at(r.entropy_delta, i) },
];

/* Those that some response has. */
function presentColumns() {
  const responses = data.samples.flatMap((s) => s.groups.flatMap((g) => g.responses));
  return COLUMNS.filter((c) => responses.some((r) => r.tokens.some((_, i) => c.value(r, i) !== null)));
}

/* A column is stored as one number where all its values are equal. */
const at = (column, i) => (Array.isArray(column) ? column[i] ?? null : column ?? null);
const negative = (v) => (v === null ? null : -v);
const push = (r, i) => {
  const [advantage, ratio] = [at(r.advantage, i), at(r.ratio, i)];
  return advantage === null || ratio === null ? null : advantage * ratio;
};

/* A number without trailing zeros. */
const brief = (v) => String(Number(v.toPrecision(3))).replace("-", "−");

let column = COLUMNS[0];

function tint(value) {
  if (value === null) return "";
  if (column.flag) return value ? "rgba(var(--mark), .42)" : "";
  const share = Math.min(1, Math.abs(value) / data.bounds[column.scale]);
  return `rgba(var(--${column.diverging && value > 0 ? "cool" : "warm"}), ${(share * 0.62).toFixed(3)})`;
}

function drawScale() {
  const scale = document.getElementById("scale");
  if (column.flag) {
    scale.innerHTML = `<i style="width:16px;background:rgba(var(--mark),.42)"></i>${column.name} ${column.unit}`;
    return;
  }
  const bound = data.bounds[column.scale];
  const low = column.diverging ? `−${brief(bound)}` : "0";
  const from = column.diverging ? "rgba(var(--warm),.62), transparent, rgba(var(--cool),.62)" : "transparent, rgba(var(--warm),.62)";
  scale.innerHTML = `${low}<i style="background:linear-gradient(90deg, ${from})"></i>${brief(bound)}${column.diverging ? "" : " or more"} ${column.unit}`;
}

function visible(token) {
  if (token === "") return "∅";
  const text = token.replace(/\r/g, "␍").replace(/\t/g, "⇥\t").replace(/\n/g, "⏎\n");
  return /^ +$/.test(token) ? "␣".repeat(token.length) : text;
}

/* Who wrote a token that the policy did not draw, by the record `origin`. */
const WRITERS = { 1: "written by another model", 2: "written by a tool", 3: "given" };

function describe(r, i) {
  const entry = (name, value) => (value === null ? null : `${name} ${readable(value)}`);
  return [
    `token ${i + 1} of ${r.length}: ${JSON.stringify(r.tokens[i])}`,
    entry("entropy", at(r.entropy, i)),
    entry("log-prob", at(r.logp, i)),
    entry("advantage", at(r.advantage, i)),
    entry("ratio", at(r.ratio, i)),
    entry("advantage × ratio", push(r, i)),
    entry("probability, second − first", at(r.prob_delta, i)),
    entry("entropy, second − first", at(r.entropy_delta, i)),
    at(r.chosen, i) ? "chosen by the method" : null,
    at(r.clipped, i) ? "clipped" : null,
    WRITERS[at(r.origin, i)] ?? null,
  ].filter(Boolean).join("\n");
}

function responseElement(r) {
  const row = document.createElement("div");
  row.className = "response";
  const outcome = r.outcome === null ? "" : r.outcome >= 1 ? '<span class="correct">correct</span>' : r.outcome <= 0 ? "incorrect" : brief(r.outcome);
  const differs = r.reward !== null && r.reward !== r.outcome;
  row.innerHTML = `<div class="verdict">${outcome}${differs ? `<br>R ${brief(r.reward)}` : ""}${r.truncated ? "<br>truncated" : ""}</div><div class="tokens"></div>`;
  const tokens = row.lastElementChild;
  r.tokens.forEach((token, i) => {
    const span = document.createElement("span");
    span.textContent = visible(token);
    span.style.background = tint(column.value(r, i));
    span.title = describe(r, i);
    span.classList.toggle("chosen", Boolean(at(r.chosen, i)));
    span.classList.toggle("clipped", Boolean(at(r.clipped, i)));
    span.classList.toggle("told", Boolean(at(r.origin, i)));
    if (i && at(r.turn, i) !== at(r.turn, i - 1)) tokens.append(document.createElement("hr"));
    if (r.spaced && i) tokens.append(" ");
    tokens.append(span);
  });
  if (r.length > r.tokens.length) {
    const more = document.createElement("span");
    more.className = "note";
    more.textContent = ` … ${r.length - r.tokens.length} more tokens`;
    tokens.append(more);
  }
  for (const text of [r.verifier, ...r.compared].filter(Boolean)) {
    const said = document.createElement("p");
    said.className = "note";
    said.textContent = text;
    tokens.append(said);
  }
  return row;
}

function drawPane(pane, index) {
  const sample = data.samples[index];
  const scroll = pane.querySelector(".scroll");
  const top = scroll.scrollTop;
  scroll.replaceChildren();
  for (const group of sample.groups) {
    const block = document.createElement("div");
    block.className = "group";
    const head = document.createElement("div");
    head.className = "prompt";
    head.textContent = group.prompt;
    const note = document.createElement("p");
    note.className = "note";
    note.textContent = group.note;
    block.append(head, note, ...group.responses.map(responseElement));
    scroll.append(block);
  }
  scroll.scrollTop = top;
  pane.querySelector("header .note").textContent = sample.note;
}

function drawSamples() {
  if (!data.samples.length) return;
  document.getElementById("samples").hidden = false;
  const panes = document.getElementById("panes");
  const views = data.start.map((start) => {
    const pane = document.createElement("article");
    pane.className = "pane";
    pane.innerHTML = `<header><select aria-label="run and step">${data.samples.map((s, i) =>
      `<option value="${i}">${escapeText(data.runs[s.run].label)}${s.step === null ? "" : `, step ${s.step}`}</option>`).join("")}</select>
      <span class="note"></span></header><div class="scroll"></div>`;
    panes.append(pane);
    const select = pane.querySelector("select");
    select.value = String(start);
    const draw = () => drawPane(pane, Number(select.value));
    select.addEventListener("change", () => { pane.querySelector(".scroll").scrollTop = 0; draw(); });
    return draw;
  });
  const buttons = document.getElementById("columns");
  const columns = presentColumns();
  column = columns.find((c) => c.name === data.column) || columns[0] || COLUMNS[0];
  const draw = () => {
    buttons.innerHTML = columns.map((c, i) =>
      `<button data-column="${i}" aria-pressed="${c === column}">${c.name}</button>`).join("");
    drawScale();
    views.forEach((view) => view());
  };
  buttons.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) { column = columns[Number(button.dataset.column)]; draw(); }
  });
  draw();
}
