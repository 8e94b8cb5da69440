import pandas as pd

frame = pd.DataFrame({"a": [1.0, None, 3.0], "b": ["x", "y", None]})
print(frame.isna().sum().to_dict(), frame["a"].fillna(frame["a"].mean()).tolist())
frame.dropna().shape[0]

#: prints
#| {'a': 1, 'b': 1} [1.0, 2.0, 3.0]
#: value
#| 1
