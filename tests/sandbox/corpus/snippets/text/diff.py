import difflib

before = "alpha\nbeta\ngamma\n".splitlines(keepends=True)
after = "alpha\nbeta 2\ngamma\ndelta\n".splitlines(keepends=True)
print("".join(difflib.unified_diff(before, after, "before", "after")), end="")
round(difflib.SequenceMatcher(None, "kitten", "sitting").ratio(), 4)

#: prints
#| --- before
#| +++ after
#| @@ -1,3 +1,4 @@
#|  alpha
#| -beta
#| +beta 2
#|  gamma
#| +delta
#: value
#| 0.6154
