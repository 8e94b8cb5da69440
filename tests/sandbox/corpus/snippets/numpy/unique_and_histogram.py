import numpy as np

values, counts = np.unique([3, 1, 3, 2, 3, 1], return_counts=True)
histogram, edges = np.histogram([1, 2, 2, 3, 9], bins=4, range=(0, 8))
(dict(zip(values.tolist(), counts.tolist())), histogram.tolist(), edges.tolist())

#: value
#| [{"1": 2, "2": 1, "3": 3}, [1, 3, 0, 0], [0.0, 2.0, 4.0, 6.0, 8.0]]
