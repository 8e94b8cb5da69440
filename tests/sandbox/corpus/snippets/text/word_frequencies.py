import re
from collections import Counter

text = """It was the best of times, it was the worst of times,
it was the age of wisdom, it was the age of foolishness"""
words = Counter(re.findall(r"[a-z]+", text.lower()))
words.most_common(4)

#: value
#| [["it", 4], ["was", 4], ["the", 4], ["of", 4]]
