import io
import logging

stream = io.StringIO()
logger = logging.getLogger("job")
logger.setLevel(logging.INFO)
logger.propagate = False
handler = logging.StreamHandler(stream)
handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
logger.addHandler(handler)

logger.info("started with %d rows", 3)
logger.debug("not shown")
logger.error("row %s is bad", 2)
print(stream.getvalue(), end="")

#: prints
#| INFO job: started with 3 rows
#| ERROR job: row 2 is bad
