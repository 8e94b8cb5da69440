import queue
import threading

jobs, results = queue.Queue(), []

def worker():
    while (job := jobs.get()) is not None:
        results.append(job ** 2)

thread = threading.Thread(target=worker)
thread.start()
for n in (1, 2, 3, None):
    jobs.put(n)
thread.join()
results

#: value
#| [1, 4, 9]
