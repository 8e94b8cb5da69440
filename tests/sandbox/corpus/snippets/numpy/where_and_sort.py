import numpy as np

scores = np.array([55, 91, 78, 62])
names = np.array(["ada", "bo", "cy", "di"])
order = np.argsort(scores)[::-1]
print(names[order].tolist())
(np.where(scores >= 75, "pass", "fail").tolist(), np.clip(scores, 60, 80).tolist())

#: prints
#| ['bo', 'cy', 'di', 'ada']
#: value
#| [["fail", "pass", "pass", "fail"], [60, 80, 78, 62]]
