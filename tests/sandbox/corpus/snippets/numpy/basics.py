import numpy as np

a = np.arange(12).reshape(3, 4)
print(a.sum(axis=0), a.mean(), a.T.shape)
(a[a % 2 == 0].tolist(), a[:, 1:3].sum().item(), a.dtype.kind)

#: prints
#| [12 15 18 21] 5.5 (4, 3)
#: value
#| [[0, 2, 4, 6, 8, 10], 33, "i"]
