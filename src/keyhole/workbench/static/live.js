// Live exposure: RP, CR and uniques follow as keys are ticked and the cutoff or the limit is moved.
// The cells of a key are asked for once; every cutoff and limit is answered here.

const most = 30; // the largest cutoff of the chart
const box = { left: 44, top: 10, width: 420, height: 168 };

// A share as the reports write it (`percentage_near` in reviews/rendering.py).
const exactly = (value) => String(Number(value.toFixed(10)));

export function rate(value, limit) {
  const percent = (share) => `${exactly(100 * share)}%`;
  const side = limit === null ? 0 : Math.sign(value - limit);
  if (value > 0 && value < 1 && (value < 1e-4 || value > 1 - 1e-4)) {
    if (side && (limit < 1e-4 || limit > 1 - 1e-4)) return `just ${side < 0 ? "below" : "above"} ${percent(limit)}`;
    return value < 1e-4 ? "less than 0.01%" : "more than 99.99%";
  }
  const edge = Math.min(value, 1 - value);
  const words = Number((100 * value).toFixed(edge <= 0 || edge >= 0.1 ? 0 : edge < 0.01 ? 2 : 1));
  if (limit === null) return `${words}%`;
  const exact = exactly(100 * limit);
  const near = exact.includes(".") && Math.abs(value - limit) < 0.01;
  if (!near && Math.sign(words - exact) === side) return `${words}%`;
  if (!side || 100 * value === Math.round(100 * value)) return percent(value);
  // As many digits as show on which side of the limit it is.
  const most = Math.max(1, exact.split(".")[1]?.length || 0) + 4;
  for (let many = 1; many <= most; many += 1) {
    const text = (100 * value).toFixed(many);
    if (Math.sign(text - exact) === side && Number(text) !== 0 && Number(text) !== 100) return `${text}%`;
  }
  return `just ${side < 0 ? "below" : "above"} ${exact}%`;
}

export function dressLive(panel) {
  panel.dataset.dressed = "yes";
  const form = panel.closest("form");
  const boxes = () => [...form.querySelectorAll('input[name="keys"]')];
  const cutoffField = form.elements.cutoff;
  const limitField = form.elements.limit;
  const address = `/project/${document.body.dataset.review}/live`;
  const words = panel.querySelector("[data-words]");
  const svg = panel.querySelector("svg");
  let found = null;
  let asked = 0;
  let waiting = false;
  let later = 0;
  panel.hidden = false;

  const cutoff = () => Math.max(1, Math.round(Number(cutoffField.value)) || 3);
  const limit = () => (limitField.value === "" ? null : Number(limitField.value) / 100);
  const below = (size) => Object.entries(found.sizes)
    .reduce((sum, [one, count]) => sum + (Number(one) < size ? count : 0), 0);

  async function ask(more) {
    const body = new URLSearchParams(boxes().filter((one) => one.checked).map((one) => ["keys", one.value]));
    for (const [name, value] of Object.entries(more)) body.append(name, value);
    const answer = await fetch(address, { method: "POST", body });
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.json();
  }

  // One question at a time: what is ticked meanwhile is asked for when the answer is there.
  async function keysChanged() {
    asked += 1;
    clearTimeout(later);
    if (waiting) return;
    waiting = true;
    for (let mine = 0; mine !== asked;) {
      mine = asked;
      const begun = performance.now();
      const answer = await ask({}).catch(() => ({ problems: ["No live answer. Measure works without it."] }));
      if (mine !== asked) continue;
      found = answer.problems ? null : answer;
      show(answer.problems);
      panel.dataset.milliseconds = (performance.now() - begun).toFixed(1);
    }
    waiting = false;
    if (found) contributions();
  }

  function contributions() {
    clearTimeout(later);
    const mine = asked;
    later = setTimeout(async () => {
      const answer = await ask({ without: "yes", cutoff: cutoff(), levels: panel.dataset.levels || "" }).catch(() => ({}));
      if (mine !== asked || !answer.without) return;
      follow(answer.levels || []);
      for (const one of boxes()) {
        const place = one.closest("label").querySelector("[data-without]");
        const rp = answer.without[one.value];
        place.textContent = one.checked && rp !== undefined ? `${rate(rp, limit())} without it` : "";
      }
      panel.dataset.contributions = "yes";
    }, 150);
  }

  // The levels that drive it follow too, where values may be shown.
  function follow(levels) {
    const list = panel.querySelector("[data-list]");
    list.replaceChildren(...levels.filter((one) => one.share > 0).map((one) => {
      const line = document.createElement("li");
      line.textContent = `${one.key} ${one.level}: ${rate(one.share, null)} of ${one.records.toLocaleString("en")} records at risk`;
      return line;
    }));
    list.parentNode.hidden = !list.children.length;
  }

  function show(problems) {
    if (!found) {
      words.textContent = (problems || ["Choose a key."]).join(" ");
      svg.replaceChildren();
      return;
    }
    const rp = cutoff() > 60 ? null : below(cutoff()) / found.records;
    const over = rp !== null && limit() !== null && rp > limit();
    const judged = limit() === null ? "" : over ? " – above the limit" : " – within the limit";
    panel.classList.toggle("over", over);
    words.textContent = rp === null ? "A cutoff above 60 is answered by Measure." :
      `RP(${cutoff()}) ${rate(rp, limit())}${judged}. CR ${rate(found.cr, null)}: ${found.cells.toLocaleString("en")} cells. ` +
      `Uniques: ${below(2).toLocaleString("en")} of ${found.records.toLocaleString("en")} records.`;
    draw();
  }

  const top = () => Math.min(1, Math.max(0.05, 1.15 * Math.max(below(most) / found.records, limit() || 0)));
  const x = (size) => box.left + (box.width * (size - 1)) / (most - 1);
  const y = (share) => box.top + box.height * (1 - Math.min(share, top()) / top());

  function mark(name, attributes, text) {
    const one = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
    if (text !== undefined) one.textContent = text;
    svg.append(one);
  }

  function draw() {
    svg.replaceChildren();
    for (const share of [0, top() / 2, top()]) {
      mark("line", { class: "rule", x1: box.left, x2: box.left + box.width, y1: y(share), y2: y(share) });
      mark("text", { class: "scale end", x: box.left - 6, y: y(share) + 4 }, `${(100 * share).toFixed(top() < 0.2 ? 1 : 0)}%`);
    }
    for (const size of [1, 5, 10, 15, 20, 25, 30]) mark("text", { class: "scale", x: x(size), y: box.top + box.height + 16 }, size);
    mark("text", { class: "scale", x: box.left + box.width / 2, y: box.top + box.height + 32 }, "cutoff");
    const line = [];
    for (let size = 1; size <= most; size += 1) line.push(`${x(size)},${y(below(size) / found.records)}`);
    mark("polyline", { class: "curve", points: line.join(" ") });
    if (limit() !== null) {
      mark("line", { class: "limit", x1: box.left, x2: box.left + box.width, y1: y(limit()), y2: y(limit()) });
      mark("text", { class: "scale end", x: box.left + box.width, y: y(limit()) - 5 }, `limit ${limitField.value}%`);
    }
    if (cutoff() <= most) {
      mark("line", { class: "cutoff", x1: x(cutoff()), x2: x(cutoff()), y1: box.top, y2: box.top + box.height });
      mark("circle", { class: "point", cx: x(cutoff()), cy: y(below(cutoff()) / found.records), r: 5 });
    }
  }

  // Dragging sideways moves the cutoff, dragging from near the limit moves that. The fields beside
  // the chart do the same by keyboard.
  let drags = "";
  function moved(event) {
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    if (drags === "limit") {
      const share = top() * (1 - (place.y - box.top) / box.height);
      limitField.value = Math.round(1000 * Math.min(1, Math.max(0, share))) / 10;
    } else {
      cutoffField.value = Math.min(most, Math.max(1, Math.round(1 + ((place.x - box.left) / box.width) * (most - 1))));
    }
    (drags === "limit" ? limitField : cutoffField).dispatchEvent(new Event("input", { bubbles: true }));
  }
  svg.addEventListener("pointerdown", (event) => {
    if (!found) return;
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    drags = limit() !== null && Math.abs(place.y - y(limit())) < 9 ? "limit" : "cutoff";
    svg.setPointerCapture(event.pointerId);
    moved(event);
  });
  svg.addEventListener("pointermove", (event) => { if (drags) moved(event); });
  for (const name of ["pointerup", "pointercancel"]) svg.addEventListener(name, () => { drags = ""; });

  form.addEventListener("input", (event) => {
    if (event.target.name === "keys") keysChanged();
    else if (event.target === cutoffField || event.target === limitField) {
      show();
      if (found && event.target === cutoffField) contributions();
    }
  });
  keysChanged();
}
