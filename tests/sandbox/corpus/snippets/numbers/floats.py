import math

(0.1 + 0.2 == 0.3, math.isclose(0.1 + 0.2, 0.3), round(2.5), round(-1.235, 2), math.fsum([0.1] * 10), math.inf > 10**300, 7 // -2, -7 % 3, divmod(17, 5))

#: value
#| [false, true, 2, -1.24, 1.0, true, -4, 2, [3, 2]]
