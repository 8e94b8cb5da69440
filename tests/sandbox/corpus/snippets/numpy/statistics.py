import numpy as np

rng = np.random.default_rng(7)
sample = rng.normal(10, 2, size=10_000)
print(sample.shape, abs(sample.mean() - 10) < 0.1, abs(sample.std() - 2) < 0.1)
np.percentile([1, 2, 3, 4, 5], [25, 50, 75]).tolist()

#: prints
#| (10000,) True True
#: value
#| [2.0, 3.0, 4.0]
