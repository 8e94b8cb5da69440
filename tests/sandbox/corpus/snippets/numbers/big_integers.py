import math

print(len(str(math.factorial(100))), 2**200 % 1_000_007, pow(3, 10**12, 97))
(math.gcd(462, 1071), math.lcm(4, 6, 10), math.isqrt(10**20), math.comb(52, 5))

#: prints
#| 158 446616 61
#: value
#| [21, 60, 10000000000, 2598960]
