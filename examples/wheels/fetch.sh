#!/bin/sh
# Puts the wheels whose models the programs of this folder use into FOLDER, with what their own Python code imports (not PyTorch, NumPy and ONNX Runtime,
# which compare.py wants of its Python): fetch.sh FOLDER. Some 200 MB from PyPI; $PYTHON (python3) needs pip.
set -e
folder=${1:?usage: fetch.sh FOLDER}
"${PYTHON:-python3}" -m pip install --quiet --no-deps --only-binary :all: --upgrade --target "$folder" silero-vad magika rapidocr-onnxruntime \
	opencv-python-headless pillow pyclipper shapely pyyaml six python-dotenv click
