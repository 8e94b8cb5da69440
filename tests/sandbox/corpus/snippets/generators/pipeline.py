def lines(text):
    for line in text.splitlines():
        yield line.strip()

def without_comments(rows):
    return (row for row in rows if row and not row.startswith("#"))

def pairs(rows):
    for row in rows:
        key, _, value = row.partition("=")
        yield key.strip(), value.strip()

text = """
# settings
host = example.org
port = 80

# end
"""
dict(pairs(without_comments(lines(text))))

#: value
#| {"host": "example.org", "port": "80"}
