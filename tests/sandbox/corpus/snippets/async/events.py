import asyncio

ready = asyncio.Event()
log = []

async def waiter(name):
    await ready.wait()
    log.append(name)

async def setter():
    log.append("set")
    ready.set()

await asyncio.gather(waiter("a"), waiter("b"), setter())
log

#: value
#| ["set", "a", "b"]
