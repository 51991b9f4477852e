// The page: it asks for a snapshot once a second while it can be seen, and shows it in one of five views. Each snapshot
// replaces the last one; only the lengths of channels are remembered, for their curves. A view is a list of rows, of
// which only those in sight are in the document.
//
// Names come from the program that is shown and may hold anything. So all text is set as text, never parsed as HTML.
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const list = $("list"), rowsAt = $("rows"), panel = $("panel");

  const H = 25; // height of a row
  const EXTRA = 6; // rows drawn above and below those in sight
  const PAST = 60; // lengths of a channel that are remembered
  const NODES = 60; // of the graph
  const CHILD = "its child";
  const OTHERS = " or others without a name";
  const COUNTERS = [/*counters*/]; // of an object: filled in by page.go
  const TOLD = 100; // from so many fibers on, an explanation does not divide groups: the snapshot has only the first ones
  const SAME = 3; // from so many fibers that do the same on, the tree has one row for them

  // el makes an element. Attributes go by name; text is always text.
  function el(tag, attributes, ...children) {
    return fill(document.createElement(tag), attributes, children);
  }
  function svg(tag, attributes, ...children) {
    return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
  }
  function fill(e, attributes, children) {
    for (const name in attributes) {
      const value = attributes[name];
      if (typeof value === "function") e["on" + name] = value;
      else if (value !== undefined && value !== false) e.setAttribute(name, value === true ? "" : plain(value));
    }
    for (const child of children) if (child !== undefined && child !== "") e.append(child instanceof Node ? child : plain(child));
    return e;
  }
  // plain returns a text without control characters and without those that change the direction of writing.
  const plain = (text) => String(text).replace(/[^\P{C}\n\t]/gu, "\ufffd");

  const grouped = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");
  const count = (n, what) => grouped(n) + " " + what + (n === 1 ? "" : "s");

  // age is a time of ms milliseconds as people say it.
  function age(ms) {
    if (!(ms >= 0)) return "";
    if (ms < 1000) return Math.round(ms) + "ms";
    if (ms < 10000) return (ms / 1000).toFixed(1) + "s";
    const s = Math.floor(ms / 1000), m = Math.floor(s / 60), h = Math.floor(m / 60);
    if (s < 60) return s + "s";
    if (m < 60) return m + "m" + (s % 60 ? (s % 60) + "s" : "");
    if (h < 24) return h + "h" + (m % 60 ? (m % 60) + "m" : "");
    return Math.floor(h / 24) + "d" + (h % 24 ? (h % 24) + "h" : "");
  }

  const stem = (name) => name.replace(/\[\d+\]$/, "");
  const GOROUTINE = 2 ** 52; // snapshot.FirstGoroutine: a goroutine that is not a fiber has its number in its name
  const numbered = (name, id) => (id < GOROUTINE ? (name ? name + " #" : "#") + id : name || "goroutine[" + (id - GOROUTINE) + "]");

  // Model is a snapshot with what the views ask for.
  class Model {
    constructor(raw) {
      this.raw = raw;
      this.taken = Date.parse(raw.taken);
      this.process = raw.process || {};
      this.fibers = (raw.fibers || []).sort((a, b) => a.id - b.id); // a snapshot has them in any order
      this.nurseries = raw.nurseries || [];
      this.objects = raw.objects || [];
      this.why = raw.explanations || [];
      this.fiber = new Map(), this.nursery = new Map(), this.object = new Map();
      this.members = new Map(), this.owned = new Map();
      this.states = {}, this.stuck = new Set(), this.told = new Map(), this.about = new Set();
      for (const f of this.fibers) this.fiber.set(f.id, f);
      for (const o of this.objects) this.object.set(o.id, o);
      for (const f of this.fibers) {
        f.age = f.since ? Math.max(0, this.taken - Date.parse(f.since)) : -1;
        const waits = (text) => f.wait && f.wait.length ? "waits " + f.wait.slice(0, 4).map((w) => text(w) + this.heldBy(w.object)).join(", or ") +
          (f.wait.length > 4 ? ", or " + (f.wait.length + (f.more || 0) - 4) + " others" : "") : f.call && f.call !== "running" ? "in " + f.call : "";
        f.text = waits((w) => w.text);
        f.like = f.text.includes("#") ? waits((w) => w.object ? (w.text + " ").replace("#" + w.object + " ", "# ") : w.text) : f.text;
        f.find = undefined;
        this.states[f.state] = (this.states[f.state] || 0) + 1;
        push(this.members, f.nursery, f);
      }
      for (const n of this.nurseries) {
        this.nursery.set(n.id, n);
        push(this.owned, n.owner, n);
      }
      for (const o of this.objects) {
        o.age = o.oldest ? Math.max(0, this.taken - Date.parse(o.oldest)) : -1;
        o.waiting = (o.senders || 0) + (o.receivers || 0) + (o.waiters || 0);
      }
      for (const e of this.why) {
        const ids = e.fibers || [], name = e.kind + "#" + ids[0] + "\0"; // in the next snapshot it is the same
        for (const id of ids) this.stuck.add(id);
        for (const id of e.objects || []) this.about.add(id);
        if (ids.length < TOLD) for (const id of ids) this.told.set(id, (this.told.get(id) || "") + name);
      }
    }

    // heldBy names the fibers that hold an object, in words that follow others.
    heldBy(id) {
      const o = this.object.get(id) || {}, by = o.holders || [];
      const names = by.slice(0, 3).map((k) => numbered((this.fiber.get(k) || {}).name || "", k));
      return by.length ? (o.kind === "pool" ? ", lent to " : ", held by ") + names.join(", ") + (by.length > 3 ? ", …" : "") : "";
    }

    // groups returns the fibers that do the same, in groups, by the rule of snapshot.Groups: a fiber that an explanation
    // is about is in no group with fibers that it is not about.
    groups(fibers) {
      const all = new Map();
      for (const f of fibers) {
        const key = [stem(f.name), f.state, f.like, f.spawned, f.at || "", this.told.get(f.id) || ""].join("\0");
        let g = all.get(key);
        if (!g) all.set(key, g = { key, fibers: [], oldest: f, name: f.name, state: f.state, text: f.text, spawned: f.spawned, age: -1, youngest: -1 });
        g.fibers.push(f);
        if (f.text !== g.oldest.text && !g.text.endsWith(OTHERS)) g.text += OTHERS;
        if (f.age > g.age) g.age = f.age, g.oldest = f;
        if (f.age >= 0 && (g.youngest < 0 || f.age < g.youngest)) g.youngest = f.age;
      }
      for (const g of all.values()) if (g.fibers.length > 1 && stem(g.name) !== g.name) g.name = stem(g.name) + "[…]";
      return [...all.values()];
    }

    // bunches returns the objects, where those without names that are alike are one, by the rule of snapshot.Groups.
    bunches() {
      const all = new Map(), kinds = new Map();
      for (const o of this.objects) {
        const key = o.name || this.about.has(o.id) || o.trouble || o.tickets && o.tickets.length ? "o" + o.id : "u" + o.kind + "\0" + (o.made || "");
        push(kinds, key, o);
      }
      for (const [key, of] of kinds) {
        if (of.length < SAME) {
          for (const o of of) all.set("o" + o.id, { object: o });
          continue;
        }
        const sum = { id: of[0].id, kind: of[0].kind, name: "", made: of[0].made, age: -1, waiting: 0, senders: 0, receivers: 0, waiters: 0, len: 0 };
        for (const o of of) {
          sum.age = Math.max(sum.age, o.age);
          for (const n of ["waiting", "senders", "receivers", "waiters", "len"]) sum[n] += o[n] || 0;
        }
        all.set(key, { object: sum, bunch: of });
      }
      return all;
    }
  }
  function push(map, key, value) {
    const all = map.get(key);
    if (all) all.push(value); else map.set(key, [value]);
  }

  let model = null;
  let rows = []; // of the view
  let cur = 0; // the chosen row
  let view = "tree", query = "", only = "", of = 0;
  let paused = false, offline = false;
  let picked = null; // what the panel shows: {fiber}, {object} or {group}
  const shut = new Set(), opened = new Set(); // nurseries that are folded, groups that are not
  const past = new Map(); // the lengths of each object
  const sorts = { fibers: ["age", -1], groups: ["count", -1], objects: ["age", -1] };

  // Views: the columns are name, width, sort key and how the cell is made.
  const span = (kind, ...children) => el("span", { class: kind }, ...children);
  const named = (x, stuck) => el("span", { class: stuck ? "stuck" : "", title: x.name }, x.name);
  const from = (x) => el("span", { class: "dim", title: x.spawned }, short(x.spawned || ""));
  const short = (place) => place.replace(/^.*[\/\\](?=[^\/\\]+[\/\\][^\/\\]+$)/, "");
  const stateOf = (x) => span(x.state, span("dot"), x.state);
  const doing = (f) => el("span", { title: f.text }, f.text.replace(/^waits /, "") || "");
  const ageOf = (x) => span("num", age(x.age));
  // ages is the age of the oldest wait, or if that is long and the youngest is much younger, also of that.
  const ages = (youngest, oldest) => (youngest >= 0 && oldest >= 1000 && youngest < oldest / 2 ? age(youngest) + "–" : "") + age(oldest);
  const NAME = ["name", "minmax(140px, 1.4fr)", "name"], STATE = ["state", "92px", "state"], FROM = ["spawned at", "minmax(150px, 1fr)", "spawned"];
  const wide = (label, by) => [label, "minmax(200px, 3fr)", by], narrow = (label, by) => [label, "64px", by, "num"];
  const views = {
    tree: {
      label: "tree",
      columns: [["nursery or fiber", "minmax(220px, 1.7fr)"], ["state", "92px"], wide("waits"), ["for", "104px", undefined, "num"], FROM.slice(0, 2)],
      cells: (r) => r.nursery ? nurseryCells(r) : r.group ? groupCells(r) : fiberCells(r),
    },
    fibers: {
      label: "fibers",
      columns: [narrow("number", "id"), NAME, STATE, wide("waits", "text"), narrow("for", "age"), FROM],
      cells: ({ fiber: f }) => [span("num dim", f.id < GOROUTINE ? f.id : ""), named(f, isStuck(f)), stateOf(f), doing(f), ageOf(f), from(f)],
    },
    groups: {
      label: "equal waits",
      columns: [narrow("fibers", "count"), NAME, STATE, wide("wait", "text"), narrow("oldest", "age"), narrow("youngest", "youngest"), FROM],
      cells: ({ group: g }) => [span("num times", grouped(g.fibers.length)), named(g, g.fibers.some(isStuck)), stateOf(g), doing(g), ageOf(g),
        span("num", age(g.youngest)), from(g)],
    },
    objects: {
      label: "channels and locks",
      columns: [NAME, ["kind", "80px", "kind"], ["holds", "200px", "len"], ["wait", "minmax(170px, 1.5fr)", "waiting"], narrow("oldest", "age"),
        ["held by", "minmax(110px, 1.2fr)"]],
      cells: (r) => r.bunch ? bunchCells(r) : objectCells(r.object),
    },
    waits: { label: "graph of waits" },
  };

  const isStuck = (f) => model.stuck.has(f.id);
  // first makes the first cell of a row of the tree.
  function first(r, title, ...children) {
    const e = el("span", { class: "name", title }, mark(r), ...children);
    e.style.paddingLeft = r.depth * 16 + "px";
    return e;
  }
  function mark(r) {
    if (r.open !== undefined) return el("span", { class: "mark", "data-fold": true }, r.open ? "▾" : "▸");
    return isStuck(r.fiber) ? span("mark bad", "✱") : span("mark");
  }
  function fiberCells(r) {
    const f = r.fiber;
    return [first(r, f.name, f.name || "#" + f.id, span("dim", f.name && f.id < GOROUTINE ? "  #" + f.id : "")), stateOf(f), doing(f), ageOf(f), from(f)];
  }
  function nurseryCells(r) {
    const n = r.nursery;
    const says = count(n.children, "fiber") + (n.limit ? " of at most " + grouped(n.limit) : "") + deadline(n) +
      (n.ended ? ", cancelled: " + (n.cause || "cause not known") : "");
    return [first(r, "", (n.parent ? "nursery " : "run ") + n.id),
      span(""), el("span", { class: n.ended ? "bad" : "dim", title: says }, says), span(""), span("")];
  }
  function groupCells(r) {
    const g = r.group;
    return [first(r, g.name, span("times", grouped(g.fibers.length) + " × "), named(g, g.fibers.some(isStuck))), stateOf(g), doing(g),
      span("num", ages(g.youngest, g.age)), from(g)];
  }
  const objectCells = (o) => [el("span", { title: o.name }, numbered(o.name, o.id)), span("dim", o.kind), span("cell", curve(o, 84, 17), holds(o)),
    span("", waiters(o)), ageOf(o), el("span", { title: holders(o) }, holders(o))];
  function bunchCells(r) {
    const o = r.object, at = short(o.made || "");
    return [first(r, o.made || "", span("times", grouped(r.bunch.length) + " × "), "without a name" + (at ? ", made at " + at : "")), span("dim", o.kind),
      span(""), span("", waiters(o)), ageOf(o), span("")];
  }
  function deadline(n) {
    if (!n.deadline) return "";
    const left = Date.parse(n.deadline) - model.taken;
    return left >= 0 ? ", ends in " + age(left) : ", should have ended " + age(-left) + " ago";
  }
  // The kinds of objects that have a length.
  const FILLS = new Set(["channel", "subscription", "pool", "desk", "remote channel"]);
  function holds(o) {
    if (!FILLS.has(o.kind)) return "";
    const text = o.cap < 0 ? grouped(o.len || 0) + ", no limit" : !o.cap ? "no buffer" : grouped(o.len || 0) + " of " + grouped(o.cap) + (o.kind === "pool" ? " lent" : "");
    return el("span", { class: o.trouble || o.cap > 0 && o.len >= o.cap ? "bad" : "" },
      (o.kind === "remote channel" ? o.note : o.note ? text + ", " + o.note : text) + (o.closed ? ", closed" : "") + (o.trouble ? ", " + o.trouble : ""));
  }
  function waiters(o) {
    const parts = [];
    if (o.senders) parts.push(grouped(o.senders) + " to send");
    if (o.receivers) parts.push(grouped(o.receivers) + (o.kind === "pool" ? " for a value" : " to receive"));
    if (o.waiters) parts.push(grouped(o.waiters) + (parts.length ? " else" : o.waiters === 1 ? " waits" : " wait"));
    return parts.join(", ");
  }
  const holders = (o) => (o.holders || []).slice(0, 3).map(fiberName).join(", ") + ((o.holders || []).length > 3 ? ", …" : "");
  function fiberName(id) {
    const f = model.fiber.get(id);
    return numbered(f ? f.name : "", id);
  }

  // curve draws the last lengths of a channel, or how many wait for another object.
  function curve(o, width, height) {
    const p = past.get(o.id), values = p ? p.values : [], cap = FILLS.has(o.kind) && o.cap > 0 ? o.cap : 0;
    const top = Math.max(cap, 1, ...values), x = (i) => (width * i / (PAST - 1)).toFixed(1), y = (v) => (height - 1 - (height - 2) * v / top).toFixed(1);
    const begin = PAST - values.length;
    const line = values.map((v, i) => (i ? "L" : "M") + x(begin + i) + " " + y(v)).join("");
    const label = "the last " + count(values.length, "value");
    const e = svg("svg", { class: "curve", width, height, viewBox: "0 0 " + width + " " + height, role: "img", "aria-label": label });
    if (values.length) {
      e.append(svg("path", { class: "area", d: line + "L" + width + " " + height + "L" + x(begin) + " " + height + "Z" }));
      if (cap) e.append(svg("path", { class: "full", d: "M0 " + y(cap) + "H" + width }));
      e.append(svg("path", { d: values.length === 1 ? line + "h-3" : line }));
    }
    return e;
  }

  // remember adds the lengths of a snapshot to the past, and forgets objects that have not been seen for long.
  function remember() {
    for (const p of past.values()) p.unseen++;
    for (const o of model.objects) {
      let p = past.get(o.id);
      if (!p) {
        if (past.size >= 5000) continue;
        past.set(o.id, p = { values: [], unseen: 0 });
      }
      for (; p.unseen > 1 && p.values.length; p.unseen--) p.values.push(0); // nobody waited meanwhile
      p.unseen = 0;
      p.values.push(FILLS.has(o.kind) ? o.len || 0 : o.waiting);
      if (p.values.length > PAST) p.values.splice(0, p.values.length - PAST);
    }
    for (const [id, p] of past) if (p.unseen > PAST) past.delete(id);
  }

  // matches reports whether a fiber is to be shown.
  function matches(f) {
    if (only && f.state !== only) return false;
    if (!query) return true;
    if (f.find === undefined) f.find = [f.name, "#" + f.id, f.state, f.text, f.spawned, f.at || ""].join(" ").toLowerCase();
    return f.find.includes(query);
  }

  // build makes the rows of the view.
  function build() {
    const key = rows[cur] && rows[cur].key;
    rows = [];
    let hits = 0;
    if (view === "tree") {
      hits = tree();
    } else if (view === "objects") {
      const fits = (o) => [o.kind, o.name || "", "#" + o.id, holders(o)].join(" ").toLowerCase().includes(query);
      const row = (key, o, more) => ({ key, id: o.id, object: o, name: o.name || "", kind: o.kind, len: o.len || 0, waiting: o.waiting, age: o.age, ...more });
      if (query) rows = model.objects.filter(fits).map((o) => row("o" + o.id, o));
      else for (const [key, { object, bunch }] of model.bunches()) rows.push(row(key, object, bunch && { bunch, depth: 0, open: opened.has(key) }));
      hits = rows.length;
    } else if (view !== "waits") {
      const shown = model.fibers.filter(matches);
      hits = shown.length;
      const row = (key, x, id) => ({ key, id, name: x.name, state: x.state, text: x.text, age: x.age, spawned: x.spawned || "" });
      if (view === "fibers") rows = shown.map((f) => ({ ...row("f" + f.id, f, f.id), fiber: f }));
      else rows = model.groups(shown).map((g) => ({ ...row("g" + g.key, g, g.oldest.id), group: g, count: g.fibers.length, youngest: g.youngest }));
    }
    if (sorts[view]) {
      const [by, way] = sorts[view];
      rows.sort((a, b) => way * (a[by] < b[by] ? -1 : a[by] > b[by] ? 1 : 0) || a.id - b.id);
    }
    rows = rows.flatMap((r) => r.bunch && r.open ? [r, ...r.bunch.map((o) => ({ key: "o" + o.id, id: o.id, object: o }))] : [r]);
    if (key !== undefined) {
      const at = rows.findIndex((r) => r.key === key);
      if (at >= 0) cur = at;
    }
    cur = Math.max(0, Math.min(cur, rows.length - 1));
    $("hits").textContent = query && view !== "waits" ? count(hits, view === "objects" ? "object" : "fiber") : "";
  }

  // tree makes the rows of nurseries and fibers, and returns how many fibers match.
  function tree() {
    const done = new Set(), filtered = query !== "" || only !== "";
    let hits = 0;
    // The snapshot may be wrong or hostile: a nursery is shown once, and depth is bounded.
    const nursery = (n, depth) => {
      if (done.has(n.id)) return;
      done.add(n.id);
      const at = rows.length, row = { key: "n" + n.id, nursery: n, depth, open: !shut.has(n.id) || filtered };
      rows.push(row);
      const before = hits;
      if (depth > 60) return;
      below(model.members.get(n.id) || [], depth + 1, n.id);
      if (filtered && hits === before) rows.length = at;
      if (!row.open) rows.length = at + 1;
    };
    const below = (fibers, depth, where) => {
      const many = [], parts = []; // parts are fibers with what is below them, and groups, in the order of their first fibers
      for (const f of fibers) {
        if ((model.owned.get(f.id) || []).some((n) => !done.has(n.id))) parts.push({ first: f.id, fiber: f });
        else if (matches(f)) many.push(f);
      }
      hits += many.length;
      for (const group of model.groups(many)) parts.push({ first: group.fibers[0].id, group });
      parts.sort((a, b) => a.first - b.first);
      for (const { fiber: f, group: g } of parts) {
        if (f) {
          const at = rows.length, before = hits;
          rows.push({ key: "f" + f.id, fiber: f, depth });
          if (matches(f)) hits++;
          for (const n of model.owned.get(f.id)) nursery(n, depth + 1);
          if (filtered && hits === before) rows.length = at;
        } else if (g.fibers.length < SAME) {
          for (const one of g.fibers) rows.push({ key: "f" + one.id, fiber: one, depth });
        } else {
          const key = "g" + where + " " + g.key, open = opened.has(key);
          rows.push({ key, group: g, depth, open });
          if (open) for (const one of g.fibers) rows.push({ key: "f" + one.id, fiber: one, depth: depth + 1 });
        }
      }
    };
    for (const n of model.nurseries) if (!n.parent || !model.nursery.has(n.parent) || !model.fiber.has(n.owner)) nursery(n, 0);
    for (const n of model.nurseries) nursery(n, 0);
    below(model.fibers.filter((f) => !model.nursery.has(f.nursery)), 0, "");
    return hits;
  }

  // draw shows the rows in sight.
  let begin = -1, end = -1; // of the rows in the document
  function draw(changed) {
    const v = views[view];
    if (!v.columns) return;
    const from = Math.max(0, Math.floor(list.scrollTop / H) - EXTRA), to = Math.min(rows.length, Math.ceil((list.scrollTop + list.clientHeight) / H) + EXTRA);
    if (!changed && from === begin && to === end) return;
    begin = from, end = to;
    const columns = v.columns.map((c) => c[1]).join(" "), out = [];
    for (let i = from; i < to; i++) {
      const r = rows[i], kind = r.nursery ? " nursery" : r.group || r.bunch ? " group" : "";
      const e = el("div", { class: "row" + kind + (i === cur ? " cur" : ""), role: "row", id: "row" + i, "data-i": i, "aria-rowindex": i + 2 });
      e.setAttribute("aria-selected", i === cur);
      if (r.open !== undefined) e.setAttribute("aria-expanded", r.open);
      e.style.gridTemplateColumns = columns;
      for (const cell of v.cells(r)) {
        cell.setAttribute("role", "gridcell");
        e.append(cell);
      }
      out.push(e);
    }
    rowsAt.replaceChildren(...out);
    rowsAt.style.transform = "translateY(" + from * H + "px)";
  }

  // heads draws the head of the columns.
  function heads() {
    const v = views[view];
    list.hidden = !v.columns;
    $("graph").hidden = !!v.columns;
    if (!v.columns) return;
    $("heads").style.gridTemplateColumns = v.columns.map((c) => c[1]).join(" ");
    $("heads").replaceChildren(...v.columns.map(([label, , by, kind]) => {
      const sorted = by && sorts[view] && sorts[view][0] === by ? sorts[view][1] : 0;
      const head = el("span", { role: "columnheader", class: kind || "" });
      if (sorted) head.setAttribute("aria-sort", sorted > 0 ? "ascending" : "descending");
      head.append(by ? el("button", { title: "sort by " + label, click: () => sortBy(by) }, label + (sorted > 0 ? " ▲" : sorted < 0 ? " ▼" : "")) : label);
      return head;
    }));
  }
  function sortBy(by) {
    const s = sorts[view];
    sorts[view] = s[0] === by ? [by, -s[1]] : [by, /^(age|youngest|count|len|waiting)$/.test(by) ? -1 : 1];
    heads();
    refresh();
    const again = [...$("heads").querySelectorAll("[aria-sort] button")][0];
    if (again) again.focus();
  }

  // refresh shows the model again.
  function refresh() {
    if (!model) return;
    build();
    $("space").style.height = rows.length * H + "px";
    list.setAttribute("aria-rowcount", rows.length + 1);
    list.setAttribute("aria-activedescendant", "row" + cur);
    draw(true);
    if (view === "waits") graph();
    $("empty").hidden = rows.length > 0 || view === "waits";
    $("empty").textContent = query || only ? "nothing matches" : view === "objects" ? "no fiber waits for a channel or a lock" : "there are no fibers";
    show();
  }

  // update shows a new snapshot.
  function update(raw) {
    model = new Model(raw);
    remember();
    const p = model.process, taken = new Date(model.taken);
    document.title = (model.why.length ? "✱ " : "") + plain(p.program || "coir") + " – coir";
    $("title").textContent = plain(p.program || "coir");
    $("title").title = plain(p.program || "");
    const about = [];
    if (p.pid) about.push("process " + p.pid);
    const goroutines = model.states.goroutine || 0;
    about.push(count(p.live || model.fibers.length - goroutines, "fiber"), grouped(p.spawned || 0) + " spawned");
    if (raw.omitted) about.push(grouped(raw.omitted) + " not shown");
    const when = isNaN(taken) ? "" : offline ? taken.toLocaleString() : taken.toLocaleTimeString();
    about.push("taken " + when + " in " + (raw.took / 1e6).toFixed(1) + " ms", "coir " + (p.coir || "?"), p.go || "");
    $("about").textContent = plain(about.filter(Boolean).join(" · "));
    $("about").title = $("about").textContent;
    const n = Math.min(raw.runtimes || 1, 1000);
    $("of").hidden = n < 2 || offline;
    if ($("of").options.length !== n) $("of").replaceChildren(...Array.from({ length: n }, (_, i) => el("option", { value: i }, "runtime " + i)));
    why();
    states();
    tabs();
    refresh();
  }

  function link(text, act, title) {
    return el("button", { class: "link", title, click: act }, text);
  }
  const toFiber = (id) => link(fiberName(id), () => pick({ fiber: id }));
  const toObject = (id) => {
    const o = model.object.get(id);
    return link(o ? o.kind + " " + numbered(o.name, id) : "object #" + id, () => pick({ object: id }));
  };
  function listed(ids, one, others) {
    const all = [], more = ids.length - 8 + (others || 0);
    for (const id of ids.slice(0, 8)) all.push(all.length ? ", " : "", one(id));
    if (more > 0) all.push(" and " + grouped(more) + " more");
    return all;
  }

  function reason(e, ...text) {
    const how = e.certain ? "certain" : "likely";
    const since = e.since ? "for " + age(model.taken - Date.parse(e.since)) : "";
    return el("div", { class: "why " + how }, el("b", {}, how), span("text", span("dim", "[" + e.kind + "] "), ...text), span("age", since));
  }

  // why shows what is wrong, on top.
  let whyNow = "";
  function why() {
    const fine = model.why.length ? "" : model.raw.noProblem || "";
    const now = fine + JSON.stringify(model.why.map((e) => [e.kind, e.text, e.certain, e.fibers, e.objects, e.since && age(model.taken - Date.parse(e.since))]));
    if (now === whyNow) return; // it keeps the focus
    whyNow = now;
    const order = [...model.why].sort((a, b) => b.certain - a.certain);
    $("why").replaceChildren(...order.slice(0, 50).map((e) => {
      const who = el("span", { class: "who" });
      if (e.fibers && e.fibers.length) who.append(" — ", ...listed(e.fibers, toFiber, e.omitted));
      return reason(e, e.text, who);
    }));
    if (fine) $("why").append(el("p", { class: "fine dim" }, fine));
    if (order.length > 50) $("why").append(el("p", { class: "dim" }, "and " + (order.length - 50) + " more"));
  }

  function states() {
    const known = ["waiting", "ready", "running", "blocking", "outside", "pending", "goroutine"];
    const focus = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.state : "";
    $("states").replaceChildren(...known.filter((s) => model.states[s] || only === s).map((s) =>
      el("button", { class: s, "data-state": s, "aria-pressed": String(only === s), click: () => filter(s) },
        span("dot"), grouped(model.states[s] || 0) + " " + s)));
    if (focus) for (const b of $("states").children) if (b.dataset.state === focus) b.focus();
  }

  function filter(state) {
    only = only === state ? "" : state;
    cur = 0;
    states();
    refresh();
  }

  function tabs() {
    const sizes = { fibers: model.fibers.length, objects: model.objects.length };
    if (!$("tabs").children.length) {
      Object.keys(views).forEach((name, i) => {
        const title = views[name].label + " (" + (i + 1) + ")";
        $("tabs").append(el("button", { role: "tab", id: "tab-" + name, "data-view": name, title, click: () => go(name) }, views[name].label, span("n")));
      });
    }
    for (const b of $("tabs").children) {
      const on = b.dataset.view === view;
      b.setAttribute("aria-selected", on ? "true" : "false");
      b.tabIndex = on ? 0 : -1;
      b.lastChild.textContent = b.dataset.view in sizes ? grouped(sizes[b.dataset.view]) : "";
    }
  }

  function go(name) {
    if (!views[name]) return;
    view = name;
    cur = 0, begin = -1;
    list.scrollTop = 0;
    heads();
    if (model) tabs(), refresh();
    (views[view].columns ? list : $("graph")).focus({ preventScroll: true });
    address();
  }

  // pick shows a fiber, an object or a group beside the view.
  let stack = null; // {id, text} of the fiber in the panel
  function pick(what) {
    picked = what;
    if (!what || !stack || stack.id !== what.fiber) stack = null;
    panel.dataset.shown = "";
    panel.scrollTop = 0;
    show();
    draw(true);
    if (view === "waits") graph();
    address();
  }
  function address() {
    const parts = [view];
    if (picked && picked.fiber !== undefined) parts.push("fiber=" + picked.fiber);
    if (picked && picked.object !== undefined) parts.push("object=" + picked.object);
    history.replaceState(null, "", "#" + parts.join("&"));
  }
  function arrive() {
    const parts = location.hash.slice(1).split("&");
    if (views[parts[0]] && parts[0] !== view) go(parts[0]);
    const m = /^(fiber|object)=(\d+)$/.exec(parts[1] || "");
    if (m) pick({ [m[1]]: Number(m[2]) });
  }

  function pairs(...all) {
    const e = el("dl", {});
    for (const [name, ...value] of all) if (value.some((v) => v !== "" && v !== undefined)) e.append(el("dt", {}, name), el("dd", {}, ...value));
    return e;
  }
  const ul = (items, most) => el("ul", {}, ...items.slice(0, most),
    items.length > most ? el("li", { class: "dim" }, "and " + grouped(items.length - most) + " more") : "");
  const item = (f) => el("li", {}, toFiber(f.id), el("span", { class: "dim" }, age(f.age)));

  // show draws the panel, if what it says has changed.
  function show() {
    panel.hidden = !picked;
    if (!picked || !model) return;
    let body, title;
    if (picked.fiber !== undefined) [title, body] = fiberPage(picked.fiber);
    else if (picked.object !== undefined) [title, body] = objectPage(picked.object);
    else [title, body] = groupPage(picked.group);
    const close = el("button", { id: "close", title: "close (Escape)", click: () => pick(null) }, "close");
    const next = el("div", {}, el("div", { class: "head" }, el("h2", {}, title), close), ...body);
    // Where the focus and the scroll positions are, so that an update does not move them.
    const shown = next.textContent;
    if (panel.dataset.shown === shown && !panel.querySelector(".curve")) return;
    panel.dataset.shown = shown;
    const at = panel.scrollTop, pre = panel.querySelector("pre"), preAt = pre ? pre.scrollTop : 0;
    const able = () => [...panel.querySelectorAll("button")], focus = able().indexOf(document.activeElement);
    panel.replaceChildren(next);
    panel.scrollTop = at;
    if (panel.querySelector("pre")) panel.querySelector("pre").scrollTop = preAt;
    if (focus >= 0 && able()[focus]) able()[focus].focus({ preventScroll: true });
  }

  function fiberPage(id) {
    const f = model.fiber.get(id);
    if (!f) return [numbered("fiber", id), [el("p", { class: "dim" }, model.raw.omitted ? "it has ended, or is not among those shown" : "it has ended")]];
    const body = [];
    for (const e of model.why) if ((e.fibers || []).includes(id)) body.push(reason(e, e.text));
    const places = [];
    for (let n = model.nursery.get(f.nursery), i = 0; n && i < 20; i++) {
      if (places.length) places.push(", in ");
      places.push((n.parent ? "nursery " : "run ") + n.id);
      if (n.owner === id || !n.parent) break;
      places.push(" of ", toFiber(n.owner));
      n = model.nursery.get(n.parent);
    }
    body.push(pairs(
      ["state", stateOf(f), f.wait || !f.text ? "" : " " + f.text, f.age >= 0 ? " for " + age(f.age) : ""],
      ["at", f.at || ""],
      ["ends", f.until ? "in " + age(Math.max(0, Date.parse(f.until) - model.taken)) : ""],
      ["spawned at", f.spawned || (f.main ? "the body of a Run" : "")],
      ["in", ...places],
      ["also ends with", f.foreign ? "a context that is not coir's" : ""],
      ["waits so far", id < GOROUTINE ? grouped(f.waits || 0) : ""],
      ["belongs to", f.system ? "coir" : ""]));
    if (f.wait && f.wait.length) {
      body.push(el("h3", {}, f.wait.length > 1 ? "waits for one of" : "waits"));
      body.push(ul(f.wait.map((w) => {
        const o = model.object.get(w.object), held = o && o.holders || [];
        const links = [...(w.object ? [toObject(w.object)] : []), ...(w.fiber ? [toFiber(w.fiber)] : []), ...held.slice(0, 8).map(toFiber)];
        return el("li", {}, el("span", {}, w.text, ...links.flatMap((l) => [" · ", l])));
      }), 30));
    }
    body.push(el("h3", {}, "stack"));
    if (f.stack || stack && stack.id === id) body.push(el("pre", { tabindex: 0, "aria-label": "stack" }, f.stack || stack.text));
    if (offline && !f.stack) body.push(el("p", { class: "dim" }, "not in this file: dump?stacks=1 has stacks"));
    if (!offline) {
      const title = "it stops the program for a moment (s)";
      body.push(el("p", {}, el("button", { id: "stack", title, click: () => ask(id) }, stack && stack.id === id ? "again" : "show the stack")));
    }
    const holding = model.objects.filter((o) => (o.holders || []).includes(id));
    if (holding.length) body.push(el("h3", {}, "holds"), ul(holding.map((o) => el("li", {}, toObject(o.id), el("span", { class: "dim" }, waiters(o)))), 30));
    const held = new Set(holding.map((o) => o.id));
    const waiting = model.fibers.filter((g) => g.id !== id && (g.wait || []).some((w) => w.fiber === id || w.object && held.has(w.object)));
    waiting.sort((a, b) => b.age - a.age);
    const head = count(waiting.length, "fiber") + (waiting.length === 1 ? " waits" : " wait") + " for it";
    if (waiting.length) body.push(el("h3", {}, head), ul(waiting.map(item), 20));
    return [numbered(f.name, id), body];
  }

  // ask gets the stack of a fiber.
  async function ask(id) {
    let text;
    try {
      const r = await fetch("fiber?id=" + id + "&of=" + of, { cache: "no-store" });
      text = r.ok ? (await r.json()).stack || "it has none: the fiber has not begun" : await r.text();
    } catch (err) {
      text = "no answer: " + err.message;
    }
    if (!picked || picked.fiber !== id) return;
    stack = { id, text };
    panel.dataset.shown = "";
    show();
  }

  function objectPage(id) {
    const o = model.object.get(id);
    if (!o) return [numbered("object", id), [el("p", { class: "dim" }, "no fiber waits for it now")]];
    const waiting = model.fibers.filter((f) => (f.wait || []).some((w) => w.object === id)).sort((a, b) => b.age - a.age);
    const lends = o.kind === "pool"; // what it has sent and received are its permits
    const held = (o.heldSince || []).map((t) => Date.parse(t)).filter((t) => t > 0);
    const number = (n) => (n ? grouped(n) : ""), fiber = (id) => (id ? toFiber(id) : "");
    const what = (lends ? "values lent" : FILLS.has(o.kind) ? "values in it" : "fibers that wait") + ", in the last " + PAST + " snapshots";
    const body = [curve(o, 390, 60), el("p", { class: "dim" }, what), pairs(
      ["holds", holds(o)], ["most so far", lends ? "" : number(o.high)],
      ...COUNTERS.map((c) => [c.words, lends && c.main ? "" : number(o[c.name])]), ["made at", o.made || ""],
      ["trouble", o.trouble ? o.trouble + (o.troubleSince ? ", for " + age(model.taken - Date.parse(o.troubleSince)) : "") : ""],
      ["last sender", lends ? "" : fiber(o.sender)], ["last receiver", lends ? "" : fiber(o.receiver)],
      [lends ? "lent to" : "held by", ...listed(o.holders || [], toFiber)],
      [lends ? "lent for" : "held for", held.length ? "in each snapshot for " + age(model.taken - Math.min(...held)) : ""],
      ["wait ends by", o.ends || ""], ["waiters", waiters(o).replace(/ waits?$/, "")], ["oldest wait", age(o.age)])];
    if (waiting.length) body.push(el("h3", {}, "fibers that wait for it, the oldest first"), ul(waiting.map(item), 50));
    const tickets = (o.tickets || []).map((t) => el("li", {}, t.name || "a ticket", el("span", { class: "dim" }, " open for " + age(model.taken - Date.parse(t.opened)))));
    if (tickets.length) body.push(el("h3", {}, "open tickets, the oldest first"), ul(tickets, 50));
    return [o.kind + " " + numbered(o.name, id), body];
  }

  function groupPage(key) {
    const g = model.groups(model.fibers).find((g) => g.key === key);
    if (!g) return ["equal waits", [el("p", { class: "dim" }, "no fiber does this now")]];
    return [grouped(g.fibers.length) + " × " + g.name, [
      pairs(["state", stateOf(g)], ["they", g.text.replace(/^waits/, "wait")], ["oldest", age(g.age)], ["youngest", age(g.youngest)],
        ["spawned at", g.spawned || ""]),
      el("h3", {}, "fibers, the oldest first"), ul([...g.fibers].sort((a, b) => b.age - a.age).map(item), 100)]];
  }

  // edges returns who waits for whom: for the end of a fiber, for what a fiber holds, or, as a guess, for the fiber that
  // last used the other side of a channel. A join is shown for the children that wait in such a way too, that are in a
  // call that blocks, or that an explanation is about. If there is no arrow then, it is shown for all children.
  //
  // The parts of a snapshot are from different moments, so a fiber that takes a lock meanwhile seems to wait for itself.
  // That is shown only if an explanation is about the fiber, because an explanation compares two snapshots.
  function edges() {
    const all = [], out = new Map();
    const add = (f, to, label, guess) => {
      if (!model.fiber.has(to) || out.has(f.id) && out.get(f.id).some((e) => e.to === to && e.label === label)) return;
      const e = { from: f.id, to, label, guess };
      all.push(e);
      push(out, f.id, e);
    };
    for (const f of model.fibers) {
      for (const w of f.wait || []) {
        const o = model.object.get(w.object);
        if (w.fiber) add(f, w.fiber, "its end", false);
        if (!o) continue;
        const label = numbered(o.name || o.kind, o.id);
        for (const h of (o.holders || []).slice(0, 10)) if (h !== f.id || isStuck(f)) add(f, h, label, f.wait.length > 1);
        if (!o.holders && w.kind === "send" && o.receiver && o.receiver !== f.id) add(f, o.receiver, label, true);
        if (!o.holders && o.kind !== "pool" && w.kind === "recv" && o.sender && o.sender !== f.id) add(f, o.sender, label, true);
      }
    }
    const joins = model.fibers.filter((f) => (f.wait || []).some((w) => w.kind === "join")).reverse(); // children have larger numbers
    const join = (f, fits) => f.wait.flatMap((w) => w.kind === "join" && model.members.get(w.nursery) || []).filter((c) => c.id !== f.id && fits(c));
    const holdsUp = (c) => out.has(c.id) || c.state === "blocking" || isStuck(c);
    for (let more = true, i = 0; more && i < 50; i++) { // up the tree
      more = false;
      for (const f of joins) {
        if (out.has(f.id)) continue;
        for (const child of join(f, holdsUp).slice(0, 6)) add(f, child.id, CHILD, false), more = true;
      }
    }
    if (!all.length) {
      for (const f of joins) {
        const to = join(f, () => true).map((c) => ({ from: f.id, to: c.id, label: CHILD, guess: false }));
        if (to.length) out.set(f.id, to);
        for (const e of to) all.push(e); // there may be too many for one call
      }
    }
    return { all, out };
  }

  // cycles returns the fibers that are in a cycle: the strongly connected components with more than one, by Tarjan,
  // without recursion.
  function cycles(out) {
    const index = new Map(), low = new Map(), on = new Set(), trail = [], found = new Set();
    for (const root of out.keys()) {
      if (index.has(root)) continue;
      const work = [[root, 0]];
      while (work.length) {
        const top = work[work.length - 1], [v, i] = top;
        if (i === 0) {
          index.set(v, index.size);
          low.set(v, index.get(v));
          trail.push(v);
          on.add(v);
        }
        const next = (out.get(v) || [])[i];
        if (next) {
          top[1]++;
          if (!index.has(next.to)) work.push([next.to, 0]);
          else if (on.has(next.to)) low.set(v, Math.min(low.get(v), index.get(next.to)));
          if (next.to === v) found.add(v);
          continue;
        }
        work.pop();
        if (work.length) {
          const up = work[work.length - 1][0];
          low.set(up, Math.min(low.get(up), low.get(v)));
        }
        if (low.get(v) !== index.get(v)) continue;
        const part = [];
        let w;
        do part.push(w = trail.pop()), on.delete(w); while (w !== v);
        if (part.length > 1) for (const w of part) found.add(w);
      }
    }
    return found;
  }

  // graph draws who waits for whom. Fibers that wait for the same, and that no fiber waits for, are one node.
  let graphNow = "";
  function graph() {
    const { all, out } = edges(), cycle = cycles(out), into = new Set(all.filter((e) => e.label !== CHILD).map((e) => e.to));
    const nodes = new Map(), nodeOf = new Map();
    const node = (f) => {
      const targets = (out.get(f.id) || []).map((e) => e.to + " " + e.label).join("|");
      const key = into.has(f.id) ? "f" + f.id : [stem(f.name), targets, model.told.get(f.id) || ""].join("|");
      let n = nodes.get(key);
      if (!n) nodes.set(key, n = { key, fibers: [], out: [], cycle: cycle.has(f.id) });
      n.fibers.push(f);
      nodeOf.set(f.id, n);
      return n;
    };
    for (const e of all) for (const id of [e.from, e.to]) if (!nodeOf.has(id)) node(model.fiber.get(id));
    const seen = new Set();
    for (const e of all) {
      const from = nodeOf.get(e.from), to = nodeOf.get(e.to), key = from.key + ">" + to.key + ">" + e.label;
      if (seen.has(key)) continue;
      seen.add(key);
      from.out.push({ from, to, label: e.label, guess: e.guess, cycle: cycle.has(e.from) && cycle.has(e.to) });
    }
    // Those in cycles come first, then those with the most waiters behind them.
    const wanted = (n) => (n.cycle ? 1e9 : 0) + n.fibers.reduce((m, f) => m + (model.stuck.has(f.id) ? 1e6 : 0), 0) + n.fibers.length;
    const order = [...nodes.values()].sort((a, b) => wanted(b) - wanted(a) || a.fibers[0].id - b.fibers[0].id), shown = new Set();
    for (const n of order) {
      if (shown.size >= NODES) break;
      shown.add(n);
      for (const e of n.out) if (shown.size < NODES) shown.add(e.to);
    }
    const now = JSON.stringify([[...shown].map((n) => [n.key, n.fibers.length, n.cycle, n.out.map((e) => [e.label, e.to.key, e.guess])]), picked]);
    if (now === graphNow && $("graph").firstChild) return; // it keeps the focus
    graphNow = now;
    if (!shown.size) {
      $("graph").replaceChildren(el("p", {}, "No fiber waits for another one, as far as is known: " +
        "for its end, for a lock that it holds, or for the other side of a channel."));
      return;
    }
    // A join is not drawn if the child is reached by way of another one: there would be too many arrows.
    const reaches = (n, to, seen) => n === to || !seen.has(n) && shown.has(n) && (seen.add(n), n.out.some((e) => reaches(e.to, to, seen)));
    for (const n of shown) {
      const other = (e) => n.out.some((o) => o.to !== e.to && !o.to.cycle && reaches(o.to, e.to, new Set([n])));
      n.out = n.out.filter((e) => e.label !== CHILD || !other(e));
    }
    for (const n of shown) { // of a cycle one is enough
      let had = false;
      n.out = n.out.filter((e) => e.label !== CHILD || !e.to.cycle || !had && (had = true));
    }
    const left = nodes.size - shown.size;
    $("graph").replaceChildren(el("p", {}, "An arrow leads from a fiber to the one that it waits for. " +
      "Dashed: a guess, the fiber that used the channel last, or one of several waits. Red: a cycle." +
      (left > 0 ? " " + grouped(left) + " more are not drawn." : "")), drawing([...shown], shown));
  }

  // drawing lays nodes out in columns: an arrow leads to the right, except those that close a cycle.
  function drawing(nodes, shown) {
    const W = 190, GAP = 150, HIGH = 40, ROW = 66, rank = new Map(), visiting = new Set();
    const depth = (n) => { // the longest way to it; at most NODES nodes, so that the recursion is bounded
      if (rank.has(n)) return rank.get(n);
      visiting.add(n);
      let d = 0;
      for (const e of n.out) if (shown.has(e.to) && !visiting.has(e.to)) d = Math.max(d, depth(e.to) + 1);
      visiting.delete(n);
      rank.set(n, d);
      return d;
    };
    for (const n of nodes) depth(n);
    const deepest = Math.max(...rank.values()), columns = Array.from({ length: deepest + 1 }, () => []);
    // Parts that are not connected are placed below each other.
    const part = new Map();
    const find = (n) => { while (part.get(n) !== n) n = part.get(n); return n; };
    for (const n of nodes) part.set(n, n);
    for (const n of nodes) for (const e of n.out) if (shown.has(e.to)) part.set(find(n), find(e.to));
    const parts = new Map();
    for (const n of nodes) push(parts, find(n), n);
    let top = 0, width = 0;
    for (const members of parts.values()) {
      const high = Math.max(...members.map((n) => rank.get(n))), used = new Map();
      let rowsUsed = 0;
      for (const n of members.sort((a, b) => rank.get(b) - rank.get(a))) {
        const column = high - rank.get(n), row = used.get(column) || 0;
        used.set(column, row + 1);
        rowsUsed = Math.max(rowsUsed, row + 1);
        n.x = column * (W + GAP) + 8;
        n.row = row;
        width = Math.max(width, n.x + W + 8);
      }
      for (const n of members) n.y = top + 8 + (n.row + (rowsUsed - used.get(high - rank.get(n))) / 2) * ROW;
      top += rowsUsed * ROW + (members.some((n) => n.cycle) ? 50 : 10);
    }
    const e = svg("svg", { width, height: top + 10, viewBox: "0 0 " + width + " " + (top + 10), role: "group", "aria-label": "graph of waits" });
    const lines = [], boxes = [], labels = [];
    for (const n of nodes) {
      for (const edge of n.out) {
        if (!shown.has(edge.to)) continue;
        const t = edge.to, kind = (edge.cycle ? " cycle" : "") + (edge.guess ? " guess" : "");
        let d, at, tip;
        if (t.x === n.x + W + GAP) {
          const x1 = n.x + W, y1 = n.y + HIGH / 2, x2 = t.x - 7, y2 = t.y + HIGH / 2, mid = (x1 + x2) / 2;
          d = "M" + x1 + " " + y1 + "C" + mid + " " + y1 + " " + mid + " " + y2 + " " + x2 + " " + y2;
          at = [x1 + 0.41 * (x2 - x1), y1 + 0.32 * (y2 - y1) - 5];
          tip = "M" + (x2 + 7) + " " + y2 + "l-9 -4.5v9z";
        } else {
          const x1 = n.x + W / 2, y1 = n.y + HIGH, x2 = t.x + W / 2, y2 = t.y + HIGH + 7, low = Math.max(y1, y2) + 20 + Math.min(60, Math.abs(x2 - x1) / 24);
          d = "M" + x1 + " " + y1 + "C" + x1 + " " + low + " " + x2 + " " + low + " " + x2 + " " + y2;
          at = [(x1 + x2) / 2, (y1 + y2) / 8 + low * 3 / 4 - 5];
          tip = "M" + x2 + " " + (y2 - 7) + "l-4.5 9h9z";
        }
        lines.push(svg("path", { class: "edge" + kind, d }), svg("path", { class: "tip" + (edge.cycle ? " cycle" : ""), d: tip }));
        labels.push(svg("text", { class: "label" + (edge.cycle ? " cycle" : ""), x: at[0], y: at[1] }, clip(edge.label, 17)));
      }
      const f = n.fibers[0], many = n.fibers.length > 1;
      const name = many ? grouped(n.fibers.length) + " × " + stem(f.name) : numbered(f.name, f.id);
      const known = n.fibers.map((f) => f.age).filter((ms) => ms >= 0);
      const oldest = known.reduce((a, b) => Math.max(a, b), -1), youngest = known.reduce((a, b) => Math.min(a, b), oldest);
      const act = () => pick({ fiber: n.fibers.reduce((a, b) => (b.age > a.age ? b : a)).id });
      const on = picked && n.fibers.some((f) => f.id === picked.fiber);
      const below = (f.wait ? "waits" : f.state) + (oldest >= 0 ? " for " + ages(youngest, oldest) : "") + (f.at ? ", " + short(f.at) : "");
      boxes.push(svg("g", {
        class: "node" + (n.cycle ? " cycle" : "") + (on ? " cur" : ""), tabindex: 0, role: "button", "data-fiber": f.id,
        transform: "translate(" + n.x + " " + n.y + ")", click: act,
        keydown: (k) => { if (k.key === "Enter" || k.key === " ") k.preventDefault(), k.stopPropagation(), act(); },
      }, svg("title", {}, name + " " + (f.wait ? f.text : f.state + " " + f.text)), svg("rect", { width: W, height: HIGH, rx: 5 }),
      svg("text", { x: 9, y: 17 }, clip(name, 24)), svg("text", { class: "sub", x: 9, y: 32 }, clip(below, 26))));
    }
    e.append(...lines, ...boxes, ...labels);
    return e;
  }
  function clip(text, most) {
    const letters = Array.from(text.slice(0, 4 * most));
    return letters.length <= most ? letters.join("") : letters.slice(0, most - 1).join("") + "…";
  }

  // choose moves to a row, and scrolls it into sight.
  function choose(i) {
    if (!rows.length) return;
    cur = Math.max(0, Math.min(i, rows.length - 1));
    const top = cur * H, head = $("heads").offsetHeight;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + H > list.scrollTop + list.clientHeight - head) list.scrollTop = top + H - list.clientHeight + head;
    list.setAttribute("aria-activedescendant", "row" + cur);
    draw(true);
  }
  function fold(open) {
    const r = rows[cur];
    if (!r || r.open === undefined || r.open === open) return false;
    if (r.nursery) r.open ? shut.add(r.nursery.id) : shut.delete(r.nursery.id);
    else r.open ? opened.delete(r.key) : opened.add(r.key);
    refresh();
    return true;
  }
  function act() {
    const r = rows[cur];
    if (!r) return;
    if (r.fiber) pick({ fiber: r.fiber.id });
    else if (r.object && !r.bunch) pick({ object: r.object.id });
    else if (view === "groups") pick({ group: r.group.key });
    else fold(!r.open);
  }

  // The loop: the next request begins a second after the last one began, or later if the answer took long.
  let timer = 0, asking = false;
  function schedule(after) {
    clearTimeout(timer);
    if (!paused && !offline && document.visibilityState === "visible") timer = setTimeout(poll, after);
  }
  async function poll() {
    if (asking) return;
    asking = true;
    const began = performance.now(), which = of;
    let wait = 2000;
    try {
      const r = await fetch("snapshot.json?of=" + which, { cache: "no-store", signal: AbortSignal.timeout(30000) });
      if (!r.ok) throw new Error((await r.text()).slice(0, 300));
      const raw = await r.json();
      const spent = performance.now() - began;
      wait = Math.max(1000 - spent, 4 * spent - 1000, 0);
      if (which === of && !paused && !offline) {
        update(raw);
        $("stale").hidden = true;
      }
    } catch (err) {
      $("stale").textContent = plain("No answer, trying again: " + err.message);
      $("stale").hidden = offline;
    }
    asking = false;
    schedule(wait);
  }
  function pause(on) {
    paused = on;
    $("pause").setAttribute("aria-pressed", paused ? "true" : "false");
    $("pause").textContent = paused ? "go on" : "pause";
    schedule(0);
  }

  // read shows a file that was saved.
  async function read(file) {
    try {
      const raw = JSON.parse(await file.text());
      if (!raw || !(raw.version >= 1)) throw new Error("it is no dump of coir");
      if (raw.version > 1) throw new Error("a newer coir has written it");
      still();
      past.clear();
      picked = null;
      update(raw);
      $("stale").textContent = plain("This is the file " + file.name + ".");
    } catch (err) {
      $("stale").textContent = "The file cannot be shown: " + err.message;
    }
    $("stale").hidden = false;
  }
  // still ends the updates.
  function still() {
    offline = true;
    $("stale").classList.add("still");
    clearTimeout(timer);
    $("pause").hidden = true;
  }
  function save() {
    const { raw } = model, skip = new Set(["age", "text", "like", "find", "waiting"]);
    const clean = (all) => all.map((x) => Object.fromEntries(Object.entries(x).filter(([name]) => !skip.has(name))));
    const text = JSON.stringify({ ...raw, fibers: clean(model.fibers), objects: clean(model.objects) });
    const at = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    el("a", { href: at, download: "coir-" + raw.taken.replace(/\D/g, "").slice(0, 14) + ".json" }).click();
    setTimeout(() => URL.revokeObjectURL(at), 10000);
  }

  const keys = [["1 … 5", "the views"], ["j k ↓ ↑", "next and previous row"], ["PageDown PageUp Home End", "further"],
    ["Enter", "details of the row, or fold it"], ["← →", "fold and unfold"], ["/", "search"], ["Escape", "close the details, or end the search"],
    ["space", "pause the updates, or go on"], ["s", "the stack of the fiber in the details"], ["o", "open a saved file"], ["?", "these keys"]];
  const caps = (names) => names.split(" ").flatMap((name) => (name === "…" ? [" … "] : [el("kbd", {}, name), " "]));
  $("help").append(el("h2", {}, "Keys"), el("dl", {}, ...keys.flatMap(([names, what]) => [el("dt", {}, ...caps(names)), el("dd", {}, what)])),
    el("p", {}, el("button", { click: () => $("help").close() }, "close")));

  addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.altKey || e.metaKey || $("help").open) return;
    const at = e.target, typing = at.matches && at.matches("input, select, textarea");
    if (e.key === "Escape") {
      if (typing || query) {
        $("find").value = query = "";
        $("find").blur();
        list.focus({ preventScroll: true });
        refresh();
      } else if (picked) {
        pick(null);
        list.focus({ preventScroll: true });
      }
      return;
    }
    if (typing) {
      if (at === $("find") && (e.key === "ArrowDown" || e.key === "Enter")) e.preventDefault(), list.focus({ preventScroll: true });
      return;
    }
    const button = at.matches && at.matches("button, [role=button]");
    if (button && (e.key === "Enter" || e.key === " ")) return;
    if (button && at.closest("#tabs") && /^Arrow(Left|Right)$/.test(e.key)) {
      const names = Object.keys(views), next = names[(names.indexOf(view) + (e.key === "ArrowRight" ? 1 : names.length - 1)) % names.length];
      go(next);
      $("tab-" + next).focus();
      return;
    }
    if (at.closest && at.closest("pre, #panel") && /^(Arrow|Page|Home|End)/.test(e.key)) return;
    const page = Math.max(1, Math.floor(list.clientHeight / H) - 2);
    const moves = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page, Home: -1e9, End: 1e9 };
    if (e.key in moves && views[view].columns) choose(cur + moves[e.key]);
    else if (e.key === "Enter") act();
    else if (e.key === "ArrowRight" && /^(tree|objects)$/.test(view)) fold(true);
    else if (e.key === "ArrowLeft" && /^(tree|objects)$/.test(view)) {
      if (!fold(false)) { // to the row above it in the tree
        for (let i = cur - 1; i >= 0; i--) if (rows[i].depth < rows[cur].depth) { choose(i); break; }
      }
    } else if (e.key === "/") $("find").focus(), $("find").select();
    else if (e.key === " ") offline || pause(!paused);
    else if (e.key === "s" && picked && picked.fiber !== undefined && !offline) ask(picked.fiber);
    else if (e.key === "o") $("file").click();
    else if (e.key === "?") $("help").showModal();
    else if (/^[1-5]$/.test(e.key)) go(Object.keys(views)[e.key - 1]);
    else return;
    e.preventDefault();
  });
  rowsAt.addEventListener("click", (e) => {
    const row = e.target.closest(".row");
    if (!row) return;
    choose(Number(row.dataset.i));
    if (e.target.closest("[data-fold]")) fold(!rows[cur].open); else act();
  });
  let waiting = false;
  list.addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(false); });
  });
  addEventListener("resize", () => draw(true));
  addEventListener("hashchange", arrive);
  document.addEventListener("visibilitychange", () => schedule(0));
  $("find").addEventListener("input", () => {
    query = $("find").value.trim().toLowerCase();
    cur = 0;
    list.scrollTop = 0;
    refresh();
  });
  $("pause").addEventListener("click", () => pause(!paused));
  $("save").addEventListener("click", () => model && save());
  $("open").addEventListener("click", () => $("file").click());
  $("keys").addEventListener("click", () => $("help").showModal());
  $("file").addEventListener("change", () => $("file").files[0] && read($("file").files[0]));
  $("of").addEventListener("change", () => {
    of = Number($("of").value);
    past.clear();
    picked = null;
    schedule(0);
  });
  addEventListener("dragover", (e) => e.preventDefault());
  addEventListener("drop", (e) => {
    e.preventDefault();
    if (e.dataTransfer.files[0]) read(e.dataTransfer.files[0]);
  });

  heads();
  const data = JSON.parse($("data").textContent);
  if (data) {
    still();
    $("stale").textContent = "This is a saved snapshot.";
    $("stale").hidden = false;
    update(data);
    arrive();
  } else if (location.protocol === "file:") {
    still();
    $("stale").textContent = "Open a saved snapshot, or drop it here.";
    $("stale").hidden = false;
  } else {
    arrive();
    poll();
  }
  list.focus({ preventScroll: true });
})();
