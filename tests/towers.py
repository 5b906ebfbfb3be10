"""Sizes of the small configs of towers: of what sees, of an image, of the text model beside."""

from __future__ import annotations

SEES = "AutoModelForImageTextToText"

SMALL = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 40}
SEEN = {**SMALL, "image_size": 24, "patch_size": 8}

TEXT = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
TEXT |= {"num_key_value_heads": 2, "vocab_size": 90}
