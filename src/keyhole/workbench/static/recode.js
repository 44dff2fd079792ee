// The recode editor: categories are merged, cuts dragged, and the risk and the loss follow. All of it
// writes into the fields of the form, which works by itself; the server answers by the same form.

import { rate } from "./live.js";

const wide = 620;
const left = 10;

export function dressRecode(form) {
  form.dataset.dressed = "yes";
  const place = form.querySelector("[data-figures]");
  const limit = place.dataset.limit === "" ? null : Number(place.dataset.limit);
  const address = `/project/${document.body.dataset.review}/live`;
  const tools = form.querySelector("[data-tools]");
  const past = [];
  let asked = 0;
  let waiting = false;
  if (tools) tools.hidden = false;

  // One question at a time; what moves meanwhile is asked for when the answer is there.
  async function figures() {
    asked += 1;
    if (waiting) return;
    waiting = true;
    for (let mine = 0; mine !== asked;) {
      mine = asked;
      const begun = performance.now();
      const answer = await fetch(address, { method: "POST", body: new URLSearchParams(new FormData(form)) })
        .then((found) => found.json()).catch(() => ({ problems: ["No live answer. Add to the plan works without it."] }));
      if (mine !== asked) continue;
      say(answer);
      form.dataset.milliseconds = (performance.now() - begun).toFixed(1);
    }
    waiting = false;
  }

  function say(found) {
    const line = document.createElement("p");
    if (found.problems) {
      if (found.before) line.append(`RP(${place.dataset.cutoff}) ${rate(found.before.rp, limit)}, uniques ${found.before.uniques.toLocaleString("en")}. `);
      line.append(found.problems.join(" "));
    } else {
      const strong = document.createElement("strong");
      if (found.after) {
        strong.textContent = rate(found.after.rp, limit);
        line.append(`RP(${place.dataset.cutoff}) ${rate(found.before.rp, limit)} → `, strong,
          `${limit === null ? "" : found.after.rp > limit ? " (above the limit)" : " (within the limit)"}, uniques ${found.before.uniques.toLocaleString("en")} → ${found.after.uniques.toLocaleString("en")}. `);
      }
      line.append(`${found.words}; ${found.lost === null ? "nothing" : rate(found.lost, null)} of the information in ${form.elements.column.value} is lost.`);
    }
    place.replaceChildren(line);
  }

  // What the fields were, so that every step can be undone.
  const texts = () => [...form.querySelectorAll('input[type="text"], select')];
  const now = () => JSON.stringify(texts().map((one) => one.value));
  let before = now();
  const undo = form.querySelector('[data-do="undo"]');
  function kept() {
    const here = now();
    if (here === before) return;
    past.push(before);
    before = here;
    if (undo) undo.disabled = false;
  }

  function changed(ends = true) {
    if (ends) kept();
    form.dataset.edited = "yes";
    marks();
    draw();
    figures();
  }

  const rows = () => [...form.querySelectorAll("tr[data-name]")];
  const group = (row) => row.querySelector('input[type="text"]');
  const ticked = () => rows().filter((row) => row.querySelector("[name=tick]").checked);

  function marks() {
    const many = new Map();
    for (const row of rows()) many.set(group(row).value, (many.get(group(row).value) || 0) + 1);
    for (const row of rows()) row.classList.toggle("merged", many.get(group(row).value) > 1 || group(row).value !== row.dataset.name);
    const length = form.querySelector("[data-length]");
    if (length) length.textContent = form.elements.length.value;
  }

  const doing = {
    merge() {
      const some = ticked();
      if (!some.length) return;
      const name = form.elements.into.value.trim() || group(some[0]).value;
      for (const row of some) group(row).value = name;
      settle();
    },
    rename() {
      const names = new Set(ticked().map((row) => group(row).value));
      const name = form.elements.into.value.trim();
      if (!name) return form.elements.into.focus();
      for (const row of rows()) if (names.has(group(row).value)) group(row).value = name;
      settle();
    },
    more() {
      const all = [low, ...cuts(), high].sort((a, b) => a - b);
      const gaps = all.slice(1).map((one, at) => one - all[at]);
      const at = gaps.indexOf(Math.max(...gaps));
      put([...cuts(), rounded((all[at] + all[at + 1]) / 2)]);
      changed();
    },
    undo() {
      if (!past.length) return;
      before = past.pop();
      JSON.parse(before).forEach((value, at) => { texts()[at].value = value; });
      undo.disabled = !past.length;
      changed(false);
    },
  };
  function settle() {
    form.elements.into.value = "";
    for (const box of form.querySelectorAll("[name=tick]:checked")) box.checked = false;
    changed();
  }
  form.addEventListener("click", (event) => {
    const button = event.target.closest("[data-do]");
    if (button) doing[button.dataset.do]();
  });
  form.addEventListener("input", (event) => {
    if (!["tick", "into", "name", "instead"].includes(event.target.name)) changed(false);
  });
  form.addEventListener("change", kept);
  form.addEventListener("reset", () => setTimeout(changed));

  // Cuts over the histogram.
  const svg = form.querySelector(".cuts svg");
  const { low, high, whole, date } = svg ? JSON.parse(form.querySelector(".cuts").dataset.histogram) : {};
  const day = 86_400_000;
  const written = (value) => (date ? new Date(value * day).toISOString().slice(0, 10) : String(value));
  const rounded = (value) => (whole ? Math.round(value) : Number(value.toPrecision(4)));
  const x = (value) => left + (wide * (value - low)) / (high - low);
  function cuts() {
    const words = form.elements.cuts.value.split(/[,;\s]+/).filter(Boolean);
    return words.map((word) => (date ? Date.parse(`${word}T00:00:00Z`) / day : Number(word))).filter(Number.isFinite);
  }
  function put(values) {
    form.elements.cuts.value = [...new Set(values)].sort((a, b) => a - b).map(written).join(", ");
  }

  function mark(parent, name, attributes, text) {
    const one = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
    if (text !== undefined) one.textContent = text;
    parent.append(one);
    return one;
  }

  function draw(focus) {
    if (!svg) return;
    const layer = svg.querySelector("[data-cuts]");
    const had = focus !== undefined ? focus : [...layer.children].indexOf(document.activeElement);
    layer.replaceChildren();
    cuts().sort((a, b) => a - b).forEach((value, at) => {
      const handle = mark(layer, "g", {
        class: "cut", role: "slider", tabindex: "0", "aria-label": `Cut ${at + 1}`, "aria-orientation": "horizontal",
        "aria-valuemin": low, "aria-valuemax": high, "aria-valuenow": value, "aria-valuetext": written(value),
      });
      const here = Math.min(left + wide, Math.max(left, x(value)));
      mark(handle, "line", { x1: here, x2: here, y1: 12, y2: 152 });
      mark(handle, "circle", { cx: here, cy: 12, r: 7 });
      mark(handle, "text", { x: here, y: 165 }, written(value));
      if (at === had) handle.focus();
    });
  }

  function moved(at, to) {
    const all = cuts().sort((a, b) => a - b);
    all[at] = rounded(Math.min(high, Math.max(low, to)));
    put(all);
    return cuts().indexOf(all[at]);
  }
  if (svg) {
    const value = (event) => {
      const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      return low + ((point.x - left) / wide) * (high - low);
    };
    let drags = -1;
    svg.addEventListener("pointerdown", (event) => {
      const handle = event.target.closest(".cut");
      if (handle) drags = [...handle.parentNode.children].indexOf(handle);
      else {
        const new_ = rounded(value(event));
        put([...cuts(), new_]);
        drags = cuts().indexOf(new_);
      }
      svg.setPointerCapture(event.pointerId);
      changed(false);
    });
    svg.addEventListener("pointermove", (event) => {
      if (drags < 0) return;
      drags = moved(drags, value(event));
      changed(false);
    });
    for (const name of ["pointerup", "pointercancel"]) {
      svg.addEventListener(name, () => { if (drags >= 0) kept(); drags = -1; });
    }
    svg.addEventListener("keydown", (event) => {
      const handle = event.target.closest(".cut");
      if (!handle) return;
      const at = [...handle.parentNode.children].indexOf(handle);
      const all = cuts().sort((a, b) => a - b);
      const step = (whole ? 1 : (high - low) / 100) * (event.shiftKey ? 10 : 1);
      const by = { ArrowLeft: -step, ArrowDown: -step, ArrowRight: step, ArrowUp: step }[event.key];
      if (by !== undefined) moved(at, all[at] + by);
      else if (event.key === "Delete" || event.key === "Backspace") put(all.filter((_, other) => other !== at));
      else return;
      event.preventDefault();
      changed();
    });
  }
  marks();
  draw();
  figures();
}
