import threading

total = 0
lock = threading.Lock()

def add():
    global total
    for _ in range(1000):
        with lock:
            total += 1

threads = [threading.Thread(target=add) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
total

#: value
#| 3000
