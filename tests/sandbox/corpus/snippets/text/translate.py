table = str.maketrans({"a": "4", "e": "3", "o": "0", " ": None})
"these are codes".translate(table)

#: value
#| "th3s34r3c0d3s"
