rows = [("lamp", 2, 39.9), ("desk", 1, 249.0), ("a very long name", 12, 0.5)]
width = max(len(name) for name, *_ in rows)
print(f"{'item':<{width}} | {'n':>3} | {'total':>10}")
print("-" * (width + 19))
for name, n, price in rows:
    print(f"{name:<{width}} | {n:>3} | {n * price:>10,.2f}")

#: prints
#| item             |   n |      total
#| -----------------------------------
#| lamp             |   2 |      79.80
#| desk             |   1 |     249.00
#| a very long name |  12 |       6.00
