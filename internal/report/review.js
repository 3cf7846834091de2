"use strict";
const search = document.getElementById("search");
const only = document.getElementById("only");
const found = document.getElementById("found");
const empty = document.getElementById("empty");
const rows = Array.from(document.querySelectorAll("[data-row]"), (row) => ({
  row,
  same: row.dataset.row === "same",
  text: row.textContent.toLowerCase(),
  items: Array.from(row.querySelectorAll("[data-item]"), (item) => ({ item, text: item.textContent.toLowerCase() })),
}));
const nodes = Array.from(document.querySelectorAll("button.node"), (button) => ({
  button,
  twin: document.getElementById("b" + button.id.slice(1)),
  same: !button.classList.contains("other"),
  text: button.getAttribute("aria-label").toLowerCase(),
}));
const parts = Array.from(document.querySelectorAll("[data-part]"));

// filter shows what the search and the checkbox ask for, and says how much that is.
function filter() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const all = (text) => words.every((word) => text.includes(word));
  let shown = 0;
  for (const { row, same, text, items } of rows) {
    row.hidden = (only.checked && same) || !all(text);
    if (!row.hidden) shown++;
    const some = words.length > 0 && items.some((item) => all(item.text));
    for (const item of items) item.item.hidden = some && !all(item.text);
    for (const details of row.querySelectorAll("details")) {
      if (some && !details.open) {
        details.open = true;
        details.dataset.opened = "";
      } else if (!some && "opened" in details.dataset) {
        details.open = false;
        delete details.dataset.opened;
      }
    }
  }
  let lit = 0;
  for (const { button, twin, same, text } of nodes) {
    button.hidden = twin.hidden = only.checked && same;
    const dim = !all(text);
    button.classList.toggle("dim", dim);
    twin.classList.toggle("dim", dim);
    if (!button.hidden && !dim) lit++;
  }
  for (const part of parts) {
    part.hidden = !part.querySelector("[data-row]:not([hidden]), button.node:not([hidden]):not(.dim)");
  }
  const asked = words.length > 0 || only.checked;
  found.textContent = asked ? `${shown} ${shown === 1 ? "entry" : "entries"}, ${lit} ${lit === 1 ? "node" : "nodes"}` : "";
  empty.hidden = shown + lit > 0;
  reach();
}

// reach lets one node of each group be reached by Tab; the arrow keys go on from it.
function reach() {
  for (const group of document.querySelectorAll(".after .nodes")) {
    const there = Array.from(group.querySelectorAll("button.node:not([hidden])"));
    const now = there.find((node) => node.tabIndex === 0) || there[0];
    for (const node of group.querySelectorAll("button.node")) node.tabIndex = node === now ? 0 : -1;
  }
}

function item(list, text) {
  const line = document.createElement("li");
  const code = document.createElement("code");
  code.textContent = text;
  line.append(code);
  list.append(line);
}

// show says what is to be said of a node: its numbers, and which pods come and go.
function show(button) {
  for (const { button: other, twin } of nodes) {
    if (other.getAttribute("aria-current")) {
      other.removeAttribute("aria-current");
      twin.classList.remove("twin");
    }
  }
  button.setAttribute("aria-current", "true");
  document.getElementById("b" + button.id.slice(1)).classList.add("twin");
  const line = document.createElement("p");
  line.textContent = button.getAttribute("aria-label");
  const list = document.createElement("ul");
  const section = button.closest("[data-cluster]");
  const name = button.dataset.node;
  for (const move of section.querySelectorAll("[data-from]")) {
    if (move.dataset.to === name) item(list, `+ ${move.dataset.pod} comes from ${move.dataset.from}`);
    if (move.dataset.from === name) item(list, `\u2212 ${move.dataset.pod} goes to ${move.dataset.to}`);
  }
  const about = section.querySelector(".about");
  about.replaceChildren(line, list);
  about.hidden = false;
}

const keys = { ArrowRight: 1, ArrowLeft: -1 };
function step(event) {
  const button = event.target.closest("button.node");
  if (!button) return;
  const there = Array.from(button.parentElement.querySelectorAll("button.node:not([hidden])"));
  const at = there.indexOf(button);
  const row = there.filter((node) => node.offsetTop === there[0].offsetTop).length;
  let to = at + (keys[event.key] || 0);
  if (event.key === "ArrowDown") to = at + row;
  if (event.key === "ArrowUp") to = at - row;
  if (event.key === "Home") to = 0;
  if (event.key === "End") to = there.length - 1;
  if (to === at || !there[to]) return;
  event.preventDefault();
  button.tabIndex = -1;
  there[to].tabIndex = 0;
  there[to].focus();
}

document.addEventListener("focusin", (event) => { if (event.target.matches("button.node")) show(event.target); });
document.addEventListener("click", (event) => {
  const button = event.target.closest("button.node");
  if (button) show(button);
});
document.addEventListener("keydown", (event) => {
  step(event);
  if (event.key === "/" && document.activeElement !== search) {
    event.preventDefault();
    search.focus();
  }
  if (event.key === "Escape" && document.activeElement === search) {
    search.value = "";
    filter();
  }
});
if (search) {
  search.addEventListener("input", filter);
  only.addEventListener("change", filter);
  reach();
}
