import statistics

prices = [39.9, 249.0, 89.5, 64.25, 120.0, 39.9]
print(round(statistics.mean(prices), 3), statistics.median(prices), statistics.mode(prices))
[round(statistics.stdev(prices), 2), [round(q, 2) for q in statistics.quantiles(prices, n=4)]]

#: prints
#| 100.425 76.875 39.9
#: value
#| [79.01, [39.9, 76.88, 152.25]]
