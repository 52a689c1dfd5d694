"""A conversation in the terminal: chat.py FOLDER [--system TEXT] [--temperature 0] [--top-p 1] [--seed N] [--threads N]

FOLDER: what export.py wrote. Each line is a message; the model keeps what was said. Control-C ends an answer, control-D the program."""
from __future__ import annotations

import argparse
import queue
import sys

import torch
import weft.transformers
from api import Bad, of_messages
from engine import Engine, Request
from transformers import AutoTokenizer


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--system", help="what the model is told first")
    parser.add_argument("--temperature", type=float, default=0)
    parser.add_argument("--top-p", type=float, default=1)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    tokenizer, lm = AutoTokenizer.from_pretrained(args.folder), weft.transformers.load(args.folder)
    lm.threads = args.threads
    engine = Engine(lm, tokenizer, exact=False)
    begin = [{"role": "system", "content": args.system}] if args.system else []
    said = list(begin)
    try:
        while True:
            print("> ", end="", flush=True)
            line = sys.stdin.readline()
            if not line:
                print()
                return 0
            said.append({"role": "user", "content": line.rstrip("\n")})
            try:
                ids = of_messages(said, tokenizer)
            except Bad as e:
                print(f"chat.py: {e}", file=sys.stderr)
                return 1
            if len(ids) >= lm.max_length:
                print(f"(the conversation has {len(ids)} tokens, and the model holds {lm.max_length}: it begins anew)")
                said = [*begin, said[-1]]
                ids = of_messages(said, tokenizer)
            said.append({"role": "assistant", "content": answer(engine, ids, args)})
    except KeyboardInterrupt:
        return 0
    finally:
        engine.close()


def answer(engine: Engine, ids: list[int], args: argparse.Namespace) -> str:
    """Prints an answer as it comes."""
    pieces: queue.Queue[tuple[str, str | None]] = queue.Queue()
    request = Request(ids, lambda text, end: pieces.put((text, end)), engine.lm.max_length, args.temperature, args.top_p, args.seed)
    engine.submit(request)
    whole, end = "", None
    while end is None:
        try:
            text, end = pieces.get()
        except KeyboardInterrupt:
            request.cancelled, text = True, ""
        whole += text
        print(text, end="", flush=True)
    print()
    return whole


if __name__ == "__main__":
    sys.exit(main())
