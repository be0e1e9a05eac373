# SPDX-License-Identifier: BSD-2-Clause
"""model.py CHATS FOLDER - a model for Dynamo's frontend, which has to tokenize:
a configuration without weights, and a tokenizer with about as many bytes a
token as that of the stand-in engines, trained on texts of their users."""
import json
import os
import subprocess
import sys

VOCABULARY = 4000
WORDS = r" ?[A-Za-z]{1,5}|\d|[^\x00-\x7f]|\s+|[^\sA-Za-z\d]{1,2}"
MARKS = ['<s>', '</s>', '<|start|>', '<|end|>']
TEMPLATE = '''{% if tools %}<|start|>tools
{{ tools | tojson }}<|end|>{% endif %}
{%- for m in messages %}<|start|>{{ m.role }}
{% if m.content is string %}{{ m.content }}{% elif m.content -%}
{% for part in m.content %}{{ part.text }}{% endfor %}{% endif %}
{%- if m.tool_calls %}{{ m.tool_calls | tojson }}{% endif %}<|end|>{% endfor %}
{%- if add_generation_prompt %}<|start|>assistant
{% endif %}'''


def texts(chats):
    for seed in range(1, 40):
        body = subprocess.run([chats, '--make-body', '60000', '--seed',
                               str(seed)], check=True,
                              stdout=subprocess.PIPE).stdout
        for message in json.loads(body)['messages']:
            yield message['content']


def write(folder, name, facts):
    with open(os.path.join(folder, name), 'w') as file:
        json.dump(facts, file)


def train(chats, folder):
    import tokenizers
    from tokenizers import pre_tokenizers
    bpe = tokenizers.Tokenizer(tokenizers.models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(tokenizers.Regex(WORDS), 'isolated'),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    bpe.decoder = tokenizers.decoders.ByteLevel()
    bpe.train_from_iterator(texts(chats), tokenizers.trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=MARKS, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    bpe.save(os.path.join(folder, 'tokenizer.json'))


def write_all(chats, folder):
    os.makedirs(folder, exist_ok=True)
    train(chats, folder)
    write(folder, 'tokenizer_config.json', {
        'tokenizer_class': 'PreTrainedTokenizerFast', 'bos_token': '<s>',
        'eos_token': '</s>', 'chat_template': TEMPLATE,
        'model_max_length': 1000000})
    write(folder, 'generation_config.json', {
        'bos_token_id': 0, 'eos_token_id': 1})
    write(folder, 'config.json', {
        'architectures': ['LlamaForCausalLM'], 'model_type': 'llama',
        'bos_token_id': 0, 'eos_token_id': 1, 'hidden_size': 64,
        'intermediate_size': 128, 'num_attention_heads': 4,
        'num_hidden_layers': 2, 'num_key_value_heads': 4,
        'max_position_embeddings': 1000000, 'vocab_size': VOCABULARY,
        'rms_norm_eps': 1e-5, 'torch_dtype': 'float16'})


def make(build, python):
    """Its folder; made once, by a Python that has the tokenizers."""
    folder = os.path.join(build, 'bench-rivals', 'model')
    if not os.path.exists(os.path.join(folder, 'config.json')):
        subprocess.run([python, os.path.abspath(__file__),
                        os.path.join(build, 'kvroute-chats'), folder],
                       check=True)
    return folder


if __name__ == '__main__':
    write_all(*sys.argv[1:])
