// Draws the page from the data that stands in it.
const data = JSON.parse(byId("data").textContent);

byId("sources").textContent = "heddle report of " + data.database + (data.against === null ? "" : ", against " + data.against.database);
drawTiles(data);

const choice = byId("workload-choice");
choice.replaceChildren(...data.workloads.map((row, place) => element("option", { value: place }, workloadText(row) + "  " + row.device)));
choice.addEventListener("change", () => drawWorkload(data.workloads[Number(choice.value)]));

function chooseWorkload(row) {
  choice.value = String(data.workloads.indexOf(row));
  drawWorkload(row);
  byId("workload").scrollIntoView();
}

drawWinners(data, chooseWorkload);
drawSlow(data, chooseWorkload);
drawGpus(data);
drawAgainst(data);
// The one with the most to see first.
const first = data.workloads.reduce((best, row, place) => (row.trials.rows.length > data.workloads[best].trials.rows.length ? place : best), 0);
choice.value = String(first);
drawWorkload(data.workloads[first]);
followScheme();
