// The workbench's script: pages work as plain forms without it. It sends forms and swaps in
// the page that comes back, hears how the job goes, and has Vega draw the pictures.

import { dressLive } from "./live.js";
import { dressPlane } from "./plane.js";
import { dressRecode } from "./recode.js";

const parts = ["main", "side", "top"];

// Forms and pages.

async function follow(answer) {
  const next = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (!next.getElementById("main")) {
    location.href = answer.url;
    return;
  }
  if (answer.status === 422) {
    complain(next);
    return;
  }
  const same = new URL(answer.url).pathname === location.pathname || !answer.ok;
  swap(next, parts);
  if (answer.ok && answer.url !== location.href) history.pushState(null, "", answer.url);
  shown = address();
  if (!same) document.getElementById("main").focus();
  const problems = document.querySelector(".problems");
  if (problems) problems.focus();
}

// What is refused is said above the form, and what was typed stays to be corrected.
function complain(next) {
  const said = next.querySelector("#main .problems");
  const main = document.getElementById("main");
  for (const old of main.querySelectorAll(".problems")) old.remove();
  for (const button of main.querySelectorAll("form[aria-busy] button")) button.disabled = false;
  if (!said) return;
  main.querySelector("h1").after(document.importNode(said, true));
  main.querySelector(".problems").focus();
}

// The focus stays on the element with the same id, or the same tag, name, value and text.
function swap(next, names) {
  const at = document.activeElement;
  const alike = at.id ? ["id"] : ["tagName", "name", "value", "textContent"];
  const places = names.map((name) => `#${name}`).concat(names.includes("main") ? [".pages"] : []);
  for (const place of places) {
    const old = document.querySelector(place);
    const found = next.querySelector(place);
    if (!old || !found) continue;
    const had = old.contains(at);
    const put = document.importNode(found, true);
    old.replaceWith(put);
    const focused = had && [put, ...put.querySelectorAll(at.tagName)]
      .find((one) => alike.every((key) => one[key] === at[key]));
    if (focused) focused.focus({ preventScroll: true });
  }
  for (const name of ["version", "page"]) {
    if (next.body.dataset[name]) document.body.dataset[name] = next.body.dataset[name];
  }
  document.title = next.title;
  dress(document);
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.hasAttribute("data-live")) return;
  event.preventDefault();
  const data = new FormData(form, event.submitter);
  const multipart = form.enctype === "multipart/form-data";
  const body = multipart ? data : new URLSearchParams(data);
  const action = (event.submitter && event.submitter.getAttribute("formaction")) || form.action;
  form.setAttribute("aria-busy", "true");
  for (const button of form.querySelectorAll("button")) button.disabled = true;
  try {
    await follow(await fetch(action, { method: "POST", body, redirect: "follow" }));
  } catch {
    lost();
    for (const button of form.querySelectorAll("button")) button.disabled = false;
  }
  form.removeAttribute("aria-busy");
});

// Back to another page is a page anew; a link within this one is not.
const address = () => location.pathname + location.search;
let shown = address();
window.addEventListener("popstate", () => { if (address() !== shown) location.reload(); });

document.addEventListener("change", (event) => {
  if (event.target.hasAttribute("data-submit")) event.target.form.requestSubmit();
});

// What is clicked is kept at once; arrow keys move through the choices, and Enter keeps one.
let pressed = false;
document.addEventListener("pointerdown", () => { pressed = true; });
document.addEventListener("keydown", () => { pressed = false; });
document.addEventListener("change", (event) => {
  if (pressed && event.target.hasAttribute("data-at-once")) event.target.form.requestSubmit();
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(button.dataset.copy);
  button.textContent = "Copied";
});

// Ctrl+Z and Ctrl+Shift+Z undo and redo, but not while something is being typed.
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input:not([type=checkbox]), textarea, select");
  if (typing || !(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
  const form = document.querySelector(`form[action$="/do/${event.shiftKey ? "redo" : "undo"}"]`);
  if (!form || form.querySelector("button").disabled) return;
  event.preventDefault();
  form.requestSubmit();
});

// Pending decisions by keyboard: a line's choice by its first character, then the next line.
document.addEventListener("keydown", (event) => {
  const line = event.target.closest("[data-queue] select");
  if (!line || event.ctrlKey || event.metaKey || event.altKey) return;
  const lines = [...line.closest("[data-queue]").querySelectorAll("select")];
  const chosen = [...line.options].find((one) => one.text.startsWith(`${event.key} `));
  if (chosen) line.value = chosen.value;
  else if (event.key === "Enter") line.form.requestSubmit();
  else if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  event.preventDefault();
  const next = lines[lines.indexOf(line) + (event.key === "ArrowUp" ? -1 : 1)];
  if (next && event.key !== "Enter") next.focus();
});

// Progress. One tab of all listens to the server, and tells the others: a browser has few
// connections. When a job ends, or the review is changed elsewhere, the page is fetched anew; a
// form that somebody is filling in stays as it is, and only the figures beside it change.

const silence = 20_000; // milliseconds without a word from the server
const gone = "The workbench does not answer. Is it still running in its terminal? What you typed is not lost as long as this page is open.";
const newLink = "The workbench was started again, and does not know this browser. Open its new link.";
let last = null;
let clock = 0;

function lost(words = gone) {
  const place = document.getElementById("lost");
  if (!place) return;
  place.hidden = !words;
  if (place.textContent !== words) place.textContent = words;
}

function listen() {
  if (!document.body.dataset.review) return;
  const others = new BroadcastChannel("keyhole");
  const hear = (told) => {
    clearTimeout(clock);
    lost(told.lost || "");
    if (told.lost) return;
    clock = setTimeout(lost, silence);
    const now = told.now[document.body.dataset.review];
    if (now) heard(now);
  };
  const tell = (told) => { hear(told); others.postMessage(told); };
  others.addEventListener("message", (event) => hear(event.data));
  navigator.locks.request("keyhole-events", () => new Promise((done) => {
    const source = new EventSource("/events");
    source.addEventListener("message", (event) => tell({ now: JSON.parse(event.data) }));
    source.addEventListener("error", () => {
      tell({ lost: source.readyState === EventSource.CLOSED ? newLink : gone });
    });
    window.addEventListener("pagehide", () => { source.close(); done(); });
  }));
  clock = setTimeout(lost, silence);
}

async function heard(now) {
  const before = last;
  last = now;
  const step = document.querySelector("[data-step]");
  if (step && now.job && now.job.state === "running") {
    step.textContent = `${now.job.step} (${now.job.seconds} s)`;
  }
  const shown = document.getElementById("job");
  const stale = shown && now.job &&
    (shown.dataset.job !== String(now.job.number) || shown.dataset.state !== now.job.state);
  // Another stage, another text of the review: something new may be shown.
  const stage = (told) => told && told.job && told.job.step.split(":")[0];
  const changed = before && (before.changed !== now.changed || stage(before) !== stage(now));
  if (!stale && !changed) return;
  const answer = await fetch(location.href);
  if (!answer.ok) return;
  const next = new DOMParser().parseFromString(await answer.text(), "text/html");
  swap(next, busy() ? ["answer", "side", "top"] : parts);
}

function busy() {
  const main = document.getElementById("main");
  const field = document.activeElement;
  if (field && main.contains(field) && field.matches("input, select, textarea")) return true;
  if (main.querySelector(".conflict")) return true; // both versions, until one is chosen
  return [...main.querySelectorAll("form[data-live]")].some((form) => form.dataset.edited);
}

document.addEventListener("input", (event) => {
  const form = event.target.closest("main form[data-live]");
  if (form) form.dataset.edited = "yes";
});

// What was typed and not sent is not lost without a question.
window.addEventListener("beforeunload", (event) => {
  if (document.querySelector("main form[data-live][data-edited]:not([aria-busy])")) event.preventDefault();
});

// Dressing a page: pictures by Vega, long lists that can be narrowed.

function dress(root) {
  for (const figure of root.querySelectorAll("figure[data-chart]:not([data-drawn])")) draw(figure);
  for (const panel of root.querySelectorAll("#live:not([data-dressed])")) dressLive(panel);
  for (const form of root.querySelectorAll("form[data-recode]:not([data-dressed])")) dressRecode(form);
  for (const plane of root.querySelectorAll(".plane:not([data-dressed])")) dressPlane(plane);
  for (const list of root.querySelectorAll('.picker[data-filter="yes"]:not([data-dressed])')) {
    list.dataset.dressed = "yes";
    const box = document.createElement("input");
    box.type = "search";
    box.placeholder = "Find a column";
    box.setAttribute("aria-label", `Find in: ${list.querySelector("legend").textContent}`);
    box.addEventListener("input", () => {
      const wanted = box.value.toLowerCase();
      for (const option of list.querySelectorAll(".tick")) {
        option.hidden = !option.textContent.toLowerCase().includes(wanted);
      }
    });
    box.addEventListener("input", (event) => event.stopPropagation());
    list.querySelector(".options").before(box);
  }
}

async function draw(figure) {
  figure.dataset.drawn = "yes";
  try {
    const [answer] = await Promise.all([fetch(figure.dataset.chart), import("/static/vega.js")]);
    if (!answer.ok) return;
    const spec = recoloured(await answer.json());
    const place = document.createElement("div");
    await window.vegaEmbed(place, spec, {
      mode: "vega-lite", renderer: "canvas", ast: true, actions: false, defaultStyle: false,
      tooltip: { disableDefaultStyle: true },
    });
    figure.replaceChildren(place);
  } catch {
    // The stored picture stays.
  }
}

// The house's colours are for paper; on a dark page ink becomes light.
function recoloured(spec) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const swapped = {
    "#1f2a33": colour("--ink"), "#56626c": colour("--soft"), "#8795a1": colour("--edge"),
    "#e6e9ec": colour("--rule"), "#b23a2a": colour("--accent"), white: colour("--paper"),
    "#2f5d8a": colour("--focus"), "#a66a00": colour("--open"), "#4d4d4d": colour("--soft"),
    "#1b7f79": colour("--teal"), "#7a4e96": colour("--violet"), "#7d5a3c": colour("--brown"),
  };
  // Rows may hold colours as codes; a word in them, like white, is a category.
  const walk = (value, inData) => {
    if (typeof value === "string") return (!inData || value.startsWith("#")) && swapped[value] || value;
    if (Array.isArray(value)) return value.map((one) => walk(one, inData));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([name, one]) =>
        [name, walk(one, inData || name === "values" || name === "datasets")]));
    }
    return value;
  };
  return walk(spec, false);
}

dress(document);
listen();
