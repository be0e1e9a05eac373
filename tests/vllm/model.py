# SPDX-License-Identifier: BSD-2-Clause
"""model.py FOLDER FILE ... - makes a tiny Llama with random weights, and a
tokenizer that is trained on the text of the files.

Its answers are words that are one token each after a blank, so that an answer
that comes back in the next prompt has the tokens with which it was generated.
vLLM on CPU wants heads of 32 or more.
"""
import json
import os
import sys

import tokenizers
import torch
import transformers

HIDDEN, LAYERS, HEAD, HEADS = 64, 2, 32, 4
VOCABULARY, LENGTH = 2000, 32768
PAD, BEGIN, END = '<|pad|>', '<|begin|>', '<|end|>'
ROLES = ['<|system|>', '<|user|>', '<|assistant|>', '<|tool|>']

TEMPLATE = '''{{ bos_token }}
{%- if tools %}<|system|>Tools: {{ tools | tojson }}<|end|>{% endif %}
{%- for m in messages %}<|{{ m['role'] }}|>
{%- if m['content'] is string %}{{ m['content'] }}
{%- elif m['content'] %}
{%- for part in m['content'] %}{{ part['text'] }}{% endfor %}
{%- endif %}
{%- if m.get('tool_calls') %}{{ m['tool_calls'] | tojson }}{% endif %}
{{- '<|end|>' }}
{%- endfor %}
{%- if add_generation_prompt %}<|assistant|>{% endif %}'''


def make_tokenizer(files):
    bpe = tokenizers.Tokenizer(tokenizers.models.BPE())
    level = tokenizers.pre_tokenizers.ByteLevel
    bpe.pre_tokenizer = level(add_prefix_space=False)
    bpe.decoder = tokenizers.decoders.ByteLevel()
    bpe.train(files, tokenizers.trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=[PAD, BEGIN, END, *ROLES],
        initial_alphabet=level.alphabet(), show_progress=False))
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=bpe, pad_token=PAD, bos_token=BEGIN, eos_token=END,
        model_max_length=LENGTH)
    made.chat_template = TEMPLATE
    return made


def is_word(tokenizer, token):
    text = tokenizer.decode([token])
    return (len(text) > 2 and text[0] == ' ' and text[1:].isascii()
            and text[1:].isalpha() and tokenizer.encode(text) == [token])


def make_model(tokenizer):
    torch.manual_seed(1)
    ids = {'pad_token_id': tokenizer.pad_token_id,
           'bos_token_id': tokenizer.bos_token_id,
           'eos_token_id': tokenizer.eos_token_id}
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=HIDDEN, head_dim=HEAD,
        intermediate_size=2 * HIDDEN, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, num_key_value_heads=2,
        max_position_embeddings=LENGTH, tie_word_embeddings=False, **ids))
    # The first dimension is the same for all tokens and layers, and rules out
    # the tokens that are not words.
    with torch.no_grad():
        model.model.embed_tokens.weight.normal_(0, 0.5)
        model.model.embed_tokens.weight[:, 0] = 4
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight[0] = 0
            layer.mlp.down_proj.weight[0] = 0
        model.lm_head.weight.normal_(0, 0.5)
        for token in range(len(tokenizer)):
            model.lm_head.weight[token, 0] = \
                0 if is_word(tokenizer, token) else -20
    return model.to(torch.bfloat16), ids


def main(folder, *files):
    tokenizer = make_tokenizer(list(files))
    model, ids = make_model(tokenizer)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    with open(os.path.join(folder, 'generation_config.json'), 'w') as file:
        json.dump(ids, file)


if __name__ == '__main__':
    main(*sys.argv[1:])
