def balance(principal, rate, years, monthly=0.0):
    total = principal
    for month in range(years * 12):
        total = total * (1 + rate / 12) + monthly
    return total

for years in (1, 5, 10):
    print(f"{years:>2} years: {balance(1000, 0.05, years, monthly=50):>10,.2f}")

#: prints
#|  1 years:   1,665.10
#|  5 years:   4,683.66
#| 10 years:   9,411.12
