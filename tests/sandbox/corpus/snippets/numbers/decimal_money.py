from decimal import ROUND_HALF_EVEN, Decimal, getcontext

getcontext().prec = 28
lines = [("lamp", Decimal("39.90"), 3), ("desk", Decimal("249.00"), 1)]
net = sum(price * n for _, price, n in lines)
tax = (net * Decimal("0.19")).quantize(Decimal("0.01"), rounding=ROUND_HALF_EVEN)
print(f"net {net} tax {tax} total {net + tax}")
Decimal("0.1") + Decimal("0.2") == Decimal("0.3")

#: prints
#| net 368.70 tax 70.05 total 438.75
#: value
#| true
