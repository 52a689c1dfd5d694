"""The page of weft report in headless Chromium, light and dark: no error, all parts there, kernels and nodes linked both ways, layers folded, axe without
findings where its script is installed (axe-core-python of PyPI): report_page.py WEFT SOURCE_ROOT [FOLDER for pages and screenshots]"""
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

weft, root = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if not chromium:
    print("no chromium: the page of weft report is not tried")
    sys.exit(77)
bad = 0
LAYERS = 22
MODEL = "graph @f(%x: f32[64, 64], %w: f32[64, 64]) -> f32[64, 64] {\n" + "".join(
    f"  %m{k} = aten.mm(%{'r' + str(k - 1) if k else 'x'}, %w) : f32[64, 64]  ; net.py:12 in layers.{k}.linear\n"
    f"  %r{k} = aten.gelu(%m{k}, approximate=\"none\") : f32[64, 64]  ; net.py:14 in layers.{k}\n" for k in range(LAYERS)) + f"""  %e = aten.exp(%r{LAYERS - 1}) : f32[64, 64]  ; </script><b>x</b>.py:3 in <img src=x onerror=console.error(1)>\u202e\u200b
  return %e
}}
"""

# What a reader does, in the page; each line of the result is a complaint.
SCRIPT = r"""
window.bad = [];
try { localStorage.clear(); } catch { /* a file may have no storage */ }
const BEGUN = performance.now();
window.addEventListener("error", (e) => window.bad.push("error: " + e.message));
"""
CHECKS = r"""
(async () => {
const say = (t) => window.bad.push(t), all = (q) => [...document.querySelectorAll(q)], text = (e) => e ? e.textContent : "";
const click = (e, what) => e ? e.click() : say("nothing to click: " + what);
const button = (words) => all("button").find((b) => b.textContent === words);
try {
	const d = JSON.parse(document.getElementById("data").textContent);
	if (document.documentElement.dataset.ready !== "yes") say("the script did not end");
	if (document.documentElement.dataset.theme !== THEME) say("theme: " + document.documentElement.dataset.theme);
	if (d.schema === "weft-report") {
		const whole = d.nodes.length > 0, parts = whole ? ["summary", "time", "roofline", "graph", "memory", "machine"] : ["summary", "time", "machine"];
		if (BEGUN + 5000 < performance.now()) say(`it took ${performance.now() - BEGUN} ms to open`);
		for (const id of parts) if (!document.getElementById(id)) say("no part " + id);
		if (!all(".said li").length || all("#kernels tbody tr").length !== Math.min(25, d.kernels.length)) say("findings or kernels");
		if (all("#roofline circle").length !== d.kernels.filter((k) => k.flops > 0 && k.bytes > 0).length) say("points of the roofline");
		if (!all("#time .strip rect").length || whole !== !!document.querySelector("#memory path.edge")) say("timeline or memory");
		click(document.querySelector("#kernels tbody .as-link"), "kernel");
		const panel = document.getElementById("panel");
		if (panel.hidden || (d.sources[d.kernels[0].function] && !panel.querySelector("pre")) || !panel.contains(document.activeElement)) say("the panel of a kernel");
		if (whole) {
		const node = [...panel.querySelectorAll("ol .as-link")][0];
		click(node, "node of a kernel");
		if (!text(panel.querySelector("h2")).startsWith("Node ")) say("from a kernel to its node");
		click([...panel.querySelectorAll("ul .as-link")][0], "kernel of a node");
		if (!text(panel.querySelector("h2")).startsWith("Kernel ")) say("from a node to its kernel");
		click(node && panel.querySelector("ol .as-link"), "node again");
		click([...panel.querySelectorAll(".as-link")].find((b) => b.textContent === "Show in the graph"), "show in the graph");
		if (!document.querySelector("#tree .row.found")) say("a node is not found in the graph");
		const search = document.querySelector("#graph input");
		search.value = ""; search.dispatchEvent(new Event("input"));
		if (FOLDED) {
			const fold = document.querySelector(`[data-fold="${FOLDED}"]`);
			if (!fold || !text(fold).includes("\u00d7\u00a0" + FOLDED)) say("layers are not folded: " + text(document.getElementById("tree")).slice(0, 300));
			click(fold && fold.querySelector(".twist"), "folded layers");
			if (fold && fold.querySelectorAll("[data-module]").length !== FOLDED) say("folded layers do not open");
		}
		}
		for (const view of ["Equal kernels", "Modules", "Lines", "Schedules", "Kernels"]) {
			click(button(view), view);
			if (!all("#kernels tbody tr").length) say("no rows: " + view);
		}
		if (document.querySelector("img, main b")) say("a name became HTML");
		if (/[\u202e\u200b]/.test(document.body.textContent.replace(text(document.getElementById("data")), ""))) say("characters that hide or reorder text");
	} else {
		if (all("section").length !== 2 || !all("#kernels tbody tr").length) say("a difference");
	}
	document.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
	const other = THEME === "dark" ? "light" : "dark", back = getComputedStyle(document.body).backgroundColor;
	click(document.getElementById("theme"), "theme");
	if (document.documentElement.dataset.theme !== other || getComputedStyle(document.body).backgroundColor === back) say("the theme does not change");
	click(document.getElementById("theme"), "theme");
	if (document.documentElement.scrollWidth > innerWidth) {
		const wide = all("main *").filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll"));
		say("wider than the window: " + wide.slice(0, 3).map((e) => e.tagName + "." + e.className));
	}
	if (window.axe) {
		const r = await axe.run(document, { resultTypes: ["violations"] });
		for (const v of r.violations) say(`axe: ${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(" | ")}`);
		document.getElementById("panel").hidden || say("the panel is open");
		document.querySelector("#kernels tbody .as-link")?.click();
		for (const v of (await axe.run(document, { resultTypes: ["violations"] })).violations) say(`axe, panel: ${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(" | ")}`);
	}
} catch (e) { say("exception: " + e.stack); }
const out = document.createElement("pre");
out.id = "complaints";
out.textContent = JSON.stringify(window.bad);
document.body.append(out);
})();
"""


def big(n):
    """A chain of n operators in modules of 40."""
    lines = ["graph @f(%x: f32[32, 64], %w: f32[64, 64]) -> f32[32, 64] {"]
    for k in range(n):
        before = f"v{k - 1}" if k else "x"
        call = (f"aten.mm(%{before}, %w)", f"aten.relu(%{before})", f"aten.sin(%{before})", f"aten.add.Tensor(%{before}, %x)")[k % 4]
        lines.append(f"  %v{k} = {call} : f32[32, 64]  ; net.py:{10 + k % 40} in blocks.{k // 40}.part{k % 40 // 10}{'.x' if k // 40 % 7 == 0 else ''}")
    return "\n".join([*lines, f"  return %v{n - 1}", "}", ""])


def say(text):
    global bad
    bad += 1
    print("FAIL", text)


def axe():
    spec = importlib.util.find_spec("axe_core_python")
    for base in spec.submodule_search_locations if spec else ():
        for path in pathlib.Path(base).rglob("axe.min.js"):
            return path.read_text()
    return ""


def browse(page, dark, width, *args):
    command = [chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr", "--log-level=0", f"--window-size={width},1000",
               "--virtual-time-budget=20000", f"--user-data-dir={folder}/profile", *(["--blink-settings=preferredColorScheme=0"] if dark else []), *args, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=dict(os.environ, HOME=str(folder)))


def check(page, folded, script):
    text = page.read_text()
    for theme, width in (("light", 1280), ("dark", 1280), ("light", 700)):
        checks = (script if width == 1280 else "") + "\n" + CHECKS.replace("THEME", json.dumps(theme)).replace("FOLDED", str(folded))
        tried = page.with_name(f"tried_{theme}_{width}_{page.name}")
        tried.write_text(text.replace("<title>", f"<script>{SCRIPT}</script><title>", 1).replace("</body>", "<script>" + checks.replace("</script", "<\\/script") + "</script></body>"))
        p = browse(tried, theme == "dark", width, "--dump-dom")
        found = re.search(r'<pre id="complaints">(.*?)</pre>', p.stdout, re.S)
        if not found:
            say(f"{page.name}, {theme}, {width}: nothing was tried: {p.stderr[-800:]}")
            continue
        for line in json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")):
            say(f"{page.name}, {theme}, {width}: {line}")
        for line in p.stderr.splitlines():
            if "CONSOLE" in line:
                say(f"{page.name}, {theme}, {width}: {line}")


def made(*args):
    p = subprocess.run([weft, "report", *args, *(() if "--diff" in args else ("--seconds", "0.02"))], capture_output=True, text=True, cwd=folder)
    if p.returncode:
        say(f"{args}: {p.stderr}")


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(sys.argv[3] if len(sys.argv) > 3 else name)
    folder.mkdir(exist_ok=True)
    (folder / "m.ir").write_text(MODEL)
    made("m.ir", "-o", "m.html")
    made("m.ir", "-o", "m.json")
    subprocess.run([weft, "compile", "m.ir", "-o", "m.so"], cwd=folder, check=True, capture_output=True)
    made("m.so", "-o", "so.html")
    (folder / "big.ir").write_text(big(20000))
    made("big.ir", "--no-source", "-o", "big.html")
    made("--diff", "m.json", "m.json", "-o", "d.html")
    made(str(root / "examples/digits/digits_cnn.pt2"), "-o", "digits.html")
    library = axe()
    if not library:
        print("no axe-core-python: accessibility is not tried")
    for page, folded in (("m.html", LAYERS), ("d.html", 0), ("digits.html", 0), ("so.html", 0), ("big.html", 0)):
        if (folder / page).exists():
            check(folder / page, folded, library)
sys.exit(bad != 0)
