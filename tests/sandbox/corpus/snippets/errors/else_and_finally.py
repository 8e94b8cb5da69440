def parse(text):
    steps = []
    try:
        value = int(text)
    except ValueError:
        steps.append("bad")
        value = None
    else:
        steps.append("good")
    finally:
        steps.append("done")
    return value, steps

[parse("12"), parse("x")]

#: value
#| [[12, ["good", "done"]], [null, ["bad", "done"]]]
