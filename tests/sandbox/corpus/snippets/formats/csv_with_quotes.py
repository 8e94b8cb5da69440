import csv

lines = ['name,quote', 'Ada,"Hello, ""world"""', 'Bo,"two', 'lines"']
[row for row in csv.reader(lines)]

#: value
#| [["name", "quote"], ["Ada", "Hello, \"world\""], ["Bo", "twolines"]]
