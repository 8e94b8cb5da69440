import ast
import operator

OPS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}

def evaluate(node):
    match node:
        case ast.Expression(body=body):
            return evaluate(body)
        case ast.BinOp(left=left, op=op, right=right):
            return OPS[type(op)](evaluate(left), evaluate(right))
        case ast.Constant(value=int() | float() as value):
            return value
    raise ValueError(f"not allowed: {type(node).__name__}")

print(evaluate(ast.parse("2 * (3 + 4) - 5 / 2", mode="eval")))
try:
    evaluate(ast.parse("len('x')", mode="eval"))
except ValueError as error:
    print(error)

#: prints
#| 11.5
#| not allowed: Call
