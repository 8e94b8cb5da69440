import numpy as np

x = np.arange(6)
coefficients = np.polyfit(x, 2 * x**2 - 3 * x + 1, deg=2)
np.round(coefficients, 6).tolist()

#: value
#| [2.0, -3.0, 1.0]
