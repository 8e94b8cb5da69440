import heapq

graph = {"a": {"b": 7, "c": 3}, "b": {"d": 2}, "c": {"b": 1, "d": 8}, "d": {}}

def shortest(graph, start):
    best, queue = {start: 0}, [(0, start)]
    while queue:
        cost, node = heapq.heappop(queue)
        if cost > best[node]:
            continue
        for neighbour, weight in graph[node].items():
            total = cost + weight
            if total < best.get(neighbour, float("inf")):
                best[neighbour] = total
                heapq.heappush(queue, (total, neighbour))
    return best

shortest(graph, "a")

#: value
#| {"a": 0, "b": 4, "c": 3, "d": 6}
