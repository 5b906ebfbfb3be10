"""Relatives of BERT: norms before the sub-layers, more tables, other attention over the same projections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.blocks import Decoder, Layer, Rope
from assay.blocks.attention import Attention
from assay.blocks.encoders import Encoder, Pooler, Tables, Together
from assay.blocks.kernels import Expected, Nystrom, Turned
from assay.records import replace
from assay.sources.config import Config
from assay.sources.families.common import BASE, MASKED, QUESTION, SEQUENCE, TOKEN, Class, pre_norm
from assay.sources.families.encoders import (
    BERT_HEAD,
    LAYER,
    ROBERTA_HEAD,
    bert_classes,
    bert_like,
    dense_attention,
    each_label,
    encoder,
    masked,
    norm_of,
    nothing,
    own_classifier,
    roberta_classes,
    stored,
    two_matrices,
)

_LARGE: dict[str, Any] = {
    "hidden_size": 1024,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "intermediate_size": 4096,
}


def moved(**norms: str) -> dict[str, str]:
    """BERT's layer with its norms elsewhere."""
    kept = {weight: path for weight, path in LAYER.items() if weight not in ("Gt0", "Gt1")}
    return kept | {weight: f"{path}.weight" for weight, path in norms.items()}


def _pre(c: Config, made: Encoder, normed: bool) -> Encoder:
    """The same with norms before the sub-layers and a last one; the embedding may have none."""
    norm = norm_of(c)
    layer = pre_norm(dense_attention(c, made.width), two_matrices(c), norm)
    embedding = made.embedding if normed else replace(made.embedding, norm=None)
    return replace(made, embedding=embedding, layers=(layer,) * made.depth, final=norm)


def with_tables(
    made: Encoder, narrow: int | None = None, angles: tuple[int, int] | None = None, **rows: Any
) -> Encoder:
    """The same with these tables beside the words; `x_again` reads table x once more."""
    words = made.embedding
    found = tuple((name.removesuffix("_again"), count) for name, count in rows.items())
    embedding = Tables(
        words.vocab,
        words.width,
        narrow,
        offset=words.offset,
        norm=words.norm,
        tables=found,
        bias=narrow is not None,
        angles=angles,
    )
    return replace(made, embedding=embedding)


@encoder(
    "xlm-roberta-xl",
    stem="XLMRobertaXL",
    names=stored("roberta.", moved(Ga="attention.self_attn_layer_norm", Gm="LayerNorm"))
    | {"Gf": "roberta.encoder.LayerNorm.weight"},
    classes=roberta_classes("roberta.", ROBERTA_HEAD),
)
def xlm_roberta_xl(c: Config) -> Encoder:
    """Goyal et al. 2021."""
    made = bert_like(
        c,
        padded=True,
        vocab_size=250880,
        hidden_size=2560,
        num_hidden_layers=36,
        num_attention_heads=32,
        intermediate_size=10240,
        max_position_embeddings=514,
        type_vocab_size=1,
        layer_norm_eps=1e-5,
        pad_token_id=1,
    )
    return _pre(c, made, normed=False)


@encoder(
    "roberta-prelayernorm",
    stem="RobertaPreLayerNorm",
    names=stored("roberta_prelayernorm.", moved(Ga="attention.LayerNorm", Gm="intermediate.LayerNorm"))
    | {"Gf": "roberta_prelayernorm.LayerNorm.weight"},
    classes=roberta_classes("roberta_prelayernorm.", ROBERTA_HEAD),
)
def roberta_prelayernorm(c: Config) -> Encoder:
    """Ott et al. 2019 (fairseq)."""
    return _pre(c, bert_like(c, padded=True, vocab_size=50265, pad_token_id=1), normed=True)


@encoder(
    "megatron-bert",
    stem="MegatronBert",
    names=stored("bert.", moved(Ga="attention.ln", Gm="ln")) | {"Gf": "bert.encoder.ln.weight"},
    classes=bert_classes("bert.", BERT_HEAD),
)
def megatron_bert(c: Config) -> Encoder:
    """Shoeybi et al. 2019."""
    return _pre(c, bert_like(c, vocab_size=29056, **_LARGE), normed=False)


@encoder(
    "bert-generation",
    stem="BertGeneration",
    names=stored(""),
    classes=(Class(BASE, "Encoder", nothing),),
)
def bert_generation(c: Config) -> Encoder:
    """Rothe et al. 2020, the encoder: no token types."""
    made = bert_like(c, vocab_size=50358, **_LARGE)
    return with_tables(made, position=made.limit or 0)


@encoder(
    "ernie",
    stem="Ernie",
    names=stored("ernie.") | {"E_task": "ernie.embeddings.task_type_embeddings.weight"},
    classes=bert_classes("ernie.", BERT_HEAD),
)
def ernie(c: Config) -> Encoder:
    """Sun et al. 2019: a table of tasks, where asked for."""
    made = bert_like(c)
    tasks: dict[str, Any] = {"task": c.size("task_type_vocab_size", 3)} if c.flag("use_task_id", False) else {}
    c.skip("task_type_vocab_size")
    return with_tables(made, position=made.limit or 0, type=c.size("type_vocab_size"), **tasks)


def pooled_masked(c: Config, made: Decoder) -> Together:
    """The pooler, which the implementation always has, and the masked-language head."""
    return Together((Pooler(made.width), masked(c, made)))


def always_pooled(prefix: str, predictions: Mapping[str, str], path: str = "pooler.dense") -> tuple[Class, ...]:
    """BERT's classes where every one has the pooler."""
    pool = {"Wpool": f"{prefix}{path}.weight"}

    def each(c: Config, made: Decoder) -> Together:
        return Together((Pooler(made.width), each_label(c, made)))

    found = []
    for one in bert_classes(prefix, predictions):
        if one.role in (MASKED, TOKEN, QUESTION):
            one = replace(one, end=pooled_masked if one.role == MASKED else each, names={**one.names, **pool})
        found.append(replace(one, names={**one.names, **pool}))
    return tuple(found)


_PLACES = {f"E_{axis}": f"layoutlm.embeddings.{axis}_position_embeddings.weight" for axis in "xyhw"}


@encoder(
    "layoutlm",
    stem="LayoutLM",
    names=stored("layoutlm.") | _PLACES,
    classes=tuple(
        one for one in always_pooled("layoutlm.", BERT_HEAD) if one.role in (MASKED, BASE, SEQUENCE, TOKEN, QUESTION)
    ),
)
def layoutlm(c: Config) -> Encoder:
    """Xu et al. 2019: a word's box on its page: left, upper, right, lower, height and width."""
    made = bert_like(c)
    places = c.size("max_2d_position_embeddings", 1024)
    box: dict[str, Any] = {"x": places, "y": places, "x_again": places, "y_again": places, "h": places, "w": places}
    return with_tables(made, position=made.limit or 0, **box, type=c.size("type_vocab_size"))


_TAPAS = {f"E_type{i}": f"tapas.embeddings.token_type_embeddings_{i}.weight" for i in range(7)}


@encoder(
    "tapas",
    stem="Tapas",
    names=stored("tapas.") | _TAPAS,
    classes=tuple(one for one in bert_classes("tapas.", BERT_HEAD) if one.role in (MASKED, BASE, SEQUENCE)),
    harmless=(
        *("positive_label_weight", "num_aggregation_labels", "aggregation_loss_weight", "use_answer_as_supervision"),
        *("answer_loss_importance", "use_normalized_answer_loss", "huber_loss_delta", "aggregation_temperature"),
        *("use_gumbel_for_cells", "use_gumbel_for_aggregation", "average_approximation_function"),
        *("cell_selection_preference", "answer_loss_cutoff", "max_num_rows", "max_num_columns"),
        *("average_logits_per_cell", "select_one_column", "allow_empty_column_selection"),
        *("init_cell_selection_weights_to_zero", "reset_position_index_per_cell", "disable_per_token_loss"),
        *("aggregation_labels", "no_aggregation_label_index"),
    ),
)
def tapas(c: Config) -> Encoder:
    """Herzig et al. 2020: seven tables of a cell's place and rank; positions begin anew in each cell."""
    if isinstance(c.data.get("type_vocab_size"), list):  # as older files call the list
        c.rename(type_vocab_size="type_vocab_sizes")
        c.data = {key: value for key, value in c.data.items() if key != "type_vocab_size"}
    made = bert_like(c, max_position_embeddings=1024)
    rows = c.sequence("type_vocab_sizes", lambda v: type(v) is int and v > 0, "integers of at least 1", 7)
    types = {f"type{i}": count for i, count in enumerate(rows or (3, 256, 256, 2, 256, 256, 10))}
    return with_tables(made, position=made.limit or 0, **types)


def _projected(c: Config, made: Decoder) -> Pooler | None:
    """The first token, projected where asked for."""
    width = c.size("projection_dim", 0, least=0)
    return Pooler(made.width, width, dense=False) if width else None


@encoder(
    "dpr",
    stem="DPR",
    names=stored(""),
    classes=tuple(
        Class(role, suffix, _projected, {**stored(f"{path}.bert_model."), "Wscore": f"{path}.encode_proj.weight"})
        for role, suffix, path in (
            (BASE, "QuestionEncoder", "question_encoder"),
            ("context", "ContextEncoder", "ctx_encoder"),
        )
    ),
)
def dpr(c: Config) -> Encoder:
    """Karpukhin et al. 2020: BERT, of which the first token's last state is the answer."""
    return bert_like(c)


@encoder(
    "roformer",
    stem="RoFormer",
    names=stored("roformer.")
    | {"Ein": "roformer.embeddings_project.weight", "E_angle": "roformer.encoder.embed_positions.weight"},
    classes=own_classifier(BERT_HEAD),
)
def roformer(c: Config) -> Encoder:
    """Su et al. 2021: rotations, kept as a table; values too are rotated where asked for."""
    made = bert_like(c, vocab_size=50000, max_position_embeddings=1536)
    d = made.width
    kind = Turned if c.flag("rotary_value", False) else Attention
    attention = dense_attention(c, d, kind=kind, positions=Rope(style="adjacent"))
    if attention.head_width % 2:
        c.fail("num_attention_heads", "such that hidden_size / num_attention_heads is even, for rotations turn pairs")
    narrow = c.maybe("embedding_size") or d
    made = with_attention(made, attention)
    angles = (made.limit or 0, attention.head_width)
    return with_tables(made, None if narrow == d else narrow, angles, type=c.size("type_vocab_size"))


def with_attention(made: Encoder, attention: Attention) -> Encoder:
    """The same layers with another attention."""
    first, second = made.layers[0].steps
    branch = replace(first.branches[0], body=attention)
    return replace(made, layers=(Layer((replace(first, branches=(branch,)), second)),) * made.depth)


def _two_ahead(c: Config, made: Encoder) -> Encoder:
    """Two rows of the position table that no position uses."""
    made = replace(made, embedding=replace(made.embedding, offset=2))
    return with_tables(made, position=c.size("max_position_embeddings") + 2, type=c.size("type_vocab_size"))


@encoder("yoso", stem="Yoso", names=stored("yoso."), classes=own_classifier(BERT_HEAD), harmless=("lsh_backward",))
def yoso(c: Config) -> Encoder:
    """Zeng et al. 2021: the chance that a query and a key fall into one bucket in the softmax's place."""
    made = bert_like(c, vocab_size=50265, max_position_embeddings=4096, type_vocab_size=1)
    c.inert("use_expectation", True)
    c.inert("conv_window")
    c.skip("num_hash", "use_fast_hash")
    attention = dense_attention(c, made.width, kind=Expected, code=c.size("hash_code_len", 9))
    return _two_ahead(c, with_attention(made, attention))


@encoder(
    "nystromformer",
    stem="Nystromformer",
    names=stored("nystromformer.")
    | {"Wmix": "nystromformer.encoder.layer.{i}.attention.self.conv.weight[(g r) 1 K 1]"},
    classes=own_classifier(BERT_HEAD),
    harmless=("inv_coeff_init_option", "inv_init_coeff_option"),
)
def nystromformer(c: Config) -> Encoder:
    """Xiong et al. 2021: with as many landmarks as a segment has tokens, full attention; values convolved beside it."""
    made = bert_like(c, vocab_size=30000, hidden_act="gelu_new", max_position_embeddings=510, layer_norm_eps=1e-5)
    landmarks = c.size("num_landmarks", 64)
    c.inert("segment_means_seq_len", int(landmarks))
    kernel = c.size("conv_kernel_size", 65)
    if kernel % 2 == 0:
        c.fail("conv_kernel_size", "odd, so that each token has as many neighbours to either side")
    return _two_ahead(c, with_attention(made, dense_attention(c, made.width, kind=Nystrom, kernel=kernel)))
