# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""attn_implementation="attnc": two random layers of three families, beside transformers' own eager attention.

Models are float32 but for attention: both implementations get query, key and value rounded to float16, so that what
differs is attention alone.
"""
import copy
import functools
import sys

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
import attnc  # noqa: E402
import attnc.torch  # noqa: E402
import torch._dynamo.testing  # noqa: E402
from attnc import TensorError, UnsupportedError  # noqa: E402
from attnc.torch.transformers import attention_forward, make_mask  # noqa: E402
from transformers import AttentionInterface, AttentionMaskInterface, masking_utils  # noqa: E402

attnc.torch.register_transformers()
SMALL = dict(vocab_size=61, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, head_dim=16, max_position_embeddings=128, pad_token_id=0, bos_token_id=1,
             eos_token_id=None, initializer_range=0.2)
FAMILIES = {
    "llama": lambda: transformers.LlamaConfig(**SMALL),
    "gemma2": lambda: transformers.Gemma2Config(**SMALL, sliding_window=9, attn_logit_softcapping=3.0,
                                                query_pre_attn_scalar=20),
    "gpt_oss": lambda: transformers.GptOssConfig(**SMALL, sliding_window=9, layer_types=["sliding_attention"] * 2,
                                                 num_local_experts=2, num_experts_per_tok=2,
                                                 rope_parameters=dict(rope_type="default", rope_theta=1e4))}


def attnc_rounded(module, query, key, value, mask, **options):
    o, _ = attention_forward(module, query.half(), key.half(), value.half(), mask, **options)
    return o.to(query.dtype), None


def eager_rounded(module, query, key, value, mask, **options):
    eager = sys.modules[type(module).__module__].eager_attention_forward
    return eager(module, *(t.half().to(t.dtype) for t in (query, key, value)), mask, **options)


AttentionInterface.register("attnc_rounded", attnc_rounded)
AttentionMaskInterface.register("attnc_rounded", make_mask)
AttentionInterface.register("eager_rounded", eager_rounded)
AttentionMaskInterface.register("eager_rounded", masking_utils.eager_mask)


@functools.cache
def models(family):
    """(with attnc, with eager attention), of the same weights."""
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(FAMILIES[family]()).eval()
    for parameter in model.parameters():
        if parameter.dim() == 1:  # norms and sinks
            torch.nn.init.normal_(parameter, 0.5, 0.5)
    pair = model, copy.deepcopy(model)
    for one, implementation in zip(pair, ("attnc_rounded", "eager_rounded")):
        one.set_attn_implementation(implementation)
    return pair


def tokens(*shape, seed=1):
    return torch.randint(3, 61, shape, generator=torch.Generator().manual_seed(seed))


def error(found, expected):
    return ((found.double() - expected.double()).norm() / expected.double().norm()).item()


LENGTHS = 14, 1, 22
CU = torch.tensor([0, 14, 15, 37], dtype=torch.int32)
KEPT = {"left": torch.arange(37) >= torch.tensor([[11], [0]]), "right": torch.arange(37) < torch.tensor([[37], [30]])}


def packed(family):
    """Three sequences in a row. transformers sees them by positions, but for gpt-oss, which has no masks for them."""
    positions = dict(position_ids=torch.cat([torch.arange(n) for n in LENGTHS])[None])
    return {**positions, "cu_seq_lens_q": CU, "cu_seq_lens_k": CU} if family == "gpt_oss" else positions


def one_by_one(model):
    return torch.cat([model(part, use_cache=False).logits[0] for part in tokens(1, 37).split(LENGTHS, 1)])


@pytest.mark.parametrize("case", ["left", "right", "packed"])
@pytest.mark.parametrize("family", FAMILIES)
def test_training(family, case):
    """Logits, and gradients of each module's parameters; where padding is, neither counts."""
    found = []
    for i, model in enumerate(models(family)):
        if case != "packed":
            logits = model(tokens(2, 37), attention_mask=KEPT[case].long(), use_cache=False).logits[KEPT[case]]
        else:  # eager attention sees one sequence at a time
            logits = one_by_one(model) if i else model(tokens(1, 37), **packed(family), use_cache=False).logits[0]
        torch.nn.functional.cross_entropy(logits, tokens(len(logits), seed=2)).backward()
        grads = {name: torch.cat([p.grad.flatten() for p in module.parameters(recurse=False)])
                 for name, module in model.named_modules() if [*module.parameters(recurse=False)]}
        model.zero_grad()
        found.append((logits.detach(), grads))
    assert 0 < error(found[0][0], found[1][0]) < 1e-3  # 0 is the same implementation
    assert found[0][1].keys() == found[1][1].keys()
    assert family != "gpt_oss" or "model.layers.0.self_attn" in found[0][1]  # sinks
    for name, own in found[0][1].items():
        assert error(own, found[1][1][name]) < 3e-3, name


@pytest.mark.parametrize("family, cache", [("gemma2", "dynamic"), ("llama", "static"), ("gpt_oss", "static")])
def test_generate(family, cache):
    """A padded prompt, then steps that pass the window: the same tokens and logits, and no kernel for each step."""
    inputs = dict(input_ids=tokens(2, 6), attention_mask=torch.tensor([[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]]))
    options = dict(do_sample=False, output_logits=True, return_dict_in_generate=True, cache_implementation=cache,
                   disable_compile=True)
    found = [model.generate(**inputs, **options, max_new_tokens=12) for model in models(family)]
    assert torch.equal(found[0].sequences, found[1].sequences)
    assert error(torch.stack(found[0].logits), torch.stack(found[1].logits)) < 1e-3
    count = attnc.compile_count()
    models(family)[0].generate(**inputs, **options, max_new_tokens=20)
    assert attnc.compile_count() == count


@torch.no_grad()
def test_continued():
    """Steps of several tokens into a cache, without padding, beside the whole sequence at once."""
    model, eager = models("gemma2")
    ids, cache, found = tokens(2, 37), transformers.DynamicCache(config=model.config), []
    for begin, end in ((0, 5), (5, 20), (20, 21), (21, 37)):
        found.append(model(ids[:, begin:end], past_key_values=cache).logits)
    assert error(torch.cat(found, 1), eager(ids, use_cache=False).logits) < 1e-3


@torch.no_grad()
def test_bfloat16():
    """A model of bfloat16 as a user has it. Its eager attention is as far from float32 as ours may be."""
    model = transformers.AutoModelForCausalLM.from_config(FAMILIES["gpt_oss"](), attn_implementation="attnc",
                                                          dtype=torch.bfloat16)
    model.load_state_dict(models("gpt_oss")[0].state_dict())
    expected, found = models("gpt_oss")[1](tokens(2, 37), use_cache=False).logits, []
    for implementation in ("attnc", "eager"):
        found.append(error(model(tokens(2, 37), use_cache=False).logits, expected))
        model.set_attn_implementation("eager")
    assert found[0] < max(1e-2, 1.2 * found[1])


@torch.no_grad()
def test_dense():
    """Masks that a user makes are of scores (float) or of truth values; a finite number hides no key."""
    model, eager = models("llama")
    bias = 3 * torch.randn(2, 1, 37, 37, generator=torch.Generator().manual_seed(3)) - 2
    hidden = torch.triu(torch.full((37, 37), torch.finfo(torch.float32).min), 1)
    for mask in (bias, bias + hidden.clamp(min=-1e4), hidden.expand(2, 1, 37, 37)):
        found, expected = (one(tokens(2, 37), attention_mask=mask).logits for one in (model, eager))
        assert error(found, expected) < 1e-3
    of_keys = torch.rand(2, 1, 1, 37, generator=torch.Generator().manual_seed(3)) < 0.7
    expected = eager(tokens(2, 37), attention_mask=torch.where(of_keys, 0.0, -torch.inf)).logits
    assert error(model(tokens(2, 37), attention_mask=of_keys).logits, expected) < 1e-3
    with pytest.raises(UnsupportedError, match="queries times keys"):
        model(tokens(2, 37), attention_mask=hidden.expand(2, 1, 37, 37) == 0)


# The two functions themselves, with the scale of llama above --------------------------------------------------------

B, H, G, D = 2, 4, 2, 16
WIDE = torch.nn.functional.scaled_dot_product_attention


class Layer(torch.nn.Module):
    is_causal = True


def make(rows, keys, batch=B):
    shapes = (batch, H, rows, D), (batch, G, keys, D), (batch, G, keys, D)
    return [torch.randn(shape, generator=torch.Generator().manual_seed(i)).half() for i, shape in enumerate(shapes)]


def check(qkv, mask, visible, **options):
    o, weights = attention_forward(Layer(), *qkv, mask, scaling=0.25, **options)
    expected = WIDE(*(t.double() for t in qkv), attn_mask=visible, enable_gqa=True).nan_to_num()
    assert weights is None and torch.allclose(o.transpose(1, 2).double(), expected, rtol=0, atol=4e-3)


@pytest.mark.parametrize("name, function", [
    ("chunk", lambda: masking_utils.chunked_causal_mask_function(8, torch.tensor([0, 3]))),
    ("near", lambda: masking_utils.sliding_window_bidirectional_mask_function(4))])
def test_mask(name, function):
    """Masks from offsets on, with padding, as transformers' own function has them in full; offsets make no kernels."""
    padding, texts = torch.rand(B, 34, generator=torch.Generator().manual_seed(1)) < 0.8, []
    for rows, keys, q_offset, kv_offset in ((25, 30, torch.tensor(13), 0), (25, 30, torch.tensor(2), 2),
                                            (0, 30, torch.tensor(3), 0), (25, 30, 9, 4), (24, 30, 10, 4)):
        sizes = dict(batch_size=B, q_length=rows, kv_length=keys, q_offset=q_offset, kv_offset=kv_offset)
        made = make_mask(**sizes, mask_function=function(), attention_mask=padding)
        visible = torch.zeros(B, 1, rows, keys, dtype=torch.bool) if not rows else masking_utils.sdpa_mask(
            **sizes, mask_function=function(), attention_mask=padding, allow_is_causal_skip=False)
        check(make(rows, keys), made, visible)
        texts.append(str(made.mask))
    assert len({*texts[:3]}) == 1 and (texts[3] == texts[0]) == (name == "chunk") == (texts[4] == texts[0])


def test_mask_is_a_snapshot():
    """Static caches count their tokens in place, between the mask and the first layer."""
    offset = torch.tensor(20)
    made = make_mask(B, 5, 30, offset, 0)
    offset += 5
    assert torch.equal(made.arrays["traced_row_end"], torch.arange(21, 26).expand(B, 5))
    moved = made.to("meta").arrays
    assert moved.keys() == made.arrays.keys() and all(array.is_meta for array in moved.values())
    assert make_mask(B, 5, 30, 25, attention_mask=made) is made
    with pytest.raises(TensorError, match=r"\(2, 1, 4, 30\), got: \(2, 1, 5, 30\)"):
        attention_forward(Layer(), *make(4, 30), made)


def test_without_mask():
    i, j = torch.arange(20)[:, None], torch.arange(20)
    check(make(20, 20), None, (j <= i) & (j > i - 6), sliding_window=6)
    check(make(1, 20), None, (j > 13)[None], sliding_window=6)
    check(make(7, 20), None, None, is_causal=False)


def test_packed_lengths():
    """cu_seq_lens without a mask; an empty sequence, and tokens of no sequence, which see nothing."""
    cu = torch.tensor([0, 5, 5, 20, 27])
    ids = torch.searchsorted(cu, torch.arange(30), right=True)
    lengths = dict(cu_seq_lens_q=cu, cu_seq_lens_k=cu, max_length_q=15, max_length_k=15)
    check(make(30, 30, 1), None, (ids[:, None] == ids) & (ids < 5), is_causal=False, **lengths)
    with pytest.raises(TensorError, match="batch of 1"):
        attention_forward(Layer(), *make(30, 30), None, **lengths)


def test_position_bias():
    bias = torch.randn(1, H, 20, 20, generator=torch.Generator().manual_seed(5))
    expected = bias.double().masked_fill(torch.ones(20, 20).triu(1) > 0, -torch.inf)
    check(make(20, 20), make_mask(B, 20, 20), expected, position_bias=bias)


@torch.no_grad()
def test_dropout():
    """The dropout of the configuration, in training alone."""
    model = copy.deepcopy(models("llama")[0])
    for layer in model.model.layers:
        layer.self_attn.attention_dropout = 0.5
    expected = model(tokens(2, 37)).logits
    assert error(expected, models("llama")[1](tokens(2, 37)).logits) < 1e-3
    model.train()
    torch.manual_seed(0)
    first = model(tokens(2, 37)).logits
    assert error(first, expected) > 0.05 and error(model(tokens(2, 37)).logits, first) > 0.05
    torch.manual_seed(0)
    assert torch.equal(model(tokens(2, 37)).logits, first)


@pytest.mark.parametrize("options, message", [
    (dict(head_mask=torch.ones(H)), "head_mask = 'Tensor': it is not known"),
    (dict(no_such=3), "no_such = 3: it is not known"), (dict(output_attentions=True), "never in memory"),
    (dict(attention_mask=torch.ones(B, 20)), "layers get .batch, heads"),
    (dict(attention_mask=torch.ones(B, 1, 20, 20, dtype=torch.int64)), "of float numbers"),
    (dict(attention_mask="causal"), "of type = 'str'"), (dict(is_causal=False, sliding_window=3), "has no one meaning"),
    (dict(keys=24), "causal attention of 20 queries and 24 keys")])
def test_refused(options, message):
    options = dict(options)
    qkv = make(20, options.pop("keys", 20))
    with pytest.raises(UnsupportedError, match=message):
        attention_forward(Layer(), *qkv, options.pop("attention_mask", None), **options)


def test_options():
    """What layers hand down without a meaning for attention is listed; None is no option."""
    check(make(7, 20), None, None, is_causal=False, position_ids=torch.arange(7), use_cache=True, head_mask=None)
    with pytest.raises(UnsupportedError, match="no_such = 3"):
        make_mask(B, 20, 20, no_such=3)
    with pytest.raises(attnc.TraceError, match="test_transformers.py"):
        make_mask(B, 20, 20, mask_function=lambda b, h, q, k: (q * k) ** k)


@torch.no_grad()
def test_compile():
    """Masks are made between the graphs of torch.compile, which are for all lengths."""
    model, eager = models("llama")
    counter, frames = torch._dynamo.testing.CompileCounter(), []
    compiled = torch.compile(model, backend=counter, dynamic=True)
    for n in (20, 29, 37):
        kept = KEPT["left"][:, :n]
        found, expected = (one(tokens(2, n), attention_mask=kept.long(), use_cache=False).logits
                           for one in (compiled, eager))
        assert error(found[kept], expected[kept]) < 1e-3
        frames.append(counter.frame_count)
    assert frames[0] == frames[2]
