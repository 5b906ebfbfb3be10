"""Whisper: an encoder over frames of sound behind two convolutions, and a decoder of text."""

from __future__ import annotations

from assay.blocks import Decoder, Embedding, Final, Head, Norm
from assay.blocks.encoder_decoder import EncoderDecoder, Frames
from assay.blocks.encoders import Encoder
from assay.sources.config import Config
from assay.sources.families.bart import BARE, BART, GENERATES, crossing, defaults, half, layer
from assay.sources.families.common import family

STRIDE = 2  # of the second convolution
WHISPER = {
    **BART,
    "encoder.Wconv1": "model.encoder.conv1.weight[i j q]",
    "encoder.Wconv2": "model.encoder.conv2.weight[d i q]",
    **dict.fromkeys(("E", "decoder.E"), "model.decoder.embed_tokens.weight"),
    "Wout": "proj_out.weight",
}
# augmentation while training, and what other classes of the family read
HARMLESS = (
    *("is_encoder_decoder", "scale_embedding", "use_weighted_layer_sum", "classifier_proj_size", "apply_spec_augment"),
    *("mask_time_prob", "mask_time_length", "mask_time_min_masks", "mask_feature_prob", "mask_feature_length"),
    *("mask_feature_min_masks", "median_filter_width", "alignment_heads", "lang_ids", "is_multilingual", "language"),
    *("task", "no_timestamps_token_id", "task_to_id", "lang_to_id", "return_timestamps", "num_frames"),
)


@family("whisper", cls="WhisperForConditionalGeneration", names=WHISPER, harmless=HARMLESS, classes=(GENERATES, BARE))
def whisper(c: Config) -> EncoderDecoder:
    """Radford et al. 2022, arXiv:2212.04356. The source is counted in frames, two for each position."""
    c.rename(num_key_value_heads="encoder_attention_heads")
    defaults(c, encoder_layers=4, decoder_layers=4, encoder_ffn_dim=1536, decoder_ffn_dim=1536, d_model=384)
    c.absent(encoder_attention_heads=6, decoder_attention_heads=6, activation_function="gelu", vocab_size=51865)
    c.absent(num_mel_bins=80, max_source_positions=1500, max_target_positions=448)
    rows, width, norm = c.size("vocab_size"), c.size("d_model"), Norm("layernorm", "gain+bias", 1e-5)
    heard, written = c.size("max_source_positions"), c.size("max_target_positions")
    read, write = half(c, "encoder", "qvo"), half(c, "decoder", "qvo")
    reading = layer((read.attention, read.mlp), norm, pre=True)
    writing = layer((write.attention, crossing(write.attention), write.mlp), norm, pre=True)
    tied = c.flag("tie_word_embeddings", True)
    return EncoderDecoder(
        Encoder(
            Frames(c.size("num_mel_bins"), width, positions=heard),
            (reading,) * read.layers,
            Final(width, norm=norm),
            limit=heard,
        ),
        Decoder(
            Embedding(rows, width, positions=written),
            (writing,) * write.layers,
            Head(rows, width, tied, norm=norm),
            limit=written,
        ),
        source_tokens=STRIDE * heard,
        source_stride=STRIDE,
    )
