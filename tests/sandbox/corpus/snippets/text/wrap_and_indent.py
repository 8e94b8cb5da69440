import textwrap

text = """
    The quick brown fox jumps over the lazy dog. Then it rests for a while
    under a tree, because jumping is hard work.
"""
body = textwrap.dedent(text).strip()
print(textwrap.fill(body, width=40))
print(textwrap.indent("a\nb", "> "))
textwrap.shorten(body, width=30, placeholder="...")

#: prints
#| The quick brown fox jumps over the lazy
#| dog. Then it rests for a while under a
#| tree, because jumping is hard work.
#| > a
#| > b
#: value
#| "The quick brown fox jumps..."
