import random

rng = random.Random(42)
sample = [rng.randint(1, 6) for _ in range(5)]
deck = list("abcdef")
rng.shuffle(deck)
(sample, sorted(deck) == list("abcdef"), rng.random() < 1)

#: value
#| [[6, 1, 1, 6, 3], true, true]
