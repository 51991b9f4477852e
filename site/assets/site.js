// Search, the choice of light or dark, and the navigation of a small screen. The index is loaded when it is needed.
"use strict";
const root = document.documentElement;
document.getElementById("theme").onclick = () => {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
};
const menu = document.getElementById("menu");
menu.onclick = () => menu.setAttribute("aria-expanded", document.getElementById("nav").classList.toggle("open"));

const input = document.getElementById("search"), results = document.getElementById("results");
let loading;
function load() {
  loading ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = window.up + "search-index.js";
    script.onload = done;
    script.onerror = failed;
    document.head.append(script);
  });
  return loading;
}

// find returns the entries that have every word: those with the words in their title first, then those with more of them.
function find(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const found = [];
  for (const e of window.searchIndex) {
    const title = e.t.toLowerCase(), page = e.p.toLowerCase(), text = e.x.toLowerCase();
    let score = 0;
    for (const w of words) {
      const times = text.split(w).length - 1;
      const one = (title.includes(w) ? 40 : 0) + (page.includes(w) ? 10 : 0) + Math.min(times, 8);
      if (!one) { score = 0; break; }
      score += one;
    }
    if (score) found.push({ e, score });
  }
  return found.sort((a, b) => b.score - a.score).slice(0, 12).map((f) => f.e);
}

// snippet returns the text around the first of the words, with the words marked.
function snippet(text, words) {
  const small = text.toLowerCase();
  const at = Math.max(0, Math.min(...words.map((w) => small.indexOf(w)).filter((i) => i >= 0), text.length) - 40);
  const line = document.createElement("small");
  let rest = (at ? "... " : "") + text.slice(at, at + 160);
  while (rest) {
    const places = words.map((w) => [rest.toLowerCase().indexOf(w), w.length]).filter(([i]) => i >= 0);
    const [i, n] = places.sort((a, b) => a[0] - b[0])[0] ?? [rest.length, 0];
    line.append(rest.slice(0, i));
    if (n) line.append(Object.assign(document.createElement("mark"), { textContent: rest.slice(i, i + n) }));
    rest = rest.slice(i + n);
  }
  return line;
}

async function show() {
  await load();
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  results.replaceChildren(...find(input.value).map((e) => {
    const item = document.createElement("li"), link = document.createElement("a");
    link.href = window.up + e.l;
    link.append(e.t === e.p ? e.t : e.p + ": " + e.t, snippet(e.x, words));
    link.onclick = () => { results.hidden = true; };
    item.append(link);
    return item;
  }));
  if (!results.children.length && words.length) {
    results.append(Object.assign(document.createElement("li"), { className: "none", textContent: "Nothing found." }));
  }
  results.hidden = !words.length;
}
input.oninput = show;
input.onfocus = load;
document.addEventListener("keydown", (e) => {
  if (e.key === "/" && document.activeElement !== input) { e.preventDefault(); input.focus(); }
  if (e.key === "Escape") { results.hidden = true; input.blur(); }
  if (e.key === "Enter" && document.activeElement === input) results.querySelector("a")?.click();
  if (results.hidden || (e.key !== "ArrowDown" && e.key !== "ArrowUp")) return;
  e.preventDefault();
  const links = [...results.querySelectorAll("a")], at = links.indexOf(document.activeElement);
  (links[at + (e.key === "ArrowDown" ? 1 : -1)] ?? input).focus();
});
document.addEventListener("click", (e) => { if (!e.target.closest(".search")) results.hidden = true; });
