"use strict";
const search = document.getElementById("search");
const only = document.getElementById("only");
const found = document.getElementById("found");
function filter() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of document.querySelectorAll("[data-row]")) {
    const text = row.textContent.toLowerCase();
    const same = only.checked && row.dataset.row === "same";
    row.hidden = same || !words.every((word) => text.includes(word));
    if (!row.hidden) shown++;
  }
  found.textContent = shown + " shown";
}
search.addEventListener("input", filter);
only.addEventListener("change", filter);
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== search) {
    event.preventDefault();
    search.focus();
  }
  if (event.key === "Escape" && document.activeElement === search) {
    search.value = "";
    filter();
  }
});
filter();
