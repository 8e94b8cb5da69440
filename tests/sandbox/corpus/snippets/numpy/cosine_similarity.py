import numpy as np

vectors = np.array([[1, 0, 1], [1, 1, 0], [0, 0, 2]], dtype=float)
unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
np.round(unit @ unit.T, 3).tolist()

#: value
#| [[1.0, 0.5, 0.707], [0.5, 1.0, 0.0], [0.707, 0.0, 1.0]]
