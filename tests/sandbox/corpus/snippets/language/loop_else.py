def first_factor(n):
    for k in range(2, int(n ** 0.5) + 1):
        if n % k == 0:
            return k
    else:
        return None

found = []
for n in (91, 97, 15):
    for k in range(2, n):
        if n % k == 0:
            found.append((n, k))
            break
    else:
        found.append((n, "prime"))
(found, first_factor(97))

#: value
#| [[[91, 7], [97, "prime"], [15, 3]], null]
