"""The programs of this folder beside ONNX Runtime, on models that wheels of PyPI hold: compare.py WEFT [WHEELS]

WHEELS, or $WEFT_WHEELS, is the folder that fetch.sh fills. Each model is compiled, its program is built (by $CC, cc) and run on inputs that are made
here (sounds, files of several kinds, images of text) and, where it is installed, on words that espeak-ng speaks; ONNX Runtime runs the same model
behind what the wheel's own code does to its inputs. Answers must be equal, and probabilities within LIMIT. Skipped (77) where the folder or a module
of Python is missing.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import types
import wave

here = pathlib.Path(__file__).resolve().parent
weft = str(pathlib.Path(sys.argv[1]).resolve())
wheels = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else os.environ.get("WEFT_WHEELS") or "/nowhere").resolve()
LIMIT = 1e-3
bad = 0


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


if not wheels.is_dir():
    skip("WEFT_WHEELS names no folder with models (examples/wheels/fetch.sh FOLDER)")
sys.path.append(str(wheels))
sys.modules.setdefault("torchaudio", types.ModuleType("torchaudio"))  # which silero_vad imports, and needs to read files only
try:
    import magika
    import numpy as np
    import onnxruntime
    import torch
    from PIL import Image, ImageDraw, ImageFont
    from rapidocr_onnxruntime.ch_ppocr_rec import TextRecognizer
    from silero_vad.utils_vad import OnnxWrapper
except ImportError as e:
    skip(f"{sys.executable} has no module {e.name}")


def expect(ok, what):
    global bad
    bad += not ok
    print("ok" if ok else "FAIL", what, flush=True)


def one(pattern):
    found = sorted(wheels.glob(pattern))
    if not found:
        sys.exit(f"{wheels} has no {pattern}")
    return found[0]


def program(folder, name, model):
    """The path of the program NAME.c, linked with the compiled model."""
    subprocess.run([weft, "compile", model, "-o", folder / f"{name}.so"], check=True, stdout=subprocess.DEVNULL)
    cc = os.environ.get("CC", "cc").split()
    subprocess.run([*cc, "-O2", "-std=c11", "-Wall", "-Wextra", "-Werror", here / f"{name}.c", "-I", here.parent.parent / "include", f"./{name}.so", "-lm",
                    "-o", name], cwd=folder, check=True)
    return lambda *args: subprocess.run([folder / name, *args], cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


# ---- speech: silero-vad ----

def vowels(rate, seconds):
    """Something like a voice: pulses of a falling pitch through resonances that change four times a second."""
    rng, out = np.random.default_rng(1), []
    forms = [(730, 1090, 2440), (270, 2290, 3010), (300, 870, 2240), (530, 1840, 2480)]
    for k in range(int(4 * seconds)):
        t = np.arange(rate // 4) / rate
        phase = np.cumsum(140 - 10 * np.sin(3 * t + k)) / rate
        source = sum(np.cos(2 * np.pi * n * phase) / n for n in range(1, 25)) + 0.05 * rng.standard_normal(len(t))
        spectrum, f = np.fft.rfft(source), np.fft.rfftfreq(len(t), 1 / rate)
        gain = sum(1 / (1 + ((f - c) / w) ** 2) for c, w in zip(forms[k % 4], (60, 90, 120)))
        out.append(np.fft.irfft(spectrum * gain, len(t)) * np.hanning(len(t)) ** 0.3)
    x = np.concatenate(out)
    return 0.5 * x / np.abs(x).max()


def spoken(folder):
    """Words of espeak-ng at 16 kHz, or None."""
    if not shutil.which("espeak-ng"):
        return None
    subprocess.run(["espeak-ng", "-w", folder / "espeak.wav", "The quick brown fox jumps over the lazy dog."], check=True)
    with wave.open(str(folder / "espeak.wav")) as f:
        rate, x = f.getframerate(), np.frombuffer(f.readframes(f.getnframes()), np.int16) / 32768
    return np.interp(np.arange(0, len(x), rate / 16000), np.arange(len(x)), x)


def sounds(folder):
    rng, silence = np.random.default_rng(0), np.zeros(8000)
    yield "silence", np.zeros(20000)
    yield "noise", 0.1 * rng.standard_normal(16000)
    yield "tone", 0.5 * np.sin(np.arange(24000) * 2 * np.pi * 440 / 16000)
    yield "vowels", np.concatenate([silence, vowels(16000, 2), silence])
    if (words := spoken(folder)) is not None:
        yield "words", np.concatenate([silence, words, silence])


def voice(folder):
    model = one("silero_vad/data/silero_vad.onnx")
    run, wrapper = program(folder, "voice", model), OnnxWrapper(str(model), force_onnx_cpu=True)
    for name, x in sounds(folder):
        samples = np.clip(np.round(x * 32767), -32768, 32767).astype("<i2")
        with wave.open(str(folder / f"{name}.wav"), "wb") as f:
            f.setparams((1, 2, 16000, 0, "NONE", ""))
            f.writeframes(samples.tobytes())
        got = np.array([float(line.split()[1]) for line in run(folder / f"{name}.wav").splitlines()])
        want = wrapper.audio_forward(torch.from_numpy(samples.astype(np.float32) / 32768), 16000)[0].numpy()
        wrapper.reset_states()
        same = len(got) == len(want) and np.abs(got - want).max() <= LIMIT
        expect(same and (name != "words" or (want > 0.5).mean() > 0.3), f"voice, {name}: {len(got)} chunks, {(got > 0.5).sum()} of speech, "
               f"largest {got.max():.4f}, difference {np.abs(got - want).max():.1e}" if len(got) == len(want) else f"voice, {name}: {len(got)} chunks")


# ---- types of files: magika ----

def files(folder):
    """Files of this checkout, of the wheels, and some that are made."""
    root = here.parent.parent
    yield from (root / name for name in ("README.md", "meson.build", "examples/wheels/voice.c", "examples/wheels/compare.py", "scripts/net.py",
                                         "examples/digits/digits_cnn.pt2", "examples/targets/cortex-a53.json", "docs/weft.1", "scripts/build.sh"))
    yield pathlib.Path(weft)
    yield one("silero_vad/data/silero_vad.onnx")
    Image.effect_noise((80, 60), 40).save(folder / "noise.png")
    Image.effect_noise((80, 60), 40).save(folder / "noise.jpg")
    (folder / "rows.csv").write_text("name,size\n" + "".join(f"item {k},{k * k}\n" for k in range(60)))
    (folder / "page.html").write_text("  \n<!DOCTYPE html><html><head><title>x</title></head><body>" + "<p>A line.</p>\n" * 20 + "</body></html>\n\n")
    (folder / "bytes").write_bytes(np.random.default_rng(2).bytes(10000))
    yield from (folder / name for name in ("noise.png", "noise.jpg", "rows.csv", "page.html", "bytes", "tone.wav"))


def file_type(folder):
    model = one("magika/models/standard*/model.onnx")
    run, own = program(folder, "file_type", model), magika.Magika(model_dir=model.parent)
    paths = list(dict.fromkeys(files(folder)))
    lines = run(model.parent / "config.min.json", *paths).splitlines()
    for path, line in zip(paths, lines, strict=True):
        label, p = line.rsplit(": ", 1)[1].split()
        want = own.identify_path(path).prediction
        expect(label == str(want.dl.label) and abs(float(p) - want.score) <= LIMIT, f"file_type, {path.name}: {label} {p}, magika {want.dl.label} {want.score:.4f}")


# ---- text in images: rapidocr ----

def read_line(folder):
    model = one("rapidocr_onnxruntime/models/*rec*.onnx")
    run = program(folder, "read_line", model)
    own = TextRecognizer({"model_path": str(model), "rec_batch_num": 1, "rec_img_shape": [3, 48, 320], "intra_op_num_threads": 1, "inter_op_num_threads": 1,
                          "use_cuda": False, "use_dml": False})
    (folder / "characters.txt").write_text("\n".join(own.session.get_character_list()) + "\n")
    for k, (text, size, ink) in enumerate([("Weft 2026", 32, 0), ("Hello, world!", 40, 30), ("No. 4711 - 08/15", 24, 90), ("a line that is much wider than the others are", 28, 0)]):
        font = ImageFont.load_default(size)
        box = font.getbbox(text)
        image = Image.new("RGB", (box[2] + 20, size + 16), (250, 245 - 40 * (k % 2), 240))
        ImageDraw.Draw(image).text((10, 6), text, (ink, ink // 2, 0), font)
        image.save(folder / f"{k}.ppm")
        (want, p), = own(np.asarray(image)[:, :, ::-1].copy())[0]
        got = run(folder / "characters.txt", folder / f"{k}.ppm").rstrip("\n")
        expect(got == want and want.replace(" ", "") == text.replace(" ", ""), f"read_line: {got!r}, rapidocr {want!r} ({float(p):.3f})")


# ---- all models of the wheels, by their values ----

EXTENTS = {"input": (2, 576), "state": (2, 2, 128), "bytes": (1, 2048), "det": (1, 3, 96, 160), "rec": (2, 3, 48, 320), "cls": (2, 3, 48, 192)}


def made_up(model):
    """Inputs of extents that the model is made for."""
    rng = np.random.default_rng(3)
    for x in onnxruntime.InferenceSession(model).get_inputs():
        kind = next((k for k in EXTENTS if k in model.name and model.name.endswith("infer.onnx")), x.name)
        shape = [d if isinstance(d, int) else EXTENTS[kind][k] for k, d in enumerate(x.shape)]
        yield x.name, rng.integers(0, 257, shape).astype(np.int32) if "int32" in x.type else np.array(16000) if not shape else (
            0.3 * rng.standard_normal(shape)).astype(np.float32)


def whole(folder):
    for pattern in ("silero_vad/data/*.onnx", "magika/models/*/model.onnx", "rapidocr_onnxruntime/models/*.onnx"):
        for model in sorted(wheels.glob(pattern)):
            x = dict(made_up(model))
            np.savez(folder / "x.npz", **x)
            subprocess.run([weft, "run", model, "--inputs", folder / "x.npz", "--outputs", folder / "y.npz"], check=True, stderr=subprocess.DEVNULL)
            got, want = np.load(folder / "y.npz"), onnxruntime.InferenceSession(model).run(None, x)
            error = max(np.abs(got[f"y.{k}"] - y).max() / (1e-2 + np.abs(y).max()) for k, y in enumerate(want))
            expect(len(got) == len(want) and error <= LIMIT, f"{model.name}: error {error:.1e}")


with tempfile.TemporaryDirectory() as name:
    os.environ["WEFT_CACHE"] = f"{name}/cache"
    for part in (voice, file_type, read_line, whole):
        part(pathlib.Path(name))
sys.exit(bad != 0)
