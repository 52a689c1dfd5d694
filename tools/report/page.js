"use strict";
// Shows the data of weft report: a report, or the difference of two (docs/report.md). All texts of
// the data are text nodes. Characters that hide or reorder text become their code points: names
// come from models of others.
const HIDDEN =
	/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
const visible = (s) => s.replace(
	HIDDEN, (c) => `<U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}>`);
const data = JSON.parse(document.getElementById("data").textContent,
			(key, value) => (typeof value === "string" ? visible(value) : value));
const $ = (id) => document.getElementById(id);

// ---- elements ----

// h("p.faint", {title: "x"}, "text", node): an element. Properties that begin with "on" are listeners.
function h(tag, props, ...children) {
	const [name, ...classes] = tag.split(".");
	const e = document.createElement(name);
	if (classes.length)
		e.className = classes.join(" ");
	return fill(set(e, props), children);
}
function set(e, props) {
	for (const [key, value] of Object.entries(props || {}))
		if (key.startsWith("on"))
			e.addEventListener(key.slice(2), value);
		else if (value !== undefined && value !== null && value !== false)
			e.setAttribute(key, value === true ? "" : value);
	return e;
}
function fill(e, children) {
	for (const c of children.flat(Infinity))
		if (c !== undefined && c !== null && c !== false)
			e.append(c);
	return e;
}
// An element of SVG.
function s(tag, props, ...children) {
	const [name, ...classes] = tag.split(".");
	const e = document.createElementNS("http://www.w3.org/2000/svg", name);
	if (classes.length)
		e.setAttribute("class", classes.join(" "));
	return fill(set(e, props), children);
}

// ---- numbers ----

// Three digits: 1.23, 12.3, 123.
const digits = (v) => (v === 0 ? "0" : Math.abs(v) >= 99.95 ? v.toFixed(0) : Math.abs(v) >= 9.995 ? v.toFixed(1) : v.toFixed(2));
function scaled(v, units, step = 1000) {
	let k = 0;
	while (Math.abs(v) >= 999.5 && k < units.length - 1) {
		v /= step;
		k++;
	}
	return [k || !Number.isInteger(v) ? digits(v) : String(v), units[k]];
}
const time = (v) => scaled(v * 1e9, ["ns", "\u00b5s", "ms", "s"]);
const bytes = (v) => scaled(v, ["B", "kB", "MB", "GB", "TB"]);
const flops = (v) => scaled(v, ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"]);
const rate = (v) => scaled(v, ["FLOP/s", "kFLOP/s", "MFLOP/s", "GFLOP/s", "TFLOP/s"]);
const speed = (v) => scaled(v, ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]);
const text = (pair) => (pair[1] ? pair[0] + "\u00a0" + pair[1] : pair[0]);
const percent = (v) => (v > 0 && v < 0.0005 ? "< 0.1" : v * 100 >= 9.95 || v === 0 ? (v * 100).toFixed(0) : (v * 100).toFixed(1)) + "\u00a0%";
const plural = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;
const big = (pair) => [pair[0], h("span.unit", {}, pair[1])];
const base = (path) => path.split("/").pop();

// ---- the frame ----

const main = $("main");
main.replaceChildren();
const sections = [];
function section(id, title, intro, ...children) {
	const e = h("section", { id, "aria-labelledby": id + "-title" }, h("h2", { id: id + "-title" }, title), intro && h("p.intro", {}, intro), ...children);
	sections.push([id, title, e]);
	main.append(e);
	return e;
}

function frame(name, about) {
	document.title = name + " \u2013 Weft report";
	$("name").textContent = name;
	$("about").textContent = about;
	$("foot").textContent = `Made by weft ${data.weft}. This page holds its data and loads nothing.`;
	const links = sections.map(([id, title]) => h("a", { href: "#" + id }, title));
	$("nav").append(...links);
	const seen = new Set();
	const watch = new IntersectionObserver((all) => {
		for (const a of all)
			a.isIntersecting ? seen.add(a.target.id) : seen.delete(a.target.id);
		const now = sections.findIndex(([id]) => seen.has(id));
		links.forEach((a, k) => (k === now ? a.setAttribute("aria-current", "true") : a.removeAttribute("aria-current")));
	}, { rootMargin: "-60px 0px -55% 0px" });
	sections.forEach(([, , e]) => watch.observe(e));
}

function theme() {
	const dark = matchMedia("(prefers-color-scheme: dark)"), button = $("theme");
	let chosen = null;
	try {
		chosen = localStorage.getItem("weft-report-theme");
	} catch { /* a file may have no storage */ }
	const show = () => {
		const now = chosen || (dark.matches ? "dark" : "light");
		document.documentElement.dataset.theme = now;
		button.textContent = now === "dark" ? "Light theme" : "Dark theme";
	};
	button.addEventListener("click", () => {
		chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
		try {
			localStorage.setItem("weft-report-theme", chosen);
		} catch { /* as above */ }
		show();
	});
	dark.addEventListener("change", show);
	show();
}

// Buttons of which one is pressed.
function pick(label, names, chosen, change) {
	const buttons = names.map((name) => h("button", { type: "button", "aria-pressed": String(name === chosen), onclick: () => {
		buttons.forEach((b) => b.setAttribute("aria-pressed", String(b.textContent === name)));
		change(name);
	} }, name));
	return h("div.pick", { role: "group", "aria-label": label }, buttons);
}

// ---- tables ----

// columns: {title, value(row), show(row), num, least}. A click on a title sorts. More than `most` rows are asked for.
function table(caption, columns, rows, { most = 25, sort = -1, open, id } = {}) {
	let by = sort, down = true, all = false;
	const body = h("tbody", {}), rest = h("div", {});
	const heads = columns.map((c, k) => !c.title ? h("td", {}) : h("th" + (c.num ? ".num" : ""), { scope: "col", "aria-sort": k === by ? "descending" : "none" },
		c.value ? h("button", { type: "button", onclick: () => {
			down = by === k ? !down : c.num !== undefined && c.num;
			by = k;
			draw();
		} }, c.title) : c.title));
	const draw = () => {
		const list = rows.slice();
		if (by >= 0) {
			const f = columns[by].value;
			list.sort((a, b) => { const x = f(a), y = f(b); return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1); });
		}
		heads.forEach((t, k) => columns[k].title && t.setAttribute("aria-sort", k === by ? (down ? "descending" : "ascending") : "none"));
		const shown = all ? list : list.slice(0, most);
		body.replaceChildren(...shown.map((r) => h("tr", id ? { "data-id": id(r) } : {}, columns.map((c) => h("td" + (c.num ? ".num" : ""), {}, c.show ? c.show(r) : c.value(r))))));
		rest.replaceChildren();
		if (list.length > shown.length)
			rest.append(h("button.more", { type: "button", onclick: () => { all = true; draw(); } }, `Show all ${list.length.toLocaleString("en")}`));
	};
	draw();
	return h("div.card", {}, h("div.scroll", { tabindex: "0", role: "region", "aria-label": caption }, h("table", {}, h("thead", {}, h("tr", {}, heads)), body)), rest);
}
const bar = (share, kind) => h("span.track", { "aria-hidden": "true" }, h("span.fill." + (kind || "other"), { style: `width:${Math.max(0, Math.min(1, share)) * 100}%` }));

// ---- what is known of a report ----

function push(map, key, value) {
	const list = map.get(key);
	list ? list.push(value) : map.set(key, [value]);
}
const names = { compute: "arithmetic", memory: "memory", cache: "the caches" };
const model = {};
function learn() {
	const kernels = data.kernels, nodes = data.nodes;
	model.total = data.totals.kernels_seconds || 1;
	model.most = Math.max(1e-12, ...kernels.map((k) => k.seconds));
	model.of = new Map(); // node -> kernels
	model.led = new Map(); // node -> seconds of the kernels in which it is the main one
	for (const k of kernels) {
		for (const node of new Set((k.operators || []).map((o) => o.node)))
			if (node)
				push(model.of, node, k.id);
		if (k.node)
			model.led.set(k.node, (model.led.get(k.node) || 0) + k.seconds);
	}
	model.readers = new Map(); // buffer -> kernels
	for (const k of kernels)
		for (const b of k.reads || [])
			push(model.readers, b, k.id);
	for (const n of nodes)
		n.seconds = model.led.get(n.id) || 0;
}
const schedule = (k) => k.algorithm.split(",")[0];
const kernelLink = (id, label) => h("button.as-link", { type: "button", title: data.kernels[id - 1].name, onclick: (e) => openKernel(id, e.currentTarget) }, label || `kernel ${id}`);

// ---- summary ----

function tile(title, value, small) {
	return h("div.tile", {}, h("dt", {}, title), h("dd", {}, h("div.big", {}, value), small && h("div.small", {}, small)));
}
function summary() {
	const t = data.totals, m = data.machine, known = t.flops > 0;
	section("summary", "Summary", null,
		h("dl.card.tiles", {},
			tile("Time of a call", big(time(t.seconds)), `median of ${plural(t.calls, "call")}`),
			known && tile("Arithmetic", big(rate(t.flops / t.seconds)), `${percent(t.flops / t.seconds / m.flops)} of ${text(rate(m.flops))}`),
			known && tile("Memory traffic", big(bytes(t.bytes)), "in a call"),
			tile("Weights", big(bytes(t.weight_bytes)), t.copied_bytes ? `${text(bytes(t.copied_bytes))} in a second layout` : "in the file"),
			tile("Workspace", big(bytes(t.workspace_bytes)), "for a call"),
			tile("Kernels", String(t.kernels), t.operators !== undefined ? `of ${plural(t.operators, "operator")}` : "in a call")),
		findings());
}
const titles = {
	slow: "most time", equal: "equal kernels", far: "far from limit", predicted: "unpredicted", library: "library call", copy: "copies", small: "small kernels",
	again: "recomputed", outside: "outside kernels", padding: "padding", weights: "weights", float: "not integer", busy: "busy machine"
};
// A sentence; the number of its kernel is a link.
function sentence(f) {
	const m = f.kernel && /^Kernel \d+/.exec(f.text), said = f.text.replace(/(\d) us\b/g, "$1 \u00b5s");
	return h("p", {}, m ? [kernelLink(f.kernel, m[0]), said.slice(m[0].length)] : said);
}
function findings() {
	if (!data.findings.length)
		return null;
	return h("div.card", {}, h("ul.said", {}, data.findings.map((f) => {
		return h("li", {}, h("span", {}, h("span.tag." + f.kind, {}, titles[f.kind] || f.kind)), sentence(f),
			h("span.time", {}, f.seconds ? text(time(f.seconds)) : ""));
	})));
}

// ---- where the time goes ----

const kernelColumns = [
	{ title: "Kernel", value: (k) => k.id, show: (k) => h("div.named", {}, h("span.faint.mono", {}, String(k.id).padStart(String(data.kernels.length).length, "\u2007")), kernelLink(k.id, k.name)) },
	{ title: "Time", num: true, value: (k) => k.seconds, show: (k) => text(time(k.seconds)) },
	{ title: "Share", value: (k) => k.share, num: true, show: (k) => percent(k.share) },
	{ title: "", show: (k) => h("div.share", {}, bar(k.seconds / model.most, k.limit)) },
	{ title: "Of limit", num: true, value: (k) => k.fraction || 0, show: (k) => (k.fraction ? percent(k.fraction) : "\u2013") },
	{ title: "FLOP/s", num: true, value: (k) => k.flops / (k.seconds || 1), show: (k) => (k.flops ? text(rate(k.flops / k.seconds)) : "\u2013") },
	{ title: "Bytes", num: true, value: (k) => k.bytes, show: (k) => (k.bytes ? text(bytes(k.bytes)) : "\u2013") },
	{ title: "Schedule", value: (k) => schedule(k), show: (k) => schedule(k) },
	{ title: "Source line", value: (k) => k.place, show: (k) => h("div.cut", {}, k.place || "\u2013", k.module && h("span.faint", {}, " in " + k.module)) }
];
// Sums of kernels by a key.
function groups(key) {
	const map = new Map();
	for (const k of data.kernels)
		for (const name of [key(k)].flat()) {
			const g = map.get(name) || { name, seconds: 0, kernels: [], flops: 0, bytes: 0 };
			g.seconds += k.seconds;
			g.flops += k.flops;
			g.bytes += k.bytes;
			g.kernels.push(k.id);
			map.set(name, g);
		}
	return [...map.values()].sort((a, b) => b.seconds - a.seconds);
}
// "a.b.c" -> a, a.b, a.b.c
function prefixes(path) {
	const split = path.includes("/") ? "/" : ".", parts = path.split(split), out = [];
	for (let k = 0; k < parts.length; k++)
		if (parts[k])
			out.push(parts.slice(0, k + 1).join(split));
	return out;
}
const few = (ids, most = 6) => [ids.slice(0, most).map((id, k) => [k ? ", " : "", kernelLink(id, String(id))]), ids.length > most ? ` and ${ids.length - most} more` : ""];
// A value without a name has a number.
const bufferName = (b) => (/^\d+$/.test(b.name) ? (b.kind === "weights" ? "constant " : "value ") : "") + b.name;
// Modules, without those of which one module has all kernels.
function moduleGroups() {
	const list = groups((k) => (k.module ? prefixes(k.module) : "(no module)")), found = new Map(list.map((g) => [g.name, g])), outer = new Set();
	for (const g of list) {
		const around = found.get(prefixes(g.name).at(-2));
		if (around && around.kernels.length === g.kernels.length)
			outer.add(around);
	}
	return list.filter((g) => !outer.has(g));
}
function groupTable(title, list) {
	const most = Math.max(1e-12, ...list.map((g) => g.seconds));
	return table(title, [
		{ title, value: (g) => g.name, show: (g) => h("div.cut", {}, g.name) },
		{ title: "Time", num: true, value: (g) => g.seconds, show: (g) => text(time(g.seconds)) },
		{ title: "Share", num: true, value: (g) => g.seconds, show: (g) => percent(g.seconds / model.total) },
		{ title: "", show: (g) => h("div.share", {}, bar(g.seconds / most)) },
		{ title: "FLOP/s", num: true, value: (g) => g.flops / (g.seconds || 1), show: (g) => (g.flops ? text(rate(g.flops / g.seconds)) : "\u2013") },
		{ title: "Bytes", num: true, value: (g) => g.bytes, show: (g) => text(bytes(g.bytes)) },
		{ title: "Kernels", show: (g) => few(g.kernels) }
	], list, { sort: 1 });
}
function times() {
	const place = h("div", { id: "kernels" }), search = h("input", { type: "search", placeholder: "Name, line or schedule", "aria-label": "Filter kernels" });
	let view = "Kernels";
	const draw = () => {
		const want = search.value.toLowerCase();
		const list = data.kernels.filter((k) => !want || `${k.id} ${k.name} ${k.algorithm} ${k.place} ${k.module || ""}`.toLowerCase().includes(want));
		search.hidden = view !== "Kernels";
		place.replaceChildren(view === "Kernels" ? table("Table of kernels", kernelColumns, list, { sort: 1, id: (k) => k.id })
			: view === "Modules" ? groupTable("Module", moduleGroups())
			: view === "Equal kernels" ? groupTable("Function", groups((k) => k.function || k.name))
			: view === "Lines" ? groupTable("Line", groups((k) => k.line || "(no line)"))
			: groupTable("Schedule", groups(schedule)));
	};
	search.addEventListener("input", draw);
	section("time", "Time", "Times are the fastest of several profiled calls, kernel by kernel. A module counts what is in it. The colour says what limits a kernel.",
		timeline(),
		h("div.tools", {}, pick("Group by", ["Kernels", "Equal kernels", "Modules", "Lines", "Schedules"], view, (v) => { view = v; draw(); }), search),
		place);
	draw();
}
// The launches of one call, next to each other. What would be narrower than half a unit is drawn together.
function timeline() {
	const events = data.timeline.launches;
	if (!events.length)
		return null;
	const width = 1180, last = events[events.length - 1], end = Math.max(last[1] + last[2], 1e-12), svg = s("svg.strip", { viewBox: `0 0 ${width} 74`, role: "img",
		"aria-label": `Timeline of one call: ${plural(events.length, "launch").replace("launchs", "launches")} in ${text(time(end))}` });
	let from = null, to = 0, parts = {};
	const put = (x, w, kind, title, id) => svg.append(s("rect." + kind, { x: x.toFixed(2), y: 4, width: Math.max(w, 0.6).toFixed(2), height: 40, rx: 1.5, onclick: () => id && openKernel(id) }, s("title", {}, title)));
	const flush = () => {
		if (from !== null)
			put(from, to - from, Object.entries(parts).sort((a, b) => b[1] - a[1])[0][0], "short launches");
		from = null;
		parts = {};
	};
	for (const [id, start, seconds] of events) {
		const k = data.kernels[id - 1], x = (start / end) * width, w = (seconds / end) * width;
		if (w < 0.5 && events.length > 400) {
			from = from === null ? x : from;
			to = x + w;
			parts[k.limit || "other"] = (parts[k.limit || "other"] || 0) + seconds;
			continue;
		}
		flush();
		put(x, w, k.limit || "other", `kernel ${id}, ${k.name}: ${text(time(seconds))}`, id);
	}
	flush();
	for (let k = 0; k <= 4; k++)
		svg.append(s("text", { x: (width * k) / 4, y: 64, "text-anchor": k === 0 ? "start" : k === 4 ? "end" : "middle" }, k ? text(time((end * k) / 4)) : "0"));
	return h("div.card.chart", { style: "margin-bottom:16px" }, h("h3", { style: "margin-bottom:10px" }, "One call, launch by launch" + (data.timeline.cut ? " (the first of them)" : "")), svg, key());
}
const key = () => h("div.key", {}, ["compute", "cache", "memory"].map((k) => h("span." + k, {}, "limited by " + names[k])), h("span", {}, "limit not known"));

// ---- roofline ----

function roofline() {
	const m = data.machine, points = data.kernels.filter((k) => k.flops > 0 && k.bytes > 0 && k.seconds > 0);
	if (!points.length)
		return;
	const W = 1180, H = 420, L = 92, R = 24, T = 20, B = 46, log = Math.log10;
	const xs = points.map((k) => k.flops / k.bytes), ys = points.map((k) => k.flops / k.seconds), ridge = m.flops / m.bandwidth;
	const x0 = Math.floor(log(Math.min(...xs, ridge / 8))), x1 = Math.ceil(log(Math.max(...xs, ridge * 8)));
	const y0 = Math.floor(log(Math.max(Math.min(...ys), m.flops * 1e-6))), y1 = Math.ceil(log(Math.max(m.flops * 1.2, ...ys)));
	const X = (v) => L + ((log(v) - x0) / (x1 - x0)) * (W - L - R), Y = (v) => H - B - ((Math.max(log(v), y0) - y0) / (y1 - y0)) * (H - T - B);
	const svg = s("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "Roofline: FLOP per byte and FLOP per second of each kernel; the table above has the numbers" });
	for (let e = x0; e <= x1; e++)
		svg.append(s("line.grid", { x1: X(10 ** e), x2: X(10 ** e), y1: T, y2: H - B }), s("text", { x: X(10 ** e), y: H - B + 18, "text-anchor": "middle" }, String(e < 0 ? (10 ** e).toFixed(-e) : 10 ** e)));
	for (let e = y0; e <= y1; e++)
		svg.append(s("line.grid", { x1: L, x2: W - R, y1: Y(10 ** e), y2: Y(10 ** e) }), s("text", { x: L - 8, y: Y(10 ** e) + 4, "text-anchor": "end" }, text(rate(10 ** e))));
	svg.append(s("line.axis", { x1: L, x2: W - R, y1: H - B, y2: H - B }), s("text", { x: (L + W - R) / 2, y: H - 6, "text-anchor": "middle" }, "FLOP for each byte read or written"));
	const low = Math.max(10 ** x0, 10 ** y0 / m.bandwidth);
	svg.append(s("path.roof", { d: `M${X(low)},${Y(low * m.bandwidth)} L${X(ridge)},${Y(m.flops)} L${W - R},${Y(m.flops)}` }),
		s("text.label", { x: W - R, y: Y(m.flops) - 7, "text-anchor": "end" }, `${text(rate(m.flops))} with ${plural(m.threads, "thread")}`));
	const mid = low ** 0.25 * ridge ** 0.75, a = (Math.atan2(Y(mid * m.bandwidth) - Y(m.flops), X(ridge) - X(mid)) * -180) / Math.PI;
	svg.append(s("text.label", { x: X(mid), y: Y(mid * m.bandwidth) - 8, "text-anchor": "middle", transform: `rotate(${-Math.abs(a)} ${X(mid)} ${Y(mid * m.bandwidth) - 8})` }, `${text(speed(m.bandwidth))} from memory`));
	for (const k of points.slice().sort((p, q) => q.seconds - p.seconds))
		svg.append(s("circle.mark." + (k.limit || "other"), { cx: X(k.flops / k.bytes).toFixed(1), cy: Y(k.flops / k.seconds).toFixed(1), r: (3.5 + 15 * Math.sqrt(k.share)).toFixed(1), onclick: () => openKernel(k.id) },
			s("title", {}, `kernel ${k.id}, ${k.name}: ${text(time(k.seconds))}, ${text(rate(k.flops / k.seconds))}` + (k.fraction ? `, ${percent(k.fraction)} of its limit` : ""))));
	section("roofline", "Roofline", `How far each kernel is from what the machine can do. A larger circle takes more time. Kernels above the slope read from the caches, which hold ${text(bytes(m.cache))}.`,
		h("div.card.chart", {}, svg, key()));
}

// ---- the graph ----

const isCall = (n) => n.kind === "call";
// A tree of modules: {name, path, items: [node or module], seconds, bytes, count, from}.
function modules() {
	const root = { name: "", path: "", items: [], seconds: 0, bytes: 0, count: 0 }, found = new Map();
	const bodies = new Map(); // node -> nodes of its bodies
	for (const n of data.nodes) {
		if (n.around) {
			push(bodies, n.around, n);
			continue;
		}
		if (!isCall(n))
			continue;
		let at = root;
		const chain = [root];
		for (const path of n.module ? prefixes(n.module) : []) {
			let next = found.get(path);
			if (!next) {
				next = { name: path.slice(at.path ? at.path.length + 1 : 0), path, items: [], seconds: 0, bytes: 0, count: 0 };
				found.set(path, next);
				at.items.push(next);
			}
			at = next;
			chain.push(at);
		}
		at.items.push(n);
		for (const c of chain) {
			c.seconds += n.seconds;
			c.bytes += n.bytes;
			c.count++;
		}
	}
	model.bodies = bodies;
	return root;
}
const isModule = (x) => x.items !== undefined; // a node has none
// Equal layers have equal signatures; names, times and sizes that are numbers do not count.
function signature(x) {
	if (!isModule(x))
		return x.op + x.type;
	if (!x.signature)
		x.signature = "(" + x.items.map((y) => (isModule(y) ? y.name : "") + signature(y)).join(";") + ")";
	return x.signature;
}
// Equal neighbours that are numbered become one item {fold: [modules]}.
function folded(items) {
	const out = [];
	for (const x of items) {
		const last = out[out.length - 1], numbered = isModule(x) && /^\d+$/.test(x.name.split(/[./]/).pop());
		const first = last && (last.fold ? last.fold[0] : last);
		if (numbered && first && isModule(first) && /^\d+$/.test(first.name.split(/[./]/).pop()) && signature(first) === signature(x)) {
			if (last.fold)
				last.fold.push(x);
			else
				out[out.length - 1] = { fold: [last, x] };
		} else {
			out.push(x);
		}
	}
	return out;
}
// Four neighbours and more without a kernel become one item {glue: [nodes]}.
function glued(items) {
	const out = [];
	let run = [];
	const flush = () => {
		out.push(...(run.length >= 4 ? [{ glue: run }] : run));
		run = [];
	};
	for (const x of items) {
		const bare = !isModule(x) && !x.fold && !model.of.has(x.id) && !model.bodies.has(x.id);
		bare ? run.push(x) : (flush(), out.push(x));
	}
	flush();
	return out;
}
const sum = (list, f) => list.reduce((a, x) => a + f(x), 0);
function graph() {
	if (!data.nodes.length)
		return;
	const root = modules(), calls = data.nodes.filter((n) => isCall(n) && !n.around);
	let hot = "seconds";
	const all = { seconds: sum(calls, (n) => n.seconds) || 1, bytes: sum(calls, (n) => n.bytes) || 1 };
	const heat = (x) => h("span.heat", { style: `--hot:${x.items || x.fold || isCall(x) ? Math.min(1, x[hot] / all[hot]).toFixed(4) : 0}`, "aria-hidden": "true" });
	const line = (x, deep, who, type, ids) => h("div.row", { style: `--deep:${deep}` }, heat(x), h("div.who", {}, who), h("div.type", {}, type),
		h("div.num", {}, x.seconds > 0 ? text(time(x.seconds)) : h("span.faint", {}, "\u2013")), h("div.num.bytes", {}, text(bytes(x.bytes))), h("div.kernels", {}, ids));
	const nodeRow = (n, deep) => {
		const ids = model.of.get(n.id) || [], inner = model.bodies.get(n.id);
		const name = h("button.as-link", { type: "button", onclick: (e) => openNode(n.id, e.currentTarget) }, n.user_name || n.name);
		const li = h("li", { "data-node": n.id });
		const who = inner ? opener(li, () => inner.map((m) => () => nodeRow(m, deep + 1)), [n.name], `body: ${inner.length}`) : h("span.leaf", {}, name);
		return fill(li, [line(n, deep, who, [h("span.mono", {}, n.op), " ", n.type], ids.slice(0, 4).map((id) => kernelLink(id, String(id))).concat(ids.length > 4 ? "\u2026" : []))]);
	};
	const opener = (li, children, name, times) => {
		const button = h("button.twist", { type: "button", "aria-expanded": "false", onclick: () => toggle() }, name);
		const toggle = (open = button.getAttribute("aria-expanded") !== "true") => {
			button.setAttribute("aria-expanded", String(open));
			li.querySelector(":scope > ul")?.remove();
			if (open)
				li.append(pages(children()));
		};
		li.open = () => toggle(true);
		return h("span", {}, button, times && h("span.times", {}, times));
	};
	// A list of rows, 200 at a time; rows are functions that make them.
	const pages = (rows) => {
		const ul = h("ul", {});
		let at = 0;
		const more = () => {
			ul.append(...rows.slice(at, at + 200).map((make) => make()));
			at += 200;
			if (at < rows.length) {
				const li = h("li", {}, h("button.more", { type: "button", onclick: () => { li.remove(); more(); } }, `Show more of ${rows.length.toLocaleString("en")}`));
				ul.append(li);
			}
		};
		more();
		return ul;
	};
	const moduleRow = (m, deep) => {
		const li = h("li", { "data-module": m.path });
		fill(li, [line(m, deep, opener(li, () => rows(m.items, deep + 1), m.name), plural(m.count, "operator"), "")]);
		if (m.count > calls.length / 2) // where most of the model is
			li.open();
		return li;
	};
	const foldRow = (list, deep) => {
		const both = { fold: list, seconds: sum(list, (m) => m.seconds), bytes: sum(list, (m) => m.bytes) }, li = h("li", { "data-fold": list.length });
		const who = opener(li, () => list.map((m) => () => moduleRow(m, deep + 1)), `${list[0].name} \u2026 ${list[list.length - 1].name}`, `\u00d7\u00a0${list.length}, equal`);
		return fill(li, [line(both, deep, who, plural(sum(list, (m) => m.count), "operator"), "")]);
	};
	const glueRow = (list, deep) => {
		const both = { fold: list, seconds: 0, bytes: sum(list, (n) => n.bytes) }, li = h("li", {});
		const who = opener(li, () => list.map((n) => () => nodeRow(n, deep + 1)), `${list[0].name} \u2026 ${list[list.length - 1].name}`);
		return fill(li, [line(both, deep, who, `${plural(list.length, "operator")} without a kernel`, "")]);
	};
	const rows = (items, deep) => glued(folded(items)).map((x) => () => (x.glue ? glueRow(x.glue, deep) : x.fold ? foldRow(x.fold, deep) : isModule(x) ? moduleRow(x, deep) : nodeRow(x, deep)));
	const extra = (title, list) => {
		if (!list.length)
			return [];
		const li = h("li", {}), both = { seconds: 0, bytes: sum(list, (n) => n.bytes) };
		return [() => fill(li, [line(both, 0, opener(li, () => list.map((n) => () => nodeRow(n, 1)), title), String(list.length), "")])];
	};
	const place = h("div.card", {}), search = h("input", { type: "search", placeholder: "Find a node, operator or module", "aria-label": "Find a node" });
	const draw = () => {
		const want = search.value.toLowerCase(), titles = h("div.row.titles", { style: "--deep:0" }, h("div.who", {}, "Module or node"), h("div.type", {}, "Operator and type"), h("div.num", {}, "Time"), h("div.num.bytes", {}, "Bytes"), h("div.kernels", {}, "Kernels"));
		const found = want && data.nodes.filter((n) => `${n.name} ${n.op} ${n.module || ""} ${n.line || ""} ${n.user_name || ""}`.toLowerCase().includes(want));
		const list = found ? found.map((n) => () => nodeRow(n, 0))
			: [...extra("Inputs and state", data.nodes.filter((n) => (n.kind === "input" || n.kind === "state") && !n.around)),
				...extra("Weights and constants", data.nodes.filter((n) => n.kind === "constant" && !n.around)), ...rows(root.items, 0)];
		place.replaceChildren(h("div.tree", { id: "tree" }, titles, list.length ? pages(list) : h("p.cap", {}, "No node has that name.")));
	};
	search.addEventListener("input", draw);
	model.show = (id) => { search.value = data.nodes[id - 1].name; draw(); document.querySelector(`[data-node="${id}"] .row`)?.classList.add("found"); $("graph").scrollIntoView(); };
	section("graph", "Graph", "The exported graph by modules. A node has the time of the kernels in which it is the main operator, and links to all kernels that compute it. Nodes without a kernel are views, constants, or were removed.",
		h("div.tools", {}, search, h("span.faint.push", {}, "Bars show"), pick("Bars show", ["Time", "Bytes"], "Time", (v) => { hot = v === "Time" ? "seconds" : "bytes"; draw(); })), place);
	draw();
}

// ---- memory ----

function memory() {
	const live = data.memory.live;
	if (!live.length || !data.memory.peak)
		return weights(null);
	const W = 1180, H = 232, L = 76, B = 34, T = 30, top = data.memory.peak, n = live.length, X = (k) => L + (k / n) * (W - L), Y = (v) => H - B - (v / top) * (H - B - T);
	const svg = s("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `Live memory over the kernels of a call; at most ${text(bytes(top))}, at kernel ${data.memory.peak_kernel}` });
	for (let k = 0; k <= 2; k++)
		svg.append(s("line.grid", { x1: L, x2: W, y1: Y((top * k) / 2), y2: Y((top * k) / 2) }), s("text", { x: L - 8, y: Y((top * k) / 2) + 4, "text-anchor": "end" }, text(bytes((top * k) / 2))));
	const step = Math.max(1, Math.ceil(n / 2000)), points = [];
	for (let k = 0; k < n; k += step)
		points.push([k, Math.max(...live.slice(k, k + step))]);
	const edge = points.map(([k, v]) => `${k ? "L" : "M"}${X(k).toFixed(1)},${Y(v).toFixed(1)} L${X(Math.min(n, k + step)).toFixed(1)},${Y(v).toFixed(1)}`).join(" ");
	const at = X(data.memory.peak_kernel - 0.5);
	svg.append(s("path.area", { d: `${edge} L${X(n)},${Y(0)} L${X(0)},${Y(0)} Z` }), s("path.edge", { d: edge }), s("line.peak", { x1: at, x2: at, y1: T - 20, y2: H - B }),
		s("text.label", { x: at + (at > W * 0.7 ? -8 : 8), y: 14, "text-anchor": at > W * 0.7 ? "end" : "start" }, `peak at kernel ${data.memory.peak_kernel}`));
	for (let k = 0; k <= 4; k++)
		svg.append(s("text", { x: X((n * k) / 4), y: H - 12, "text-anchor": k === 0 ? "start" : k === 4 ? "end" : "middle" }, k ? "kernel " + Math.max(1, Math.round((n * k) / 4)) : "kernel 1"));
	return weights(h("div.card.chart", { style: "margin-bottom:20px" }, svg), data.memory.peak_kernel);
}
function weights(chart, at) {
	if (!data.buffers.length)
		return;
	const alive = chart ? data.buffers.filter((b) => b.first && b.first <= at && at <= b.last) : [], held = data.buffers.filter((b) => b.kind === "weights" || b.kind === "state");
	const columns = (range) => [
		{ title: "Buffer", value: (b) => b.name, show: (b) => h("div.cut", {}, bufferName(b), " ", h("span.faint", {}, b.dtype)) },
		{ title: "Bytes", num: true, value: (b) => b.bytes, show: (b) => [text(bytes(b.bytes)), b.padding ? h("div.faint", {}, `${text(bytes(b.padding))} padding`) : ""] },
		!range && { title: "Read by", show: (b) => few(model.readers.get(b.id) || [], 3) },
		range && { title: "Kernels", num: true, value: (b) => b.first, show: (b) => [kernelLink(b.first, String(b.first)), "\u2013", kernelLink(b.last, String(b.last))] }
	].filter(Boolean);
	const part = (title, list, range) => h("div", {}, h("h3", { style: "margin-bottom:8px" }, title), table(title, columns(range), list, { most: 10, sort: 1 }));
	section("memory", "Memory", chart ? "The workspace of a call: which buffers hold values while each kernel runs. Weights, inputs and outputs come on top." : "What kernels read and write.",
		chart, h("div.two", {}, alive.length ? part(`Live at the peak (${text(bytes(sum(alive, (b) => b.bytes)))})`, alive, true) : null,
			held.length ? part(`Weights and state (${text(bytes(sum(held, (b) => b.bytes)))} in ${plural(held.length, "constant")})`, held) : null));
}

// ---- the machine ----

function pairs(list) {
	return h("dl.pairs", {}, list.filter((p) => p && p[1] !== undefined && p[1] !== "").map(([a, b]) => [h("dt", {}, a), h("dd", {}, b)]));
}
function machine() {
	const m = data.machine, t = data.totals, tensor = (x) => `${x.name}: ${x.dtype}[${x.shape}]`, sizes = Object.entries(data.model.sizes);
	section("machine", "Machine and model", null, h("div.two", {},
		h("div.card", {}, h("h3.cap", {}, "Measured on"), pairs([
			["Processor", m.processor], ["Target", data.target], ["Threads", String(m.threads)], ["Arithmetic", text(rate(m.flops)) + ", f32, measured"],
			["Memory", text(speed(m.bandwidth)) + ", measured"], ["Caches", text(bytes(m.cache))], ["Had a processor", percent(m.had_processor) + " of the time"],
			["Fastest call", text(time(t.least))], ["99 of 100 calls", text(time(t.p99))], ["Memory of the process", text(bytes(t.process_bytes))]
		])),
		h("div.card", {}, h("h3.cap", {}, "Model"), pairs([
			["File", data.model.path], data.model.entry !== "run" && ["Entry", data.model.entry], ["Inputs from", data.model.inputs_from || "made-up numbers"], ["Inputs", data.model.inputs.map(tensor).join(", ")],
			["Outputs", data.model.outputs.map(tensor).join(", ")], ["Sizes", sizes.map(([k, v]) => `${k} = ${v}`).join(", ")],
			["Conditions", data.guards.join("; ")], ["Compilation", data.compilation.map((p) => `${p.name} ${text(time(p.seconds))}`).join(", ")]
		]))));
}

// ---- the panel: one kernel, or one node ----

let opened = null;
function showPanel(title, from, ...children) {
	opened = from || document.activeElement;
	const close = h("button.quiet", { type: "button", onclick: closePanel }, "Close");
	$("panel").replaceChildren(h("header", {}, h("h2", { id: "panel-title" }, title), close), ...children.flat());
	$("panel").hidden = false;
	$("panel").scrollTop = 0;
	close.focus();
}
function closePanel() {
	$("panel").hidden = true;
	document.querySelectorAll("tr.chosen").forEach((r) => r.classList.remove("chosen"));
	if (opened && opened.isConnected)
		opened.focus();
}
document.addEventListener("keydown", (e) => { if (e.key === "Escape" && !$("panel").hidden) closePanel(); });

const nodeLink = (id) => h("button.as-link", { type: "button", onclick: (e) => openNode(id, e.currentTarget) }, data.nodes[id - 1].name);
function buffer(id) {
	const b = data.buffers[id - 1];
	return h("li", {}, h("span.mono", {}, bufferName(b)), h("span.faint", {}, ` ${b.dtype}, ${b.kind}, ${text(bytes(b.bytes))}` + (b.padding ? `, of which ${text(bytes(b.padding))} padding` : "")));
}
function operator(o) {
	return h("li", {}, h("span.mono", {}, o.op), " ", h("span.faint", {}, o.type), o.node ? [" of ", nodeLink(o.node)] : "", o.again ? h("span.again", {}, " computed again") : "");
}
function openKernel(id, from) {
	const k = data.kernels[id - 1], source = k.function && data.sources[k.function];
	document.querySelectorAll("tr.chosen").forEach((r) => r.classList.remove("chosen"));
	document.querySelector(`tr[data-id="${id}"]`)?.classList.add("chosen");
	const limit = !k.limit ? null : k.fraction ? `${percent(k.fraction)} of what ${names[k.limit]} allows, which is ${text(time(k.limit_seconds))}` : "the caches, into which its data fits";
	showPanel(`Kernel ${id}: ${k.name}`, from,
		pairs([["Time", `${text(time(k.seconds))}, ${percent(k.share)} of all kernels`], ["Limit", limit], ["Predicted", k.predicted ? text(time(k.predicted)) : undefined],
			["Arithmetic", k.flops ? `${text(flops(k.flops))}, ${text(rate(k.flops / k.seconds))}` : undefined], ["Memory", k.bytes ? `${text(bytes(k.bytes))}, ${text(speed(k.bytes / k.seconds))}` : undefined],
			["Launches", String(k.launches) + (k.joins ? ", at the same time as the kernel before" : "")], ["Source", k.place ? k.place + (k.module ? " in " + k.module : "") : undefined],
			["Other lines", k.lines > 1 ? String(k.lines - 1) : undefined], ["Schedule", k.algorithm], ["Chosen because", k.why], ["Stored because", k.stored]].map(([a, b]) => [a, b === null ? undefined : b])),
		k.plan.length ? [h("h3", {}, "Plan"), h("ul.mono", {}, k.plan.map((p) => h("li", {}, p)))] : [],
		k.refused.some((r) => r.near) ? [h("h3", {}, "Schedules that did not take it"), h("ul", {}, k.refused.filter((r) => r.near).map((r) => h("li", {}, r.schedule, ": ", h("span.faint", {}, r.why))))] : [],
		(k.operators || []).length ? [h("h3", {}, "Operators, in order"), h("ol", {}, k.operators.map(operator))] : [],
		(k.reads || []).length ? [h("h3", {}, "Reads"), h("ul", {}, k.reads.map(buffer))] : [],
		(k.writes || []).length ? [h("h3", {}, "Writes"), h("ul", {}, k.writes.map(buffer))] : [],
		source ? [h("h3", {}, "Code"), h("pre", { tabindex: "0", "aria-label": "Code of the kernel" }, source)] : []);
}
function openNode(id, from) {
	const n = data.nodes[id - 1], ids = model.of.get(id) || [];
	showPanel(`Node ${n.name}`, from,
		pairs([["Operator", n.op], ["Type", n.type], ["Bytes", text(bytes(n.bytes))], ["Name in the model", n.user_name], ["Source", n.line], ["Module", n.module],
			["Time", n.seconds ? text(time(n.seconds)) : undefined], ["Inside of", n.around ? nodeLink(n.around) : undefined]]),
		h("h3", {}, "Kernels"), ids.length ? h("ul", {}, ids.map((k) => h("li", {}, kernelLink(k, `kernel ${k}`), ` ${data.kernels[k - 1].name}, ${text(time(data.kernels[k - 1].seconds))}`)))
			: h("p.faint", {}, isCall(n) ? "None computes it: it is a view or a constant, or was removed." : "None computes it."),
		n.operands.some((o) => o) ? [h("h3", {}, "Reads"), h("ul", {}, n.operands.filter((o) => o).map((o) => h("li", {}, nodeLink(o), h("span.faint", {}, " " + data.nodes[o - 1].type))))] : [],
		h("p", { style: "margin-top:18px" }, h("button.as-link", { type: "button", onclick: () => { closePanel(); model.show(id); } }, "Show in the graph")));
}

// ---- a difference ----

function difference() {
	const a = data.before, b = data.after, change = (x, y) => (x === y ? "\u2013" : x > 0 ? (y / x - 1 >= 0 ? "+" : "\u2212") + Math.abs((y / x - 1) * 100).toFixed(1) + "\u00a0%" : "");
	const kind = (v) => (v > 0 ? "worse" : "better"), rows = [["Time of a call", "seconds", time], ["Time of all kernels", "kernels_seconds", time], ["Kernels", "kernels", (v) => [String(v), ""]],
		["Operators", "operators", (v) => [String(v), ""]], ["Arithmetic", "flops", flops], ["Memory traffic", "bytes", bytes], ["Weights", "weight_bytes", bytes], ["Workspace", "workspace_bytes", bytes]]
		.filter((r) => a.totals[r[1]] !== undefined && b.totals[r[1]] !== undefined);
	const differs = [
		[ "Target", "target" ], [ "Processor", "processor" ], [ "Threads", "threads" ],
		[ "Weft", "weft" ], [ "Inputs and outputs", "interface" ]
	].filter((d) => a[d[1]] !== b[d[1]]);
	section("summary", "Summary",
		differs.length ? "Not the same in both reports: " +
					 differs.map(([ t, key ]) => `${t} ${a[key]} and ${b[key]}`)
						 .join("; ") +
					 "."
			       : null,
		table("Totals",
		      [
			      {title : "", show : (r) => r[0]}, {
				      title : "Before",
				      num : true,
				      show : (r) => text(r[2](a.totals[r[1]]))
			      },
			      {
				      title : "After",
				      num : true,
				      show : (r) => text(r[2](b.totals[r[1]]))
			      },
			      {
				      title : "Change",
				      num : true,
				      show : (r) => {
					      const v = b.totals[r[1]] - a.totals[r[1]];
					      return h("span." + (r[1].includes("seconds") && v
									  ? kind(v) + "-text"
									  : "faint"),
						       {}, change(a.totals[r[1]], b.totals[r[1]]));
				      }
			      }
		      ],
		      rows));
	const most = Math.max(1e-12, ...data.kernels.map((k) => Math.abs(k.change))), seconds = (x) => (x ? text(time(x.seconds)) : "\u2013");
	section("kernels", "Kernels", "Matched by name. Largest changes first.",
		table("Changes of kernels", [
			{ title: "Kernel", value: (k) => k.name, show: (k) => [h("div.cut", {}, k.name), h("div.faint", {}, (k.after || k.before).place)] },
			{ title: "Before", num: true, value: (k) => (k.before ? k.before.seconds : 0), show: (k) => seconds(k.before) },
			{ title: "After", num: true, value: (k) => (k.after ? k.after.seconds : 0), show: (k) => seconds(k.after) },
			{ title: "Change", num: true, value: (k) => Math.abs(k.change), show: (k) => h("span." + kind(k.change) + "-text", {}, (k.change >= 0 ? "+" : "\u2212") + text(time(Math.abs(k.change)))) },
			{ title: "", show: (k) => h("div.share", {}, bar(Math.abs(k.change) / most, kind(k.change))) },
			{ title: "Schedule", show: (k) => (!k.before ? "new: " + k.after.algorithm : !k.after ? "gone: " + k.before.algorithm : k.before.algorithm === k.after.algorithm ? k.after.algorithm : [h("span.faint", {}, k.before.algorithm + " \u2192 "), k.after.algorithm]) }
		], data.kernels, { sort: 3 }));
	frame(`${base(a.path)} and ${base(b.path)}`, `Difference of two reports: ${a.model} before, ${b.model} after`);
}

// ---- begin ----

theme();
if (data.schema === "weft-report-diff") {
	difference();
} else {
	learn();
	summary();
	times();
	roofline();
	graph();
	memory();
	machine();
	frame(base(data.model.path), [data.machine.processor, data.target, plural(data.machine.threads, "thread")].filter(Boolean).join(" \u00b7 "));
}
document.documentElement.dataset.ready = "yes";
