import asyncio

async def numbers():
    for n in range(5):
        await asyncio.sleep(0)
        yield n

squares = [n * n async for n in numbers() if n % 2]
squares

#: value
#| [1, 9]
