import pandas as pd

frame = pd.DataFrame({"name": ["ada", "bo", "cy"], "score": [80, 95, 80]})
frame["rank"] = frame["score"].rank(ascending=False, method="min").astype(int)
frame["label"] = frame.apply(lambda row: f"{row['rank']}. {row['name'].title()}", axis=1)
frame.sort_values(["rank", "name"])["label"].tolist()

#: value
#| ["1. Bo", "2. Ada", "2. Cy"]
