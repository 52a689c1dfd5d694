"""Compiles a causal language model for the server and for chat.py: export.py CHECKPOINT FOLDER [--weights int4] [--activations dynamic]
    [--cache int8] [--rows 8] [--length 1024] [--chunk 64]"""
import argparse
from pathlib import Path

import weft.transformers
from transformers import AutoModelForCausalLM


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", help="a folder that save_pretrained wrote, or a name on the Hub")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--weights", choices=("f32", "bf16", "int8", "int4"), help="default: as the checkpoint has them")
    parser.add_argument("--activations", choices=("none", "dynamic"), default="none")
    parser.add_argument("--cache", choices=("f16", "bf16", "int8"), help="default: as the model computes keys and values")
    parser.add_argument("--rows", type=int, default=8, help="requests at a time")
    parser.add_argument("--length", type=int, default=1024, help="tokens of a request and its answer")
    parser.add_argument("--chunk", type=int, default=64, help="tokens of a prompt that are read between two tokens of other answers")
    args = parser.parse_args()
    model = AutoModelForCausalLM.from_pretrained(args.checkpoint, dtype="auto")
    weft.transformers.export(model, args.folder, weights=args.weights, activations=args.activations, cache=args.cache, batch=args.rows,
                             max_length=args.length, chunk=args.chunk, continuous=True)


if __name__ == "__main__":
    main()
