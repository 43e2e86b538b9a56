/* Draws the curves of a diagnosis in the sections of their topics, and responses, if there are any;
   charts.js and tokens.js come before it. */

const data = JSON.parse(document.getElementById("data").textContent);
legend(document.getElementById("legend"), data.runs);
data.charts.forEach((specs, topic) => drawCharts(document.getElementById(`charts-${topic}`), specs));
if (data.samples) drawSamples();
