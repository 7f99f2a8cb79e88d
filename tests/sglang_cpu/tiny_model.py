"""Writes a model of two random layers and a tokenizer of 512 tokens: it answers nonsense, but in the form of a schema.

python tiny_model.py FOLDER
"""

import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

TEXTS = [
    "You live in a world of cells. Food grows there; wood, stone and water lie about. Answer with JSON.",
    '{"action": "move", "direction": "north", "target": "agent 12", "say": "hello", "amount": 3}',
    "0123456789 !@#$%^&*()_+-=[]{};:'\",.<>/?\\|`~ the quick brown fox jumps over the lazy dog",
]
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tokenizer() -> PreTrainedTokenizerFast:
    bytes_ = Tokenizer(models.BPE(unk_token=None))
    bytes_.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytes_.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=512,
        special_tokens=["<|pad|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    bytes_.train_from_iterator(TEXTS * 50, trainer)
    made = PreTrainedTokenizerFast(tokenizer_object=bytes_, eos_token="<|im_end|>", pad_token="<|pad|>")
    made.chat_template = TEMPLATE
    return made


def model(tokens: int) -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=tokens, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=8192, tie_word_embeddings=True, eos_token_id=2,
        bos_token_id=None, pad_token_id=0, dtype="float32",
    )  # fmt: skip
    return LlamaForCausalLM(config)


if __name__ == "__main__":
    words = tokenizer()
    words.save_pretrained(sys.argv[1])
    model(len(words)).save_pretrained(sys.argv[1])
