import re

def double(match):
    return str(int(match.group()) * 2)

re.sub(r"\d+", double, "3 apples, 12 pears and 7 figs")

#: value
#| "6 apples, 24 pears and 14 figs"
