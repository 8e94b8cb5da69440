import re
import unicodedata

def slug(title):
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")

[slug(t) for t in ("Crème Brûlée: à la carte!", "  Ünïcode   & Co. ", "Plain")]

#: value
#| ["creme-brulee-a-la-carte", "unicode-co", "plain"]
