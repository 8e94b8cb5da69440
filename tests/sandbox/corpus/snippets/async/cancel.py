import asyncio

log = []

async def endless():
    try:
        await asyncio.sleep(100)
    except asyncio.CancelledError:
        log.append("cancelled")
        raise

async def main():
    task = asyncio.create_task(endless())
    await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        log.append("seen")

asyncio.run(main())
log

#: value
#| ["cancelled", "seen"]
