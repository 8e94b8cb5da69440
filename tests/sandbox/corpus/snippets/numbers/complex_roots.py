import cmath

def roots(a, b, c):
    d = cmath.sqrt(b * b - 4 * a * c)
    return (-b + d) / (2 * a), (-b - d) / (2 * a)

[f"{r.real:.1f}{r.imag:+.1f}i" for r in roots(1, 2, 5)]

#: value
#| ["-1.0+2.0i", "-1.0-2.0i"]
