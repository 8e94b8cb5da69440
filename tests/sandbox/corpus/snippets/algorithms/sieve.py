def primes(limit):
    sieve = bytearray([1]) * (limit + 1)
    sieve[:2] = b"\0\0"
    for n in range(2, int(limit ** 0.5) + 1):
        if sieve[n]:
            sieve[n * n :: n] = bytes(len(range(n * n, limit + 1, n)))
    return [n for n, is_prime in enumerate(sieve) if is_prime]

found = primes(1000)
(len(found), found[-3:])

#: value
#| [168, [983, 991, 997]]
