"use strict";

// Draw the graph on a canvas: springs along edges, repulsion within a grid, so that ten thousand
// nodes stay usable. Drag to move, wheel or + and - to zoom, arrow keys to pan.
const REACH = 60;
const STEPS = 300;

async function drawGraph() {
  const canvas = document.getElementById("graph");
  const told = document.getElementById("graph-told");
  const answer = await fetch("/ui/memory/graph/data");
  if (!answer.ok) { told.textContent = "The graph could not be loaded. Reload the page."; return; }
  const { names, edges } = await answer.json();
  told.textContent = names.length === 0
    ? "There are no entities yet. Agents add them with graph.create_entities."
    : `${names.length.toLocaleString("en")} entities, ${edges.length.toLocaleString("en")} relations. Drag to move, wheel or + and - to zoom.`;
  if (names.length === 0) return;
  const x = new Float32Array(names.length), y = new Float32Array(names.length);
  const spread = 20 * Math.sqrt(names.length);
  for (let i = 0; i < names.length; i++) {
    const angle = i * 2.39996, radius = spread * Math.sqrt((i + 1) / names.length);
    x[i] = radius * Math.cos(angle);
    y[i] = radius * Math.sin(angle);
  }
  const view = { zoom: 1, left: 0, top: 0 };
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(name).trim();

  function paint() {
    const ratio = window.devicePixelRatio || 1;
    const width = canvas.parentElement.clientWidth - 26, height = 520;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const pen = canvas.getContext("2d");
    const scale = (ratio * view.zoom * Math.min(width, height)) / (2.4 * spread);
    pen.setTransform(scale, 0, 0, scale, ratio * (width / 2 + view.left), ratio * (height / 2 + view.top));
    pen.strokeStyle = color("--soft");
    pen.globalAlpha = 0.45;
    pen.lineWidth = ratio / scale;
    pen.beginPath();
    for (const [from, to] of edges) { pen.moveTo(x[from], y[from]); pen.lineTo(x[to], y[to]); }
    pen.stroke();
    pen.globalAlpha = 1;
    pen.fillStyle = color("--accent");
    const size = ((names.length > 2000 ? 3 : 6) * ratio) / scale;
    for (let i = 0; i < names.length; i++) pen.fillRect(x[i] - size / 2, y[i] - size / 2, size, size);
    label(pen, ratio, scale, width, height);
  }

  function label(pen, ratio, scale, width, height) {
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.fillStyle = color("--ink");
    pen.font = `${12 * ratio}px system-ui, sans-serif`;
    let shown = 0;
    for (let i = 0; i < names.length && shown < 150; i++) {
      const left = x[i] * scale + ratio * (width / 2 + view.left), top = y[i] * scale + ratio * (height / 2 + view.top);
      if (left < 0 || top < 0 || left > canvas.width || top > canvas.height) continue;
      pen.fillText(names[i].slice(0, 30), left + 4 * ratio, top - 4 * ratio);
      shown++;
    }
  }

  function step(heat) {
    const cells = new Map();
    for (let i = 0; i < names.length; i++) {
      const key = `${Math.floor(x[i] / REACH)},${Math.floor(y[i] / REACH)}`;
      if (cells.has(key)) cells.get(key).push(i); else cells.set(key, [i]);
    }
    for (const [key, members] of cells) {
      const [column, row] = key.split(",").map(Number);
      for (const [dx, dy] of [[0, 0], [1, 0], [0, 1], [1, 1], [1, -1]]) {
        push(members, cells.get(`${column + dx},${row + dy}`) || [], dx === 0 && dy === 0, heat);
      }
    }
    for (const [from, to] of edges) pull(from, to, heat);
  }

  function push(some, others, isSame, heat) {
    for (let a = 0; a < Math.min(some.length, 40); a++) {
      for (let b = isSame ? a + 1 : 0; b < Math.min(others.length, 40); b++) {
        const i = some[a], j = others[b];
        const dx = x[i] - x[j] || 0.01, dy = y[i] - y[j] || 0.01;
        const distance = Math.hypot(dx, dy);
        if (distance > REACH) continue;
        const force = (heat * (REACH - distance)) / distance / 4;
        x[i] += dx * force; y[i] += dy * force;
        x[j] -= dx * force; y[j] -= dy * force;
      }
    }
  }

  function pull(from, to, heat) {
    const dx = x[to] - x[from], dy = y[to] - y[from];
    const force = heat * 0.05;
    x[from] += dx * force; y[from] += dy * force;
    x[to] -= dx * force; y[to] -= dy * force;
  }

  let steps = 0;
  function settle() {
    const until = performance.now() + 12;
    while (steps < STEPS && performance.now() < until) step(1 - steps++ / STEPS);
    paint();
    if (steps < STEPS) requestAnimationFrame(settle);
  }

  function zoom(factor) { view.zoom = Math.min(50, Math.max(0.2, view.zoom * factor)); paint(); }
  canvas.addEventListener("wheel", (event) => { event.preventDefault(); zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15); }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => canvas.setPointerCapture(event.pointerId));
  canvas.addEventListener("pointermove", (event) => {
    if (!canvas.hasPointerCapture(event.pointerId)) return;
    view.left += event.movementX; view.top += event.movementY; paint();
  });
  canvas.addEventListener("keydown", (event) => {
    const pan = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] }[event.key];
    if (pan) { view.left += pan[0]; view.top += pan[1]; paint(); event.preventDefault(); }
    if (event.key === "+") zoom(1.25);
    if (event.key === "-") zoom(0.8);
  });
  window.addEventListener("resize", paint);
  settle();
}

drawGraph();
