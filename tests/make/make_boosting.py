"""Ensembles of scikit-learn, by skl2onnx, with results of ONNX Runtime: make_boosting.py FOLDER writes FOLDER/NAME_ROWS for weft check, and
FOLDER/NAME.onnx and FOLDER/ROWS.safetensors for `weft bench NAME.onnx --inputs ROWS.safetensors --against onnxruntime`. Needs scikit-learn,
skl2onnx, onnxruntime, safetensors. docs/log/measurements.md has the times."""
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
import skl2onnx
from onnx import numpy_helper
from safetensors.numpy import save_file
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor, RandomForestClassifier
from skl2onnx.common.data_types import FloatTensorType

dest = pathlib.Path(sys.argv[1])
x, y = make_regression(1000, 20, noise=5, random_state=0)
xc, yc = make_classification(1000, 20, n_informative=10, random_state=0)
x, xc = x.astype(np.float32), xc.astype(np.float32)
models = {
    "boosting": GradientBoostingRegressor(n_estimators=500, random_state=0).fit(x, y),
    "boosting_classes": GradientBoostingClassifier(n_estimators=500, random_state=0).fit(xc, yc),
    "boosting_deep": GradientBoostingRegressor(n_estimators=500, max_depth=6, random_state=0).fit(x, y),
    "forest": RandomForestClassifier(n_estimators=100, random_state=0).fit(xc, yc),
}
dest.mkdir(parents=True, exist_ok=True)
for rows in 1, 1000:
    save_file({"x.0": x[:rows].copy()}, dest / f"{rows}.safetensors")
for name, m in models.items():
    options = {id(m): {"zipmap": False}} if hasattr(m, "classes_") else None
    model = skl2onnx.convert_sklearn(m, initial_types=[("x", FloatTensorType([None, 20]))], options=options, target_opset={"": 17, "ai.onnx.ml": 3})
    onnx.save(model, dest / f"{name}.onnx")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for rows in 1, 1000:
        folder = dest / f"{name}_{rows}"
        data = folder / "test_data_set_0"
        data.mkdir(parents=True, exist_ok=True)
        onnx.save(model, folder / "model.onnx")
        (data / "input_0.pb").write_bytes(numpy_helper.from_array(x[:rows], "x").SerializeToString())
        for k, v in enumerate(session.run(None, {"x": x[:rows]})):
            (data / f"output_{k}.pb").write_bytes(numpy_helper.from_array(np.asarray(v), session.get_outputs()[k].name).SerializeToString())
