"""Finds words that are one token each wherever they stand in a text: what prompts of an exact length are made of.

A program of its own, run with the Python of AIPerf's environment: that has the tokenizers, and reads them as AIPerf
does. Prints one line of JSON: `words`, and `overhead`, the tokens that a text has besides its words, such as one that
marks its beginning, which the server adds to every prompt.
"""

import json
import random
import re
import sys
from collections import Counter

from aiperf.common.tokenizer import Tokenizer  # pyright: ignore[reportMissingImports]

# Words with the space before them; where a tokenizer has none, as one of bytes, single letters.
KINDS = ((r" ?[A-Za-z]{2,}", " {}"), (r" ?[A-Za-z]", "{}"))
TOGETHER = 256  # words that are tried in one text
FEWEST, MOST = 26, 8192


def main(name: str) -> None:
    """Print the words of the tokenizer `name`. Ends with one line on standard error when there are too few."""
    tokenizer = Tokenizer.from_pretrained(name)
    texts = tokenizer.decode_batch([[number] for number in tokenizer.valid_token_ids])
    for pattern, form in KINDS:
        candidates = sorted({form.format(text.strip()) for text in texts if re.fullmatch(pattern, text)})
        words, overhead = _proven(tokenizer, candidates)
        if len(words) >= FEWEST:
            print(json.dumps({"words": words[:MOST], "overhead": overhead}))
            return
    sys.exit(f"tokenizer {name} has no words of one token to make prompts of")


def _proven(tokenizer: Tokenizer, candidates: list[str]) -> tuple[list[str], int]:
    """The candidates that add one token to a text, alone and among others, in random order; and the overhead."""
    once = tokenizer.encode_lengths_batch(candidates)
    twice = tokenizer.encode_lengths_batch([word * 2 for word in candidates])
    words = [word for word, one, two in zip(candidates, once, twice, strict=True) if two - one == 1]
    order = random.Random(0)  # noqa: S311  the same words every time
    overhead = 0
    for _ in range(3):
        order.shuffle(words)
        chunks = [words[start : start + TOGETHER] for start in range(0, len(words), TOGETHER)]
        surplus = [len(tokenizer.encode("".join(chunk), add_special_tokens=True)) - len(chunk) for chunk in chunks]
        if not surplus:
            return [], 0
        overhead = Counter(surplus).most_common(1)[0][0]
        words = [word for chunk, more in zip(chunks, surplus, strict=True) if more == overhead for word in chunk]
    return words, overhead


if __name__ == "__main__":
    main(sys.argv[1])
