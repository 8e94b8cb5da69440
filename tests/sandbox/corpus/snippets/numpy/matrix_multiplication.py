import numpy as np

n = 200
a = np.arange(n * n, dtype=float).reshape(n, n) % 7
b = a @ a.T
(b.shape, float(b[0, 0]), bool(np.allclose(b, b.T)))

#: value
#| [[200, 200], 2562.0, true]
