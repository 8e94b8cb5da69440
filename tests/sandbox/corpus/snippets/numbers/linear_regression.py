import statistics

hours = [1, 2, 3, 4, 5]
score = [52, 55, 61, 64, 70]
slope, intercept = statistics.linear_regression(hours, score)
(round(slope, 3), round(intercept, 3), round(statistics.correlation(hours, score), 4))

#: value
#| [4.5, 46.9, 0.9934]
