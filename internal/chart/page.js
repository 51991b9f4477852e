// The page: a grid of steps by actors, of which only the rows in view are in the document, and a panel with the state at
// the chosen step. The state is not computed by going through the steps: each actor has the list of its steps, and each
// object the list of what happened to it with the state after it, so that a jump is a binary search in each.
//
// Rows are drawn in blocks. A block stays in the document while it is near the view, and the browser lays out and paints
// only those that are new. A row has few elements, and none is positioned, because each positioned element is painted on
// its own: the gutter is one text, and lines, arrows and dots are the few paths of one drawing below the rows. Nothing
// asks for the layout after a change, which would be computed twice in a frame.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const words = data.Words;
  const $ = (id) => document.getElementById(id);
  const grid = $("grid"), canvas = $("canvas"), heads = $("heads"), rowsAt = $("rows"), panel = $("panel");

  const H = 24; // height of a row
  const BLOCK = 8; // rows of a block
  const REACH = 4; // blocks that an arrow is drawn in from each of its ends: a long one has a gap
  const TOUCH = 0, PUT = 1, GET = 2, SHUT = 3, HOLD = 4, RELEASE = 5; // as in chart.go
  const RELATIONS = ["value sent", "channel closed", "lock handed over", "woken", "started"];

  const escapes = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  const esc = (text) => String(text).replace(/[&<>"']/g, (c) => escapes[c]);
  const grouped = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");
  const count = (n, what) => grouped(n) + " " + what + (n === 1 ? "" : "s");

  // lastUpTo returns the place of the last element of a sorted list that is at most x by its key, or -1.
  function lastUpTo(list, x, key) {
    let low = 0, high = list.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (key(list[mid]) <= x) low = mid + 1; else high = mid;
    }
    return low - 1;
  }

  // clock is a time of ns nanoseconds. A read of a virtual clock may move it by a nanosecond, which is not shown.
  function clock(ns) {
    const us = Math.round(ns / 1000);
    const trim = (x) => String(Math.round(x * 1e6) / 1e6);
    if (us === 0) return "0s";
    if (us < 1000) return us + "µs";
    if (us < 1e6) return trim(us / 1000) + "ms";
    const s = us / 1e6;
    if (s < 60) return trim(s) + "s";
    const m = Math.floor(s / 60);
    return (m >= 60 ? Math.floor(m / 60) + "h" : "") + (m % 60) + "m" + trim(s % 60) + "s";
  }

  // Middle leaves out the middle of a text: what happened is at the beginning, and how it ended at the end.
  function middle(text, most) {
    if (text.length <= most) return text;
    const letters = Array.from(text);
    if (letters.length <= most) return text;
    if (most < 2) return "…";
    const tail = (most - 1) >> 1;
    return letters.slice(0, most - 1 - tail).join("") + "…" + letters.slice(letters.length - tail).join("");
  }

  // A Run is a schedule, and answers what the state is at a step.
  class Run {
    constructor(raw, side) {
      this.side = side;
      this.actors = (raw.Actors || []).map((a, i) => ({
        i, name: words[a.Name], title: words[a.Title], why: words[a.Why], ended: a.Ended, since: a.Since, steps: [], ops: [], start: -1,
      }));
      this.objects = (raw.Objects || []).map((o, i) => ({
        i, name: words[o.Name], sort: words[o.Sort], made: words[o.Made], room: o.Room, past: [], steps: [],
      }));
      this.steps = (raw.Steps || []).map((s, i) => ({
        i, actor: s[0], number: s[1], kind: s[2], text: words[s[3]], title: words[s[4]], at: s[5], turn: words[s[6]], until: s[7], fold: s[8],
        did: [], wants: [], arrows: [], starts: [], place: "",
      }));
      this.folds = (raw.Folds || []).map((f) => ({ steps: f.Steps, again: f.Again, last: f.Last, open: false, row: 0 }));
      for (const s of this.steps) {
        const a = this.actors[s.actor];
        a.steps.push(s.i);
        if (s.number > 0) a.ops.push(s.i);
        const m = /(?:^|\s)at (?:\S*[\/\\])?([^\s\/\\]+:\d+)/.exec(s.title);
        if (m) s.place = m[1];
      }
      for (const a of this.actors) {
        if (a.why && a.since >= 0 && a.since < this.steps.length) this.steps[a.since].until = this.steps.length;
      }
      for (const [step, object, what, n] of raw.Did || []) this.steps[step].did.push({ object, what, n });
      for (const [step, object, what] of raw.Wants || []) this.steps[step].wants.push({ object, what });
      for (const [step, actor] of raw.Starts || []) {
        this.steps[step].starts.push(actor);
        this.actors[actor].start = step;
      }
      this.arrows = (raw.Arrows || []).map(([from, to, kind, text, guess]) => ({ from, to, kind, text: words[text], guess }));
      for (const a of this.arrows) {
        this.steps[a.from].arrows.push(a);
        if (a.to !== a.from) this.steps[a.to].arrows.push(a);
      }
      this.remember();
    }

    // remember gives each object its past: the state after each use, in order.
    remember() {
      const uses = this.objects.map(() => []);
      for (const s of this.steps) {
        for (const u of s.did) {
          uses[u.object].push({ when: u.what === HOLD ? Math.max(s.i, s.until) : s.i, step: s.i, what: u.what, n: u.n });
        }
        for (const u of s.did.concat(s.wants)) {
          const list = this.objects[u.object].steps;
          if (list[list.length - 1] !== s.i) list.push(s.i);
        }
      }
      this.objects.forEach((o, i) => {
        uses[i].sort((a, b) => a.when - b.when);
        let held = 0, closed = -1, holders = [];
        for (const u of uses[i]) {
          const who = this.steps[u.step].actor;
          if (u.what === PUT) held += u.n;
          if (u.what === GET) held -= u.n;
          if (u.what === SHUT && closed < 0) closed = u.step;
          if (u.what === HOLD) holders = holders.concat({ actor: who, n: u.n, step: u.step });
          if (u.what === RELEASE) {
            const at = Math.max(0, holders.findIndex((h) => h.actor === who));
            holders = holders.filter((_, k) => k !== at);
          }
          o.past.push({ when: u.when, held, closed, holders, last: u.step });
        }
      });
    }

    // actorAt returns what an actor does when step at has begun.
    actorAt(a, at) {
      const k = lastUpTo(a.ops, at, (x) => x);
      if (k < 0) {
        if (a.why && a.since < 0) return { state: "stuck", text: a.why };
        if (a.start > at || (a.start < 0 && a.i > 0 && data.Before === 0 && !a.why)) return { state: "unborn", text: "not started" };
        return { state: "ready", text: a.start >= 0 ? "started, has not begun" : "before its first step" };
      }
      const s = this.steps[a.ops[k]];
      if (s.until > at) {
        const forever = s.until >= this.steps.length && a.why && a.since === s.i;
        return { state: forever ? "stuck" : "waiting", text: forever ? a.why : "waits in " + s.text, step: s };
      }
      if (s.i === at || (this.steps[at].actor === a.i && k === a.ops.length - 1)) return { state: "running", text: s.text, step: s };
      if (a.ended && k === a.ops.length - 1) return { state: "ended", text: "ended", step: s };
      return { state: "ready", text: "can go on after " + s.text, step: s };
    }

    // objectAt returns the state of an object, or null if it was not used yet.
    objectAt(o, at) {
      const k = lastUpTo(o.past, at, (p) => p.when);
      return k < 0 ? null : o.past[k];
    }

    // lay decides which rows there are. A row is a step, a fold, the split, or the end.
    lay(split) {
      this.rows = [];
      this.rowOf = new Int32Array(this.steps.length);
      const ends = new Map(this.folds.map((f, i) => [f.last, i]));
      if (data.Before > 0) this.rows.push({ kind: "begin", step: 0 });
      for (const s of this.steps) {
        if (s.i === split) this.rows.push({ kind: "split", step: s.i });
        if (s.fold < 0 || this.folds[s.fold].open) {
          this.rowOf[s.i] = this.rows.length;
          this.rows.push({ kind: "step", step: s.i });
        }
        const f = ends.get(s.i);
        if (f !== undefined) {
          this.folds[f].row = this.rows.length;
          this.rows.push({ kind: "fold", step: s.i, fold: f });
        }
      }
      if (split === this.steps.length) this.rows.push({ kind: "split", step: split - 1 });
      for (const s of this.steps) {
        if (s.fold >= 0 && !this.folds[s.fold].open) this.rowOf[s.i] = this.folds[s.fold].row;
      }
      this.rows.push({ kind: "end", step: this.steps.length - 1 });
      this.crossing = new Map(); // arrows by blocks
      for (const a of this.arrows) {
        const r1 = this.rowOf[a.from], first = Math.floor(r1 / BLOCK), last = Math.floor(Math.max(r1, this.rowOf[a.to]) / BLOCK);
        for (let b = first; b <= last; b++) {
          if (b > first + REACH && b < last - REACH) b = last - REACH;
          if (!this.crossing.has(b)) this.crossing.set(b, []);
          this.crossing.get(b).push(a);
        }
      }
    }

    shown(s) { return s.fold < 0 || this.folds[s.fold].open; }
  }

  const runs = data.Runs.map((raw, side) => new Run(raw, side));
  const split = data.Split;
  // Folds before the split are the same in both runs.
  const common = split ? runs[0].folds.filter((f) => f.last < split.At[0]).length : 0;

  // What the reader has chosen.
  const view = { side: 0, row: 0, twin: false, wide: null, pins: [], hits: [], hit: -1, asked: "" };
  let panes = [];

  const letter = (() => { // width of a letter
    const probe = document.createElement("span");
    probe.textContent = "0".repeat(100);
    probe.style.cssText = "position:absolute;visibility:hidden";
    rowsAt.append(probe);
    const width = probe.getBoundingClientRect().width / 100;
    probe.remove();
    return width || 7.2;
  })();

  // Pane is where a run is drawn.
  class Pane {
    constructor(run, left, width, twin) {
      Object.assign(this, { run, left, twin });
      const longest = (of) => run.steps.reduce((n, s) => Math.max(n, of(s).length), 0);
      const small = letter * 11 / 12;
      this.letters = [Math.max(longest((s) => clock(s.at)), 4) + 1, Math.max(longest((s) => grouped(s.number)), 4) + 2]; // of times, and numbers
      this.times = this.letters[0] * small;
      this.numbers = this.times + this.letters[1] * small;
      this.places = twin ? 0 : Math.min(longest((s) => s.place), 24) * small;
      this.lines = this.numbers + 3 * small;
      this.gutter = Math.ceil(this.lines + this.places + (this.places ? 12 : 0));
      this.pins = view.pins.filter((i) => i < run.actors.length);
      const rest = run.actors.map((a) => a.i).filter((i) => !this.pins.includes(i));
      this.pinWidth = Math.min(210, width * 0.3 / Math.max(1, this.pins.length));
      const room = width - this.gutter - this.pins.length * this.pinWidth - 14;
      let column = room / Math.max(1, rest.length);
      const fits = column >= 108;
      this.wide = view.wide === null ? fits : view.wide;
      this.fits = fits;
      this.column = this.wide ? Math.min(Math.max(column, fits ? 108 : 170), 300) : Math.min(Math.max(column, twin ? 3 : 7), 108);
      this.begins = this.gutter + this.pins.length * this.pinWidth;
      this.places_ = run.actors.map(() => 0);
      this.pins.forEach((i, k) => { this.places_[i] = this.gutter + (k + 0.5) * this.pinWidth; });
      rest.forEach((i, k) => { this.places_[i] = this.begins + 6 + (k + 0.5) * this.column; });
      this.width = Math.max(width, this.begins + 12 + rest.length * this.column);
      this.names = this.wide ? 34 : Math.min(this.column < 6 ? 84 : 130, 16 + 6.2 * run.actors.reduce((n, a) => Math.max(n, a.name.length + (a.why ? 2 : 0)), 0));
    }

    pinned(i) { return this.pins.includes(i); }
    // x is the middle of the column of an actor. A pinned one stays where it is when the grid is scrolled sideways.
    x(i) { return this.places_[i] + (this.pinned(i) && !this.twin ? scroll.x : 0); }
    boxed(i) { return this.wide || this.pinned(i); }
    half(i) { return this.boxed(i) ? (this.pinned(i) ? this.pinWidth : this.column) / 2 - 7 : 5; }

    head(height) {
      let out = `<span class="gut" style="width:${this.gutter}px;height:${height}px;${this.twin ? `position:absolute;left:${this.left}px` : ""}">` +
        `<span style="left:0;width:${this.times}px;text-align:right">time</span>` +
        `<span style="left:${this.times}px;width:${this.numbers - this.times}px;text-align:right">step</span>` +
        (this.places ? `<span style="left:${this.lines}px">line</span>` : "") + `</span>`;
      for (const a of this.run.actors) {
        const pin = this.pinned(a.i), boxed = this.boxed(a.i);
        if (!boxed && this.column < 6 && !a.why) continue; // the rows have the names
        if (!pin && this.pins.length && this.x(a.i) - this.column / 2 < this.begins + (this.twin ? 0 : scroll.x)) continue; // covered
        const width = boxed ? (pin ? this.pinWidth : this.column) - 6 : Math.max(this.column - 1, 7);
        const cls = "head" + (boxed ? "" : " up") + (pin ? " pin" : "") + (a.why ? " stuck" : "");
        const most = boxed ? Math.floor(width / letter) - (a.why ? 3 : 1) : Math.floor((height - 8) / 6.1) - (a.why ? 2 : 0);
        const size = boxed ? "" : `height:${height - 8}px;font-size:${Math.min(10, Math.max(7, this.column))}px;`;
        out += `<button class="${cls}" data-actor="${a.i}" data-side="${this.run.side}" tabindex="-1" ` +
          `style="left:${this.left + this.x(a.i) - width / 2}px;width:${width}px;${size}${pin ? "z-index:3" : ""}" ` +
          `title="${esc(a.name + (a.title ? "\n" + a.title : "") + (a.why ? "\n" + a.why : "") + "\nclick to pin")}">${esc(middle(a.name, most))}</button>`;
      }
      if (runs.length > 1 && view.twin) {
        out += `<span class="pane-name ${this.run.side ? "good" : "bad"}" style="left:${this.left + 8}px;z-index:3">` +
          (this.run.side ? "✔ passes" : "✖ fails") + `</span>`;
      }
      return out;
    }

    // block returns the rows from one to before another, in an element that is top below the first.
    block(from, to, top) {
      const run = this.run, selected = this === pane() && !printing ? view.row : -1;
      let out = `<div class="block${this.left ? " right" : ""}" role="presentation" style="top:${top}px;left:${this.left}px;width:${this.width}px;height:${(to - from) * H}px">`;
      for (let k = from; k < to && k < run.rows.length; k++) out += this.row(k, k === selected);
      const size = `width="${this.width}" height="${(to - from) * H}" aria-hidden="true"`;
      const base = this.drawing(from, to, null), chosen = this.chosen(from, to);
      const svg = (over) => `<svg ${over ? 'class="over" ' : ""}${size}>${base[over].lines}<g>${chosen[over]}</g>${base[over].dots}</svg>`;
      out += svg(0);
      if (this.pins.length) {
        const at = this.gutter + (this.twin ? 0 : scroll.x);
        out += `<div class="pinned" style="left:${at}px;width:${this.begins - this.gutter}px"></div>` + svg(1);
      }
      return out + "</div>";
    }

    // chosen returns what is drawn for the chosen step: below pinned columns, and above.
    chosen(from, to) {
      if (this !== pane() || printing || currentRow().kind === "end" || !currentStep()) return ["", ""];
      return this.drawing(from, to, currentStep()).map((d) => d.lines);
    }

    row(k, selected) {
      const run = this.run, r = run.rows[k], side = run.side;
      const open = (cls, more) => `<div role="row" id="row-${side}-${k}" aria-rowindex="${k + 1}" data-k="${k}" data-side="${side}" ` +
        `class="row ${cls}${selected ? " cur" : ""}" aria-selected="${selected}" ${more}>`;
      const strip = (text) => `<span class="strip" role="gridcell" style="left:${this.begins}px;margin-left:${this.begins}px;max-width:${Math.min(this.width, size.width) - this.begins}px">${esc(text)}</span></div>`;
      const gutter = (inner) => `<span class="gut" style="width:${this.gutter}px">${inner}</span>`;
      const s = run.steps[r.step];
      switch (r.kind) {
        case "begin":
          return open("begin", "") + gutter("") + strip(`… ${count(data.Before, "step")} before these are not known`);
        case "split":
          return open("split", "") + gutter("") + strip("◆ diverges here" + (split.Why ? ": " + split.Why : ""));
        case "end":
          return open("end" + (side ? " good" : ""), "") + gutter("") + strip(side ? "✔ this schedule passes" : "✖ " + document.querySelector("h1").textContent);
        case "fold": {
          const f = run.folds[r.fold];
          const what = f.steps.map((i, n) => (n === 0 || run.steps[f.steps[n - 1]].actor !== run.steps[i].actor ? run.actors[run.steps[i].actor].name + ": " : "") +
            run.steps[i].text).join(", ");
          return open("fold", `aria-expanded="${f.open}"`) + gutter("") +
            strip(`${f.open ? "▾" : "▸"} ${what}: ${f.again === 1 ? "once" : grouped(f.again) + " times"} more, until step ${grouped(run.steps[f.last].number)}`);
        }
      }
      const a = run.actors[s.actor], pin = this.pinned(s.actor) ? " pin" : "";
      const stays = a.why && a.since === s.i ? " stays" : "";
      const before = r.step > 0 ? run.steps[r.step - 1] : null;
      const timed = s.number > 0 && (!before || clock(before.at) !== clock(s.at) || k === 0);
      let g = (timed ? clock(s.at) : "").padStart(this.letters[0]) + (s.number > 0 ? grouped(s.number) : "").padStart(this.letters[1]);
      if (this.places && s.place) g += "   " + esc(middle(s.place, 24));
      if (s.turn) g += `<span class="turned" style="left:${this.numbers + 4}px" title="${esc(s.turn)}">↷</span>`;
      const tip = esc(a.name + ": " + s.text + (s.title ? "\n" + s.title : "") + (stays ? "\n" + a.why : ""));
      const x = this.x(s.actor), mark = stays ? "✱ " : "";
      const clip = (fits, text) => (fits && /^[ -~→…]*$/.test(text) ? "" : " clip"); // other letters may be wider
      let cell;
      if (this.boxed(s.actor)) {
        const half = this.half(s.actor), text = mark + middle(s.text, Math.floor((2 * half - 12) / letter) - mark.length);
        cell = `<span role="gridcell" class="box k${s.kind}${stays}${pin}${clip(true, text)}" style="margin-left:${x - half}px;width:${2 * half}px" title="${tip}">${esc(text)}</span>`;
      } else {
        const right = x < (this.begins + this.width) / 2;
        const room = (right ? this.width - x : x - this.begins) - 12;
        const name = middle(a.name, 28), most = Math.floor(room / letter) - name.length - 4, text = mark + middle(s.text, Math.max(8, most));
        cell = `<span role="gridcell" class="box beside${stays}${s.kind === 4 ? " k4" : ""}${clip(most >= 8, name + text)}" ` +
          `style="${right ? `margin-left:${x + 9}px` : `margin-left:auto;margin-right:${this.width - x + 9}px`};max-width:${room}px" title="${tip}">` +
          `<b>${esc(name)}</b>${esc(text)}</span>`;
      }
      const hit = view.asked && view.hits.length && hitSet.has(side + ":" + s.i) ? " hit" : "";
      return open("step" + (s.turn ? " turn" : "") + hit, "") + gutter(g) + cell + "</div>";
    }

    // drawing returns the lines, arrows and dots of some rows: those below pinned columns, and those above. With a step, they
    // are those of that step and its actor only.
    drawing(from, to, of) {
      const run = this.run, paths = [new Map(), new Map()]; // what is drawn in each way, below and above pinned columns
      const add = (over, cls, d) => paths[over].set(cls, (paths[over].get(cls) || "") + d);
      const top = from * H, bottom = to * H;
      const y = (row) => (row + 0.5) * H - top;
      const last = run.rows.length - 1;
      const line = (cls, x, y1, y2, over) => {
        if (y1 < -H) y1 += Math.floor((-H - y1) / 90) * 90; // 90 has a whole number of dashes
        y2 = Math.min(y2, bottom - top + H);
        if (y2 > y1) add(over, cls, `M${x} ${y1}V${y2}`);
      };
      // Steps whose rows may be in view are those from the first to the last shown one.
      const first = run.rows[from] ? run.rows[from].step : 0;
      const end = run.rows.length ? run.rows[Math.min(to, run.rows.length) - 1].step : 0;
      const seen = [scroll.x - this.left - 100, scroll.x - this.left + size.width + 100];
      for (const a of of ? [run.actors[of.actor]] : run.actors) {
        const x = Math.round(this.x(a.i)) + 0.5, over = this.pinned(a.i) ? 1 : 0;
        if (!printing && (x < seen[0] || x > seen[1])) continue;
        const born = a.start >= 0 ? a.start : (a.i === 0 || data.Before > 0 || !a.ops.length ? -1 : a.ops[0]);
        const y1 = born < 0 ? 0 - top : y(run.rowOf[born]);
        const gone = a.ended && a.ops.length ? y(run.rowOf[a.ops[a.ops.length - 1]]) : last * H - top;
        if (gone < 0 || y1 > bottom - top) continue;
        line(of ? "lifeSel" : this.column < 20 ? "life thin" : "life", x, y1, gone, over);
        for (let k = Math.max(0, lastUpTo(a.ops, first, (i) => i)); k < a.ops.length && a.ops[k] <= end; k++) {
          const s = run.steps[a.ops[k]];
          if (s.until <= s.i || !run.shown(s)) continue;
          const forever = s.until >= run.steps.length;
          line("off", x, y(run.rowOf[s.i]), forever ? last * H - top : y(run.rowOf[s.until]), over);
          line(forever && a.why ? "hang" : "waits", x, y(run.rowOf[s.i]), forever ? last * H - top : y(run.rowOf[s.until]), over);
        }
        if (a.why && !a.ops.length) line("hang", x, 0 - top, last * H - top, over);
      }
      const done = new Set();
      const draw = (kind, a1, r1, a2, r2, guess, sel) => {
        const key = [kind, a1, r1, a2, r2].join();
        if (done.has(key) || (a1 === a2 && r1 === r2)) return;
        done.add(key);
        const over = this.pinned(a1) || this.pinned(a2) ? 1 : 0;
        const cls = `arrow a${kind}${guess ? " guess" : ""}${sel ? " sel" : ""}`;
        let x1 = this.x(a1), x2 = this.x(a2), y1 = y(r1), y2 = y(r2);
        if (a1 === a2) { // round the outside
          const h = this.half(a1);
          add(over, cls, `M${x1 + h} ${y1}h5V${y2}h-3`);
          return;
        }
        const way = x2 > x1 ? 1 : -1;
        x1 += kind === 5 ? 0 : way * (this.boxed(a1) ? this.half(a1) : 5); // who waits for whom is below the boxes
        x2 -= way * (r2 === r1 ? 1 : this.boxed(a2) ? this.half(a2) + 1 : 6);
        const length = Math.hypot(x2 - x1, y2 - y1) || 1, ux = (x2 - x1) / length, uy = (y2 - y1) / length;
        const bx = x2 - 8 * ux, by = y2 - 8 * uy;
        add(over, cls, `M${x1.toFixed(1)} ${y1}L${bx.toFixed(1)} ${by.toFixed(1)}`);
        add(over, "tip" + kind, `M${x2.toFixed(1)} ${y2.toFixed(1)}L${(bx - 4 * uy).toFixed(1)} ${(by + 4 * ux).toFixed(1)}L${(bx + 4 * uy).toFixed(1)} ${(by - 4 * ux).toFixed(1)}z`);
      };
      const arrow = (a) => {
        const r1 = run.rowOf[a.from], r2 = Math.max(r1, run.rowOf[a.to]);
        draw(a.kind, run.steps[a.from].actor, r1, run.steps[a.to].actor, r2, a.guess, of);
      };
      const starts = (s) => { for (const child of s.starts) draw(4, s.actor, run.rowOf[s.i], child, run.rowOf[s.i], 0, of); };
      if (of) {
        starts(of);
        of.arrows.forEach(arrow);
      } else {
        for (let b = Math.floor(from / BLOCK); b * BLOCK < to; b++) (run.crossing.get(b) || []).forEach(arrow);
        for (let k = from; k < to && k < run.rows.length; k++) {
          if (run.rows[k].kind !== "step") continue;
          const s = run.steps[run.rows[k].step], over = this.pinned(s.actor) ? 1 : 0;
          starts(s);
          if (this.boxed(s.actor)) continue;
          const stays = run.actors[s.actor].why && run.actors[s.actor].since === s.i;
          add(over, stays ? "dot stays" : `dot k${s.kind}`, `M${Math.round(this.x(s.actor)) + 0.5} ${y(k)}` + (stays ? "m-3.5 -3.5h7v7h-7z" : "m-4 0a4 4 0 1 1 8 0a4 4 0 1 1 -8 0"));
        }
        if (run.side === 0 && last < to && last + 1 + below > from) this.cycle(draw, last);
      }
      const order = ["life thin", "life", "lifeSel", "off", "waits", "hang"]; // then arrows
      return paths.map((all) => {
        const drawn = (list) => list.map((cls) => (all.has(cls) ? `<path class="${cls}" d="${all.get(cls)}"/>` : "")).join("");
        const rest = [...all.keys()].filter((cls) => !order.includes(cls)), dots = rest.filter((cls) => cls.startsWith("dot"));
        return { lines: drawn(order.concat(rest.filter((cls) => !dots.includes(cls)))), dots: drawn(dots) };
      });
    }

    // cycle draws who waits for whom, below the end.
    cycle(draw, row) {
      (data.Cycle || []).forEach((i, k, all) => { if (all.length > 1) draw(5, i, row + 0.9 + 0.6 * k, all[(k + 1) % all.length], row + 0.9 + 0.6 * k, 0, false); });
    }
  }

  let printing = false, hitSet = new Set(), painted = null;
  const size = { width: 0, height: 0, heads: 0, lowest: 0, rightmost: 0, still: true }; // of the grid; still: it does not scroll sideways
  const scroll = { x: 0, y: 0, set: false }; // where the grid is, or, if set, will be in the next frame
  const below = (data.Cycle || []).length > 1 ? Math.ceil(0.6 * data.Cycle.length + 0.3) : 0; // rows below the end, for the cycle
  const total = () => Math.max(...panes.map((p) => p.run.rows.length));
  const pane = () => panes[Math.min(view.side, panes.length - 1)];
  const currentRow = () => { const rows = pane().run.rows; return rows[Math.min(view.row, rows.length - 1)]; };
  const currentStep = () => pane().run.steps[currentRow().step];

  // arrange lays out panes and rows anew. The chosen step stays chosen.
  function arrange() {
    const kept = panes.length ? { side: view.side, step: currentRow().step, kind: currentRow().kind, y: view.row * H - scroll.y } : null;
    const width = size.width = grid.clientWidth;
    size.height = grid.clientHeight;
    runs.forEach((run) => run.lay(split ? split.At[run.side] : -1));
    panes = view.twin ? [new Pane(runs[0], 0, width / 2, true), new Pane(runs[1], 0, width / 2, true)] : [new Pane(runs[0], 0, width, false)];
    if (panes.length > 1) panes[1] = new Pane(runs[1], panes[0].width, width / 2, true);
    if (kept) {
      view.side = Math.min(kept.side, panes.length - 1);
      const run = pane().run, step = Math.min(kept.step, run.steps.length - 1);
      view.row = kept.kind === "step" || kept.kind === "fold" ? (step < 0 ? 0 : run.rowOf[step]) : run.rows.findIndex((r) => r.kind === kept.kind);
      if (view.row < 0) view.row = run.rows.length - 1;
      if (kept.kind === "fold") view.row = Math.max(view.row, run.rows.findIndex((r) => r.kind === "fold" && r.step === step));
    }
    const height = Math.max(...panes.map((p) => p.names)) + (view.twin ? 14 : 0);
    const wide = panes.reduce((n, p) => n + p.width, 0);
    size.heads = height;
    size.still = wide <= width + 1;
    grid.classList.toggle("still", size.still);
    heads.style.height = height + "px";
    canvas.style.width = wide + "px";
    const tall = (total() + below + 0.5) * H + height;
    const high = Math.max(tall, size.height + Math.ceil((tall - size.height) / H) * H); // so that the last page begins with a row
    canvas.style.height = high + "px";
    size.lowest = Math.max(0, high - size.height);
    size.rightmost = Math.max(0, wide - width);
    rowsAt.style.cssText = `position:absolute;left:0;right:0;top:${height}px`;
    grid.setAttribute("aria-rowcount", total());
    grid.setAttribute("aria-colcount", runs[0].actors.length);
    scrollTo(scroll.x, kept ? view.row * H - kept.y : scroll.y);
    painted = null;
    $("wide").setAttribute("aria-pressed", String(panes[0].wide));
    $("twin").setAttribute("aria-pressed", String(view.twin));
    $("folds").textContent = runs.some((r) => r.folds.some((f) => !f.open)) ? "expand all" : "fold all";
    $("folds").hidden = !runs.some((r) => r.folds.length);
  }

  // scrollTo scrolls the grid in the next frame.
  function scrollTo(x, y) {
    scroll.x = Math.max(0, Math.min(x, size.rightmost));
    scroll.y = Math.max(0, Math.min(y, size.lowest));
    scroll.set = true;
  }

  // paint draws the blocks that are in view and not there, and removes those that are far from it. When the reader scrolls,
  // the next block in each direction is drawn too, because the browser may scroll further before it asks for a frame.
  function paint(ahead) {
    const rows = total() + below, first = Math.floor(scroll.y / H), seen = Math.ceil((size.height - size.heads) / H) + 1;
    let low = Math.floor(first / BLOCK), high = Math.ceil(Math.min(first + seen, rows) / BLOCK);
    if (ahead) {
      low = Math.max(0, low - 1);
      high = Math.min(high + 1, Math.ceil(rows / BLOCK));
    }
    if (!painted || (painted.x !== scroll.x && !size.still)) {
      heads.innerHTML = panes.map((p) => p.head(size.heads)).join("");
      markHeads();
      painted = { low: 0, high: 0, x: scroll.x };
    }
    if (painted.low >= high || painted.high <= low) {
      rowsAt.textContent = "";
      painted.low = painted.high = low;
    }
    for (; painted.low < low - 1; painted.low++) panes.forEach(() => rowsAt.firstChild.remove());
    for (; painted.high > high + 1; painted.high--) panes.forEach(() => rowsAt.lastChild.remove());
    const blocks = (from, to) => {
      let out = "";
      for (let b = from; b < to; b++) for (const p of panes) out += p.block(b * BLOCK, Math.min((b + 1) * BLOCK, rows), b * BLOCK * H);
      return out;
    };
    if (low < painted.low) {
      rowsAt.insertAdjacentHTML("afterbegin", blocks(low, painted.low));
      painted.low = low;
    }
    if (high > painted.high) {
      rowsAt.insertAdjacentHTML("beforeend", blocks(painted.high, high));
      painted.high = high;
    }
  }

  // mark marks the chosen row, among rows that are there.
  function mark() {
    const old = rowsAt.querySelector(".row.cur"), now = $(`row-${pane().run.side}-${view.row}`);
    if (old) { old.classList.remove("cur"); old.setAttribute("aria-selected", "false"); }
    if (now) { now.classList.add("cur"); now.setAttribute("aria-selected", "true"); }
    [...rowsAt.children].forEach((block, n) => {
      const p = panes[n % panes.length], from = (painted.low + Math.floor(n / panes.length)) * BLOCK;
      const drawn = p.chosen(from, Math.min(from + BLOCK, total() + below));
      block.querySelectorAll("g").forEach((g, over) => { if (g.firstChild || drawn[over]) g.innerHTML = drawn[over]; });
    });
    markHeads();
  }

  function markHeads() {
    grid.setAttribute("aria-activedescendant", `row-${pane().run.side}-${view.row}`);
    for (const on of heads.querySelectorAll(".on")) on.classList.remove("on");
    if (currentRow().kind === "end" || !currentStep()) return;
    const on = heads.querySelector(`[data-side="${pane().run.side}"][data-actor="${currentStep().actor}"]`);
    if (on) on.classList.add("on");
  }

  // patch makes the elements of a list those of items, and leaves alone those at the beginning and the end that are the
  // same.
  function patch(list, items) {
    const old = list.items || [];
    let from = 0, same = 0;
    while (from < old.length && from < items.length && old[from] === items[from]) from++;
    while (same < old.length - from && same < items.length - from && old[old.length - 1 - same] === items[items.length - 1 - same]) same++;
    for (let n = old.length - from - same; n > 0; n--) list.children[from].remove();
    const more = items.slice(from, items.length - same).join("");
    if (more && from < list.children.length) list.children[from].insertAdjacentHTML("beforebegin", more);
    else if (more) list.insertAdjacentHTML("beforeend", more);
    list.items = items;
    list.classList.toggle("long", items.length > 30);
  }

  // show draws the panel.
  function show() {
    const run = pane().run, r = currentRow(), s = run.steps[r.step];
    if (!s) { $("now").innerHTML = "<p>There are no steps.</p>"; return; }
    const link = (i) => `<a data-step="${i}" data-side="${run.side}">step ${run.steps[i].number ? grouped(run.steps[i].number) : "?"}</a>`;
    const at = r.kind === "end" ? run.steps.length - 1 : s.i;
    let out = `<h2>${r.kind === "end" ? "At the end" : s.number ? "Step " + grouped(s.number) : "Between steps"}<span>${clock(s.at)}</span></h2>`;
    if (r.kind !== "end") {
      out += `<p><b>${esc(run.actors[s.actor].name)}</b></p><p class="mono">${esc(s.text)}</p>`;
      if (s.title) out += `<p class="mono state">${esc(s.title)}</p>`;
      if (s.until > s.i && s.until < run.steps.length) out += `<p>waits here until ${link(s.until)}</p>`;
      if (s.turn) out += `<p class="alert">↷ ${esc(s.turn)}</p>`;
      for (const a of s.arrows.slice(0, 20)) {
        const other = a.from === s.i ? a.to : a.from;
        out += `<p>${a.from === s.i ? "→" : "←"} ${RELATIONS[a.kind]}${a.text ? ": " + esc(a.text) : ""}, ${a.from === s.i ? "to" : "from"} ` +
          `${esc(run.actors[run.steps[other].actor].name)}, ${link(other)}${a.guess ? " (the trace leaves that open)" : ""}</p>`;
      }
      for (const child of s.starts) out += `<p>→ starts ${esc(run.actors[child].name)}</p>`;
    }
    if (r.kind === "split" || (split && at === split.At[run.side])) {
      out += `<p class="alert">◆ diverges here${split.Why ? ": " + esc(split.Why) : ""}</p>`;
      if (split.Ends) out += `<p>${esc(split.Ends)}</p>`;
    }
    const waiters = new Map(); // of objects
    const tally = { waits: 0, ready: 0, ended: 0 };
    const list = [], others = [], things = [];
    let rest = 0;
    const ended = r.kind === "end";
    for (const a of run.actors) {
      const st = run.actorAt(a, at);
      if (st.state === "unborn") { rest++; continue; }
      if (st.state === "waiting" || st.state === "stuck") {
        tally.waits++;
        for (const u of st.step ? st.step.wants : []) {
          if (!waiters.has(u.object)) waiters.set(u.object, []);
          waiters.get(u.object).push({ actor: a, what: u.what });
        }
      } else if (st.state === "ended") tally.ended++; else tally.ready++;
      let text = esc(st.text);
      if ((st.state === "waiting" || st.state === "stuck") && st.step) {
        text += `, since ${link(st.step.i)}` + (st.state === "waiting" && st.step.place ? ` at ${esc(st.step.place)}` : "");
      }
      if (st.state === "running") text = "runs: " + text;
      const item = `<li class="${st.state}${a.i === s.actor && !ended ? " now" : ""}" title="${esc(a.title)}"><b>${esc(a.name)}</b><span class="state">${text}</span></li>`;
      (st.state === "ready" || st.state === "ended" ? others : list).push(item);
    }
    const totals = [tally.waits && tally.waits + " wait", tally.ready && tally.ready + " can run", tally.ended && tally.ended + " ended", rest && rest + " not started"];
    for (const o of run.objects) {
      const st = run.objectAt(o, at), queue = waiters.get(o.i) || [];
      if (!st && !queue.length) continue;
      const parts = [];
      if (st && o.sort === "channel") {
        if (data.Before === 0) {
          const held = Math.max(0, o.room >= 0 ? Math.min(st.held, o.room) : st.held);
          parts.push(o.room === 0 ? "no buffer" : o.room > 0 ? `${held} of ${grouped(o.room)} buffered` : `${held} sent and not received`);
        }
        if (st.closed >= 0) parts.push(`<b>closed</b> in ${link(st.closed)}`);
      }
      if (st && st.holders.length) {
        parts.push("held by " + st.holders.slice(0, 6).map((h) => `${esc(run.actors[h.actor].name)}${h.n > 1 ? " (" + h.n + ")" : ""} since ${link(h.step)}`).join(", ") +
          (st.holders.length > 6 ? ` and ${st.holders.length - 6} more` : ""));
      } else if (st && o.sort === "lock") parts.push("free");
      const ask = { [PUT]: "to send", [GET]: "to receive", [HOLD]: "to lock", [TOUCH]: "for it" };
      for (const what of [PUT, GET, HOLD, TOUCH]) {
        const who = queue.filter((q) => q.what === what).map((q) => q.actor.name);
        if (who.length) parts.push(`<span class="alert">${who.length === 1 ? "waits" : who.length + " wait"} ${ask[what]}: ${esc(who.slice(0, 6).join(", "))}${who.length > 6 ? " …" : ""}</span>`);
      }
      if (st && !o.sort) parts.push(`last: ${esc(run.steps[st.last].text)}, ${link(st.last)}`);
      things.push(`<li title="${esc(o.made)}"${!ended && s.did.concat(s.wants).some((u) => u.object === o.i) ? ' class="now"' : ""}><b>${esc(o.name)}</b><span class="state">${parts.join("<br>") || "open"}</span></li>`);
    }
    $("now").innerHTML = out;
    $("totals").textContent = totals.filter(Boolean).join(", ");
    patch($("actors"), list);
    patch($("things"), things);
    $("things").previousElementSibling.hidden = !things.length;
    $("rest").hidden = !others.length;
    $("many").textContent = others.length;
    if ($("rest").open) patch($("others"), others);
  }

  // draw draws in the next frame what has changed. It scrolls first, because that needs the layout.
  let asked = false, changed = false, later = 0;
  function draw(chosen = true) {
    changed = changed || chosen;
    if (asked) return;
    asked = true;
    requestAnimationFrame(drawNow);
  }
  function drawNow() {
    asked = false;
    if (scroll.set) {
      scroll.set = false;
      if (grid.scrollTop !== scroll.y) grid.scrollTop = scroll.y;
      if (grid.scrollLeft !== scroll.x) grid.scrollLeft = scroll.x;
    }
    if (changed && painted) mark();
    paint(!changed);
    if (changed) show();
    changed = false;
    clearTimeout(later);
    later = setTimeout(() => { if (!asked) paint(true); }, 100);
  }
  function scrolled() {
    if (scroll.set || (grid.scrollTop === scroll.y && grid.scrollLeft === scroll.x)) return;
    scroll.x = grid.scrollLeft;
    scroll.y = grid.scrollTop;
    draw(false);
  }

  // choose makes a row the chosen one, and brings it into view.
  function choose(row, side = view.side) {
    view.side = Math.min(side, panes.length - 1);
    view.row = Math.max(0, Math.min(row, pane().run.rows.length - 1));
    const y = view.row * H, height = size.height - size.heads;
    const more = currentRow().kind === "end" ? (1 + below) * H : 3 * H;
    if (y < scroll.y + H) scrollTo(scroll.x, y - 2 * H);
    else if (y + more > scroll.y + height) scrollTo(scroll.x, Math.ceil((y + more - height) / H) * H);
    const s = currentStep(), p = pane();
    if (s && currentRow().kind === "step" && !p.pinned(s.actor) && !size.still) {
      const x = p.left + p.x(s.actor), half = p.half(s.actor) + 20;
      if (x - half < scroll.x + p.begins) scrollTo(x - half - p.begins, scroll.y);
      else if (x + half > scroll.x + size.width) scrollTo(x + half - size.width, scroll.y);
    }
    draw();
  }

  // goTo chooses a step, and opens its fold if need be.
  function goTo(step, side = view.side) {
    const run = runs[side];
    if (side > 0 && !view.twin) { view.twin = true; arrange(); }
    const s = run.steps[step];
    if (s.fold >= 0 && !run.folds[s.fold].open) { toggle(side, s.fold); }
    choose(run.rowOf[step], side);
  }

  // toggle opens or closes a fold: before the split in both runs.
  function toggle(side, fold) {
    const to = !runs[side].folds[fold].open;
    for (const run of runs) {
      if (run.side === side || fold < common) run.folds[fold].open = to;
    }
    arrange();
  }

  function toggleHere() {
    const r = currentRow(), run = pane().run, s = currentStep();
    const fold = r.kind === "fold" ? r.fold : s && s.fold >= 0 ? s.fold : run.folds.findIndex((f) => f.steps.includes(r.step));
    if (fold < 0) return;
    toggle(run.side, fold);
    if (r.kind === "fold") view.row = run.folds[fold].row;
    choose(view.row);
  }

  function toggleAll() {
    const to = runs.some((r) => r.folds.some((f) => !f.open));
    for (const run of runs) for (const f of run.folds) f.open = to;
    arrange();
    choose(view.row);
  }

  // next chooses the next step, in a direction, out of a sorted list.
  function next(list, by) {
    const at = currentStep().i;
    const k = by > 0 ? lastUpTo(list, at, (x) => x) + 1 : lastUpTo(list, at - 1, (x) => x);
    if (k >= 0 && k < list.length) goTo(list[k]); else say("no such step");
  }

  function nextOfObject(by) {
    const s = currentStep(), u = s.did[0] || s.wants[0];
    if (u) next(pane().run.objects[u.object].steps, by); else say("this step is on no channel or lock");
  }

  function pin(actor) {
    view.pins = view.pins.includes(actor) ? view.pins.filter((i) => i !== actor) : view.pins.concat(actor);
    arrange();
    choose(view.row);
  }

  function twin() {
    if (!split) { say("no passing twin is known"); return; }
    view.twin = !view.twin;
    if (!view.twin && view.side) { view.side = 0; view.row = Math.min(view.row, runs[0].rows.length - 1); }
    arrange();
    if (view.twin) choose(runs[0].rows.findIndex((r) => r.kind === "split"), 0); else choose(view.row);
  }

  function widen() {
    view.wide = !panes[0].wide;
    arrange();
    choose(view.row);
  }

  let saying = 0;
  function say(text) {
    $("said").textContent = text;
    clearTimeout(saying);
    saying = setTimeout(() => { $("said").textContent = ""; }, 1500);
  }

  async function copy() {
    const text = $("replay").textContent;
    if (!text) return;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const range = document.createRange();
      range.selectNodeContents($("replay"));
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      document.execCommand("copy");
    }
    say("copied");
  }

  // Search.
  let texts = null;
  function search() {
    const asks = $("find").value.trim().toLowerCase();
    view.asked = asks;
    if (!texts) {
      texts = runs.map((run) => run.steps.map((s) => (run.actors[s.actor].name + "\n" + s.text + "\n" + s.title).toLowerCase()));
    }
    view.hits = [];
    if (asks) {
      const sides = view.twin ? [0, 1] : [0];
      for (const side of sides) texts[side].forEach((text, i) => { if (text.includes(asks)) view.hits.push({ side, i }); });
    }
    hitSet = new Set(view.hits.map((h) => h.side + ":" + h.i));
    view.hit = -1;
    if (view.hits.length) {
      const at = currentStep().i;
      const k = view.hits.findIndex((h) => h.side === view.side && h.i >= at);
      jump(k < 0 ? 0 : k);
    } else {
      tellHits();
    }
    painted = null;
    draw();
  }
  function tellHits() {
    $("hits").textContent = !view.asked ? "" : view.hits.length ? `${grouped(view.hit + 1)} of ${grouped(view.hits.length)}` : "none";
  }
  function jump(k) {
    if (!view.hits.length) return;
    view.hit = (k + view.hits.length) % view.hits.length;
    goTo(view.hits[view.hit].i, view.hits[view.hit].side);
    tellHits();
  }

  // Light and dark.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let theme = "";
  function paintTheme() {
    const to = printing ? "light" : theme || (dark.matches ? "dark" : "light");
    document.documentElement.dataset.theme = to;
    $("theme").textContent = to === "dark" ? "light" : "dark";
  }
  function flip() {
    theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    paintTheme();
  }
  dark.addEventListener("change", paintTheme);

  // Print: all rows, as they are folded now, in sheets that are not broken over pages.
  addEventListener("beforeprint", () => {
    printing = true;
    paintTheme();
    const sheet = 22, pins = view.pins, kept = panes;
    const width = 1030;
    panes = kept.length > 1 ? [new Pane(runs[0], 0, width / 2, true), new Pane(runs[1], width / 2, width / 2, true)] : [new Pane(runs[0], 0, width, false)];
    const height = Math.max(...panes.map((p) => p.names)) + (view.twin ? 14 : 0);
    const out = [];
    for (let from = 0; from < total(); from += sheet) {
      const to = Math.min(from + sheet, total() + below), last = from + sheet >= total();
      const end = last ? total() + below : to;
      out.push(`<div class="sheet" style="width:${width}px"><div class="heads" style="height:${height}px">${panes.map((p) => p.head(height)).join("")}</div>` +
        `<div class="blocks" style="height:${(end - from) * H}px">${panes.map((p) => p.block(from, end, 0)).join("")}</div></div>`);
    }
    $("print").innerHTML = out.join("") + `<div class="sheet signs">${signs()}</div>`;
    panes = kept;
    view.pins = pins;
  });
  addEventListener("afterprint", () => {
    printing = false;
    $("print").innerHTML = "";
    paintTheme();
    draw();
  });

  const keys = [
    ["↑ ↓ or k j", "the step before, the next step"],
    ["Home End", "the first step, the end"],
    ["PageUp PageDown", "a page up or down"],
    ["n N", "the next or previous step of the same actor"],
    ["o O", "the next or previous step on the same channel or lock"],
    ["Enter or Space", "open or close a repetition"],
    ["e", "open or close all repetitions"],
    ["/", "search; then Enter and Shift+Enter, or . and , for the next and previous hit"],
    ["p", "pin the column of the step at the left, or release it"],
    ["t", "the passing schedule beside this one; ← → change sides"],
    ["w", "wide or narrow columns"],
    ["d", "light or dark"],
    ["c", "copy the command that replays this"],
    ["?", "this legend; Escape closes it"],
  ];
  // signs returns the legend: all marks, colors and lines, as they are drawn.
  function signs() {
    const line = (cls, more = "") => `<svg width="30" height="10"><path class="${cls}" d="M0 5H${more ? 22 : 30}"/>${more}</svg>`;
    const arrow = (kind, guess = "") => line(`arrow a${kind}${guess}`, `<path class="tip${kind}" d="M30 5L22 1V9z"/>`);
    const box = (cls) => `<i class="swatch ${cls}"></i>`;
    const mark = (cls, text) => `<span class="${cls}">${text}</span>`;
    const groups = [
      ["Rows", [
        [mark("alert", "◆"), "the twin diverges here (=> in a text report)"],
        [mark("alert", "↷"), "after this step the schedule leaves the plain order (> in a text report)"],
        ["▸ ▾", "steps that repeat, closed and open"],
        [`${mark("bad", "✖")} ${mark("good", "✔")}`, "how the schedule ends: it fails, it passes"],
      ]],
      ["Steps: boxes, or dots in narrow columns", [
        [box("k1"), "on a channel"], [box("k2"), "on a lock"], [box("k3"), "a fault that was injected"], [box("k0"), "any other"],
        [box("k4"), "no step: what the program said"], [box("stays") + mark("bad", " ✱"), "waits until the end"],
      ]],
      ["Lines", [
        [line("life"), "from start to end"], [line("lifeSel"), "the same, of the chosen step"], [line("waits"), "waits"], [line("hang"), "waits until the end"],
      ]],
      ["Arrows", [
        ...RELATIONS.map((text, kind) => [arrow(kind), text]), [arrow(0, " guess"), "dashed: the trace leaves open which"], [arrow(5), "waits for the next, in a cycle"],
      ]],
      ["State", [["▶", "runs"], ["◷", "waits"], [mark("bad", "✱"), "waits until the end"], ["○", "can run"], ["■", "has ended"]]],
    ];
    return groups.map(([name, all]) => `<section><h3>${name}</h3><dl>${all.map(([sign, text]) => `<dt>${sign}</dt><dd>${esc(text)}</dd>`).join("")}</dl></section>`).join("");
  }
  function help() {
    const named = (k) => k.split(" ").map((w) => (w === "or" ? " or " : `<kbd>${esc(w)}</kbd>`)).join(" ");
    $("help").innerHTML = `<form method="dialog"><h2>Legend</h2><button autofocus>close</button></form><div class="signs">${signs()}` +
      `<section><h3>Keys</h3><dl>${keys.map(([k, text]) => `<dt>${named(k)}</dt><dd>${esc(text)}</dd>`).join("")}</dl></section></div>`;
    $("help").showModal();
  }

  const actions = {
    ArrowDown: () => choose(view.row + 1), j: () => choose(view.row + 1),
    ArrowUp: () => choose(view.row - 1), k: () => choose(view.row - 1),
    Home: () => choose(0), g: () => choose(0), End: () => choose(Infinity), G: () => choose(Infinity),
    PageDown: () => choose(view.row + page()), PageUp: () => choose(view.row - page()),
    n: () => next(pane().run.actors[currentStep().actor].steps, 1), N: () => next(pane().run.actors[currentStep().actor].steps, -1),
    o: () => nextOfObject(1), O: () => nextOfObject(-1),
    Enter: toggleHere, " ": toggleHere, e: toggleAll,
    "/": () => { $("find").focus(); $("find").select(); }, ".": () => jump(view.hit + 1), ",": () => jump(view.hit - 1),
    p: () => pin(currentStep().actor), t: twin, w: widen, d: flip, c: copy, "?": help,
    ArrowRight: () => choose(view.row, 1), ArrowLeft: () => choose(view.row, 0),
  };
  const page = () => Math.max(1, Math.floor((size.height - size.heads) / H) - 2);

  addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || $("help").open) return;
    if (e.target === $("find")) {
      if (e.key === "Enter") { jump(view.hit + (e.shiftKey ? -1 : 1)); e.preventDefault(); }
      if (e.key === "Escape") { $("find").value = ""; search(); grid.focus(); }
      if (e.key === "ArrowDown" || e.key === "ArrowUp") { grid.focus(); } else return;
    }
    if (e.target instanceof HTMLButtonElement && (e.key === "Enter" || e.key === " ")) return;
    if ((e.target === panel || e.target === $("text")) && /^(Arrow|Page|Home|End)/.test(e.key)) return; // they scroll
    const act = actions[e.key];
    if (!act || !runs[0].steps.length && e.key !== "?" && e.key !== "d" && e.key !== "c") return;
    e.preventDefault();
    if (document.activeElement !== grid && document.activeElement !== $("find")) grid.focus({ preventScroll: true });
    act();
  });
  grid.addEventListener("scroll", scrolled, { passive: true });
  rowsAt.addEventListener("click", (e) => {
    const at = e.target.closest(".row");
    if (!at) return;
    choose(Number(at.dataset.k), panes.findIndex((p) => p.run.side === Number(at.dataset.side)));
    if (currentRow().kind === "fold") toggleHere();
  });
  heads.addEventListener("click", (e) => {
    const at = e.target.closest("[data-actor]");
    if (at) { pin(Number(at.dataset.actor)); grid.focus({ preventScroll: true }); }
  });
  panel.addEventListener("click", (e) => {
    const at = e.target.closest("[data-step]");
    if (at) goTo(Number(at.dataset.step), Number(at.dataset.side));
  });
  $("find").addEventListener("input", search);
  for (const [id, act] of [["twin", twin], ["folds", toggleAll], ["wide", widen], ["theme", flip], ["keys", help], ["copy", copy]]) {
    $(id).addEventListener("click", act);
  }
  addEventListener("resize", () => { arrange(); draw(); });

  const name = esc(data.Actors.charAt(0).toUpperCase() + data.Actors.slice(1));
  panel.innerHTML = `<div id="now"></div><h2>${name}<span id="totals"></span></h2><ul id="actors"></ul>` +
    `<h2>Channels, locks and the like</h2><ul id="things"></ul><details id="rest"><summary>${name} that do not wait: <span id="many"></span></summary><ul id="others"></ul></details>`;
  $("rest").open = runs[0].actors.length <= 12;
  $("rest").addEventListener("toggle", () => draw());
  $("twin").hidden = !split;
  paintTheme();
  arrange();
  const splitAt = runs[0].rows.findIndex((r) => r.kind === "split");
  view.row = splitAt < 0 ? runs[0].rows.length - 1 : splitAt; // where the runs diverge, in the middle of the view
  scrollTo(0, (view.row + 1) * H - (size.height - size.heads) / 2);
  choose(view.row);
  grid.focus({ preventScroll: true });
})();
