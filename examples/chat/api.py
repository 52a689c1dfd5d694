"""What a request of the interface of OpenAI asks for."""
from __future__ import annotations

import difflib
import json
from dataclasses import dataclass
from typing import Any

MOST_STOPS = 16
# Fields that change nothing here.
IGNORED = {"user", "metadata", "store", "service_tier", "parallel_tool_calls", "safety_identifier", "prompt_cache_key"}
# Fields that may have only these values, which ask for nothing.
ONLY = {"n": (1, None), "best_of": (1, None), "presence_penalty": (0, None), "frequency_penalty": (0, None), "logprobs": (False, None),
        "top_logprobs": (0, None), "logit_bias": ({}, None), "echo": (False, None), "suffix": (None, ""), "tools": (None, []),
        "tool_choice": (None, "none", "auto"), "functions": (None, []), "function_call": (None, "none", "auto"),
        "response_format": (None, {"type": "text"}), "modalities": (None, ["text"])}
USED = {"model", "temperature", "top_p", "seed", "stop", "stream", "stream_options", "max_tokens", "ignore_eos"}


class Bad(Exception):
    """A request that cannot be answered: one sentence, the status, the field that is wrong."""

    def __init__(self, message: str, status: int = 400, field: str | None = None):
        super().__init__(message)
        self.status, self.field = status, field


@dataclass
class Asked:
    ids: list[int]
    most: int  # tokens of the answer
    temperature: float
    top_p: float
    seed: int | None
    stop: tuple[str, ...]
    stream: bool
    usage: bool  # counts at the end of a stream
    endless: bool  # the token that ends texts does not end the answer


def read_request(body: bytes, chat: bool, name: str, tokenizer: Any, length: int, vocabulary: int) -> Asked:
    """length: positions of the cache; vocabulary: tokens of the model. Raises Bad."""
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as e:
        raise Bad(f"the body is not JSON: {e}") from e
    if not isinstance(given, dict):
        raise Bad(f"the body is {shown(given)}: expected an object")
    known = USED | IGNORED | set(ONLY) | ({"messages", "max_completion_tokens"} if chat else {"prompt"})
    for field, value in given.items():
        if field not in known:
            near = difflib.get_close_matches(field, known, 1)
            raise Bad(f"there is no field {field[:60]!r}{f': did you mean {near[0]!r}?' if near else ''}", field=field[:60])
        if field in ONLY and not any(type(value) is type(v) and value == v or value == v == 0 for v in ONLY[field]):
            raise Bad(f"{field} is not supported by this server", field=field)
    if given.get("model", name) != name:
        raise Bad(f"there is no model {shown(given['model'])}: this server has {name!r}", 404, "model")
    ids = of_messages(given.get("messages"), tokenizer) if chat else of_prompt(given.get("prompt"), tokenizer, vocabulary)
    if not ids:
        raise Bad("the prompt has no tokens", field="messages" if chat else "prompt")
    if len(ids) > length:
        raise Bad(f"the prompt has {len(ids)} tokens, and the model can hold {length} with the answer", field="messages" if chat else "prompt")
    most = number(given, "max_tokens", None if chat else 16, 1, None, int)
    if chat:
        most = number(given, "max_completion_tokens", most, 1, None, int)
    options = given.get("stream_options") or {}
    if not isinstance(options, dict):
        raise Bad(f"stream_options is {shown(options)}: expected an object", field="stream_options")
    return Asked(ids, length if most is None else most, number(given, "temperature", 1.0, 0, 2, float), number(given, "top_p", 1.0, 1e-6, 1, float),
                 number(given, "seed", None, -(1 << 63), (1 << 63) - 1, int), stops(given.get("stop")), truth(given, "stream"),
                 truth(options, "include_usage"), truth(given, "ignore_eos"))


def shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def number(given: dict[str, Any], field: str, default: Any, least: float, most: float | None, kind: type) -> Any:
    value = given.get(field)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, (int, float) if kind is float else int) or not least <= value or (most is not None and value > most):
        bounds = f"from {least} on" if most is None else f"from {least} to {most}" if kind is float else "of 64 bits"
        raise Bad(f"{field} is {shown(value)}: expected {'a number' if kind is float else 'an integer'} {bounds}", field=field)
    return kind(value)


def truth(given: dict[str, Any], field: str) -> bool:
    value = given.get(field)
    if value not in (None, True, False) or isinstance(value, (int, float)) and not isinstance(value, bool):
        raise Bad(f"{field} is {shown(value)}: expected true or false", field=field)
    return bool(value)


def stops(value: Any) -> tuple[str, ...]:
    texts = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(s, str) and s for s in texts) or len(texts) > MOST_STOPS:
        raise Bad(f"stop is {shown(value)}: expected a text, or a list of at most {MOST_STOPS} texts, none of them empty", field="stop")
    return tuple(texts)


def of_prompt(prompt: Any, tokenizer: Any, vocabulary: int) -> list[int]:
    """The tokens of a text, or the tokens that are given."""
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], (str, list)):
        prompt = prompt[0]
    if isinstance(prompt, str):
        return tokenizer(encodable(prompt, "prompt")).input_ids
    if isinstance(prompt, list) and all(isinstance(k, int) and not isinstance(k, bool) and 0 <= k < vocabulary for k in prompt):
        return prompt
    raise Bad(f"prompt is {shown(prompt)}: expected a text, or numbers of tokens from 0 to {vocabulary - 1}", field="prompt")


def of_messages(messages: Any, tokenizer: Any) -> list[int]:
    """The tokens of a conversation, by the model's template, up to where the answer begins."""
    if not isinstance(messages, list) or not messages:
        raise Bad(f"messages is {shown(messages)}: expected a list of objects with role and content", field="messages")
    if not tokenizer.chat_template:
        raise Bad("this model has no template for chats: use /v1/completions")
    turns = []
    for k, m in enumerate(messages):
        content = m.get("content") if isinstance(m, dict) else None
        if isinstance(content, list) and all(isinstance(p, dict) and p.get("type") == "text" and isinstance(p.get("text"), str) for p in content):
            content = "".join(p["text"] for p in content)
        if not isinstance(m, dict) or not isinstance(m.get("role"), str) or not isinstance(content, str):
            raise Bad(f"messages[{k}] is {shown(m)}: expected an object with a role and a content of text", field="messages")
        turns.append({"role": m["role"], "content": encodable(content, "messages")})
    try:
        return tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=True, return_dict=False)
    except Exception as e:  # templates raise errors of their own: a role that they do not know, an order that they do not allow
        raise Bad(f"the model's template does not accept these messages: {str(e).splitlines()[0] if str(e) else type(e).__name__}", field="messages") from e


def encodable(text: str, field: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as e:
        raise Bad(f"{field} has a half of a surrogate pair, which is no character", field=field) from e
    return text
