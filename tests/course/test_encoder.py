"""The encoder against Hugging Face's BertModel: small random ones, and the trained one."""

import pytest
import torch

from course import data, pretrained
from course.encoder import Encoder
from course.model import Config

SIZES = {"vocab_size": 61, "hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 6, "intermediate_size": 40}
SIZES |= {"max_position_embeddings": 24, "initializer_range": 0.2, "attn_implementation": "eager"}
NAME = "minilm-l6"
TEXTS = ["A bank may hold money or a river.", "Money", "The muddy bank of the stream was steep, and nobody dared to climb it."]


def theirs_and_real(sizes: dict):
    """A small random BERT of Hugging Face, whose biases and norms are not zeros and ones, and a batch with filled-up texts."""
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    model = BertModel(BertConfig(**(SIZES | sizes))).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 1:
                parameter.copy_((1.0 if "LayerNorm.weight" in name else 0.0) + 0.2 * torch.randn_like(parameter))
    ids = torch.randint(61, (3, 17))
    real = torch.arange(17) < torch.tensor([[17], [1], [9]])
    return model, ids, real


@pytest.mark.parametrize("dtype, close", [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_a_folder_of_hugging_face_gives_their_vectors_and_weights(dtype, close, tmp_path):
    model, ids, real = theirs_and_real({})
    model.save_pretrained(tmp_path)
    mine, seen = pretrained.load(tmp_path, dtype), []
    with torch.no_grad():
        expected = model.to(dtype)(ids, real.long(), output_attentions=True, output_hidden_states=True)
        x = mine(ids, real, lambda layer, weights, before: seen.append((layer, weights, before)))
    assert isinstance(mine, Encoder) and x.dtype == dtype and expected.last_hidden_state.std() > 0.1
    assert torch.allclose(x[real], expected.last_hidden_state[real], atol=close)
    assert [layer for layer, _, _ in seen] == [0, 1, 2]
    rows = real[:, None, :, None].expand(3, 6, 17, 17)
    for (_, weights, before), their_weights, hidden in zip(seen, expected.attentions, expected.hidden_states, strict=False):
        assert torch.allclose(weights[rows], their_weights[rows], atol=close)
        assert torch.allclose(before[real], hidden[real], atol=close)


def test_what_fills_a_text_up_changes_nothing():
    torch.manual_seed(0)
    model = Encoder(
        Config(V=11, d_model=12, n_layers=2, n_heads=3, T_max=9, norm="layer", position="learned", ffn="gelu", bias=True)
    )
    text = torch.tensor([[1, 2, 3]])
    filled = torch.tensor([[1, 2, 3, 7, 7]])
    real = torch.tensor([[True, True, True, False, False]])
    assert torch.allclose(model.sentence(text), model.sentence(filled, real), atol=1e-6)
    assert not torch.allclose(model.sentence(text), model.sentence(filled), atol=1e-3)
    assert float(model.sentence(filled, real).norm()) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(
    "ids, real, told",
    [
        (torch.ones(1, 10, dtype=torch.long), None, "10 tokens are more than the T_max = 9"),
        (torch.ones(2, 3, dtype=torch.long), torch.tensor([[1, 1, 1], [0, 0, 0]]), "each text has some"),
        (torch.ones(2, 3, dtype=torch.long), torch.ones(3), r"each of \(2, 3\) tokens"),
    ],
)
def test_texts_that_are_none(ids, real, told):
    model = Encoder(Config(V=11, d_model=12, n_heads=3, T_max=9, norm="layer", position="learned", ffn="gelu", bias=True))
    with pytest.raises(ValueError, match=told):
        model(ids, real)


def test_a_config_of_another_shape_is_refused():
    with pytest.raises(ValueError, match='an encoder has position="learned"'):
        Encoder(Config(V=11, d_model=12, n_heads=3))


@pytest.mark.parametrize(
    "change, told",
    [
        ({"hidden_act": "relu"}, "hidden_act = 'relu'"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type"),
        ({"type_vocab_size": 1}, "type_vocab_size = 1"),
        ({"is_decoder": True}, "a BERT that is a decoder"),
    ],
)
def test_other_berts_are_refused_by_name(change, told):
    with pytest.raises(ValueError, match=told):
        pretrained.config_of({"model_type": "bert", **SIZES} | change)


# ---------------------------------------------------------------- the trained one


@pytest.fixture(scope="module")
def trained():
    return pretrained.load(NAME), pretrained.tokenizer(NAME)


@pytest.mark.parametrize("dtype, close", [(torch.float32, 2e-6), (torch.float64, 1e-12)])
def test_it_is_hugging_faces(dtype, close, trained):
    from transformers import BertModel

    texts = [*TEXTS, data.read("austen", 3000)]  # the last fills the model to its end
    ids, real = trained[1].batch(texts)
    model = (
        BertModel.from_pretrained(pretrained.folder(NAME), attn_implementation="eager", add_pooling_layer=False).to(dtype).eval()
    )
    with torch.no_grad():
        expected = model(ids, real.long()).last_hidden_state
        x = pretrained.load(NAME, dtype)(ids, real)
    assert ids.shape == (4, 512) and torch.allclose(x[real], expected[real], atol=close)


def test_its_tokens_are_those_of_transformers(trained):
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(pretrained.folder(NAME))
    for text in [*TEXTS, "", "Ünïcode, 東京 and 😀!", data.read("shakespeare", 900)]:
        assert trained[1].encode(text) == theirs(text)["input_ids"]
    ids, real = trained[1].batch(TEXTS)
    padded = theirs(TEXTS, padding=True, return_tensors="pt")
    assert torch.equal(ids, padded["input_ids"]) and torch.equal(real.long(), padded["attention_mask"])
    assert trained[1].words(ids[1][:4]) == ["[CLS]", "money", "[SEP]", "[PAD]"]


def test_sentences_of_like_meaning_are_near(trained):
    encoder, tokenizer = trained
    with torch.no_grad():
        a, b, c = encoder.sentence(*tokenizer.batch(["A man eats.", "Someone is having a meal.", "The stock market fell."]))
    assert a @ b > 0.5 > 0.2 > a @ c
