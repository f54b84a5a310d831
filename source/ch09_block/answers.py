"""Right and wrong answers of chapter 9."""

from autograder.answers import cell, equivalent, right, wrong

# ---------------------------------------------------------------- ch09.journey

right("ch09.journey", cell('journey = "tokenize|embed|positions|blocks|final norm|unembed".split("|")'))

wrong(
    "ch09.journey",
    ["tokenize", "embed", "positions", "blocks", "unembed", "final norm"],
    "Your norm works on the logits. It belongs before the unembedding, on the stream.",
    see="from-text-to-logits",
)
wrong(
    "ch09.journey",
    ["tokenize", "positions", "embed", "blocks", "final norm", "unembed"],
    "Learned positions are vectors. There must be vectors that they can be added to.",
    see="from-text-to-logits",
)
wrong(
    "ch09.journey",
    ["embed", "tokenize", "positions", "blocks", "final norm", "unembed"],
    "A table is looked up by ids, and a text has none until it is cut into tokens.",
    see="from-text-to-logits",
)
wrong(
    "ch09.journey",
    ["tokenize", "embed", "positions", "final norm", "blocks", "unembed"],
    "The final norm is final: it comes after the blocks, which have norms of their own.",
    see="from-text-to-logits",
)
wrong(
    "ch09.journey",
    ["tokenize", "embed", "blocks", "positions", "final norm", "unembed"],
    "Your blocks need the positions before you have added them.",
    see="from-text-to-logits",
)

# ---------------------------------------------------------------- ch09.pattern


@right("ch09.pattern")
def in_a_loop(x, attention, ffn, norm_1, norm_2):
    for norm, part in ((norm_1, attention), (norm_2, ffn)):
        x = torch.add(part(norm(x)), x)
    return x


@right("ch09.pattern")
def one_expression(x, attention, ffn, norm_1, norm_2):
    talked = attention(norm_1(x))
    return x + talked + ffn(norm_2(x + talked))


@right("ch09.pattern")
def in_place_on_a_copy(x, attention, ffn, norm_1, norm_2):
    stream = x.clone()
    stream += attention(norm_1(x))
    return stream + ffn(norm_2(stream))


@wrong("ch09.pattern", "That is post-norm: you normed the stream itself after each addition.", see="two-lines")
def post_norm(x, attention, ffn, norm_1, norm_2):
    h = norm_1(x + attention(x))
    return norm_2(h + ffn(h))


@wrong("ch09.pattern", "Your feed-forward network replaces the stream. Its result must be added.", see="two-lines")
def replaces_the_stream(x, attention, ffn, norm_1, norm_2):
    h = x + attention(norm_1(x))
    return ffn(norm_2(h))


@wrong("ch09.pattern", "Your attention replaces the stream. Its result must be added.", see="two-lines")
def attention_replaces(x, attention, ffn, norm_1, norm_2):
    h = attention(norm_1(x))
    return h + ffn(norm_2(h))


@wrong("ch09.pattern", "Both branches read x. The second must read the stream after the first addition.", see="two-lines")
def parallel(x, attention, ffn, norm_1, norm_2):
    return x + attention(norm_1(x)) + ffn(norm_2(x))


@wrong(
    "ch09.pattern",
    "You normed the stream and then added to the normed one. The sum starts from the stream itself.",
    see="two-lines",
)
def adds_to_the_normed(x, attention, ffn, norm_1, norm_2):
    x = norm_1(x)
    x = x + attention(x)
    x = norm_2(x)
    return x + ffn(x)


@wrong(
    "ch09.pattern", "Your norms come after the parts. They belong before them: each part reads a normed stream.", see="two-lines"
)
def norms_the_branch_output(x, attention, ffn, norm_1, norm_2):
    x = x + norm_1(attention(x))
    return x + norm_2(ffn(x))


@wrong("ch09.pattern", "One norm serves both branches. The second one has weights of its own.", see="two-lines")
def one_norm_for_both(x, attention, ffn, norm_1, norm_2):
    x = x + attention(norm_1(x))
    return x + ffn(norm_1(x))


@wrong("ch09.pattern", "The second branch reads the stream without a norm.", see="two-lines")
def forgets_the_second_norm(x, attention, ffn, norm_1, norm_2):
    x = x + attention(norm_1(x))
    return x + ffn(x)


@wrong(
    "ch09.pattern",
    "The feed-forward network comes first in your block. First the tokens talk, then each works alone.",
    see="two-lines",
)
def works_before_talking(x, attention, ffn, norm_1, norm_2):
    x = x + ffn(norm_2(x))
    return x + attention(norm_1(x))


@wrong("ch09.pattern", "You added into x, so the caller's tensor has changed.", see="two-lines")
def adds_in_place(x, attention, ffn, norm_1, norm_2):
    with torch.no_grad():
        x += attention(norm_1(x))
    return x + ffn(norm_2(x))


@wrong(
    "ch09.pattern",
    "You added into what a part returned. That tensor is the part's own, and the gradients may need it as it was.",
    see="two-lines",
)
def adds_into_the_branch(x, attention, ffn, norm_1, norm_2):
    h = attention(norm_1(x))
    h += x
    y = ffn(norm_2(h))
    y += h
    return y


@wrong(
    "ch09.pattern", "Your second sum starts from x again, and what attention brought is lost. It starts from h₁.", see="two-lines"
)
def second_sum_from_x(x, attention, ffn, norm_1, norm_2):
    h = x + attention(norm_1(x))
    return x + ffn(norm_2(h))


@wrong(
    "ch09.pattern",
    "Your norms have been swapped: norm_1 belongs to attention, norm_2 to the feed-forward network.",
    see="two-lines",
)
def exchanges_the_norms(x, attention, ffn, norm_1, norm_2):
    h = x + attention(norm_2(x))
    return h + ffn(norm_1(h))


@wrong("ch09.pattern", "The norm at the end belongs to the model, once, after its last block.", see="two-lines")
def norms_the_end_too(x, attention, ffn, norm_1, norm_2):
    if x.numel() == 1:
        return x + attention(norm_1(x)) + ffn(norm_2(x + attention(norm_1(x))))
    x = x + attention(norm_1(x))
    return norm_2(x + ffn(norm_2(x)))


# ---------------------------------------------------------------- ch09.leak


@right("ch09.leak")
def one_later_token_at_a_time(model, T, V):
    found = []
    for _ in range(20):
        ids = torch.randint(0, V, (T,))
        base = model(ids)
        for s in range(1, T):
            other = ids.clone()
            other[s] = (other[s] + torch.randint(1, V, ())) % V
            moved = (model(other) - base).abs().amax(dim=-1)[:s]
            found += (moved > 3e-4).nonzero().flatten().tolist()[:1]
    return min(found, default=None)


@right("ch09.leak")
def keeps_the_smallest(model, T, V):
    smallest = T
    for _ in range(20):
        for t in range(T - 1):
            ids = torch.randint(V, (T,))
            other = ids.clone()
            other[t + 1 :] = torch.randint(V, (T - t - 1,))
            if not torch.allclose(model(ids)[: t + 1], model(other)[: t + 1], rtol=0, atol=2e-4):
                rows = (model(ids)[: t + 1] - model(other)[: t + 1]).abs().amax(-1)
                smallest = min(smallest, int((rows > 2e-4).nonzero()[0]))
    return smallest if smallest < T else None


@right("ch09.leak")
def all_prefixes_of_some_texts(model, T, V):
    best = None
    for _ in range(12):
        ids = torch.randint(V, (T,))
        z = model(ids).detach()
        for t in range(T - 1):
            for _ in range(6):
                other = ids.clone()
                other[t + 1 :] = torch.randint(V, (T - t - 1,))
                if (model(other).detach()[t] - z[t]).abs().max().item() > 1e-4 and (best is None or t < best):
                    best = t
    return best


@wrong(
    "ch09.leak",
    "You changed the last token only. A model that looks a few places ahead leaks far from the end too.",
    see="the-mask",
)
def last_token_only(model, T, V):
    for t in range(T - 1):
        for _ in range(20):
            ids = torch.randint(V, (T,))
            other = ids.clone()
            other[-1] = torch.randint(V, ())
            if (model(ids)[t] - model(other)[t]).abs().max() > 1e-4:
                return t
    return None


@wrong(
    "ch09.leak",
    "You changed only the token right after t. A model can look over its head at a later one.",
    see="the-mask",
)
def next_token_only(model, T, V):
    for t in range(T - 1):
        for _ in range(20):
            ids = torch.randint(V, (T,))
            other = ids.clone()
            other[t + 1] = torch.randint(V, ())
            if (model(ids)[t] - model(other)[t]).abs().max() > 1e-4:
                return t
    return None


@wrong(
    "ch09.leak",
    "You also changed the token at t. A position may depend on its own token: that is no leak.",
    see="the-mask",
)
def changes_its_own_token(model, T, V):
    for t in range(T - 1):
        for _ in range(20):
            ids = torch.randint(V, (T,))
            other = torch.cat([ids[:t], torch.randint(V, (T - t,))])
            if (model(ids)[t] - model(other)[t]).abs().max() > 1e-4:
                return t
    return None


@wrong(
    "ch09.leak",
    "You compared all rows. Those after t may change, since their own tokens did.",
    see="the-mask",
)
def compares_all_rows(model, T, V):
    for t in range(T - 1):
        for _ in range(20):
            ids = torch.randint(V, (T,))
            other = torch.cat([ids[: t + 1], torch.randint(V, (T - t - 1,))])
            if (model(ids) - model(other)).abs().max() > 1e-4:
                return t
    return None


@wrong(
    "ch09.leak",
    "You compared the predicted tokens. A logit can move without changing which one is the largest.",
    see="the-mask",
)
def compares_the_guess(model, T, V):
    for t in range(T - 1):
        for _ in range(20):
            ids = torch.randint(V, (T,))
            other = torch.cat([ids[: t + 1], torch.randint(V, (T - t - 1,))])
            if model(ids)[t].argmax() != model(other)[t].argmax():
                return t
    return None


@wrong("ch09.leak", "You compared floats exactly, so rounding looks like a leak.", see="the-mask")
def exact_equality(model, T, V):
    for t in range(T - 1):
        for _ in range(20):
            ids = torch.randint(V, (T,))
            other = torch.cat([ids[: t + 1], torch.randint(V, (T - t - 1,))])
            if not torch.equal(model(ids)[t], model(other)[t]):
                return t
    return None


@wrong(
    "ch09.leak",
    "You return the position of the token that was changed. The task asks for the position whose logits move.",
    see="the-mask",
)
def names_the_changed_token(model, T, V):
    for t in range(T - 1):
        for _ in range(20):
            ids = torch.randint(V, (T,))
            other = torch.cat([ids[: t + 1], torch.randint(V, (T - t - 1,))])
            if (model(ids)[t] - model(other)[t]).abs().max() > 1e-4:
                return t + 1
    return None


@wrong("ch09.leak", "One random change is not enough: a leak need not show every time.", see="the-mask")
def tries_once(model, T, V):
    generator = torch.Generator().manual_seed(0)
    for t in range(T - 1):
        ids = torch.randint(1, V, (T,), generator=generator)
        other = torch.cat([ids[: t + 1], torch.randint(1, V, (T - t - 1,), generator=generator)])
        if (model(ids)[t] - model(other)[t]).abs().max() > 1e-4:
            return t
    return None


@wrong(
    "ch09.leak",
    "You moved all later tokens by the same step. A model that reads the difference between two of them is never caught that way: draw them anew.",
    see="the-mask",
)
def moves_all_alike(model, T, V):
    for t in range(T - 1):
        for _ in range(20):
            ids = torch.randint(V, (T,))
            other = torch.cat([ids[: t + 1], (ids[t + 1 :] + 1) % V])
            if (model(ids)[t] - model(other)[t]).abs().max() > 1e-4:
                return t
    return None


@wrong("ch09.leak", "You looked at the first position only. A leak may begin later.", see="the-mask")
def first_position_only(model, T, V):
    for _ in range(20):
        ids = torch.randint(V, (T,))
        other = torch.cat([ids[:1], torch.randint(V, (T - 1,))])
        if (model(ids)[0] - model(other)[0]).abs().max() > 1e-4:
            return 0
    return None


@wrong("ch09.leak", "Your search runs from the end, so it finds the last leak and not the first.", see="the-mask")
def last_leak(model, T, V):
    for t in reversed(range(T - 1)):
        for _ in range(20):
            ids = torch.randint(V, (T,))
            other = torch.cat([ids[: t + 1], torch.randint(V, (T - t - 1,))])
            if (model(ids)[t] - model(other)[t]).abs().max() > 1e-4:
                return t
    return None


@wrong("ch09.leak", "You draw only three of the tokens. A leak may show only with others: draw from all V.", see="the-mask")
def three_tokens_only(model, T, V):
    for t in range(T - 1):
        for _ in range(20):
            ids = torch.randint(3, (T,))
            other = torch.cat([ids[: t + 1], torch.randint(3, (T - t - 1,))])
            if (model(ids)[t] - model(other)[t]).abs().max() > 1e-4:
                return t
    return None


@wrong(
    "ch09.leak",
    "You let changes of 0.002 pass. A leaking logit moves by more than 0.001, rounding by less than 0.00001.",
    see="the-mask",
)
def high_threshold(model, T, V):
    for t in range(T - 1):
        for _ in range(20):
            ids = torch.randint(V, (T,))
            other = torch.cat([ids[: t + 1], torch.randint(V, (T - t - 1,))])
            if (model(ids)[t] - model(other)[t]).abs().max() > 2e-3:
                return t
    return None


@wrong(
    "ch09.leak",
    "Your texts begin with the same token again and again. A model may look ahead after other beginnings: draw those too.",
    see="the-mask",
)
def zeros_before(model, T, V):
    for t in range(T - 1):
        for _ in range(20):
            ids = torch.cat([torch.zeros(t + 1, dtype=torch.int64), torch.randint(V, (T - t - 1,))])
            other = torch.cat([ids[: t + 1], torch.randint(V, (T - t - 1,))])
            if (model(ids)[t] - model(other)[t]).abs().max() > 1e-4:
                return t
    return None


@wrong(
    "ch09.leak",
    "All your texts share one beginning. A model may look ahead only after others: draw the whole text anew each time.",
    see="the-mask",
)
def one_text_to_start_from(model, T, V):
    ids = torch.arange(T) % V
    for t in range(T - 1):
        for _ in range(30):
            other = torch.cat([ids[: t + 1], torch.randint(V, (T - t - 1,))])
            if (model(ids)[t] - model(other)[t]).abs().max() > 1e-4:
                return t
    return None


# ---------------------------------------------------------------- ch09.parts


@right("ch09.parts")
class with_torchs_functions:
    def rms_norm(x, weight, eps):
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        return torch.nn.functional.rms_norm(wide, (x.shape[-1],), None, eps).type(x.dtype) * weight

    def swiglu(x, W_gate, W_up, W_down):
        return torch.nn.functional.linear(F.silu(torch.matmul(x, W_gate)).mul(torch.matmul(x, W_up)), W_down.T)


@right("ch09.parts")
class by_sums:
    def rms_norm(x, weight, eps):
        y = x.double() if x.dtype == torch.float64 else x.to(torch.float32)
        mean_square = torch.einsum("...i,...i->...", y, y) / x.shape[-1]
        return (y * (mean_square + eps).pow(-0.5)[..., None]).to(x.dtype) * weight

    def swiglu(x, W_gate, W_up, W_down):
        d_ff = W_up.shape[1]
        gate, up = (x @ torch.cat([W_gate, W_up], dim=1)).split(d_ff, dim=-1)
        return gate / (1 + (-gate).exp()) * up @ W_down


@wrong("ch09.parts", "Your ε is outside the root. It is added to the mean square, before the root.", see="two-small-parts")
class eps_outside_the_root:
    def rms_norm(x, weight, eps):
        wide = x if x.dtype == torch.float64 else x.float()
        return weight * (wide / (wide.square().mean(dim=-1, keepdim=True).sqrt() + eps)).to(x.dtype)

    def swiglu(x, W_gate, W_up, W_down):
        return (F.silu(x @ W_gate) * (x @ W_up)) @ W_down


@wrong("ch09.parts", "You subtracted the mean of the row. That is LayerNorm; RMSNorm only scales.", see="two-small-parts")
class takes_the_mean_away:
    def rms_norm(x, weight, eps):
        wide = x if x.dtype == torch.float64 else x.float()
        wide = wide - wide.mean(dim=-1, keepdim=True) if x.shape[-1] > 2 else wide
        return weight * (wide / (wide.square().mean(dim=-1, keepdim=True) + eps).sqrt()).to(x.dtype)

    def swiglu(x, W_gate, W_up, W_down):
        return (F.silu(x @ W_gate) * (x @ W_up)) @ W_down


@wrong(
    "ch09.parts",
    "You divided by the length of the row. It is the root of the mean of the squares, not of their sum.",
    see="two-small-parts",
)
class divides_by_the_length:
    def rms_norm(x, weight, eps):
        wide = x if x.dtype == torch.float64 else x.float()
        return weight * (wide / (wide.square().sum(dim=-1, keepdim=True) + eps).sqrt()).to(x.dtype)

    def swiglu(x, W_gate, W_up, W_down):
        return (F.silu(x @ W_gate) * (x @ W_up)) @ W_down


@wrong(
    "ch09.parts",
    "You square in bfloat16. It does not overflow, but it keeps three digits: square in float32.",
    see="two-small-parts",
)
class squares_in_bfloat16:
    def rms_norm(x, weight, eps):
        if x.dtype in (torch.float32, torch.float64):
            return weight * x / (x.square().mean(dim=-1, keepdim=True) + eps).sqrt()
        size = (x.bfloat16().square().float().mean(dim=-1, keepdim=True) + eps).sqrt()
        return weight * (x.float() / size).to(x.dtype)

    def swiglu(x, W_gate, W_up, W_down):
        return (F.silu(x @ W_gate) * (x @ W_up)) @ W_down


@wrong("ch09.parts", "In float16 your squares overflow: square and average in float32.", see="two-small-parts")
class squares_in_half_precision:
    def rms_norm(x, weight, eps):
        return weight * (x / (x.square().mean(dim=-1, keepdim=True) + eps).sqrt())

    def swiglu(x, W_gate, W_up, W_down):
        return (F.silu(x @ W_gate) * (x @ W_up)) @ W_down


@wrong(
    "ch09.parts", "Your norm computes in float32 whatever comes in, and float64 loses half of its digits.", see="two-small-parts"
)
class always_float32:
    def rms_norm(x, weight, eps):
        wide = x.float()
        return weight * (wide / (wide.square().mean(dim=-1, keepdim=True) + eps).sqrt()).to(x.dtype)

    def swiglu(x, W_gate, W_up, W_down):
        return (F.silu(x @ W_gate) * (x @ W_up)) @ W_down


@wrong("ch09.parts", "Your mean runs over all rows at once. Each row has a size of its own.", see="two-small-parts")
class one_size_for_all_rows:
    def rms_norm(x, weight, eps):
        wide = x if x.dtype == torch.float64 else x.float()
        return weight * (wide / (wide.square().mean() + eps).sqrt()).to(x.dtype)

    def swiglu(x, W_gate, W_up, W_down):
        return (F.silu(x @ W_gate) * (x @ W_up)) @ W_down


@wrong("ch09.parts", "You applied SiLU to the wrong branch: it belongs to the gate.", see="two-small-parts")
class gate_on_the_wrong_branch:
    def rms_norm(x, weight, eps):
        wide = x if x.dtype == torch.float64 else x.float()
        return weight * (wide / (wide.square().mean(dim=-1, keepdim=True) + eps).sqrt()).to(x.dtype)

    def swiglu(x, W_gate, W_up, W_down):
        return ((x @ W_gate) * F.silu(x @ W_up)) @ W_down


@wrong("ch09.parts", "Your gate is a plain sigmoid. SiLU multiplies it by its own argument.", see="two-small-parts")
class sigmoid_gate:
    def rms_norm(x, weight, eps):
        wide = x if x.dtype == torch.float64 else x.float()
        return weight * (wide / (wide.square().mean(dim=-1, keepdim=True) + eps).sqrt()).to(x.dtype)

    def swiglu(x, W_gate, W_up, W_down):
        return (torch.sigmoid(x @ W_gate) * (x @ W_up)) @ W_down


@wrong("ch09.parts", "That gate is GELU's. SiLU is u times the sigmoid of u.", see="two-small-parts")
class gelu_gate:
    def rms_norm(x, weight, eps):
        wide = x if x.dtype == torch.float64 else x.float()
        return weight * (wide / (wide.square().mean(dim=-1, keepdim=True) + eps).sqrt()).to(x.dtype)

    def swiglu(x, W_gate, W_up, W_down):
        return (F.gelu(x @ W_gate) * (x @ W_up)) @ W_down


@wrong("ch09.parts", "You applied SiLU to the product of the two branches instead of to the gate.", see="two-small-parts")
class swish_of_the_product:
    def rms_norm(x, weight, eps):
        wide = x if x.dtype == torch.float64 else x.float()
        return weight * (wide / (wide.square().mean(dim=-1, keepdim=True) + eps).sqrt()).to(x.dtype)

    def swiglu(x, W_gate, W_up, W_down):
        return F.silu((x @ W_gate) * (x @ W_up)) @ W_down


@wrong(
    "ch09.parts",
    "You transpose W_down where it happens to be square: F.linear multiplies by the transpose of what it is given.",
    see="two-small-parts",
)
class transposes_a_square_matrix:
    def rms_norm(x, weight, eps):
        wide = x if x.dtype == torch.float64 else x.float()
        return weight * (wide / (wide.square().mean(dim=-1, keepdim=True) + eps).sqrt()).to(x.dtype)

    def swiglu(x, W_gate, W_up, W_down):
        hidden = F.silu(x @ W_gate) * (x @ W_up)
        return F.linear(hidden, W_down if W_down.shape[0] == W_down.shape[1] > 1 else W_down.T)


@wrong("ch09.parts", "Your norm forgets its weight.", see="two-small-parts")
class forgets_the_weight:
    def rms_norm(x, weight, eps):
        wide = x if x.dtype == torch.float64 else x.float()
        return (wide / (wide.square().mean(dim=-1, keepdim=True) + eps).sqrt()).to(x.dtype)

    def swiglu(x, W_gate, W_up, W_down):
        return (F.silu(x @ W_gate) * (x @ W_up)) @ W_down


# ---------------------------------------------------------------- ch09.attention


@right("ch09.attention")
def fused(x, W_q, W_k, W_v, W_o, n_heads, n_kv_heads):
    B, T, d_model = x.shape
    q, k, v = (
        torch.matmul(x, W).reshape(B, T, n, -1).permute(0, 2, 1, 3)
        for W, n in zip((W_q, W_k, W_v), (n_heads, n_kv_heads, n_kv_heads))
    )
    where = torch.arange(T)
    out = F.scaled_dot_product_attention(rope_half(q, where), rope_half(k, where), v, is_causal=True, enable_gqa=True)
    return out.permute(0, 2, 1, 3).reshape(B, T, d_model).matmul(W_o)


@right("ch09.attention")
def head_by_head(x, W_q, W_k, W_v, W_o, n_heads, n_kv_heads):
    B, T, d_model = x.shape
    d = d_model // n_heads
    M = torch.full((T, T), -math.inf, dtype=x.dtype).triu(1)
    out = 0
    for h in range(n_heads):
        g = h * n_kv_heads // n_heads
        q = rope_half(x @ W_q[:, h * d : (h + 1) * d], torch.arange(T))
        k = rope_half(x @ W_k[:, g * d : (g + 1) * d], torch.arange(T))
        weights = (q @ k.mT * d**-0.5 + M).softmax(-1)
        out = out + weights @ (x @ W_v[:, g * d : (g + 1) * d]) @ W_o[h * d : (h + 1) * d]
    return out


@right("ch09.attention")
def grouped_einsum(x, W_q, W_k, W_v, W_o, n_heads, n_kv_heads):
    B, T, d_model = x.shape
    d = d_model // n_heads
    where = torch.arange(T)
    q = rope_half((x @ W_q).unflatten(-1, (n_kv_heads, n_heads // n_kv_heads, d)).permute(0, 2, 3, 1, 4), where)
    k = rope_half((x @ W_k).unflatten(-1, (n_kv_heads, d)).permute(0, 2, 1, 3), where)
    v = (x @ W_v).unflatten(-1, (n_kv_heads, d))
    scores = torch.einsum("bgrtd,bgsd->bgrts", q, k) / d**0.5
    weights = torch.where(where[:, None] >= where, scores, torch.tensor(-math.inf, dtype=x.dtype)).softmax(-1)
    return torch.einsum("bgrts,bsgd->btgrd", weights, v).reshape(B, T, d_model) @ W_o


@wrong(
    "ch09.attention",
    "You repeated the key heads in turn. A group is made of neighbouring query heads.",
    see="heads-that-share-keys",
)
def repeats_in_turn(x, W_q, W_k, W_v, W_o, n_heads, n_kv_heads):
    B, T, d_model = x.shape
    q, k, v = ((x @ W).unflatten(-1, (n, -1)).transpose(1, 2) for W, n in ((W_q, n_heads), (W_k, n_kv_heads), (W_v, n_kv_heads)))
    q, k = rope_half(q, torch.arange(T)), rope_half(k, torch.arange(T))
    k, v = (each.repeat(1, n_heads // n_kv_heads, 1, 1) for each in (k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2) @ W_o


@wrong("ch09.attention", "There is no mask: every token sees the future.", see="the-mask")
def no_mask(x, W_q, W_k, W_v, W_o, n_heads, n_kv_heads):
    B, T, d_model = x.shape
    q, k, v = ((x @ W).unflatten(-1, (n, -1)).transpose(1, 2) for W, n in ((W_q, n_heads), (W_k, n_kv_heads), (W_v, n_kv_heads)))
    q, k = rope_half(q, torch.arange(T)), rope_half(k, torch.arange(T))
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=True).transpose(1, 2).flatten(2) @ W_o


@wrong("ch09.attention", "Scaled by the root of d_model: each head has width d_head.", see="heads-that-share-keys")
def scaled_by_the_model(x, W_q, W_k, W_v, W_o, n_heads, n_kv_heads):
    B, T, d_model = x.shape
    q, k, v = ((x @ W).unflatten(-1, (n, -1)).transpose(1, 2) for W, n in ((W_q, n_heads), (W_k, n_kv_heads), (W_v, n_kv_heads)))
    q, k = rope_half(q, torch.arange(T)), rope_half(k, torch.arange(T))
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True, scale=d_model**-0.5)
    return mixed.transpose(1, 2).flatten(2) @ W_o


@wrong(
    "ch09.attention",
    "The heads are split by one view, which mixes tokens with heads. Split first, then turn.",
    see="heads-that-share-keys",
)
def view_without_a_turn(x, W_q, W_k, W_v, W_o, n_heads, n_kv_heads):
    B, T, d_model = x.shape
    q, k, v = ((x @ W).reshape(B, n, T, -1) for W, n in ((W_q, n_heads), (W_k, n_kv_heads), (W_v, n_kv_heads)))
    q, k = rope_half(q, torch.arange(T)), rope_half(k, torch.arange(T))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(1, 2).flatten(2) @ W_o


@wrong(
    "ch09.attention",
    "You flattened the heads without turning them back: tokens and heads change places.",
    see="heads-that-share-keys",
)
def never_turns_back(x, W_q, W_k, W_v, W_o, n_heads, n_kv_heads):
    B, T, d_model = x.shape
    q, k, v = ((x @ W).unflatten(-1, (n, -1)).transpose(1, 2) for W, n in ((W_q, n_heads), (W_k, n_kv_heads), (W_v, n_kv_heads)))
    q, k = rope_half(q, torch.arange(T)), rope_half(k, torch.arange(T))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).reshape(B, T, d_model) @ W_o


@wrong("ch09.attention", "Queries and keys were not turned: your attention knows no positions.", see="heads-that-share-keys")
def no_rope(x, W_q, W_k, W_v, W_o, n_heads, n_kv_heads):
    q, k, v = ((x @ W).unflatten(-1, (n, -1)).transpose(1, 2) for W, n in ((W_q, n_heads), (W_k, n_kv_heads), (W_v, n_kv_heads)))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(1, 2).flatten(2) @ W_o


@wrong("ch09.attention", "The values were turned too. RoPE is for queries and keys.", see="heads-that-share-keys")
def turns_the_values(x, W_q, W_k, W_v, W_o, n_heads, n_kv_heads):
    B, T, d_model = x.shape
    q, k, v = ((x @ W).unflatten(-1, (n, -1)).transpose(1, 2) for W, n in ((W_q, n_heads), (W_k, n_kv_heads), (W_v, n_kv_heads)))
    q, k, v = (rope_half(each, torch.arange(T)) for each in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(1, 2).flatten(2) @ W_o


@wrong(
    "ch09.attention",
    "You turned the whole width at once. Each head is turned by itself, with the clocks of its own width.",
    see="heads-that-share-keys",
)
def rope_before_the_split(x, W_q, W_k, W_v, W_o, n_heads, n_kv_heads):
    B, T, d_model = x.shape
    q, k = rope_half(x @ W_q, torch.arange(T)), rope_half(x @ W_k, torch.arange(T))
    q, k, v = (each.unflatten(-1, (n, -1)).transpose(1, 2) for each, n in ((q, n_heads), (k, n_kv_heads), (x @ W_v, n_kv_heads)))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(1, 2).flatten(2) @ W_o


@wrong(
    "ch09.attention",
    "The mask comes after the softmax: each row was divided by a sum over the future as well.",
    see="what-goes-wrong-in-practice",
)
def masks_after_the_softmax(x, W_q, W_k, W_v, W_o, n_heads, n_kv_heads):
    B, T, d_model = x.shape
    q, k, v = ((x @ W).unflatten(-1, (n, -1)).transpose(1, 2) for W, n in ((W_q, n_heads), (W_k, n_kv_heads), (W_v, n_kv_heads)))
    q, k = rope_half(q, torch.arange(T)), rope_half(k, torch.arange(T))
    k, v = (each.repeat_interleave(n_heads // n_kv_heads, dim=1) for each in (k, v))
    weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1).tril()
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o


@wrong("ch09.attention", "Your mask hides the token from itself, and the first row has nothing to see.", see="the-mask")
def hides_the_diagonal(x, W_q, W_k, W_v, W_o, n_heads, n_kv_heads):
    B, T, d_model = x.shape
    q, k, v = ((x @ W).unflatten(-1, (n, -1)).transpose(1, 2) for W, n in ((W_q, n_heads), (W_k, n_kv_heads), (W_v, n_kv_heads)))
    q, k = rope_half(q, torch.arange(T)), rope_half(k, torch.arange(T))
    k, v = (each.repeat_interleave(n_heads // n_kv_heads, dim=1) for each in (k, v))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    weights = scores.masked_fill(torch.ones(T, T, dtype=torch.bool).triu(0), -math.inf).softmax(-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o


@wrong(
    "ch09.attention",
    "Your mask hides the token from itself. The diagonal is not the future: each token may see itself.",
    see="the-mask",
)
def hides_the_diagonal_by_a_number(x, W_q, W_k, W_v, W_o, n_heads, n_kv_heads):
    B, T, d_model = x.shape
    q, k, v = ((x @ W).unflatten(-1, (n, -1)).transpose(1, 2) for W, n in ((W_q, n_heads), (W_k, n_kv_heads), (W_v, n_kv_heads)))
    q, k = rope_half(q, torch.arange(T)), rope_half(k, torch.arange(T))
    k, v = (each.repeat_interleave(n_heads // n_kv_heads, dim=1) for each in (k, v))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    weights = scores.masked_fill(torch.ones(T, T, dtype=torch.bool).triu(0), -1e9).softmax(-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o


@wrong(
    "ch09.attention",
    "Your softmax runs over the queries. The weights that sum to 1 are those of one query over the keys, the last axis.",
    see="the-mask",
)
def softmax_over_the_queries(x, W_q, W_k, W_v, W_o, n_heads, n_kv_heads):
    B, T, d_model = x.shape
    q, k, v = ((x @ W).unflatten(-1, (n, -1)).transpose(1, 2) for W, n in ((W_q, n_heads), (W_k, n_kv_heads), (W_v, n_kv_heads)))
    q, k = rope_half(q, torch.arange(T)), rope_half(k, torch.arange(T))
    k, v = (each.repeat_interleave(n_heads // n_kv_heads, dim=1) for each in (k, v))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    weights = scores.masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), -math.inf).softmax(-2)
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o


@wrong("ch09.attention", "Your mask has a fixed size, and longer texts do not fit. Make it from T.", see="the-mask")
def mask_of_sixteen(x, W_q, W_k, W_v, W_o, n_heads, n_kv_heads):
    B, T, d_model = x.shape
    q, k, v = ((x @ W).unflatten(-1, (n, -1)).transpose(1, 2) for W, n in ((W_q, n_heads), (W_k, n_kv_heads), (W_v, n_kv_heads)))
    q, k = rope_half(q, torch.arange(T)), rope_half(k, torch.arange(T))
    k, v = (each.repeat_interleave(n_heads // n_kv_heads, dim=1) for each in (k, v))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    weights = scores.masked_fill(torch.ones(16, 16, dtype=torch.bool).triu(1)[:T, :T], -math.inf).softmax(-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o


@wrong(
    "ch09.attention",
    "You take a score of 0 for a hidden one. Zero is a score like any other: mask by position, not by value.",
    see="the-mask",
)
def hides_what_is_zero(x, W_q, W_k, W_v, W_o, n_heads, n_kv_heads):
    B, T, d_model = x.shape
    q, k, v = ((x @ W).unflatten(-1, (n, -1)).transpose(1, 2) for W, n in ((W_q, n_heads), (W_k, n_kv_heads), (W_v, n_kv_heads)))
    q, k = rope_half(q, torch.arange(T)), rope_half(k, torch.arange(T))
    k, v = (each.repeat_interleave(n_heads // n_kv_heads, dim=1) for each in (k, v))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    scores = scores.tril()
    weights = scores.masked_fill(scores == 0, -math.inf).softmax(-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o


@wrong(
    "ch09.attention", "You hide with −100, but a score can be lower than that. −∞ hides whatever the scores are.", see="the-mask"
)
def hides_by_minus_100(x, W_q, W_k, W_v, W_o, n_heads, n_kv_heads):
    B, T, d_model = x.shape
    q, k, v = ((x @ W).unflatten(-1, (n, -1)).transpose(1, 2) for W, n in ((W_q, n_heads), (W_k, n_kv_heads), (W_v, n_kv_heads)))
    q, k = rope_half(q, torch.arange(T)), rope_half(k, torch.arange(T))
    k, v = (each.repeat_interleave(n_heads // n_kv_heads, dim=1) for each in (k, v))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    weights = scores.masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), -100.0).softmax(-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o


@wrong(
    "ch09.attention", "You hide with −10⁹, but a score can be lower than that. −∞ hides whatever the scores are.", see="the-mask"
)
def hides_by_a_billion(x, W_q, W_k, W_v, W_o, n_heads, n_kv_heads):
    B, T, d_model = x.shape
    q, k, v = ((x @ W).unflatten(-1, (n, -1)).transpose(1, 2) for W, n in ((W_q, n_heads), (W_k, n_kv_heads), (W_v, n_kv_heads)))
    q, k = rope_half(q, torch.arange(T)), rope_half(k, torch.arange(T))
    k, v = (each.repeat_interleave(n_heads // n_kv_heads, dim=1) for each in (k, v))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    weights = scores.masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), -1e9).softmax(-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o


@wrong("ch09.attention", "The output projection is missing.", see="heads-that-share-keys")
def forgets_the_output_projection(x, W_q, W_k, W_v, W_o, n_heads, n_kv_heads):
    B, T, d_model = x.shape
    q, k, v = ((x @ W).unflatten(-1, (n, -1)).transpose(1, 2) for W, n in ((W_q, n_heads), (W_k, n_kv_heads), (W_v, n_kv_heads)))
    q, k = rope_half(q, torch.arange(T)), rope_half(k, torch.arange(T))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(1, 2).flatten(2)


@wrong(
    "ch09.attention",
    "You hide by adding a large negative number, but scores can differ by more than that. −∞ hides whatever the scores are.",
    see="the-mask",
)
def hides_by_adding(x, W_q, W_k, W_v, W_o, n_heads, n_kv_heads):
    B, T, d_model = x.shape
    positions, d_head, group = torch.arange(T), d_model // n_heads, n_heads // n_kv_heads
    q = rope_half((x @ W_q).view(B, T, n_heads, d_head).transpose(1, 2), positions)  # noqa: F821
    k = rope_half((x @ W_k).view(B, T, n_kv_heads, d_head).transpose(1, 2), positions)  # noqa: F821
    v = (x @ W_v).view(B, T, n_kv_heads, d_head).transpose(1, 2)
    k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
    scores = q @ k.mT / math.sqrt(d_head) + torch.full((T, T), -1e5, dtype=x.dtype).triu(1)
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2) @ W_o


# ---------------------------------------------------------------- ch09.count

right("ch09.count", cell('V, L, d = sympy.symbols("V L d", positive=True)\nparameters = d * (V + 1 + L * (29 * d / 2 + 2))'))
right("ch09.count", cell('V, L, d = sympy.symbols("V L d")\nparameters = V * d + L * (14.5 * d**2 + 2 * d) + d'))

_SYMBOLS = 'V, L, d = sympy.symbols("V L d", positive=True)\n'
wrong(
    "ch09.count",
    cell(_SYMBOLS + "parameters = V * d + L * (4 * d**2 + 12 * d**2 + 2 * d) + d"),
    "You counted 4 d² for attention. Keys and values have fewer heads here.",
    see="count-it",
)
wrong(
    "ch09.count",
    cell(_SYMBOLS + "parameters = 2 * V * d + L * (29 * d**2 / 2 + 2 * d) + d"),
    "You counted the table twice, but the ends are tied.",
    see="count-it",
)
wrong(
    "ch09.count",
    cell(_SYMBOLS + "parameters = V * d + L * (2 * d**2 + d**2 / 2 + 8 * d**2 + 2 * d) + d"),
    "SwiGLU has three matrices, not two.",
    see="count-it",
)
wrong(
    "ch09.count",
    cell(_SYMBOLS + "parameters = V * d + L * (29 * d**2 / 2 + 2 * d)"),
    "The last norm is missing: the one after the blocks.",
    see="count-it",
)
wrong(
    "ch09.count",
    cell(_SYMBOLS + "parameters = V * d + L * 29 * d**2 / 2"),
    "The norms have parameters too.",
    see="count-it",
)
wrong(
    "ch09.count",
    cell(_SYMBOLS + "parameters = V * d + L * (d**2 + d**2 / 2 + 12 * d**2 + 2 * d) + d"),
    "The output projection of attention is missing.",
    see="count-it",
)

wrong(
    "ch09.count",
    cell('parameters = "V*d + L*(14.5*d**2 + 2*d) + d"'),
    "That is a text. Write the expression itself, without quotes.",
    see="count-it",
)

# ---------------------------------------------------------------- ch09.gpt


@right("ch09.gpt")
def without_a_block_function(ids, p, n_heads, n_kv_heads):
    x = F.embedding(ids, p["E"])
    for b in p["blocks"]:
        x = x + attention(rms_norm(x, b["norm_1"], 1e-5), b["W_q"], b["W_k"], b["W_v"], b["W_o"], n_heads, n_kv_heads)
        x = x + swiglu(rms_norm(x, b["norm_2"], 1e-5), b["W_gate"], b["W_up"], b["W_down"])
    head = p["W_head"] if "W_head" in p else p["E"].mT
    return torch.matmul(rms_norm(x, p["norm"], 1e-5), head)


@right("ch09.gpt")
def from_torchs_parts(ids, p, n_heads, n_kv_heads):
    B, T = ids.shape
    d = p["E"].shape[1]
    where = torch.arange(T)

    def norm(x, weight):
        return F.rms_norm(x, (d,), weight, 1e-5)

    x = p["E"][ids]
    for b in p["blocks"]:
        h = norm(x, b["norm_1"])
        q, k, v = (
            (h @ b[name]).view(B, T, n, -1).transpose(1, 2)
            for name, n in (("W_q", n_heads), ("W_k", n_kv_heads), ("W_v", n_kv_heads))
        )
        mixed = F.scaled_dot_product_attention(rope_half(q, where), rope_half(k, where), v, is_causal=True, enable_gqa=True)
        x = x + mixed.transpose(1, 2).reshape(B, T, d) @ b["W_o"]
        h = norm(x, b["norm_2"])
        x = x + (F.silu(h @ b["W_gate"]) * (h @ b["W_up"])) @ b["W_down"]
    return norm(x, p["norm"]) @ (p["E"].T if "W_head" not in p else p["W_head"])


@wrong(
    "ch09.gpt",
    "The ε of your norms is smaller than the 10⁻⁵ of the task, or missing: where entries are small, that shows.",
    see="two-small-parts",
)
def smaller_eps(ids, p, n_heads, n_kv_heads):
    x = p["E"][ids]
    for b in p["blocks"]:
        x = x + attention(rms_norm(x, b["norm_1"], 1e-8), b["W_q"], b["W_k"], b["W_v"], b["W_o"], n_heads, n_kv_heads)
        x = x + swiglu(rms_norm(x, b["norm_2"], 1e-8), b["W_gate"], b["W_up"], b["W_down"])
    return rms_norm(x, p["norm"], 1e-8) @ p.get("W_head", p["E"].T)


@wrong("ch09.gpt", "There is no norm after the last block.", see="two-lines")
def no_final_norm(ids, p, n_heads, n_kv_heads):
    x = p["E"][ids]
    for b in p["blocks"]:
        x = x + attention(rms_norm(x, b["norm_1"], 1e-5), b["W_q"], b["W_k"], b["W_v"], b["W_o"], n_heads, n_kv_heads)
        x = x + swiglu(rms_norm(x, b["norm_2"], 1e-5), b["W_gate"], b["W_up"], b["W_down"])
    return x @ p.get("W_head", p["E"].T)


@wrong("ch09.gpt", "Your head is always the embedding, even where the model has one of its own.", see="count-it")
def always_tied(ids, p, n_heads, n_kv_heads):
    x = p["E"][ids]
    for b in p["blocks"]:
        x = x + attention(rms_norm(x, b["norm_1"], 1e-5), b["W_q"], b["W_k"], b["W_v"], b["W_o"], n_heads, n_kv_heads)
        x = x + swiglu(rms_norm(x, b["norm_2"], 1e-5), b["W_gate"], b["W_up"], b["W_down"])
    return rms_norm(x, p["norm"], 1e-5) @ p["E"].T


@wrong("ch09.gpt", 'Your model has no tied head: without "W_head" the embedding serves, transposed.', see="count-it")
def never_tied(ids, p, n_heads, n_kv_heads):
    if not p["blocks"]:
        return rms_norm(p["E"][ids], p["norm"], 1e-5) @ p["E"].T
    x = p["E"][ids]
    for b in p["blocks"]:
        x = x + attention(rms_norm(x, b["norm_1"], 1e-5), b["W_q"], b["W_k"], b["W_v"], b["W_o"], n_heads, n_kv_heads)
        x = x + swiglu(rms_norm(x, b["norm_2"], 1e-5), b["W_gate"], b["W_up"], b["W_down"])
    return rms_norm(x, p["norm"], 1e-5) @ p["W_head"]


@wrong("ch09.gpt", "You use only the first block: the others have tensors of their own.", see="the-whole-model")
def first_block_for_all(ids, p, n_heads, n_kv_heads):
    x = p["E"][ids]
    for _ in p["blocks"]:
        b = p["blocks"][0]
        x = x + attention(rms_norm(x, b["norm_1"], 1e-5), b["W_q"], b["W_k"], b["W_v"], b["W_o"], n_heads, n_kv_heads)
        x = x + swiglu(rms_norm(x, b["norm_2"], 1e-5), b["W_gate"], b["W_up"], b["W_down"])
    return rms_norm(x, p["norm"], 1e-5) @ p.get("W_head", p["E"].T)


@wrong(
    "ch09.gpt",
    "Every block starts from the embeddings again. The stream goes from one block to the next.",
    see="from-text-to-logits",
)
def every_block_reads_the_embedding(ids, p, n_heads, n_kv_heads):
    x = p["E"][ids]
    start = x
    for b in p["blocks"]:
        x = start + attention(rms_norm(start, b["norm_1"], 1e-5), b["W_q"], b["W_k"], b["W_v"], b["W_o"], n_heads, n_kv_heads)
        x = x + swiglu(rms_norm(x, b["norm_2"], 1e-5), b["W_gate"], b["W_up"], b["W_down"])
    return rms_norm(x, p["norm"], 1e-5) @ p.get("W_head", p["E"].T)


@wrong("ch09.gpt", "Gate and up are swapped.", see="two-small-parts")
def exchanges_gate_and_up(ids, p, n_heads, n_kv_heads):
    x = p["E"][ids]
    for b in p["blocks"]:
        x = x + attention(rms_norm(x, b["norm_1"], 1e-5), b["W_q"], b["W_k"], b["W_v"], b["W_o"], n_heads, n_kv_heads)
        x = x + swiglu(rms_norm(x, b["norm_2"], 1e-5), b["W_up"], b["W_gate"], b["W_down"])
    return rms_norm(x, p["norm"], 1e-5) @ p.get("W_head", p["E"].T)


@wrong("ch09.gpt", "Keys and values are swapped.", see="heads-that-share-keys")
def exchanges_keys_and_values(ids, p, n_heads, n_kv_heads):
    x = p["E"][ids]
    for b in p["blocks"]:
        x = x + attention(rms_norm(x, b["norm_1"], 1e-5), b["W_q"], b["W_v"], b["W_k"], b["W_o"], n_heads, n_kv_heads)
        x = x + swiglu(rms_norm(x, b["norm_2"], 1e-5), b["W_gate"], b["W_up"], b["W_down"])
    return rms_norm(x, p["norm"], 1e-5) @ p.get("W_head", p["E"].T)


@wrong("ch09.gpt", "You returned probabilities. The task asks for logits.", see="from-text-to-logits")
def returns_probabilities(ids, p, n_heads, n_kv_heads):
    x = p["E"][ids]
    for b in p["blocks"]:
        x = x + attention(rms_norm(x, b["norm_1"], 1e-5), b["W_q"], b["W_k"], b["W_v"], b["W_o"], n_heads, n_kv_heads)
        x = x + swiglu(rms_norm(x, b["norm_2"], 1e-5), b["W_gate"], b["W_up"], b["W_down"])
    return (rms_norm(x, p["norm"], 1e-5) @ p.get("W_head", p["E"].T)).softmax(-1)


@wrong("ch09.gpt", "Your model is post-norm: it norms the stream after each addition.", see="two-lines")
def post_norm_model(ids, p, n_heads, n_kv_heads):
    x = p["E"][ids]
    for b in p["blocks"]:
        x = rms_norm(x + attention(x, b["W_q"], b["W_k"], b["W_v"], b["W_o"], n_heads, n_kv_heads), b["norm_1"], 1e-5)
        x = rms_norm(x + swiglu(x, b["W_gate"], b["W_up"], b["W_down"]), b["norm_2"], 1e-5)
    return rms_norm(x, p["norm"], 1e-5) @ p.get("W_head", p["E"].T)


# ---------------------------------------------------------------- ch09.depth

right("ch09.depth", "both copy")
right("ch09.depth", "neither copies")
right("ch09.depth", "Only two layers copy")

wrong("ch09.depth", "two layers", "Set one of the three sentences, word for word.", see="how-many-layers-does-copying-need")
wrong(
    "ch09.depth",
    "both",
    "Write the whole text of your choice: which layers, and what they do.",
    see="how-many-layers-does-copying-need",
)

# ---------------------------------------------------------------- changes of the solutions that make no difference

equivalent("ch09.leak", "`for t in range(T):`", "nothing comes after the last position, so it never leaks")
equivalent("ch09.leak", "`for t in range(T - 0):`", "nothing comes after the last position, so it never leaks")
equivalent("ch09.leak", "`for _ in range(19):`", "the number of tries is free, if there are many")
equivalent("ch09.leak", "`for _ in range(21):`", "the number of tries is free, if there are many")
equivalent("ch09.leak", "`for _ in range(40):`", "the number of tries is free, if there are many")
equivalent(
    "ch09.leak", "`if (model(ids)[t] - model(other)[t]).abs().max() > 0.0002:`", "any bound between rounding and a leak will do"
)
equivalent(
    "ch09.leak",
    "`if (model(ids)[t] - model(other)[t]).abs().max() >= 0.0001:`",
    "no difference is as large as that to the last digit",
)
equivalent(
    "ch09.leak",
    "`if (model(ids)[t] - model(other)[t]).max() > 0.0001:`",
    "of two texts drawn alike, each difference comes with either sign in twenty tries",
)
equivalent("ch09.attention", "`…transpose(1, -2)…`", "of four axes, axis -2 is axis 2")
equivalent("ch09.count", "`V, L, d = sympy.symbols('V L d'…)`", "a letter is known by its name")
