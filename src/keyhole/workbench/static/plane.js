// The plane of risk and detail: every set of the stored paths and of the frontier. Moving the limit
// shows the most detailed set within it, a click any other, and a frame dragged over some of them
// leaves only these in the tables; nothing is asked of the server.

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
  // Both axes are stretched near zero, where the sets within a limit are.
  const x = (cr) => box.left + box.width * Math.sqrt(cr / widest);
  const y = (rp) => box.top + box.height * (1 - Math.sqrt(Math.min(rp, highest) / highest));
  const limit = () => Number(slider.value) / 100;
  slider.max = Math.min(100, Math.ceil(105 * highest));
  // The frame: from and to on both axes, in percent; empty is open.
  const frame = [...plane.querySelectorAll("[data-frame] input")];
  let shown = null;
  let corner = null;

  function inside(one) {
    const [left, right, low, high] = frame.map((field) => (field.value === "" ? null : Number(field.value) / 100));
    return (left === null || one.cr >= left) && (right === null || one.cr <= right) &&
      (low === null || one.rp >= low) && (high === null || one.rp <= high);
  }

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
    for (const part of [0, 0.0625, 0.25, 0.5625, 1]) {
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
    if (frame.some((field) => field.value !== "")) {
      const [left, right, low, high] = frame.map((field, at) =>
        (field.value === "" ? [0, widest, 0, highest][at] : Number(field.value) / 100));
      mark("rect", { class: "frame", x: x(left), y: y(high), width: Math.max(0, x(right) - x(left)), height: Math.max(0, y(low) - y(high)) });
    }
    for (const one of sets) {
      const names = [one.of === "frontier" ? "frontier" : "step", one.rp > limit() ? "over" : "", one === shown ? "chosen" : "", inside(one) ? "" : "outside"];
      const point = mark("circle", { class: names.join(" "), cx: x(one.cr), cy: y(one.rp), r: one.taken ? 7 : 5 });
      point.append(mark("title", {}, told(one)));
      point.addEventListener("click", () => choose(one));
    }
  }

  function moved() {
    plane.querySelector("[data-limit-words]").textContent = `${slider.value}%: moves through the sets found. The search above has its own limit.`;
    const within = sets.filter((one) => one.rp <= limit() && inside(one));
    choose(within.reduce((best, one) => (best && best.cr >= one.cr ? best : one), null));
  }

  function framed() {
    const left = new Set(sets.filter(inside).map((one) => String(one.token)));
    const open = frame.every((field) => field.value === "");
    for (const row of document.querySelectorAll("tr[data-set]")) row.hidden = !open && !left.has(row.dataset.set);
    plane.querySelector("[data-framed]").textContent = open ? "" : `${left.size} in the frame; the tables show only these.`;
    plane.querySelector("[data-unframe]").hidden = open;
    moved();
  }

  function place(event) {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const part = (share) => Math.min(1, Math.max(0, share));
    return [widest * part((at.x - box.left) / box.width) ** 2, highest * part(1 - (at.y - box.top) / box.height) ** 2];
  }
  svg.addEventListener("pointerdown", (event) => {
    if (event.target.tagName === "circle") return;
    corner = place(event);
    svg.setPointerCapture(event.pointerId);
  });
  svg.addEventListener("pointermove", (event) => {
    if (!corner) return;
    const [cr, rp] = place(event);
    const ends = [Math.min(cr, corner[0]), Math.max(cr, corner[0]), Math.min(rp, corner[1]), Math.max(rp, corner[1])];
    ends.forEach((share, at) => { frame[at].value = (at % 2 ? Math.ceil(1000 * share) : Math.floor(1000 * share)) / 10; });
    framed();
  });
  for (const name of ["pointerup", "pointercancel"]) svg.addEventListener(name, () => { corner = null; });
  plane.querySelector("[data-unframe]").addEventListener("click", () => {
    for (const field of frame) field.value = "";
    framed();
  });
  for (const field of frame) field.addEventListener("input", framed);
  slider.addEventListener("input", moved);
  moved();
}
