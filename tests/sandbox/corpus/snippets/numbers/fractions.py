from fractions import Fraction

third = Fraction(1, 3)
total = third + Fraction("0.25") * 2
print(total, float(total), total.limit_denominator(2))
sum((Fraction(1, n) for n in range(1, 6)), Fraction(0)).numerator

#: prints
#| 5/6 0.8333333333333334 1
#: value
#| 137
