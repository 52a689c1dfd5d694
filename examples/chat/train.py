"""Trains a small Llama on questions and answers that it finds in the pages of this repository: train.py FOLDER [--seconds 120] [--pages docs]

Each heading of a page is a question, and the first sentence below it the answer. FOLDER gets the checkpoint, as save_pretrained writes it, with a
tokenizer of byte pairs and a template for chats. It is a model to try the server with: it knows these pages by heart, and nothing else."""
from __future__ import annotations

import argparse
import re
import time
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

TEMPLATE = ("{% for m in messages %}{% if m.role not in ['system', 'user', 'assistant'] %}{{ raise_exception('there is no role ' ~ m.role) }}{% endif %}"
            "<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}")
SPECIAL = ["<|pad|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]
LONGEST = 48  # tokens of an example


def pairs(folder: Path) -> list[tuple[str, str]]:
    """Headings and the first sentence below each."""
    out = {}
    for page in sorted(folder.glob("*.md")):
        for part in re.split(r"^#+ ", page.read_text(), flags=re.M)[1:]:
            heading, _, rest = part.partition("\n")
            text = next((p for p in rest.split("\n\n") if re.match(r"\s*[A-Z]", p)), "")
            if text:
                plain = " ".join(re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).split())
                out.setdefault(heading.replace("`", "").strip(), re.split(r"(?<=[.:]) (?=[A-Z])", plain)[0])
    return list(out.items())


def tokenizer_of(texts: list[str]) -> PreTrainedTokenizerFast:
    bytes_ = Tokenizer(models.BPE())
    bytes_.pre_tokenizer, bytes_.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    bytes_.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=1024, special_tokens=SPECIAL, show_progress=False,
                                                          initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bytes_, pad_token="<|pad|>", eos_token="<|end|>")
    tokenizer.add_special_tokens({"additional_special_tokens": SPECIAL[2:]})
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=120, help="at most; it ends as soon as it knows the answers")
    parser.add_argument("--pages", type=Path, default=Path(__file__).resolve().parents[2] / "docs")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)  # these matrices are small
    found = pairs(args.pages)
    tokenizer = tokenizer_of([f"{q} {a}" for q, a in found])
    examples = [tokenizer.apply_chat_template([{"role": "user", "content": q}, {"role": "assistant", "content": a}], return_dict=False) for q, a in found]
    short = [k for k, tokens in enumerate(examples) if len(tokens) <= LONGEST][:16]
    ids, learned = torch.zeros(len(short), LONGEST, dtype=torch.int64), torch.full((len(short), LONGEST), -100)
    for row, k in enumerate(short):
        ids[row, :len(examples[k])] = torch.tensor(examples[k])
        first = examples[k].index(tokenizer.convert_tokens_to_ids("<|assistant|>")) + 1
        learned[row, first:len(examples[k])] = ids[row, first:len(examples[k])]  # the answer
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4,
                                         num_key_value_heads=2, max_position_embeddings=1024, tie_word_embeddings=True, bos_token_id=None,
                                         pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    begin, steps, loss = time.monotonic(), 0, torch.tensor(9.0)
    while time.monotonic() - begin < args.seconds and (loss > 0.05 or steps < 20):
        loss = model(ids, labels=learned).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        steps += 1
    model.generation_config = GenerationConfig(pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id)
    model.save_pretrained(args.folder)
    tokenizer.save_pretrained(args.folder)
    print(f"{steps} steps, loss {loss:.3f}: ask for one of {len(short)} headings, such as {found[short[0]][0]!r}")


if __name__ == "__main__":
    main()
