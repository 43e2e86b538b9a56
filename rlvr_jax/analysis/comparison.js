/* Draws the curves of a comparison from the JSON in the page; charts.js comes before it. */

const data = JSON.parse(document.getElementById("data").textContent);
legend(document.getElementById("legend"), data.runs);
drawSections(document.getElementById("curves"), data.sections);
