import pandas as pd
import shop

series = pd.Series([order["item"] for order in shop.list_orders()])
counts = series.value_counts()
print(counts.index[0] in ("lamp", "chair"), int(counts.sum()))
numbers = pd.Series([1, 2, 3, 4]).describe()
{key: round(float(numbers[key]), 3) for key in ("mean", "std", "max")}

#: prints
#| True 12
#: value
#| {"mean": 2.5, "std": 1.291, "max": 4.0}
