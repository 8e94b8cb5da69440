import asyncio
import time

async def nap(n):
    await asyncio.sleep(0.2)
    return n

start = time.monotonic()
results = await asyncio.gather(*[nap(n) for n in range(10)])
(results, time.monotonic() - start < 1.5)

#: value
#| [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], true]
