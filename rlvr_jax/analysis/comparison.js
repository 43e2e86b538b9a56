/* Draws the curves of a comparison from the JSON in the page, and responses, if there are any;
   charts.js and, for these, tokens.js come before it. */

const data = JSON.parse(document.getElementById("data").textContent);
legend(document.getElementById("legend"), data.runs);
drawSections(document.getElementById("curves"), data.sections);
if (data.samples) drawSamples();
