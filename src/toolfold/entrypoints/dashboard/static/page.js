"use strict";

// Keep pages current: the server says that something changed, and htmx fetches what is live.
function watch() {
  if (!document.getElementById("live")) return;
  const state = document.getElementById("live-state");
  const source = new EventSource(`/ui/live?shown=${state.dataset.version}`);
  let isBehind = false;
  // A question that is being answered must not change under the hand.
  const isInUse = () => Boolean(document.querySelector("#live :focus-within, #live details[open]"));
  const pause = (paused) => {
    isBehind = paused;
    state.textContent = paused ? "paused" : "live";
    return paused;
  };
  const refresh = () => { if (!pause(isInUse())) htmx.trigger(document.body, "changed"); };
  const catchUp = () => setTimeout(() => { if (isBehind) refresh(); });
  source.addEventListener("open", () => pause(isBehind));
  source.addEventListener("changed", refresh);
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    if (pause(isInUse())) event.detail.shouldSwap = false;
  });
  document.body.addEventListener("focusout", catchUp);
  document.body.addEventListener("toggle", catchUp, true);
  source.addEventListener("error", () => { state.textContent = "not connected"; });
  window.addEventListener("pagehide", () => source.close());
}

function drawSavings() {
  const place = document.getElementById("curve");
  const rows = [...document.querySelectorAll("#days tbody tr")].reverse(); // the newest comes first
  if (!place || rows.length === 0) return;
  const series = (name) => rows.map((row) => Number(row.dataset[name]));
  const days = rows.map((row) => Date.parse(row.dataset.day + "T12:00:00") / 1000);
  const style = getComputedStyle(document.documentElement);
  const ink = style.getPropertyValue("--ink").trim();
  const line = style.getPropertyValue("--line").trim();
  const axis = { stroke: ink, grid: { stroke: line }, ticks: { stroke: line } };
  const plot = new uPlot({
    width: place.clientWidth,
    height: 280,
    scales: { x: { range: () => [days[0] - 43200, days[days.length - 1] + 43200] } },
    axes: [
      {
        ...axis,
        incrs: [1, 2, 7, 14, 28, 91, 182, 364].map((days) => days * 86400), // a day has one point
        values: (_, ticks) => ticks.map((tick) => new Date(tick * 1000).toISOString().slice(5, 10)),
      },
      { ...axis, size: 80, values: (_, ticks) => ticks.map((tick) => tick.toLocaleString("en")) },
    ],
    series: [
      { label: "day", value: (_, at) => (at ? new Date(at * 1000).toISOString().slice(0, 10) : "") },
      { label: "passed", stroke: style.getPropertyValue("--good").trim(), width: 2, points: { show: true } },
      { label: "direct, deferred", stroke: style.getPropertyValue("--warn").trim(), width: 2, points: { show: true } },
      { label: "direct, loaded", stroke: style.getPropertyValue("--bad").trim(), width: 2, points: { show: true } },
    ],
  }, [days, series("passed"), series("deferred"), series("loaded")], place);
  window.addEventListener("resize", () => plot.setSize({ width: place.clientWidth, height: 280 }));
}

// What scrolls sideways on a narrow screen must be reached by keyboard, too.
function reachScrollable() {
  for (const part of document.querySelectorAll("table, section, figure, #live")) {
    if (part.scrollWidth > part.clientWidth) part.tabIndex = 0;
  }
}

// On a narrow screen the names of the pages scroll: show which one this is.
function showPage() {
  const nav = document.querySelector("header nav");
  const here = nav && nav.querySelector("[aria-current]");
  if (here) nav.scrollLeft = here.offsetLeft - nav.offsetLeft - (nav.clientWidth - here.offsetWidth) / 2;
}

if (document.querySelector("[data-reload]")) setTimeout(() => location.reload(), 1000);
showPage();
watch();
drawSavings();
reachScrollable();
window.addEventListener("resize", reachScrollable);
document.body.addEventListener("htmx:afterSwap", reachScrollable);
