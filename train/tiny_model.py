"""The embedded model: 0.36 million parameters, Qwen3's architecture, a byte-level tokenizer of 320 tokens.

It exists so that the whole of training and evaluation runs anywhere in a minute, with no download. It reads
any text (every byte is a token), but it has only ever been taught arithmetic on small numbers.

The tokenizer: 256 bytes, 9 markers, 4 role words, `\\boxed{`, and the numbers 10 to 59, so that every number
of a tiny problem is one token. Prompts have a compact chat template, since a byte-level model pays for every
character: `<|start|>user9+8-6+2<|end|><|start|>assistant`. The padding token is not the end token.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from veriward.train.tiny_problems import LARGEST_NUMBER

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

PAD_TOKEN = "<|pad|>"  # noqa: S105
END_TOKEN = "<|end|>"  # noqa: S105
START_TOKEN = "<|start|>"  # noqa: S105
CONTROL_TOKENS = (PAD_TOKEN, END_TOKEN, START_TOKEN)
"""Left out when a response is decoded with skip_special_tokens."""
TEXT_MARKERS = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")
"""One token each, but part of the text: special tokens would vanish from the decoded response."""
ROLES = ("system", "user", "assistant", "tool")
BOX = r"\boxed{"

CHAT_TEMPLATE = (
    "{%- for message in messages %}"
    "{%- if message.role not in ['system', 'user', 'assistant', 'tool'] %}"
    "{{- raise_exception('unknown role ' ~ message.role) }}"
    "{%- endif %}"
    "{{- '<|start|>' ~ message.role }}"
    "{%- if message.role == 'assistant' %}"
    "{%- generation %}{{- (message.content or '') ~ '<|end|>' }}{%- endgeneration %}"
    "{%- else %}"
    "{{- (message.content or '') ~ '<|end|>' }}"
    "{%- endif %}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|start|>assistant' }}{%- endif %}"
)
"""A prompt is a token-for-token prefix of the prompt with its answer. The generation block marks what an
assistant said, for trainers that ask for assistant-only loss."""

MAX_POSITIONS = 4096
"""Far beyond what it was taught, so that a long real question is read, not refused."""


def build_tokenizer() -> PreTrainedTokenizerFast:
    """The tokenizer of the tiny model: lossless on any text, one token for each of its 320 pieces."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = {character: index for index, character in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab=alphabet, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, normalized=False, special=True) for text in CONTROL_TOKENS])
    numbers = [str(number) for number in range(10, LARGEST_NUMBER + 1)]
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in (*TEXT_MARKERS, *ROLES, BOX, *numbers)])
    fast: PreTrainedTokenizerFast = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        pad_token=PAD_TOKEN,
        eos_token=END_TOKEN,
        padding_side="left",
        model_max_length=MAX_POSITIONS,
        clean_up_tokenization_spaces=False,
    )
    fast.chat_template = CHAT_TEMPLATE
    return fast


def build_model(tokenizer: PreTrainedTokenizerFast, *, seed: int) -> Qwen3ForCausalLM:
    """The untrained model on the CPU in float32; its weights depend on the seed alone.

    The random state of the process is left as it was.
    """
    import torch
    from transformers import GenerationConfig, Qwen3Config, Qwen3ForCausalLM

    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=96,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=24,
        intermediate_size=288,
        max_position_embeddings=MAX_POSITIONS,
        rope_parameters={"rope_type": "default", "rope_theta": 1000.0},
        tie_word_embeddings=True,
        initializer_range=0.06,  # at the usual 0.02 a model this narrow learns two to three times slower
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        dtype="float32",
    )
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.manual_seed(seed)
        model = Qwen3ForCausalLM(config)
    model.generation_config = GenerationConfig(  # type: ignore[no-untyped-call]
        eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id, max_new_tokens=64
    )
    model.eval()  # type: ignore[no-untyped-call]
    return model


def write_model(folder: str | Path, *, seed: int) -> None:
    """Save the untrained model and its tokenizer where AutoModelForCausalLM and AutoTokenizer load them, offline."""
    tokenizer = build_tokenizer()
    build_model(tokenizer, seed=seed).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
