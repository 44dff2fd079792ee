// The plane of risk and detail: every set of the stored paths and of the frontier. Moving the limit
// shows the most detailed set within it, a click any other; nothing is asked of the server.

import { rate } from "./live.js";

const box = { left: 48, top: 16, width: 408, height: 196 };

export function dressPlane(plane) {
  plane.dataset.dressed = "yes";
  plane.hidden = false;
  const sets = JSON.parse(plane.dataset.plane);
  const svg = plane.querySelector("svg");
  const slider = plane.querySelector("input[type=range]");
  const form = plane.querySelector("form");
  const widest = Math.max(...sets.map((one) => one.cr), 1e-9);
  const highest = Math.max(...sets.map((one) => one.rp), Number(plane.dataset.limit), 0.01);
  const x = (cr) => box.left + (box.width * cr) / widest;
  const y = (rp) => box.top + box.height * (1 - Math.min(rp, highest) / highest);
  const limit = () => Number(slider.value) / 100;
  slider.max = Math.min(100, Math.ceil(105 * highest));
  let shown = null;

  function mark(name, attributes, text) {
    const one = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
    if (text !== undefined) one.textContent = text;
    svg.append(one);
    return one;
  }

  const told = (one) => `${one.place[0].toUpperCase()}${one.place.slice(1)}: RP ${rate(one.rp, limit())}, ` +
    `${plane.dataset.across} ${rate(one.cr, null)}${one.taken ? " (taken)" : ""}. ${one.variables || "No variable"}.`;

  function choose(one) {
    shown = one;
    const words = plane.querySelector("[data-words]");
    form.hidden = !one;
    words.textContent = !one ? "No set found is within this limit." : told(one);
    if (one) {
      form.elements.set.value = one.token;
      form.elements.place.value = one.place;
      form.querySelector("button").hidden = one.taken;
    }
    draw();
  }

  function draw() {
    svg.replaceChildren();
    for (const part of [0, 0.5, 1]) {
      mark("line", { class: "rule", x1: box.left, x2: box.left + box.width, y1: y(part * highest), y2: y(part * highest) });
      mark("text", { class: "end", x: box.left - 6, y: y(part * highest) + 4 }, rate(part * highest, null));
      mark("text", { x: x(part * widest), y: box.top + box.height + 16 }, rate(part * widest, null));
    }
    mark("text", { x: box.left, y: 9 }, "RP");
    mark("text", { x: box.left + box.width / 2, y: box.top + box.height + 36 }, `${plane.dataset.across}: detail kept`);
    for (const name of new Set(sets.map((one) => one.of))) {
      const path = sets.filter((one) => one.of === name);
      if (name !== "frontier") mark("polyline", { class: "path", points: path.map((one) => `${x(one.cr)},${y(one.rp)}`).join(" ") });
    }
    if (Number.isFinite(limit())) mark("line", { class: "limit", x1: box.left, x2: box.left + box.width, y1: y(limit()), y2: y(limit()) });
    for (const one of sets) {
      const names = [one.of === "frontier" ? "frontier" : "step", one.rp > limit() ? "over" : "", one === shown ? "chosen" : ""];
      const point = mark("circle", { class: names.join(" "), cx: x(one.cr), cy: y(one.rp), r: one.taken ? 7 : 5 });
      point.append(mark("title", {}, told(one)));
      point.addEventListener("click", () => choose(one));
    }
  }

  function moved() {
    plane.querySelector("[data-limit-words]").textContent = `${slider.value}%: moves through the sets found. The search above has its own limit.`;
    const within = sets.filter((one) => one.rp <= limit());
    choose(within.reduce((best, one) => (best && best.cr >= one.cr ? best : one), null));
  }
  slider.addEventListener("input", moved);
  moved();
}
