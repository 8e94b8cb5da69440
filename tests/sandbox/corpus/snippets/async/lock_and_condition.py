import asyncio

async def main():
    lock = asyncio.Lock()
    order = []

    async def job(name):
        async with lock:
            order.append(f"{name} in")
            await asyncio.sleep(0)
            order.append(f"{name} out")

    await asyncio.gather(job("a"), job("b"))
    return order

asyncio.run(main())

#: value
#| ["a in", "a out", "b in", "b out"]
