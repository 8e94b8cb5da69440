from functools import partial, reduce
import operator

product = partial(reduce, operator.mul)
power_of_two = partial(pow, 2)
(product([1, 2, 3, 4, 5]), power_of_two(10), reduce(lambda a, b: {**a, **b}, [{"x": 1}, {"y": 2}]))

#: value
#| [120, 1024, {"x": 1, "y": 2}]
