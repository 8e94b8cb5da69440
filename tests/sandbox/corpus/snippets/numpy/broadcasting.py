import numpy as np

prices = np.array([[10.0, 20.0], [30.0, 40.0]])
discount = np.array([0.9, 0.5])
np.round(prices * discount + np.array([[1], [2]]), 2).tolist()

#: value
#| [[10.0, 11.0], [29.0, 22.0]]
