/* Draws the report from the JSON in the page; charts.js and tokens.js come before it. */

const data = JSON.parse(document.getElementById("data").textContent);

function drawCards() {
  const signed = (v) => (v === null ? "" : `${v < 0 ? "−" : "+"}${Math.abs(v).toFixed(3)}`);
  const fixed = (v) => (v === null ? "–" : v.toFixed(3));
  document.getElementById("cards").innerHTML = data.cards.map((card) => `
    <div class="card"><h3>${escapeText(card.title)}</h3><p class="note">${escapeText(card.note)}</p><dl>${card.rows.map((row) => `
      <dt title="${escapeText(data.runs[row.run].label)}">${swatch(row.run)}</dt>
      <dd>${fixed(row.first)} → <b>${fixed(row.last)}</b></dd><dd class="change">${signed(row.change)}</dd>`).join("")}
    </dl></div>`).join("");
}

/* The page of a run that goes on is written again and again: load it, unless somebody reads here. */
function follow(seconds) {
  if (!seconds) return;
  let touched = 0;
  for (const name of ["pointerdown", "pointermove", "wheel", "keydown"]) {
    addEventListener(name, () => { touched = Date.now(); }, { passive: true });
  }
  setInterval(() => { if (Date.now() - touched >= seconds * 1000) location.reload(); }, seconds * 1000);
}

legend(document.getElementById("legend"), data.runs);
drawCards();
drawSections(document.getElementById("curves"), data.sections);
drawSamples();
follow(data.reload_seconds);
