import pandas as pd

series = pd.Series([1, 2, 6, 3, 8], index=pd.date_range("2026-01-01", periods=5))
rolling = series.rolling(3).mean().dropna().round(3)
{day.strftime("%m-%d"): value for day, value in rolling.items()}

#: value
#| {"01-03": 3.0, "01-04": 3.667, "01-05": 5.667}
