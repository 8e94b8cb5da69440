import numpy as np

a = np.array([[3.0, 1.0], [1.0, 2.0]])
x = np.linalg.solve(a, np.array([9.0, 8.0]))
print(np.round(x, 6).tolist(), round(float(np.linalg.det(a)), 6))
np.round(np.linalg.eigvalsh(a), 4).tolist()

#: prints
#| [2.0, 3.0] 5.0
#: value
#| [1.382, 3.618]
