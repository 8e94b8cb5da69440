import shlex

parts = shlex.split("grep -n 'two words' --file=\"a b.txt\" rest")
print(parts)
shlex.join(["echo", "it's", "fine"])

#: prints
#| ['grep', '-n', 'two words', '--file=a b.txt', 'rest']
#: value
#| "echo 'it'\"'\"'s' fine"
