events = []

def source():
    try:
        for n in range(10):
            yield n
    finally:
        events.append("closed")

stream = source()
events.append(next(stream))
events.append(next(stream))
stream.close()
events

#: value
#| [0, 1, "closed"]
