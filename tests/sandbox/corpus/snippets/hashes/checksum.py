def luhn(number):
    digits = [int(d) for d in str(number)][::-1]
    return sum(sum(divmod(d * (1 + i % 2), 10)) for i, d in enumerate(digits)) % 10 == 0

[luhn(n) for n in (4539578763621486, 4539578763621487)]

#: value
#| [true, false]
