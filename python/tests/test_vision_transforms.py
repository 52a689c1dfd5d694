"""weft.vision: each transform is exported once with any height and width, compiled, and equal to torchvision's at many sizes."""
import shutil
import subprocess

import pytest

torch = pytest.importorskip("torch")
torchvision = pytest.importorskip("torchvision")
from torchvision.transforms.v2 import functional as V

import weft
from weft import vision

pytestmark = pytest.mark.skipif(not weft.has_llvm(), reason="weft_llvm.so is not there")
SIZES = ((1, 1), (1, 2), (2, 1), (2, 3), (3, 3), (5, 4), (7, 300), (8, 8), (16, 15), (31, 32), (33, 97), (64, 48), (100, 100), (127, 3), (199, 120),
         (224, 224), (256, 341), (375, 500), (2000, 1), (3, 2000))
FLOATS, BYTES, BOTH = (torch.float32,), (torch.uint8,), (torch.uint8, torch.float32)
MODES = {"nearest": 0, "nearest-exact": 0, "bilinear": 1, "bicubic": 2}  # by how much integers may differ


def at_least(n):
    return lambda h, w: min(h, w) >= n


def case(made, reference, dtypes=BOTH, off=0, where=at_least(1), least=1):
    """off: by how much integers may differ; where: sizes that torchvision takes; least: the smallest size of the export."""
    return made, reference, dtypes, off, where, least


def crop_of(k):
    return lambda x: V.five_crop(x, [2, 3])[k]


class Crop(torch.nn.Module):
    """One of five."""

    def __init__(self, k):
        super().__init__()
        self.five, self.k = vision.FiveCrop((2, 3)), k

    def forward(self, x):
        return self.five(x)[self.k]


def wide(size, max_size=None):
    """Where the result has no side of 0, which torchvision refuses, or 1, which the exported program refuses."""
    from torchvision.transforms.functional import _compute_resized_output_size as size_of
    return lambda h, w: min(size_of((h, w), size, max_size, True)) > 1


CASES = {
    **{f"Resize short {mode}": case(vision.Resize(24, mode), lambda x, m=mode: V.resize(x, [24], V.InterpolationMode(m)), off=off,
                                     where=lambda h, w: h * w < 20000 and max(h, w) < 400) for mode, off in MODES.items()},
    **{f"Resize both {mode}": case(vision.Resize((20, 33), mode), lambda x, m=mode: V.resize(x, [20, 33], V.InterpolationMode(m)), off=off)
       for mode, off in MODES.items()},
    **{f"Resize {mode} not antialiased": case(vision.Resize((20, 33), mode, antialias=False),
                                              lambda x, m=mode: V.resize(x, [20, 33], V.InterpolationMode(m), antialias=False), off=MODES[mode])
       for mode in ("bilinear", "bicubic")},
    "Resize with max_size": case(vision.Resize(30, max_size=50), lambda x: V.resize(x, [30], max_size=50), off=1, where=wide([30], 50)),
    "Resize to max_size": case(vision.Resize(None, max_size=64), lambda x: V.resize(x, None, max_size=64), off=1, where=wide(None, 64)),
    "CenterCrop": case(vision.CenterCrop(24), lambda x: V.center_crop(x, [24])),
    "CenterCrop of two": case(vision.CenterCrop((5, 8)), lambda x: V.center_crop(x, [5, 8])),
    **{f"FiveCrop {k}": case(Crop(k), crop_of(k), where=lambda h, w: h >= 2 and w >= 3, least=3) for k in range(5)},
    "Pad": case(vision.Pad((1, 2, 3, 4), fill=7), lambda x: V.pad(x, [1, 2, 3, 4], fill=7)),
    "Pad edge": case(vision.Pad((1, 2, 3, 4), padding_mode="edge"), lambda x: V.pad(x, [1, 2, 3, 4], padding_mode="edge")),
    "Pad reflect": case(vision.Pad((1, 2), padding_mode="reflect"), lambda x: V.pad(x, [1, 2], padding_mode="reflect"), where=at_least(3)),
    "Pad symmetric": case(vision.Pad(2, padding_mode="symmetric"), lambda x: V.pad(x, [2], padding_mode="symmetric"), where=at_least(2)),
    "Normalize": case(vision.Normalize((0.4, 0.5, 0.6), (0.2, 0.3, 0.25)), lambda x: V.normalize(x, [0.4, 0.5, 0.6], [0.2, 0.3, 0.25]), FLOATS),
    "ToDtype float": case(vision.ToDtype(torch.float32, True), lambda x: V.to_dtype(x, torch.float32, True)),
    "ToDtype uint8": case(vision.ToDtype(torch.uint8, True), lambda x: V.to_dtype(x, torch.uint8, True)),
    "ToDtype int32": case(vision.ToDtype(torch.int32, True), lambda x: V.to_dtype(x, torch.int32, True), BYTES),
    "ToDtype not scaled": case(vision.ToDtype(torch.float32), lambda x: V.to_dtype(x, torch.float32)),
    "Grayscale": case(vision.Grayscale(), lambda x: V.rgb_to_grayscale(x), off=1),
    "Grayscale of 3": case(vision.Grayscale(3), lambda x: V.rgb_to_grayscale(x, 3), off=1),
    "AdjustBrightness": case(vision.AdjustBrightness(1.3), lambda x: V.adjust_brightness(x, 1.3), off=1),
    "AdjustContrast": case(vision.AdjustContrast(0.6), lambda x: V.adjust_contrast(x, 0.6), off=1),
    "AdjustSaturation": case(vision.AdjustSaturation(1.7), lambda x: V.adjust_saturation(x, 1.7), off=1),
    "AdjustSharpness": case(vision.AdjustSharpness(2.5), lambda x: V.adjust_sharpness(x, 2.5), off=1),
    "AdjustHue": case(vision.AdjustHue(0.2), lambda x: V.adjust_hue(x, 0.2), off=1),
    "AdjustHue back": case(vision.AdjustHue(-0.4), lambda x: V.adjust_hue(x, -0.4), off=1),
    "AdjustGamma": case(vision.AdjustGamma(1.5, 0.9), lambda x: V.adjust_gamma(x, 1.5, 0.9), off=1),
    "Invert": case(vision.Invert(), V.invert),
    "Solarize": case(vision.Solarize(0.5), lambda x: V.solarize(x, 0.5), FLOATS),
    "Solarize of bytes": case(vision.Solarize(100), lambda x: V.solarize(x, 100), BYTES),
    "Posterize": case(vision.Posterize(3), lambda x: V.posterize(x, 3)),
    "AutoContrast": case(vision.AutoContrast(), V.autocontrast, off=1),
    "Equalize": case(vision.Equalize(), V.equalize),
    "GaussianBlur": case(vision.GaussianBlur((5, 3), (1.0, 0.6)), lambda x: V.gaussian_blur(x, [5, 3], [1.0, 0.6]), off=1, where=at_least(3)),
}


def image(shape, dtype):
    """Smooth, so that edges of boxes and rounding matter, with noise."""
    x = torch.rand(shape) * 0.5 + torch.linspace(0, 0.5, shape[-1])
    return (x * 255).to(torch.uint8) if dtype == torch.uint8 else x


def any_size(module, shape, dtype, least=1, **options):
    """The compiled module, exported once."""
    Dim = torch.export.Dim
    sizes = {len(shape) - 2: Dim("h", min=least, max=4096), len(shape) - 1: Dim("w", min=least, max=4096)}
    if len(shape) == 4:
        sizes[0] = Dim("n", min=1, max=64)
    return weft.compile(module.eval(), (image(shape, dtype),), dynamic_shapes=(sizes,), **options)


def check(got, want, off):
    assert got.shape == want.shape and got.dtype == want.dtype
    if want.dtype.is_floating_point:
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-4)  # places of an axis of 2,000 have 24 bits
    else:
        assert (got.int() - want.int()).abs().max() <= off


@pytest.mark.parametrize("dtype", BOTH, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_equal_to_torchvision(name, dtype):
    made, reference, dtypes, off, where, least = CASES[name]
    if dtype not in dtypes:
        pytest.skip("not for this dtype")
    torch.manual_seed(0)
    for lead in ((), (2,)):
        compiled = any_size(made, (*lead, 3, 37, 45), dtype, least)
        done = 0
        for h, w in SIZES:
            if where(h, w) and min(h, w) >= least:
                x = image((*(3,) * len(lead), 3, h, w), dtype)
                check(torch.as_tensor(compiled(x)), reference(x), off)
                done += 1
        assert done >= 9


def test_what_is_refused():
    with pytest.raises(ValueError, match="Resize: max_size"):
        vision.Resize(30, max_size=30)
    with pytest.raises(ValueError, match="expected one of nearest"):
        vision.Resize(30, "lanczos")
    with pytest.raises(ValueError, match="not odd"):
        vision.GaussianBlur(4)
    with pytest.raises(TypeError, match="ToDtype converts it"):
        vision.Normalize((0,), (1,))(torch.zeros(1, 2, 2, dtype=torch.uint8))
    with pytest.raises(RuntimeError, match="FiveCrop: the image has 2 rows, the crop 3"):
        vision.FiveCrop(3)(torch.zeros(1, 2, 5))
    with pytest.raises(TypeError, match="preset: expected weights of torchvision"):
        vision.preset(torch.nn.ReLU())


WEIGHTS = ("ResNet50_Weights.IMAGENET1K_V2", "MobileNet_V3_Small_Weights.DEFAULT", "EfficientNet_B0_Weights.DEFAULT",
           "Swin_T_Weights.DEFAULT", "FasterRCNN_ResNet50_FPN_Weights.DEFAULT", "DeepLabV3_ResNet50_Weights.DEFAULT")


@pytest.mark.parametrize("name", WEIGHTS)
def test_presets(name):
    """Bytes, as decoders give them, one off before the division by the deviation. The reference computes as for training, with Pillow: of
    tensors its bicubic differs from Pillow's and from transforms.v2 by up to 9."""
    weights = torchvision.models.get_weight(name)
    compiled, reference = any_size(vision.preset(weights), (3, 50, 70), torch.uint8), weights.transforms()
    for h, w in ((50, 70), (300, 201), (375, 500), (640, 480)):
        x = image((3, h, w), torch.uint8)
        torch.testing.assert_close(torch.as_tensor(compiled(x)), reference(V.to_pil_image(x)), rtol=0, atol=1.1 / 255 / 0.224)


def test_preset_of_videos():
    weights = torchvision.models.video.R3D_18_Weights.DEFAULT
    x = image((2, 4, 3, 60, 90), torch.uint8)
    torch.testing.assert_close(vision.preset(weights)(x), weights.transforms()(x), rtol=0, atol=1.1 / 255 / 0.21)


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    """The module and a shared object: an image of bytes in, a class out."""
    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.prepare = vision.preset("MobileNet_V3_Small_Weights.DEFAULT")
            self.net = torchvision.models.mobilenet_v3_small(weights=None)

        def forward(self, image):
            return self.net(self.prepare(image).unsqueeze(0)).squeeze(0)
    module, path = Classifier().eval(), tmp_path_factory.mktemp("classifier") / "classify.so"
    return module, any_size(module, (3, 50, 70), torch.uint8, path=path), path


IMAGES = ((224, 224), (300, 201), (375, 500), (1080, 1920), (33, 470))


def test_one_artifact(classifier):
    module, compiled, _ = classifier
    for h, w in IMAGES:
        x = image((3, h, w), torch.uint8)
        with torch.no_grad():
            want = module(x)
        torch.testing.assert_close(torch.as_tensor(compiled(x)), want, rtol=1e-3, atol=1e-4)


PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include "weft_call.h"
const WeftModel *weft_model(void);

int main(int argc, char **argv)
{
	WeftCall call;
	if (argc < 2 || weft_call_open(&call, weft_model(), 0))
		return puts(call.status.message), 1;
	for (int k = 1; k + 2 < argc; k += 3) {
		int64_t h = atoi(argv[k + 1]), w = atoi(argv[k + 2]);
		unsigned char *pixels = malloc((size_t)(3 * h * w));
		FILE *f = fopen(argv[k], "rb");
		if (!f || fread(pixels, 1, (size_t)(3 * h * w), f) != (size_t)(3 * h * w))
			return puts("no image"), 1;
		fclose(f);
		WeftTensor in = weft_tensor(pixels, WEFT_U8, 3, (int64_t[]){3, h, w});
		if (weft_call_run(&call, &in))
			return puts(call.status.message), 1;
		const float *score = call.output[0].data;
		int best = 0;
		for (int c = 1; c < 1000; c++)
			best = score[c] > score[best] ? c : best;
		printf("%d %.6g\n", best, score[best]);
		free(pixels);
	}
	weft_call_close(&call);
	return 0;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="cc is not there")
def test_called_from_c(classifier, tmp_path):
    """One process, images of five sizes."""
    module, _, model = classifier
    (tmp_path / "main.c").write_text(PROGRAM)
    subprocess.run(["cc", "-O1", "main.c", str(model), f"-Wl,-rpath,{model.parent}", "-I", weft.include, "-lm", "-o", "main"], cwd=tmp_path, check=True)
    args, want = [], []
    for k, (h, w) in enumerate(IMAGES):
        x = image((3, h, w), torch.uint8)
        (tmp_path / f"{k}.raw").write_bytes(x.numpy().tobytes())
        args += [f"{k}.raw", str(h), str(w)]
        with torch.no_grad():
            want.append(module(x).max(0))
    lines = subprocess.run(["./main", *args], cwd=tmp_path, check=True, capture_output=True, text=True).stdout.split("\n")[:-1]
    assert [int(line.split()[0]) for line in lines] == [int(w.indices) for w in want]
    torch.testing.assert_close(torch.tensor([float(line.split()[1]) for line in lines]), torch.stack([w.values for w in want]), rtol=1e-3, atol=1e-4)


@pytest.mark.usefixtures("fresh")
def test_torch_compile():
    from weft import dynamo
    module = vision.Compose(vision.Resize(24), vision.CenterCrop(20), vision.ToDtype(torch.float32, True), vision.AdjustSharpness(1.5))
    fast = torch.compile(module, backend=dynamo.backend, dynamic=True, fullgraph=True)
    for h, w in ((50, 70), (31, 64), (100, 33)):
        x = image((3, h, w), torch.uint8)
        torch.testing.assert_close(fast(x), module(x), rtol=0, atol=1.5 * 1.01 / 255)
    assert not dynamo.statistics.eager_nodes
