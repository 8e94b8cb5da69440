import asyncio

class Connection:
    async def __aenter__(self):
        await asyncio.sleep(0)
        print("connected")
        return self

    async def __aexit__(self, *_):
        print("closed")

    async def query(self, n):
        await asyncio.sleep(0)
        return n * n

async with Connection() as connection:
    results = await asyncio.gather(*[connection.query(n) for n in range(4)])
results

#: prints
#| connected
#| closed
#: value
#| [0, 1, 4, 9]
