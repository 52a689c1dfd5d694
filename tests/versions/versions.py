"""Files of older versions of PyTorch: versions.py WEFT ARCHIVE BACKEND... The archive (tests/versions/make_versions.sh) has a folder for each
version, with models and what eager PyTorch of that version gave. Then one of each layout with its schema version or its weights changed,
of which one error must say so; and what has gradients."""
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile

weft, archive, *backends = sys.argv[1:]
VERSIONS = [f"2.{minor}" for minor in range(5, 16)]
MODELS = ["attention", "attention_decomposed", "branch", "constants", "convnet", "dtypes", "infinities", "mlp", "recurrent", "state", "state_decomposed", "tied", "training"]
FLAT, SAVED = "serialized_exported_program.json", "serialized_state_dict.pt"
bad = 0


def expect(what, ok, text):
    global bad
    if not ok:
        bad += 1
        print(f"{what}: {text}", file=sys.stderr)


def changed(path, member, change):
    """The file with one member changed; None: without it."""
    out = path.parent / "changed.pt2"
    with zipfile.ZipFile(path) as a, zipfile.ZipFile(out, "w") as b:
        for name in a.namelist():
            data = change(a.read(name)) if name.endswith(member) else a.read(name)
            if data is not None:
                b.writestr(name, data)
    return out


def refused(what, path, wanted):
    p = subprocess.run([weft, "compile", path, "-o", "-", "--emit", "ir"], capture_output=True, text=True)
    expect(what, p.returncode == 1 and wanted in p.stderr and p.stderr.count("error:") == 1, p.stderr or f"status {p.returncode}")


def of_schema(major, torch):
    def change(data):
        model = json.loads(data)
        model["schema_version"]["major"] = major
        model["torch_version"] = torch
        return json.dumps(model).encode()
    return change


def inner(name, change):
    """A change of a member of the archive that torch.save wrote."""
    def whole(data):
        with tempfile.TemporaryFile() as f:
            with tempfile.NamedTemporaryFile() as from_:
                from_.write(data)
                from_.flush()
                with zipfile.ZipFile(from_.name) as a, zipfile.ZipFile(f, "w") as b:
                    for n in a.namelist():
                        changed = change(a.read(n)) if n.endswith(name) else a.read(n)
                        if changed is not None:
                            b.writestr(n, changed)
            f.seek(0)
            return f.read()
    return whole


with tempfile.TemporaryDirectory() as here:
    here = pathlib.Path(here)
    with tarfile.open(archive) as t:
        t.extractall(here)
    for version in VERSIONS:
        found = sorted(p.stem for p in (here / version).glob("*.pt2"))
        wanted = [m for m in MODELS if m != "infinities" or version not in ("2.7", "2.8")]  # which cannot save them
        expect(version, found == wanted, f"has {found}, expected {wanted}")
        for backend in backends:
            p = subprocess.run([weft, "check", here / version, "--backend", backend, "-q", "--jobs", "2"], capture_output=True, text=True)
            expect(f"{version} {backend}", not p.returncode, p.stdout + p.stderr)
    for version, model, weights, said in (("2.5", FLAT, SAVED, SAVED), ("2.8", "models/model.json", "data/weights/model.pt", "data/weights/model.pt")):
        path = here / version / "mlp.pt2"
        refused(f"{version} schema 6", changed(path, model, of_schema(6, "2.4.1")), "schema version 6 of PyTorch 2.4.1 is not supported, expected 7 or 8 (PyTorch 2.5 and later)")
        refused(f"{version} schema 9", changed(path, model, of_schema(9, "3.1.0")), "schema version 9 of PyTorch 3.1.0 is not supported, expected 7 or 8 (PyTorch 2.5 and later)")
        refused(f"{version} no weights", changed(path, weights, lambda data: None), "weight layers.0.weight is in neither weights nor constants")
        refused(f"{version} no archive", changed(path, weights, lambda data: b"\x80\x02}."), f"{said}: error: not a zip archive")
        refused(f"{version} no pickle", changed(path, weights, inner("/data.pkl", lambda data: None)), f"{said} is pickled, and there is no pickle")
        refused(f"{version} no dictionary", changed(path, weights, inner("/data.pkl", lambda data: b"\x80\x02].")), f"{said} is pickled, and it is no dictionary of tensors")
        refused(f"{version} no tensor", changed(path, weights, inner("/data.pkl", lambda data: b"\x80\x02}X\x0f\x00\x00\x00layers.0.weightK\x01s.")),
                "weight layers.0.weight is pickled, and no tensor of its own nor one that wraps tensors: a number")
        refused(f"{version} big-endian", changed(path, weights, inner("/byteorder", lambda data: b"big")), f"{said} is pickled, and not little-endian")
        refused(f"{version} fewer bytes", changed(path, weights, inner("/data/0", lambda data: data[:-4])), "the tensor needs")
    # Only parameters that learn have gradients.
    for version in ("2.5", "2.8", "2.15"):
        subprocess.run([weft, "compile", here / version / "mlp.pt2", "--grad=params", "-o", here / "grad.so"], capture_output=True, check=True)
        shown = subprocess.run([weft, "show", here / "grad.so"], capture_output=True, text=True, check=True).stdout
        learn = re.findall(r"\bg\.([\w.]+):", shown)
        expect(f"{version} gradients", learn == [f"layers.{n}" for n in ("0.weight", "0.bias", "1.weight", "1.bias", "4.weight", "6.bias")], learn)
    # A pickle with one other byte: read, or refused with one error.
    path, told = here / "2.5" / "mlp.pt2", set()
    for at in range(2, 1500, 23):
        def flip(data, at=at):
            return data[:at] + bytes([data[at] ^ 20]) + data[at + 1:] if at < len(data) else data
        p = subprocess.run([weft, "compile", changed(path, SAVED, inner("/data.pkl", flip)), "-o", "-", "--emit", "ir"], capture_output=True, text=True)
        told.add(p.returncode)
        expect(f"byte {at}", p.returncode == 0 or (p.returncode == 1 and p.stderr.count("error:") == 1), p.stderr or f"status {p.returncode}")
    expect("bytes", told == {0, 1}, f"statuses {told}, expected 0 and 1")
sys.exit(bad != 0)
