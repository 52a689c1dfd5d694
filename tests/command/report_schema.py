"""Whether JSON of weft report is as docs/report.md says: complaints(report). Each field has its type; what a field counts or names is there."""

NUMBER, TEXT, TRUTH, LIST, OBJECT = (int, float), str, bool, list, dict
TENSOR = {"name": TEXT, "dtype": TEXT, "shape": TEXT, "role": TEXT}
REPORT = {"schema": TEXT, "version": NUMBER, "weft": TEXT, "target": TEXT, "model": OBJECT, "machine": OBJECT, "totals": OBJECT, "findings": LIST, "kernels": LIST,
          "nodes": LIST, "buffers": LIST, "memory": OBJECT, "guards": LIST, "compilation": LIST, "timeline": OBJECT, "sources": OBJECT}
MODEL = {"path": TEXT, "entry": TEXT, "inputs": LIST, "outputs": LIST, "sizes": OBJECT}, {"inputs_from": TEXT}
MACHINE = {"processor": TEXT, "threads": NUMBER, "flops": NUMBER, "bandwidth": NUMBER, "cache": NUMBER, "had_processor": NUMBER}, {}
TOTALS = ({k: NUMBER for k in ("seconds", "least", "p99", "calls", "profiled", "kernels_seconds", "kernels", "flops", "bytes", "weight_bytes", "workspace_bytes", "process_bytes")},
          {k: NUMBER for k in ("operators", "functions", "copied_bytes", "state_bytes", "saved_bytes")})
FINDING = {"kind": TEXT, "seconds": NUMBER, "text": TEXT}, {"kernel": NUMBER}
KERNEL = ({"id": NUMBER, "name": TEXT, "place": TEXT, "lines": NUMBER, "seconds": NUMBER, "share": NUMBER, "launches": NUMBER, "flops": NUMBER, "bytes": NUMBER,
           "algorithm": TEXT, "plan": LIST, "refused": LIST},
          {"function": TEXT, "line": TEXT, "module": TEXT, "limit": TEXT, "limit_seconds": NUMBER, "fraction": NUMBER, "memory_fraction": NUMBER, "predicted": NUMBER,
           "why": TEXT, "stored": TEXT, "node": NUMBER, "joins": TRUTH, "user": TRUTH, "operators": LIST, "reads": LIST, "writes": LIST})
OPERATOR = {"name": TEXT, "op": TEXT, "type": TEXT}, {"node": NUMBER, "again": TRUTH}
REFUSED = {"schedule": TEXT, "why": TEXT, "near": TRUTH}, {}
NODE = {"id": NUMBER, "name": TEXT, "op": TEXT, "kind": TEXT, "type": TEXT, "bytes": NUMBER, "operands": LIST}, {"user_name": TEXT, "line": TEXT, "module": TEXT, "around": NUMBER}
BUFFER = {"id": NUMBER, "name": TEXT, "kind": TEXT, "dtype": TEXT, "bytes": NUMBER}, {"padding": NUMBER, "offset": NUMBER, "first": NUMBER, "last": NUMBER}
KINDS = {"slow", "equal", "far", "predicted", "library", "copy", "small", "outside", "again", "padding", "weights", "float", "busy"}


def fields(what, value, must, may=None):
    may = may or {}
    if not isinstance(value, dict):
        yield f"{what} is no object"
        return
    for key, kind in must.items():
        if key not in value:
            yield f"{what} has no {key}"
    for key, v in value.items():
        kind = must.get(key) or may.get(key)
        if not kind:
            yield f"{what}: {key} is not in the schema"
        elif not isinstance(v, kind) or (kind is NUMBER and isinstance(v, bool)):
            yield f"{what}: {key} is {v!r:.80}"


def numbered(what, items, *schema):
    for k, item in enumerate(items):
        yield from fields(f"{what} {k + 1}", item, *schema)
        if item.get("id") != k + 1:
            yield f"{what} {k + 1} has the number {item.get('id')}"


def names(what, ids, items):
    if any(not isinstance(i, int) or not 1 <= i <= len(items) for i in ids):
        yield f"{what}: {ids!r:.80} of {len(items)}"


def complaints(r):
    """What is wrong, a text each."""
    yield from fields("the report", r, REPORT)
    if r.get("schema") != "weft-report" or r.get("version") != 1:
        yield "another schema"
        return
    yield from fields("model", r["model"], *MODEL)
    yield from fields("machine", r["machine"], *MACHINE)
    yield from fields("totals", r["totals"], *TOTALS)
    for t in r["model"]["inputs"] + r["model"]["outputs"]:
        yield from fields("a tensor", t, TENSOR)
    kernels, nodes, buffers = r["kernels"], r["nodes"], r["buffers"]
    yield from numbered("kernel", kernels, *KERNEL)
    yield from numbered("node", nodes, *NODE)
    yield from numbered("buffer", buffers, *BUFFER)
    for k in kernels:
        what = f"kernel {k['id']}"
        for o in k.get("operators", ()):
            yield from fields(f"{what}, an operator", o, *OPERATOR)
            yield from names(what, [o["node"]] if "node" in o else [], nodes)
        for o in k["refused"]:
            yield from fields(f"{what}, a refusal", o, *REFUSED)
        yield from names(what, k.get("reads", []) + k.get("writes", []), buffers)
        yield from names(what, [k["node"]] if k.get("node") else [], nodes)
        if k.get("limit", "cache") not in ("compute", "memory", "cache"):
            yield f"{what}: limit {k['limit']}"
        if (k.get("limit") in ("compute", "memory")) != ("fraction" in k) or ("fraction" in k) != ("limit_seconds" in k):
            yield f"{what}: a limit without its fraction"
    for n in nodes:
        yield from names(f"node {n['id']}", [o for o in n["operands"] if o], nodes)
        if any(o >= n["id"] for o in n["operands"]):
            yield f"node {n['id']} reads later ones: {n['operands']}"
        if n["kind"] not in ("input", "state", "constant", "call"):
            yield f"node {n['id']}: kind {n['kind']}"
    for b in buffers:
        if ("first" in b) != (b["kind"] in ("workspace", "room")):
            yield f"buffer {b['id']}: a lifetime of {b['kind']}"
        if "first" in b and not 1 <= b["first"] <= b["last"] <= len(kernels):
            yield f"buffer {b['id']}: from kernel {b['first']} to {b['last']}"
    for k in kernels:
        for i in k.get("reads", []) + k.get("writes", []):
            b = buffers[i - 1]
            if "first" in b and not b["first"] <= k["id"] <= b["last"]:
                yield f"kernel {k['id']} uses {b['name']} beyond its lifetime, {b['first']} to {b['last']}"
    for f in r["findings"]:
        yield from fields("a finding", f, *FINDING)
        yield from names("a finding", [f["kernel"]] if "kernel" in f else [], kernels)
        if f["kind"] not in KINDS:
            yield f"a finding of kind {f['kind']}"
    live = r["memory"]["live"]
    if len(live) != (len(kernels) if nodes else 0) or (live and max(live) != r["memory"]["peak"]):
        yield f"memory: {len(live)} kernels, peak {r['memory']['peak']}"
    if nodes and r["memory"]["peak"] > r["totals"]["workspace_bytes"] and not any(b["kind"] == "room" for b in buffers):
        yield f"memory: {r['memory']['peak']} bytes live in a workspace of {r['totals']['workspace_bytes']}"
    for launch in r["timeline"]["launches"]:
        if len(launch) != 3 or not 1 <= launch[0] <= len(kernels) or min(launch[1:]) < 0:
            yield f"a launch {launch}"
    functions = {k.get("function") for k in kernels}
    for name in r["sources"]:
        if name not in functions:
            yield f"the code of {name}, which no kernel has"
    if r["totals"]["kernels"] != len(kernels):
        yield "totals: another number of kernels"
