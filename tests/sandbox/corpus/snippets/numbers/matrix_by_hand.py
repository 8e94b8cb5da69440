def multiply(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]

def power(matrix, n):
    result = [[int(i == j) for j in range(len(matrix))] for i in range(len(matrix))]
    while n:
        if n & 1:
            result = multiply(result, matrix)
        matrix = multiply(matrix, matrix)
        n >>= 1
    return result

power([[1, 1], [1, 0]], 30)[0][1]

#: value
#| 832040
