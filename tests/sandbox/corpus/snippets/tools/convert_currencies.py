import shop
from decimal import Decimal, ROUND_HALF_UP

rates = shop.rates()
price = Decimal("249.00")
for code in sorted(rates):
    amount = (price * Decimal(str(rates[code]))).quantize(Decimal("0.01"), ROUND_HALF_UP)
    print(f"{code} {amount:>9}")

#: prints
#| EUR    249.00
#| GBP    211.65
#| NOK   2863.50
#| USD    273.90
